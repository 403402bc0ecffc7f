"""Saving and loading: paths, bytes, pickles."""
import os
from typing import Any, Callable, Optional, Union

from . import _hints, _weber
from ._models import Module, _restore, _settings
from ._weber import Gradients, Layer, Loader, Optimiser, Rule, Schedule

Path = Union[str, bytes, "os.PathLike[Any]"]
random_state = ...  # in save(): the place in the random sequence


def _with_settings(objects: dict[str, Any]) -> dict[str, Any]:
    settings = _settings(objects.get("model"))
    return {**objects, "python": settings} if settings else objects


def save(path: Path, model: Any = None, **objects: Any) -> None:
    """Saves a model, or several objects by name: save("run.bson", model=m, adam=optimiser, epoch=3). The format follows the name:
    .bson, .safetensors, .npz, .npy."""
    if model is not None:
        objects = {"model": model, **objects}
    path = os.fsdecode(path)
    is_arrays = path.endswith(".npy")
    _weber._save(path, objects if is_arrays else _with_settings(objects))


def load(path: Path, model: Any = None, *, key: Optional[str] = None, partial: bool = False, rename: Optional[str] = None,
         from_: Optional[str] = None, **objects: Any) -> Any:
    """Loads into a model of the same structure; or, as save, into objects by name, which must exist. Without either, what the file
    has: an array of .npy, else dicts and lists (load_tree). from_="torch": PyTorch's names, whose places are found out."""
    path = os.fsdecode(path)
    if model is None and not objects:
        tree = _weber.load_tree(path)
        for name in key.split(".") if key else ():
            tree = tree[int(name) - 1] if isinstance(tree, list) else tree[name]
        return tree
    if objects and (key is not None or partial or rename is not None or from_ is not None):
        raise TypeError("load: key, partial, rename and from_ are for a model alone")
    if objects:
        _weber._load(path, {"model": model, **objects} if model is not None else objects)
    else:
        _weber._load_state(model, path, key, partial, rename, from_)


def load_model(path: Path, key: Optional[str] = None, structure: Optional[str] = None) -> Layer:
    """A new model from nothing but the file; also from Flux's BSON files. Layers in Python must have been registered."""
    name = os.fsdecode(path)
    model = _weber._load_model_as(name, key, structure) if structure else _weber._load_model(name, key)
    return _restored(model, lambda: _weber._text_of(name, "python"))


def _restored(model: Layer, settings: Callable[[], Optional[str]]) -> Layer:
    return _restore(model, settings()) if any(isinstance(m, Module) for m in model.modules().values()) else model


def save_bytes(model: Any = None, *, format: str = "bson", **objects: Any) -> bytes:
    """The bytes of the file that save writes."""
    objects = {"model": model, **objects} if model is not None else objects
    return _weber._save_bytes("memory." + format, _with_settings(objects))


def load_bytes(data: bytes, model: Any = None, *, format: str = "bson", **objects: Any) -> Any:
    """load from bytes; without a model, a new one as load_model."""
    if model is None and not objects:
        return _restored(_weber._model_of_bytes("memory." + format, data), lambda: _weber._text_of_bytes("memory." + format, data, "python"))
    _weber._load_bytes("memory." + format, data, {"model": model, **objects} if model is not None else objects)
    return model


def checkpoint_save(path: Path, number: int, *, keep: int = 3, **objects: Any) -> None:
    """Saves objects as file `number` of a folder "run/" and removes all but the newest `keep`."""
    _weber._checkpoint_save(os.fsdecode(path), number, keep, objects)


def checkpoint_load(path: Path, **objects: Any) -> int:
    """Loads the newest file of the folder that is not damaged; its number, -1: there is none."""
    return _weber._checkpoint_load(os.fsdecode(path), objects)


def _reduce_layer(self: Layer, protocol: int) -> tuple[Any, ...]:
    classes = tuple({type(m) for m in self.modules().values() if isinstance(m, Module)})
    return _unpickled_layer, (save_bytes(self), classes)


def _unpickled_layer(data: bytes, classes: tuple[type, ...]) -> Layer:
    for cls in classes:  # pickle has imported them
        _weber.register(cls)
    model: Layer = load_bytes(data)
    return model


setattr(Layer, "__reduce_ex__", _reduce_layer)


def _parts_of_rule(self: Rule) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    maker, values, names = self._made
    count = len(values) - len(names)
    return maker, values[:count], dict(zip(names, values[count:]))


def _rule_repr(self: Rule) -> str:
    maker, values, named = _parts_of_rule(self)
    return "%s(%s)" % (maker, ", ".join([*map(repr, values), *("%s=%r" % pair for pair in named.items())]))


def _made_again(maker: str, values: tuple[Any, ...], named: dict[str, Any]) -> Rule:
    rule: Rule = getattr(_weber, maker)(*values, **named)
    return rule


def _optimiser_repr(self: Optimiser) -> str:
    settings = "".join(", %s=%r" % pair for pair in self._settings.items())
    return "setup(%r, a %s of %d parameters%s)" % (self.rule, self.model.type, _weber.parameter_count(self.model), settings)


def _gradients_repr(self: Gradients) -> str:
    return "Gradients(%s)" % ", ".join("%s: %s" % (path, "None" if g is None else g.shape) for path, g in self.dict().items())


def _reduce_optimiser(self: Optimiser, protocol: int) -> tuple[Any, ...]:
    return _unpickled_optimiser, (self.rule, self.model, self._settings, save_bytes(optimiser=self))


def _unpickled_optimiser(rule: Rule, model: Layer, settings: dict[str, Any], data: bytes) -> Optimiser:
    optimiser = _weber.setup(rule, model, **settings)
    load_bytes(data, optimiser=optimiser)
    return optimiser


for _type, _name, _value in (
    (Gradients, "keys", lambda self: self.dict().keys()), (Gradients, "values", lambda self: self.dict().values()), (Gradients, "items", lambda self: self.dict().items()),
    (Gradients, "__iter__", lambda self: iter(self.dict())), (Gradients, "__len__", lambda self: len(self.dict())),
    (Gradients, "__contains__", lambda self, path: path in self.dict()), (Gradients, "__repr__", _gradients_repr),
    (Schedule, "__call__", lambda self, t: _weber.schedule_at(self, t)),
    (Schedule, "__repr__", lambda self: "Schedule(%s, ...)" % ", ".join("%.4g" % self(t) for t in range(1, 6))),
    (Loader, "__repr__", lambda self: "Loader(%d batches)" % len(self)),
    (Optimiser, "__getattr__", _hints.hint(_hints.OPTIMISER, "an Optimiser")), (Rule, "__repr__", _rule_repr), (Rule, "__reduce_ex__", lambda self, protocol: (_made_again, _parts_of_rule(self))),
    (Optimiser, "__repr__", _optimiser_repr), (Optimiser, "__reduce_ex__", _reduce_optimiser),
):
    setattr(_type, _name, _value)

__all__ = ["save", "load", "load_model", "save_bytes", "load_bytes", "checkpoint_save", "checkpoint_load", "random_state"]
