"""Types of elements, and names for annotations."""
from typing import Any, Callable, Sequence, Union

from . import _weber
from ._weber import Array, Device, Gradients, Layer, Loader, Optimiser, Rule, Schedule  # noqa: F401


class DType(str):
    """The type of an array's elements: equal to its name, "float32"."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "weber." + str(self)

    @property
    def itemsize(self) -> int:
        return {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}.get(self, 1)


float32 = DType("float32")
float64 = DType("float64")
float16 = DType("float16")
bfloat16 = DType("bfloat16")
int32 = DType("int32")
int64 = DType("int64")
uint8 = DType("uint8")
bool = DType("bool")  # noqa: A001
_weber._set_dtypes([float32, float64, float16, bfloat16, int32, int64, uint8, bool])

DTypeLike = Union[DType, str, type]
ArrayLike = Union[Array, float, int, Sequence[Any], Any]
Activation = Union[Callable[[Array], Array], str]
Initialiser = str
Connection = str

__all__ = ["DType", "float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool"]
