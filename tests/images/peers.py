#!/usr/bin/env python3
"""tests/images/peers.py BUILD [SEED]: pictures beside PIL, and beside torchvision where there is one: what is read, resized and prepared.

BUILD has libweber.so. 77 (skipped) where this Python and Debian's (python3-pil, python3-torchvision) have no PIL, or libpng or TurboJPEG is missing."""
import ctypes
import importlib.util
import os
import sys
import tempfile
from pathlib import Path


def skip(*why):
    print("skipped:", *why)
    sys.exit(77)


def choose_python():
    """Goes on in Debian's Python if only that one has what is compared with."""
    if importlib.util.find_spec("torchvision") or os.environ.get("WEBER_PEERS_HERE"):
        return
    debian = "/usr/bin/python3"
    if os.path.exists(debian) and os.path.realpath(debian) != os.path.realpath(sys.executable):
        os.environ["WEBER_PEERS_HERE"] = "1"
        if os.spawnl(os.P_WAIT, debian, debian, "-c", "import PIL, numpy, torchvision") == 0 or not importlib.util.find_spec("PIL"):
            os.execl(debian, debian, *sys.argv)


if len(sys.argv) < 2:
    sys.exit(__doc__)
BUILD = Path(sys.argv[1]).resolve()
if not (BUILD / "libweber.so").exists():
    skip("there is no libweber.so in", BUILD)
choose_python()
try:
    import numpy as np
    import PIL
    import PIL.Image as Image
except ImportError as error:
    skip(error)
try:
    import torch
    import torchvision
    from torchvision import transforms
except ImportError as error:
    torch = None
    print("without torchvision:", error)
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1

# ---- Weber ----

START = b"\x5d"  # WB_MADE_
library = ctypes.CDLL(str(BUILD / "libweber.so"))


class Read(ctypes.Structure):
    _fields_ = [("start", ctypes.c_char), ("channels", ctypes.c_int)]


class Resize(ctypes.Structure):
    _fields_ = [("start", ctypes.c_char), ("width", ctypes.c_int64), ("height", ctypes.c_int64), ("filter", ctypes.c_int)]


class Prepare(ctypes.Structure):
    _fields_ = [("start", ctypes.c_char), ("resize", ctypes.c_int64), ("crop", ctypes.c_int64), ("filter", ctypes.c_int),
                ("mean", ctypes.c_double * 4), ("std", ctypes.c_double * 4), ("random_crop", ctypes.c_bool), ("flip", ctypes.c_double)]


class Folder(ctypes.Structure):
    _fields_ = [("start", ctypes.c_char), ("channels", ctypes.c_int), ("vocabulary", ctypes.c_char_p), ("prepare", Prepare)]


POINTER, INT64 = ctypes.c_void_p, ctypes.c_int64
for name, result, *arguments in [
        ("wb_image_read_make", POINTER, ctypes.c_char_p, Read), ("wb_image_resize_make", POINTER, POINTER, Resize),
        ("wb_image_prepare_make", POINTER, POINTER, Prepare), ("wb_image_crop", POINTER, POINTER, INT64, INT64),
        ("wb_from_make", POINTER, ctypes.c_int, POINTER, ctypes.c_int, POINTER), ("wb_read_begin", POINTER, POINTER),
        ("wb_read_end", None, POINTER), ("wb_ndim", ctypes.c_int, POINTER), ("wb_size", INT64, POINTER, ctypes.c_int),
        ("wb_dtype_of", ctypes.c_int, POINTER), ("wb_dtype_name", ctypes.c_char_p, ctypes.c_int), ("wb_error_message", ctypes.c_char_p),
        ("wb_error_status", ctypes.c_int), ("wb_clear_error", None), ("wb_image_folder_open_make", POINTER, ctypes.c_char_p, Folder),
        ("wb_image_folder_count", INT64, POINTER), ("wb_image_folder_path", ctypes.c_char_p, POINTER, INT64),
        ("wb_image_folder_class", ctypes.c_char_p, POINTER, INT64), ("wb_image_folder_labels", POINTER, POINTER), ("wb_free", None, POINTER)]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments

DTYPES = {}
while True:
    name = library.wb_dtype_name(len(DTYPES))
    if len(DTYPES) > 16 or not name:
        break
    DTYPES[len(DTYPES)] = name.decode()
NUMPY = {"u8": np.uint8, "f32": np.float32, "i32": np.int32}
UNSUPPORTED = 8


def numpy_of(x):
    """Sizes slowest first, as torch has them: (channels, height, width)."""
    if not x:
        message, status = library.wb_error_message().decode(), library.wb_error_status()
        if status == UNSUPPORTED and "Debian:" in message:
            skip(message)
        raise RuntimeError(message)
    sizes = [library.wb_size(x, d) for d in reversed(range(library.wb_ndim(x)))]
    dtype = np.dtype(NUMPY[DTYPES[library.wb_dtype_of(x)]])
    memory = library.wb_read_begin(x)
    count = int(np.prod(sizes)) * dtype.itemsize
    result = np.frombuffer(ctypes.string_at(memory, count), dtype).reshape(sizes)
    library.wb_read_end(x)
    return result


def array_of(values):
    values = np.ascontiguousarray(values)
    dtype = next(i for i, name in DTYPES.items() if name in NUMPY and NUMPY[name] == values.dtype)
    sizes = (INT64 * values.ndim)(*reversed(values.shape))
    return library.wb_from_make(dtype, values.ctypes.data, values.ndim, sizes)


def planes(picture):
    pixels = np.asarray(picture)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


# ---- pictures ----

random = np.random.RandomState(SEED)


def smooth(width, height):
    small = random.randint(0, 256, (5, 4, 3), dtype=np.uint8)
    picture = np.asarray(Image.fromarray(small).resize((width, height), Image.BICUBIC), dtype=np.int32)
    return Image.fromarray(np.clip(picture + random.randint(-20, 21, picture.shape), 0, 255).astype(np.uint8))


def make_files(folder):
    """Files of each kind that PIL writes."""
    for number, (width, height) in enumerate([(53, 37), (8, 8), (1, 1), (3, 200), (161, 97), (16, 15)]):
        picture = smooth(width, height)
        alpha = picture.copy()
        alpha.putalpha(smooth(width, height).convert("L"))
        for kind, made in {"rgb": picture, "grey": picture.convert("L"), "palette": picture.convert("P"), "bits": picture.convert("1"),
                           "alpha": alpha, "grey_alpha": alpha.convert("LA")}.items():
            made.save(folder / f"{kind}{number}.png")
        picture.quantize(13).save(folder / f"few{number}.png", bits=4, transparency=2)
        picture.save(folder / f"key{number}.png", transparency=(1, 2, 3))
        for kind, settings in {"420": {}, "444": {"subsampling": 0}, "422": {"subsampling": 1}, "progressive": {"progressive": True},
                               "exif": {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"},
                               "restarts": {"restart_marker_blocks": 2}, "coarse": {"quality": 5}}.items():
            picture.save(folder / f"{kind}{number}.jpg", **settings)
        picture.convert("L").save(folder / f"grey{number}.jpg")


def check_files(folder):
    counts = {}
    for path in sorted(folder.iterdir()):
        for channels, mode in [(1, "L"), (3, "RGB"), (4, "RGBA")]:
            found = numpy_of(library.wb_image_read_make(str(path).encode(), Read(START, channels)))
            with Image.open(path) as opened:
                if mode == "L" and opened.mode == "P":
                    opened = opened.convert("RGB")
                wanted = planes(opened.convert(mode))
            assert found.shape == wanted.shape, (path, found.shape, wanted.shape)
            assert (found == wanted).all(), (path, mode, np.abs(found.astype(int) - wanted).max())
            counts[path.suffix] = counts.get(path.suffix, 0) + 1
    print("read as PIL reads them:", counts)


# ---- sizes ----

def check_resize():
    count = 0
    for _ in range(120):
        width, height, wide, high = (int(v) for v in random.randint(1, 120, 4))
        if random.rand() < 0.2:
            wide = width
        picture = smooth(width, height)
        for number, kind in enumerate([Image.BILINEAR, Image.BICUBIC]):
            x = array_of(planes(picture))
            found = numpy_of(library.wb_image_resize_make(x, Resize(START, wide, high, number)))
            wanted = planes(picture.resize((wide, high), kind))
            # Pillow 13 resizes such pictures in the other order, which rounds differently
            is_other = int(PIL.__version__.split(".")[0]) > 12 and height - high > max(0, 2 * (width - wide))
            assert is_other or (found == wanted).all(), (width, height, wide, high, kind)
            count += not is_other
            if torch and (wide, high) != (width, height):
                numbers = planes(picture).astype(np.float32) / 255
                mine = numpy_of(library.wb_image_resize_make(array_of(numbers), Resize(START, wide, high, number)))
                theirs = torch.nn.functional.interpolate(torch.tensor(numbers)[None], (high, wide), mode=["bilinear", "bicubic"][number],
                                                         align_corners=False, antialias=True)[0].numpy()
                assert np.abs(mine - theirs).max() < 2e-6, (width, height, wide, high, kind, np.abs(mine - theirs).max())
    print("resized:", count)


def settings(resize=256, crop=224, filter=0, mean=(0.485, 0.456, 0.406, 0), std=(0.229, 0.224, 0.225, 0)):
    return Prepare(START, resize, crop, filter, (ctypes.c_double * 4)(*mean), (ctypes.c_double * 4)(*std), False, 0)


def check_prepare():
    worst, sizes = 0, [(500, 375), (375, 500), (256, 256), (100, 30), (30, 301), (257, 300), (224, 224)]
    sizes += [tuple(int(v) for v in random.randint(20, 400, 2)) for _ in range(20)]
    for width, height in sizes:
        picture = smooth(width, height)
        for resize, crop, number in [(256, 224, 0), (232, 224, 0), (255, 299, 1), (40, 33, 0), (64, 64, 1)]:
            theirs = transforms.Compose([
                transforms.Resize(resize, [transforms.InterpolationMode.BILINEAR, transforms.InterpolationMode.BICUBIC][number]),
                transforms.CenterCrop(crop), transforms.ToTensor(),
                transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])(picture).numpy()
            mine = numpy_of(library.wb_image_prepare_make(array_of(planes(picture)), settings(resize, crop, number)))
            assert mine.shape == theirs.shape
            worst = max(worst, float(np.abs(mine - theirs).max()))
            cropped = numpy_of(library.wb_image_crop(array_of(planes(picture)), crop, crop + 3))
            assert (cropped == transforms.CenterCrop((crop + 3, crop))(torch.tensor(planes(picture).copy())).numpy()).all()
        preset = torchvision.models.ResNet18_Weights.IMAGENET1K_V1.transforms()(picture).numpy()
        mine = numpy_of(library.wb_image_prepare_make(array_of(planes(picture)), settings()))
        worst = max(worst, float(np.abs(mine - preset).max()))
    assert worst < 1e-6, worst
    print("prepared as torchvision does it: worst difference", worst)


# ---- folders ----

def check_folder(folder):
    names = ["cat/1.png", "cat/10.png", "cat/2.JPG", "cat/a/z.png", "cat/a-b/y.jpeg", "cat/a/b/x.png", "dog/ä.png", "dog/Z.png", "dog/notes.txt",
             "Äpfel/x.png", "Dog/1.png", "cat2/0.png", "cat-2/0.png"]
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.write_text("no picture")
        else:
            smooth(9, 7).save(path, "PNG")
    (folder / "readme.txt").write_text("not a class")
    theirs = torchvision.datasets.ImageFolder(str(folder))
    opened = library.wb_image_folder_open_make(str(folder).encode(), Folder(START, 3, None, settings()))
    labels = numpy_of(library.wb_image_folder_labels(opened))
    mine = [(library.wb_image_folder_path(opened, i).decode(), int(labels[i])) for i in range(library.wb_image_folder_count(opened))]
    assert mine == theirs.samples, (mine, theirs.samples)
    classes = [library.wb_image_folder_class(opened, i).decode() for i in range(len(theirs.classes))]
    assert classes == theirs.classes, (classes, theirs.classes)
    library.wb_free(opened)
    print("listed as ImageFolder does it:", len(mine))


with tempfile.TemporaryDirectory() as temporary:
    make_files(Path(temporary))
    check_files(Path(temporary))
check_resize()
if torch:
    check_prepare()
    with tempfile.TemporaryDirectory() as temporary:
        check_folder(Path(temporary))
