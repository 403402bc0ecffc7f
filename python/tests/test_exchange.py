"""Memory shared with others."""
import copy
import gc
import pickle

import numpy as np
import pytest

import weber as wb


def test_buffers():
    x = wb.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    v = memoryview(x)
    assert v.shape == (2, 3) and v.readonly and v.format == "f" and v.tolist() == [[0, 1, 2], [3, 4, 5]]
    a = np.asarray(x)
    assert np.shares_memory(a, np.asarray(x)) and not a.flags.writeable
    del x, v
    gc.collect()
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(wb.ones(2, "bfloat16"))
    assert np.asarray(wb.ones(2, "bfloat16")).dtype == np.float32


def test_array_copies():
    a = np.ones((3, 4), np.float32)
    x = wb.array(a)
    a[0] = 7
    assert x.sum().item() == 12
    same = wb.array(a, copy=False)
    assert same.sum().item() == 36
    for b in (a.T, a[:, ::2], a[::-1], np.float32(2), np.ones((), np.int32), np.zeros((0, 3), np.float32)):
        assert np.array_equal(np.asarray(wb.array(b)), b)
    assert wb.array(bytearray(b"ab")).tolist() == [97, 98]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8", "bool"])
def test_dlpack(dtype):
    a = np.arange(12).reshape(3, 4).astype(dtype)
    x = wb.from_dlpack(a)
    assert x.dtype == dtype and np.array_equal(np.asarray(x), a)
    b = np.from_dlpack(x)
    assert np.array_equal(a, b)
    del a, x
    gc.collect()
    wb.eval()
    assert b.shape == (3, 4)


def test_dlpack_refuses():
    with pytest.raises(BufferError, match="contiguous"):
        wb.from_dlpack(np.ones((3, 4), np.float32).T)
    with pytest.raises(BufferError, match="element type"):
        wb.from_dlpack(np.ones(3, np.int16))
    capsule = wb.ones(3).__dlpack__()
    del capsule
    assert wb.ones(2).__dlpack_device__() == (1, 0)


def test_integers_of_other_types():
    for name, right in [("int8", "int32"), ("int16", "int32"), ("uint16", "int32"), ("uint32", "int64"), ("uint64", "int64")]:
        a = np.array([[0, 1, np.iinfo(name).max if name != "uint64" else 7]], name)
        x = wb.array(a)
        assert x.dtype == right and np.array_equal(np.asarray(x), a)
    assert wb.array(np.array([-3, 4], "int8")).tolist() == [-3, 4]
    with pytest.raises(OverflowError):
        wb.array(np.array([2 ** 63], "uint64"))
    assert wb.array(range(3)).tolist() == [0, 1, 2]
    wb.seed(2 ** 64 - 1)
    with pytest.raises(OverflowError):
        wb.seed(-1)


def test_pickle():
    for dtype in ("float32", "bfloat16", "int64", "bool"):
        x = wb.ones((2, 3), dtype)
        y = pickle.loads(pickle.dumps(x))
        assert y.dtype == dtype and y.shape == (2, 3) and (y == x).all()
    assert copy.deepcopy(wb.ones(2)).shape == (2,)


def test_memory_is_given_back():
    a = np.ones(1000, np.float32)
    for _ in range(100):
        wb.array(a, copy=False)
        memoryview(wb.array(a))
        np.from_dlpack(wb.from_dlpack(a))
    gc.collect()
    wb.eval()
    import sys
    assert sys.getrefcount(a) < 5
