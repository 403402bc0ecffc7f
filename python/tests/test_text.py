"""Tokenizers; tests/text/peers.py compares them with another library's."""
import gc
import json

import numpy as np
import pytest

import weber as wb

FILE = {"model": {"type": "BPE", "vocab": {"h": 0, "e": 1, "l": 2, "o": 3, "Ġ": 4, "he": 5, "ll": 6, "Ã": 7, "©": 8}, "merges": ["l l", "h e"]},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": 9, "content": "<end>", "special": True, "normalized": False}]}


@pytest.fixture
def tokenizer(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(FILE))
    try:
        return wb.Tokenizer(tmp_path)
    except wb.UnsupportedError as error:
        pytest.skip(str(error))


def test_texts_become_ids_and_back(tokenizer):
    ids = tokenizer.encode("hello hé<end>")
    assert ids == [5, 6, 3, 4, 0, 7, 8, 9]
    assert tokenizer.decode(ids) == "hello hé"
    assert tokenizer.decode(ids, special=True) == "hello hé<end>"
    assert tokenizer.decode(np.array(ids[:3])) == "hello"
    assert tokenizer.decode(wb.array(ids[:3])) == "hello"
    assert tokenizer.decode([0, 7]) == "h\ufffd" and tokenizer.decode([0, 7], partial=True) == "h"
    assert tokenizer.encode("") == [] and tokenizer.decode([]) == ""
    assert tokenizer.decode([99, -1, 10**15, 0]) == "h"


def test_tokens_have_names(tokenizer):
    assert len(tokenizer) == 10
    assert tokenizer.id("<end>") == 9 and tokenizer.id("x") is None
    assert tokenizer.token(4) == "Ġ" and tokenizer.token(10) is None and tokenizer.token(-1) is None


def test_an_embedding_takes_the_ids(tokenizer):
    embedding = wb.Embedding(len(tokenizer), 3)
    assert embedding(wb.array(tokenizer.encode("hello"))).shape == (3, 3)


def test_mistakes_are_exceptions(tokenizer, tmp_path):
    with pytest.raises(wb.FileError, match="cannot be opened"):
        wb.Tokenizer(tmp_path / "none")
    (tmp_path / "bad.json").write_text('{"model": {"type": "Own"}}')
    with pytest.raises(wb.FormatError, match='the model is "Own"'):
        wb.Tokenizer(str(tmp_path / "bad.json"))
    for call in (lambda: tokenizer.encode(3), lambda: tokenizer.decode(3), lambda: tokenizer.decode(["a"]), lambda: wb.Tokenizer(),
                 lambda: tokenizer.encode("a", wrong=1), lambda: tokenizer.id(3)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(UnicodeEncodeError):
        tokenizer.encode("\ud800")


def test_nothing_is_left(tokenizer, tmp_path):
    before = wb.live()
    for _ in range(3):
        wb.Tokenizer(tmp_path).encode("hello")
    gc.collect()
    assert wb.live() == before


def test_generate_continues_tokens():
    wb.seed(0)
    model = wb.gpt2(30, 40, 16, 2, 2)
    likeliest = wb.generate(model, [3, 1, 4], 20, temperature=0)
    assert len(likeliest) == 20 and likeliest[:3] == [3, 1, 4]
    wanted = [3, 1, 4]
    while len(wanted) < 20:
        wanted.append(int(np.argmax(np.asarray(model(np.array(wanted, "int32")))[-1])))
    assert likeliest == wanted
    assert wb.generate(model, (3, 1, 4), 20, top_k=1) == wanted
    seen = []
    text = wb.generate(model, [3], 20, each=lambda token: seen.append(token) or len(seen) < 4)
    assert text[1:] == seen and len(seen) == 4
    assert wb.generate(model, [3, 1, 4], 20, temperature=0, end=wanted[3]) == wanted[:4]


def test_generate_says_what_is_wrong():
    model = wb.gpt2(30, 40, 16, 2, 2)
    with pytest.raises(ValueError, match="top_p must be above 0"):
        wb.generate(model, [1], 9, top_p=0)
    with pytest.raises(ValueError, match="count must be at least 1"):
        wb.generate(model, [], 9)
    with pytest.raises(ZeroDivisionError):
        wb.generate(model, [1], 9, each=lambda token: 1 / 0)
    assert len(wb.generate(model, [1], 9)) == 9


def test_lora(tmp_path):
    wb.seed(1)
    model = wb.llama(vocabulary=20, features=8, layers=2, heads=2, hidden=12)
    x = np.arange(6, dtype="int32").reshape(1, 6)
    before = np.asarray(model(x))
    wb.lora(model, rank=2, alpha=4, targets=["*.q_proj", "*.k_proj"])
    assert wb.parameter_count(model) == 2 * 2 * 2 * (8 + 8)
    model["layers.2.attention.q_proj.adapter.b"] = wb.ones((2, 8))
    after = np.asarray(model(x))
    assert np.abs(after - before).max() > 1e-3
    wb.lora_save(str(tmp_path / "adapter"), model)
    wb.lora_merge(model)
    np.testing.assert_allclose(np.asarray(model(x)), after, atol=1e-5)
    wb.seed(1)
    again = wb.llama(vocabulary=20, features=8, layers=2, heads=2, hidden=12)
    wb.lora_load(str(tmp_path / "adapter"), again)
    np.testing.assert_allclose(np.asarray(again(x)), after, atol=1e-5)
    wb.lora(wb.Dense(3, 2), targets="*")
    with pytest.raises(TypeError):
        wb.lora(again, targets=[3])
    with pytest.raises(ValueError, match="at most 16 texts"):
        wb.lora(again, targets=["*"] * 17)
