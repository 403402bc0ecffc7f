"""What a call costs beside C: cost.py; cost.c is the same in C. The best of 60 short rounds, since other work only adds."""
import subprocess
import sys
import time

import weber as wb

SUMS, STEPS, ROUNDS = 20_000, 200, 60


def best(f, n):
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        f(n)
        taken.append((time.perf_counter() - begin) / n * 1e6)
    return min(taken)


def sums(n):
    x, y = wb.ones(4), wb.ones(4)
    wb.eval(x, y)
    for _ in range(n):
        x + y


def empty(n):
    x, y = 1.0, 2.0
    for _ in range(n):
        x + y


def steps(n):
    wb.seed(1)
    model = wb.Chain(wb.Dense(2, 3, wb.tanh), wb.BatchNorm(3), wb.Dense(3, 2))
    o, x, y = wb.setup(wb.Adam(0.01), model), wb.uniform((64, 2)), (wb.uniform((64,)) > 0.5).astype("int32")
    loss = lambda m, x, y: wb.logitcrossentropy(m(x), y)  # noqa: E731
    for _ in range(n):
        wb.train_step(loss, model, o, x, y)


def imports(*more):
    begin = time.perf_counter()
    subprocess.run([sys.executable, *more, "-c", "import weber"], check=True)
    first = time.perf_counter()
    subprocess.run([sys.executable, *more, "-c", "pass"], check=True)
    return 1e3 * (2 * first - begin - time.perf_counter())


print("x + y: %.3f us (of Python's floats: %.3f)" % (best(sums, SUMS), best(empty, SUMS)))
print("a step of case a: %.2f us" % best(steps, STEPS))
print("import weber: %.0f ms" % min(imports() for _ in range(15)))
