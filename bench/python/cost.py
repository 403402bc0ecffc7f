"""What a call costs beside C: cost.py; cost.c is the same in C. The best of 400 short rounds, since other work only adds."""
import os
import sys
import time

import weber as wb

SUMS, STEPS, ROUNDS = 5_000, 20, 400


def best(f, n):
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        f(n)
        taken.append((time.perf_counter() - begin) / n * 1e6)
    return min(taken)


x, y = wb.ones(4), wb.ones(4)
wb.eval(x, y)
model = wb.Chain(wb.Dense(2, 3, wb.tanh), wb.BatchNorm(3), wb.Dense(3, 2))
optimiser, inputs, labels = wb.setup(wb.Adam(0.01), model), wb.uniform((64, 2)), (wb.uniform((64,)) > 0.5).astype("int32")
wb.eval(inputs, labels)


def sums(n, x=x, y=y):
    for _ in range(n):
        x + y


def steps(n):
    loss = lambda m, x, y: wb.logitcrossentropy(m(x), y)  # noqa: E731
    for _ in range(n):
        wb.train_step(loss, model, optimiser, inputs, labels)


def processor_time(program):
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", program], os.environ)
    used = os.wait4(child, 0)[2]
    return 1e3 * (used.ru_utime + used.ru_stime)


print("x + y: %.3f us (of Python's floats: %.3f)" % (best(sums, SUMS), best(lambda n: sums(n, 1.0, 2.0), SUMS)))
print("a step of case a: %.2f us" % best(steps, STEPS))
print("import weber: %.0f ms" % (min(processor_time("import weber") for _ in range(15)) - min(processor_time("pass") for _ in range(15))))
