"""Loops over sequences, what layers compute, falling learning rates, the log."""
import atexit
from typing import Any, Callable, Optional

from . import _weber
from ._arrays import full, reshape
from ._weber import Array, Optimiser, array
from ._words import message

_watching: Any = None


def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: Optional[int] = None, *, reverse: bool = False) -> tuple[Any, Any]:
    """carry, ys = scan(f, init, xs): carry, y = f(carry, x) for each x along the first axis of xs, as one operation (JAX's).

    init, xs and y are an array or a tuple of arrays; xs None: `length` steps without inputs; y None: no outputs. f is called twice,
    on arrays without numbers, however many steps there are; it cannot read, print or branch by what it computes.
    """
    carries, inputs = tuple(array(c) for c in _tuple(init)), () if xs is None else tuple(array(x) for x in _tuple(xs))
    kinds: list[Any] = []

    def body(carry: tuple[Array, ...], x: tuple[Array, ...]) -> tuple[Any, Any]:
        result = f(carry if isinstance(init, tuple) else carry[0], None if xs is None else x if isinstance(xs, tuple) else x[0])
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError("scan: the function returns a pair, (carry, y)")
        kinds.append(result[1])
        return tuple(array(c) for c in _tuple(result[0])), () if result[1] is None else tuple(array(y) for y in _tuple(result[1]))

    count = len(body(carries, tuple(full(x.shape[1:], 0, x.dtype) for x in inputs))[1])
    found = _weber._scan(body, carries, inputs, count, -1 if length is None else length, reverse)
    carry, ys = found[: len(carries)], found[len(carries):]
    return carry if isinstance(init, tuple) else carry[0], None if kinds[0] is None else ys if isinstance(kinds[0], tuple) else ys[0]


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def hook(x: Array, f: Callable[[Array], Optional[Array]]) -> Array:
    """x; the gradient that flows back through the result is passed to f, and reaches x as f returns it (None: as it is)."""

    def pullback(result: Array, cotangent: Array, x: Array) -> Array:
        changed = f(cotangent)
        return cotangent if changed is None else changed

    y: Array = _weber.function(lambda x: reshape(x, x.shape), pullback, array(x))
    return y


class watch_layers:
    """Within the with statement f(path, x, is_gradient) is called for the result of each layer, and for its gradient:

        with wb.watch_layers(lambda path, x, is_gradient: print(path, x.shape, wb.abs(x).max())):
            model(x)

    A gradient has no numbers before the gradients' function has returned: keep it, and read it then.
    """

    def __init__(self, f: Callable[[str, Array, bool], Any]) -> None:
        self.f = f

    def __enter__(self) -> "watch_layers":
        global _watching
        self.before, _watching = _watching, self.f
        _weber._watch(self.f)
        return self

    def __exit__(self, *error: Any) -> None:
        global _watching
        _watching = self.before
        _weber._watch(self.before)


class Plateau:
    """Lowers the learning rates of an optimiser when a score no longer falls: PyTorch's ReduceLROnPlateau.

        plateau = wb.Plateau(factor=0.1, patience=10)
        plateau.step(optimiser, validation_loss)     # after each epoch
    """

    def __init__(self, factor: float = 0.1, patience: int = 10, threshold: float = 1e-4, cooldown: int = 0, least: float = 0.0) -> None:
        self.state = _weber._plateau_state(factor, patience, threshold, cooldown, least)

    def step(self, optimiser: Optimiser, score: Any) -> None:
        """Multiplies the rates by factor if for more than `patience` calls no score was below the best by `threshold`."""
        _weber._plateau(self.state, optimiser, float(score))


class Text(str):
    """A text that is shown as it is."""

    def __repr__(self) -> str:
        return str(self)


def summary(model: Any, *shapes: Any) -> str:
    """A text with a line for each layer that is applied to inputs of these shapes: its path, itself, the shape of its result, its
    numbers of parameters and of multiply-adds. Nothing is computed."""
    return Text(_weber.summary(model, *shapes))


_LEVELS = {"error": 40, "warn": 30, "info": 20, "debug": 10}


def log_to(receiver: Any) -> None:
    """Weber's messages go to receiver(level, text), where level is "error", "warn", "info" or "debug", or to a logger of the module
    logging; None: to standard error, as at first. They are told at the end of the call in which they were written. WEBER_LOG=info in the
    environment asks for more of them; at first these are warnings and errors.

        wb.log_to(logging.getLogger("weber"))
    """
    if receiver is None:
        _weber._log_to(None)
    elif hasattr(receiver, "log"):
        _weber._log_to(lambda level, text: receiver.log(_LEVELS[level], "%s", message(text)))
    elif callable(receiver):
        _weber._log_to(lambda level, text: receiver(level, message(text)))
    else:
        raise TypeError("log_to takes a function, a logger or None, got %r" % (receiver,))


atexit.register(_weber._log_to, None)  # what is logged later is for standard error

__all__ = ["scan", "hook", "watch_layers", "Plateau", "log_to", "summary"]
