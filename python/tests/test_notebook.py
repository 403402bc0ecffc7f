"""What notebooks show (python/weber/_notebook.py), without a notebook."""
import re
import sys
import types
import xml.etree.ElementTree

import weber as wb


class Net(wb.Module):
    def __init__(self):
        self.a = wb.Dense(4, 8, wb.tanh)
        self.blocks = [wb.Dense(8, 8) for _ in range(2)]
        self.out = wb.Dense(8, 2)

    def forward(self, x):
        return self.out(self.blocks[1](self.blocks[0](self.a(x))))


def parsed(text):
    return xml.etree.ElementTree.fromstring("<div>%s</div>" % text.replace("&darr;", "↓"))


def test_models_are_boxes():
    chain = wb.Chain(wb.Dense(4, 1000, wb.relu), wb.SkipConnection(wb.Chain(wb.Dense(1000, 1000), wb.BatchNorm(1000)), "+"), lambda x: x)
    text = "".join(parsed(chain._repr_html_()).itertext())
    assert re.sub(r"\s+", " ", text) == "Chain 1,008,000Dense(4 => 1000, relu) 5,000↓SkipConnection 1,003,000Chain 1,003,000Dense(1000 => 1000) 1,001,000↓BatchNorm(1000) 2,000↓function"
    text = "".join(parsed(Net()._repr_html_()).itertext())
    assert re.sub(r"\s+", " ", text) == "Net 202aDense(4 => 8, tanh) 40blocksLayerList 144Dense(8 => 8) 72Dense(8 => 8) 72outDense(8 => 2) 18"
    assert "".join(parsed(wb.Dense(2, 3)._repr_html_()).itertext()) == "Dense(2 => 3) 9"


def test_training_has_a_bar_and_curves(monkeypatch, capfd):
    shown = []

    class Handle:
        def update(self, board):
            shown.append(board._repr_html_())

    def display(board, display_id):
        shown.append(board._repr_html_())
        return Handle()

    x = wb.normal((40, 4))
    data, o = wb.DataLoader(x, (x[:, 0] > 0).astype("int32"), batchsize=10), None
    loss = lambda m, x, y: wb.logitcrossentropy(m(x), y)  # noqa: E731
    model, steps = Net(), []
    o = wb.setup(wb.Adam(0.01), model)
    shell = types.SimpleNamespace(kernel=1)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    wb.train(loss, model, data, o, epochs=3, progress=True, validation=data, on_step=lambda e: steps.append(e.step))
    assert len(steps) == 12 and capfd.readouterr().err == ""
    first, last = parsed(shown[0]), parsed(shown[-1])
    assert first.find(".//svg") is None and first.find(".//progress").get("value") in ("1", "4")
    assert last.find(".//progress").get("value") == last.find(".//progress").get("max") == "12"
    assert [len(line.get("points").split()) for line in last.iter("polyline")] == [3, 3]
    text = "".join(last.itertext())
    assert "3 of 3 epochs" in text and "loss" in text and "validation" in text
    shown.clear()
    wb.train(loss, model, data, o, epochs=3, progress=True, on_epoch=lambda e: e.epoch < 2)
    assert len(shown) >= 2 and "2 of 3 epochs" in shown[-1]
    shown.clear()
    wb.train(loss, model, data, o, epochs=1)
    assert not shown
    monkeypatch.delitem(sys.modules, "IPython")
    wb.train(loss, model, data, o, epochs=1, progress=True)
    assert not shown and "epoch 1/1" in capfd.readouterr().err
