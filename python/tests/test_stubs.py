"""The stub names what the module has, and nothing else."""
import ast
import pathlib

import weber as wb
from weber import _weber


def test_names():
    tree = ast.parse(pathlib.Path(_weber.__file__).with_name("_weber.pyi").read_text())
    typed = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    typed |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)} - {"__version__"}
    there = {n for n in vars(_weber) if not n.startswith("__")}
    assert there - typed - {"Batches"} == set()
    assert typed - there - {"Key"} == set()


def test_methods():
    tree = ast.parse(pathlib.Path(_weber.__file__).with_name("_weber.pyi").read_text())
    array = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Array")
    typed = {n.name for n in array.body if isinstance(n, ast.FunctionDef)} | {n.target.id for n in array.body if isinstance(n, ast.AnnAssign)}
    there = {n for n in dir(wb.Array) if not n.startswith("__")}
    assert there - typed == set()
    assert {n for n in typed if not n.startswith("__")} - there == set()


def test_every_function_says_what_it_does():
    silent = [n for n in dir(wb) if not n.startswith("_") and callable(getattr(wb, n)) and not (getattr(wb, n).__doc__ or "").strip()]
    assert silent == [], silent
