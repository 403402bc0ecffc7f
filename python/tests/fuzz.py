"""fuzz.py CALLS [SEED] [THREADS]: random calls of the whole module with arguments of every kind, most of them wrong.

Whatever is called with whatever, the interpreter goes on, and what was made is released: the last line tells what is alive. A crash
leaves the seed and the number of the call in the file FUZZ_LAST; FUZZ_SHOW=NUMBER prints that call.
"""
import faulthandler
import gc
import inspect
import os
import random
import resource
import signal
import sys
import tempfile
import threading

import numpy as np

import weber as wb

# What would change the process for all later calls, wait for others, run without end, or write outside the folder.
LEFT_OUT = {
    "barrier", "allreduce", "bcast", "allgather", "reduce_scatter", "set_threads", "memory_limit", "pending_limit", "train", "live", "plans", "use",
    "gpu_backend_set", "gpu_backend_reset", "preference_set", "preference_set_bool", "set_default_device", "reset_gpu_device", "show_devices", "auto_mode",
    "allow_scalar", "training", "test_mode_all", "register", "set_matmul_precision", "memory_reclaim", "get_distributed_backend", "distributed_initialize",
    "shuffleobs", "log_to", "synchronize", "device", "host_function",
}


class Odd:
    """An object whose methods misbehave."""

    def __len__(self):
        return -1 if random.random() < 0.5 else 3

    def __getitem__(self, i):
        raise KeyError(i)

    def __index__(self):
        raise ZeroDivisionError("index")

    def __float__(self):
        raise ZeroDivisionError("float")


class Deep(wb.Module):
    def __init__(self, n=2):
        self.dense, self.scale, self.count = wb.Dense(n, n), wb.Parameter(wb.ones(n)), wb.State(wb.zeros(()))

    def forward(self, x):
        self.count = self.count + 1
        return self.dense(x) * self.scale


def fails(*arrays):
    raise RuntimeError("on purpose")


def values(r):
    """The arguments that calls draw from."""
    model = wb.Chain(wb.Dense(4, 3, wb.tanh), wb.BatchNorm(3), wb.Dense(3, 2))
    optimiser = wb.setup(wb.Adam(), model)
    x, y = wb.normal((5, 4)), wb.array([0, 1, 0, 1, 1])
    loss = lambda m, *a: wb.logitcrossentropy(m(a[0]), a[1])  # noqa: E731
    gradients = wb.withgradient(loss, model, x, y)[1]
    plain = [None, True, False, 0, 1, 2, 3, -1, 7, 64, 2**31, 2**40, 2**63, -(2**63), 2**70, 0.0, 0.5, -1.5, 1e300, float("nan"), float("inf"), 1j,
             "", "a", "float32", "float64", "int64", "bool", "relu", "CPU", "CUDA:7", "mean", "sum", "layers.1.weight", "x" * 3000, "nul\0", "\udc80", "ij,jk->ik",
             "Chain(Dense(2, 3))", b"", b"bytes", [], (), {}, {"a": 1}, {"*.bias": wb.Descent()}, [1, 2], (2, 3), (0,), (2, -1), [[1.0, 2.0], [3.0]],
             [[1.0, 2.0], [3.0, 4.0]], (1,) * 9, [None], [[[]]], (2**31, 2**31), range(3), slice(0, 2), ..., int, float, object(), Odd(), np.float32(1), np.int64(3),
             np.zeros((2, 3), "f4"), np.zeros((2, 3), "c8"), np.zeros(0), np.zeros((3, 2), "f4").T, np.array(["a"]), wb.float16, wb.uint8, wb.bool]
    arrays = [wb.array(1.5), wb.array(3), wb.array(True), wb.zeros(0), wb.zeros((0, 3)), wb.normal(4), wb.normal((4, 4)), x, y, wb.normal((2, 3, 8, 8)), wb.ones((1,) * 8),
              wb.arange(5), wb.ones((2, 3), "uint8"), wb.ones((2, 3), "float16"), wb.ones((4, 4), "bfloat16"), wb.ones(3, "float64"), x > 0, wb.array([2**62, -1]),
              wb.full((2,), wb.nan), wb.broadcast_to(wb.ones(1), (1000, 1000)), wb.normal((3, 4)).T]
    objects = [model, model[0], wb.LSTM(4, 3), Deep(), wb.CrossCor((3, 3), 3, 4), wb.Dropout(0.5), wb.tree(a=x, b=model[0]), wb.Embedding(5, 4), optimiser, gradients,
               wb.Adam(), wb.RuleChain(wb.ClipNorm(1), wb.Descent()), wb.schedule_cosine(0.1, 0.01, 10), wb.schedule_of(lambda t: 0.1 / t), wb.DataLoader(x, y, batchsize=2),
               lambda *a: a[0], lambda *a: None, lambda *a: 1, fails, wb.relu, loss, lambda *a: (a[0], a[0]), wb.Array, wb.Module, wb, wb.ones(1).device,
               wb.save_bytes(model)]
    return plain, arrays, objects


def functions():
    found = [(n, f) for n, f in sorted(vars(wb).items()) if callable(f) and not n.startswith("__") and n not in LEFT_OUT and not isinstance(f, type)]
    found += [("Array." + n, getattr(wb.Array, n)) for n in sorted(dir(wb.Array)) if callable(getattr(wb.Array, n)) and n not in ("__init_subclass__", "__new__", "__class__", "__subclasshook__", "__setattr__", "__delattr__")]
    found += [("%s.%s" % (t.__name__, n), getattr(t, n)) for t in (wb.Layer, wb.Optimiser, wb.Gradients, wb.Schedule, wb.Rule, wb.Loader, wb.Device)
              for n in sorted(dir(t)) if callable(getattr(t, n)) and n not in ("__init_subclass__", "__new__", "__class__", "__subclasshook__", "__setattr__", "__delattr__")]
    return [(n, f, parameters_of(f)) for n, f in found]


# What parameters of these names usually get: the rest of the arguments is drawn from everything.
USUAL = {
    "axis": [0, 1, -1, -2, 2, (0, 1), None, 5], "dtype": ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool", None],
    "shape": [(2, 3), (6,), (), (0, 2), -1, (3, -1), 4], "axes": [(1, 0), (0,), (0, 1, 2), None], "k": [0, 1, -1, 3], "keepdims": [True, False],
    "activation": ["relu", wb.tanh, None], "device": ["CPU", None], "bias": [True, False], "in_": [1, 3, 4], "out": [2, 3, (2, 2)], "kernel": [(3, 3), (1, 1), (2,), 3],
    "stride": [1, 2, (2, 1)], "pad": [0, 1, (1, 1), (0, 1)], "times": [1, 2], "repetitions": [2, (1, 2)], "size": [4, (2, 3)], "channels": [2, 3], "groups": [1, 2],
    "heads": [1, 2], "path": ["layers.1.weight", "*", "*.bias", "a.bson", "missing"], "setting": ["eta", "beta1"], "low": [0.0, -1.0], "high": [1.0, 2.0], "n": [1, 2, 3],
    "subscripts": ["ij,jk->ik", "ij->ji", "ii", "i,i->"], "sections": [1, 2, [1, 2]], "indices": [[0, 1], 0, [[1]]], "index": [[0, 1], [[1]]], "labels": [[0, 1, 1]],
    "classes": [2, 3], "agg": ["mean", "sum", "none"], "mode": ["nearest", "bilinear"], "eta": [0.1, 1e-3], "eps": [1e-5, 0.0], "steps": [1, 3], "lo": [0, 1], "hi": [0, 2],
}
OBJECTS = {"model": "Layer", "layer": "Layer", "cell": "Layer", "forward": "Layer", "backward": "Layer", "*layers": "Layer", "optimiser": "Optimiser", "gradients": "Gradients",
           "schedule": "Schedule", "rule": "Rule", "data": "Loader", "loader": "Loader"}
FUNCTIONS = {"f", "function", "loss", "value", "pullback"}


def parameters_of(f):
    """(name, whether it must be given, whether it has no place), as far as is known."""
    try:
        found = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return [("x", True, False), ("x2", False, False)]
    return [("*" * (p.kind == p.VAR_POSITIONAL) + p.name, p.default is p.empty and p.kind != p.VAR_POSITIONAL, p.kind == p.KEYWORD_ONLY)
            for p in found if p.kind != p.VAR_KEYWORD]


def drawn(r, pools, name=None, odd=0.3):
    """An argument for a parameter of this name: of its kind, or with the probability `odd` anything."""
    plain, arrays, objects = pools
    if name is not None and r.random() > odd:
        name = name if name in USUAL or name in OBJECTS else name.strip("_*")
        if name in USUAL:
            return r.choice(USUAL[name])
        if name in OBJECTS or name == "self":
            return r.choice([o for o in objects if type(o).__name__ == OBJECTS[name] or (OBJECTS[name] == "Layer" and isinstance(o, wb.Layer))])
        if name in FUNCTIONS:
            return r.choice([o for o in objects if callable(o)])
        return r.choice(arrays)
    kind = r.random()
    if kind < 0.06:
        return [drawn(r, pools) for _ in range(r.randrange(4))]
    if kind < 0.1:
        return tuple(drawn(r, pools) for _ in range(r.randrange(4)))
    return r.choice(plain if kind < 0.5 else arrays if kind < 0.75 else objects)


def arguments(r, pools, name, parameters):
    args, named = [], {}
    odd = r.choice((0.0, 0.1, 0.3, 1.0))
    for i, (parameter, must, has_no_place) in enumerate(parameters):
        if parameter == "self":
            kind = name.split(".")[0]
            of_kind = [o for o in pools[1] + pools[2] if type(o).__name__ == kind]
            args.append(r.choice(of_kind) if of_kind and r.random() > 0.05 else drawn(r, pools))
        elif parameter.startswith("*"):
            args += [drawn(r, pools, parameter, odd) for _ in range(r.randrange(4))]
        elif must and r.random() > 0.01:
            args.append(drawn(r, pools, parameter, odd))
        elif r.random() < 0.25:
            named[parameter] = drawn(r, pools, parameter, odd)
    if r.random() < 0.02:
        args.append(drawn(r, pools))
    if r.random() < 0.02:
        named["nonsense"] = 1
    return args, named


def used(result):
    """Computes what is pending, and asks it this and that."""
    if isinstance(result, wb.Array) and result.size < 10**6:
        result.tolist()
    elif isinstance(result, (tuple, list)):
        for part in result[:4]:
            used(part)
    elif isinstance(result, (wb.Layer, wb.Optimiser, wb.Rule)):
        repr(result)


def run(calls, seed, show, last):
    r = random.Random(seed)
    table, pools = functions(), values(r)
    outcomes = {}
    in_main = threading.current_thread() is threading.main_thread()
    for i in range(calls):
        name, f, parameters = r.choice(table)
        args, named = arguments(r, pools, name, parameters)
        if last:
            os.pwrite(last, b"%d %d %-40s\n" % (seed, i, name.encode()[:40]), 0)
        if show and i == int(show):
            print(name, args, named, flush=True)
        try:
            if in_main:
                signal.setitimer(signal.ITIMER_REAL, 5)
            used(f(*args, **named))
            outcome = "fine"
        except Exception as e:  # noqa: BLE001
            outcome = type(e).__name__
            if outcome == "SystemError":
                raise
        finally:
            if in_main:
                signal.setitimer(signal.ITIMER_REAL, 0)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        args = named = None
        if i % 2000 == 1999:
            pools = None
            pools = values(r)
    return outcomes


def too_long(number, frame):
    raise TimeoutError


def main():
    calls, seed, threads = (int(a) for a in (sys.argv[1:] + ["1", "1"][len(sys.argv) - 2:])[:3])
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    os.chdir(tempfile.mkdtemp())
    os.environ.update(HOME=os.getcwd(), XDG_CONFIG_HOME=os.getcwd(), XDG_CACHE_HOME=os.getcwd())
    signal.signal(signal.SIGALRM, too_long)
    last = os.open(os.environ.get("FUZZ_LAST", "fuzz.last"), os.O_CREAT | os.O_RDWR)
    run(1, seed, None, 0)
    gc.collect()
    before = wb.live()
    if threads > 1:
        workers = [threading.Thread(target=run, args=(calls // threads, seed + k, None, 0)) for k in range(threads)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        outcomes = {}
    else:
        outcomes = run(calls, seed, os.environ.get("FUZZ_SHOW"), last)
    gc.collect()
    wb.eval(wb.ones(1))
    print("%d calls: %s" % (calls, ", ".join("%s %d" % o for o in sorted(outcomes.items(), key=lambda o: -o[1]))))
    print("alive before and after:", before, wb.live(), "%d MB at most" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10))


if __name__ == "__main__":
    main()
