#!/usr/bin/env python3
"""peer_torch.py CASE VARIANT THREADS: one case of cases.h in torch, steered by lines on the standard input as
bench_cases --serve is. peer_torch.py start: one gradient, for the time of a whole process.

VARIANT: eager, fused (eager, with the optimiser in one kernel), compiled (forward and loss through torch.compile, the
optimiser in one kernel). The weights, inputs and labels are those of cases.c."""
import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

BENCH_INPUTS, WEIGHT, INPUT, LABEL = 16, 0, 100, 200


def uniform(sequence, count):
    mask = 0xFFFFFFFF
    h = (torch.arange(count, dtype=torch.int64) * 2654435761 + sequence * 40503 + 12345) & mask
    h ^= h >> 15
    h = (h * 2246822519) & mask
    h ^= h >> 13
    h = (h * 3266489917) & mask
    h ^= h >> 16
    return (h >> 8).to(torch.float32) * 2.0**-24


def values(sequence, low, high, *sizes):
    return (low + (high - low) * uniform(sequence, math.prod(sizes))).reshape(sizes)


def labels(sequence, count):
    return (uniform(sequence, count) * 10).to(torch.int64)


def filled(layer, number):
    """The layer with its weights set and its bias zero."""
    w = layer.weight
    fan = (w.shape[0] + w.shape[1]) * math.prod(w.shape[2:])
    with torch.no_grad():
        bound = math.sqrt(6 / fan)
        w.copy_(values(WEIGHT + number, -bound, bound, *w.shape))
        layer.bias.zero_()
    return layer


def model_of(case):
    if case == "a":
        return nn.Sequential(filled(nn.Linear(1, 256), 1), nn.Tanh(), filled(nn.Linear(256, 1), 2))
    if case in "bh":
        return nn.Sequential(filled(nn.Linear(784, 256), 1), nn.ReLU(), filled(nn.Linear(256, 10), 2))
    if case == "c":
        return nn.Sequential(
            filled(nn.Linear(784, 1024), 1), nn.ReLU(), filled(nn.Linear(1024, 1024), 2), nn.ReLU(),
            filled(nn.Linear(1024, 10), 3))
    return nn.Sequential(
        filled(nn.Conv2d(1, 32, 3), 1), nn.ReLU(), filled(nn.Conv2d(32, 64, 3), 2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), filled(nn.Linear(9216, 128), 3), nn.ReLU(), filled(nn.Linear(128, 10), 4))


def input_of(case, k):
    if case == "a":
        x = values(INPUT + k, -1.5, 1.5, 16, 1)
        return x, x * (2 - x * x)
    if case == "d":
        x = values(INPUT + k, 0, 1, 64, 1, 28, 28)
        return x.to(memory_format=torch.channels_last), labels(LABEL + k, 64)
    batch = {"b": 64, "c": 256, "h": 1}[case]
    return values(INPUT + k, 0, 1, batch, 784), labels(LABEL + k, batch)


class Training:
    def __init__(self, case, variant):
        self.model = model_of(case)
        if case == "d":
            self.model = self.model.to(memory_format=torch.channels_last)
        self.first = [p.detach().clone() for p in self.model.parameters()]
        self.settings = {"lr": 1e-3, **({} if variant == "eager" else {"fused": True})}
        loss = F.mse_loss if case == "a" else F.cross_entropy
        self.forward = lambda x, y: loss(self.model(x), y)
        if variant == "compiled":
            self.forward = torch.compile(self.forward)
        self.inputs = [input_of(case, k) for k in range(BENCH_INPUTS)]
        self.reset()

    def reset(self):
        with torch.no_grad():
            for p, first in zip(self.model.parameters(), self.first):
                p.copy_(first)
        self.adam = torch.optim.Adam(self.model.parameters(), **self.settings)
        self.steps = 0

    def step(self):
        x, y = self.inputs[self.steps % BENCH_INPUTS]
        self.steps += 1
        self.adam.zero_grad()
        self.loss = self.forward(x, y)
        self.loss.backward()
        self.adam.step()

    def result(self):
        return self.loss.item(), sum(p.detach().double().abs().sum().item() for p in self.model.parameters())


class Elementwise:
    def __init__(self, variant):
        self.inputs = [values(INPUT + k, -2, 2, 10_000_000).requires_grad_() for k in range(2)]
        self.forward = lambda x: ((torch.tanh(x) * x + torch.exp(-x * x)) ** 2).sum()
        if variant == "compiled":
            self.forward = torch.compile(self.forward)
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


class Inference:
    def __init__(self, variant):
        self.model = model_of("h")
        if variant == "compiled":
            self.model = torch.compile(self.model)
        self.inputs = [input_of("h", k)[0] for k in range(BENCH_INPUTS)]
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


def open_case(case, variant):
    if case == "g":
        return Elementwise(variant)
    if case == "h":
        return Inference(variant)
    return Training(case, variant)


def timed(work, steps):
    times = []
    before = time.perf_counter()
    for _ in range(steps):
        work.step()
        now = time.perf_counter()
        times.append((now - before) * 1e6)
        before = now
    return sorted(times)[steps // 2], min(times), sum(times) / steps


def peak_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def serve(case, variant, threads):
    torch.set_num_threads(threads)
    try:
        if variant != "eager" and torch.__version__ < "2":
            raise RuntimeError("torch " + torch.__version__)
        work = open_case(case, variant)
        if variant == "compiled":
            work.step()
            work.reset()
    except Exception as error:  # no compiler, no fused kernel: this variant cannot be had here
        print("absent", str(error).split("\n")[0], flush=True)
        return
    print(f"torch {torch.__version__}, {variant}", flush=True)
    for line in sys.stdin:
        command, _, steps = line.strip().partition(" ")
        if command == "check":
            for _ in range(int(steps)):
                work.step()
            print("%.9g %.9g" % work.result(), flush=True)
        elif command == "reset":
            work.reset()
            for _ in range(3):
                work.step()
            print(0, flush=True)
        elif command == "run":
            print("%.3f %.3f %.3f" % timed(work, int(steps)), flush=True)
        elif command == "memory":
            print(peak_kb(), flush=True)


def start():
    """As bench_start.c: one gradient of case a's network."""
    model, (x, y) = model_of("a"), input_of("a", 0)
    loss = F.mse_loss(model(x), y)
    loss.backward()
    print("%.9g %.9g" % (loss.item(), sum(p.grad.double().abs().sum().item() for p in model.parameters())))


if __name__ == "__main__":
    if sys.argv[1] == "start":
        start()
    else:
        serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
