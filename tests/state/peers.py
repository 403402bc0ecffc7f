#!/usr/bin/env python3
"""tests/state/peers.py LIBRARY: files against NumPy, the safetensors package and, where Debian's python3 has it, torch.

What they write Weber reads, what Weber writes they read; types, shapes and bytes are compared. LIBRARY is libweber.so. NumPy and
safetensors come from this Python, or from an environment under build/ made for them. 77 (skipped) where neither can be had."""
import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = ROOT / "build" / "peers-files"


def ensure_packages():
    """Goes on in an environment that has the packages; ends as skipped without one."""
    try:
        import numpy, safetensors.numpy  # noqa: F401
        return
    except ImportError:
        pass
    python = ENVIRONMENT / "bin" / "python"
    if Path(sys.prefix) == ENVIRONMENT:
        print("skipped: numpy or safetensors is not whole in", ENVIRONMENT)
        sys.exit(77)
    steps = [[sys.executable, "-m", "venv", ENVIRONMENT], [python, "-m", "pip", "install", "--quiet", "numpy", "safetensors"]]
    for step in steps:
        result = subprocess.run(step, capture_output=True, text=True)
        if result.returncode:
            lines = (result.stderr or result.stdout).strip().splitlines() or [""]
            print("skipped: numpy and safetensors cannot be had:", lines[-1])
            sys.exit(77)
    os.execv(python, [str(python), *sys.argv])


if len(sys.argv) != 2:
    sys.exit(__doc__)
ensure_packages()
import numpy as np  # noqa: E402
import safetensors  # noqa: E402
import safetensors.numpy  # noqa: E402

# ---- Weber ----

wb = ctypes.CDLL(str(Path(sys.argv[1]).resolve()))
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
wb_transpose = declare("wb_transpose", pointer, pointer)
wb_matmul = declare("wb_matmul", pointer, pointer, pointer)
wb_add = declare("wb_add", pointer, pointer, pointer)
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


TORCH = """
import sys, numpy, torch
torch.manual_seed(1)
layer, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
numpy.savez(sys.argv[1], x=x.numpy(), y=layer(x).detach().numpy(),
            **{name: value.numpy() for name, value in layer.state_dict().items()})
"""


def check_torch(folder):
    """A Linear's weight is to be transposed: src/state/safetensors.c."""
    path = folder / "torch.npz"
    result = subprocess.run(["/usr/bin/python3", "-c", TORCH, path], capture_output=True, text=True)
    if result.returncode:
        print("torch: skipped:", (result.stderr.strip().splitlines() or ["it is not there"])[-1])
        return
    file = Opened(path)
    w, b, x = (file.array(name) for name in ("weight", "bias", "x"))
    y = numpy_of(wb_add(wb_matmul(wb_transpose(w), x), b))
    demand(np.allclose(y, numpy_of(file.array("y")), atol=1e-6), "torch's Linear")
    file.close()


with tempfile.TemporaryDirectory() as name:
    for check in check_npy, check_npz, check_safetensors, check_bfloat16, check_ties, check_torch:
        wb.wb_scope_open()
        check(Path(name))
        demand(wb.wb_scope_close() == 0, check.__name__)
print("numpy", np.__version__, "and safetensors", safetensors.__version__, "agree")
