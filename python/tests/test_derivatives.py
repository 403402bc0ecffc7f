"""Derivatives of functions of arrays."""
import numpy as np
import pytest

import weber as wb


def close(x, a, tolerance=1e-4):
    np.testing.assert_allclose(np.asarray(x), a, rtol=tolerance, atol=tolerance)


def test_gradient():
    x, y = wb.array([1.0, 2.0]), wb.array([3.0, 4.0])
    close(wb.gradient(lambda x: (x * x).sum(), x), [2, 4])
    gx, gy = wb.gradient(lambda x, y: (x * y).sum(), x, y)
    close(gx, [3, 4]), close(gy, [1, 2])
    assert wb.gradient(lambda x: y.sum(), x) is None
    close(wb.gradient(lambda x: (x * (x + 0)).sum(), x), [2, 4])


def test_what_was_captured_is_constant():
    x = wb.array([1.0, 2.0])
    z = x * 3
    close(wb.gradient(lambda x: (x * z).sum(), x), [3, 6])


def test_orders():
    x = wb.array(2.0)
    f = lambda x: x ** 4
    close(wb.grad(f)(x), 32)
    close(wb.grad(wb.grad(f))(x), 48)
    close(wb.grad(wb.grad(wb.grad(f)))(x), 48)
    close(wb.grad(wb.grad(wb.grad(lambda x: x * x)))(x), 0)
    value, g = wb.value_and_grad(f)(x)
    close(value, 16), close(g, 32)
    value, (a, b) = wb.value_and_grad(lambda x, y: x * y, (0, 1))(wb.array(2.0), wb.array(5.0))
    close(a, 5), close(b, 2)


def test_matrices():
    x = wb.array([1.0, 2.0, 3.0])
    w = wb.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    close(wb.jacobian(lambda x: w @ x, x), np.asarray(w))
    close(wb.hessian(lambda x: (x ** 3).sum(), x), np.diag([6, 12, 18]))
    close(wb.hessian(lambda x: x[0] * x[1] + x[2], x), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    close(wb.hessian_diagonal(lambda x: (x ** 3).sum(), x), [6, 12, 18])
    y, t = wb.jvp(lambda x: w @ x, [x], [wb.array([1.0, 0.0, 0.0])])
    close(t, [1, 4])
    (h,) = wb.hvp(lambda x: (x ** 3).sum(), [x], [wb.ones(3)])
    close(h, [6, 12, 18])


def test_recompute_and_function():
    x = wb.array([1.0, 2.0])
    close(wb.gradient(lambda x: wb.recompute(lambda x: wb.exp(x) * x, x).sum(), x), np.exp([1, 2]) * [2, 3])
    calls = []

    def pullback(y, c, x):
        calls.append(1)
        return c * 10.0

    close(wb.gradient(lambda x: wb.function(lambda x: x * x, pullback, x).sum(), x), [10, 10])
    assert calls
    with pytest.raises(ValueError, match="cotangents"):
        wb.gradient(lambda x: wb.function(lambda x: x, lambda y, c, x: (c, c), x).sum(), x)


def test_models():
    m = wb.Chain(wb.Dense(2, 3, wb.tanh), wb.Dense(3, 1))
    x = wb.normal((5, 2))
    g = wb.gradient(lambda m: (m(x) ** 2).sum(), m)
    loss, h = wb.withgradient(lambda m, x: (m(x) ** 2).sum(), m, x)
    for path, a in g.items():
        close(a, np.asarray(h[path]))
    w = m["layers.1.weight"]
    eps = 1e-2
    i = (0, 0)
    base = []
    for s in (eps, -eps):
        m["layers.1.weight"] = w.at[i].add(s)
        base.append((m(x) ** 2).sum().item())
    m["layers.1.weight"] = w
    assert abs((base[0] - base[1]) / (2 * eps) - h["layers.1.weight"][i].item()) < 2e-2 * max(1, abs(base[0]))


def test_exceptions():
    x = wb.array(1.0)

    def fails(x):
        raise KeyError("mine")

    for call in (lambda: wb.gradient(fails, x), lambda: wb.jacobian(fails, x), lambda: wb.recompute(fails, x), lambda: wb.hvp(fails, [x], [x]),
                 lambda: wb.gradient(lambda x: wb.gradient(fails, x), x), lambda: wb.function(fails, fails, x)):
        with pytest.raises(KeyError, match="mine"):
            call()
    with pytest.raises(TypeError, match="None"):
        wb.gradient(lambda x: None, x)
    with pytest.raises(wb.Error):
        wb.gradient(lambda x: x, wb.ones(3))
    close(wb.gradient(lambda x: x * 2, x), 2)


def test_gradients_of_each_observation():
    model = wb.Chain(wb.Dense(3, 4, wb.tanh), wb.Dense(4, 2))
    x, y = wb.normal((6, 3)), wb.array([0, 1, 1, 0, 1, 0])
    loss = lambda m, x, y: wb.logitcrossentropy(m(x), y)  # noqa: E731
    each = wb.gradient_each(loss, model, x, y)
    assert list(each) == list(model.parameters())
    for i in range(6):
        one = wb.withgradient(loss, model, x[i:i + 1], y[i:i + 1])[1]
        for path, g in each.items():
            assert g.shape == (6, *model[path].shape)
            close(g[i], np.asarray(one[path]), 1e-5)
    w = wb.normal((3,))
    close(wb.gradient_each(lambda w, x: ((x * w) ** 2).sum(), w, x), 2 * np.asarray(x) ** 2 * np.asarray(w), 1e-5)
    with pytest.raises(wb.Error, match="BatchNorm"):
        wb.gradient_each(lambda m, x: m(x).sum(), wb.Chain(wb.Dense(3, 4), wb.BatchNorm(4)), x)
    with pytest.raises(KeyError, match="mine"):
        wb.gradient_each(lambda m, x: {}["mine"], model, x)
    with pytest.raises(wb.Error, match="an input"):
        wb.gradient_each(loss, model, None)
    with pytest.raises(TypeError):
        wb.gradient_each(loss, "model", x)
