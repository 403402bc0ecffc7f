"""Requests a second of a model that several threads call: the model itself, and weber.share.  threads.py [ROUNDS]

Medians over rounds in which the ways take turns, since other work on the machine slows all of them; two processes show what the
machine has to give meanwhile.
"""
import multiprocessing
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import weber as wb

SECONDS = 0.4


def models():
    wb.seed(1)
    yield "MLP 784-256-10, 1 image", wb.Chain(wb.Dense(784, 256, wb.relu), wb.Dense(256, 10), wb.softmax), (1, 784)
    yield "MLP 784-256-10, 64 images", wb.Chain(wb.Dense(784, 256, wb.relu), wb.Dense(256, 10), wb.softmax), (64, 784)
    yield "LeNet, 16 images", wb.Chain(wb.CrossCor((5, 5), 1, 6, wb.relu), wb.MaxPool((2, 2)), wb.CrossCor((5, 5), 6, 16, wb.relu), wb.MaxPool((2, 2)),
                                       wb.Flatten(), wb.Dense(256, 120, wb.relu), wb.Dense(120, 84, wb.relu), wb.Dense(84, 10)), (16, 1, 28, 28)


def requests(call, threads, x):
    end = time.perf_counter() + SECONDS

    def work(_):
        count = 0
        while time.perf_counter() < end:
            call(x).numpy()
            count += 1
        return count

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(work, range(threads))) / SECONDS


def of_processes(model, processes, x):
    counts = multiprocessing.SimpleQueue()

    def work():
        counts.put(requests(model, 1, x))

    started = [multiprocessing.get_context("fork").Process(target=work) for _ in range(processes)]
    for p in started:
        p.start()
    for p in started:
        p.join()
    return sum(counts.get() for _ in started)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print("%-28s %12s %12s %12s %12s %12s" % ("requests a second; threads", "model, 1", "model, 2", "shared, 1", "shared, 2", "2 processes"))
    for name, model, shape in models():
        x, shared = np.random.default_rng(1).normal(size=shape).astype("float32"), wb.share(model, threads=2)
        ways = [(requests, model, 1), (requests, model, 2), (requests, shared, 1), (requests, shared, 2), (of_processes, model, 2)]
        taken = [[count(call, threads, x) for count, call, threads in ways] for _ in range(rounds + 1)][1:]
        print("%-28s %12.0f %12.0f %12.0f %12.0f %12.0f" % (name, *(statistics.median(column) for column in zip(*taken))))


if __name__ == "__main__":
    main()
