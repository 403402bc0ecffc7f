"""Every row of docs/python.md's table runs, and gives the shape that PyTorch gives where it is there."""
import pathlib
import re

import pytest

import weber as wb

TEXT = (pathlib.Path(__file__).resolve().parents[2] / "docs/python.md").read_text()
ROWS = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", TEXT, re.M)


def names():
    x, y = wb.normal((2, 3)), wb.array([1, 0])
    m = wb.Chain(wb.Dense(3, 4), wb.Dense(4, 2))
    return {"wb": wb, "x": x, "y": y, "m": m, "a": wb.relu, "b": wb.tanh, "p": wb.normal((2, 3)), "t": wb.ones((2, 3))}


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r[1])
def test_row(row):
    if "CUDA" in row[1]:
        pytest.skip("needs a card")
    exec(row[1], names())


def test_there_are_rows():
    assert len(ROWS) > 35


@pytest.mark.parametrize("row", [r for r in ROWS if re.match(r"(torch\.(zeros|randn|arange|cat|where)|x\.(view|permute|unsqueeze|sum|argmax)|F\.)", r[0])], ids=lambda r: r[0])
def test_shapes(row):
    torch = pytest.importorskip("torch")
    theirs = {"torch": torch, "F": torch.nn.functional, "x": torch.randn(2, 3), "y": torch.tensor([1, 0]), "p": torch.randn(2, 3), "t": torch.ones(2, 3)}
    assert tuple(eval(row[0], theirs).shape) == eval(row[1], names()).shape
