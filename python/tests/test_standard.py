"""Functions of the Array API standard that are made of others: beside NumPy's, with their derivatives."""
import math

import numpy as np
import pytest

import weber as wb

OLD = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "pow": "power"}


def numpys(name):
    return getattr(np, OLD.get(name, name))


def same(x, a, tolerance=1e-12):
    a = np.asarray(a)
    assert x.shape == a.shape, (x.shape, a.shape)
    np.testing.assert_allclose(np.asarray(x), a, rtol=tolerance, atol=tolerance)


@pytest.fixture(autouse=True)
def seeds():
    np.random.seed(3)


EDGES = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-300, 1e300, -1e300]


@pytest.mark.parametrize("name", ["tan", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "log2", "log10"])
def test_of_one_number(name):
    for a in (np.random.randn(50) * 0.4, np.random.randn(50) * 30, np.array(EDGES)):
        with np.errstate(all="ignore"):
            expected = numpys(name)(a)
        x = getattr(wb, name)(wb.array(a))
        np.testing.assert_allclose(np.asarray(x), expected, rtol=2e-14, atol=1e-15)
        zero = np.asarray(x) == 0
        assert (np.signbit(np.asarray(x))[zero] == np.signbit(expected)[zero]).all()
    a = np.array([1.5, 3.0, 2e4]) if name == "acosh" else np.array([-0.7, 0.2, 0.9]) if name[0] == "a" and name[1:] in ("sin", "cos", "tanh") else np.array([0.3, 1.2, 8.0])
    h = 1e-6
    same(wb.gradient(lambda x: getattr(wb, name)(x).sum(), wb.array(a)), (numpys(name)(a + h) - numpys(name)(a - h)) / (2 * h), 1e-6)


@pytest.mark.parametrize("name", ["atan2", "hypot", "logaddexp", "copysign", "floor_divide", "pow"])
def test_of_two_numbers(name):
    edges = [e for e in EDGES if abs(e) != 1e300] if name == "pow" else EDGES
    a, b = np.meshgrid(edges, edges)
    for p, q in ((np.random.randn(40), np.random.randn(40)), (a, b) if name != "floor_divide" else (np.arange(9.0) - 4, np.full(9, -1.5))):
        if name == "copysign":  # the sign of NaN cannot be read
            q = np.where(np.isnan(q), 1.0, q)
        with np.errstate(all="ignore"):
            expected = numpys(name)(p, q)
        np.testing.assert_allclose(np.asarray(getattr(wb, name)(wb.array(p), wb.array(q))), expected, rtol=1e-13)


def test_bits():
    for dtype in ("uint8", "int32", "int64"):
        limits = np.iinfo(dtype)
        a = np.concatenate([np.random.randint(limits.min, limits.max, 60, dtype), np.array([limits.min, limits.max, 0], dtype)])
        b = np.concatenate([np.random.randint(limits.min, limits.max, 60, dtype), np.array([limits.max, limits.min, 1], dtype)])
        x, y, places = wb.array(a), wb.array(b), np.random.randint(0, limits.bits, 63).astype(dtype)
        for ours, theirs in ((x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a), (x & 5, a & dtype_of(dtype, 5)), (3 | x, dtype_of(dtype, 3) | a),
                             (x << wb.array(places), a << places), (x >> wb.array(places), a >> places)):
            assert ours.dtype == dtype and (np.asarray(ours) == theirs).all()
    t = wb.array([True, False])
    assert (t & True).tolist() == [True, False] and (t ^ t).tolist() == [False, False] and (~t).tolist() == [False, True] and (t & t).dtype == wb.bool
    with pytest.raises(TypeError, match="integers or bool"):
        wb.ones(2) & 1


def dtype_of(dtype, v):
    return np.array(v, dtype)


def test_powers_and_products_of_integers_are_exact():
    assert (wb.array([3, -3, 0]) ** wb.array([39, 39, 0])).tolist() == [3**39, -(3**39), 1]
    assert (wb.array([7], "uint8") ** 2).dtype == wb.uint8 and (2 ** wb.array([62])).item() == 2**62 and (wb.array([2]) ** -1).item() == 0.5
    a, b = np.random.randint(-9, 9, (2, 3, 4)), np.random.randint(-9, 9, (4, 5))
    for p, q in ((a, b), (a[0], b), (a[0, 0], b), (a, b[:, 0]), (a[0, 0], b[:, 0])):
        x = wb.array(p) @ wb.array(q)
        assert x.dtype == wb.int64 and (np.asarray(x) == p @ q).all() and x.shape == np.shape(p @ q)


def test_sets():
    a = np.random.randint(0, 6, (4, 5))
    values, indices, inverse, counts = wb.unique_all(wb.array(a))
    expected = np.unique(a, return_index=True, return_inverse=True, return_counts=True)
    for ours, theirs in zip((values, indices, inverse.reshape(-1), counts), expected):
        assert ours.tolist() == np.ravel(theirs).tolist()
    assert wb.unique_values(wb.array([wb.nan, 1.0, wb.nan])).shape == (3,) and wb.unique_values(wb.zeros(0)).shape == (0,)
    assert wb.unique_inverse(wb.array([2, 1, 2])).inverse_indices.tolist() == [1, 0, 1] and wb.unique_counts(wb.array([2, 1, 2])).counts.tolist() == [1, 2]


def test_searching():
    a, v = np.sort(np.random.randint(0, 20, 17)), np.random.randint(-2, 23, (4, 3))
    for side in ("left", "right"):
        assert (np.asarray(wb.searchsorted(wb.array(a), wb.array(v), side=side)) == np.searchsorted(a, v, side)).all()
    assert wb.count_nonzero(wb.array([[0, 1], [2, 3]]), axis=0).tolist() == [1, 2]
    assert wb.array([3.0, 1.0]).argsort().dtype == wb.int64 and wb.take(wb.array([1, 2, 3]), wb.array([-1])).item() == 3


def test_shapes():
    a, b = np.random.randn(3, 4), np.random.randn(4, 5)
    for indexing in ("xy", "ij"):
        for ours, theirs in zip(wb.meshgrid(wb.arange(3), wb.arange(4), wb.arange(2), indexing=indexing), np.meshgrid(*map(np.arange, (3, 4, 2)), indexing=indexing)):
            assert (np.asarray(ours) == theirs).all()
    same(wb.tensordot(wb.array(a), wb.array(b), 1), a @ b)
    same(wb.tensordot(wb.array(a), wb.array(a), ([0, 1], [0, 1])), (a * a).sum())
    same(wb.vecdot(wb.array(a), wb.array(a)), (a * a).sum(-1))
    same(wb.diff(wb.array(a), n=2, axis=0, prepend=wb.array(a[:1])), np.diff(a, n=2, axis=0, prepend=a[:1]))
    same(wb.cumulative_sum(wb.array(a), axis=1, include_initial=True), np.concatenate([np.zeros((3, 1)), a.cumsum(1)], 1))
    same(wb.repeat(wb.array(a), wb.array([2, 0, 1]), 0), np.repeat(a, [2, 0, 1], 0))
    same(wb.repeat(wb.array(a), 2), np.repeat(a, 2))
    same(wb.roll(wb.array(a), (1, -2), (0, 1)), np.roll(a, (1, -2), (0, 1)))
    same(wb.roll(wb.array(a), 3), np.roll(a, 3))
    same(wb.moveaxis(wb.ones((2, 3, 4, 5)), (0, 1), (-1, -2)), np.ones((4, 5, 3, 2)))
    assert [x.shape for x in wb.broadcast_arrays(wb.ones((3, 1)), wb.ones(4))] == [(3, 4)] * 2
    with pytest.raises(ValueError, match="do not fit"):
        wb.broadcast_arrays(wb.ones(3), wb.ones(4))
    assert wb.array(2)[wb.array(True)].shape == (1,) and wb.ones((2, 3))[wb.array(False)].shape == (0, 2, 3)


def test_types():
    assert wb.result_type(wb.uint8, wb.int32) == wb.int32 and wb.result_type(wb.ones(1, "float16"), 2.0) == wb.float16
    assert wb.isdtype(wb.float16, "real floating") and wb.isdtype(wb.uint8, ("bool", "integral")) and not wb.isdtype(wb.bool, "numeric")
    assert wb.can_cast(wb.uint8, wb.int64) and not wb.can_cast(wb.float64, wb.float32)
    for dtype in ("float16", "float32", "float64"):
        ours, theirs = wb.finfo(dtype), np.finfo(dtype)
        assert (ours.bits, ours.eps, ours.max, ours.min, ours.smallest_normal) == (theirs.bits, theirs.eps, theirs.max, theirs.min, theirs.smallest_normal)
    assert wb.iinfo(wb.int32).max == 2**31 - 1 and wb.iinfo("uint8").min == 0
    x = wb.ones(2)
    assert x.__array_namespace__() is wb and wb.__array_namespace_info__().default_dtypes()["integral"] == wb.int64
    assert wb.sum(wb.ones(2, "uint8"), dtype="uint8").dtype == wb.uint8 and wb.zeros(2, dtype=None).dtype == wb.float32
    assert wb.floor(wb.array([1, 2])).dtype == wb.int64 and wb.clip(wb.array([1, 5, 9]), 2, 7).tolist() == [2, 5, 7]


def test_making():
    a = np.arange(3.0)
    x = wb.asarray(a, copy=False)
    a[0] = 7
    assert x[0].item() == 7
    for wrong in (lambda: wb.asarray([1.0], copy=False), lambda: wb.asarray(a, dtype="int32", copy=False)):
        with pytest.raises(ValueError):
            wrong()
    assert wb.from_dlpack(a, copy=True).dtype == wb.float64 and wb.linspace(0, 1, 3, device="CPU").tolist() == [0, 0.5, 1]
