"""The examples run, shortly, and what they learn is learned."""
import json
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


def test_tabular():
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")  # pandas' columns by Arrow
    assert run("tabular.py", "10") > 0.95


def test_server():
    assert run("server.py")


def test_guides():
    found = run("guides.py")
    assert found["loss"] < 1e-3 and found["accuracy"] > 0.9 and found["distributed"] < 0.1
    assert found["models"] and found["saving"] and found["devices"] and found["trees"]


def test_readme():
    names = {}
    exec(re.search(r"```python\n(.*?)```", (HERE / "README.md").read_text(), re.S)[1], names)
    assert names["loss"].item() < 0.5


def make_gpt2(wb, folder):
    """A folder as Hugging Face has it: a small GPT-2, and the tokenizer of a few letters."""
    folder.mkdir()
    sizes = {"wte.weight": (10, 4), "wpe.weight": (100, 4), "ln_f.weight": 4, "ln_f.bias": 4}
    for name, n in (("attn.c_attn", (4, 12)), ("attn.c_proj", (4, 4)), ("mlp.c_fc", (4, 16)), ("mlp.c_proj", (16, 4))):
        sizes |= {f"h.0.{name}.weight": n, f"h.0.{name}.bias": n[1]}
    for name in ("ln_1", "ln_2"):
        sizes |= {f"h.0.{name}.weight": 4, f"h.0.{name}.bias": 4}
    wb.save(folder / "model.safetensors", **{f"transformer.{name}": wb.normal(size) for name, size in sizes.items()})
    settings = {"architectures": ["GPT2LMHeadModel"], "vocab_size": 10, "n_positions": 100, "n_embd": 4, "n_layer": 1, "n_head": 2, "eos_token_id": 9}
    (folder / "config.json").write_text(json.dumps(settings))
    vocabulary = {letter: id for id, letter in enumerate("How areyu?")}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": vocabulary, "merges": []}}))


def make_pictures(wb, folder):
    """A picture, and folders of classes."""
    for name in ("cat.png", "pets/train/cat/1.png", "pets/train/dog/1.png", "pets/test/dog/1.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        wb.image_write(str(folder / name), wb.uniform((3, 30, 40)))


def test_modules_of_the_manual(tmp_path, monkeypatch):
    text = (HERE.parent / "docs/python.md").read_text()
    import weber as wb

    make_gpt2(wb, tmp_path / "gpt2")
    make_pictures(wb, tmp_path)
    monkeypatch.chdir(tmp_path)

    model = wb.Chain(wb.Dense(4, 4), wb.relu, wb.Dense(4, 1))
    names = {"wb": wb, "x": wb.ones(3), "y": wb.ones((2, 1)), "model": model, "requests": [wb.ones((2, 4))] * 3, "optimiser": wb.setup(wb.Adam(), model),
             "loss_function": lambda m, x, y: wb.mse(m(wb.ones((2, 4))), y)}
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    for block in blocks:
        exec(block, names)
    assert len(blocks) > 2 and names["Scaled"](3)(wb.ones((2, 3))).shape == (2, 3)
    for code in re.findall(r"^[^|\n]*$", re.sub(r"```.*?```", "", text, flags=re.S), re.M):  # what stands in sentences
        for name in re.findall(r"`wb\.(\w+)", code):
            assert hasattr(wb, name), name
    names.clear()  # the functions of the blocks refer to it
