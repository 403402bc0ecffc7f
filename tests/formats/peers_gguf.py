#!/usr/bin/env python3
"""tests/formats/peers_gguf.py BUILD: GGUF beside PyPI's `gguf`.

Files with tensors of every type and values of every type of metadata, written by gguf, are read by Weber: all elements are those of gguf's own
arithmetic, bit for bit. Models of transformers with random weights, written as llama.cpp's converter does, give the results that their folders give. BUILD has libweber.so and bin/weber. 77 (skipped) where the packages cannot be had."""
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import language_packages

if len(sys.argv) != 2:
    sys.exit(__doc__)
BUILD = Path(sys.argv[1]).resolve()
language_packages.ensure()
os.environ["HF_HUB_OFFLINE"] = "1"
import gguf  # noqa: E402
import numpy as np  # noqa: E402
import safetensors.numpy  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from gguf import GGMLQuantizationType as Type  # noqa: E402

LINE = 64  # the least number of texts that Weber keeps as bytes is above it
transformers.logging.set_verbosity_error()
RANDOM = np.random.default_rng(7)


def fail(*what):
    sys.exit("FAILED: " + " ".join(map(str, what)))


def run(*arguments):
    result = subprocess.run([str(BUILD / "bin" / "weber"), *map(str, arguments)], capture_output=True, text=True)
    if result.returncode:
        fail("weber", *arguments, result.stderr or result.stdout)
    return result.stdout


# ---- tensors ----

def blocks(kind, rows, columns):
    """Random bytes; the scales are ordinary numbers."""
    size, width = gguf.GGML_QUANT_SIZES[kind]
    data = RANDOM.integers(0, 256, (rows, columns // size, width), dtype=np.uint8)
    scales = RANDOM.normal(size=(rows, columns // size, 2)).astype(np.float16).view(np.uint8)
    places = {Type.Q8_0: [0], Type.Q4_0: [0], Type.Q4_K: [0, 2], Type.Q6_K: [208]}[kind]
    for i, place in enumerate(places):
        data[:, :, place:place + 2] = scales[:, :, 2 * i:2 * i + 2]
    return data.reshape(rows, -1)


def tensors():
    x = RANDOM.normal(size=(3, 5, 64)).astype(np.float32)
    yield "plain.f32", x, None, x
    yield "plain.f16", x.astype(np.float16), None, x.astype(np.float16)
    yield "plain.f64", x.astype(np.float64), None, x.astype(np.float64)
    bf16 = gguf.quants.quantize(x, Type.BF16)
    yield "plain.bf16", bf16, Type.BF16, gguf.quants.dequantize(bf16, Type.BF16)
    yield "scalar", np.array([3.5], np.float32), None, np.array([3.5], np.float32)
    for kind, wide in ((np.int8, np.int32), (np.int16, np.int32), (np.int32, np.int32), (np.int64, np.int64)):
        numbers = RANDOM.integers(np.iinfo(kind).min, np.iinfo(kind).max, (4, 7), kind, endpoint=True)
        yield f"whole.{np.dtype(kind).name}", numbers, None, numbers.astype(wide)
    for kind in (Type.Q8_0, Type.Q4_0, Type.Q4_K, Type.Q6_K):
        data = blocks(kind, 6, 512)
        yield f"blk.0.{kind.name}", data, kind, gguf.quants.dequantize(data, kind)
    for kind in (Type.Q8_0, Type.Q4_0):
        data = gguf.quants.quantize(x, kind)
        yield f"blk.10.{kind.name}", data, kind, gguf.quants.dequantize(data, kind)


def check_tensors(folder):
    wanted, path = {}, folder / "types.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    for name, data, kind, elements in tensors():
        writer.add_tensor(name, data, raw_dtype=kind)
        wanted[name] = elements
    close(writer)
    run("convert", path, folder / "types.npz")
    with np.load(folder / "types.npz") as got:
        for name, elements in wanted.items():
            x = got[name]
            if x.dtype.kind == "V":  # bf16, as <V2
                x = (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
            x = x.T if x.shape != elements.shape else x
            if x.dtype != elements.dtype or x.shape != elements.shape or x.tobytes("C") != elements.tobytes():
                fail(name, x.dtype, x.shape, "is not", elements.dtype, elements.shape)
    check_written(folder)
    return len(wanted)


def close(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# ---- what Weber writes ----

def check_written(folder):
    """From safetensors and npz: the arrays, and q8_0 as gguf makes it; from GGUF: all bytes."""
    run("convert", folder / "types.gguf", folder / "again.gguf")
    if (folder / "again.gguf").read_bytes() != (folder / "types.gguf").read_bytes():
        fail("a file of gguf's does not come back as it was")
    x = RANDOM.normal(size=(40, 96)).astype(np.float32)
    x[0, :32], x[1, :32], x[2, :32] = 0, RANDOM.normal(size=32) * 1e-7, RANDOM.normal(size=32) * 1e4
    x[3, :32] = np.arange(-16, 16) * 0.5 * (127 / 8)  # halves
    arrays = {"a.weight": x, "b.half": x.astype(np.float16), "c.odd": x[:, :7].copy(), "d.vector": x[0], "e.double": x.astype(np.float64),
              "f.whole": np.arange(6, dtype=np.int32).reshape(2, 3), "g.cube": x.reshape(4, 10, 96)}
    safetensors.numpy.save_file(arrays, folder / "in.safetensors")
    for type_ in (None, "q8_0"):
        run("convert", folder / "in.safetensors", folder / "out.gguf", *([] if type_ is None else [f"--type={type_}"]))
        got = {tensor.name: tensor for tensor in gguf.GGUFReader(folder / "out.gguf").tensors}
        if sorted(got) != sorted(arrays):
            fail("names", sorted(got))
        for key, wanted in arrays.items():
            is_packed = type_ and wanted.dtype.kind == "f" and wanted.ndim > 1 and wanted.shape[-1] % 32 == 0
            data = gguf.quants.quantize(wanted.astype(np.float32), Type.Q8_0) if is_packed else wanted
            if (got[key].tensor_type == Type.Q8_0) != bool(is_packed) or got[key].data.tobytes() != data.tobytes():
                fail("written:", key, type_, got[key].tensor_type)
            if got[key].shape.tolist() != list(wanted.shape[::-1]):
                fail("written:", key, got[key].shape)
    run("convert", folder / "out.gguf", folder / "back.safetensors")
    for key, back in safetensors.numpy.load_file(folder / "back.safetensors").items():
        if np.abs(back - arrays[key]).max() > np.abs(arrays[key]).max() / 200:
            fail("back:", key)


# ---- metadata ----

wb = ctypes.CDLL(str(BUILD / "libweber.so"))


def declare(name, result, *arguments):
    getattr(wb, name).restype, getattr(wb, name).argtypes = result, arguments


P, N, T = ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p
for each in (("wb_open", P, T), ("wb_file_metadata", P, P), ("wb_record_count", N, P), ("wb_record_at", P, P, N), ("wb_record_name", T, P, N),
             ("wb_record_kind_of", ctypes.c_int, P), ("wb_record_bool", ctypes.c_bool, P), ("wb_record_integer", N, P),
             ("wb_record_real", ctypes.c_double, P), ("wb_record_text", T, P), ("wb_record_type", T, P), ("wb_record_array", P, P, P),
             ("wb_dtype_of", ctypes.c_int, P), ("wb_count", N, P), ("wb_read_begin", P, P), ("wb_free", None, P), ("wb_scope_open", ctypes.c_int),
             ("wb_scope_close", ctypes.c_int), ("wb_error_message", T)):
    declare(*each)
KINDS = ["nothing", "bool", "integer", "real", "text", "array", "list", "map", "struct", "opaque"]
TYPES = [np.float32, np.float64, np.float16, None, np.int32, np.int64, np.uint8, np.bool_]  # as wb_dtype counts


def value_of(file, record):
    kind = KINDS[wb.wb_record_kind_of(record)]
    if kind == "array":
        array = wb.wb_record_array(file, record)
        dtype = np.dtype(TYPES[wb.wb_dtype_of(array)])
        count = wb.wb_count(array)
        return np.frombuffer(ctypes.string_at(wb.wb_read_begin(array), count * dtype.itemsize), dtype).tolist() if count else []
    if kind == "list":
        return [wb.wb_record_text(wb.wb_record_at(record, i)).decode() for i in range(wb.wb_record_count(record))]
    if kind == "opaque":
        return wb.wb_record_type(record).decode()
    value = getattr(wb, "wb_record_" + kind)(record)
    return value.decode() if kind == "text" else value


def check_metadata(folder):
    path, wanted = folder / "values.gguf", {"general.architecture": "llama"}
    kinds = gguf.GGUFValueType
    writer = gguf.GGUFWriter(path, "llama")

    def add(key, value, kind, sub=None, read=None):
        writer.add_key_value(key, value, kind, sub)
        wanted[key] = value if read is None else read

    for kind in (kinds.UINT8, kinds.INT8, kinds.UINT16, kinds.INT16, kinds.UINT32, kinds.INT32, kinds.UINT64, kinds.INT64):
        signed, bits = kind.name.startswith("I"), int(kind.name.strip("UINT"))
        ends = [-(1 << bits - 1), (1 << bits - 1) - 1] if signed else [0, min((1 << bits) - 1, (1 << 63) - 1)]
        add(f"a.{kind.name}", ends[0], kind)
        add(f"z.{kind.name}", ends[1], kind)
        add(f"list.{kind.name}", [*ends, 7], kinds.ARRAY, kind)
    add("real", 0.1, kinds.FLOAT64)
    add("half", 0.5, kinds.FLOAT32)
    add("reals", [0.5, -2.0], kinds.ARRAY, kinds.FLOAT32)
    add("long", [0.1, 1e300], kinds.ARRAY, kinds.FLOAT64)
    add("yes", True, kinds.BOOL)
    add("bools", [True, False], kinds.ARRAY, kinds.BOOL)
    add("text", "λ\n", kinds.STRING)
    add("few", ["a", "", "λ"], kinds.ARRAY, kinds.STRING)
    add("many", [str(i) for i in range(LINE + 1)], kinds.ARRAY, kinds.STRING, f"{LINE + 1} texts")
    close(writer)
    run("convert", path, folder / "again.gguf")
    if (folder / "again.gguf").read_bytes() != path.read_bytes():
        fail("metadata do not come back as they were")
    file = wb.wb_open(str(path).encode())
    if not file:
        fail(wb.wb_error_message().decode())
    wb.wb_scope_open()
    map_ = wb.wb_file_metadata(file)
    got = {wb.wb_record_name(map_, i).decode(): value_of(file, wb.wb_record_at(map_, i)) for i in range(wb.wb_record_count(map_))}
    wb.wb_scope_close()
    wb.wb_free(file)
    if list(got.items()) != list(wanted.items()):
        fail("metadata", [(key, got.get(key), value) for key, value in wanted.items() if got.get(key) != value])
    return len(wanted)


# ---- models ----

def halves_to_pairs(x, heads):
    """How the converter of llama.cpp's writes queries and keys of Llama."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def tensors_of(model, name, map_):
    """The state of transformers' model under GGUF's names, as its converter turns it."""
    c = model.config
    heads = c.num_attention_heads
    keys = getattr(c, "num_key_value_heads", heads)
    tied = getattr(c, "tie_word_embeddings", False) and name != "bert"
    for key, tensor in model.state_dict().items():
        x = tensor.numpy()
        if key.startswith("pooler") or key.endswith((".attn.bias", "masked_bias", "position_ids", "inv_freq")) or (tied and key == "lm_head.weight"):
            continue
        if name == "gpt2" and key.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
            x = np.ascontiguousarray(x.T)
        if name.startswith("llama") and key.endswith(("q_proj.weight", "q_proj.bias")):
            x = halves_to_pairs(x, heads)
        if name.startswith("llama") and key.endswith(("k_proj.weight", "k_proj.bias")):
            x = halves_to_pairs(x, keys)
        yield map_.get_name(key, try_suffixes=(".weight", ".bias")), np.ascontiguousarray(x)


def write_model(path, model, name, kind=None):
    """kind: the type of matrices."""
    c = model.config
    architecture = {"g": "gpt2", "l": "llama", "q": "qwen2", "b": "bert"}[name[0]]
    writer = gguf.GGUFWriter(path, architecture)
    layers = c.num_hidden_layers
    map_ = gguf.get_tensor_name_map({name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[architecture], layers)
    writer.add_context_length(c.max_position_embeddings)
    writer.add_embedding_length(c.hidden_size)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(4 * c.n_embd if architecture == "gpt2" else c.intermediate_size)
    writer.add_head_count(c.num_attention_heads)
    if architecture in ("gpt2", "bert"):
        writer.add_layer_norm_eps(c.layer_norm_epsilon if architecture == "gpt2" else c.layer_norm_eps)
    else:
        writer.add_head_count_kv(c.num_key_value_heads)
        writer.add_layer_norm_rms_eps(c.rms_norm_eps)
        writer.add_rope_freq_base(c.rope_theta)
        writer.add_rope_dimension_count(c.hidden_size // c.num_attention_heads)
    if architecture == "bert":
        writer.add_causal_attention(False)
    if name == "llama-linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(c.rope_scaling["factor"])
    if name == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_divisors(c))
    for tensor, x in tensors_of(model, name, map_):
        is_packed = kind is not None and x.ndim == 2 and x.shape[1] % 32 == 0
        writer.add_tensor(tensor, gguf.quants.quantize(x, kind) if is_packed else x, raw_dtype=kind if is_packed else None)
    close(writer)


def llama3_divisors(c, factor=8, low=1, high=4, length=8192):
    """As llama.cpp's converter writes them."""
    width = c.hidden_size // c.num_attention_heads
    waves = 2 * np.pi * c.rope_theta ** (np.arange(0, width, 2, dtype=np.float32) / width)
    smooth = (length / waves - low) / (high - low)
    between = 1 / ((1 - smooth) / factor + smooth)
    return np.where(waves < length / high, 1, np.where(waves > length / low, factor, between)).astype(np.float32)


def models():
    llama = dict(vocab_size=60, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                 max_position_embeddings=128)
    bert = transformers.BertConfig(vocab_size=60, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                                   max_position_embeddings=64)
    return {
        "gpt2": transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, n_positions=64, vocab_size=60)),
        "llama": transformers.LlamaForCausalLM(transformers.LlamaConfig(**llama)),
        "llama-tied": transformers.LlamaForCausalLM(transformers.LlamaConfig(attention_bias=True, tie_word_embeddings=True, rope_theta=500.0,
                                                                             rms_norm_eps=1e-5, **llama)),
        "llama-linear": transformers.LlamaForCausalLM(transformers.LlamaConfig(rope_scaling={"type": "linear", "factor": 4.0}, **llama)),
        "qwen2": transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**llama)),
        "bert": transformers.BertModel(transformers.BertConfig(**bert.to_dict())),
    }


def results(model, x):
    with torch.no_grad():
        return model(torch.from_numpy(x).long())[0].numpy()


def difference(path, inputs):
    """The largest one that `weber convert --check` finds."""
    said = run("convert", path, path.with_suffix(".npz"), "--model", f"--check={inputs}")
    return float(re.search(r"difference is ([0-9.e+-]+),", said).group(1))


def check_models(folder):
    torch.manual_seed(0)
    for name, model in models().items():
        model.eval()
        for parameter in model.parameters():
            parameter.data += torch.randn_like(parameter) * 0.1
        tokens = RANDOM.integers(0, 60, (2, 11))
        inputs, place = folder / "io.npz", folder / name
        np.savez(inputs, x=tokens.astype("int32"), y=results(model, tokens))
        model.save_pretrained(place)
        write_model(folder / f"{name}.gguf", model, name)
        ours, theirs = difference(folder / f"{name}.gguf", inputs), difference(place, inputs)
        if abs(ours - theirs) > 1e-6:
            fail(f"{name}: the GGUF file differs by {ours}, the folder by {theirs}")
        # what is packed: the same model with the numbers that gguf makes of the blocks
        write_model(folder / f"{name}-q8.gguf", model, name, Type.Q8_0)
        for key, parameter in model.named_parameters():
            x = parameter.data.numpy().T if ".c_" in key else parameter.data.numpy()  # Conv1D
            if x.ndim == 2 and x.shape[1] % 32 == 0:
                x = gguf.quants.dequantize(gguf.quants.quantize(np.ascontiguousarray(x), Type.Q8_0), Type.Q8_0)
                parameter.data = torch.from_numpy(np.ascontiguousarray(x.T) if ".c_" in key else x)
        np.savez(inputs, x=tokens.astype("int32"), y=results(model, tokens))
        difference(folder / f"{name}-q8.gguf", inputs)
    check_generate(folder)
    check_llama3(folder)
    return len(models()) + 1


def check_generate(folder):
    """The tokenizer beside the file, and the text that the folder gives; only the folder says which token ends it."""
    letters = {letter: i for i, letter in enumerate("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01234567")}
    for place in (folder, folder / "llama"):
        (place / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": letters, "merges": []}}))
    texts = [run("generate", path, "hello", "--tokens=20", "--temperature=0").rstrip("\n") for path in (folder / "llama.gguf", folder / "llama")]
    if not texts[0].startswith(texts[1]) or len(texts[0].split()) != 25:
        fail("weber generate:", texts)


def check_llama3(folder):
    """Its numbers are not in the file, but what follows from them."""
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=9, hidden_size=64, intermediate_size=32, num_hidden_layers=1,
                                                                   num_attention_heads=1, rope_theta=500000.0))
    write_model(folder / "llama3.gguf", model, "llama3")
    run("convert", folder / "llama3.gguf", folder / "llama3.safetensors", "--model")
    wanted = "rotary=5e+05, rotary_factor=8, rotary_low=1, rotary_high=4, rotary_length=8192"
    said = (folder / "llama3.safetensors").read_bytes().decode(errors="replace")
    if wanted not in said:
        fail("llama3:", said[:700])


with tempfile.TemporaryDirectory() as name:
    count = check_models(Path(name))
    print(f"gguf: {check_tensors(Path(name))} tensors and {check_metadata(Path(name))} values of metadata agree; "
          f"transformers {transformers.__version__}: {count} models agree")
