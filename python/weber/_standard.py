"""What the Array API standard (2024.12) has beyond arrays, operations and reductions of the library.

Made of the library's operations, so that all of it is differentiated, runs on every device and is computed when it is needed.
"""
import builtins
import math
from typing import Any, Literal, NamedTuple, Optional, Sequence, Union

from . import _weber
from ._arrays import Shape, _made, arange, concat, full_like, reshape, stack, transpose, zeros
from ._types import ArrayLike, DType, DTypeLike, bfloat16, bool, float16, float32, float64, int32, int64, uint8  # noqa: A004
from ._weber import Array, Device, abs, array, cos, exp, expm1, log, log1p, maximum, minimum, select, sign, sin, sqrt  # noqa: A004

__array_api_version__ = "2024.12"
_LN2 = math.log(2.0)


# ---- functions of one number ----


def positive(x: Array) -> Array:
    """x"""
    return array(x)


def _whole(name: str, doc: str) -> Any:
    f = getattr(_weber, "_" + name)

    def rounded(x: Array) -> Array:
        x = array(x)
        y: Array = f(x) if isdtype(x.dtype, "real floating") else x
        return y

    rounded.__name__, rounded.__qualname__, rounded.__doc__ = name, name, doc
    return rounded


floor = _whole("floor", "The greatest integer that is not above x; integers stay.")
ceil = _whole("ceil", "The least integer that is not below x; integers stay.")
trunc = _whole("trunc", "x without its fraction; integers stay.")
round = _whole("round", "The nearest integer, of two the even one; integers stay.")  # noqa: A001


def tan(x: Array) -> Array:
    """sin(x) / cos(x)"""
    return sin(x) / cos(x)


def sinh(x: Array) -> Array:
    """(e^x - e^-x) / 2"""
    x = array(x)
    return (expm1(x) - expm1(-x)) * 0.5


def cosh(x: Array) -> Array:
    """(e^x + e^-x) / 2"""
    x = array(x)
    return (exp(x) + exp(-x)) * 0.5


def _real(x: Any) -> Array:
    a: Array = array(x)
    return a if isdtype(a.dtype, "real floating") else a.astype(float32)


def atan(x: Array) -> Array:
    """The angle in radians, from -pi / 2 to pi / 2, whose tangent is x."""
    x = _real(x)
    a = abs(x)
    is_steep = a > 1
    r = select(is_steep, 1.0 / maximum(a, 1.0), minimum(a, 1.0))
    for _ in range(2):  # the tangent of half the angle, and of a quarter: below 0.2, where the series is short
        r = r / (1.0 + sqrt(1.0 + r * r))
    square, series = r * r, r * 0 + 1 / 23
    for k in range(21, 0, -2):
        series = 1 / k - square * series
    angle = 4.0 * r * series
    angle = select(is_steep, math.pi / 2 - angle, angle)
    return select(x < 0, -angle, select(x == 0, x, angle))  # of -0 it is -0


def asin(x: Array) -> Array:
    """The angle from -pi / 2 to pi / 2 whose sine is x."""
    x = _real(x)
    return 2.0 * atan(x / (1.0 + sqrt(1.0 - x * x)))


def acos(x: Array) -> Array:
    """The angle from 0 to pi whose cosine is x."""
    x = _real(x)
    return 2.0 * atan(sqrt((1.0 - x) / (1.0 + x)))


def asinh(x: Array) -> Array:
    """log(x + sqrt(x^2 + 1))"""
    x = _real(x)
    a = abs(x)
    small = minimum(a, 1e4)
    near = log1p(small + small * small / (1.0 + sqrt(1.0 + small * small)))
    return select(x == 0, x, sign(x) * select(a > 1e4, log(maximum(a, 1e4)) + _LN2 + 0.25 / maximum(a, 1e4) ** 2, near))


def acosh(x: Array) -> Array:
    """log(x + sqrt(x^2 - 1)), NaN below 1"""
    x = _real(x)
    small = minimum(x, 1e4) - 1.0
    near = log1p(small + sqrt(small) * sqrt(small + 2.0))
    return select(x > 1e4, log(maximum(x, 1e4)) + _LN2 - 0.25 / maximum(x, 1e4) ** 2, near)


def atanh(x: Array) -> Array:
    """log((1 + x) / (1 - x)) / 2"""
    x = _real(x)
    return (log1p(x) - log1p(-x)) * 0.5


def log2(x: Array) -> Array:
    """The logarithm to the base 2."""
    return log(x) / _LN2


def log10(x: Array) -> Array:
    """The logarithm to the base 10."""
    return log(x) / math.log(10.0)


def signbit(x: Array) -> Array:
    """True where x is negative, or -0."""
    x = array(x)
    if not isdtype(x.dtype, "real floating"):
        return x < 0
    return (x < 0) | ((x == 0) & (1.0 / x < 0))


def real(x: Array) -> Array:
    """x: there are no complex arrays."""
    return array(x)


def conj(x: Array) -> Array:
    """x: there are no complex arrays."""
    return array(x)


def imag(x: Array) -> Array:
    """Zeros: there are no complex arrays."""
    return array(x) * 0


# ---- of two ----


def _pair(x1: Any, x2: Any) -> tuple[Array, Array]:
    """Both as arrays of the type of an operation on them."""
    dtype = result_type(x1, x2)
    return array(x1, dtype), array(x2, dtype)


def pow(x1: ArrayLike, x2: ArrayLike) -> Array:  # noqa: A001
    """x1 to the power of x2; of integers exact."""
    a, b = _pair(x1, x2)
    return a**b


def floor_divide(x1: Array, x2: Array) -> Array:
    """x1 // x2"""
    a, b = _pair(x1, x2)
    return a // b


def copysign(x1: Array, x2: Array) -> Array:
    """|x1| with the sign of x2."""
    x1, x2 = _pair(x1, x2)
    a = abs(x1)
    return select(signbit(x2), -a, a)


def atan2(x1: Array, x2: Array) -> Array:
    """The angle of the point (x2, x1), from -pi to pi."""
    x1, x2 = _pair(x1, x2)
    y, x = abs(x1), abs(x2)
    high, low = maximum(x, y), minimum(x, y)
    ratio = select(high == low, select(high == 0, 0.0, 1.0), low / high)
    angle = atan(_weber.astype(ratio, high.dtype))
    angle = select(y > x, math.pi / 2 - angle, angle)
    angle = select(signbit(x2), math.pi - angle, angle)
    angle = select(_weber.isnan(high), math.nan, angle)
    return copysign(_weber.astype(angle, high.dtype), x1)


def hypot(x1: Array, x2: Array) -> Array:
    """sqrt(x1^2 + x2^2), without overflow between."""
    a, b = (abs(v) for v in _pair(x1, x2))
    high = maximum(a, b)
    scale = select((high == 0) | ~_weber.isfinite(high), 1.0, high)
    root = scale * sqrt((a / scale) ** 2 + (b / scale) ** 2)
    return select(_weber.isinf(a) | _weber.isinf(b), math.inf, root)


def logaddexp(x1: Array, x2: Array) -> Array:
    """log(e^x1 + e^x2)"""
    x1, x2 = _pair(x1, x2)
    high = maximum(x1, x2)
    difference = select(x1 == x2, 0.0, x1 - x2)  # also where both are the same infinity
    return high + log1p(exp(-abs(difference)))


def logical_xor(x1: Array, x2: Array) -> Array:
    """True where one of the two is true."""
    return _weber.not_equal(_weber.astype(x1, bool), _weber.astype(x2, bool))


def clip(x: Array, min: Any = None, max: Any = None) -> Array:  # noqa: A002
    """x, but at least min and at most max."""
    x = array(x)
    y = x if min is None else maximum(x, min)
    y = y if max is None else minimum(y, max)
    return _weber.astype(y, x.dtype)


# ---- bits ----


_TABLES: dict[str, list[int]] = {}
_BITS = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}


def _bitwise(name: str, x1: Any, x2: Any) -> Array:
    """Of bool: the logical operation. Of integers byte by byte, by a table: the library has no operations on bits."""
    dtype = result_type(x1, x2)
    if dtype == bool:
        return {"and": _weber.logical_and, "or": _weber.logical_or, "xor": _weber.not_equal}[name](x1, x2)
    if not isdtype(dtype, "integral"):
        raise TypeError("bitwise_%s: expected integers or bool, got %s" % (name, dtype))
    if name not in _TABLES:
        _TABLES[name] = [_BITS[name](i, j) for i in range(256) for j in range(256)]
    table = array(memoryview(bytes(_TABLES[name])), int64)
    x, y = (_weber.astype(v, int64) for v in (x1, x2))
    result: Any = 0
    for k in range(dtype.itemsize):
        result = result + table[(x // 256**k % 256) * 256 + y // 256**k % 256] * 256**k if k < 7 else result + _top(table, x, y)
    if dtype == int32:  # 2^31 and above are the negative numbers
        result = select(result >= 2**31, result - 2**32, result)
    return _weber.astype(result, dtype)


def _top(table: Array, x: Array, y: Array) -> Array:
    """The highest byte of int64: from 128 on it is negative."""
    byte = table[(x // 2**56 % 256) * 256 + y // 2**56 % 256]
    return select(byte >= 128, byte - 256, byte) * 2**56


def bitwise_and(x1: Array, x2: Array) -> Array:
    """The bits that both have; of bool: both."""
    return _bitwise("and", x1, x2)


def bitwise_or(x1: Array, x2: Array) -> Array:
    """The bits that one of them has; of bool: one of them."""
    return _bitwise("or", x1, x2)


def bitwise_xor(x1: Array, x2: Array) -> Array:
    """The bits that differ; of bool: where they differ."""
    return _bitwise("xor", x1, x2)


def bitwise_invert(x: Array) -> Array:
    """The other bits; of bool: not x."""
    x = array(x)
    if x.dtype == bool:
        return _weber.logical_not(x)
    if not isdtype(x.dtype, "integral"):
        raise TypeError("~: expected integers or bool, got %s" % x.dtype)
    return 255 - x if x.dtype == uint8 else -1 - x


def bitwise_left_shift(x1: Array, x2: Array) -> Array:
    """x1 times 2^x2; the bits above the type's are lost."""
    dtype = _integers("<<", x1, x2)
    powers = _weber.astype(2, int64) ** _weber.astype(x2, int64)
    bits = 8 * dtype.itemsize
    shifted = select(_weber.greater_equal(x2, bits), 0, _weber.astype(x1, int64) * powers)
    if dtype != int64:  # what is above the type's bits
        shifted = shifted % 2**bits
        shifted = shifted if dtype == uint8 else select(shifted >= 2 ** (bits - 1), shifted - 2**bits, shifted)
    return _weber.astype(shifted, dtype)


def bitwise_right_shift(x1: Array, x2: Array) -> Array:
    """x1 / 2^x2, rounded down."""
    dtype = _integers(">>", x1, x2)
    places = minimum(_weber.astype(x2, int64), 62)
    halves = _weber.astype(x1, int64) // _weber.astype(2, int64) ** places
    return _weber.astype(select(_weber.greater_equal(x2, 63), halves // 2, halves), dtype)


def _integers(what: str, x1: Any, x2: Any) -> DType:
    dtype = result_type(x1, x2)
    if not isdtype(dtype, "integral"):
        raise TypeError("%s: expected integers, got %s" % (what, dtype))
    return dtype


# ---- types ----

_KINDS = {"bool": {bool}, "signed integer": {int32, int64}, "unsigned integer": {uint8}, "real floating": {float16, bfloat16, float32, float64},
          "complex floating": set()}
_KINDS["integral"] = _KINDS["signed integer"] | _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] | _KINDS["real floating"]


def isdtype(dtype: DTypeLike, kind: Any) -> builtins.bool:
    """Whether it is of the kind "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" or
    "numeric", is this type, or one of several."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, DType):
        return dtype == kind
    if kind not in _KINDS:
        raise ValueError("isdtype: expected one of %s, got %r" % (list(_KINDS), kind))
    return dtype in _KINDS[kind]


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The type of an operation on these; a Python number takes the type of the arrays that it is combined with."""
    if not arrays_and_dtypes:
        raise ValueError("result_type: expected at least one array or type")
    numbers = [a for a in arrays_and_dtypes if isinstance(a, (builtins.bool, int, float))]
    types = [a.dtype if isinstance(a, Array) else zeros((), a).dtype for a in arrays_and_dtypes if not isinstance(a, (builtins.bool, int, float))]
    dtype = types[0] if types else array(numbers).dtype
    for other in types[1:]:
        dtype = dtype if other == dtype else (zeros((), dtype) + zeros((), other)).dtype
    for number in numbers:
        dtype = dtype if dtype == bool and isinstance(number, builtins.bool) else (zeros((), dtype) + number).dtype
    return dtype


def can_cast(from_: Any, to: DTypeLike) -> builtins.bool:
    """Whether the type becomes `to` when it is combined with it."""
    return result_type(from_.dtype if isinstance(from_, Array) else from_, to) == to


class finfo_object(NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any) -> finfo_object:  # noqa: A002
    """The limits of a type of reals."""
    dtype = type.dtype if isinstance(type, Array) else zeros((), type).dtype
    digits, exponent = {float16: (10, 16), bfloat16: (7, 128), float32: (23, 128), float64: (52, 1024)}.get(dtype, (0, 0))
    if not digits:
        raise TypeError("finfo: %s is not a type of reals" % dtype)
    largest = (2 - 2.0**-digits) * 2.0 ** (exponent - 1)
    return finfo_object(8 * dtype.itemsize, 2.0**-digits, largest, -largest, 2.0 ** (2 - exponent), dtype)


def iinfo(type: Any) -> iinfo_object:  # noqa: A002
    """The limits of a type of integers."""
    dtype = type.dtype if isinstance(type, Array) else zeros((), type).dtype
    if not isdtype(dtype, "integral"):
        raise TypeError("iinfo: %s is not a type of integers" % dtype)
    bits = 8 * dtype.itemsize
    return iinfo_object(bits, 255, 0, dtype) if dtype == uint8 else iinfo_object(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)


class _Information:
    """What the standard asks of a library: __array_namespace_info__()."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> Device:
        return zeros(()).device

    def devices(self) -> list[Device]:
        return list({str(d): d for d in (_weber._get_device("CPU"), zeros(()).device)}.values())

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        return {"real floating": float32, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        all_types = (bool, int32, int64, uint8, float32, float64)
        return {str(t): t for t in all_types if kind is None or isdtype(t, kind)}


def __array_namespace_info__() -> _Information:
    """The types, devices and limits of the library, as the Array API standard asks for them."""
    return _Information()


# ---- shapes ----


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape of an operation on arrays of these shapes."""
    result: list[int] = []
    for shape in shapes:
        result = [1] * (len(shape) - len(result)) + result
        for i, n in enumerate(shape, len(result) - len(shape)):
            if n != 1 and result[i] != 1 and n != result[i]:
                raise ValueError("the shapes %s do not fit together" % ", ".join(map(str, shapes)))
            result[i] = n if result[i] == 1 else result[i]
    return tuple(result)


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """The arrays in one common shape."""
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return [_weber.broadcast_to(a, shape) for a in arrays]


def meshgrid(*arrays: Array, indexing: Literal["xy", "ij"] = "xy") -> list[Array]:
    """Coordinates of a grid, an array for each vector; "xy" exchanges the first two axes."""
    if indexing not in ("xy", "ij"):
        raise ValueError("meshgrid: indexing is 'xy' or 'ij', got %r" % (indexing,))
    n = len(arrays)
    grids = broadcast_arrays(*(reshape(a, (1,) * i + (-1,) + (1,) * (n - 1 - i)) for i, a in enumerate(arrays)))
    return [_weber.permute_dims(g, (1, 0, *range(2, n))) for g in grids] if indexing == "xy" and n > 1 else grids


def repeat(x: Array, repeats: Union[int, Array], axis: Optional[int] = None) -> Array:
    """Each element along an axis (None: of x flattened) `repeats` times, a number or one for each: PyTorch's repeat_interleave."""
    x = array(x)
    if axis is None:
        x, axis = reshape(x, -1), 0
    if isinstance(repeats, int):
        return _weber._repeat(x, repeats, axis)
    repeats = _weber.broadcast_to(array(repeats), (x.shape[axis],))
    return _weber._take(x, searchsorted(_weber.cumsum(repeats, 0), arange(int(repeats.sum())), side="right"), axis)


def roll(x: Array, shift: Union[int, Sequence[int]], axis: Union[int, Sequence[int], None] = None) -> Array:
    """Moved along axes, cyclically: element i goes to place i + shift. axis None: of x flattened."""
    x = array(x)
    if axis is None:
        if not isinstance(shift, int):
            raise TypeError("roll: several shifts need as many axes")
        return reshape(_weber._roll(reshape(x, -1), shift, 0), x.shape)
    axes = (axis,) if isinstance(axis, int) else axis
    for a, s in zip(axes, [shift] * len(axes) if isinstance(shift, int) else shift, strict=True):
        x = _weber._roll(x, s, a)
    return x


def take(x: Array, indices: Array, axis: Optional[int] = None) -> Array:
    """The parts of x at these places of an axis; None: of a vector."""
    x = array(x)
    if axis is None and x.ndim != 1:
        raise ValueError("take: an array of %d axes needs the argument axis" % x.ndim)
    axis = 0 if axis is None else axis
    return _weber._take(x, _from_the_end(indices, x.shape[axis]), axis)


def take_along_axis(x: Array, indices: Array, axis: int = -1) -> Array:
    """Elements of x at these places of an axis, one for each element of the other axes: PyTorch's gather."""
    x = array(x)
    return _weber._take_along_axis(x, _from_the_end(indices, x.shape[axis]), axis)


def _from_the_end(indices: Any, n: int) -> Array:
    indices = array(indices)
    return indices if indices.dtype == uint8 else select(indices < 0, indices + n, indices)


# ---- sorting, sets ----


def sort(x: Array, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Array:
    """Sorted along an axis, equal elements in their order."""
    return _weber._sort(x, axis, descending)


def argsort(x: Array, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Array:
    """The places (int64) of the elements in sorted order; of equal ones in their order."""
    return _weber.astype(_weber._argsort(x, axis, descending), int64)


def searchsorted(x1: Array, x2: Array, side: Literal["left", "right"] = "left", sorter: Optional[Array] = None) -> Array:
    """Where elements of x2 stand in the sorted vector x1: the number of elements that are less, or with "right" not greater."""
    if side not in ("left", "right"):
        raise ValueError("searchsorted: side is 'left' or 'right', got %r" % (side,))
    x1, x2 = array(x1), array(x2)
    if sorter is not None:
        x1 = _weber._take(x1, sorter, 0)
    n = x1.shape[0]
    low, high = full_like(x2, 0, int64), full_like(x2, n, int64)
    for _ in range(n.bit_length()):
        middle = (low + high) // 2
        at = x1[minimum(middle, n - 1)]
        goes_on = (low < high) & (at < x2 if side == "left" else at <= x2)
        low, high = select(goes_on, middle + 1, low), select(goes_on, high, middle)
    return low


class unique_all_result(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class unique_counts_result(NamedTuple):
    values: Array
    counts: Array


class unique_inverse_result(NamedTuple):
    values: Array
    inverse_indices: Array


def unique_all(x: Array) -> unique_all_result:
    """The different values in sorted order, where each is first, the number in `values` of each element of x, and how many of each
    there are. NaNs all differ."""
    x = array(x)
    flat = reshape(x, -1)
    n = flat.shape[0]
    order = argsort(flat)
    ordered = _weber._take(flat, order, 0)
    is_first = concat([zeros((builtins.min(n, 1),), bool) == 0, ordered[1:] != ordered[:-1]])
    starts = reshape(_weber._where(is_first), -1)
    numbers = _weber.cumsum(_weber.astype(is_first, int64), 0) - 1
    inverse = _weber._take(numbers, argsort(order), 0)
    counts = concat([starts[1:], full_like(starts[:1], n)]) - starts
    return unique_all_result(ordered[starts], order[starts], reshape(inverse, x.shape), counts)


def unique_counts(x: Array) -> unique_counts_result:
    """The different values, and how many of each there are."""
    found = unique_all(x)
    return unique_counts_result(found.values, found.counts)


def unique_inverse(x: Array) -> unique_inverse_result:
    """The different values, and for each element of x its number among them."""
    found = unique_all(x)
    return unique_inverse_result(found.values, found.inverse_indices)


def unique_values(x: Array) -> Array:
    """The different values, sorted."""
    return unique_all(x).values


# ---- sums and products ----


def count_nonzero(x: Array, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """How many elements are not 0."""
    return _weber.sum(_weber.astype(_weber.not_equal(x, 0), int64), axis=axis, keepdims=keepdims)


def _cumulative(f: Any, first: int, x: Any, axis: Optional[int], dtype: Any, include_initial: builtins.bool) -> Array:
    x = array(x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError("an array of %d axes needs the argument axis" % x.ndim)
        axis = 0
    x = _weber.astype(x, dtype or (x.dtype if isdtype(x.dtype, "real floating") else int64))
    y = _weber.astype(f(x, axis), x.dtype)
    if include_initial:
        shape = list(x.shape)
        shape[axis] = 1
        y = concat([full_like(zeros(tuple(shape)), first, y.dtype), y], axis)
    return y


def cumulative_sum(x: Array, axis: Optional[int] = None, dtype: Optional[DTypeLike] = None, include_initial: builtins.bool = False) -> Array:
    """The sums of all elements up to each; include_initial: after a 0."""
    return _cumulative(_weber.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Array, axis: Optional[int] = None, dtype: Optional[DTypeLike] = None, include_initial: builtins.bool = False) -> Array:
    """The products of all elements up to each; include_initial: after a 1."""
    return _cumulative(_weber.cumprod, 1, x, axis, dtype, include_initial)


def diff(x: Array, axis: int = -1, n: int = 1, prepend: Optional[Array] = None, append: Optional[Array] = None) -> Array:
    """The differences of neighbours along an axis, n times."""
    parts = [array(a) for a in (prepend, x, append) if a is not None]
    x = concat(parts, axis) if len(parts) > 1 else parts[0]
    before = (slice(None),) * (axis % x.ndim)
    for _ in range(n):
        a, b = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = a != b if x.dtype == bool else a - b
    return x


def vecdot(x1: Array, x2: Array, axis: int = -1) -> Array:
    """The sums of x1 x2 along an axis."""
    x1, x2 = array(x1), array(x2)
    if not (-builtins.min(x1.ndim, x2.ndim) <= axis < 0 or (0 <= axis and x1.ndim == x2.ndim)) or x1.shape[axis] != x2.shape[axis]:
        raise ValueError("vecdot: the shapes %s and %s do not fit along axis %d" % (x1.shape, x2.shape, axis))
    return _weber.astype(_weber.sum(x1 * x2, axis=axis), result_type(x1, x2))


def tensordot(x1: Array, x2: Array, axes: Any = 2) -> Array:
    """The sums of products along the last axes of x1 and the first ones of x2; or along the axes of two lists."""
    x1, x2 = array(x1), array(x2)
    if isinstance(axes, int):
        axes = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    first, second = ([a % x.ndim for a in given] for x, given in zip((x1, x2), axes))
    if [x1.shape[a] for a in first] != [x2.shape[a] for a in second]:
        raise ValueError("tensordot: the sizes of the axes %s of %s and %s of %s differ" % (first, x1.shape, second, x2.shape))
    left, right = ([i for i in range(x.ndim) if i not in gone] for x, gone in ((x1, first), (x2, second)))
    inner = math.prod(x1.shape[a] for a in first)
    rows, columns = math.prod(x1.shape[i] for i in left), math.prod(x2.shape[i] for i in right)
    a = reshape(transpose(x1, left + first) if x1.ndim else x1, (rows, inner))
    b = reshape(transpose(x2, second + right) if x2.ndim else x2, (inner, columns))
    return reshape(a @ b, tuple(x1.shape[i] for i in left) + tuple(x2.shape[i] for i in right))


# ---- operators ----


def _reflected(f: Any) -> Any:
    return lambda self, other: f(other, self)


def _operator(f: Any) -> Any:
    return lambda self, other: f(self, other) if isinstance(other, (Array, int)) or hasattr(other, "__array__") else NotImplemented


for _name, _value in {"take": take, "take_along_axis": take_along_axis, "repeat": repeat, "roll": roll, "sort": sort, "argsort": argsort, "clip": clip, "floor": floor, "ceil": ceil,
                      "trunc": trunc, "round": round, "pow": pow}.items():
    setattr(Array, _name, _value)
for _name, _value in {"and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor, "lshift": bitwise_left_shift, "rshift": bitwise_right_shift}.items():
    setattr(Array, "__%s__" % _name, _operator(_value))
    setattr(Array, "__r%s__" % _name, _operator(_reflected(_value)))
setattr(Array, "__invert__", bitwise_invert)

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "acos", "acosh", "argsort", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "broadcast_arrays", "broadcast_shapes", "can_cast", "ceil",
    "clip", "conj", "copysign", "cosh", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "finfo", "floor", "floor_divide", "hypot", "iinfo", "imag",
    "isdtype", "log10", "log2", "logaddexp", "logical_xor", "meshgrid", "positive", "pow", "real", "repeat", "result_type", "roll", "round", "searchsorted", "signbit",
    "sinh", "sort", "take", "take_along_axis", "tan", "tensordot", "trunc", "unique_all", "unique_counts", "unique_inverse", "unique_values", "vecdot",
]
