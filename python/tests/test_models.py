"""Layers, training, loaders, files."""
import copy
import gc
import os
import pickle
import threading
import weakref

import numpy as np
import pytest

import weber as wb


def loss(m, x, y):
    return wb.logitcrossentropy(m(x), y)


def data(n=64):
    x = wb.normal((n, 2))
    return x, (x[:, 0] > x[:, 1]).astype("int32")


def small():
    return wb.Chain(wb.Dense(2, 16, wb.relu), wb.BatchNorm(16), wb.Dense(16, 2))


@wb.register
class Block(wb.Module):
    def __init__(self, n, gain=2.0):
        self.dense = wb.Dense(n, n)
        self.scale = wb.Parameter(wb.ones(n))
        self.calls = wb.State(wb.zeros(()))
        self.gain = gain

    def forward(self, x):
        self.calls = self.calls + 1
        return self.scale * self.dense(x) * self.gain


def test_shapes_are_those_of_pytorch():
    x = wb.normal((4, 3, 8, 6))
    assert wb.Conv((3, 5), 3, 7, pad=(1, 2))(x).shape == (4, 7, 8, 6)
    assert wb.Conv((3, 3), 3, 7, pad=1, stride=2)(x).shape == (4, 7, 4, 3)
    assert wb.Conv((3, 3), 3, 7, pad=(0, 1))(x).shape == (4, 7, 6, 6)
    assert wb.MaxPool((2, 3))(x).shape == (4, 3, 4, 2)
    assert wb.ConvTranspose((2, 2), 3, 5, stride=2)(x).shape == (4, 5, 16, 12)
    assert wb.LayerNorm(6)(x).shape == x.shape and wb.LayerNorm((8, 6))(x).shape == x.shape
    assert wb.LSTM(5, 7)(wb.normal((2, 9, 5))).shape == (2, 9, 7)
    assert wb.MultiHeadAttention(8, heads=2)(wb.normal((2, 9, 8))).shape == (2, 9, 8)
    assert wb.Embedding(10, 4)(wb.array([[1, 2, 3]])).shape == (1, 3, 4)
    assert wb.Dense(3, 4)["weight"].shape == (3, 4)
    assert wb.Upsample(scale=(2, 3))(x).shape == (4, 3, 16, 18)
    assert wb.outputsize(small(), (5, 2)) == (5, 2)
    assert wb.Chain(wb.Flatten(), wb.Dense(144, 2))(x).shape == (4, 2)


def test_training():
    x, y = data(256)
    m = small()
    o = wb.setup(wb.AdamW(1e-2), m)
    first = wb.train_step(loss, m, o, x, y).item()
    for _ in range(60):
        last = wb.train_step(loss, m, o, x, y)
    assert last.item() < first / 2
    value, g = wb.withgradient(loss, m, x, y)
    before = m["layers.1.weight"]
    wb.update(o, m, g)
    assert not wb.allclose(before, m["layers.1.weight"])
    assert wb.step_count(o) == 62
    wb.adjust(o, 0.0)
    with pytest.raises(TypeError):
        wb.train_step(loss, m, m, x, y)
    with pytest.raises(TypeError, match="setup"):
        wb.train_step(loss, m, wb.Adam(), x, y)
    with pytest.raises(TypeError):
        wb.setup(m, m)
    with pytest.raises(wb.Error, match="eta"):
        wb.adjust_named(o, "lr", 1)


def test_micro_batches_are_the_same():
    x, y = data(64)
    a = wb.Chain(wb.Dense(2, 4, wb.tanh), wb.Dense(4, 2))
    b = a.clone()
    oa, ob = wb.setup(wb.Descent(0.1), a), wb.setup(wb.Descent(0.1), b, micro_batches=4)
    wb.train_step(loss, a, oa, x, y)
    wb.train_step(loss, b, ob, x, y)
    assert wb.allclose(a["layers.1.weight"], b["layers.1.weight"], 1e-4, 1e-5)


def test_loop():
    x, y = data(200)
    loader = wb.DataLoader(x, y, batchsize=50, shuffle=True, seed=1)
    m = small()
    o = wb.setup(wb.Adam(1e-2), m)
    seen, steps = [], []
    wb.train(loss, m, loader, o, epochs=5, validation=loader, on_epoch=lambda e: seen.append((e.epoch, e.validation["accuracy"])),
             on_step=lambda e: steps.append(e.step), schedules={"eta": wb.schedule_cosine(first=1e-2, last=0, period=20)})
    assert [e for e, _ in seen] == [1, 2, 3, 4, 5] and len(steps) == 20
    result = wb.evaluate(m, loader, loss)
    assert result["accuracy"] > 0.7 and result["confusion"].shape == (2, 2) and result["mse"] is None
    wb.train(loss, m, loader, o, epochs=5, on_step=lambda e: False)
    with pytest.raises(ZeroDivisionError):
        wb.train(loss, m, loader, o, on_step=lambda e: 1 / 0)
    with pytest.raises(KeyboardInterrupt):
        wb.train(lambda m, x, y: exec("raise KeyboardInterrupt"), m, loader, o)
    wb.train(loss, m, loader, o)


def test_modules():
    m = wb.Chain(Block(3), wb.relu, lambda x: x * 2)
    x = wb.normal((4, 3))
    y = m(x)
    assert set(m.parameters()) == {"layers.1.dense.weight", "layers.1.dense.bias", "layers.1.scale"}
    assert m[0].gain == 2.0 and m[0].calls.item() == 1 and isinstance(m[0], Block)
    c = copy.deepcopy(m)
    c[0].gain = 0.0
    assert (c(x) == 0).all() and not (m(x) == 0).all()
    p = pickle.loads(pickle.dumps(m[0]))
    assert p.gain == 2.0 and wb.allclose(p(x), m[0](x)) and type(p) is Block
    o = wb.setup(wb.Adam(), m)
    wb.train_step(lambda m, x: m(x).sum(), m, o, x)
    assert m[0].calls.item() == 4
    with pytest.raises(AttributeError, match="nothing"):
        m[0].nothing
    with pytest.raises(TypeError, match="is a layer"):
        m[0].dense = 3
    m[0].scale = wb.zeros(3)
    assert (m[0](x) == 0).all()
    with pytest.raises(wb.Error):
        m[0].scale = wb.zeros(4)
    with pytest.raises(TypeError, match="Module"):
        wb.Layer()
    with pytest.raises(NotImplementedError):
        class Nothing(wb.Module):
            pass
        Nothing()(x)
    assert len(m) == 3 and m[-1](x).shape == (4, 3)
    with pytest.raises(IndexError):
        m[3]


@pytest.mark.parametrize("format", ["bson", "safetensors", "npz"])
def test_files(tmp_path, format):
    path = tmp_path / ("m." + format)
    x = wb.normal((4, 3))
    m = wb.Chain(Block(3, gain=0.5), wb.Dense(3, 2))
    wb.save(path, m)
    again = wb.load_model(path)
    assert wb.allclose(again(x), m(x)) and again[0].gain == 0.5
    other = wb.Chain(Block(3, gain=0.5), wb.Dense(3, 2))
    wb.load(path, other)
    assert wb.allclose(other(x), m(x))
    o = wb.setup(wb.Adam(), m)
    wb.train_step(lambda m, x: m(x).sum(), m, o, x)
    if format != "safetensors":  # which holds arrays alone
        wb.save(path, m, adam=o, epoch=3, note="hello", random=wb.random_state)
        wb.load(path, other, adam=wb.setup(wb.Adam(), other))
        assert wb.allclose(other(x), m(x))
    data = wb.save_bytes(m, format=format)
    assert wb.allclose(wb.load_bytes(data, format=format)(x), m(x))
    wb.checkpoint_save(str(tmp_path) + "/run/", 7, model=m, adam=o)
    assert wb.checkpoint_load(str(tmp_path) + "/run/", model=other, adam=wb.setup(wb.Adam(), other)) == 7
    assert wb.checkpoint_load(str(tmp_path) + "/none/", model=other) == -1
    with pytest.raises(wb.FileError):
        wb.load_model(tmp_path / "missing.bson")
    (tmp_path / ("bad." + format)).write_bytes(b"not a model at all")
    with pytest.raises(wb.Error):
        wb.load_model(tmp_path / ("bad." + format))
    with pytest.raises(wb.Error, match="weight"):
        wb.load(path, wb.Chain(Block(2), wb.Dense(2, 2)))


def test_loading_imports_nothing(tmp_path):
    class Local(wb.Module):
        def __init__(self):
            self.d = wb.Dense(2, 2)

        def forward(self, x):
            return self.d(x)

    wb.save(tmp_path / "m.bson", Local())
    with pytest.raises(wb.UnsupportedError, match="Local"):
        wb.load_model(tmp_path / "m.bson")


def test_loaders():
    a = np.arange(20, dtype=np.float32).reshape(10, 2)
    batches = list(wb.DataLoader(a, np.arange(10), batchsize=4))
    assert [x.shape for x, _ in batches] == [(4, 2), (4, 2), (2, 2)] and batches[2][1].tolist() == [8, 9]
    assert len(wb.DataLoader(a, batchsize=4, drop_partial=True)) == 2
    (x,) = next(iter(wb.DataLoader(a, batchsize=10, map=lambda x: x * 2)))
    assert np.array_equal(np.asarray(x), a * 2)

    class Words:
        def __len__(self):
            return 5

        def __getitem__(self, i):
            return wb.full((i + 1,), float(i)), i

    def padded(xs, ys):
        return wb.batchseq([x.reshape(-1) for x in xs], 0.0) if False else wb.stack([wb.pad(x, 0, 0, 5 - x.shape[0]) for x in xs]), wb.stack([wb.array(y) for y in ys])

    (x, y), = list(wb.DataLoader(Words(), batchsize=5, collate=padded))
    assert x.shape == (5, 5) and y.tolist() == [0, 1, 2, 3, 4]

    def write(place, seed, x, y):
        np.frombuffer(x, np.float32)[:] = place
        np.frombuffer(y, np.int32)[:] = place * 2

    got = list(wb.DataLoader(wb.zeros((1, 3)), wb.zeros((1,), "int32"), getobs=write, numobs=9, threads=3, batchsize=9))
    assert got[0][1].tolist() == [2 * i for i in range(9)] and got[0][0][4].tolist() == [4.0] * 3

    def fails(place, seed, x, y):
        raise ValueError("bad place %d" % place)

    with pytest.raises(wb.Error, match="bad place"):
        list(wb.DataLoader(wb.zeros((1, 3)), wb.zeros((1,), "int32"), getobs=fails, numobs=9, threads=2))
    with pytest.raises(ZeroDivisionError):
        list(wb.DataLoader(a, map=lambda x: 1 / 0))
    loader = wb.DataLoader(a, batchsize=3)
    for (x,) in loader:
        break
    assert len(list(loader)) == 4
    train, test = wb.splitobs(wb.array(a), wb.arange(10), at=[0.7])
    assert train[0].shape == (7, 2) and test[1].tolist() == [7, 8, 9]


def test_many_steps_need_no_more_memory():
    x, y = data(32)
    m = small()
    o = wb.setup(wb.Adam(), m)

    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4

    def step(i):
        wb.train_step(loss, m, o, x, y)
        value, g = wb.withgradient(loss, m, x, y)
        g["layers.1.bias"] = g["layers.1.bias"] * 0.5
        wb.update(o, m, g)
        m(x).sum()
        if i % 50 == 0:
            (m(x) + 1).mean().item()

    for i in range(300):
        step(i)
    before, live = resident(), wb.live()
    for i in range(2000):
        step(i)
    assert resident() - before < 4000, "kB"
    assert abs(wb.live()["arrays"] - live["arrays"]) < 200


def test_recipes_are_bounded():
    x = wb.zeros(8)
    for _ in range(20000):
        x = x + 1.0
    assert wb.live()["arrays"] < 5000
    assert x[0].item() == 20000


def test_threads():
    x, _ = data(32)
    m = small()
    right = np.asarray(m(x))
    wrong = []

    def work():
        for _ in range(50):
            if not np.allclose(np.asarray(m(x)), right, atol=1e-5):
                wrong.append(1)
            wb.gradient(lambda z: (z * z).sum(), x)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_fork():
    wb.ones(4).sum().item()
    pid = os.fork()
    if pid == 0:
        ok = (wb.ones(4) + 1).sum().item() == 8
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_errors():
    with pytest.raises(wb.ShapeError) as error:
        wb.Dense(3, 4)(wb.ones((2, 5)))
    assert isinstance(error.value, ValueError)
    with pytest.raises(TypeError, match="no argument 'inn'"):
        wb.Dense(inn=3)
    with pytest.raises(TypeError, match="lacks"):
        wb.Dense(3)
    with pytest.raises(TypeError, match="twice"):
        wb.Dense(3, 4, in_=3)
    with pytest.raises(TypeError, match="without a name"):
        wb.Dense(3, 4, wb.relu, True)
    with pytest.raises(TypeError, match="activation"):
        wb.Dense(3, 4, lambda x: x)
    with pytest.raises(ValueError, match="mean"):
        wb.mse(wb.ones(2), wb.ones(2), agg="average")
    with pytest.raises(wb.Error):
        wb.Dense(0, 4)
    with pytest.raises(wb.Error):
        wb.device("NONE:7")


def test_devices():
    assert str(wb.ones(2).device) == "CPU" and wb.ones(2).device == wb.cpu_device() and "CPU" in repr(wb.device("CPU"))
    with wb.device("CPU"):
        assert wb.ones(2).to("CPU").sum().item() == 2
    assert small().to("CPU")(wb.ones((1, 2))).shape == (1, 2)


def test_weight_norm():
    d = wb.Dense(3, 2)
    m = wb.Chain(wb.WeightNorm(d), wb.relu)
    x = wb.normal((4, 3))
    y = m(x)
    plain = wb.remove_weight_norms(m)
    assert wb.allclose(plain(x), y, 1e-4, 1e-5) and "g" not in "".join(p[-1] for p in plain.parameters())
    del plain
    assert m(x).shape == (4, 2)


def test_chains_of_rules_and_schedules():
    m = wb.Chain(wb.Dense(2, 2))
    o = wb.setup(wb.RuleChain(wb.ClipNorm(1.0), wb.WeightDecay(1e-3), wb.Adam(1e-2)), m)
    assert wb.train_step(lambda m, x: m(x).sum(), m, o, wb.ones((3, 2))).shape == ()
    s = wb.schedule_sequence([(wb.schedule_constant(1.0), 2), (wb.schedule_of(lambda t: 10.0 * t), 3)])
    assert [wb.schedule_at(s, t) for t in (1, 2, 3, 4)] == [1.0, 1.0, 10.0, 20.0]
    a = wb.schedule_exp(1.0, 0.5)
    for make, right in ((wb.schedule_loop, [1, 0.5, 1, 0.5]), (wb.schedule_stretch, [1, 1, 0.5, 0.5]), (wb.schedule_shift, [0.25, 0.125, 0.0625, 0.03125])):
        s = make(a, 2)
        assert [wb.schedule_at(s, t) for t in (1, 2, 3, 4)] == right and wb.schedule_at(a, 1) == 1
    with pytest.raises(TypeError):
        wb.RuleChain(3)
    with pytest.raises(TypeError):
        wb.schedule_sequence([(1, 2)])


def test_losses_and_settings():
    p, y = wb.array([[0.0, 2.0], [1.0, 1.0]]), wb.array([1, 0])
    a = wb.logitcrossentropy(p, y, agg="none")
    assert a.shape == (1, 2) or a.shape == (2, 1) or a.shape == (2,)
    assert abs(wb.logitcrossentropy(p, y, agg="sum").item() - a.sum().item()) < 1e-6
    assert wb.Dense(2, 3, bias=False).parameters().keys() == {"weight"}
    assert wb.Dense(2, 3, init="zeros_init")["weight"].sum().item() == 0
    assert wb.mse(wb.ones(3), wb.zeros(3)).item() == 1


def test_rules_and_optimisers_are_printed_pickled_and_copied():
    rule = wb.RuleChain(wb.ClipNorm(1.0), wb.AdamW(1e-2, lambda_=0.01))
    assert repr(rule) == "RuleChain(ClipNorm(1.0), AdamW(0.01, lambda_=0.01))"
    assert repr(pickle.loads(pickle.dumps(rule))) == repr(rule)
    model = wb.Chain(wb.Dense(3, 4, wb.tanh), wb.Dense(4, 1))
    optimiser = wb.setup(rule, model, clip_total_norm=5.0, paths={"*.bias": wb.Descent(0.1)})
    x, y = wb.normal((8, 3)), wb.normal((8, 1))
    loss = lambda m, x, y: wb.mse(m(x), y)  # noqa: E731
    for _ in range(3):
        wb.train_step(loss, model, optimiser, x, y)
    assert "AdamW(0.01" in repr(optimiser) and optimiser.model is model
    wb.adjust(optimiser, 0.5)
    model2, optimiser2 = pickle.loads(pickle.dumps((model, optimiser)))
    assert optimiser2.model is model2
    model3, optimiser3 = copy.deepcopy((model, optimiser))
    for _ in range(3):
        losses = [wb.train_step(loss, m, o, x, y).item() for m, o in ((model, optimiser), (model2, optimiser2), (model3, optimiser3))]
        assert losses[0] == losses[1] == losses[2]


def test_weak_references():
    model = wb.Dense(2, 2)
    optimiser, loader = wb.setup(wb.Adam(), model), wb.DataLoader(wb.ones((4, 2)))
    things = [wb.ones(2), model, optimiser, loader, wb.withgradient(lambda m, x: m(x).sum(), model, wb.ones((1, 2)))[1], Block(2)]
    references = [weakref.ref(t) for t in things]
    assert all(r() is t for r, t in zip(references, things))
    del things, model, optimiser, loader
    gc.collect()
    assert [r() for r in references] == [None] * 6


def test_a_layer_of_a_module_is_replaced():
    b, other, x = Block(3), wb.Dense(3, 5), wb.normal((2, 3))
    o = wb.setup(wb.Adam(), b)
    calls = b.calls.item()
    b.dense = other
    b.scale = wb.ones(3)
    assert b.dense.weight.shape == (3, 5) and set(b.parameters()) == {"dense.weight", "dense.bias", "scale"} and b.calls.item() == calls
    b.dense = b2 = wb.Chain(other, wb.Dense(5, 3))
    assert wb.allclose(b(x), b2(x) * 2.0)
    with pytest.raises(ValueError, match="contain itself"):
        b.dense = wb.Chain(b)
    before = b.dense[1].weight.tolist()
    wb.train_step(lambda m, x: m(x).sum(), b, o, x)  # it follows the model
    assert b.dense[1].weight.tolist() != before
    before = b.dense[1].weight.tolist()
    wb.train_step(lambda m, x: m(x).sum(), b, wb.setup(wb.Adam(), b), x)
    assert b.dense[1].weight.tolist() != before and "__replaced" not in str(wb.save_bytes(b)) and wb.allclose(copy.deepcopy(b)(x), b(x))


def test_an_optimiser_is_no_part_of_a_module():
    b = Block(3)
    with pytest.raises(TypeError, match="beside the model"):
        b.optimiser = wb.setup(wb.Adam(), b)

    class Trainer:
        def __init__(self, model):
            self.model, self.optimiser = model, wb.setup(wb.Adam(), model)

    t = Trainer(b)
    data = wb.save_bytes(t.model, optimiser=t.optimiser)
    wb.load_bytes(data, t.model, optimiser=t.optimiser)


def test_parts_of_layers():
    m = wb.Chain(wb.Dense(4, 3), wb.relu, wb.Dense(3, 2))
    assert m[0].weight.shape == (4, 3) and m[-1].bias.shape == (2,) and len(m[:2]) == 2 and len(m[5:]) == 0 and m[1:][1].weight.shape == (3, 2)
    with pytest.raises(AttributeError, match="a Dense has no 'wieght'"):
        m[0].wieght
    with pytest.raises(ValueError, match="step"):
        m[::2]


def test_names_of_pytorch_are_explained():
    for f, words in ((lambda: wb.Linear, "Dense"), (lambda: wb.ones(2).view(2, 1), "reshape"), (lambda: wb.Dense(2, 3).state_dict(), "parameters"),
                     (lambda: wb.setup(wb.Adam(), wb.Dense(2, 3)).step(), "update"), (lambda: Block(2).train(), "train_step")):
        with pytest.raises(AttributeError, match=words):
            f()
    for f, words in ((lambda: wb.ones((2, 3)).sum(dim=1), "'axis'"), (lambda: wb.Adam(lr=0.1), "'eta'"), (lambda: wb.Dense(2, 3, actvation=wb.relu), "activation"),
                     (lambda: wb.zeros(2, 3), r"zeros\(\(2, 3\)\)"), (lambda: wb.withgradient(lambda m: 1.0, wb.Dense(2, 3)), "does not depend")):
        with pytest.raises(TypeError, match=words):
            f()
    with pytest.raises(ValueError, match="axis 5"):
        wb.ones((2, 3)).sum(axis=5)
    with pytest.raises(ValueError, match="swapaxes"):
        wb.ones((2, 3, 4)).transpose(1, 2)
    assert round(wb.array(1.234), 2) == 1.23 and wb.ones((2, 3, 4)).flatten(1).shape == (2, 12) and wb.ones(2).to(wb.float64).dtype == wb.float64
    assert wb.Dense(2, 3).to(wb.float64).weight.dtype == wb.float64


def test_items_of_a_data_set_keep_their_kinds():
    class Items:
        def __len__(self):
            return 5

        def __getitem__(self, i):
            return np.full(3, i, "f4"), i % 2, 0.5

    x, y, z = next(iter(wb.DataLoader(Items(), batchsize=4)))
    assert (x.dtype, y.dtype, z.dtype) == ("float32", "int64", "float32") and y.tolist() == [0, 1, 0, 1]


def test_a_loss_gets_arguments_of_any_kind():
    m, o = wb.Dense(3, 1), None
    o = wb.setup(wb.Adam(), m)
    for args in ((3,), (wb.ones(3), wb.ones((2, 1))), ({"a": 1}, "text", None), (wb.array(2.0),), ()):
        seen = []
        loss = lambda m, *a: (seen.append(a), m(wb.ones((1, 3))).sum())[1]  # noqa: E731
        wb.withgradient(loss, m, *args)
        wb.train_step(loss, m, o, *args)
        assert [len(s) for s in seen] == [len(args)] * 2 and all(type(a) is type(b) for a, b in zip(seen[0], args))


def test_gradients_are_a_mapping():
    m = wb.Dense(2, 3)
    _, g = wb.withgradient(lambda m, x: m(x).sum(), m, wb.ones((4, 2)))
    assert list(g) == list(g.keys()) == ["weight", "bias"] and len(g) == 2 and "bias" in g and dict(g.items()).keys() == dict(g).keys()
    assert [x.shape for x in g.values()] == [(2, 3), (3,)] and repr(g) == "Gradients(weight: (2, 3), bias: (3,))"
    with pytest.raises(TypeError, match="aux"):
        wb.withgradient(lambda m, x: (m(x).sum(), m(x)), m, wb.ones((4, 2)))
    s = wb.schedule_exp(0.1, 0.5)
    assert s(1) == wb.schedule_at(s, 1) and "0.1" in repr(s) and repr(wb.DataLoader(wb.ones((5, 2)), batchsize=2)) == "Loader(3 batches)"
    assert wb.ones(1).device == "cpu" and wb.ones(1).device != "cuda"


def test_errors_and_documentation_have_pythons_words():
    for f, words in ((lambda: wb.Embedding(5, 3)(wb.ones((2, 2))), r"x.astype\('int32'\).*float32"), (lambda: wb.mse(wb.ones(2), wb.ones((2, 1))), r"y.reshape\(-1\)"),
                     (lambda: wb.load("/tmp/wb_no_f32_dimension 3.bson", wb.Dense(2, 2)), "wb_no_f32"), (lambda: wb.concat([wb.ones((2, 3)), wb.ones((3, 2))], 1), "axis -1")):
        with pytest.raises(wb.Error, match=words) as found:
            f()
        assert "WB_" not in str(found.value)
    assert "(N, in, [[D,] H,] W)" in wb.CrossCor.__doc__ and "([N,] time, out)" in wb.LSTM.__doc__ and "(..., queries, dk heads)" in wb.attention.__doc__
    texts = [getattr(wb, n).__doc__ or "" for n in dir(wb) if not n.startswith("_")]
    assert not [t for t in texts if "WB_ERROR" in t or "wb_cast" in t]


def test_forward_takes_other_arguments_than_arrays():
    class Attends(wb.Module):
        def __init__(self):
            self.dense = wb.Dense(3, 3)
            self.inner = Block(3)

        def forward(self, x, mask=None, scale=1.0, *, twice=False, more=None):
            self.seen = (mask is None, scale, twice, more is None)
            y = self.inner(self.dense(x)) * scale
            y = y if mask is None else wb.where(mask, y, 0.0)
            y = y if more is None else y + more
            return (y, y) if twice else y

    m, x, mask = Attends(), wb.normal((2, 3)), wb.array([[True, False, True]] * 2)
    plain = m(x)
    assert m.seen == (True, 1.0, False, True) and wb.allclose(m(x, None, 2.0), plain * 2.0) and wb.allclose(m(x, scale=3.0), plain * 3.0)
    assert wb.allclose(m(x, mask), wb.where(mask, plain, 0.0)) and wb.allclose(m(x, mask=mask, scale=2.0), wb.where(mask, plain, 0.0) * 2.0)
    assert len(m(x, twice=True)) == 2 and m.seen == (True, 1.0, True, True)
    loss = lambda m, x: m(x, None, scale=2.0, more=x).sum()  # noqa: E731
    _, g = wb.withgradient(loss, m, x)
    assert g["dense.weight"].shape == (3, 3) and (g["dense.weight"] != 0).any()
    assert wb.allclose(wb.gradient(lambda a: m(x, more=a).sum(), x), wb.ones((2, 3)))
    with pytest.raises(TypeError, match="nonsense"):
        m(x, nonsense=1)
    with pytest.raises(TypeError, match="at least one array"):
        m(mask=mask)
    assert wb.allclose(m(x), plain)  # nothing is left of the calls that failed
    with pytest.raises(TypeError):
        wb.Dense(3, 3)(x, None)


def test_small_things():
    m = wb.Chain(wb.Dense(2, 3))
    m[0].weight = wb.zeros((2, 3))
    assert (m[0].weight == 0).all()
    with pytest.raises(wb.Error, match="wieght"):
        m[0].wieght = wb.zeros((2, 3))
    assert [a.tolist() for a in wb.where(wb.array([[0, 1], [1, 0]]))] == [[0, 1], [1, 0]]
    x = wb.randint(3, 6, (1000,))
    assert (x.min().item(), x.max().item(), x.dtype) == (3, 5, "int64")
    assert wb.uniform(1000, low=-2.0, high=-1.0).max() < -1 and abs(wb.normal(10000, mean=5.0).mean().item() - 5) < 0.1
    assert [a.shape for a in next(iter(wb.DataLoader((wb.ones((4, 2)), np.ones(4)), batchsize=2)))] == [(2, 2), (2,)]
    with pytest.raises(ValueError, match="different axes"):
        wb.array([wb.ones((4, 2)), wb.ones(4)])
    with pytest.raises(TypeError, match="DataLoader"):
        wb.train(lambda m, x: m(x).sum(), m, [wb.ones((4, 2))], wb.setup(wb.Adam(), m))
