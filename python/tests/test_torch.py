"""Values and gradients beside PyTorch's, on random numbers. Skipped where torch is missing.

Each row is one comparison: both functions get the same arrays, and the gradients are those of the sum of the result times random
numbers. Numbers go over as lists, so that any torch works with any NumPy.
"""
import math

import pytest

import weber as wb

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

torch.set_num_threads(1)
DOUBLE = torch.float64


def tensor(x):
    return torch.tensor(x.tolist(), dtype={"float32": torch.float32, "float64": DOUBLE, "int64": torch.int64, "bool": torch.bool}[str(x.dtype)])


def close(ours, theirs, tolerance=1e-9):
    assert tuple(ours.shape) == tuple(theirs.shape), (ours.shape, tuple(theirs.shape))
    theirs = wb.array(theirs.detach().tolist(), "float64").reshape(ours.shape)
    ours = ours.astype("float64")
    scale = 1 + wb.abs(theirs).max().item() if theirs.size else 1
    worst = wb.abs(ours - theirs).max().item() if theirs.size else 0
    assert worst <= tolerance * scale, (worst, ours, theirs)


def random(shape, low=-2.0, high=2.0):
    return wb.uniform(shape, dtype="float64") * (high - low) + low


def compare(ours, theirs, arrays, tolerance=1e-9, differentiate=True):
    """The results of both functions, and the gradients by all arrays of reals."""
    tensors = [tensor(x).requires_grad_(x.dtype in ("float32", "float64") and differentiate) for x in arrays]
    result = theirs(*tensors)
    close(ours(*arrays), result, tolerance)
    if not differentiate:
        return
    weights = random(tuple(result.shape))
    (result * tensor(weights).to(result.dtype)).sum().backward()
    places = [i for i, x in enumerate(arrays) if x.dtype in ("float32", "float64")]

    def loss(*chosen):
        given = list(arrays)
        for i, x in zip(places, chosen):
            given[i] = x
        return (ours(*given) * weights.astype(given[places[0]].dtype)).sum()

    gradients = wb.gradient(loss, *[arrays[i] for i in places])
    for i, g in zip(places, gradients if len(places) > 1 else (gradients,)):
        expected = tensors[i].grad
        close(g if g is not None else arrays[i] * 0, torch.zeros_like(tensors[i]) if expected is None else expected, tolerance)


@pytest.fixture(autouse=True)
def seeds():
    wb.seed(7)
    torch.manual_seed(7)


# name: ours, torch's, range of the numbers
ONE = {
    "exp": (wb.exp, torch.exp, -3, 3), "log": (wb.log, torch.log, 0.1, 5), "expm1": (wb.expm1, torch.expm1, -3, 3),
    "log1p": (wb.log1p, torch.log1p, -0.9, 3), "sqrt": (wb.sqrt, torch.sqrt, 0.1, 5), "rsqrt": (wb.rsqrt, torch.rsqrt, 0.1, 5),
    "sin": (wb.sin, torch.sin, -9, 9), "cos": (wb.cos, torch.cos, -9, 9), "tanh": (wb.tanh, torch.tanh, -4, 4), "erf": (wb.erf, torch.erf, -3, 3),
    "abs": (wb.abs, torch.abs, -2, 2), "negative": (wb.negative, torch.neg, -2, 2), "reciprocal": (wb.reciprocal, torch.reciprocal, 0.2, 3),
    "square": (wb.square, torch.square, -2, 2), "floor": (wb.floor, torch.floor, -5, 5), "ceil": (wb.ceil, torch.ceil, -5, 5),
    "trunc": (wb.trunc, torch.trunc, -5, 5), "round": (wb.round, torch.round, -5, 5), "sign": (wb.sign, torch.sign, -2, 2),
    "sigmoid": (wb.sigmoid, torch.sigmoid, -6, 6), "softplus": (wb.softplus, F.softplus, -6, 6), "softsign": (wb.softsign, F.softsign, -6, 6),
    "relu": (wb.relu, F.relu, -2, 2), "relu6": (wb.relu6, F.relu6, -8, 8), "leakyrelu": (wb.leakyrelu, lambda x: F.leaky_relu(x, 0.01), -2, 2),
    "elu": (wb.elu, F.elu, -3, 3), "celu": (wb.celu, F.celu, -3, 3), "selu": (wb.selu, F.selu, -3, 3),
    "gelu": (wb.gelu, lambda x: F.gelu(x, approximate="tanh"), -3, 3), "gelu_erf": (wb.gelu_erf, F.gelu, -3, 3), "swish": (wb.swish, F.silu, -5, 5),
    "hardsigmoid": (wb.hardsigmoid, F.hardsigmoid, -5, 5), "hardswish": (wb.hardswish, F.hardswish, -5, 5),
    "hardtanh": (wb.hardtanh, F.hardtanh, -3, 3), "mish": (wb.mish, F.mish, -5, 5), "logsigmoid": (wb.logsigmoid, F.logsigmoid, -6, 6),
    "softshrink": (wb.softshrink, F.softshrink, -2, 2), "tanhshrink": (wb.tanhshrink, F.tanhshrink, -3, 3),
    "isfinite": (lambda x: wb.isfinite(x).astype("float64") * x, lambda x: torch.isfinite(x) * x, -1, 1),
    "clamp": (lambda x: wb.clamp(x, -0.5, 1.0), lambda x: x.clamp(-0.5, 1.0), -2, 2),
}
# ours, torch's: of an array (3, 4, 5)
SHAPED = {
    "sum": (lambda x: x.sum(axis=1), lambda x: x.sum(1)), "sum of all": (lambda x: x.sum(), lambda x: x.sum()),
    "mean": (lambda x: x.mean(axis=(0, 2), keepdims=True), lambda x: x.mean((0, 2), keepdim=True)),
    "max": (lambda x: x.max(axis=-1), lambda x: x.max(-1).values), "min": (lambda x: x.min(axis=0), lambda x: x.min(0).values),
    "prod": (lambda x: x.prod(axis=1), lambda x: x.prod(1)), "var": (lambda x: x.var(axis=1, correction=1), lambda x: x.var(1)),
    "std": (lambda x: x.std(axis=2), lambda x: x.std(2, unbiased=False)), "norm": (lambda x: wb.norm(x, axis=1), lambda x: x.norm(dim=1)),
    "norm 1": (lambda x: wb.norm(x, axis=2, ord=1.0), lambda x: x.norm(1, dim=2)), "norm 3": (lambda x: wb.norm(x, axis=0, ord=3.0), lambda x: x.norm(3, dim=0)),
    "logsumexp": (lambda x: wb.logsumexp(x, axis=1), lambda x: x.logsumexp(1)), "softmax": (lambda x: wb.softmax(x, 1), lambda x: x.softmax(1)),
    "logsoftmax": (wb.logsoftmax, lambda x: x.log_softmax(-1)), "cumsum": (lambda x: wb.cumsum(x, 1), lambda x: x.cumsum(1)),
    "cumprod": (lambda x: wb.cumprod(x, 0), lambda x: x.cumprod(0)), "sort": (lambda x: wb.sort(x, 1), lambda x: x.sort(1).values),
    "sort downwards": (lambda x: wb.sort(x, 2, descending=True), lambda x: x.sort(2, descending=True).values),
    "top_k": (lambda x: wb.top_k(x, 2)[0], lambda x: x.topk(2).values), "tril": (lambda x: wb.tril(x, 1), lambda x: x.tril(1)),
    "triu": (lambda x: wb.triu(x, -1), lambda x: x.triu(-1)), "flip": (lambda x: wb.flip(x, (0, 2)), lambda x: x.flip(0, 2)),
    "roll": (lambda x: wb.roll(x, 2, 1), lambda x: x.roll(2, 1)), "permute": (lambda x: wb.permute_dims(x, (2, 0, 1)), lambda x: x.permute(2, 0, 1)),
    "T of a matrix": (lambda x: x[0].T, lambda x: x[0].T), "reshape": (lambda x: x.reshape(5, -1), lambda x: x.reshape(5, -1)),
    "expand_dims": (lambda x: wb.expand_dims(x, 1), lambda x: x.unsqueeze(1)), "broadcast_to": (lambda x: wb.broadcast_to(x, (2, 3, 4, 5)), lambda x: x.expand(2, 3, 4, 5)),
    "repeat": (lambda x: wb.repeat(x, 2, 1), lambda x: x.repeat_interleave(2, 1)), "tile": (lambda x: wb.tile(x, (2, 1, 3)), lambda x: x.repeat(2, 1, 3)),
    "glu": (lambda x: wb.glu(x, 1), lambda x: F.glu(x, 1)), "slice": (lambda x: x[1:, ::2, -3:], lambda x: x[1:, ::2, -3:]),
    "index": (lambda x: x[:, [0, 2, 2]], lambda x: x[:, [0, 2, 2]]), "mask": (lambda x: x[x > 0], lambda x: x[x > 0]),
    "split": (lambda x: wb.split(x, 2, 1)[1], lambda x: x.chunk(2, 1)[1]), "stack": (lambda x: wb.stack([x, x * x], 1), lambda x: torch.stack([x, x * x], 1)),
    "concat": (lambda x: wb.concat([x, -x], 2), lambda x: torch.cat([x, -x], 2)), "unstack": (lambda x: wb.unstack(x, 1)[2], lambda x: x.unbind(1)[2]),
    "pad": (lambda x: wb.pad(x, 2, 1, 2, 0.5), lambda x: F.pad(x, (1, 2), value=0.5)), "pad_reflect": (lambda x: wb.pad_reflect(x, 2, 2, 1), lambda x: F.pad(x, (2, 1), mode="reflect")),
    "pad_edge": (lambda x: wb.pad_edge(x, 2, 2, 1), lambda x: F.pad(x, (2, 1), mode="replicate")),
    "pad_wrap": (lambda x: wb.pad_wrap(x, 2, 2, 1), lambda x: F.pad(x, (2, 1), mode="circular")),
    "set": (lambda x: x.at[0, 1:3].set(x[1, :2]), lambda x: torch.cat([torch.cat([x[0, :1], x[1, :2], x[0, 3:]])[None], x[1:]])),
    "squeeze": (lambda x: wb.squeeze(x[:, :1], 1), lambda x: x[:, :1].squeeze(1)), "argmax": (lambda x: x.argmax(axis=1) * x[:, 0], lambda x: x.argmax(1) * x[:, 0]),
    "normalise": (lambda x: wb.normalise(x, 1e-5), lambda x: F.layer_norm(x, (5,))),
}
# ours, torch's, shapes
TWO = {
    "add": (lambda a, b: a + b, lambda a, b: a + b, (3, 1), (4,)), "subtract": (lambda a, b: a - b, lambda a, b: a - b, (2, 3), ()),
    "multiply": (lambda a, b: a * b, lambda a, b: a * b, (2, 3), (2, 1)), "divide": (lambda a, b: a / (b * b + 1), lambda a, b: a / (b * b + 1), (2, 3), (3,)),
    "power": (lambda a, b: (a * a + 0.1) ** b, lambda a, b: (a * a + 0.1) ** b, (2, 3), (2, 3)),
    "maximum": (wb.maximum, torch.maximum, (2, 3), (2, 3)), "minimum": (wb.minimum, torch.minimum, (2, 3), (2, 3)),
    "remainder": (lambda a, b: a % (b + 3), lambda a, b: a % (b + 3), (2, 3), (2, 3)),
    "where": (lambda a, b: wb.where(a > b, a, b * 2), lambda a, b: torch.where(a > b, a, b * 2), (2, 3), (2, 3)),
    "xlogy": (lambda a, b: wb.xlogy(a, b * b + 0.1), lambda a, b: torch.xlogy(a, b * b + 0.1), (2, 3), (2, 3)),
    "matrix matrix": (lambda a, b: a @ b, lambda a, b: a @ b, (3, 4), (4, 5)), "matrix vector": (lambda a, b: a @ b, lambda a, b: a @ b, (3, 4), (4,)),
    "vector matrix": (lambda a, b: a @ b, lambda a, b: a @ b, (4,), (4, 3)), "vector vector": (lambda a, b: a @ b, lambda a, b: a @ b, (4,), (4,)),
    "batch matrix": (lambda a, b: a @ b, lambda a, b: a @ b, (2, 3, 4), (2, 4, 5)), "batch one": (lambda a, b: a @ b, lambda a, b: a @ b, (2, 3, 4), (4, 5)),
    "outer": (wb.outer, torch.outer, (3,), (4,)), "einsum": (lambda a, b: wb.einsum("bij,bkj->bik", a, b), lambda a, b: torch.einsum("bij,bkj->bik", a, b), (2, 3, 4), (2, 5, 4)),
    "einsum to a number": (lambda a, b: wb.einsum("ij,ji->", a, b), lambda a, b: torch.einsum("ij,ji->", a, b), (3, 4), (4, 3)),
}


@pytest.mark.parametrize("name", ONE)
def test_of_one_array(name):
    ours, theirs, low, high = ONE[name]
    compare(ours, theirs, [random((4, 7), low, high)], 1e-7 if name == "hardsigmoid" else 1e-9)  # torch's 1/6 is a float's


@pytest.mark.parametrize("name", SHAPED)
def test_of_shapes(name):
    compare(*SHAPED[name], [random((3, 4, 5))])


@pytest.mark.parametrize("name", TWO)
def test_of_two_arrays(name):
    ours, theirs, *shapes = TWO[name]
    compare(ours, theirs, [random(s) for s in shapes])


def integers(shape, n):
    return (wb.uniform(shape) * n).astype("int64")


def test_of_indices():
    x, places = random((5, 3)), integers((4,), 5)
    compare(lambda x: wb.take(x, places, 0), lambda x: x[tensor(places)], [x])
    along = integers((2, 3), 5)
    compare(lambda x: wb.take_along_axis(x, along, 0), lambda x: x.gather(0, tensor(along)), [x])
    updates = random((4, 3))
    compare(lambda x, u: wb.scatter_add(x, places, u, 0), lambda x, u: x.index_add(0, tensor(places), u), [x, updates])


# ---- layers ----

# Ours, torch's, shape of the input, {our path: theirs, with "T" for a transposed one}
LAYERS = {
    "Dense": (lambda: wb.Dense(4, 3), lambda: nn.Linear(4, 3), (5, 4), {"weight": "weight.T", "bias": "bias"}),
    "Dense of three axes": (lambda: wb.Dense(4, 3, bias=False), lambda: nn.Linear(4, 3, bias=False), (2, 5, 4), {"weight": "weight.T"}),
    "CrossCor 1": (lambda: wb.CrossCor((3,), 4, 6, stride=2, pad=1), lambda: nn.Conv1d(4, 6, 3, 2, 1), (2, 4, 9), {"weight": "weight", "bias": "bias"}),
    "CrossCor 2": (lambda: wb.CrossCor((3, 2), 4, 6, stride=(2, 1), pad=(0, 1), dilation=(1, 2)), lambda: nn.Conv2d(4, 6, (3, 2), (2, 1), (0, 1), (1, 2)), (2, 4, 9, 8), {"weight": "weight", "bias": "bias"}),
    "CrossCor 3": (lambda: wb.CrossCor((2, 3, 2), 2, 3), lambda: nn.Conv3d(2, 3, (2, 3, 2)), (2, 2, 4, 5, 3), {"weight": "weight", "bias": "bias"}),
    "CrossCor of groups": (lambda: wb.CrossCor((3, 3), 4, 6, pad=1, groups=2), lambda: nn.Conv2d(4, 6, 3, padding=1, groups=2), (2, 4, 5, 6), {"weight": "weight", "bias": "bias"}),
    "ConvTranspose": (lambda: wb.ConvTranspose((3, 3), 4, 6, stride=2, pad=1, outpad=1), lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), (2, 4, 5, 6), {"weight": "flip weight", "bias": "bias"}),
    "LayerNorm": (lambda: wb.LayerNorm(5), lambda: nn.LayerNorm(5), (3, 5), {"diag.scale": "weight", "diag.bias": "bias"}),
    "GroupNorm": (lambda: wb.GroupNorm(6, 2), lambda: nn.GroupNorm(2, 6), (3, 6, 4), {"γ": "weight", "β": "bias"}),
    "InstanceNorm": (lambda: wb.InstanceNorm(3), lambda: nn.InstanceNorm2d(3), (2, 3, 4, 5), {}),
    "MaxPool": (lambda: wb.MaxPool((3, 2), stride=2, pad=1), lambda: nn.MaxPool2d((3, 2), 2, 1), (2, 3, 7, 8), {}),
    "MeanPool": (lambda: wb.MeanPool((3, 2), stride=2, pad=1), lambda: nn.AvgPool2d((3, 2), 2, 1), (2, 3, 7, 8), {}),
    "LPPool": (lambda: wb.LPPool((2, 2)), lambda: nn.LPPool2d(2, 2), (2, 3, 6, 8), {}),
    "AdaptiveMeanPool": (lambda: wb.AdaptiveMeanPool((2, 3)), lambda: nn.AdaptiveAvgPool2d((2, 3)), (2, 3, 4, 9), {}),
    "AdaptiveMaxPool": (lambda: wb.AdaptiveMaxPool((2, 3)), lambda: nn.AdaptiveMaxPool2d((2, 3)), (2, 3, 4, 9), {}),
    "GlobalMeanPool": (lambda: wb.GlobalMeanPool(), lambda: nn.AdaptiveAvgPool2d(1), (2, 3, 4, 9), {}),
    "Upsample": (lambda: wb.Upsample(scale=2), lambda: nn.Upsample(scale_factor=2), (2, 3, 4, 5), {}),
    "Upsample bilinear": (lambda: wb.Upsample(mode="bilinear", scale=2), lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), (2, 3, 4, 5), {}),
    "Upsample bilinear, centres": (lambda: wb.Upsample(mode="bilinear", scale=2, align_corners=False), lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), (2, 3, 4, 5), {}),
    "Flatten": (lambda: wb.Flatten(), lambda: nn.Flatten(), (2, 3, 4, 5), {}),
    "PixelShuffle": (lambda: wb.PixelShuffle(2), lambda: nn.PixelShuffle(2), (2, 8, 3, 4), {}),
    "LSTM": (lambda: wb.LSTM(4, 3), lambda: nn.LSTM(4, 3, batch_first=True), (2, 5, 4), {"cell.Wi": "weight_ih_l0.T", "cell.Wh": "weight_hh_l0.T", "cell.bias": "bias_ih_l0+bias_hh_l0"}),
    "GRU": (lambda: wb.GRU(4, 3, bias_h=True), lambda: nn.GRU(4, 3, batch_first=True), (2, 5, 4), {"cell.Wi": "weight_ih_l0.T", "cell.Wh": "weight_hh_l0.T", "cell.b": "bias_ih_l0", "cell.bias_h": "bias_hh_l0"}),
    "RNN": (lambda: wb.RNN(4, 3, wb.tanh), lambda: nn.RNN(4, 3, batch_first=True), (2, 5, 4), {"cell.Wi": "weight_ih_l0.T", "cell.Wh": "weight_hh_l0.T", "cell.bias": "bias_ih_l0+bias_hh_l0"}),
}


def first(y):
    return y[0] if isinstance(y, tuple) else y


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    make, make_theirs, shape, paths = LAYERS[name]
    layer, theirs = make(), make_theirs()
    state = theirs.state_dict()
    assert set(layer.parameters()) == set(paths), list(layer.parameters())
    for path, name in paths.items():
        if "+" in name:
            a, b = name.split("+")
            theirs.get_parameter(b).data.zero_()
            name = a
        x = state[name.split(" ")[-1].removesuffix(".T")]
        x = x.T if name.endswith(".T") else x.flip(2, 3) if name.startswith("flip") else x
        layer[path] = wb.array(x.tolist())
    compare(layer, lambda x: first(theirs(x)), [random(shape).astype("float32")], 1e-5)
    if not paths:
        return
    x = random(shape).astype("float32")
    theirs.zero_grad()
    _, gradients = wb.withgradient(lambda m, x: (m(x) ** 2).sum(), layer, x)
    (first(theirs(tensor(x))) ** 2).sum().backward()
    for path, name in paths.items():
        g = theirs.get_parameter(name.split("+")[0].split(" ")[-1].removesuffix(".T")).grad
        close(gradients[path], g.T if name.endswith(".T") else g.flip(2, 3) if name.startswith("flip") else g, 1e-5)


def test_embeddings():
    ours, theirs = wb.Embedding(7, 3), nn.Embedding(7, 3)
    ours["weight"] = wb.array(theirs.weight.tolist())
    words = integers((2, 4), 7)
    close(ours(words), theirs(tensor(words)), 1e-6)
    for reduction, mode in (("mean", "mean"), ("sum", "sum"), ("max", "max")):
        bag, their_bag = wb.EmbeddingBag(7, 3, reduction=reduction), nn.EmbeddingBag(7, 3, mode=mode)
        bag["weight"] = wb.array(their_bag.weight.tolist())
        close(bag(words), their_bag(tensor(words)), 1e-6)
    _, gradients = wb.withgradient(lambda m, w: (m(w) ** 2).sum(), ours, words)
    (theirs(tensor(words)) ** 2).sum().backward()
    close(gradients["weight"], theirs.weight.grad, 1e-6)


def test_batchnorm_in_training_and_after():
    ours, theirs = wb.BatchNorm(3), nn.BatchNorm2d(3)
    for _ in range(3):
        x = random((4, 3, 5, 6)).astype("float32")
        _, gradients = wb.withgradient(lambda m, x: (m(x) ** 3).sum(), ours, x)
        theirs.zero_grad()
        (theirs(tensor(x)) ** 3).sum().backward()
        close(gradients["γ"], theirs.weight.grad, 1e-4)
        close(gradients["β"], theirs.bias.grad, 1e-4)
    close(ours["μ"], theirs.running_mean, 1e-5)
    close(ours["σ²"], theirs.running_var, 1e-5)
    close(ours(x), theirs.eval()(tensor(x)), 1e-5)


def test_attention():
    ours, theirs = wb.MultiHeadAttention(8, heads=2, bias=True), nn.MultiheadAttention(8, 2, batch_first=True)
    weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    for name, w, b in zip(("q_proj", "k_proj", "v_proj"), weights, biases):
        ours[name + ".weight"], ours[name + ".bias"] = wb.array(w.T.tolist()), wb.array(b.tolist())
    ours["out_proj.weight"], ours["out_proj.bias"] = wb.array(theirs.out_proj.weight.T.tolist()), wb.array(theirs.out_proj.bias.tolist())
    x = random((2, 5, 8)).astype("float32")
    compare(ours, lambda x: theirs(x, x, x)[0], [x], 1e-5)
    q, k, v = (random((2, 5, 8)) for _ in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1)

    def plain(q, k, v):
        return ((q @ k.transpose(1, 2) / math.sqrt(8)).masked_fill(mask, -math.inf)).softmax(-1) @ v

    compare(lambda q, k, v: wb.attention(q, k, v, causal=True), plain, [q, k, v], 1e-6)


def test_grid_sample():
    x, grid = random((2, 3, 5, 6)), random((2, 4, 3, 2), -1.2, 1.2)
    for padding in ("zeros", "border", "reflection"):
        for corners in (True, False):
            compare(lambda x, g: wb.grid_sample(x, g, padding=padding, align_corners=corners),
                    lambda x, g: F.grid_sample(x, g, padding_mode=padding, align_corners=corners), [x, grid], 1e-8)


# ---- losses ----

def probabilities(shape):
    return wb.softmax(random(shape), 1)


LOSSES = {
    "mse": (wb.mse, F.mse_loss, lambda: [random((4, 3)), random((4, 3))]), "mae": (wb.mae, F.l1_loss, lambda: [random((4, 3)), random((4, 3))]),
    "huber_loss": (wb.huber_loss, F.huber_loss, lambda: [random((4, 3)), random((4, 3))]),
    "huber_loss of delta": (lambda p, y: wb.huber_loss(p, y, delta=0.5), lambda p, y: F.huber_loss(p, y, delta=0.5), lambda: [random((4, 3)), random((4, 3))]),
    "logitcrossentropy": (wb.logitcrossentropy, F.cross_entropy, lambda: [random((4, 3)), integers((4,), 3)]),
    "logitcrossentropy of probabilities": (wb.logitcrossentropy, F.cross_entropy, lambda: [random((4, 3)), probabilities((4, 3))]),
    "logitcrossentropy, smoothed": (lambda p, y: wb.logitcrossentropy(p, y, smoothing=0.1), lambda p, y: F.cross_entropy(p, y, label_smoothing=0.1), lambda: [random((4, 3)), integers((4,), 3)]),
    "logitcrossentropy, ignored": (lambda p, y: wb.logitcrossentropy(p, y, ignore=1), lambda p, y: F.cross_entropy(p, y, ignore_index=1), lambda: [random((9, 3)), integers((9,), 3)]),
    "logitcrossentropy, summed": (lambda p, y: wb.logitcrossentropy(p, y, agg="sum"), lambda p, y: F.cross_entropy(p, y, reduction="sum"), lambda: [random((4, 3)), integers((4,), 3)]),
    "crossentropy": (lambda p, y: wb.crossentropy(wb.softmax(p), y, eps=0), lambda p, y: F.nll_loss(p.log_softmax(-1), y), lambda: [random((4, 3)), integers((4,), 3)]),
    "binarycrossentropy": (lambda p, y: wb.binarycrossentropy(wb.sigmoid(p), y, eps=0), lambda p, y: F.binary_cross_entropy(torch.sigmoid(p), y), lambda: [random((4, 3)), random((4, 3), 0, 1)]),
    "logitbinarycrossentropy": (wb.logitbinarycrossentropy, F.binary_cross_entropy_with_logits, lambda: [random((4, 3)), random((4, 3), 0, 1)]),
    "kldivergence": (lambda p, y: wb.kldivergence(wb.softmax(p), y, eps=0), lambda p, y: F.kl_div(p.log_softmax(-1), y, reduction="batchmean"), lambda: [random((4, 3)), probabilities((4, 3))]),
    "poisson_loss": (lambda p, y: wb.poisson_loss(wb.exp(p), y), lambda p, y: F.poisson_nll_loss(p, y), lambda: [random((4, 3)), random((4, 3), 0, 3)]),
    "gaussian_nll_loss": (lambda p, y, v: wb.gaussian_nll_loss(p, y, variance=v), lambda p, y, v: F.gaussian_nll_loss(p, y, v), lambda: [random((4, 3)), random((4, 3)), random((4, 3), 0.5, 2)]),
    "triplet_loss": (lambda p, y, n: wb.triplet_loss(p, y, negative=n), F.triplet_margin_loss, lambda: [random((4, 3)), random((4, 3)), random((4, 3))]),
    "cosine_loss": (wb.cosine_loss, lambda p, y: (1 - F.cosine_similarity(p, y)).mean(), lambda: [random((4, 3)), random((4, 3))]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name):
    ours, theirs, arrays = LOSSES[name]
    compare(ours, theirs, arrays(), 1e-6)


def test_ctc():
    p, y = random((3, 8, 5)), integers((3, 2), 4) + 1  # torch's blank is 0
    y = y.at[:, 1].set(y[:, 0] % 4 + 1)
    lengths = torch.full((3,), 8), torch.full((3,), 2)
    compare(lambda p: wb.ctc_loss(p, y, blank=0, agg="sum"),
            lambda p: F.ctc_loss(p.log_softmax(-1).transpose(0, 1), tensor(y), *lengths, reduction="sum"), [p], 1e-6)


# ---- optimisers ----

# PyTorch's momentum is of gradients, ours of steps: the same for a constant learning rate.
RULES = {
    "Descent": (lambda: wb.Descent(0.1), lambda p: torch.optim.SGD(p, 0.1)), "Momentum": (lambda: wb.Momentum(0.1, 0.9), lambda p: torch.optim.SGD(p, 0.1, 0.9)),
    "Nesterov": (lambda: wb.Nesterov(0.05, 0.9), lambda p: torch.optim.SGD(p, 0.05, 0.9, nesterov=True)),
    "Adam": (lambda: wb.Adam(0.05), lambda p: torch.optim.Adam(p, 0.05)),
    "Adam with decay": (lambda: wb.RuleChain(wb.WeightDecay(0.1), wb.Adam(0.05)), lambda p: torch.optim.Adam(p, 0.05, weight_decay=0.1)),
    "AdamW": (lambda: wb.AdamW(0.05, lambda_=0.1), lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.1)),
    "RMSProp": (lambda: wb.RMSProp(0.01, 0.9, 1e-8), lambda p: torch.optim.RMSprop(p, 0.01, 0.9, 1e-8)),
    "RMSProp, centred": (lambda: wb.RMSProp(0.01, 0.9, 1e-8, centred=True), lambda p: torch.optim.RMSprop(p, 0.01, 0.9, 1e-8, centered=True)),
    "AdaGrad": (lambda: wb.AdaGrad(0.1, 1e-8), lambda p: torch.optim.Adagrad(p, 0.1, initial_accumulator_value=1e-8, eps=1e-8)),
    "AdaDelta": (lambda: wb.AdaDelta(0.9, 1e-6), lambda p: torch.optim.Adadelta(p, 1.0, 0.9, 1e-6)),
    "AdaMax": (lambda: wb.AdaMax(0.05), lambda p: torch.optim.Adamax(p, 0.05)), "RProp": (lambda: wb.RProp(0.01), lambda p: torch.optim.Rprop(p, 0.01)),
}


@pytest.mark.parametrize("name", RULES)
def test_rule(name):
    make, theirs = RULES[name]
    model, target = wb.Dense(3, 2, dtype="float64"), random((3, 2))
    weight, bias = tensor(model["weight"]).requires_grad_(True), tensor(model["bias"]).requires_grad_(True)
    optimiser, their_optimiser = wb.setup(make(), model), theirs([weight, bias])
    for _ in range(20):
        x = random((5, 3))
        wb.train_step(lambda m, x: ((m(x) - x @ target) ** 2).mean(), model, optimiser, x)
        their_optimiser.zero_grad()
        ((tensor(x) @ weight + bias - tensor(x) @ tensor(target)) ** 2).mean().backward()
        their_optimiser.step()
    close(model["weight"], weight, 1e-6)
    close(model["bias"], bias, 1e-6)


def test_weights_load_without_a_table(tmp_path):
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    torch.save(module.state_dict(), tmp_path / "linear.pt")
    model = wb.Chain(wb.Dense(3, 4, wb.relu), wb.Dense(4, 2))
    wb.load(tmp_path / "linear.pt", model, from_="torch")
    x = torch.randn(5, 3)
    close(model(wb.array(x.tolist())), module(x), 1e-6)
    with pytest.raises(wb.ShapeError, match=r"layer 1 of the model, Dense\(2 => 4\), needs weight \(4, 2\)"):
        wb.load(tmp_path / "linear.pt", wb.Dense(2, 4), from_="torch")
