"""Lists and dicts of layers and Parameters as attributes of a Module."""
import copy
import pickle

import pytest

import weber as wb


@wb.register
class Listed(wb.Module):
    def __init__(self, n=3):
        self.layers = [wb.Dense(3, 3, wb.tanh) for _ in range(n)]
        self.heads = {"left": wb.Dense(3, 2), "right": [wb.Dense(3, 3), wb.relu, wb.Dense(3, 2)]}
        self.gains = [wb.Parameter(wb.ones(2)), wb.State(wb.zeros(2))]
        self.sizes = [3, 2]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        y = x
        for layer in self.heads["right"]:
            y = layer(y)
        return (self.heads["left"](x) + y) * self.gains[0] + self.gains[1]


PATHS = {"layers.%d.%s" % (i, a) for i in (1, 2, 3) for a in ("weight", "bias")} | {
    "heads.%s.%s" % (h, a) for h in ("left", "right.1", "right.3") for a in ("weight", "bias")} | {"gains.1"}


def test_lists_are_found():
    m = Listed()
    assert set(m.parameters()) == PATHS and set(m.parameters(True)) - PATHS == {"gains.2.value"}
    assert type(m.layers) is wb.LayerList and type(m.heads) is wb.LayerDict and m.sizes == [3, 2]
    assert len(m.layers) == 3 and m.layers[-1] == m.layers[2] and m.layers[0].weight.shape == (3, 3) and m["layers.1.weight"].shape == (3, 3)
    assert [type(v) for v in m.layers[:2]] == [wb.Layer] * 2 and m.layers[1] in m.layers and wb.Dense(3, 3) not in m.layers
    assert list(m.heads) == ["left", "right"] and "left" in m.heads and dict(m.heads.items())["left"] == m.heads["left"] and len(m.heads.values()) == 2
    assert m.heads["right.1.weight"].shape == (3, 3) and m.heads["right"][1](wb.array([-1.0])).item() == 0
    assert "LayerList(" in repr(m) and "left = Dense(3 => 2)" in repr(m)
    assert {"layers", "layers.2", "heads.right.3"} <= set(m.modules())


def test_lists_are_trained():
    m, x = Listed(), wb.normal((4, 3))
    o, before = wb.setup(wb.Adam(), m), {path: a.tolist() for path, a in m.parameters().items()}
    wb.train_step(lambda m, x: (m(x) ** 2).sum(), m, o, x)
    assert [path for path, a in m.parameters().items() if a.tolist() == before[path]] == []
    _, g = wb.withgradient(lambda m, x: m(x).sum(), m, x)
    assert set(g) == PATHS


@pytest.mark.parametrize("format", ["bson", "safetensors", "npz"])
def test_lists_are_saved(tmp_path, format):
    m, x, path = Listed(), wb.normal((4, 3)), tmp_path / ("m." + format)
    wb.save(path, m)
    assert wb.allclose(wb.load_model(path)(x), m(x))
    other = Listed()
    wb.load(path, other)
    assert wb.allclose(other(x), m(x))
    with pytest.raises(wb.Error):
        wb.load(path, Listed(2))


def test_lists_are_copied_and_pickled():
    m, x = Listed(), wb.normal((4, 3))
    for other in (copy.deepcopy(m), m.clone(), pickle.loads(pickle.dumps(m))):
        assert wb.allclose(other(x), m(x)) and type(other.layers) is wb.LayerList and other.layers[0] != m.layers[0]
        other.layers[0].weight = wb.zeros((3, 3))
        assert not wb.allclose(other.layers[0].weight, m.layers[0].weight)
    assert [v.shape for v in pickle.loads(pickle.dumps(m.gains))] == [(2,), (2,)]


def test_lists_grow_and_change():
    m, x = Listed(1), wb.normal((4, 3))
    m.layers.append(wb.Dense(3, 3))
    m.layers.extend([wb.Dense(3, 3), lambda x: x * 2.0])
    assert len(m.layers) == 4 and "layers.3.weight" in m.parameters() and m(x).shape == (4, 2)
    m.layers[1] = wb.Chain(wb.Dense(3, 5), wb.Dense(5, 3))
    m.heads["left"] = wb.Dense(3, 2, bias=False)
    m.heads["third"] = wb.Dense(3, 1)
    m.gains[0] = m.gains[1] = wb.ones(2) * 2.0
    m.gains[1] = wb.State(wb.ones(2))
    assert "layers.2.layers.1.weight" in m.parameters() and m.gains[0].tolist() == [2, 2] and m.gains[1].tolist() == [1, 1]
    assert list(m.heads) == ["left", "right", "third"] and "heads.left.bias" not in m.parameters() and m(x).shape == (4, 2)
    m.heads["third.bias"] = wb.ones(1)
    m.layers["1.bias"] = wb.ones(3)
    assert m.heads["third"].bias.item() == 1 and m.layers[0].bias.tolist() == [1, 1, 1]
    m.layers = m.layers[:1]
    assert len(m.layers) == 1 and m(x).shape == (4, 2)
    m.empty = wb.LayerList()
    m.empty.append([wb.Dense(1, 1)])
    assert "empty.1.1.weight" in m.parameters() and type(m.empty[0]) is wb.LayerList


@pytest.mark.parametrize("by_step", [True, False])
def test_an_optimiser_follows_the_lists(by_step):
    m, x = Listed(1), wb.normal((4, 3))
    loss = lambda m, x: (m(x) ** 2).sum()  # noqa: E731
    o = wb.setup(wb.Adam(0.01), m)
    wb.train_step(loss, m, o, x)
    wb.freeze(o, "heads.left.weight")
    m.layers.append(wb.Dense(3, 3))
    m.layers[0] = wb.Dense(3, 3)
    before = {path: a.tolist() for path, a in m.parameters().items()}
    if by_step:
        wb.train_step(loss, m, o, x)
    else:
        wb.update(o, m, wb.withgradient(loss, m, x)[1])
    assert [path for path, a in m.parameters().items() if a.tolist() == before[path]] == ["heads.left.weight"]


def test_what_lists_refuse():
    m = Listed()
    for act, words in ((lambda: m.layers.append(3), "a layer, a function or a Parameter"), (lambda: m.layers.pop(), "set the attribute again"),
                       (lambda: m.layers.insert(0, wb.relu), "set the attribute again"), (lambda: m.heads.pop("left"), "set the attribute again"),
                       (lambda: m.layers(wb.ones(3)), "a Chain calls"), (lambda: m.heads.update({3: wb.relu}), "texts"),
                       (lambda: setattr(m.layers, "extra", wb.Dense(1, 1)), "entries"), (lambda: setattr(m, "pair", (wb.Dense(1, 1), None)), "NoneType"),
                       (lambda: m.heads.update({"a.b": wb.Dense(1, 1)}), "have no dot"), (lambda: m.heads.update({"1": wb.Dense(1, 1)}), "no numbers"),
                       (lambda: m.layers.append(m), "part of itself|contain")):
        with pytest.raises((TypeError, NotImplementedError, ValueError), match=words):
            act()
    with pytest.raises(IndexError):
        m.layers[3]
    with pytest.raises(KeyError):
        m.heads["nothing"]
    assert set(m.parameters()) == PATHS


def test_a_list_that_was_empty():
    class Late(wb.Module):
        def __init__(self):
            self.blocks = []
            self.blocks.append(wb.Dense(1, 1))

    for act in (lambda: wb.setup(wb.Adam(), wb.Chain(Late(), wb.Dense(1, 1))), lambda: wb.save_bytes(Late())):
        with pytest.raises(TypeError, match="begin with weber.LayerList"):
            act()


class Direct(wb.Module):
    def __init__(self):
        self.first = wb.Parameter(wb.ones(2))
        self.second = wb.Parameter(wb.ones(2))
        self.head = wb.Dense(2, 1)

    def forward(self, x):
        return self.head(x * self.first + self.second)


@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize("by_step", [False, True])
def test_an_optimiser_follows_a_module_with_parameters(by_step, replaces):
    m, x = Direct(), wb.normal((4, 2))
    loss = lambda m, x: (m.first * 1).sum() + (m(x) ** 2).sum()  # noqa: E731
    o = wb.setup(wb.Adam(0.01), m)
    wb.train_step(loss, m, o, x)
    wb.freeze(o, "second")
    wb.adjust_path(o, "first", "eta", 0.0)
    momentum, before = wb.optimiser_get(o, "first", "m").tolist(), m.first.tolist() + m.second.tolist()
    for i in range(9):
        setattr(m, f"more{i}", wb.Parameter(wb.ones(2)))
    if replaces:
        m.head = wb.Dense(2, 1)
    assert wb.optimiser_get(o, "first", "m").tolist() == momentum
    if by_step:
        wb.train_step(loss, m, o, x)
    else:
        wb.update(o, m, wb.withgradient(loss, m, x)[1])
    assert m.first.tolist() + m.second.tolist() == before
    assert wb.optimiser_get(o, "first", "m").tolist() != momentum


def test_layers_of_lists_are_watched_and_summed_up():
    m, paths = Listed(), []
    with wb.watch_layers(lambda path, x, is_gradient: paths.append(path)):
        m(wb.ones((2, 3)))
    assert set(paths) == {"layers.1", "layers.2", "layers.3", "heads.left", "heads.right.1", "heads.right.2", "heads.right.3", ""}, paths
    text = wb.summary(m, (2, 3))
    assert repr(text) == str(text) and "heads.left " in text and text.splitlines()[-1].split()[:2] == ["total", str(wb.parameter_count(m))]
