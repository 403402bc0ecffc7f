"""A short run of fuzz.py; a long one is `PYTHONPATH=... python3 python/tests/fuzz.py 1000000 SEED`."""
import pathlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize("arguments", [["4000", "1"], ["4000", "2"], ["3000", "3", "3"]], ids=["seed 1", "seed 2", "three threads"])
def test_random_calls(arguments):
    done = subprocess.run([sys.executable, str(pathlib.Path(__file__).with_name("fuzz.py")), *arguments], capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr[-3000:]
    before, after = done.stdout.splitlines()[-1].split("before and after: ")[1].split("} ")[:2]
    assert before.strip("}") == after.strip("}"), done.stdout.splitlines()[-1]
