"""The examples run, shortly, and what they learn is learned."""
import pathlib
import re
import runpy
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parents[1]


def run(name, *arguments):
    before, sys.argv = sys.argv, [name, *arguments]
    try:
        return runpy.run_path(str(HERE / "examples" / name))["main"]()
    finally:
        sys.argv = before


def test_gpt(tmp_path):
    (tmp_path / "text").write_text("the quick brown fox jumps over the lazy dog. " * 20)
    assert run("gpt.py", str(tmp_path / "text"), "80") < 0.5


def test_dqn():
    assert run("dqn.py", "30") > 5


def test_readme():
    names = {}
    exec(re.search(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.S)[1], names)
    assert names["loss"].item() < 0.5


def test_modules_of_the_manual():
    text = (HERE.parent / "docs/python.md").read_text()
    import weber as wb

    names = {"wb": wb, "x": wb.ones(3), "y": None}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        if "loss_function" not in block:
            exec(block, names)
    assert names["Scaled"](3)(wb.ones((2, 3))).shape == (2, 3)
