"""Layers in Python, models, loaders."""
import json
import operator
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Optional, Sequence

from . import _hints, _weber
from ._weber import Array, Layer, Loader, Optimiser, array


if TYPE_CHECKING:
    _Attribute = Array  # what it is once it is an attribute
else:
    _Attribute = object


class Parameter(_Attribute):
    """An array of a Module that is trained: self.weight = Parameter(normal((2, 3)))."""

    def __init__(self, value: Any) -> None:
        self.value = array(value)


class State(Parameter):
    """An array of a Module that is moved and saved, but not trained; its path is "mean.value"."""


class Module(Layer):
    """A layer of your own:

        class Scaled(wb.Module):
            def __init__(self, n):
                self.dense = wb.Dense(n, n)
                self.scale = wb.Parameter(wb.ones(n))

            def forward(self, x):
                return self.scale * self.dense(x)

    Layers and Parameters that are attributes are found by optimisers, files, and copies, also those in lists and dicts, which become
    a LayerList and a LayerDict: self.blocks = [wb.Dense(n, n) for _ in range(3)]. Other attributes are copied with the layer.
    For a file to name the class (load_model), write @wb.register above it.
    """

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        cls._class = _weber._new_class(cls)

    _class: Any
    forward: Callable[..., Any]

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):  # the dict that all objects for the layer share
            return object.__setattr__(self, name, value)
        if isinstance(value, Optimiser):
            raise TypeError("an Optimiser is no part of a Module: copies would train the model it was made for, and files would not have it. Keep it beside the model; "
                            "save(path, model, optimiser=o) saves both")
        old = _weber._member(self, name)
        if _has_layers(value):
            value = _container(value)
        if old is NotImplemented:
            if isinstance(value, Parameter):
                _weber._append(self, name, value.value, isinstance(value, State))
            elif isinstance(value, Layer):
                _weber._append(self, name, value, False)
            else:
                object.__setattr__(self, name, value)
        elif isinstance(old, Array):
            path = name if name in self.parameters() else name + ".value"
            self[path] = value.value if isinstance(value, Parameter) else value
        elif isinstance(value, Layer):
            _weber._append(self, name, value, False)
        else:
            raise TypeError("%s of %s is a layer, got %r" % (name, type(self).__name__, type(value)))

    def __getattr__(self, name: str) -> Any:
        value = _weber._member(self, name)
        return _hints.hint(_hints.LAYER, type(self).__name__)(self, name) if value is NotImplemented else value


def _no_forward(self: Module, *arrays: Array) -> Any:
    raise NotImplementedError("%s has no forward" % type(self).__name__)


setattr(Module, "forward", _no_forward)
Module._class = _weber._new_class(Module)


def _has_layers(value: Any) -> bool:
    """Whether it is a list or dict with layers or Parameters, however deep."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    return any(isinstance(v, (Layer, Parameter)) or _has_layers(v) for v in value)


def _container(value: Any) -> Layer:
    return LayerDict(value) if isinstance(value, dict) else LayerList(value)


class _Container(Module):
    """What LayerList and LayerDict share: entries instead of attributes."""

    def _put(self, key: Any, value: Any) -> None:
        """A new entry, or another one in the place of one."""
        old = _weber._member(self, key)
        if _has_layers(value):
            value = _container(value)
        if isinstance(old, Array):
            path = str(key + 1 if isinstance(key, int) else key)
            self[path if path in self.parameters() else path + ".value"] = value.value if isinstance(value, Parameter) else value
        elif isinstance(value, Parameter) and old is NotImplemented:
            _weber._append(self, key, value.value, isinstance(value, State))
        elif isinstance(value, Layer) or callable(value):
            _weber._append(self, key, value, False)
        else:
            wanted = "a layer, a function or a Parameter" if old is NotImplemented else "a layer or a function"
            raise TypeError("an entry of a %s is %s, got %r" % (type(self).__name__, wanted, type(value)))

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, (Layer, Parameter)):
            raise TypeError("layers of a %s are entries, not attributes" % type(self).__name__)
        super().__setattr__(name, value)

    def __len__(self) -> int:
        return len(_weber._names(self))

    def __delitem__(self, key: Any) -> None:
        raise TypeError("entries of a %s cannot be removed: set the attribute again, model.blocks = [model.blocks[0]]" % type(self).__name__)

    def pop(self, *key: Any) -> Any:
        del self[key]

    def forward(self, *arrays: Any) -> Any:
        raise NotImplementedError("a %s is not called: call its layers; a Chain calls them one after another" % type(self).__name__)


class LayerList(_Container):
    """Layers and Parameters in a list, as PyTorch's ModuleList: what a list becomes that is an attribute of a Module.

    It is indexed and sliced as a list is, and grows by append and extend. Paths count from 1: "blocks.1.weight". An optimiser
    trains entries that are added later, too.
    """

    def __init__(self, entries: Iterable[Any] = ()) -> None:
        self.extend(entries)

    def append(self, value: Any) -> None:
        self._put(None, value)

    def extend(self, values: Iterable[Any]) -> None:
        for value in values:
            self.append(value)

    def insert(self, index: int, value: Any) -> None:
        del self[index]

    def _place(self, key: Any) -> int:
        place, count = operator.index(key), len(self)
        if not -count <= place < count:
            raise IndexError("entry %d of %d" % (place, count))
        return place % count

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        return super().__getitem__(key) if isinstance(key, str) else _weber._member(self, self._place(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            super().__setitem__(key, value)
        else:
            self._put(self._place(key), value)

    def __iter__(self) -> Iterator[Any]:
        return (_weber._member(self, i) for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return any(value is v or (isinstance(v, Layer) and v == value) for v in self)


class LayerDict(_Container):
    """Layers and Parameters by name, as PyTorch's ModuleDict: what a dict becomes that is an attribute of a Module.

    Names have no dot and are no numbers. Paths have them: "heads.left.weight".
    """

    def __init__(self, entries: Any = ()) -> None:
        self.update(entries)

    def update(self, entries: Any) -> None:
        for name, value in dict(entries).items():
            self[name] = value

    def __getitem__(self, key: Any) -> Any:
        value = _weber._member(self, key) if isinstance(key, str) else NotImplemented
        if value is not NotImplemented:
            return value
        if isinstance(key, str) and "." in key:
            return super().__getitem__(key)
        raise KeyError(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError("names of layers are texts, got %r" % (key,))
        if "." in key and key in self.parameters(True):
            super().__setitem__(key, value)
        else:
            self._put(key, value)

    def keys(self) -> list[str]:
        names: list[str] = _weber._names(self)
        return names

    def values(self) -> list[Any]:
        return [self[name] for name in self.keys()]

    def items(self) -> list[tuple[str, Any]]:
        return [(name, self[name]) for name in self.keys()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: Any) -> bool:
        return key in self.keys()


for _class in (LayerList, LayerDict):
    _weber.register(_class)


def _check_lists(model: Any) -> None:
    """Layers that were appended to a list which had none when it became an attribute are found by nothing."""
    for path, layer in model.modules().items() if isinstance(model, Layer) else ():
        for name, value in vars(layer).items() if isinstance(layer, Module) else ():
            if name != "__replaced" and _has_layers(value):
                raise TypeError("%s of %s is a plain %s, which was without layers when it was set, so that layers in it are not found: begin with %s()" % (
                    name, path or "the model", type(value).__name__, "weber.LayerDict" if isinstance(value, dict) else "weber.LayerList"))


def _settings(model: Any) -> str:
    """The attributes of layers in Python that JSON can hold, by path: in files beside the model."""
    _check_lists(model)
    found = {}
    for path, layer in model.modules().items() if isinstance(model, Layer) else ():
        values = {}
        for name, value in vars(layer).items() if isinstance(layer, Module) else ():
            try:
                values[name] = json.loads(json.dumps(value))
            except (TypeError, ValueError):
                pass
        if values:
            found[path] = values
    return json.dumps(found) if found else ""


def _restore(model: Layer, settings: Optional[str]) -> Layer:
    """Puts the attributes back that _settings has found."""
    layers = model.modules() if settings else {}
    for path, values in json.loads(settings).items() if settings else ():
        if isinstance(layers.get(path), Module):
            vars(layers[path]).update(values)
    return model


def Chain(*layers: Any, **named: Any) -> Layer:
    """Layers and functions one after another: Chain(Dense(2, 3), relu, lambda x: 2 * x). With names: Chain(encoder=a, decoder=b)."""
    if named:
        if layers:
            raise TypeError("Chain: either all layers have names, or none")
        return _weber._chain_named(list(named), list(named.values()))
    return _weber._chain(*layers)


def tree(**named: Any) -> Layer:
    """Models and arrays by name, as one model."""
    return _weber._tree_named(list(named), list(named.values()))


def DataLoader(*arrays: Any, batchsize: int = 1, shuffle: bool = False, seed: int = 0, drop_partial: bool = False, device: Any = None,
               map: Optional[Callable[..., Any]] = None, collate: Optional[Callable[..., Any]] = None, getobs: Optional[Callable[..., Any]] = None,
               numobs: int = 0, threads: int = 1, shard: bool = False, background: bool = True) -> Loader:
    """Batches of arrays, epoch after epoch: for x, y in DataLoader(images, labels, batchsize=64, shuffle=True).

    The first axis counts the observations. map(x, y, ...) changes each batch. Instead of arrays: one object with __len__ and
    __getitem__, whose items are arrays, numbers or tuples of them; collate(xs, ys, ...) makes a batch of lists of items of
    different sizes. Or getobs(place, seed, x, y, ...), called on `threads` threads, writes observation `place` of `numobs` into the
    memoryviews of bytes x, y, ...; arrays then have one observation each. Or an ImageFolder, whose pictures `threads` threads read.
    """
    settings = dict(batchsize=batchsize, shuffle=shuffle, seed=seed, drop_partial=drop_partial, shard=shard, background=background)
    settings |= {k: v for k, v in dict(device=device, map=map, collate=collate).items() if v is not None}
    if getobs is not None:
        return _weber._loader(tuple(array(a) for a in arrays), getobs=getobs, numobs=numobs, threads=threads, **settings)
    if len(arrays) == 1 and isinstance(arrays[0], _weber.Pictures):
        return _weber._loader((), images=arrays[0], threads=threads, **settings)
    if len(arrays) == 1 and isinstance(arrays[0], tuple) and all(hasattr(a, "shape") for a in arrays[0]):
        arrays = arrays[0]
    if len(arrays) == 1 and _is_sequence(arrays[0]):
        return _weber._loader((), observe=_observed(arrays[0]), numobs=len(arrays[0]), **settings)
    return _weber._loader(tuple(a if isinstance(a, Array) else array(a) for a in arrays), **settings)


def _is_sequence(x: Any) -> bool:
    """An object of the user's, or a list of items of different kinds, not an array."""
    if isinstance(x, Array) or hasattr(x, "__array__") or hasattr(x, "dtype"):
        return False
    if isinstance(x, (list, tuple)):
        return len(x) > 0 and isinstance(x[0], (tuple, list)) and any(hasattr(v, "shape") or isinstance(v, (list, tuple)) for v in x[0])
    return hasattr(x, "__getitem__") and hasattr(x, "__len__")


def _observed(items: Any) -> Callable[[int], Any]:
    def observe(place: int) -> Any:
        item = items[place]
        return tuple(item) if isinstance(item, (tuple, list)) else item

    return observe


def outputsize(model: Layer, *shapes: Sequence[int]) -> Any:
    """The shape of the result for inputs of these shapes; nothing is kept."""
    y = model(*[_weber._full("float32", 0, s) for s in shapes])
    return tuple(a.shape for a in y) if isinstance(y, tuple) else y.shape


def splitobs(*arrays: Array, at: Sequence[float], shuffle: bool = False, seed: int = 0) -> list[Any]:
    """Parts of the observations, by fractions: (train, test) = splitobs(x, y, at=[0.9])."""
    n = arrays[0].shape[0]
    order = None
    if shuffle:
        import random

        order = list(range(n))
        random.Random(seed).shuffle(order)
    ends = [0]
    for fraction in at:
        ends.append(min(n, ends[-1] + round(fraction * n)))
    ends.append(n)
    parts = []
    for a, b in zip(ends, ends[1:]):
        part = [x[array(order[a:b])] if order else x[a:b] for x in arrays]
        parts.append(part[0] if len(part) == 1 else tuple(part))
    return parts


def _clone(self: Layer, memo: Any = None) -> Layer:
    return _weber.clone(self)


for _name, _value in {"__copy__": _clone, "__deepcopy__": _clone, "clone": _clone, "_check_lists": _check_lists, "to": lambda self, device: _weber.to(self, device)}.items():
    setattr(Layer, _name, _value)

__all__ = ["Parameter", "State", "Module", "LayerList", "LayerDict", "Chain", "tree", "DataLoader", "outputsize", "splitobs"]
