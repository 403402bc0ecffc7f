#!/usr/bin/env python3
"""fuzz/seeds.py FOLDER: what the targets begin with, in FOLDER/safetensors, FOLDER/npy, FOLDER/npz, FOLDER/pt, ...; BSON's are the fixtures
of the tests. Needs nothing but Python. The checksums in the zip files are zero, as fuzz_npz.c expects."""
import gzip
import json
import random
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


def bson(value):
    """A document of texts, numbers, None, lists and dictionaries."""
    out = b""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        kind, data = {str: lambda: (2, struct.pack("<I", len(item.encode()) + 1) + item.encode() + b"\0"),
                      int: lambda: (0x12, struct.pack("<q", item)), float: lambda: (1, struct.pack("<d", item)),
                      dict: lambda: (3, bson(item)), list: lambda: (4, bson(item)), type(None): lambda: (10, b"")}[type(item)]()
        out += bytes([kind]) + str(key).encode() + b"\0" + data
    return struct.pack("<I", len(out) + 5) + out + b"\0"


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
