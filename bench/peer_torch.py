#!/usr/bin/env python3
"""peer_torch.py CASE VARIANT THREADS [OPTION...]: one case of cases.h, by its name there, in torch, steered by lines on the standard input as
bench_cases --serve is. peer_torch.py start: one gradient, for the time of a whole process.

VARIANT: eager, fused (eager, with the optimiser in one kernel), compiled (forward and loss through torch.compile, the
optimiser in one kernel), graphs (the same, as CUDA graphs); fused with something else: deterministic (torch's mode), contiguous
(images not channels-last), flash, efficient, cudnn (that attention and no other). The weights, inputs and labels are those of
cases.c; "nudged N" is "check N" from weights that are a rounding apart: how far results may be from each other.

--device cuda; --tf32 lets products of f32 be rounded."""
import argparse
import contextlib
import math
import os
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

BENCH_INPUTS, WEIGHT, INPUT, LABEL, TRANSFORMER = 16, 0, 100, 200, 1000
# the cases' own sizes
SIZES = {"a": "16", "b": "64", "c": "256", "d": "64", "e": "4,256,4,128,96,16,f32", "f": "128,128,32,64", "g": "", "h": "1", "i": "32",
         "j": "32", "k": "512", "l": "softmax,1024,4096", "m": "1024,bf16", "n": "16", "o": "12,768,12,256,96,1,f32", "q": "1", "r": "16", "s": "16"}
OF_IMAGES = "dijnqrs"
FIXED = {"k": "Attention", "l": "Rows", "m": "Product", "g": "Elementwise", "h": "Inference", "j": "Inference", "q": "Inference"}  # nothing is learnt
TYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}
HALVES = torch.bfloat16, torch.float16
OPTIONS = argparse.Namespace(device="cpu", tf32=False, variant="eager")
ATTENTIONS = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "cudnn": "CUDNN_ATTENTION"}


def uniform(sequence, count):
    mask = 0xFFFFFFFF
    h = (torch.arange(count, dtype=torch.int64, device=OPTIONS.device) * 2654435761 + sequence * 40503 + 12345) & mask
    h ^= h >> 15
    h = (h * 2246822519) & mask
    h ^= h >> 13
    h = (h * 3266489917) & mask
    h ^= h >> 16
    return (h >> 8).to(torch.float32) * 2.0**-24


def values(sequence, low, high, *sizes):
    return (low + (high - low) * uniform(sequence, math.prod(sizes))).reshape(sizes)


def labels(sequence, count, classes=10):
    return (uniform(sequence, count) * classes).to(torch.int64)


def card():
    """What torch has for the kind of device: torch.cuda or torch.mps."""
    return getattr(torch, OPTIONS.device.partition(":")[0])


def card_memory():
    return torch.cuda.max_memory_allocated() if card() is torch.cuda else card().driver_allocated_memory()


def synchronize():
    if OPTIONS.device != "cpu":
        card().synchronize()


def filled(layer, number):
    """The layer with its weights set and its bias zero."""
    w = layer.weight
    fan = (w.shape[0] + w.shape[1]) * math.prod(w.shape[2:])
    with torch.no_grad():
        bound = math.sqrt(6 / fan)
        w.copy_(values(WEIGHT + number, -bound, bound, *w.shape))
        if layer.bias is not None:
            layer.bias.zero_()
    return layer


class Case:
    """A name: "b", "b:128", "c:256,bf16"."""

    def __init__(self, name):
        self.letter, _, text = name.partition(":")
        self.words = (text or SIZES[self.letter]).split(",")
        if self.words[-1] == "medium":  # products of f32
            self.words.pop()
            torch.set_float32_matmul_precision("medium")

    @property
    def numbers(self):
        return [int(word) for word in self.words if word.isdigit()]

    @property
    def compute(self):
        return TYPES.get(self.words[-1], torch.float32)


class Sizes:
    """The numbers of transformer.h's text."""

    def __init__(self, case):
        self.layers, self.width, self.heads, self.context, self.symbols, self.batch = case.numbers
        self.compute = case.compute
        self.stream = torch.float64 if self.compute == torch.float64 else torch.float32


def computing_in(kind):
    """Products of f32 in halves, where kind is one."""
    return torch.autocast(OPTIONS.device, dtype=kind) if kind in HALVES else contextlib.nullcontext()


def named_attention():
    """That of the variant and no other, or any."""
    if OPTIONS.variant not in ATTENTIONS:
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel(getattr(SDPBackend, ATTENTIONS[OPTIONS.variant]))


def attend(q, k, v):
    """Causal attention; torch 1.13 has no function for it."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(later, -math.inf)
    return scores.softmax(-1) @ v


class SelfAttention(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, qkv):  # (N, T, 3 C), of it q, k and v (N, heads, T, C / heads)
        n, t, width = qkv.shape
        q, k, v = qkv.view(n, t, 3, self.heads, width // 3 // self.heads).permute(2, 0, 3, 1, 4)
        return attend(q, k, v).transpose(1, 2).reshape(n, t, width // 3)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.qkv, self.attention = nn.LayerNorm(width), nn.Linear(width, 3 * width), SelfAttention(heads)
        self.out, self.norm2 = nn.Linear(width, width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.out(self.attention(self.qkv(self.norm1(x))))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Transformer(nn.Module):
    """transformer.h's."""

    def __init__(self, sizes):
        super().__init__()
        self.compute = sizes.compute
        self.token = nn.Parameter(torch.empty(sizes.symbols, sizes.width))
        self.place = nn.Parameter(torch.empty(sizes.context, sizes.width))
        self.blocks = nn.ModuleList(Block(sizes.width, sizes.heads) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.width)
        self.to(sizes.stream)
        self.fill()

    def fill(self):
        weights = [self.token, self.place, *(getattr(b, name).weight for b in self.blocks for name in ("qkv", "out", "up", "down"))]
        with torch.no_grad():
            for name, p in self.named_parameters():
                if name.endswith("bias"):
                    p.zero_()
            for number, w in enumerate(weights):
                w.copy_(((2 * uniform(TRANSFORMER + number, w.numel()) - 1) * 0.0346410162).reshape(w.shape))

    def forward(self, symbols):
        with computing_in(self.compute):
            x = F.embedding(symbols, self.token) + self.place
            for block in self.blocks:
                x = block(x)
            return F.linear(self.norm(x), self.token)


def loss_of_symbols(logits, y):
    return F.cross_entropy(logits.flatten(0, 1).to(torch.promote_types(logits.dtype, torch.float32)), y.flatten())


def vgg():
    def normed(number, into, out):
        return filled(nn.Conv2d(into, out, 3, padding=1, bias=False), number), nn.BatchNorm2d(out), nn.ReLU()
    return nn.Sequential(
        *normed(1, 3, 64), *normed(2, 64, 64), nn.MaxPool2d(2), *normed(3, 64, 128), *normed(4, 128, 128), nn.MaxPool2d(2),
        *normed(5, 128, 256), nn.AvgPool2d(8), nn.Flatten(), filled(nn.Linear(256, 10), 6))


class Residual(nn.Module):
    """Two convs and a way around them, the weights numbered from first on."""

    def __init__(self, first, into, out):
        super().__init__()
        stride = 1 if into == out else 2
        self.block = nn.Sequential(
            filled(nn.Conv2d(into, out, 3, stride, 1, bias=False), first), nn.BatchNorm2d(out), nn.ReLU(),
            filled(nn.Conv2d(out, out, 3, 1, 1, bias=False), first + 1), nn.BatchNorm2d(out))
        self.around = nn.Identity() if into == out else nn.Sequential(
            filled(nn.Conv2d(into, out, 1, stride, bias=False), first + 2), nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu(self.block(x) + self.around(x))


def resnet():
    stages, into, number = [], 64, 2
    for out in (64, 128, 256, 512):
        stages += [Residual(number, into, out), Residual(number + 3, out, out)]
        into, number = out, number + 6
    return nn.Sequential(
        filled(nn.Conv2d(3, 64, 7, 2, 3, bias=False), 1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *stages,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), filled(nn.Linear(512, 10), number))


class Bottleneck(nn.Module):
    """Convs 1x1, 3x3 and 1x1 and a way around them, the weights numbered from first on."""

    def __init__(self, first, stride, into, width):
        super().__init__()
        out = 4 * width
        self.block = nn.Sequential(
            filled(nn.Conv2d(into, width, 1, bias=False), first), nn.BatchNorm2d(width), nn.ReLU(),
            filled(nn.Conv2d(width, width, 3, stride, 1, bias=False), first + 1), nn.BatchNorm2d(width), nn.ReLU(),
            filled(nn.Conv2d(width, out, 1, bias=False), first + 2), nn.BatchNorm2d(out))
        self.around = nn.Identity() if into == out else nn.Sequential(
            filled(nn.Conv2d(into, out, 1, stride, bias=False), first + 3), nn.BatchNorm2d(out))

    def forward(self, x):
        return F.relu(self.block(x) + self.around(x))


def resnet50():
    blocks, into, number = [], 64, 2
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(count):
            blocks.append(Bottleneck(number, 2 if stage and block == 0 else 1, into, width))
            into, number = 4 * width, number + 4
    return nn.Sequential(
        filled(nn.Conv2d(3, 64, 7, 2, 3, bias=False), 1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1), *blocks,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), filled(nn.Linear(2048, 10), number))


class Inverted(nn.Module):
    """Wider inside than at its ends, the weights numbered from first on."""

    def __init__(self, first, widening, stride, into, out):
        super().__init__()
        wide = widening * into
        self.is_skip = stride == 1 and into == out
        self.block = nn.Sequential(
            *([] if widening == 1 else [filled(nn.Conv2d(into, wide, 1, bias=False), first), nn.BatchNorm2d(wide), nn.ReLU6()]),
            filled(nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), first + 1), nn.BatchNorm2d(wide), nn.ReLU6(),
            filled(nn.Conv2d(wide, out, 1, bias=False), first + 2), nn.BatchNorm2d(out))

    def forward(self, x):
        return x + self.block(x) if self.is_skip else self.block(x)


def mobilenet():
    blocks, into, number = [], 32, 2
    for widening, out, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                         (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(count):
            blocks.append(Inverted(number, widening, stride if block == 0 else 1, into, out))
            into, number = out, number + 3
    return nn.Sequential(
        filled(nn.Conv2d(3, 32, 3, 2, 1, bias=False), 1), nn.BatchNorm2d(32), nn.ReLU6(), *blocks,
        filled(nn.Conv2d(320, 1280, 1, bias=False), number), nn.BatchNorm2d(1280), nn.ReLU6(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), filled(nn.Linear(1280, 10), number + 1))


class Lstm(nn.Module):
    """With one bias, as Weber's has: torch's second one stays zero."""

    def __init__(self, inputs, cells, *_):
        super().__init__()
        self.lstm = nn.LSTM(inputs, cells, batch_first=True)
        bound = 1 / math.sqrt(cells)
        with torch.no_grad():
            for number, w in ((1, self.lstm.weight_ih_l0), (2, self.lstm.weight_hh_l0)):
                w.copy_(values(WEIGHT + number, -bound, bound, *w.shape))
            for bias in (self.lstm.bias_ih_l0, self.lstm.bias_hh_l0):
                bias.zero_()
        self.lstm.bias_hh_l0.requires_grad_(False)

    def forward(self, x):
        return self.lstm(x)[0]


def wide_mlp():
    return nn.Sequential(
        filled(nn.Linear(784, 1024), 1), nn.ReLU(), filled(nn.Linear(1024, 1024), 2), nn.ReLU(), filled(nn.Linear(1024, 10), 3))


def cnn():
    return nn.Sequential(
        filled(nn.Conv2d(1, 32, 3), 1), nn.ReLU(), filled(nn.Conv2d(32, 64, 3), 2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), filled(nn.Linear(9216, 128), 3), nn.ReLU(), filled(nn.Linear(128, 10), 4))


def mlp():
    return nn.Sequential(filled(nn.Linear(784, 256), 1), nn.ReLU(), filled(nn.Linear(256, 10), 2))


def curve_mlp():
    return nn.Sequential(filled(nn.Linear(1, 256), 1), nn.Tanh(), filled(nn.Linear(256, 1), 2))


def model_of(name):
    case = Case(name)
    if case.letter in "eo":
        return Transformer(Sizes(case))
    if case.letter == "f":
        return Lstm(*case.numbers)
    makers = {"a": curve_mlp, "b": mlp, "c": wide_mlp, "d": cnn, "h": mlp, "i": vgg, "j": vgg, "n": resnet, "q": resnet, "r": mobilenet, "s": resnet50}
    model = makers[case.letter]()
    return model.to(memory_format=layout()) if case.letter in OF_IMAGES else model


def layout():
    return torch.contiguous_format if OPTIONS.variant == "contiguous" else torch.channels_last


def input_of(name, k):
    case = Case(name)
    letter, batch = case.letter, case.numbers[0]
    if letter == "a":
        x = values(INPUT + k, -1.5, 1.5, batch, 1)
        return x, x * (2 - x * x)
    if letter in "eo":
        s = Sizes(case)
        return tuple(labels(first + k, s.batch * s.context, s.symbols).view(s.batch, s.context) for first in (INPUT, LABEL))
    if letter == "f":
        inputs, cells, length, batch = case.numbers
        return values(INPUT + k, -1, 1, batch, length, inputs), values(LABEL + k, -1, 1, batch, length, cells)
    if letter in OF_IMAGES:
        channels, side, low = {"d": (1, 28, 0), "i": (3, 32, -1), "j": (3, 32, -1), "s": (3, 224, -1)}.get(letter, (3, 64, -1))
        x = values(INPUT + k, low, 1, batch, channels, side, side)
        return x.to(memory_format=layout()), labels(LABEL + k, batch)
    return values(INPUT + k, 0, 1, batch, 784), labels(LABEL + k, batch)


def compiled(function, variant):
    if variant == "compiled":
        return torch.compile(function)
    return torch.compile(function, mode="reduce-overhead") if variant == "graphs" else function


class Training:
    def __init__(self, name, variant):
        case = Case(name)
        self.model = model_of(name).to(OPTIONS.device)
        self.first = {name: p.detach().clone() for name, p in self.model.state_dict().items()}
        self.settings = {"lr": 1e-3, **({"weight_decay": 0.01} if case.letter in "eo" else {}),
                         **({} if variant == "eager" else {"fused": True})}
        self.rule = torch.optim.AdamW if case.letter in "eo" else torch.optim.Adam
        loss = {"a": F.mse_loss, "e": loss_of_symbols, "f": F.mse_loss, "o": loss_of_symbols}.get(case.letter, F.cross_entropy)

        def forward(x, y):
            with computing_in(case.compute):
                return loss(self.model(x), y)

        self.forward = compiled(forward, variant)
        self.is_graph = variant == "graphs"
        self.inputs = [input_of(name, k) for k in range(BENCH_INPUTS)]
        self.reset()

    def reset(self):
        self.model.load_state_dict(self.first)
        self.adam = self.rule(self.model.parameters(), **self.settings)
        self.steps = 0

    def step(self):
        x, y = self.inputs[self.steps % BENCH_INPUTS]
        self.steps += 1
        self.adam.zero_grad()
        if self.is_graph:
            torch.compiler.cudagraph_mark_step_begin()
        self.loss = self.forward(x, y)
        self.loss.backward()
        self.adam.step()

    def nudge(self):
        """The first weights, each perhaps a rounding away."""
        self.reset()
        with torch.no_grad():
            for number, p in enumerate(self.model.parameters()):
                p.mul_(1 + torch.finfo(torch.float32).eps * (2 * uniform(number, p.numel()) - 1).reshape(p.shape))

    def result(self):
        arrays = [*self.model.parameters(), *(b for b in self.model.buffers() if b.is_floating_point())]
        return self.loss.item(), sum(p.detach().double().abs().sum().item() for p in arrays)


class Elementwise:
    def __init__(self, _, variant):
        self.inputs = [values(INPUT + k, -2, 2, 10_000_000).requires_grad_() for k in range(2)]
        self.forward = compiled(lambda x: ((torch.tanh(x) * x + torch.exp(-x * x)) ** 2).sum(), variant)
        self.reset()

    def reset(self):
        self.steps = 0

    def step(self):
        self.x = self.inputs[self.steps % 2]
        self.steps += 1
        self.x.grad = None
        self.loss = self.forward(self.x)
        self.loss.backward()

    def result(self):
        return self.loss.item(), self.x.grad.double().abs().sum().item()


class Forward:
    """A function of some arrays, by turns of two inputs; with its gradient, of its result times d."""

    learnt = ()
    shown = 0  # the array whose gradient is added up

    def reset(self):
        self.steps = 0

    def step(self):
        x, d = self.inputs[self.steps % 2]
        self.steps += 1
        if not self.gradient:
            with torch.inference_mode():
                self.y = self.forward(*x)
            return
        x = [part.detach().requires_grad_() for part in x]
        self.y = (self.forward(*x) * d).sum()
        self.gradients = torch.autograd.grad(self.y, (*x, *self.learnt))

    def result(self):
        of = self.gradients[self.shown] if self.gradient else self.y
        total = of.detach().double().abs().sum().item()
        return (self.y.item() if self.gradient else total), total


class Rows(Forward):
    def __init__(self, name, variant):
        kind, length, count, *self.gradient = Case(name).words
        sizes = int(count), int(length)
        self.inputs = [((values(INPUT + k, -2, 2, *sizes),), values(LABEL + k, -1, 1, *sizes)) for k in range(2)]
        affine = torch.ones(sizes[1], requires_grad=True), torch.zeros(sizes[1], requires_grad=True)
        self.learnt = affine if kind == "layernorm" else ()
        self.forward = compiled(
            (lambda x: F.layer_norm(x, sizes[1:], *affine)) if kind == "layernorm" else (lambda x: F.softmax(x, -1)), variant)
        self.reset()


class Attention(Forward):
    shown = 1

    def __init__(self, name, variant):
        case = Case(name)
        length, self.gradient = int(case.words[0]), "gradient" in case.words
        sizes = 16384 // length, length, 64
        self.inputs = [(values(INPUT + k, -2, 2, 3, 1, *sizes).to(case.compute), values(LABEL + k, -1, 1, 1, *sizes)) for k in range(2)]
        self.forward = compiled(attend, variant)
        self.reset()


class Product(Forward):
    gradient = ()

    def __init__(self, name, variant):
        case = Case(name)
        size = case.numbers[0]
        # what is (k, n) in Weber's memory order is (n, k) here
        self.inputs = [([values(first + k, -1, 1, size, size).to(case.compute) for first in (LABEL, INPUT)], None) for k in range(2)]
        self.forward = compiled(torch.matmul, variant)
        self.reset()


class Inference:
    def __init__(self, name, variant):
        self.model = compiled(model_of(name).to(OPTIONS.device).eval(), variant)
        self.inputs = [input_of(name, k)[0] for k in range(BENCH_INPUTS)]
        self.reset()

    def reset(self):
        self.steps = 0

    def step(self):
        with torch.inference_mode():
            self.y = self.model(self.inputs[self.steps % BENCH_INPUTS])
        self.steps += 1

    def result(self):
        total = self.y.double().abs().sum().item()
        return total, total


def open_case(name, variant):
    return globals()[FIXED.get(name[0], "Training")](name, variant)


def timed(work, steps):
    times = []
    before = time.perf_counter()
    for _ in range(steps):
        work.step()
        synchronize()
        now = time.perf_counter()
        times.append((now - before) * 1e6)
        before = now
    return sorted(times)[steps // 2], min(times), sum(times) / steps


def flow(work, steps):
    """Microseconds for each of the steps, of which many are on their way at a time."""
    before = time.perf_counter()
    for _ in range(steps):
        work.step()
    synchronize()
    return (time.perf_counter() - before) * 1e6 / steps


def peak_kb():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak  # macOS counts bytes


def version():
    words = ["torch " + torch.__version__]
    if OPTIONS.device.startswith("cuda"):
        words += ["CUDA " + str(torch.version.cuda), "cuDNN " + str(torch.backends.cudnn.version())]
    return " ".join(words)


def set_options(options):
    for name, value in vars(options).items():
        setattr(OPTIONS, name, value)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = OPTIONS.tf32
    torch.backends.cudnn.benchmark = OPTIONS.variant != "deterministic"
    if OPTIONS.variant == "deterministic":
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # before the first product
        torch.use_deterministic_algorithms(True)
    torch.set_num_threads(OPTIONS.threads)


def answer(work, command, steps):
    if command in ("check", "nudged"):
        if command == "nudged" and hasattr(work, "nudge"):
            work.nudge()
        for _ in range(steps):
            work.step()
        return "%.9g %.9g" % work.result()
    if command == "reset":
        work.reset()
        for _ in range(3):
            work.step()
        return "0"
    if command == "run":
        return "%.3f %.3f %.3f" % timed(work, steps)
    if command == "flow":
        return "%.3f" % flow(work, steps)
    return f"{peak_kb()} {0 if OPTIONS.device == 'cpu' else card_memory()}"  # memory


def serve(options):
    try:
        set_options(options)
        if options.variant in ("compiled", "graphs", *ATTENTIONS) and torch.__version__ < "2":
            raise RuntimeError("torch " + torch.__version__)
        with named_attention():
            work = open_case(options.case, options.variant)
            if options.variant != "eager":  # compiles, or finds that it cannot
                work.step()
                work.reset()
    except Exception as error:  # no device, no compiler, no such kernel: this variant cannot be had here
        print("absent", str(error).split("\n")[0], flush=True)
        return
    print(f"{version()}, {options.variant}", flush=True)
    with named_attention():
        for line in sys.stdin:
            command, _, steps = line.strip().partition(" ")
            print(answer(work, command, int(steps or 0)), flush=True)


def start():
    """As bench_start.c: one gradient of case a's network."""
    model, (x, y) = model_of("a"), input_of("a", 0)
    loss = F.mse_loss(model(x), y)
    loss.backward()
    print("%.9g %.9g" % (loss.item(), sum(p.grad.double().abs().sum().item() for p in model.parameters())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case")
    parser.add_argument("variant", nargs="?", default="eager")
    parser.add_argument("threads", nargs="?", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tf32", action="store_true")
    options = parser.parse_args()
    if options.case == "start":
        start()
    else:
        serve(options)


if __name__ == "__main__":
    main()
