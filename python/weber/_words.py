"""C's words as Python's: in the errors of the library, and, by python/generate.py, in the documentation of its functions."""
import re
from typing import Any

TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "u8": "uint8", "bool": "bool"}
ERRORS = {"ARGUMENT": "ArgumentError", "SHAPE": "ShapeError", "DTYPE": "DTypeError", "MEMORY": "OutOfMemoryError", "IO": "FileError", "FORMAT": "FormatError",
          "DEVICE": "DeviceError", "UNSUPPORTED": "UnsupportedError", "GRADIENT": "GradientError", "NUMBER": "NumberError", "LOST": "LostError", "INTERNAL": "InternalError"}
_WORD = r"(?<![\w/.'\"$-])%s(?![\w/-]|\.\w)"  # not a part of a path or of a name


def _axis(match: "re.Match[str]") -> str:
    return "axis %d" % ~int(match[1])


def _code(match: "re.Match[str]") -> str:
    return "%s=%s" % (match[1], {"true": "True", "false": "False", "NULL": "None"}.get(match[2], match[2]))


def message(text: str, names: Any = None) -> str:
    """names: a function that returns the Python name of a function of C; without it, wb_ and _make go."""
    text = text.replace("belongs to a context that this thread is not in: call wb_context_enter first",
                        "is of another model's context: arrays that a model uses after share() must be in it, as a Parameter or a State of a Module")
    text = re.sub(r"\bwb_cast\((\w+), WB_(\w+)\)", lambda m: "%s.astype('%s')" % (m[1], TYPES.get(m[2].lower(), m[2])), text)
    text = re.sub(r"\bwb_reshape\((\w+), ([-\d, ]+)\)", lambda m: "%s.reshape(%s)" % (m[1], ", ".join(reversed(m[2].split(", ")))), text)
    text = re.sub(r"\bWB_ERROR_([A-Z]+)\b", lambda m: ERRORS.get(m[1], m[0]), text)
    text = re.sub(r"\bWB_(BF16|F16|F32|F64|I32|I64|U8|BOOL)\b", lambda m: TYPES[m[1].lower()], text)
    text = re.sub(_WORD % "(bf16|f16|f32|f64|i32|i64|u8)", lambda m: TYPES[m[1]], text)
    text = re.sub(r"(?<=[\s(])\.([a-z]\w*) = (-?\w+)", _code, text)
    text = re.sub(r"(?<=[\s(])\.([a-z]\w*)(?=[\s,;:)])", r"\1", text)
    text = re.sub(r"\bdimension (-?\d+)\b", _axis, text)
    return re.sub(_WORD % r"wb_(\w+)", lambda m: names("wb_" + m[1]) if names else m[1].removesuffix("_make"), text)


# ---- documentation ----

_SIZES = {"...", "in", "out", "time", "queries", "keys", "channels", "length", "classes", "kernel...", "size...", "features", "words", "in2", "rows", "columns", "count", "n", "bags"}
_ELEMENT = r"(?:\.\.\.|\d+|[A-Za-z]\w*'?(?:\.\.\.)?(?: [a-z]\w*)?(?: ?[/*+] ?\w+)?|[a-z]\^d C|r \w)"


_AS_IT_IS = {  # what the rules below do not reach
    "(stride (W - 1) + dilation (kernel - 1) + 1 - paddings + outpad, ..., out, N)": "(N, out, ..., stride (W - 1) + dilation (kernel - 1) + 1 - paddings + outpad)",
    "(W' H' D', kw kh kd C, N)": "(N, kw kh kd C, W' H' D')", "(kw, [kh, [kd,]] C / groups, K)": "(K, C / groups, [[kd,] kh,] kw)",
    "wb_apply takes one array as q, k and v; wb_apply_many\ntakes": "a call takes one array as q, k and v, or", "grid(0, ...)": "grid[..., 0]", "grid(1, ...)": "grid[..., 1]",
    "If\npositions is not NULL, their positions are written there (NULL on failure). ": "Their positions are the second result. ",
    "(top of this file)": "(2.5 is above 2)", "Embedding: wb_gather(table, tokens,\n1). ": "",
}


def _turned(sizes: str) -> str:
    return ", ".join(reversed(re.split(r",\s+", sizes)))


def _reversed(match: "re.Match[str]") -> str:
    parts = re.split(r",\s+", match[1])
    is_shape = any(p in _SIZES or re.fullmatch(r"[A-Z]'?", p) for p in parts)
    return "(%s)" % ", ".join(reversed(parts)) if is_shape else match[0]


def documentation(text: str, names: Any) -> str:
    """Sizes in NumPy's order, names as in Python. Dimensions are counted from the end in C: the first one is Python's last axis."""
    for c, python in _AS_IT_IS.items():
        text = text.replace(c, python)
    images = r"\(([^()\[\]]+),\s+\[(\w+'?),\s+\[(\w+'?),\]\]\s+([^()\[\]]*)\)"  # (W, [H, [D,]] C, N)
    text = re.sub(images, lambda m: "(%s, [[%s,] %s,] %s)" % (_turned(m[4]), m[3], m[2], _turned(m[1])), text)
    text = re.sub(r"\((\w+),\s+(\w+)\[, (\w+)\]\)", r"([\3,] \2, \1)", text)
    text = re.sub(r"\((\w+)\[, (\w+)\]\)", r"([\2,] \1)", text)
    text = re.sub(r"(?<!\w)\((%s(?:,\s+%s)+)\)" % (_ELEMENT, _ELEMENT), _reversed, text)
    text = re.sub(r"\{(\d+(?:, \d+)*)\}", lambda m: "(%s)" % (_turned(m[1]) + "," * m[1].isdigit()), text)
    text = re.sub(r"\bwb_apply_many\((\w+), \d+, \{([^{}]*)\}\)", r"\1(\2)", text)
    text = re.sub(r"\bwb_apply\((\w+), (\w+)\)", r"\1(\2)", text)
    text = re.sub(r"\bWB_(?:UPSAMPLE|GRID|BAG|AGG|REDUCE)_([A-Z_]+)\b", lambda m: '"%s"' % m[1].lower(), text)
    for c, python in ((r"\ba dimension\b", "an axis"), (r"\bfirst index\b", "last index"), (r"\bfirst dimensions\b", "last axes"), (r"\bfirst dimension\b", "last axis"), (r"\blast dimension\b", "first axis"), (r"\bleading dimensions\b", "trailing axes"),
                      (r"\bfirst sizes\b", "last sizes"), (r"\bfirst size\b", "last size"), (r"\bsecond dimension\b", "second axis from the end"),
                      (r"\bdimension dim\b", "the axis"), (r"\balong dim\b", "along the axis"), (r"\bdim\b", "axis"), (r"\bNULL\b", "None")):
        text = re.sub(c, python, text)
    text = message(text, names)
    return re.sub(r"\bdimension(s?)\b", lambda m: "axes" if m[1] else "axis", text)
