"""Models that several threads call at once (python/src/share.c)."""
import gc
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import weber as wb


class Twice(wb.Module):
    def __init__(self):
        self.dense = wb.Dense(4, 3, wb.tanh)
        self.scale = wb.Parameter(wb.full((3,), 2.0))
        self.mean = wb.State(wb.ones(3))
        self.gain = 1.5

    def forward(self, x):
        return self.dense(x) * self.scale * self.gain + self.mean, wb.sum(x)


def models():
    return {"layers": wb.Chain(wb.Dense(4, 8, wb.relu), wb.BatchNorm(8), wb.Dense(8, 3), wb.softmax), "module": Twice(), "function": wb.Chain(wb.Dense(4, 3), lambda x: x * 2 + 1)}


@pytest.mark.parametrize("kind", ["layers", "module", "function"])
def test_it_computes_what_the_model_computes(kind):
    model = models()[kind]
    shared, x = wb.share(model, threads=2), wb.normal((5, 4))
    wanted = model(x)
    for given in (x, x.numpy(), x.tolist(), wb.array(x.numpy()) + 0.0):
        got = shared(given)
        for a, b in zip(*[y if isinstance(y, tuple) else (y,) for y in (got, wanted)]):
            assert wb.allclose(a, b) and type(a) is wb.Array
    assert wb.allclose(wb.sum(got[0] if kind == "module" else got) + 1, wb.sum(wanted[0] if kind == "module" else wanted) + 1)
    assert repr(shared) == "weber.SharedModel(%s, threads=2)" % model.type and shared.threads == 2


@pytest.mark.parametrize("kind", ["layers", "module", "function"])
def test_many_threads(kind):
    model = models()[kind]
    shared = wb.share(model, threads=3)
    inputs = [np.random.default_rng(i).normal(size=(5, 4)).astype("float32") for i in range(200)]
    first = lambda y: (y[0] if isinstance(y, tuple) else y).numpy()  # noqa: E731
    wanted = [first(model(x)) for x in inputs]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda i: first(shared(inputs[i] if i % 2 else wb.array(inputs[i]))), range(200)))
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(answers, wanted))


def test_threads_compute_at_once():
    together, most, lock, meet = [0], [0], threading.Lock(), threading.Barrier(2, timeout=60)

    def slow(x):
        with lock:
            together[0] += 1
            most[0] = max(most[0], together[0])
        meet.wait()  # the second call begins before the first one ends
        with lock:
            together[0] -= 1
        return x + 1

    shared = wb.share(wb.Chain(slow), threads=2)
    with ThreadPoolExecutor(4) as threads:
        assert [y.item() for y in threads.map(lambda i: shared([float(i)]).sum(), range(8))] == [i + 1.0 for i in range(8)]
    assert most[0] == 2


def test_it_serves_while_the_model_is_trained():
    model, x = wb.Chain(wb.Dense(4, 8, wb.relu), wb.Dense(8, 1)), wb.normal((6, 4))
    given, before = x.numpy(), model(x).numpy()
    shared, o, done, wrong = wb.share(model, threads=1), wb.setup(wb.Adam(0.1), model), threading.Event(), []

    def serve():
        while not done.is_set():
            if not np.array_equal(shared(given).numpy(), before):
                wrong.append(1)

    thread = threading.Thread(target=serve)
    thread.start()
    for _ in range(200):
        wb.train_step(lambda m, x: (m(x) ** 2).mean(), model, o, x)
    done.set()
    thread.join()
    assert not wrong and not np.allclose(model(x).numpy(), before)
    assert np.allclose(wb.share(model)(x).numpy(), model(x).numpy())


def test_errors():
    model = wb.Chain(wb.Dense(4, 3))
    shared = wb.share(model, threads=1)
    with pytest.raises(wb.ShapeError, match=r"\(2, 5\)"):
        shared(wb.ones((2, 5)))
    with pytest.raises(TypeError, match="argument 0 is None"):
        shared(None)
    with pytest.raises(TypeError, match="1 to"):
        shared()
    with pytest.raises(TypeError, match="without names"):
        shared(wb.ones((2, 4)), y=1)
    with pytest.raises(ValueError, match="threads must be"):
        wb.share(model, threads=0)
    with pytest.raises(TypeError):
        wb.share(3)
    with pytest.raises(RuntimeError, match="use the model itself"):
        wb.gradient(lambda x: shared(x).sum(), wb.ones((2, 4)))

    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        wb.share(wb.Chain(fails))(wb.ones(1))
    captured = wb.ones(4)
    with pytest.raises(wb.Error, match="Parameter or a State"):
        wb.share(wb.Chain(lambda x: x + captured))(wb.ones(4))
    assert shared(wb.ones((2, 4))).shape == (2, 3)


def test_nothing_stays():
    def round_():
        shared = wb.share(wb.Chain(Twice().dense, wb.Dense(3, 2)), threads=2)
        y = [shared(wb.ones((3, 4))) for _ in range(3)]
        ref = weakref.ref(shared)
        del shared
        assert ref() is None
        return sum(a.sum().item() for a in y)

    round_()
    gc.collect()
    before = wb.live()
    for _ in range(10):
        round_()
    gc.collect()
    wb.ones(1).item()
    assert wb.live() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_process_calls_it():
    shared = wb.share(wb.Chain(wb.Dense(4, 3)), threads=1)
    shared(wb.ones((1, 4)))
    child = os.fork()
    if child == 0:
        os._exit(0 if shared(np.ones((1, 4), "float32")).shape == (1, 3) else 1)
    assert os.waitpid(child, 0)[1] == 0
