"""Known models of images beside torchvision's, with its weights in the order of its state_dict: results and gradients. Skipped where
torchvision is missing."""
import ctypes

import pytest

torch = pytest.importorskip("torch")
models = pytest.importorskip("torchvision.models")
import numpy as np  # noqa: E402

import weber as wb  # noqa: E402

OURS = {"weight": ("weight", "γ"), "bias": ("bias", "β"), "running_mean": ("μ",), "running_var": ("σ²",)}


def by_module(names):
    groups = {}
    for name in names:
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    return list(groups.values())


def turned(x, name):
    """Of a Linear into a Dense, and of a ConvTranspose2d, whose kernel is flipped here; and back."""
    flips = name.startswith("upconv") and x.ndim == 4
    return np.ascontiguousarray(x.T if x.ndim == 2 else x[..., ::-1, ::-1] if flips else x)


def numbers(x):
    """Without torch's own way, which not every NumPy has."""
    x = x.detach().contiguous()
    data = ctypes.string_at(x.data_ptr(), x.numel() * x.element_size())
    return np.frombuffer(data, str(x.dtype).removeprefix("torch.")).reshape(tuple(x.shape))


def fill(model, state):
    """Torch's numbers, module by module; the names of our arrays by torch's."""
    state = {name: numbers(x) for name, x in state.items() if not name.endswith("num_batches_tracked")}
    ours, names = by_module(model.parameters(True)), {}
    theirs = by_module(state)
    assert len(ours) == len(theirs)
    for mine, group in zip(ours, theirs):
        for name in group:
            names[name] = next(n for n in mine if n.rpartition(".")[2] in OURS[name.rpartition(".")[2]])
            model[names[name]] = wb.array(turned(state[name], name))
    return names


def loaded(state, model, folder):
    """The model, in float64, with the numbers of torch's names."""
    model = wb.model_as(model, "float64")
    torch.save(state, folder / "state.pt")
    wb.load(folder / "state.pt", model, from_="torch")
    return model


def randomise(model):
    """Norms of a new model do nothing."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5), torch.nn.init.normal_(module.bias, std=0.2)
            torch.nn.init.normal_(module.running_mean, std=0.2), torch.nn.init.uniform_(module.running_var, 0.5, 1.5)


@pytest.mark.parametrize("name, make", [("resnet18", lambda: wb.resnet(18, classes=10)), ("resnet50", lambda: wb.resnet(50, classes=10)),
                                        ("mobilenet_v2", lambda: wb.mobilenet_v2(classes=10)),
                                        ("mobilenet_v3_small", lambda: wb.mobilenet_v3(small=True, classes=10)),
                                        ("mobilenet_v3_large", lambda: wb.mobilenet_v3(classes=10)),
                                        ("efficientnet_b0", lambda: wb.efficientnet(classes=10))])
def test_results_and_gradients(name, make):
    torch.manual_seed(1)
    compare(getattr(models, name)(num_classes=10), make())


def compare(theirs, ours):
    randomise(theirs)
    theirs.double().eval()
    ours = wb.model_as(ours, "float64")
    wb.test_mode(ours)
    names = fill(ours, theirs.state_dict())
    x = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    wanted = theirs(x)
    weight = torch.randn(wanted.shape, dtype=torch.float64)
    (wanted * weight).sum().backward()
    x, weight = wb.array(numbers(x)), wb.array(numbers(weight))
    assert np.allclose(np.asarray(ours(x)), numbers(wanted), rtol=1e-9, atol=1e-9)
    gradients = wb.gradient(lambda m: (m(x) * weight).sum(), ours)
    for parameter, value in theirs.named_parameters():
        wanted = turned(numbers(value.grad), parameter)  # 1/6 in the derivative of torch's hardsigmoid is one of f32
        assert np.allclose(np.asarray(gradients[names[parameter]]), wanted, rtol=0, atol=1e-7 * np.abs(wanted).max()), parameter


class UNet(torch.nn.Module):
    """As github.com/mateuszbuda/brain-segmentation-pytorch has it, with its names."""

    def __init__(self, channels, classes, width):
        super().__init__()
        wide = [width << i for i in range(5)]
        for i in range(4):
            setattr(self, f"encoder{i + 1}", self.block(wide[i - 1] if i else channels, wide[i], f"enc{i + 1}"))
        self.bottleneck = self.block(wide[3], wide[4], "bottleneck")
        for i in (3, 2, 1, 0):
            setattr(self, f"upconv{i + 1}", torch.nn.ConvTranspose2d(wide[i + 1], wide[i], kernel_size=2, stride=2))
            setattr(self, f"decoder{i + 1}", self.block(wide[i + 1], wide[i], f"dec{i + 1}"))
        self.conv = torch.nn.Conv2d(width, classes, kernel_size=1)

    @staticmethod
    def block(inner, outer, name):
        block = torch.nn.Sequential()
        for i in (1, 2):
            block.add_module(f"{name}conv{i}", torch.nn.Conv2d(inner if i == 1 else outer, outer, kernel_size=3, padding=1, bias=False))
            block.add_module(f"{name}norm{i}", torch.nn.BatchNorm2d(outer))
            block.add_module(f"{name}relu{i}", torch.nn.ReLU())
        return block

    def forward(self, x):
        kept = []
        for i in range(4):
            kept.append(getattr(self, f"encoder{i + 1}")(x))
            x = torch.nn.functional.max_pool2d(kept[-1], 2)
        x = self.bottleneck(x)
        for i in (3, 2, 1, 0):
            x = torch.cat((getattr(self, f"upconv{i + 1}")(x), kept[i]), dim=1)
            x = getattr(self, f"decoder{i + 1}")(x)
        return self.conv(x)


def test_unet():
    torch.manual_seed(5)
    compare(UNet(3, 2, 4), wb.unet(width=4, classes=2))


VIT = dict(image_size=32, patch_size=8, num_layers=3, num_heads=4, hidden_dim=24, mlp_dim=40, num_classes=10)
CONVNEXT = [models.convnext.CNBlockConfig(8, 16, 2), models.convnext.CNBlockConfig(16, 32, 1), models.convnext.CNBlockConfig(32, 64, 3),
            models.convnext.CNBlockConfig(64, None, 1)]


@pytest.mark.parametrize("theirs, make, side", [
    (lambda: models.VisionTransformer(**VIT), lambda: wb.vit(image=32, patch=8, layers=3, heads=4, features=24, hidden=40, classes=10), 32),
    (lambda: models.convnext.ConvNeXt(CONVNEXT, num_classes=10), lambda: wb.convnext(depths=[2, 1, 3, 1], width=8, classes=10), 64),
    (lambda: models.vit_b_32(num_classes=10), lambda: wb.vit(patch=32, classes=10), 224),
    (lambda: models.convnext_tiny(num_classes=10), lambda: wb.convnext(classes=10), 64)])
def test_files_without_a_table(theirs, make, side, tmp_path):
    """Gradients have the names of the arrays, so that they are loaded as a model, too. Those of keys' biases are 0."""
    torch.manual_seed(3)
    theirs = theirs()
    for x in theirs.parameters():
        torch.nn.init.normal_(x, std=0.2)
    theirs.double().eval()
    ours = loaded(theirs.state_dict(), make(), tmp_path)
    wb.test_mode(ours)
    x, weight = torch.randn(2, 3, side, side, dtype=torch.float64), torch.randn(2, 10, dtype=torch.float64)
    wanted = theirs(x)
    (wanted * weight).sum().backward()
    x, weight = wb.array(numbers(x)), wb.array(numbers(weight))
    result, wanted = np.asarray(ours(x)), numbers(wanted)
    assert np.abs(result - wanted).max() <= 1e-9 * np.abs(wanted).max()
    gradients = wb.gradient(lambda m: (m(x) * weight).sum(), ours)
    wanted = loaded({name: value.grad for name, value in theirs.named_parameters()}, make(), tmp_path)
    for path in ours.parameters():
        want = np.asarray(wanted[path])
        assert np.allclose(np.asarray(gradients[path]), want, rtol=0, atol=1e-9 * np.abs(want).max() + 1e-12), path


def by_timm(name):
    """The name that timm's vit_base_patch16_224 has for an array of torchvision's Vision Transformer."""
    for theirs, its in [("conv_proj.", "patch_embed.proj."), ("class_token", "cls_token"), ("encoder.pos_embedding", "pos_embed"),
                        ("encoder.layers.encoder_layer_", "blocks."), ("ln_1", "norm1"), ("self_attention.in_proj_", "attn.qkv."),
                        ("self_attention.out_proj", "attn.proj"), ("ln_2", "norm2"), ("mlp.0", "mlp.fc1"), ("mlp.3", "mlp.fc2"),
                        ("encoder.ln", "norm"), ("heads.", "")]:
        name = name.replace(theirs, its)
    return name


def by_older_torchvision(name):
    """Also the names in the files that torchvision offers."""
    return name.replace("mlp.0", "mlp.linear_1").replace("mlp.3", "mlp.linear_2")


@pytest.mark.parametrize("rename", [by_timm, by_older_torchvision])
def test_other_names_of_a_vision_transformer(rename, tmp_path):
    torch.manual_seed(4)
    theirs = models.VisionTransformer(**VIT).double().eval()
    for x in theirs.parameters():
        torch.nn.init.normal_(x, std=0.2)
    settings = dict(image=32, patch=8, layers=3, heads=4, features=24, hidden=40)
    state = {rename(name): x for name, x in theirs.state_dict().items()}
    if rename == by_timm:
        state = {name: state[name] for name in ["cls_token", "pos_embed", *(name for name in state if name not in ("cls_token", "pos_embed"))]}
    ours = loaded(state, wb.vit(**settings, classes=10), tmp_path)
    x = torch.randn(2, 3, 32, 32, dtype=torch.float64)
    wb.test_mode(ours)
    assert np.allclose(np.asarray(ours(wb.array(numbers(x)))), numbers(theirs(x)), rtol=1e-9, atol=1e-9)
    head = next(name for name in state if name.endswith("head.weight")).removesuffix("weight")
    body = wb.model_as(wb.vit(**settings, classes=0), "float64")
    wb.load(tmp_path / "state.pt", body, from_="torch", rename=head + "* ->")
    wb.test_mode(body)
    theirs.heads = torch.nn.Identity()
    assert np.allclose(np.asarray(body(wb.array(numbers(x)))), numbers(theirs(x)), rtol=1e-9, atol=1e-9)


def test_vgg():
    theirs = models.vgg11_bn(num_classes=10)
    randomise(theirs)
    theirs.eval()
    ours = wb.vgg(11, norm=True, classes=10)
    fill(ours, theirs.state_dict())
    for side in 224, 96:  # 96: smaller than what the pool makes of it
        x = torch.randn(1, 3, side, side)
        assert np.allclose(np.asarray(ours(wb.array(numbers(x)))), numbers(theirs(x)), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("ours, theirs", [(wb.AdaptiveMeanPool, torch.nn.AdaptiveAvgPool2d), (wb.AdaptiveMaxPool, torch.nn.AdaptiveMaxPool2d)])
def test_pools_to_larger_sizes(ours, theirs):
    torch.manual_seed(2)
    for height, width in (3, 4), (1, 6), (5, 2):
        x = torch.randn(2, 3, height, width, dtype=torch.float64, requires_grad=True)
        weight = torch.randn(2, 3, 5, 9, dtype=torch.float64)
        wanted = theirs((5, 9))(x)
        (wanted * weight).sum().backward()
        pool, mine, scale = ours((5, 9)), wb.array(numbers(x)), wb.array(numbers(weight))
        assert np.allclose(np.asarray(pool(mine)), numbers(wanted), rtol=0, atol=1e-15)
        assert np.allclose(np.asarray(wb.gradient(lambda a: (pool(a) * scale).sum(), mine)), numbers(x.grad), rtol=0, atol=1e-14)
