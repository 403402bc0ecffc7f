"""Arrays beside NumPy: indexing, operators, reductions, shapes, making."""
import random

import numpy as np
import pytest

import weber as wb


def same(x, a, tolerance=1e-5):
    a = np.asarray(a)
    assert x.shape == a.shape, (x.shape, a.shape)
    np.testing.assert_allclose(np.asarray(x), a, rtol=tolerance, atol=tolerance)


def filled(*shape):
    a = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    return wb.array(a), a


KEYS = [
    np.s_[0], np.s_[-1], np.s_[1:], np.s_[::-1], np.s_[::2], np.s_[3:1:-1], np.s_[5:2], np.s_[..., 0], np.s_[:, 1], np.s_[:, None, 1],
    np.s_[None], np.s_[..., None], np.s_[1, 2, 3], np.s_[1:2, ..., ::-2], np.s_[-100:100], np.s_[:, :, -1:],
    ([0, 2],), ([0, 2, 2, -1],), (slice(None), [1, 0]), (slice(None), slice(None), [3, 0, 1]), ([0, 1], [1, 2]),
    ([0, 1], slice(None), [3, 3]), (slice(None), [0, 1], [2, 3]), (1, slice(None), [0, 1]), ([[0, 1], [2, 3]],),
    (slice(None), [[0], [1]], [[0, 1, 2]]), ([0, 1], 2), (slice(1, 3), [0, 1], slice(None, None, 2)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_index(key):
    x, a = filled(4, 3, 5)
    same(x[key], a[key])


def test_masks():
    x, a = filled(4, 3, 5)
    same(x[wb.array(a > 20)], a[a > 20])
    same(x[wb.array(a[:, 0, 0] > 20)], a[a[:, 0, 0] > 20])
    same(x[:, wb.array([True, False, True])], a[:, [True, False, True]])
    same(x[x < 0], a[a < 0])


def test_random_slices():
    draw = random.Random(3)
    x, a = filled(5, 4, 3)
    for _ in range(300):
        key = tuple(
            draw.choice([draw.randrange(-3, 3), slice(draw.choice([None, draw.randrange(-7, 7)]), draw.choice([None, draw.randrange(-7, 7)]),
                                                      draw.choice([None, 1, 2, -1, -2]))])
            for _ in range(draw.randrange(4)))
        same(x[key], a[key])


@pytest.mark.parametrize("key, error", [(5, IndexError), ((0, 0, 0, 0), IndexError), (1.5, IndexError), ("a", TypeError), ((..., ...), IndexError)])
def test_wrong_index(key, error):
    x, _ = filled(4, 3, 5)
    with pytest.raises(error):
        x[key]


def test_set():
    for key in [np.s_[1], np.s_[:, 2], np.s_[::2, 1:], ([0, 2],), ([0, 1], [1, 2]), np.s_[...], np.s_[9:]]:
        x, a = filled(4, 3)
        b = a.copy()
        b[key] = -7
        same(x.at[key].set(-7), b)
        same(x, a)
    x, a = filled(3)
    same(x.at[wb.array([1, 1])].set(wb.array([5.0, 6.0])), [0, 6, 2])
    with pytest.raises(TypeError, match="not changed in place"):
        x[0] = 1
    g = wb.gradient(lambda x: (x.at[1].set(0.0) * 2).sum(), x)
    same(g, [2, 0, 2])


def test_operators():
    x, a = filled(3, 4)
    x, a = x + 1, a + 1
    y, b = wb.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [2.0], [3.0]], np.float32)
    for f in [lambda p, q: p + q, lambda p, q: p - q, lambda p, q: p * q, lambda p, q: p / q, lambda p, q: p % q, lambda p, q: p // q,
              lambda p, q: p ** q, lambda p, q: p < q, lambda p, q: p >= q, lambda p, q: p == q, lambda p, q: p != q]:
        same(f(x, y), f(a, b))
        same(f(x, 2.0), f(a, np.float32(2)))
        same(f(2.0, x), f(np.float32(2), a))
    same(-x, -a)
    same(abs(-x), a)
    same(np.float32(3) * x, 3 * a)
    same(a + x, a + a)
    m = x > 5
    same(~m, ~(a > 5))
    same(m & (x < 9), (a > 5) & (a < 9))
    same(m | (x < 2), (a > 5) | (a < 2))
    same(m ^ (x < 9), (a > 5) ^ (a < 9))
    i, k = wb.array([7, -7, 8]), np.array([7, -7, 8])
    same(i // 2, k // 2)
    same(i % 3, k % 3)
    with pytest.raises(TypeError):
        x + "a"
    assert (x == None).shape == () if False else True  # noqa: E711


@pytest.mark.parametrize("p, q", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,))])
def test_matmul(p, q):
    x, a = filled(*p)
    y, b = filled(*q)
    same(x @ y, a @ b)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "var", "std", "any", "all", "argmax", "argmin"])
def test_reductions(name):
    a = np.random.default_rng(1).uniform(0.5, 1.5, (2, 3, 4)).astype(np.float32)
    if name in ("any", "all"):
        a = a > 1
    x = wb.array(a)
    for axis in [None, 0, 1, -1] + ([(0, 1), (0, -1), (0, 1, 2)] if "arg" not in name else []):
        for keepdims in (False, True):
            same(getattr(x, name)(axis=axis, keepdims=keepdims), getattr(a, name)(axis=axis, keepdims=keepdims))
            same(getattr(wb, name)(x, axis=axis, keepdims=keepdims), getattr(np, name)(a, axis=axis, keepdims=keepdims))
    with pytest.raises(wb.Error):
        getattr(x, name)(axis=3)
    if name in ("var", "std"):
        same(getattr(x, name)(axis=1, correction=1), getattr(a, name)(axis=1, ddof=1))


def test_shapes():
    x, a = filled(2, 3, 4)
    same(x.reshape(4, 6), a.reshape(4, 6))
    same(x.reshape((6, -1)), a.reshape(6, -1))
    same(wb.reshape(x[0, 0, :1], ()), a[0, 0, 0])
    same(x.T, a.T)
    same(wb.transpose(x, (1, 0, 2)), a.transpose(1, 0, 2))
    same(x.mT, np.swapaxes(a, 1, 2))
    same(wb.permute_dims(x, (2, 0, 1)), a.transpose(2, 0, 1))
    same(wb.moveaxis(x, 0, -1), np.moveaxis(a, 0, -1))
    same(wb.swapaxes(x, 0, 2), np.swapaxes(a, 0, 2))
    for axis in (0, 1, 2, 3, -1, -2):
        same(wb.expand_dims(x, axis), np.expand_dims(a, axis))
        same(wb.stack([x, x + 1], axis), np.stack([a, a + 1], axis))
    for axis in (0, 1, -1):
        same(wb.concat([x, x], axis), np.concatenate([a, a], axis))
        same(wb.flip(x, axis), np.flip(a, axis))
        same(wb.roll(x, 1, axis), np.roll(a, 1, axis))
        same(wb.cumsum(x, axis), np.cumsum(a, axis))
        same(wb.sort(-x, axis), np.sort(-a, axis))
        same(wb.argsort(-x, axis), np.argsort(-a, axis, kind="stable"))
    same(wb.concat([x, x], None), np.concatenate([a, a], None))
    same(wb.broadcast_to(x[:, :1], (2, 3, 4)), np.broadcast_to(a[:, :1], (2, 3, 4)))
    same(wb.squeeze(x[:, :1]), np.squeeze(a[:, :1]))
    same(wb.squeeze(x[:, :1], 1), np.squeeze(a[:, :1], 1))
    for part, b in zip(wb.split(x, 2, axis=2), np.split(a, 2, axis=2)):
        same(part, b)
    assert [p.shape for p in wb.unstack(x, 1)] == [(2, 4)] * 3
    same(wb.take(x, wb.array([1, 0]), 2), np.take(a, [1, 0], 2))
    with pytest.raises(wb.ShapeError):
        x.squeeze(0)


def test_matrices():
    x, a = filled(3, 4)
    for k in (-1, 0, 2):
        same(wb.tril(x, k), np.tril(a, k))
        same(wb.triu(x, k), np.triu(a, k))
        same(wb.eye(3, 4, k), np.eye(3, 4, k))
        same(wb.diag(wb.array([1.0, 2.0]), k), np.diag([1.0, 2.0], k))
        same(wb.diag(x, k), np.diag(a, k))
    same(wb.outer(wb.array([1.0, 2.0]), wb.array([3.0, 4.0, 5.0])), np.outer([1, 2], [3, 4, 5]))
    same(wb.einsum("ij,kj->ik", x, x), a @ a.T)
    same(wb.einsum("bij,bjk->bik", wb.ones((2, 3, 4)), wb.ones((2, 4, 5))), np.full((2, 3, 5), 4))
    same(wb.where(x > 5, x, -1.0), np.where(a > 5, a, -1))
    same(wb.argwhere(x > 5), np.argwhere(a > 5))
    for p, q in zip(wb.nonzero(x), np.nonzero(a)):
        same(p, q)


def test_making():
    same(wb.zeros((2, 3)), np.zeros((2, 3)))
    same(wb.ones(3), np.ones(3))
    same(wb.full((2,), 7), np.full(2, 7))
    same(wb.arange(5), np.arange(5))
    same(wb.arange(1, 8, 3), np.arange(1, 8, 3))
    same(wb.arange(5, 0, -2), np.arange(5, 0, -2))
    same(wb.arange(0, 1, 0.25), np.arange(0, 1, 0.25))
    assert wb.arange(3, 1).shape == (0,)
    same(wb.linspace(0, 1, 5), np.linspace(0, 1, 5))
    same(wb.linspace(0, 1, 5, endpoint=False), np.linspace(0, 1, 5, endpoint=False))
    assert wb.arange(3).dtype == "int64" and wb.ones(2).dtype == wb.float32
    assert wb.array([True, False]).dtype == wb.bool and wb.array([1, 2.5]).dtype == "float32"
    assert wb.array([]).shape == (0,) and wb.array([[], []]).shape == (2, 0)
    same(wb.array([wb.ones(2), wb.zeros(2)]), [[1, 1], [0, 0]])
    for wrong in ([[1, 2], [3]], [1, [2]], [[1], 2]):
        with pytest.raises(ValueError):
            wb.array(wrong)
    with pytest.raises(TypeError):
        wb.array("text")
    with pytest.raises(TypeError, match="element type"):
        wb.zeros(2, "int3")
    with pytest.raises(TypeError):
        wb.array(np.ones(2, np.complex64))


def test_numbers():
    x = wb.array(3.5)
    assert x.item() == 3.5 and float(x) == 3.5 and int(x) == 3 and complex(x) == 3.5 and bool(x)
    assert wb.array(2 ** 53 - 1).item() == 2 ** 53 - 1
    assert (wb.array(np.array([2 ** 62 + 1])))[0].item() == 2 ** 62 + 1
    assert (wb.array(np.array([2 ** 62])) + (2 ** 53 + 1))[0].item() == 2 ** 62 + 2 ** 53 + 1
    with pytest.raises(OverflowError):
        wb.ones(2, "int64") + 2 ** 70
    assert [1, 2, 3][wb.array(1)] == 2
    assert "%.1f" % wb.array(2.0) == "2.0" and f"{wb.array(2.0):.2f}" == "2.00"
    with pytest.raises(ValueError, match="several elements"):
        bool(wb.ones(2))
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(TypeError):
        [1][x]
    assert len(wb.ones((4, 2))) == 4 and [r.shape for r in wb.ones((4, 2))] == [(2,)] * 4
    with pytest.raises(TypeError):
        hash(x)


def test_types():
    for name in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool"):
        x = wb.ones((2,), name)
        assert x.dtype == name == getattr(wb, name) and x.dtype.itemsize * 2 == x.nbytes
        assert x.astype("float32").dtype == wb.float32
    assert wb.array(np.ones(2, np.float64)).dtype == wb.float64
    assert (wb.ones(2, "uint8") + 1).dtype == wb.uint8
    assert wb.ones(2, np.float64).dtype == wb.float64 and wb.ones(2, float).dtype == wb.float32 and wb.ones(2, np.dtype("int32")).dtype == wb.int32


def test_show():
    assert repr(wb.array([1.0, 2.0])) == "Array([1., 2.], dtype=float32)"
    assert repr(wb.ones(2, "bfloat16")) == "Array([1., 1.], dtype=bfloat16)"
    assert wb.array([[1, 2]]).tolist() == [[1, 2]] and wb.array(3).tolist() == 3
