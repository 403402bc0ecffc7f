"""Columns by Arrow's C data interface."""
import gc
import sys

import numpy as np
import pytest

import weber as wb

pa = pytest.importorskip("pyarrow")
TYPES = {"float32": "float32", "float64": "float64", "float16": "float16", "int32": "int32", "int64": "int64", "uint8": "uint8", "bool": "bool",
         "int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype):
    a = np.arange(20).astype(dtype)
    column = pa.array(a)
    for part, right in ((column, a), (column[3:], a[3:]), (column[11:17], a[11:17]), (column[:0], a[:0]), (pa.chunked_array([column, column[1:9]]), np.r_[a, a[1:9]]),
                        (pa.chunked_array([column[2:]]), a[2:]), (pa.chunked_array([], column.type), a[:0])):
        x = wb.from_arrow(part)
        assert x.dtype == TYPES[dtype] and x.shape == right.shape and np.array_equal(np.asarray(x), right.astype(TYPES[dtype]))


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


def test_memory_is_shared():
    column = pa.array(np.arange(1000, dtype=np.float32))
    x = wb.from_arrow(column[10:])
    assert address(x) == column.buffers()[1].address + 40
    before = pa.total_allocated_bytes()
    del column
    gc.collect()
    assert x[0].item() == 10 and (x + 1).sum().item() == sum(range(11, 1001))
    assert before == pa.total_allocated_bytes()
    y = wb.from_arrow(pa.array([1.5] * 100000))
    del y
    gc.collect()
    wb.eval()
    assert pa.total_allocated_bytes() <= before


def test_tables():
    table = pa.table({"x": [1.0, 2.0, 3.0], "n": pa.array([1, 2, 3], pa.int32()), "is": [True, False, True]})
    for t in (table, pa.concat_tables([table, table]), table.slice(1), table.to_batches()[0], table.to_batches()[0].slice(1, 1), table.to_struct_array(),
              table.to_struct_array().slice(1)):
        columns = wb.from_arrow(t)
        right = t.to_pylist()
        assert list(columns) == ["x", "n", "is"] and all(columns[k].tolist() == [row[k] for row in right] for k in columns)
    assert wb.from_arrow(pa.table({})) == {}


class Column:
    """What has nothing but Arrow's interface."""

    def __init__(self, column):
        self.column = column

    def __arrow_c_array__(self, requested_schema=None):
        return self.column.__arrow_c_array__(requested_schema)


def test_array_takes_columns():
    column = pa.array([1.0, 2.0])
    x = wb.array(Column(column))
    assert x.tolist() == [1, 2] and address(x) != column.buffers()[1].address and x.dtype == "float64"
    assert address(wb.array(Column(column), copy=False)) == column.buffers()[1].address
    assert (wb.ones(2) + wb.array(Column(column))).tolist() == [2, 3]
    with pytest.raises(TypeError, match="from_arrow"):
        wb.array(Column(pa.array([{"a": 1}])))


def test_what_is_refused():
    for column, error, words in (
        (pa.array([1.0, None, 2.0, None]), ValueError, "2 nulls among 4 values.*fill_null"), (pa.array([True, None]), ValueError, "1 nulls"),
        (pa.array(["a"]), TypeError, "texts"), (pa.array(["a"], pa.large_string()), TypeError, "texts"), (pa.array([b"a"]), TypeError, "bytes"),
        (pa.array(["a", "b"]).dictionary_encode(), TypeError, "categories.*codes"), (pa.array([[1]]), TypeError, "flatten"),
        (pa.array([0], pa.timestamp("s")), TypeError, "times"), (pa.array([None]), TypeError, "nothing but nulls"), (pa.array([1], pa.decimal128(3)), TypeError, "decimals"),
        (pa.table({"good": [1], "bad": ["x"]}), TypeError, "column 'bad' has texts"), (pa.table({"n": [1, None]}), ValueError, "column 'n' has 1 nulls"),
        (pa.array([{"a": 1}, None]), ValueError, "rows"), ([1.0], TypeError, "no column"), (np.ones(3), TypeError, "array\\(x\\) takes"),
        (pa.array([2 ** 63], pa.uint64()), OverflowError, "int64"),
    ):
        with pytest.raises(error, match=words):
            wb.from_arrow(column)
    nulls = pa.array([None, 1.0, 2.0])
    assert wb.from_arrow(nulls[1:]).tolist() == [1, 2]

    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            return 3

    with pytest.raises(Exception):
        wb.from_arrow(Broken())

    def batches():
        yield pa.record_batch({"x": [1.0]})
        raise RuntimeError("the disk is full")

    with pytest.raises(Exception, match="disk is full"):
        wb.from_arrow(pa.RecordBatchReader.from_batches(pa.schema({"x": pa.float64()}), batches()))


def test_memory_is_given_back():
    column = pa.array(np.ones(1000, np.float32))
    before = sys.getrefcount(column), pa.total_allocated_bytes()
    for _ in range(200):
        wb.from_arrow(column)
        wb.from_arrow(pa.chunked_array([column, column]))
        wb.from_arrow(pa.table({"x": column}))
    gc.collect()
    wb.eval()
    assert (sys.getrefcount(column), pa.total_allocated_bytes()) == before


def test_other_libraries():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 2.0], "n": [1, 2]})
    assert wb.from_arrow(frame["x"]).tolist() == [1, 2] and wb.from_arrow(frame)["n"].tolist() == [1, 2]
    polars = pytest.importorskip("polars")
    assert wb.from_arrow(polars.Series([1.0, 2.0])).tolist() == [1, 2] and wb.from_arrow(polars.DataFrame({"x": [1, 2]}))["x"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="nulls"):
        wb.from_arrow(polars.Series([1.0, None]))
    duckdb = pytest.importorskip("duckdb")
    assert wb.from_arrow(duckdb.sql("select range::double as x from range(5000)"))["x"].sum().item() == sum(range(5000))
