#!/usr/bin/env python3
"""fuzz/seeds.py FOLDER: what the targets begin with, in FOLDER/safetensors, FOLDER/npy, FOLDER/npz, FOLDER/pt, FOLDER/jld2, ...; BSON's are the fixtures
of the tests. Needs nothing but Python. The checksums in the zip files are zero, as fuzz_npz.c expects."""
import base64
import gzip
import json
import random
import re
import struct
import sys
import zlib
from pathlib import Path


def safetensors(header, size):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(range(size))


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def npy(descr, fortran, shape, size, version=1):
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + bytes(range(size))


def zipped(entries, zip64=False):
    """Entries: name, bytes, method."""
    out, directory = b"", b""
    for name, data, method in entries:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        stored = data if method == 0 else packer.compress(data) + packer.flush()
        sizes = (0xFFFFFFFF, 0xFFFFFFFF) if zip64 else (len(stored), len(data))
        extra = struct.pack("<HHQQ", 1, 16, len(data), len(stored)) if zip64 else b""
        common = struct.pack("<HHIIII", 0, method, 0, 0, *sizes) + struct.pack("<HH", len(name), len(extra))
        directory += b"PK\1\2" + struct.pack("<HH", 20, 20) + common
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(out)) + name.encode() + extra
        out += b"PK\3\4" + struct.pack("<H", 20) + common + name.encode() + extra + stored
    end, n = b"", len(entries)
    if zip64:
        end = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, n, n, len(directory), len(out))
        end += b"PK\6\7" + struct.pack("<IQI", 0, len(out) + len(directory), 1)
    end += b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, n, n, len(directory), len(out), 0)
    return out + directory + end


def gguf(pairs, tensors, version=3, alignment=32):
    """Pairs: key, type of the value, its bytes. Tensors: name, sizes, type, bytes of data."""
    def text(name):
        return struct.pack("<Q", len(name)) + name.encode()

    out, data = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs)), b""
    for key, kind, value in pairs:
        out += text(key) + struct.pack("<I", kind) + value
    for name, sizes, kind, size in tensors:
        out += text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, len(data))
        data += bytes(i % 251 for i in range(size)) + bytes(-size % alignment)
    return out + bytes(-len(out) % alignment) + data


def gguf_files():
    texts = struct.pack("<IQ", 8, 2) + 2 * (struct.pack("<Q", 1) + b"a")
    pairs = [("general.architecture", 8, struct.pack("<Q", 5) + b"llama"), ("llama.block_count", 4, struct.pack("<I", 2)),
             ("tokens", 9, texts), ("scores", 9, struct.pack("<IQff", 6, 2, 0.5, 1.0)), ("short", 9, struct.pack("<IQhh", 3, 2, -1, 1)),
             ("wide", 9, struct.pack("<IQQ", 10, 1, 1 << 40)), ("b", 7, b"\1"), ("d", 12, struct.pack("<d", 0.5))]
    yield "empty", gguf([], [])
    yield "values", gguf(pairs, [], 2)
    yield "many", gguf([("m", 9, struct.pack("<IQ", 8, 65) + 65 * struct.pack("<Q", 0))], [])
    yield "plain", gguf([], [("a.0.w", (2, 3), 0, 24), ("a.1.w", (4,), 1, 8), ("b", (), 30, 2), ("c", (3,), 24, 3), ("d", (2, 0), 27, 0)])
    yield "blocks", gguf(pairs[:2], [("q8", (32, 2), 8, 68), ("q4", (32,), 2, 18), ("k4", (256,), 12, 144), ("k6", (256,), 14, 210),
                                     ("old", (32,), 3, 20), ("new", (8,), 99, 0)])
    def u32(key, value):
        return f"llama.{key}", 4, struct.pack("<I", value)

    def f32(name, *sizes):
        size = 4
        for n in sizes:
            size *= n
        return name, sizes, 0, size

    llama = [pairs[0], u32("block_count", 1), u32("embedding_length", 4), u32("feed_forward_length", 6), u32("attention.head_count", 2),
             u32("attention.head_count_kv", 1), u32("rope.dimension_count", 2), ("llama.rope.freq_base", 6, struct.pack("<f", 1e4)),
             ("llama.rope.scaling.type", 8, struct.pack("<Q", 6) + b"linear"), ("llama.rope.scaling.factor", 6, struct.pack("<f", 2))]
    arrays = [f32("token_embd.weight", 4, 7), f32("output_norm.weight", 4), f32("blk.0.attn_norm.weight", 4), f32("blk.0.ffn_norm.weight", 4),
              f32("blk.0.attn_q.weight", 4, 4), f32("blk.0.attn_k.weight", 4, 2), f32("blk.0.attn_v.weight", 4, 2),
              f32("blk.0.attn_output.weight", 4, 4), f32("blk.0.ffn_gate.weight", 4, 6), f32("blk.0.ffn_up.weight", 4, 6),
              f32("blk.0.ffn_down.weight", 6, 4)]
    yield "llama", gguf(llama, arrays)
    yield "llama3", gguf(llama[:8], [*arrays, f32("output.weight", 4, 7), f32("rope_freqs.weight", 1)])
    yield "aligned", gguf([("general.alignment", 4, struct.pack("<I", 8))], [("a", (1,), 0, 4), ("b", (1,), 28, 8)], alignment=8)


def bson(value):
    """A document of texts, numbers, None, lists and dictionaries."""
    out = b""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        kind, data = {str: lambda: (2, struct.pack("<I", len(item.encode()) + 1) + item.encode() + b"\0"),
                      int: lambda: (0x12, struct.pack("<q", item)), float: lambda: (1, struct.pack("<d", item)),
                      dict: lambda: (3, bson(item)), list: lambda: (4, bson(item)), type(None): lambda: (10, b"")}[type(item)]()
        out += bytes([kind]) + str(key).encode() + b"\0" + data
    return struct.pack("<I", len(out) + 5) + out + b"\0"


class Jld2:
    """Parts of a JLD2 file, from the inside out, each a method that gives its address; checksums are zero."""
    I64, F32 = bytes([0x30, 8, 0, 0, 8, 0, 0, 0, 0, 0, 64, 0]), bytes([0x31, 32, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0])
    REF, BOOL, EMPTY = bytes([0x37, 0, 0, 0, 8, 0, 0, 0]), bytes([0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]), bytes([0x35, 0, 0, 0, 1, 0, 0, 0])
    TEXT, REFS = bytes([0x39, 17, 1, 0, 16, 0, 0, 0, 0x30, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0]), bytes([0x39, 0, 0, 0, 16, 0, 0, 0]) + REF

    def __init__(self, text=b"HDF5-based Julia Data Format, version 0.2.0"):
        self.out = text.ljust(560, b"\0")
        value = self.julia("Core.DataType")
        self.types = len(self.out) - 512
        self.header([(3, 1, self.compound(name=self.TEXT, parameters=self.REFS)), self.attribute("julia_type", self.types, value)])

    def put(self, data):
        self.out += data
        return len(self.out) - len(data) - 512

    def heap(self, data, count):
        padded = data + bytes(-len(data) % 8)
        return struct.pack("<IQI", count, self.put(b"GCOL\1\0\0\0" + struct.pack("<QQQ", 16 + len(padded), 0x10001, len(data)) + padded), 1)

    def text(self, text):
        return self.heap(text.encode(), len(text.encode()))

    def julia(self, name, *parameters):
        return self.text(name) + (self.heap(struct.pack(f"<{len(parameters)}Q", *parameters), len(parameters)) if parameters else bytes(16))

    def header(self, messages):
        body = b"".join(struct.pack("<BHB", kind, len(data), flags) + data for kind, flags, data in messages)
        return self.put(b"OHDR\2\2" + struct.pack("<I", len(body)) + body + bytes(4))

    @staticmethod
    def compound(**members):
        out, offset = b"", 0
        for name, kind in members.items():
            out += name.encode() + bytes([0, offset]) + kind
            offset += kind[4]
        return b"\x36" + len(members).to_bytes(3, "little") + struct.pack("<I", offset) + out

    @staticmethod
    def space(sizes):
        return bytes([2, 0, 0, 0] if sizes is None else [2, len(sizes), 0, 1]) + struct.pack(f"<{len(sizes or [])}Q", *(sizes or []))

    def attribute(self, name, kind, value, sizes=None):
        own = b"\3\2" + struct.pack("<Q", kind) if isinstance(kind, int) else kind
        space = self.space(sizes)
        return (12, 0, struct.pack("<BBHHH", 2, isinstance(kind, int), len(name) + 1, len(own), len(space)) + name.encode() + b"\0" + own + space + value)

    def commit(self, kind, name, *parameters, written=None, fields=None, old=None):
        messages = [(3, 1, kind), self.attribute("julia_type", self.types, self.julia(name, *parameters))]
        if written:
            messages.append(self.attribute("written_type", self.types, self.julia(written)))
        if kind == self.EMPTY:
            messages.append(self.attribute("empty", self.BOOL, b"\1"))
        if fields:
            messages.append(self.attribute("field_names", self.TEXT, b"".join(self.text(n) for n in fields), [len(fields)]))
        if fields or old:
            types = list(fields.values()) if fields else old
            messages.append(self.attribute("field_types" if fields else "field_datatypes", self.REF, struct.pack(f"<{len(types)}Q", *types), [len(types)]))
        return self.header(messages)

    def dataset(self, kind, data, sizes=None, filters=None, away=False):
        if filters:
            place = struct.pack(f"<BB3B{len(sizes) + 1}QBQIQ", 4, 2, 2, len(sizes) + 1, 8, *sizes, 4, 1, len(data), 0, self.put(data))
        else:
            place = struct.pack("<BBQQ", 4, 1, self.put(data), len(data)) if away else struct.pack("<BBH", 4, 0, len(data)) + data
        own = (3, 2, b"\3\2" + struct.pack("<Q", kind)) if isinstance(kind, int) else (3, 1, kind)
        space = (1, 0, self.space(sizes))
        return self.header([(5, 0, b"\3\t"), space, own] + ([(11, 0, filters)] if filters else []) + [(8, 0, place), (0, 0, bytes(16))])

    def nothing(self, kind, more=()):
        return self.header([(1, 0, b"\2\0\0\2"), *more, (3, 2, b"\3\2" + struct.pack("<Q", kind)), (8, 0, b"\4\0\0\0")])

    def refs(self, *addresses):
        return self.dataset(self.REF, struct.pack(f"<{len(addresses)}Q", *addresses), [len(addresses)])

    def file(self, **links):
        root = self.group(links)
        head = b"\x89HDF\r\n\x1a\n\2\x08\x08\0" + struct.pack("<QQQQI", 512, 2**64 - 1, len(self.out), root, 0)
        return self.out[:512] + head + self.out[560:]

    def group(self, links):
        names = [(6, 0, b"\1\x10\1" + bytes([len(n)]) + n.encode() + struct.pack("<Q", at)) for n, at in links.items()]
        return self.header([(2, 0, b"\0\0" + b"\xff" * 16), (10, 0, b"\0\0")] + names)


def pictures():
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    for depth, colours, channels in [(8, 0, 1), (1, 0, 1), (16, 2, 3), (4, 3, 1), (8, 4, 2), (8, 6, 4)]:
        for interlaced, width, height in [(0, 11, 6), (1, 1, 1)]:
            row = b"\0" + bytes((7 * i) % 256 for i in range((width * depth * channels + 7) // 8))
            header = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, interlaced)
            palette = chunk(b"PLTE", bytes(range(48))) + chunk(b"tRNS", b"\0\x80") if colours == 3 else b""
            pixels = chunk(b"IDAT", zlib.compress(row * height))
            yield f"{depth}_{colours}_{interlaced}.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + pixels + chunk(b"IEND", b"")
    jpegs = (Path(__file__).resolve().parent.parent / "tests/images/jpegs.h").read_text()
    for name, numbers in re.findall(r"(jpeg_\w+)\[\d+\] = \{([^}]*)\}", jpegs):
        yield name, bytes(int(number) for number in numbers.split(","))


def tokenizers():
    """A file, a zero byte, a text."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False}
    gpt = {"type": "BPE", "vocab": {c: i for i, c in enumerate("helo\u0120!\u00c3\u00a9")} | {"ll": 20, "he": 21}, "merges": ["l l", ["h", "e"]]}
    end = [{"id": 30, "content": "<e>", "special": True, "normalized": False, "lstrip": True, "rstrip": True}, {"id": 31, "content": "Xy", "single_word": True}]
    yield {"model": gpt, "pre_tokenizer": byte_level, "decoder": byte_level, "added_tokens": end}, "hello Xy <e> he\u00e9!!"
    split = {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}|\\s+(?!\\S)|[^\\r\\n]?\\w+"}, "behavior": "MergedWithNext", "invert": False}
    yield {"model": gpt | {"ignore_merges": True}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level | {"use_regex": False}]},
           "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}, {"type": "StripAccents"}]}}, "He\u0301 1234 ll"
    llama = {"type": "BPE", "vocab": {"<unk>": 0, "<0xC3>": 1, "<0xA9>": 2, "a": 3, "\u2581": 4, "\u2581a": 5}, "merges": [["\u2581", "a"]],
             "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    back = [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    yield {"model": llama, "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, replace]},
           "decoder": {"type": "Sequence", "decoders": back}}, "a a\u00e9xyz"
    bert = {"type": "WordPiece", "unk_token": "[U]", "max_input_chars_per_word": 9, "vocab": {"[U]": 0, "[C]": 1, "[S]": 2, "un": 3, "##aff": 4, ",": 5}}
    yield {"model": bert, "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##"},
           "post_processor": {"type": "BertProcessing", "cls": ["[C]", 1], "sep": ["[S]", 2]}}, "Unaff,\u4e2d x"
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"}
    template = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "s"}}], "special_tokens": {"s": {"ids": [9]}}}
    yield {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["\u2581", -3], ["a", -2.5], ["ab", -3], ["\u2581a", -1]]}, "pre_tokenizer": space,
           "decoder": space, "post_processor": template}, "ab xyab"
    table = struct.pack("<I", 1100) + struct.pack("<275I", *[1 << 10 | 256 if i % 3 else i << 10 | i & 255 for i in range(275)]) + b"a\0bc\0"
    yield {"model": gpt, "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()}}, "hello abc e\u0301"
    others = [{"type": "WhitespaceSplit"}, {"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}, {"type": "Punctuation"},
              {"type": "CharDelimiterSplit", "delimiter": "-"}]
    yield {"model": gpt, "pre_tokenizer": {"type": "Sequence", "pretokenizers": others}, "normalizer": {"type": "Strip"}}, " he-l1! l"


def folders():
    """config.json, a zero byte, the index of the two files that the target fuzz_folder has."""
    def index(names, b=()):
        return {"weight_map": {name: "b.safetensors" if name in b or any(name.startswith(x) for x in b) else "a.safetensors" for name in names}}
    gpt2 = [f"transformer.{x}" for x in ("wte.weight", "wpe.weight", *(f"h.0.{y}.{z}" for y in ("ln_1", "ln_2", "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
                                                                       for z in ("weight", "bias")), "ln_f.weight", "ln_f.bias")]
    yield {"architectures": ["GPT2LMHeadModel"], "vocab_size": 7, "n_positions": 5, "n_embd": 4, "n_layer": 1, "n_head": 2, "n_inner": 6,
           "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "eos_token_id": 3}, index(gpt2)
    block = "model.layers.0."
    llama = ["model.embed_tokens.weight", *(block + x + ".weight" for x in ("input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj")),
             *(block + x + ".weight" for x in ("self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")), "model.norm.weight", "lm_head.weight"]
    sizes = {"vocab_size": 7, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 6,
             "hidden_act": "silu", "eos_token_id": [3, 4]}
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8}
    yield {"architectures": ["LlamaForCausalLM"], "rope_scaling": scaling} | sizes, index(llama, llama[5:])
    yield {"architectures": ["MistralForCausalLM"], "sliding_window": 2, "rope_parameters": {"rope_theta": 99.0, "rope_type": "default"}} | sizes, index(llama, llama[5:])
    bert = ["bert.embeddings." + x for x in ("word_embeddings.weight", "position_embeddings.weight", "token_type_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias")]
    yield {"architectures": ["BertModel"], "vocab_size": 7, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 6,
           "max_position_embeddings": 5, "type_vocab_size": 2, "hidden_act": "gelu", "position_embedding_type": "absolute"}, index(bert, bert)


def jld2_files():
    array = struct.pack("<6f", *range(6))
    j = Jld2()
    relu, bf16 = j.commit(j.EMPTY, "NNlib.#relu"), j.commit(bytes([0x35, 0, 0, 0, 2, 0, 0, 0]), "BFloat16s.BFloat16")
    weight = j.dataset(j.F32, array, [2, 3], away=True)
    dense = j.commit(j.compound(weight=j.REF, bias=j.BOOL), "Flux.Dense", relu, fields={"weight": 0, "bias": 0, "σ": relu})
    layer = j.dataset(dense, struct.pack("<Q", weight) + b"\0")
    yield "new", j.file(model=layer, again=j.refs(weight, 0, layer), h=j.dataset(bf16, b"\x80\x3f", [1]))
    j = Jld2(b"HDF5-based Julia Data Format, version 0.1.1")
    symbol, two = j.commit(j.TEXT, "Core.Symbol"), j.dataset(j.I64, struct.pack("<q", 2))
    names = j.commit(j.compound(**{"1": j.TEXT, "2": j.TEXT}), "NTuple", two, symbol, old=[symbol, symbol])
    pair = j.dataset(names, j.text("a") + j.text("b"))
    types = [j.dataset(j.types, j.julia(n)) for n in ("Core.Int64", "Tuple", "NNlib.#relu")]
    named = j.commit(j.compound(a=j.I64), "Core.NamedTuple", pair, j.dataset(j.types, j.julia("Tuple", *types[:2])))
    scale = j.commit(j.compound(scale=j.I64), "Flux.Flux.Scale", types[2])
    yield "old", j.file(a=j.dataset(named, bytes(8)), b=j.dataset(scale, bytes(8)), c=j.dataset(symbol, j.text("x")))
    j = Jld2(b"Julia data file (HDF5), version 0.2.0")
    kind = j.commit(j.compound(first=j.REF, second=j.REF), "Base.Pair")
    key, value = j.dataset(bytes([0x33, 17, 0, 0, 1, 0, 0, 0]), b"k"), j.dataset(j.I64, bytes(8))
    pairs = j.refs(j.dataset(kind, struct.pack("<QQ", key, value)))
    old = j.commit(j.REF, "Base.Dict", written="Core.Array")
    new = j.commit(j.compound(kvvec=j.REF), "Base.Dict", written="JLD2.SerializedDict")
    yield "dictionaries", j.file(d=j.dataset(new, struct.pack("<Q", pairs)), e=j.dataset(old, struct.pack("<Q", pairs)))
    j = Jld2()
    deflate, shuffle = b"\1\0\0\0\1\0\5\0\0\0", b"\2\0\0\0\1\0\4\0\0\0"
    zstd = b"\x0f\x7d\x08\0\0\0\1\0ZSTD\0\0\0\0\3\0\0\0"
    yield "filters", j.file(a=j.dataset(j.F32, zlib.compress(array), [2, 3], b"\2\1" + deflate), z=j.dataset(j.F32, b"abc", [6], b"\2\1" + zstd),
                            b=j.dataset(j.F32, zlib.compress(array), [6], b"\2\2" + shuffle + deflate))
    j = Jld2()
    none, missing = j.commit(j.EMPTY, "Core.Nothing"), j.commit(j.EMPTY, "Base.Missing")
    sizes = j.attribute("dimensions", j.I64, struct.pack("<qq", 2, 3), [2])
    either = j.commit(j.compound(mask=j.BOOL, t2=j.F32), "JLD2.InlineUnionEl", fields={"mask": 0, "t1": missing, "t2": 0})
    texts = j.dataset(j.TEXT, j.text("a") + bytes(16), [2])
    repeated = j.commit(j.EMPTY, "NTuple", j.dataset(j.I64, struct.pack("<q", 2)), none)
    group = j.group({"inner": texts, "type": j.dataset(j.types, j.julia("Core.Array", none))})
    yield "nothings", j.file(n=j.nothing(none, [sizes]), m=j.nothing(missing), t=j.nothing(repeated), g=group,
                             e=j.dataset(either, b"\0\0\0\0\0\1" + array[:4], [2]))


def files():
    notes = {"weber.shared": json.dumps({"list.2": "list.1", "tied": "list"}), "format": "pt"}
    yield "safetensors/empty", safetensors({}, 0)
    yield "safetensors/one", safetensors({"a": tensor("F32", [2, 1], 0, 8)}, 8)
    yield "safetensors/nested", safetensors({"a.1.w": tensor("U8", [2], 0, 2), "a.1": tensor("BF16", [], 2, 4),
                                             "a.10.w": tensor("I16", [1], 4, 6), "b": tensor("F8_E4M3", [0], 6, 6)}, 6)
    yield "safetensors/notes", safetensors({"__metadata__": notes, "list.1": tensor("F64", [1], 0, 8)}, 8)
    yield "safetensors/spaces", safetensors(b'{"\\u03c3": {"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}   ', 1)
    yield "npy/c", npy("'<f4'", False, (2, 3), 24)
    yield "npy/fortran", npy("'>i8'", True, (2,), 16, 2)
    yield "npy/scalar", npy("'|u1'", True, (), 1, 3)
    yield "npy/structure", npy("[('a', '<f4'), ('b', [('c', '|u1', (2,))])]", False, (1,), 6)
    array = npy("'<f2'", False, (2,), 4)
    a = {"tag": "struct", "type": {"tag": "datatype", "params": [], "name": ["Weber", "Array"]}, "data": ["a"]}
    tree = bson({"tree": {"w": a, "epoch": 3, "list": [0.5, a, None, "x"]}, "metadata": {"format": "pt"}})
    storage = b"(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x000X\3\0\0\0cpuK\6tQ"
    tensor_of = (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0K\2K\3\x86K\3K\1\x86\x89ccollections\n"
                 b"OrderedDict\n)RtR")
    pickles = {"state": b"\x80\2ccollections\nOrderedDict\nq\0)Rq\1(X\3\0\0\0a.bq\2" + tensor_of + b"X\1\0\0\0ch\2u}X\1\0\0\0zNsb.",
               "values": b"\x80\4\x95\0\0\0\0\0\0\0\0}(\x8c\1a\x94](K\1M\1\1J\1\0\0\0\x8a\1\2G?\xf0\0\0\0\0\0\0\x88Neh\0K\1\x85u.",
               "lines": b"(dp0\nI1\n(lp1\nF0.5\naL2L\nas."}
    for name, pickle in pickles.items():
        yield f"pt/{name}", zipped([("a/data.pkl", pickle, 0), ("a/byteorder", b"little", 0), ("a/data/0", bytes(24), 0)])
    old = b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}X\r\0\0\0little_endian\x88s."
    rest = b"\x80\2]X\1\0\0\x000a." + struct.pack("<q", 6) + bytes(24)
    yield "pt/old", old + pickles["state"] + rest
    yield "pt/old_view", old + pickles["state"].replace(b"cpuK\6tQ", b"cpuK\6(X\1\0\0\x001K\0K\6ttQ") + rest
    module = b"c__torch__\nM\n)\x81}(X\2\0\0\0fcc__torch__\nL\n)\x81}X\6\0\0\0weight" + tensor_of + b"sbX\1\0\0\0n\x88ub"
    for name, data, constants in (("script", module, b")"), ("frozen", b"c__torch__\nM\n)\x81}b", tensor_of + b"\x85")):
        yield f"pt/{name}", zipped([("a/data.pkl", b"\x80\2" + data + b".", 0), ("a/constants.pkl", b"\x80\2" + constants + b".", 0),
                                    ("a/code/m.py", b"hello" * 9, 8), ("a/data/0", bytes(24), 0), ("a/constants/0", bytes(24), 0)])
    for name, data in gguf_files():
        yield f"gguf/{name}", data
    for name, data in jld2_files():
        yield f"jld2/{name}", data
    for i, text in enumerate(['{"a": [1, -2.5e3, true, null, {"b": "\\u00e9\\ud83d\\ude00"}], "c": "\\n\\u0000"}', ' "x" ', '[[[[]]], {}, 0.5]',
                              json.dumps({str(i): i for i in range(20)}), '{"a": 1, "\\u0061": 2}', '[-9223372036854775808, 9223372036854775808, -0]']):
        yield f"json/{i}", text.encode()
    for i, (tokenizer, text) in enumerate(tokenizers()):
        yield f"tokenizer/{i}", json.dumps(tokenizer).encode() + b"\0" + text.encode()
    for name, picture in pictures():
        yield f"image/{name}", picture
    for i, (config, index) in enumerate(folders()):
        yield f"folder/{i}", json.dumps(config).encode() + b"\0" + json.dumps(index).encode()
    yield "npz/empty", zipped([])
    yield "npz/stored", zipped([("a.npy", array, 0), ("b.c.npy", array, 0), ("d/", b"", 0)])
    yield "npz/deflated", zipped([("a.npy", array, 8), ("text", b"hello" * 9, 8)])
    yield "npz/notes", zipped([("a.npy", array, 8), ("weber.bson", tree, 0)])
    yield "npz/zip64", zipped([("a.npy", array, 0), ("b.npy", array, 8)], zip64=True)
    names = b"\0".join([b"0.weight", b"0.bias", b"3.weight", b"h.0.attn.c", b"a.b.c.weight", b"layer1_2"]) + b"\0"
    tables = [b"0.weight -> layers.1.weight flip # Conv2d\n*.bias   -> layers.*+1.bias\n3.weight -> x transpose\n",
              b"h.*.attn.* -> layers.*+1.*\n**.weight -> **.w\n\"a b\" -> \"*\"\n", b"layer*_* -> layers.*.*\n*.num ->\n",
              b"3.weight -> q part 1/3 along 1\n3.weight -> k permute 1,0 part 2/2 along 0\n", b""]
    for i, table in enumerate(tables):
        yield f"rename/{i}", table + b"\0" + names
    for i in range(40):
        yield f"torch/{i}", random.Random(i).randbytes(20 + 8 * i)
    structures = ["Chain(LayerNorm(3, relu, eps=0.5), GroupNorm(4, 2), SkipConnection(Dense(4 => 4), +))",
                  "Parallel(vcat, Embedding(5 => 2, padding_idx=1), PairwiseFusion(+, Scale(2), RMSNorm(2)))",
                  "Maxout(ConvTranspose((3,), 2 => 2, stride=2, outpad=(1,)), PixelShuffle(2), AdaptiveMeanPool((2, 2)), GlobalMaxPool())",
                  "Chain(Conv((3, 3), 1 => 2, relu; pad = 1, bias = false), MaxPool((2, 2)), flatten, Dropout(0.5), Dense(8 => 3, tanh), softmax)",
                  "Chain(a = Dense(2 => 2), b = Dense(2 => 2))\nlayers.b.weight = transpose(layers.a.weight)\n",
                  "Chain(CrossCor((2,), 1 => 1; stride = 2, dilation = (2,)), MeanPool((2, 2); pad = (1, 0)), Flux.Dense(1 => 1; bias = false))",
                  "Chain(Dense(2 => 2), BatchNorm(2, relu, affine=false, eps=0.1f0, momentum=0.5), BatchNorm(4; track_stats=false))",
                  "(Dense(3 => 2), zeros(Float32, 2, 3), var\"a b\" = Chain())"]
    for i, structure in enumerate(structures):
        yield f"structure/{i}", structure.encode()
    # the first byte of a table and of CIFAR's records says how the rest is read
    tables = [b"\0a,b,c\n1,0.5,x\n2,-1e3,y\n", b"\1\xef\xbb\xbf1,2\r\n\r\n3,4\r\n", b'\6a;b\n"q ""x""";\n"two\nlines"; 5 \n',
              b"\12a,b\nNA,nan\n-Inf,9223372036854775808\n", b"\0", b"\0a,a\n", b'\0a\n"x\n']
    for i, table in enumerate(tables):
        yield f"csv/{i}", table
    small = bytes([0, 0, 8, 2]) + struct.pack(">II", 2, 3) + bytes(range(6))
    yield "idx/u8", small
    yield "idx/gzip", gzip.compress(small, mtime=0)
    yield "idx/f64", bytes([0, 0, 14, 1]) + struct.pack(">Id", 1, 0.5)
    yield "idx/scalar", bytes([0, 0, 13, 0]) + struct.pack(">f", 0.5)
    yield "cifar/one", bytes([0, 7]) + bytes(range(256)) * 12
    yield "cifar/fine", bytes([1, 3, 70]) + bytes(range(256)) * 12
    # the first byte says which: greeting, collective, text, shared memory
    yield "ranks/greeting", b"\0" + struct.pack("<8sII32sQQ", b"weber", 2, 1, b"0.1.0", 3, 4)
    yield "ranks/no_secret", b"\0" + struct.pack("<8sII32sQQ", b"weber", 2, 0, b"0.1.0", 3, 4)
    yield "ranks/same", b"\1" + struct.pack("<qqqiiiiii", 0, 4, 0, 0, 0, 0, 0, 0, 0)
    yield "ranks/other", b"\1" + struct.pack("<qqqiiiiii", 7, 4, 9, 4, 3, 1, 2, 1, 0)
    yield "ranks/text", b"\2matmul: A is (2, 5)\n\x1b[2J"
    yield "ranks/memory", b"\3" + struct.pack("<IIII", 0x57424C33, 2, 0, 0)
    yield "ranks/told", b"\3" + struct.pack("<IIII", 0x57424C33, 2, 2, 0) + b"matmul: A is (2, 5)\0"
    yield "ranks/endless", b"\3" + struct.pack("<IIII", 0x57424C33, 2, 99, 77) + b"x" * 1500
    for i in range(130):
        yield f"calls/{i}", random.Random(i).randbytes(6000)
    yield "cifar/cut", bytes([0, 7]) + bytes(range(100))


folder = Path(sys.argv[1])
for path, data in files():
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data)
