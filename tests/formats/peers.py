#!/usr/bin/env python3
"""tests/formats/peers.py numpy|torch BUILD: files against NumPy and the safetensors package, or against PyTorch.

What they write Weber reads, what Weber writes they read; types, shapes and bytes are compared. BUILD has libweber.so and bin/weber. NumPy and
safetensors come from this Python, or from an environment under build/ made for them; torch is Debian's (python3-torch), since for this
processor the package index has it only with CUDA, several gigabytes of it. 77 (skipped) where they cannot be had."""
import ctypes
import fcntl
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = ROOT / "build" / "peers-files"
SYSTEM = Path("/usr/bin/python3")  # for which Debian's packages are


def skip(*why):
    print("skipped:", *why)
    sys.exit(77)


def last_line(result):
    return ((result.stderr or result.stdout).strip().splitlines() or ["without a word"])[-1]


def ensure_packages():
    """Goes on in an environment that has the packages; ends as skipped without one."""
    try:
        import numpy, safetensors.numpy  # noqa: F401
        return
    except ImportError:
        pass
    python = ENVIRONMENT / "bin" / "python"
    if Path(sys.prefix) == ENVIRONMENT:
        skip("numpy or safetensors is not whole in", ENVIRONMENT)
    base = SYSTEM if SYSTEM.exists() else sys.executable
    steps = [[base, "-m", "venv", "--clear", "--system-site-packages", ENVIRONMENT],
             [python, "-m", "pip", "install", "--quiet", "numpy", "safetensors"]]
    with open(ENVIRONMENT.with_suffix(".lock"), "w") as lock:  # both stages may run at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        for step in steps if not python.exists() else steps[1:]:
            result = subprocess.run(step, capture_output=True, text=True)
            if result.returncode:
                skip("numpy and safetensors cannot be had:", last_line(result))
    os.execv(python, [str(python), *sys.argv])


if len(sys.argv) != 3 or sys.argv[1] not in ("numpy", "torch"):
    sys.exit(__doc__)
BUILD = Path(sys.argv[2]).resolve()
if not (BUILD / "libweber.so").exists():
    skip("there is no libweber.so in", BUILD)
ensure_packages()
import numpy as np  # noqa: E402
import safetensors  # noqa: E402
import safetensors.numpy  # noqa: E402
import torch_models  # noqa: E402

# ---- Weber ----

wb = ctypes.CDLL(str(BUILD / "libweber.so"))
TYPES = [np.float32, np.float64, np.float16, None, np.int32, np.int64, np.uint8, np.bool_]  # as wb_dtype counts
BF16 = 3
ARRAY, LIST, MAP = 5, 6, 7


class Named(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("object", ctypes.c_void_p)]


def declare(name, result, *arguments):
    function = getattr(wb, name)
    function.restype, function.argtypes = result, arguments
    return function


pointer, number, text = ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p
wb_open = declare("wb_open", pointer, text)
wb_file_root = declare("wb_file_root", pointer, pointer)
wb_record_count = declare("wb_record_count", number, pointer)
wb_record_at = declare("wb_record_at", pointer, pointer, number)
wb_record_name = declare("wb_record_name", text, pointer, number)
wb_record_get = declare("wb_record_get", pointer, pointer, text)
wb_record_kind_of = declare("wb_record_kind_of", ctypes.c_int, pointer)
wb_record_type = declare("wb_record_type", text, pointer)
wb_record_array = declare("wb_record_array", pointer, pointer, pointer)
wb_dtype_of = declare("wb_dtype_of", ctypes.c_int, pointer)
wb_ndim = declare("wb_ndim", ctypes.c_int, pointer)
wb_size = declare("wb_size", number, pointer, ctypes.c_int)
wb_count = declare("wb_count", number, pointer)
wb_read_begin = declare("wb_read_begin", pointer, pointer)
wb_read_end = declare("wb_read_end", None, pointer)
wb_from_make = declare("wb_from_make", pointer, ctypes.c_int, pointer, ctypes.c_int, ctypes.POINTER(number))
wb_save_make = declare("wb_save_make", ctypes.c_int, text, number, ctypes.POINTER(Named))
wb_error_message = declare("wb_error_message", text)
declare("wb_free", None, pointer)
declare("wb_scope_open", ctypes.c_int)
declare("wb_scope_close", ctypes.c_int)


def demand(truth, *what):
    if not truth:
        message = wb_error_message().decode(errors="replace")
        print("FAILED:", *what, message)
        sys.exit(1)


def bytes_of(array):
    """dtype, sizes (fastest first) and bytes of an array of Weber's."""
    sizes = [wb_size(array, d) for d in range(wb_ndim(array))]
    dtype = wb_dtype_of(array)
    count = wb_count(array) * (2 if dtype == BF16 else np.dtype(TYPES[dtype]).itemsize)
    data = wb_read_begin(array)
    copy = ctypes.string_at(data, count) if count else b""
    wb_read_end(array)
    return dtype, sizes, copy


def numpy_of(array):
    """The array with its sizes reversed: what NumPy says of the same memory."""
    dtype, sizes, data = bytes_of(array)
    return np.frombuffer(data, np.dtype(TYPES[dtype])).reshape(sizes[::-1])


def weber_of(x, dtype=None):
    """A C-ordered array as Weber's over the same memory order."""
    x = np.ascontiguousarray(x) if x.ndim else x
    sizes = (number * x.ndim)(*x.shape[::-1])
    return wb_from_make(TYPES.index(x.dtype.type) if dtype is None else dtype, x.ctypes.data, x.ndim, sizes)


def save(path, arrays):
    named = (Named * len(arrays))(*[Named(name.encode(), array) for name, array in arrays.items()])
    demand(wb_save_make(str(path).encode(), len(arrays), named) == 0, "saving", path)


class Opened:
    def __init__(self, path):
        self.path, self.file = path, wb_open(str(path).encode())
        demand(self.file, "opening", path)

    def record(self, name):
        record = wb_file_root(self.file) if name is None else wb_record_get(wb_file_root(self.file), name.encode())
        demand(record, self.path, name)
        return record

    def array(self, name=None):
        array = wb_record_array(self.file, self.record(name))
        demand(array, self.path, name)
        return array

    def close(self):
        wb.wb_free(self.file)


# ---- the comparison ----


def samples():
    random = np.random.default_rng(20240607)
    shapes = [(), (0,), (5,), (2, 3), (2, 0, 3), (2, 3, 4), (1, 2, 1, 3, 2)]
    for dtype in TYPES:
        if dtype is None:
            continue
        for shape in shapes:
            size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
            raw = random.integers(0, 2 if dtype is np.bool_ else 256, size, dtype=np.uint8).tobytes()
            name = "x" + "".join(str(n) for n in shape) + "." + np.dtype(dtype).name
            yield name, np.frombuffer(raw, dtype).reshape(shape)


def same(a, b, *what):
    demand(a.dtype == b.dtype and a.shape == b.shape, *what, f"{a.dtype}{a.shape} is not {b.dtype}{b.shape}")
    demand(np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes(), *what, "bytes differ")


def check_npy(folder):
    for name, x in samples():
        for order in "CF":
            for byte_order in "<>":
                path = folder / "them.npy"
                np.save(path, np.asarray(x.astype(x.dtype.newbyteorder(byte_order)), order=order))
                file = Opened(path)
                y = numpy_of(file.array())
                is_fortran = order == "F" and x.ndim > 1 and not (x.flags.c_contiguous and x.flags.f_contiguous)
                same(y.T if is_fortran else y, x, path, name, order, byte_order)
                file.close()
        save(folder / "us.npy", {"x": weber_of(x)})
        same(np.load(folder / "us.npy").T, x, "us.npy", name)


def check_npz(folder):
    arrays = dict(samples())
    for write in np.savez, np.savez_compressed:
        path = folder / f"{write.__name__}.npz"
        write(path, **arrays)
        file = Opened(path)
        for name, x in arrays.items():
            same(numpy_of(file.array(name)), x, path, name)
        file.close()
    save(folder / "us.npz", {name: weber_of(x) for name, x in arrays.items()})
    with np.load(folder / "us.npz") as back:
        for name, x in arrays.items():
            same(back[name].T, x, "us.npz", name)


def check_safetensors(folder):
    arrays = dict(samples())
    path = folder / "them.safetensors"
    safetensors.numpy.save_file(arrays, path, metadata={"format": "np"})
    file = Opened(path)
    for name, x in arrays.items():
        same(numpy_of(file.array(name)), x, path, name)
    file.close()
    save(folder / "us.safetensors", {name: weber_of(x) for name, x in arrays.items()})
    back = safetensors.numpy.load_file(folder / "us.safetensors")
    demand(set(back) >= set(arrays), "names in us.safetensors")
    for name, x in arrays.items():
        same(back[name], x, "us.safetensors", name)


def check_bfloat16(folder):
    bits = np.arange(6, dtype=np.uint16).reshape(2, 3) + 0x3F80
    save(folder / "bf16.safetensors", {"x": weber_of(bits.view(np.uint16), BF16)})
    (name, back), = safetensors.deserialize((folder / "bf16.safetensors").read_bytes())
    demand(name == "x" and back["dtype"] == "BF16" and list(back["shape"]) == [2, 3], "bf16", back["dtype"], back["shape"])
    demand(bytes(back["data"]) == bits.tobytes(), "bf16: bytes differ")
    save(folder / "bf16.npy", {"x": weber_of(bits, BF16)})
    demand(np.load(folder / "bf16.npy").T.tobytes() == bits.tobytes(), "bf16.npy: bytes differ")


def check_ties(folder):
    x = weber_of(np.arange(6, dtype=np.float32).reshape(2, 3))
    save(folder / "ties.safetensors", {"a": x, "b": x})
    with safetensors.safe_open(folder / "ties.safetensors", framework="np") as back:
        demand(list(back.keys()) == ["a"] and back.metadata() == {"weber.shared": '{"b":"a"}'}, "ties", back.metadata())
    file = Opened(folder / "ties.safetensors")
    demand(file.record("a") == file.record("b"), "ties are not one record")
    file.close()


# ---- torch ----

# A network, its weights, an input and what it makes of it, into the folder; or the same from the weights that came back.
TORCH = """
import sys, numpy
try:
    import torch
except ImportError as error:
    sys.exit(print(error, file=sys.stderr) or 77)
from safetensors.torch import load_file, save_file
folder, is_back = sys.argv[1], len(sys.argv) > 2
nn = torch.nn
torch.manual_seed(1)
model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3 * 4 * 3, 5), nn.Tanh(), nn.Linear(5, 2))
if is_back:
    model.load_state_dict({**load_file(folder + "/back.safetensors"), "1.num_batches_tracked": torch.tensor(2)})
    model.eval()
    x = torch.from_numpy(numpy.load(folder + "/x.npy"))
    assert numpy.abs(model(x).detach().numpy() - numpy.load(folder + "/y.npy")).max() < 1e-6, "other results"
else:
    x = torch.randn(4, 1, 8, 10)
    nn.init.normal_(model[1].weight), nn.init.normal_(model[1].bias)
    numpy.save(folder + "/trained.npy", model(x).detach().numpy())
    model.eval()
    save_file(model.state_dict(), folder + "/torch.safetensors")
    numpy.save(folder + "/x.npy", x.numpy()), numpy.save(folder + "/y.npy", model(x).detach().numpy())
print("torch", torch.__version__)
"""

# Recurrent layers likewise: two of them, each in both directions, of (N, T, features).
TORCH_RECURRENT = """
import sys, numpy, torch
from safetensors.torch import load_file, save_file
folder, kind, is_back = sys.argv[1], sys.argv[2], len(sys.argv) > 3
torch.manual_seed(2)
model = getattr(torch.nn, kind)(3, 4, num_layers=2, bidirectional=True, batch_first=True)
if is_back:
    model.load_state_dict(load_file(folder + "/back.safetensors"))
    x = torch.from_numpy(numpy.load(folder + "/x.npy"))
    assert numpy.abs(model(x)[0].detach().numpy() - numpy.load(folder + "/y.npy")).max() < 1e-6, "other results"
else:
    x = torch.randn(2, 5, 3)
    save_file(model.state_dict(), folder + "/torch.safetensors")
    numpy.save(folder + "/x.npy", x.numpy()), numpy.save(folder + "/y.npy", model(x)[0].detach().numpy())
"""

# Attention with itself, and the blocks of a transformer; the decoder's memory is x, too.
TORCH_TRANSFORMER = """
import sys, numpy, torch
from safetensors.torch import load_file, save_file
folder, kind, norm_first, is_back = sys.argv[1], sys.argv[2], sys.argv[3] == "True", len(sys.argv) > 4
torch.manual_seed(3)
nn = torch.nn
if kind == "attention":
    model = nn.MultiheadAttention(8, 2, batch_first=True)
else:
    block = nn.TransformerEncoderLayer if kind == "encoder" else nn.TransformerDecoderLayer
    model = block(8, 2, 12, norm_first=norm_first, activation="gelu", batch_first=True)
model.eval()
def apply(x):
    if kind == "attention":
        return model(x, x, x)[0]
    return model(x) if kind == "encoder" else model(x, x.flip(1))
if is_back:
    model.load_state_dict(load_file(folder + "/back.safetensors"))
    x = torch.from_numpy(numpy.load(folder + "/x.npy"))
    assert numpy.abs(apply(x).detach().numpy() - numpy.load(folder + "/y.npy")).max() < 1e-6, "other results"
else:
    x = torch.randn(3, 5, 8)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    save_file(model.state_dict(), folder + "/torch.safetensors")
    numpy.save(folder + "/x.npy", x.numpy()), numpy.save(folder + "/y.npy", apply(x).detach().numpy())
"""

TABLE = """
0.weight -> layers.1.weight flip        # Conv2d into Conv
0.bias   -> layers.1.bias
1.weight -> layers.2.γ                  # BatchNorm2d
1.bias   -> layers.2.β
1.running_mean -> layers.2.μ
1.running_var  -> layers.2.σ²
5.weight -> layers.5.weight transpose   # Linear into Dense
7.weight -> layers.6.weight transpose
5.bias   -> layers.5.bias
7.bias   -> layers.6.bias
"""
COUNTS = "*.num_batches_tracked ->\n"
RECURRENT_TABLE = "".join(f"""
weight_ih_l*{suffix} -> layers.*+1.{direction}.cell.Wi transpose
weight_hh_l*{suffix} -> layers.*+1.{direction}.cell.Wh transpose
bias_ih_l*{suffix} -> layers.*+1.{direction}.cell.BIAS
bias_hh_l*{suffix} -> layers.*+1.{direction}.cell.bias_h
""" for suffix, direction in (("_reverse", "backward"), ("", "forward")))




def attention_table(theirs, ours):
    """q, k and v of one array, and what comes after them."""
    parts = "".join(f"""
{theirs}in_proj_weight -> {ours}{name}_proj.weight transpose part {i + 1}/3
{theirs}in_proj_bias -> {ours}{name}_proj.bias part {i + 1}/3
""" for i, name in enumerate("qkv"))
    return parts + f"""
{theirs}out_proj.weight -> {ours}out_proj.weight transpose
{theirs}out_proj.bias -> {ours}out_proj.bias
"""


BLOCK_TABLE = """
linear1.weight -> feed_forward.layers.1.weight transpose
linear2.weight -> feed_forward.layers.3.weight transpose
linear1.bias -> feed_forward.layers.1.bias
linear2.bias -> feed_forward.layers.3.bias
norm*.weight -> norm*.diag.scale
norm*.bias -> norm*.diag.bias
"""
ENCODER_TABLE = attention_table("self_attn.", "attention.") + BLOCK_TABLE
DECODER_TABLE = ENCODER_TABLE + attention_table("multihead_attn.", "cross_attention.")


def run_torch(script, *arguments):
    return subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True)


def convert(source, target, table):
    """weber convert with the table."""
    names = target.with_suffix(".names")
    names.write_text(table)
    result = subprocess.run([BUILD / "bin" / "weber", "convert", source, target, f"--rename={names}"], capture_output=True, text=True)
    demand(result.returncode == 0, "weber convert:", result.stderr)


REST = ("rest", number * 32)  # zero: what a structure of C has after these members
CHAR, FLAG = ctypes.c_char, ctypes.c_bool


class Desc(ctypes.Structure):
    """A desc as its macro makes it, with WB_MADE_ as start_: flags are true here unless they are given."""

    def __init__(self, **settings):
        usual = {name: True for name, *_ in self._fields_ if name in ("bias", "out_bias", "affine", "track_stats")}
        super().__init__(start=b"]", **{**usual, **settings})


class Conv(Desc):
    _fields_ = [("start", CHAR), ("kernel", number * 3), ("input", number), ("output", number), ("activation", pointer),
                ("lists", number * 12), ("groups", number), ("same_pad", FLAG), ("bias", FLAG), REST]


class Pool(Desc):
    _fields_ = [("start", CHAR), ("kernel", number * 3), REST]


class Dense(Desc):
    _fields_ = [("start", CHAR), ("input", number), ("output", number), ("activation", pointer), ("bias", FLAG), REST]


class BatchNorm(Desc):
    _fields_ = [("start", CHAR), ("channels", number), ("activation", pointer), ("reals", ctypes.c_double * 2), ("affine", FLAG),
                ("track_stats", FLAG), REST]


class Load(ctypes.Structure):
    _fields_ = [("start", CHAR), ("path", text), ("model", pointer), ("key", text), ("filter", pointer), ("layers", pointer), ("user", pointer),
                ("partial", FLAG), ("rename", text), ("library", text), REST]


class Parse(ctypes.Structure):
    _fields_ = [("start", CHAR), ("text", text), REST]


def network():
    """TORCH's, of Weber's layers."""
    function = lambda name: ctypes.cast(getattr(wb, name), pointer)  # noqa: E731
    layers = [declare("wb_conv_make", pointer, Conv)(Conv(kernel=(3, 3), input=1, output=3)),
              declare("wb_batchnorm_make", pointer, BatchNorm)(BatchNorm(channels=3, activation=function("wb_relu"))),
              declare("wb_maxpool_make", pointer, Pool)(Pool(kernel=(2, 2))), declare("wb_flatten", pointer)(),
              declare("wb_dense_make", pointer, Dense)(Dense(input=36, output=5, activation=function("wb_tanh"))),
              wb.wb_dense_make(Dense(input=5, output=2))]
    return declare("wb_chain_make", pointer, number, ctypes.POINTER(pointer))(len(layers), (pointer * len(layers))(*layers))


def demand_results(folder, model, wanted):
    y = declare("wb_apply", pointer, pointer, pointer)(model, weber_of(np.load(folder / "x.npy")))
    demand(y and np.abs(numpy_of(y) - np.load(folder / wanted)).max() < 1e-5, "torch's results and Weber's differ:", wanted)


def load_renamed(folder, model, table):
    path = str(folder / "torch.safetensors").encode()
    load = declare("wb_load_make", ctypes.c_int, Load)
    demand(model and load(Load(path=path, model=model, rename=table.encode())) == 0, "loading", path)


def bring_back(folder, table):
    """The table with its sides exchanged; what follows a star's number is taken off there."""
    rows = [row.split("#")[0].replace("->", "").split() for row in table.strip().splitlines() if row.strip()]
    back = (f"model.{to.replace('*+1', '*')} -> {name.replace('*', '*-1') if '*+1' in to else name} {' '.join(turn).replace('part', 'into')}"
            for name, to, *turn in rows)
    convert(folder / "ours.safetensors", folder / "back.safetensors", "\n".join(back))


def check_torch(folder):
    """A state_dict into a model by a rename table, the same results; and back."""
    result = run_torch(TORCH, folder)
    if result.returncode == 77:
        skip(last_line(result), "(Debian: python3-torch)")
    demand(result.returncode == 0, "torch:", result.stderr)
    print(result.stdout.strip())
    model = network()
    load_renamed(folder, model, TABLE + COUNTS)
    demand_results(folder, model, "y.npy")
    save(folder / "ours.safetensors", {"model": model})
    demand(declare("wb_train_mode", ctypes.c_int, pointer)(model) == 0, "wb_train_mode")
    demand_results(folder, model, "trained.npy")
    wb.wb_free(model)
    bring_back(folder, TABLE)
    result = run_torch(TORCH, folder, "back")
    demand(result.returncode == 0, "what came back to torch:", last_line(result))


class Recurrent(Desc):
    _fields_ = [("start", CHAR), ("input", number), ("output", number), ("activation", pointer), ("bias", FLAG), ("return_state", FLAG),
                ("init", pointer * 2), ("dtype", ctypes.c_int), ("arrays", pointer * 4), ("bias_h", FLAG), REST]


def check_torch_recurrent(folder):
    """The state_dict of nn.RNN, nn.LSTM and nn.GRU into Weber's layers, and back."""
    chain = declare("wb_chain_make", pointer, number, ctypes.POINTER(pointer))
    both = declare("wb_bidirectional", pointer, pointer, pointer)
    for kind in "RNN", "LSTM", "GRU":
        result = run_torch(TORCH_RECURRENT, folder, kind)
        demand(result.returncode == 0, "torch:", kind, result.stderr)
        make = declare(f"wb_{kind.lower()}_make", pointer, Recurrent)
        layers = [both(*[make(Recurrent(input=size, output=4, bias_h=True)) for _ in range(2)]) for size in (3, 8)]
        model = chain(2, (pointer * 2)(*layers))
        table = RECURRENT_TABLE.replace("BIAS", "b" if kind == "GRU" else "bias")
        load_renamed(folder, model, table)
        demand_results(folder, model, "y.npy")
        save(folder / "ours.safetensors", {"model": model})
        wb.wb_free(model)
        bring_back(folder, table)
        result = run_torch(TORCH_RECURRENT, folder, kind, "back")
        demand(result.returncode == 0, "what came back to torch:", kind, last_line(result))


class Attention(Desc):
    _fields_ = [("start", CHAR), ("sizes", number * 6), ("heads", number), ("kv_heads", number), ("bias", FLAG), ("out_bias", FLAG), REST]


class Block(Desc):
    _fields_ = [("start", CHAR), ("input", number), ("heads", number), ("hidden", number), ("activation", pointer), ("dropout", ctypes.c_double),
                ("causal", FLAG), ("norm_first", FLAG), ("bias", FLAG), REST]


def demand_block(folder, model):
    """The results of a block; that of a decoder gets x from its end as memory."""
    x = np.load(folder / "x.npy")
    given = [x, np.ascontiguousarray(x[:, ::-1])]
    results = (pointer * 2)()
    count = declare("wb_apply_many", ctypes.c_int, pointer, ctypes.c_int, ctypes.POINTER(pointer), ctypes.c_int, ctypes.POINTER(pointer))(
        model, 2, (pointer * 2)(*map(weber_of, given)), 2, results)
    demand(count == 2 and np.abs(numpy_of(results[0]) - np.load(folder / "y.npy")).max() < 1e-5, "torch's results and Weber's differ")


def check_torch_transformer(folder):
    """nn.MultiheadAttention, nn.TransformerEncoderLayer and nn.TransformerDecoderLayer into Weber's layers, and back."""
    gelu = ctypes.cast(wb.wb_gelu_erf, pointer)
    for kind, norm_first in ("attention", False), *((kind, first) for kind in ("encoder", "decoder") for first in (False, True)):
        result = run_torch(TORCH_TRANSFORMER, folder, kind, norm_first)
        demand(result.returncode == 0, "torch:", kind, result.stderr)
        if kind == "attention":
            table = attention_table("", "")
            model = declare("wb_multi_head_attention_make", pointer, Attention)(Attention(sizes=(8,), heads=2, bias=True))
        else:
            table = ENCODER_TABLE if kind == "encoder" else DECODER_TABLE
            make = declare(f"wb_transformer_{kind}_make", pointer, Block)
            model = make(Block(input=8, heads=2, hidden=12, activation=gelu, norm_first=norm_first))
        load_renamed(folder, model, table)
        (demand_block(folder, model) if kind == "decoder" else demand_results(folder, model, "y.npy"))
        save(folder / "ours.safetensors", {"model": model})
        wb.wb_free(model)
        bring_back(folder, table)
        result = run_torch(TORCH_TRANSFORMER, folder, kind, norm_first, "back")
        demand(result.returncode == 0, "what came back to torch:", kind, last_line(result))


TORCH_FILES = """
import sys, numpy, torch
folder = sys.argv[1]
torch.manual_seed(4)
nn = torch.nn
model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3))
w = torch.randn(3, 4, 5)
tensors = {"w": w, "tied": w, "turned": w.permute(2, 0, 1), "part": w[1:, ::2, -1], "many": w[:1, :, :1].expand(6, 4, 7), "number": torch.tensor(2.5),
           "none": torch.zeros(0, 3), "parameter": nn.Parameter(w[0])}
for kind in ("float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"):
    tensors[kind] = (100 * w).to(getattr(torch, kind))
flat = {"t." + name: x.detach().numpy() for name, x in tensors.items()}
flat.update(("model." + name, x.numpy()) for name, x in model.state_dict().items())
numpy.savez(folder + "/wanted.npz", **flat)
whole = {"model": model.state_dict(), "t": tensors, "half": w.bfloat16(), "epoch": 3, "notes": [1, 2.5, "text", None, True, torch.Size([2, 3])],
         "optimiser": torch.optim.Adam(model.parameters()).state_dict()}
torch.save(whole, folder + "/whole.pt")
torch.save(whole, folder + "/whole.pth", pickle_protocol=4)
for protocol in (2, 3, 4):
    torch.save(whole, f"{folder}/old{protocol}.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=False)
script = torch.jit.script(model.eval())
script.save(folder + "/script.pt")
torch.jit.freeze(script).save(folder + "/frozen.pt")
torch.save(model, folder + "/object.pt")
torch.save({"encoder": nn.Linear(3, 4).state_dict(), "decoder": nn.Linear(3, 4).state_dict(), "epoch": 3}, folder + "/two.pt")
torch.save({"state_dict": nn.DataParallel(nn.Linear(3, 4)).state_dict(), "optimizer": {"mean": w}}, folder + "/checkpoint.pt")
"""


TORCH_ARRAYS = """
import sys, numpy, torch
for path in sys.argv[1:]:
    numpy.savez(path + ".npz", **{name: x.numpy() for name, x in torch.load(path, map_location="cpu").items()})
"""


def check_script(folder, wanted):
    """A program of torch.jit: its arrays by the names of the module; those of a frozen one, which has no names."""
    subprocess.run([BUILD / "bin/weber", "convert", folder / "script.pt", folder / "back.npz"], check=True, capture_output=True)
    back, names = np.load(folder / "back.npz"), [key for key in wanted.files if key.startswith("model.")]
    demand(len(names) == 9, names)
    for key in names:
        same(back[key[len("model."):]].T.astype(wanted[key].dtype), wanted[key], "script.pt", key)
    frozen = Opened(folder / "frozen.pt")
    record = frozen.record("constants")
    demand(wb_record_count(record) >= 4, "constants of a frozen program:", wb_record_count(record))
    frozen.close()


def check_lpips(folder):
    """Old files of others: those of lpips (BSD), if the package index is there."""
    result = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "lpips==0.1.4"], capture_output=True, text=True)
    if result.returncode:
        print("without lpips:", last_line(result))
        return
    with zipfile.ZipFile(next(folder.glob("lpips-*.whl"))) as wheel:
        paths = [wheel.extract(name, folder) for name in wheel.namelist() if name.endswith(".pth")]
    result = run_torch(TORCH_ARRAYS, *paths)
    demand(result.returncode == 0 and len(paths) == 6, "torch:", result.stderr, paths)
    for path in paths:
        wanted, file = np.load(path + ".npz"), Opened(path)
        for key in wanted.files:
            same(numpy_of(file.array(key)), wanted[key], path, key)
        file.close()


def check_torch_files(folder):
    """What torch.save writes: all tensors, in any layout, and what else is in a checkpoint."""
    result = run_torch(TORCH_FILES, folder)
    demand(result.returncode == 0, "torch:", result.stderr)
    wanted = np.load(folder / "wanted.npz")
    for name in ("whole.pt", "whole.pth", "old2.pt", "old3.pt", "old4.pt"):
        result = subprocess.run([BUILD / "bin/weber", "convert", folder / name, folder / "back.npz"], capture_output=True, text=True)
        demand(result.returncode == 0, "weber convert:", result.stderr)
        back = np.load(folder / "back.npz")
        demand(len(wanted.files) >= 20, len(wanted.files), "arrays of torch's")
        for key in set(wanted.files) - {"t.w"}:  # which is t.tied
            same(back[key].T.astype(wanted[key].dtype), wanted[key], name, key)
    shown = subprocess.run([BUILD / "bin/weber", "show", folder / "whole.pt"], capture_output=True, text=True).stdout
    for line in ("epoch: 3", "half: bf16 (5, 4, 3)", "notes: list of 6", "optimiser: map of 2", "1 shared"):
        demand(line in shown, "weber show does not say", line, "\n" + shown)
    check_script(folder, wanted)
    result = subprocess.run([BUILD / "bin/weber", "show", folder / "object.pt"], capture_output=True, text=True)
    demand("an object of torch.nn.modules.container.Sequential is not read" in result.stderr, result.stderr)

    def convert(name, *more):
        command = [BUILD / "bin/weber", "convert", folder / name, folder / "linear.safetensors", "--structure=Dense(3 => 4)", "--from=torch", *more]
        return subprocess.run(command, capture_output=True, text=True)

    result = convert("two.pt")
    demand("several dictionaries of arrays, encoder, decoder: --model=KEY chooses one" in result.stderr, result.stderr)
    result = convert("two.pt", "--model=decoder")
    demand(result.stdout == "weight -> weight transpose\nbias -> bias\n", result.stderr, result.stdout)
    result = convert("checkpoint.pt")
    demand(result.stdout == "module.weight -> weight transpose\nmodule.bias -> bias\n", result.stderr, result.stdout)
    result = convert("linear.pt", f"--check={folder / 'linear.npz'}")
    demand(result.returncode == 0 and "the largest difference is" in result.stdout, result.stderr, result.stdout)
    result = convert("two.pt", "--model=decoder", f"--check={folder / 'linear.npz'}")
    demand(result.returncode == 1 and "the model's results are not y" in result.stderr, result.stderr, result.stdout)


def demand_back(folder, path, model):
    """The model's arrays under the names of the file are the file's; load_state_dict makes num_batches_tracked itself."""
    save(folder / "ours.safetensors", {"model": model})
    result = subprocess.run([BUILD / "bin/weber", "convert", folder / "ours.safetensors", folder / "back.safetensors", f"--like={path}"], capture_output=True, text=True)
    demand(result.returncode == 0, "weber convert:", path, result.stderr)
    back, wanted = (safetensors.numpy.load_file(name) for name in (folder / "back.safetensors", path.with_suffix(".safetensors")))
    wanted = {name: x for name, x in wanted.items() if not name.endswith("num_batches_tracked")}
    demand(set(back) == set(wanted), "names that came back:", set(back) ^ set(wanted))
    for name, x in wanted.items():
        same(back[name], x, path, name)


def demand_without_table(folder, name, more):
    """Loads NAME.pt or NAME.safetensors and compares the results."""
    _, form, shapes = torch_models.MODULES[name]
    path = folder / f"{name}.{more}"
    model = declare("wb_parse_make", pointer, Parse)(Parse(text=torch_models.structure(form).encode()))
    demand(model, name, torch_models.structure(form))
    demand(declare("wb_load_make", ctypes.c_int, Load)(Load(path=str(path).encode(), model=model, library=b"torch")) == 0, "loading", path.name)
    given = np.load(folder / f"{name}.npz")
    inputs = (pointer * len(shapes))(*[weber_of(given[f"x{i + 1}"]) for i in range(len(shapes))])
    results = (pointer * 4)()
    apply_many = declare("wb_apply_many", ctypes.c_int, pointer, ctypes.c_int, ctypes.POINTER(pointer), ctypes.c_int, ctypes.POINTER(pointer))
    demand(apply_many(model, len(shapes), inputs, 4, results) > 0, "applying", name)
    y = numpy_of(results[0])
    demand(y.shape == given["y"].shape and np.abs(y - given["y"]).max() < 1e-5, "torch's results and Weber's differ:", path.name)
    demand_back(folder, path, model)
    wb.wb_free(model)


def check_torch_without_table(folder):
    """What has tables above, and more, without one."""
    result = subprocess.run([sys.executable, ROOT / "tests/formats/torch_models.py", folder], capture_output=True, text=True)
    demand(result.returncode == 0, "torch:", result.stderr)
    for name in torch_models.MODULES:
        for kind in ("pt", "safetensors"):
            demand_without_table(folder, name, kind)


CHECKS = {"numpy": (check_npy, check_npz, check_safetensors, check_bfloat16, check_ties), "torch": (check_torch, check_torch_recurrent, check_torch_transformer, check_lpips, check_torch_without_table, check_torch_files)}
with tempfile.TemporaryDirectory() as name:
    for check in CHECKS[sys.argv[1]]:
        wb.wb_scope_open()
        check(Path(name))
        demand(wb.wb_scope_close() == 0, check.__name__)
print("numpy", np.__version__, "and safetensors", safetensors.__version__, "agree")
