"""Derivatives of functions of arrays."""
from typing import Any, Callable, Sequence

from . import _weber
from ._weber import Array


def gradient(f: Callable[..., Array], *args: Any) -> Any:
    """The gradients of f(*args), a number, by each argument: a tuple, or for one argument its gradient. The gradient of a model is a
    Gradients, for update(); None where f does not depend on an array. (Flux's gradient)"""
    gradients = _weber._value_and_grad(f, args)[1]
    return gradients[0] if len(args) == 1 else tuple(gradients)


def value_and_grad(f: Callable[..., Array], argnums: Any = 0) -> Callable[..., Any]:
    """A function of f's arguments that returns (f(*args), its gradient by argument argnums, or by each of them). It is zeros for an
    array on which f does not depend. (JAX's)"""

    def both(*args: Any) -> Any:
        wanted = [range(len(args))[i] for i in ((argnums,) if isinstance(argnums, int) else argnums)]
        chosen = tuple(args[i] for i in wanted)

        def of_chosen(*given: Any) -> Array:
            places = dict(zip(wanted, given))
            return f(*[places.get(i, a) for i, a in enumerate(args)])

        value, gradients = _weber._value_and_grad(of_chosen, chosen)
        gradients = [_weber.array(a) * 0 if g is None else g for g, a in zip(gradients, chosen)]
        return value, gradients[0] if isinstance(argnums, int) else tuple(gradients)

    return both


def grad(f: Callable[..., Array], argnums: Any = 0) -> Callable[..., Any]:
    """A function that returns the gradient alone: grad(grad(f))(x)."""
    both = value_and_grad(f, argnums)
    return lambda *args: both(*args)[1]


def jacobian(f: Callable[[Array], Array], x: Array) -> Array:
    """J (elements of f(x), elements of x): element (k, i) is the derivative of result k by x's element i."""
    return _weber._matrix_of(f, (x,), "jacobian")


def hessian(f: Callable[[Array], Array], x: Array) -> Array:
    """H (n, n) of a function whose result is one number."""
    return _weber._matrix_of(f, (x,), "hessian")


def hessian_diagonal(f: Callable[[Array], Array], x: Array) -> Array:
    """The diagonal of H, with the shape of x."""
    return _weber._matrix_of(f, (x,), "diagonal")


def jvp(f: Callable[..., Array], arrays: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
    """(f(*arrays), its derivative in the direction of the tangents)."""
    y, t = _weber._along(f, tuple(arrays), tuple(tangents), "jvp")
    return y, t


def hvp(f: Callable[..., Array], arrays: Sequence[Array], vectors: Sequence[Array]) -> tuple[Array, ...]:
    """The Hessian of f times vectors, for each array."""
    products: tuple[Array, ...] = _weber._along(f, tuple(arrays), tuple(vectors), "hvp")
    return products


def gradient_each(loss: Callable[..., Array], model: Any, *inputs: Any) -> Any:
    """The gradients of each observation by itself: of loss(model, *inputs), called once, with inputs of one observation, (1, ...), and
    in training mode; it returns one number. A dict of arrays (N, ...), for N observations along the inputs' first axis; for an array in
    the place of the model, its gradients. Layers that compute with the whole batch, as BatchNorm does in training, are an error."""
    found = _weber._gradient_each(loss, model, inputs)
    return dict(zip(*found)) if isinstance(model, _weber.Layer) else found


__all__ = ["gradient", "value_and_grad", "grad", "jacobian", "hessian", "hessian_diagonal", "jvp", "hvp", "gradient_each"]
