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


def turned(x):
    """Of a Linear into a Dense, and back."""
    return np.ascontiguousarray(x.T) if x.ndim == 2 else x


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
            model[names[name]] = wb.array(turned(state[name]))
    return names


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
    theirs = getattr(models, name)(num_classes=10)
    randomise(theirs)
    theirs.double().eval()
    ours = wb.model_as(make(), "float64")
    wb.test_mode(ours)
    names = fill(ours, theirs.state_dict())
    x, weight = torch.randn(2, 3, 64, 64, dtype=torch.float64), torch.randn(2, 10, dtype=torch.float64)
    wanted = theirs(x)
    (wanted * weight).sum().backward()
    x, weight = wb.array(numbers(x)), wb.array(numbers(weight))
    assert np.allclose(np.asarray(ours(x)), numbers(wanted), rtol=1e-9, atol=1e-9)
    gradients = wb.gradient(lambda m: (m(x) * weight).sum(), ours)
    for parameter, value in theirs.named_parameters():
        wanted = turned(numbers(value.grad))  # 1/6 in the derivative of torch's hardsigmoid is one of f32
        assert np.allclose(np.asarray(gradients[names[parameter]]), wanted, rtol=0, atol=1e-7 * np.abs(wanted).max()), parameter


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
