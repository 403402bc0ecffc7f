"""Arrays: what is turned between NumPy's order of axes and Weber's, making, printing."""
import builtins
import math
from typing import Any, Optional, Sequence, Union

from . import _weber
from ._types import DTypeLike, bfloat16, float16, float32
from ._weber import Array, Device, array

pi, e, inf, nan, newaxis = 3.141592653589793, 2.718281828459045, float("inf"), float("nan"), None
Shape = Union[int, Sequence[int]]


# ---- making ----


def asarray(obj: Any, dtype: Optional[DTypeLike] = None, copy: Optional[builtins.bool] = None, device: Union[Device, str, None] = None) -> Array:
    """An Array of obj; an Array stays what it is. With copy=False memory is shared, or it is an error."""
    if copy is False and not (isinstance(obj, Array) or _is_shared(obj)):
        raise ValueError("asarray: %r has no memory to share" % type(obj))
    x = array(obj, None if copy is False else dtype, copy=copy is not False)
    if copy is False and dtype is not None and x.dtype != full((), 0, dtype).dtype:
        raise ValueError("asarray: %s in another type needs a copy" % x.dtype)
    return _made(x, device)


def _is_shared(obj: Any) -> builtins.bool:
    try:
        return memoryview(obj).c_contiguous
    except TypeError:
        return False


def from_dlpack(x: Any, device: Union[Device, str, None] = None, copy: Optional[builtins.bool] = None) -> Array:
    """An array over the memory of x, which must not change; with copy=True one of its own."""
    if isinstance(x, Array):
        return _made(x, device)
    y = _weber._from_dlpack(x)
    return _made(array(memoryview(y), y.dtype) if copy and y.dtype != bfloat16 else y, device)


def _made(x: Array, device: Union[Device, str, None]) -> Array:
    return x if device is None else _weber.to(x, device)


def full(shape: Shape, fill_value: float, dtype: Optional[DTypeLike] = None, device: Union[Device, str, None] = None) -> Array:
    """An array of one number."""
    if dtype is None:
        dtype = {builtins.bool: "bool", int: "int64"}.get(type(fill_value), float32)
    if isinstance(fill_value, int) and builtins.abs(fill_value) > 2**53:  # C gets a double
        return _made(_weber.broadcast_to(array(fill_value, dtype), shape), device)
    return _made(_weber._full(dtype, fill_value, shape), device)


def zeros(shape: Shape, dtype: Optional[DTypeLike] = None, device: Union[Device, str, None] = None) -> Array:
    """An array of zeros."""
    return full(shape, 0, dtype or float32, device)


def ones(shape: Shape, dtype: Optional[DTypeLike] = None, device: Union[Device, str, None] = None) -> Array:
    """An array of ones."""
    return full(shape, 1, dtype or float32, device)


def empty(shape: Shape, dtype: Optional[DTypeLike] = None, device: Union[Device, str, None] = None) -> Array:
    """An array of zeros."""
    return full(shape, 0, dtype or float32, device)


def full_like(x: Array, fill_value: float, dtype: Optional[DTypeLike] = None, device: Union[Device, str, None] = None) -> Array:
    """One number in the shape and type of x."""
    return full(x.shape, fill_value, dtype or x.dtype, device or x.device)


def zeros_like(x: Array, dtype: Optional[DTypeLike] = None, device: Union[Device, str, None] = None) -> Array:
    """Zeros in the shape and type of x."""
    return full_like(x, 0, dtype, device)


def ones_like(x: Array, dtype: Optional[DTypeLike] = None, device: Union[Device, str, None] = None) -> Array:
    """Ones in the shape and type of x."""
    return full_like(x, 1, dtype, device)


def empty_like(x: Array, dtype: Optional[DTypeLike] = None, device: Union[Device, str, None] = None) -> Array:
    """Zeros in the shape and type of x."""
    return full_like(x, 0, dtype, device)


def arange(start: float, stop: Optional[float] = None, step: float = 1, dtype: Optional[DTypeLike] = None,
           device: Union[Device, str, None] = None) -> Array:
    """Numbers from start, by step, before stop; arange(n): 0 to n - 1."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: the step is 0")
    whole = builtins.all(isinstance(v, int) for v in (start, stop, step))
    count = builtins.max(0, -(-(stop - start) // step) if whole else math.ceil((stop - start) / step))
    x = _weber.iota("int64" if whole else "float64", 0, (int(count),))
    if step != 1:
        x = x * step
    return _made(_weber.astype(x + start if start else x, dtype or ("int64" if whole else float32)), device)


def linspace(start: float, stop: float, num: int, dtype: DTypeLike = float32, endpoint: builtins.bool = True,
             device: Union[Device, str, None] = None) -> Array:
    """num numbers at equal distances; without endpoint, stop is not among them."""
    return _made(_weber._linspace(dtype, start, stop, num) if endpoint else _weber._linspace(dtype, start, stop, num + 1)[:num], device)


def eye(n_rows: int, n_cols: Optional[int] = None, k: int = 0, dtype: DTypeLike = float32, device: Union[Device, str, None] = None) -> Array:
    """A matrix with ones on diagonal k."""
    n_cols = n_rows if n_cols is None else n_cols
    k = builtins.max(-n_rows, builtins.min(k, n_cols))
    return _made(_weber.astype(arange(n_cols) == (arange(n_rows) + k)[:, None], dtype), device)


def uniform(shape: Shape = (), dtype: DTypeLike = float32, *, low: float = 0.0, high: float = 1.0) -> Array:
    """Random numbers from low to high, without high."""
    x = _weber._uniform(dtype, shape)
    return x if (low, high) == (0, 1) else x * (high - low) + low


def normal(shape: Shape = (), dtype: DTypeLike = float32, *, mean: float = 0.0, std: float = 1.0) -> Array:
    """Random numbers of this mean and standard deviation."""
    x = _weber._normal(dtype, shape)
    return x if (mean, std) == (0, 1) else x * std + mean


def randint(low: int, high: int, shape: Shape = (), dtype: DTypeLike = "int64") -> Array:
    """Random integers from low to high - 1."""
    if high <= low:
        raise ValueError("randint: high must be above low, got %d and %d" % (low, high))
    return _weber.astype(_weber._floor(_weber._uniform("float64", shape) * (high - low)) + low, dtype)


# ---- functions of a matrix ----


def matmul(a: Array, b: Array) -> Array:
    """a @ b."""
    return array(a) @ b


def tril(x: Array, k: int = 0) -> Array:
    """The elements on and below diagonal k; zeros above."""
    return _weber._triu(x, -k)


def triu(x: Array, k: int = 0) -> Array:
    """The elements on and above diagonal k; zeros below."""
    return _weber._tril(x, -k)


def diag(x: Array, k: int = 0) -> Array:
    """Of a vector the matrix with it on diagonal k; of a matrix its diagonal k."""
    return _weber._diag(x, -k)


def outer(x: Array, y: Array) -> Array:
    """The products x[i] y[j]."""
    return _weber._outer(y, x)


def where(condition: Array, x: Any = None, y: Any = None) -> Any:
    """x where the condition is true, else y; of the condition alone nonzero(condition)."""
    if x is None and y is None:
        return nonzero(condition)
    return _weber.select(condition, x, y)


def argwhere(condition: Array) -> Array:
    """The places (n, axes) of the true elements (int64)."""
    return _weber._where(condition)[:, ::-1]


def nonzero(x: Array) -> tuple[Array, ...]:
    """The places of the elements that are not 0, an array for each axis."""
    if array(x).ndim == 0:
        raise ValueError("nonzero: expected an array with axes, got one number")
    places = argwhere(array(x) != 0)
    return tuple(places[:, i] for i in range(places.shape[1]))


def einsum(subscripts: str, *arrays: Array) -> Array:
    """Einstein's sum: einsum('ij,jk->ik', a, b)."""
    text = subscripts.replace(" ", "")
    if "->" not in text:  # the letters that stand once, in alphabetical order
        text += "->" + "".join(sorted(c for c in set(text) - {","} if text.count(c) == 1))
    return _weber._einsum("->".join(",".join(t[::-1] for t in side.split(",")) for side in text.split("->")), arrays)


def dot(x: Array, y: Array) -> Array:
    """x @ y."""
    return array(x) @ y


# ---- shapes ----


def reshape(x: Array, shape: Shape, copy: Optional[builtins.bool] = None) -> Array:
    """The same elements in another shape; one size may be -1."""
    return _weber._reshape(x, shape)


def transpose(x: Array, axes: Optional[Sequence[int]] = None) -> Array:
    """The axes in this order (None: reversed)."""
    x = array(x)
    if axes is not None and sorted(_place(x, a) for a in axes) != list(range(x.ndim)):
        raise ValueError("transpose: expected each of the %d axes once, got %r; swapaxes(x, a, b) exchanges two" % (x.ndim, tuple(axes)))
    return array(x).T if axes is None else _weber.permute_dims(x, axes)


def matrix_transpose(x: Array) -> Array:
    """The last two axes exchanged."""
    return x.mT


def _place(x: Array, axis: int) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise ValueError("axis %d of an array of %d axes" % (axis, x.ndim))
    return axis % x.ndim


def moveaxis(x: Array, source: Union[int, Sequence[int]], destination: Union[int, Sequence[int]]) -> Array:
    """The axes `source` stand at the places `destination`."""
    places = [[_place(x, a) for a in ((given,) if isinstance(given, int) else given)] for given in (source, destination)]
    order = [i for i in range(x.ndim) if i not in places[0]]
    for to, axis in sorted(zip(places[1], places[0], strict=True)):
        order.insert(to, axis)
    return _weber.permute_dims(x, order) if x.ndim else x


def swapaxes(x: Array, a: int, b: int) -> Array:
    """Axes a and b exchanged."""
    order = list(range(x.ndim))
    order[a], order[b] = order[b], order[a]
    return _weber.permute_dims(x, order)


def concat(arrays: Sequence[Array], axis: Optional[int] = 0) -> Array:
    """Joins arrays along an axis; None: flattened."""
    if axis is None:
        return _weber._concat(-1, [_weber._reshape(a, -1) for a in arrays])
    return _weber._concat(axis, arrays)


concatenate = concat


def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Joins arrays along a new axis."""
    return concat([_weber.expand_dims(a, axis) for a in arrays], axis)


def unstack(x: Array, axis: int = 0) -> tuple[Array, ...]:
    """The parts along an axis, without it."""
    axis = _place(x, axis)
    return tuple(x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis]))


def split(x: Array, sections: Union[int, Sequence[int]], axis: int = 0) -> list[Array]:
    """Parts along an axis: so many equal ones, or cut before these places."""
    axis = _place(x, axis)
    n = x.shape[axis]
    if isinstance(sections, int):
        if sections < 1 or n % sections:
            raise ValueError("split: size %d has no %d equal parts" % (n, sections))
        sections = range(n // sections, n, n // sections)
    cuts = [0, *sections, n]
    return [x[(slice(None),) * axis + (slice(a, b),)] for a, b in zip(cuts, cuts[1:])]


def flip(x: Array, axis: Union[int, Sequence[int], None] = None) -> Array:
    """x in reverse along these axes (None: all)."""
    for a in range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis:
        x = _weber._flip(x, a)
    return x


def isclose(a: Array, b: Array, rtol: float = 1e-5, atol: float = 1e-8) -> Array:
    """Where elements are close: |a - b| <= atol + rtol |b|."""
    a, b = array(a), array(b)
    near = _weber.less_equal(_weber.abs(a - b), atol + rtol * _weber.abs(b))
    return _weber.logical_or(_weber.logical_and(near, _weber.isfinite(b)), _weber.equal(a, b))


def allclose(a: Array, b: Array, rtol: float = 1e-5, atol: float = 1e-8) -> builtins.bool:
    """True if all elements are close: |a - b| <= atol + rtol |b|."""
    return builtins.bool(isclose(a, b, rtol, atol).all())


# ---- devices ----


class device:
    """A device by its name, "CUDA:1" or "CPU". In a with statement, where new arrays are made:

        with wb.device("CUDA:1"):
            model = wb.Dense(2, 3)
    """

    def __init__(self, name: Union[str, Device]) -> None:
        self.device = _weber._get_device(name)
        self.before: list[Optional[Device]] = []

    def __enter__(self) -> Device:
        self.before.append(_weber._set_device(self.device))
        return self.device

    def __exit__(self, *error: Any) -> None:
        _weber._set_device(self.before.pop())

    def __str__(self) -> str:
        return str(self.device)

    def __repr__(self) -> str:
        return repr(self.device)


# ---- methods of Array ----


class _Place:
    """x.at[key]: where a new array differs from x."""

    def __init__(self, x: Array, key: Any) -> None:
        self.x, self.key = x, key

    def set(self, value: Any) -> Array:
        """x with these elements replaced."""
        return _weber._set(self.x, self.key, value)

    def get(self) -> Array:
        return self.x[self.key]

    def add(self, value: Any) -> Array:
        """x with value added to these elements; one that the key names twice gets both."""
        return self._combined(_weber.scatter_add, value)

    def multiply(self, value: Any) -> Array:
        return self._combined(_weber.scatter_mul, value)

    def min(self, value: Any) -> Array:
        return self._combined(_weber.scatter_min, value)

    def max(self, value: Any) -> Array:
        return self._combined(_weber.scatter_max, value)

    def _combined(self, scatter: Any, value: Any) -> Array:
        places = _weber._reshape(_weber.iota("int64", 0, self.x.size), self.x.shape)[self.key]
        values = _weber.broadcast_to(_weber.astype(value, self.x.dtype), places.shape)
        flat = scatter(reshape(self.x, -1), reshape(places, -1), reshape(values, -1), 0)
        return reshape(flat, self.x.shape)


class _At:
    def __init__(self, x: Array) -> None:
        self.x = x

    def __getitem__(self, key: Any) -> _Place:
        return _Place(self.x, key)


def _numpy(self: Array, dtype: Any = None, copy: Optional[builtins.bool] = None) -> Any:
    import numpy

    x = _weber.astype(self, float32) if self.dtype == bfloat16 else self
    a = numpy.asarray(memoryview(x))
    if dtype is not None and a.dtype != dtype:
        if copy is False:
            raise ValueError("another type needs a copy")
        return a.astype(dtype)
    return a.copy() if copy else a


def _tolist(self: Array) -> Any:
    x = _weber.astype(self, float32) if self.dtype in (bfloat16, float16) else self
    return memoryview(x).tolist() if x.ndim else x.item()


def _repr(self: Array) -> str:
    try:
        import numpy

        text = numpy.array2string(_numpy(self), separator=", ", prefix="Array(")
    except ImportError:
        text = repr(_tolist(self))
    return "Array(%s, dtype=%s%s)" % (text, self.dtype, "" if str(self.device) == "CPU" else ", device=%s" % self.device)


def _computed(self: Array) -> Array:
    _weber.eval(self)
    return self


def _method_reshape(self: Array, *shape: Any) -> Array:
    return reshape(self, shape[0] if len(shape) == 1 else shape)


def _method_transpose(self: Array, *axes: Any) -> Array:
    return transpose(self, (axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes) or None)


def _flattened(self: Array, start_axis: int = 0) -> Array:
    """The axes from start_axis on as one."""
    shape = self.shape
    place = _place(self, start_axis) if shape else 0
    return reshape(self, (*shape[:place], math.prod(shape[place:])))


def _format(self: Array, spec: str) -> str:
    return format(self.item(), spec) if self.size == 1 and spec else repr(self)


def _reduce(self: Array, protocol: int) -> tuple[Any, ...]:
    return _unpickled, (bytes(memoryview(_weber.astype(self, float32) if self.dtype in (bfloat16, float16) else self)), self.shape, str(self.dtype))


def _unpickled(data: bytes, shape: tuple[int, ...], dtype: str) -> Array:
    formats: dict[str, Any] = {"float32": "f", "float64": "d", "float16": "f", "bfloat16": "f", "int32": "i", "int64": "q", "uint8": "B", "bool": "?"}
    view = memoryview(data).cast(formats[dtype])
    return _weber._reshape(array(view, dtype), shape)


for _name, _value in {
    "__array__": _numpy, "numpy": _numpy, "tolist": _tolist, "__repr__": _repr, "__format__": _format, "__reduce_ex__": _reduce,
    "reshape": _method_reshape, "transpose": _method_transpose, "at": property(_At), "__array_ufunc__": None,
    "flatten": _flattened, "__round__": lambda self, digits=None: round(self.item(), digits), "eval": _computed, "dot": dot,
    "to_device": lambda self, d, stream=None: _weber.to(self, d), "copy": lambda self: self, "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self, "__array_namespace__": lambda self, api_version=None: __import__("weber"),
}.items():
    setattr(Array, _name, _value)

__all__ = [
    "allclose", "arange", "argwhere", "asarray", "concat", "concatenate", "device", "diag", "dot",
    "e", "einsum", "empty", "empty_like", "eye", "flip", "from_dlpack", "full", "full_like", "inf",
    "isclose", "linspace", "matmul", "matrix_transpose", "moveaxis", "nan", "newaxis", "nonzero", "normal",
    "ones", "ones_like", "outer", "pi", "randint", "reshape", "split", "stack", "swapaxes", "transpose",
    "tril", "triu", "uniform", "unstack", "where", "zeros", "zeros_like",
]
