#!/usr/bin/env python3
"""peer_rates.py [--device cuda] [--tf32]: the operations of bench_rates in torch, steered by the same lines on the standard input.

Sizes are Weber's, fastest first, so that (classes, rows) is torch's (rows, classes): the same memory. Everything is eager; of the two
layouts of a convolution the faster one counts."""
import argparse
import statistics
import sys
import time

import torch
from torch.nn import functional as F

import peer_torch
from peer_torch import INPUT, LABEL, OPTIONS, TYPES, card, labels, synchronize, values, version

LEAST_SECONDS = 0.004
ROUNDS = 15


class Way:
    """One way to do an operation: call() queues it and gives its results."""

    def __init__(self, call, results=None):
        self.call = call
        self.results = results or (lambda y: y)


def random(dtype, number, *sizes):
    """bench_rates' input number `number`; sizes slowest first."""
    return values(INPUT + number, -1, 1, *sizes).to(dtype)


def eager(function, *arrays):
    return [Way(lambda: function(*arrays))]


def layernorm(x, gain, bias):
    return F.layer_norm(x, x.shape[-1:], gain, bias, 1e-5)


def layernorm_gradient(dtype, features, rows):
    x, g, gain = random(dtype, 0, rows, features), random(dtype, 1, rows, features), random(dtype, 2, features)
    y, mean, rstd = torch.ops.aten.native_layer_norm(x, [features], gain, None, 1e-5)
    return [Way(lambda: torch.ops.aten.native_layer_norm_backward(
        g, x, [features], mean, rstd, gain, None, [True, False, False])[0])]


def crossentropy(dtype, classes, rows):
    y = labels(LABEL, rows, classes)

    def forward(x):
        x.grad = None
        loss = F.cross_entropy(x.to(torch.promote_types(x.dtype, torch.float32)), y)
        loss.backward()
        return loss

    x = random(dtype, 0, rows, classes).requires_grad_()
    return [Way(lambda: forward(x), lambda loss: (loss.detach(), x.grad))]


def adam(dtype, count):
    x, g, m, v = (random(dtype, i, count) for i in range(4))
    start = x.clone()
    x.grad = g
    settings = {"fused": True} if torch.__version__ >= "2" else {}
    optimiser = torch.optim.Adam([x.requires_grad_()], lr=1e-3, **settings)

    def results(_):
        """Of one step from the arrays that bench_rates has, whose rate and correction are those of a late step."""
        with torch.no_grad():
            m1, v1 = 0.9 * m + 0.1 * g, 0.999 * v * v + 0.001 * g * g
            return start - 1e-3 * m1 / (v1.sqrt() + 1e-8), m1, v1

    return [Way(optimiser.step, results)]


def chain(dtype, count):
    a, y = random(dtype, 0, 4, 4), random(dtype, 1, 4, 4)

    def products():
        z = y
        for _ in range(count):
            z = z @ a
        return z
    return [Way(products)]


def matmul(dtype, m, n, k, batch):
    a, b = random(dtype, 0, batch, k, m), random(dtype, 1, batch, n, k)
    a, b = (a[0], b[0]) if batch == 1 else (a, b)
    return [Way(lambda: b @ a)]


def convolution(kind):
    def ways(dtype, side, channels, filters, kernel, batch):
        pad = kernel // 2
        out = side + 2 * pad - kernel + 1
        x, w = random(dtype, 0, batch, channels, side, side), random(dtype, 1, filters, channels, kernel, kernel)
        g = random(dtype, 2, batch, filters, out, out)
        made = []
        for layout in (torch.contiguous_format, torch.channels_last):
            a, b, c = (t.contiguous(memory_format=layout) for t in (x, w, g))
            mask = [kind == "data", kind == "filter", False]
            if kind == "forward":
                call = lambda a=a, b=b: F.conv2d(a, b, padding=pad)
            else:
                call = lambda a=a, b=b, c=c, mask=mask: torch.ops.aten.convolution_backward(
                    c, a, b, None, [1, 1], [pad, pad], [1, 1], False, [0, 0], 1, mask)[0 if mask[0] else 1]
            made.append(Way(call))
        return made
    return ways


def copy(dtype, count):
    x, y = random(dtype, 0, count), torch.empty(count, dtype=dtype, device=OPTIONS.device)
    return [Way(lambda: y.copy_(x))]


def vectors(function, count_of_arrays):
    return lambda dtype, count: eager(function, *(random(dtype, i, count) for i in range(count_of_arrays)))


def matrices(function, count_of_arrays):
    return lambda dtype, row, rows: eager(function, *(random(dtype, i, rows, row) for i in range(count_of_arrays)))


KINDS = {
    "copy": copy,
    "tiny": lambda dtype, count: eager(lambda x: x + 1, random(dtype, 0, count)),
    "chain": chain,
    "map": vectors(lambda x: 2 * x + 1, 1),
    "fma": vectors(lambda x, y, z: x * y + z, 3),
    "gelu": vectors(lambda x: F.gelu(x, approximate="tanh"), 1),
    "sum": vectors(lambda x: x.sum(), 1),
    "columns": matrices(lambda x: x.sum(0), 1),
    "softmax": matrices(lambda x: x.softmax(-1), 1),
    "softmax_gradient": matrices(lambda x, y: x * (y - (x * y).sum(-1, keepdim=True)), 2),
    "layernorm": lambda dtype, features, rows: eager(
        layernorm, random(dtype, 0, rows, features), random(dtype, 2, features), random(dtype, 3, features)),
    "layernorm_gradient": layernorm_gradient,
    "crossentropy": crossentropy,
    "adam": adam,
    "matmul": matmul,
    "conv": convolution("forward"),
    "conv_data": convolution("data"),
    "conv_filter": convolution("filter"),
}


def flow(way, times):
    begin = time.perf_counter()
    for _ in range(times):
        way.call()
    synchronize()
    return (time.perf_counter() - begin) / times


def timed(way):
    for _ in range(3):
        trial = flow(way, 1)
    times = max(1, int(LEAST_SECONDS / max(trial, 1e-9)))
    return sorted(flow(way, times) * 1e6 for _ in range(ROUNDS))


def answer(line):
    command, kind, dtype, *numbers = line.split()
    if kind not in KINDS:
        raise ValueError("torch has no such thing")
    ways = KINDS[kind](TYPES[dtype], *map(int, numbers))
    if command == "warm":
        for way in ways:
            flow(way, 1)
        return "0"
    if command == "time":
        us = min((timed(way) for way in ways), key=statistics.median)
        return "%.3f %.3f %.3f" % (statistics.median(us), us[0], statistics.mean(us))
    results = ways[0].results(ways[0].call())
    return "%.9g" % sum(y.detach().double().abs().sum().item() for y in (results if isinstance(results, tuple) else (results,)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--tf32", action="store_true")
    peer_torch.set_options(parser.parse_args())
    torch.backends.cudnn.benchmark = True
    print(version(), flush=True)
    for line in sys.stdin:
        try:
            print(answer(line), flush=True)
        except Exception as error:  # out of memory, not implemented: the other lines go on
            print("failed", str(error).split("\n")[0], flush=True)
        if OPTIONS.device != "cpu":
            card().empty_cache()


if __name__ == "__main__":
    main()
