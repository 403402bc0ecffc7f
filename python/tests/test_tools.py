"""Scans, hooks, activations, trees, devices, memory, groups of one process."""
import gc

import numpy as np
import pytest

import weber as wb


def test_scan_is_a_loop():
    w, u, x = wb.normal((4, 4)) * 0.3, wb.normal((3, 4)), wb.normal((6, 2, 3))

    def step(h, x):
        h = wb.tanh(x @ u + h @ w)
        return h, h * 2.0

    def by_hand(w):
        h, ys = wb.zeros((2, 4)), []
        for t in range(6):
            h = wb.tanh(x[t] @ u + h @ w)
            ys.append(h * 2.0)
        return h, wb.stack(ys)

    h, ys = wb.scan(step, wb.zeros((2, 4)), x)
    same_h, same_ys = by_hand(w)
    assert wb.allclose(h, same_h, atol=1e-6) and wb.allclose(ys, same_ys, atol=1e-6) and ys.shape == (6, 2, 4)
    of_scan = wb.gradient(lambda w: wb.scan(lambda h, x: (wb.tanh(x @ u + h @ w),) * 2, wb.zeros((2, 4)), x)[1].sum(), w)
    assert wb.allclose(of_scan, wb.gradient(lambda w: by_hand(w)[1].sum() / 2, w), atol=1e-5)


def test_scan_of_tuples_and_without_inputs():
    (a, b), (sums, products) = wb.scan(lambda c, x: ((c[0] + x[0], c[1] * x[1]), (c[0], c[1])), (0.0, 1.0), (wb.arange(4, dtype="float32"), wb.full(4, 2.0)))
    assert a.item() == 6 and b.item() == 16 and sums.tolist() == [0, 0, 1, 3] and products.tolist() == [1, 2, 4, 8]
    carry, nothing = wb.scan(lambda c, x: (c * 2, None), wb.array(1.0), length=10)
    assert carry.item() == 1024 and nothing is None
    carry, ys = wb.scan(lambda c, x: (c + x, c), wb.array(0.0), wb.array([1.0, 2.0, 4.0]), reverse=True)
    assert carry.item() == 7 and ys.tolist() == [6, 4, 0]


def test_mistakes_in_scans():
    with pytest.raises(TypeError, match="pair"):
        wb.scan(lambda c, x: c, wb.zeros(2), wb.ones((3, 2)))
    with pytest.raises(ZeroDivisionError):
        wb.scan(lambda c, x: 1 / 0, wb.zeros(2), wb.ones((3, 2)))
    with pytest.raises(wb.Error, match="carry"):
        wb.scan(lambda c, x: (wb.concat([c, c]), x), wb.zeros(2), wb.ones((3, 2)))
    with pytest.raises(wb.Error):
        wb.scan(lambda c, x: (c, float(x.sum())), wb.zeros(2), wb.ones((3, 2)))


def test_hook():
    seen = []
    assert wb.gradient(lambda x: (wb.hook(x, lambda g: seen.append(g)) * 3.0).sum(), wb.ones(2)).tolist() == [3, 3]
    assert seen[0].tolist() == [3, 3]
    assert wb.gradient(lambda x: (wb.hook(x, lambda g: g * 10.0) * 3.0).sum(), wb.ones(2)).tolist() == [30, 30]


def test_activations_and_watching():
    m, x = wb.Chain(wb.Dense(3, 4), wb.relu, wb.Dense(4, 2)), wb.normal((5, 3))
    found = wb.activations(m, x)
    assert [a.shape for a in found] == [(5, 4), (5, 4), (5, 2)] and wb.allclose(found[-1], m(x))
    seen = []
    with wb.watch_layers(lambda path, x, is_gradient: seen.append((path, x.shape, is_gradient))):
        m(x)
        wb.withgradient(lambda m, x: m(x).sum(), m, x)
    count = len(seen)
    assert (5, 4) in [s for _, s, _ in seen] and any(g for *_, g in seen)
    m(x)
    assert len(seen) == count
    with pytest.raises(ZeroDivisionError):
        with wb.watch_layers(lambda *a: 1 / 0):
            m(x)
    m(x)


def test_models_are_shown(tmp_path):
    m = wb.Chain(wb.CrossCor((3, 3), 1, 4, wb.relu), wb.Flatten(), wb.Dense(16, 2))
    text = wb.summary(m, (32, 1, 4, 4))
    assert "(32, 4, 2, 2)" in text and "(32, 2)" in text and "total" in text and len(text.splitlines()) == 4
    wb.draw_model(tmp_path / "a.dot", m, (32, 1, 4, 4))
    assert "digraph" in (tmp_path / "a.dot").read_text()
    with pytest.raises(wb.ShapeError):
        wb.summary(m, (32, 2, 4, 4))
    assert ">74</span>" in m._repr_html_() and "Dense(16 =&gt; 2)" in m._repr_html_()


def test_models_as_functions():
    m, x = wb.Chain(wb.Dense(3, 4), wb.BatchNorm(4)), wb.normal((5, 3))
    ps, st = wb.parameter_tree(m), wb.state_tree(m)
    y, after = wb.apply_tree(m, x, ps, st)
    assert wb.allclose(y, m(x)) and set(after.parameters(True)) == set(st.parameters(True)) and set(ps.parameters()) == set(m.parameters())


def test_plateau():
    m = wb.Dense(2, 2)
    o, p = wb.setup(wb.Adam(0.1), m), wb.Plateau(factor=0.5, patience=2)
    for score in (1.0, 0.5, 0.6, 0.6, 0.6):
        p.step(o, score)
    assert abs(wb.optimiser_setting(o, None, "eta") - 0.05) < 1e-9
    with pytest.raises(wb.Error):
        wb.Plateau(factor=2.0).step(o, 1.0)


def test_gradient_check():
    wb.gradient_check(lambda x, y: wb.sin(x) * y, [wb.ones(3, "float64"), wb.normal(3).astype("float64")], order=2)
    wrong = lambda x: wb.function(lambda x: x * x, lambda r, g, x: g * x, x)  # noqa: E731
    with pytest.raises(wb.GradientError):
        wb.gradient_check(wrong, [wb.ones(3, "float64")])


def test_trees_of_files(tmp_path):
    m = wb.Chain(wb.Dense(3, 2), wb.tanh)
    for name in ("a.bson", "a.safetensors", "a.npz"):
        wb.save(tmp_path / name, m, epoch="3", mean=wb.ones(2))
        tree = wb.load(tmp_path / name)
        assert tree["mean"].tolist() == [1, 1], tree
    assert wb.load(tmp_path / "a.bson", key="model")["layers"][0]["weight"].shape == (3, 2)
    wb.save(tmp_path / "a.npy", wb.arange(3))
    assert wb.load(tmp_path / "a.npy").tolist() == [0, 1, 2]
    with pytest.raises(wb.FileError):
        wb.load(tmp_path / "none.npz")


def test_devices_and_memory():
    x = wb.ones(1000)
    wb.eval(x)
    assert wb.memory_status()["live"] >= 4000 and isinstance(wb.memory_holders("CPU"), dict)
    assert "CPU" in wb.supported_devices() and wb.devices("CPU") == ["CPU"] and not wb.device_properties("CPU")["is_gpu"]
    assert isinstance(wb.plugin_folders(), list) and "CPU" not in wb.supported_gpu_backends()


def test_a_group_of_one():
    wb.distributed_initialize()
    assert wb.rank() == 0 and wb.total_workers() == 1
    m = wb.Dense(2, 2)
    wb.synchronize(m)
    wb.synchronize(wb.setup(wb.Adam(), m))
    with pytest.raises(wb.Error):
        wb.distributed_initialize("no such transport")


def test_gains_and_folds():
    assert abs(np.asarray(wb.kaiming_normal_with((200, 100), "float32", 2.0)).std() / np.asarray(wb.kaiming_normal_with((200, 100), "float32", 1.0)).std() - 2) < 0.1
    x = wb.normal((2, 3, 6, 6))
    columns = wb.unfold(x, (2, 2), stride=2)
    assert wb.allclose(wb.fold(columns, x.shape, (2, 2), stride=2), x)


def test_nothing_is_left():
    gc.collect()
    before = wb.live()

    def use():
        test_scan_is_a_loop()
        test_mistakes_in_scans()
        test_hook()
        test_activations_and_watching()
        test_models_as_functions()

    for _ in range(3):
        use()
    gc.collect()
    wb.eval(wb.ones(1))
    assert wb.live() == before


def nothing_to_train():
    wb.setup(wb.Adam(), wb.Chain(wb.relu))  # warns


def test_the_log_goes_to_a_function_or_a_logger(caplog, capfd, monkeypatch):
    import logging
    import sys

    told = []
    wb.log_to(lambda level, text: told.append((level, text, wb.ones(2).sum().item())))  # it may call Weber
    nothing_to_train()
    wb.log_to(logging.getLogger("weber"))
    with caplog.at_level(logging.DEBUG):
        nothing_to_train()
    wb.log_to(lambda level, text: 1 / 0)
    monkeypatch.setattr(sys, "unraisablehook", lambda u: told.append(u.exc_type))
    nothing_to_train()
    assert capfd.readouterr().err == ""
    wb.log_to(None)
    nothing_to_train()
    assert "has nothing to train" in capfd.readouterr().err
    assert told.pop() is ZeroDivisionError
    assert len(told) == 1 and told[0][0] == "warn" and "has nothing to train" in told[0][1] and told[0][2] == 2
    assert [(r.levelname, r.name) for r in caplog.records] == [("WARNING", "weber")] and "nothing to train" in caplog.records[0].getMessage()
    with pytest.raises(TypeError, match="a function, a logger or None"):
        wb.log_to(3)
