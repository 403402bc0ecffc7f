"""Contestants of the benchmarks: processes that wait for lines on their standard input and answer numbers, so that rounds of all
of them follow each other."""
import functools
import os
import select
import shutil
import signal
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# so that the C library keeps what torch frees, and no page is made twice
KEEP_PAGES = {"MALLOC_MMAP_THRESHOLD_": "8589934592", "MALLOC_TRIM_THRESHOLD_": "8589934592"}


class Worker:
    """A contestant with one case, or none if it cannot be had: then why_not says why. Several get ready at the same time: only who
    asks whether one is alive waits."""

    def __init__(self, name, command, threads, environment=None):
        self.name = name
        sizes = {f"{v}_NUM_THREADS": str(threads) for v in ("OMP", "OPENBLAS", "MKL", "WEBER")}
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=None if os.environ.get("BENCH_VERBOSE") else subprocess.DEVNULL, text=True, start_new_session=True,
            env={**os.environ, **sizes, **(environment or {})})
        self.times, self.least, self.sums = [], None, None

    @functools.cached_property
    def greeting(self):
        return self.process.stdout.readline().strip()

    def is_ready(self, seconds):
        """Whether it greets within so many seconds."""
        return "greeting" in vars(self) or bool(select.select([self.process.stdout], [], [], max(0.0, seconds))[0])

    @property
    def alive(self):
        return self.greeting != "" and not self.greeting.startswith("absent")

    @property
    def why_not(self):
        return "" if self.alive else self.greeting.partition(" ")[2] or "no answer"

    def tell(self, line):
        """The answer as it came; that of ask is numbers."""
        if not self.alive:
            raise RuntimeError(f"{self.name} is absent: {self.why_not}")
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"{self.name} has ended")
        return answer

    def ask(self, line):
        answer = self.tell(line)
        try:
            return [float(word) for word in answer.split()]
        except ValueError:
            raise RuntimeError(f"{self.name}: {answer}") from None

    def run(self, steps):
        self.ask("reset")
        median, least, _ = self.ask(f"run {steps}")
        self.times.append(median)
        self.least = least if self.least is None else min(self.least, least)
        return median

    def result(self):
        return statistics.median(self.times) if self.times else None

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(timeout=60)

    def kill(self):
        """For one that does not answer any more: with all that it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=60)


def find_torch():
    """The python that has torch: of build/peers, of the path, Debian's; or None."""
    for python in (ROOT / "build/peers/bin/python", "python3", "/usr/bin/python3"):
        if shutil.which(str(python)) and subprocess.run(
                [str(python), "-c", "import torch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return str(python)
    return None


def disagreement(sums, others):
    """The largest relative difference between lists of numbers; 1 where one is not a number."""
    worst = 0.0
    for other in others:
        for x, y in zip(sums, other):
            worst = max(worst, abs(x - y) / max(abs(x), abs(y), 1e-30) if x == x and y == y else 1.0)
    return worst
