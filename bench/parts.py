"""What bench/gpu's parts stand on: commands with a time, rows that are told as they come, tables that the next run goes on from, and
an end of all that was begun."""
import concurrent.futures
import contextlib
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from contest import ROOT, Worker, find_torch
from ending import Begun

LOGS = ROOT / "build/gpu"
BUILD = ROOT / "build/gcc"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# NVIDIA's libraries by the names under which the linker may know them, and where else they may lie
NVIDIA_LIBRARIES = (("libcuda.so.1",), ("libnvrtc.so.13", "libnvrtc.so.12"), ("libcublasLt.so.13", "libcublasLt.so.12"), ("libcudnn.so.9",))
NVIDIA_FOLDERS = ("/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/usr/local/cuda/lib64")
TORCHS_FOLDERS = "import nvidia, glob; print(*(f for p in nvidia.__path__ for f in glob.glob(p + '/*/lib')), sep='\\n')"
# what is compiled once and kept, by who keeps it
CACHES = {"WEBER_CACHE": "weber", "TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}


class OverTime(Exception):
    pass


class Skipped(Exception):
    pass


class Ended(BaseException):
    """By a signal, whose number is its argument."""


def over_time(*_):
    raise OverTime


def ended(number, _):
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise Ended(number)


def cell(value):
    """A number with three digits that count."""
    if not isinstance(value, float):
        return "" if value is None else str(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def opens(library):
    return subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", library],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def add_folders(variable, folders):
    """To a path in the environment, after what is there."""
    if not folders:
        return
    there = os.environ.get(variable, "")
    os.environ[variable] = ":".join([*([there] if there else []), *map(str, folders)])


class Part:
    """What a part found: a table, and lines below it; and, by its name, what each thing that it did has given, so that a run that goes
    on from this one leaves it out."""

    def __init__(self, name, earlier=None):
        self.name, self.status, self.seconds, self.reason = name, "running", 0.0, ""
        self.columns, self.rows, self.notes, self.known = [], [], [], {}
        if earlier:
            self.columns, self.rows, self.notes, self.known = (earlier[key] for key in ("columns", "rows", "notes", "known"))
            self.seconds = earlier["seconds"]

    def row(self, *values):
        self.rows.append(list(values))
        print("    " + " | ".join(cell(v) for v in values), flush=True)

    def note(self, text):
        self.notes.append(text)
        print("    " + text, flush=True)

    def markdown(self):
        lines = [f"## {self.name}: {self.status}, {self.seconds:.0f} s" + (f" ({self.reason})" if self.reason else ""), ""]
        if self.rows:
            lines += ["| " + " | ".join(self.columns) + " |", "|" + "-|" * len(self.columns)]
            lines += ["| " + " | ".join(cell(v) for v in row) + " |" for row in self.rows] + [""]
        return lines + [f"- {note}" for note in self.notes] + ([""] if self.notes else [])


class Base:
    def __init__(self, options, limits):
        self.options, self.limits = options, limits
        self.device = options.device
        self.backend, _, index = options.device.partition(":")
        self.torch = None if options.no_peer else find_torch()
        torchs_name = {"cuda": "cuda", "amdgpu": "cuda", "metal": "mps"}.get(self.backend.lower(), "cpu")
        self.torch_device = torchs_name + ":" + index if index and torchs_name != "cpu" else torchs_name
        self.threads = options.threads or (1 if options.smoke else os.cpu_count())
        self.built = LOGS / "pack" if options.pack else BUILD
        self.there = {"WEBER_DEVICE": self.device, "WEBER_PLUGIN_PATH": str(self.built / "weber")}
        self.workers, self.parts, self.facts, self.earlier = [], [], {}, {}
        self.begun, self.is_ended, self.written = Begun(), False, "nothing"
        self.begin = time.monotonic()
        os.environ.setdefault("WEBER_CMAKE_OPTIONS", "-DWEBER_WERROR=OFF")  # a compiler that is newer warns of more
        LOGS.mkdir(parents=True, exist_ok=True)
        self.unpack_caches()
        if options.resume:
            self.go_on_from(Path(options.resume))
        if self.backend.lower() == "cuda":
            self.find_libraries()

    # ---- parts ----

    def do(self, name):
        earlier = self.earlier.pop(name, None)
        if earlier and earlier["status"] == "done" and name != "build":
            print(f"== {name}: done before", flush=True)
            return
        part = Part(name, earlier)
        self.parts = [p for p in self.parts if p.name != name] + [part]
        limit = min(self.limits[name], self.options.minutes * 60 - (time.monotonic() - self.begin))
        print(f"== {name}, {limit:.0f} s", flush=True)
        begin = time.monotonic()
        self.log_of(name).unlink(missing_ok=True)
        signal.signal(signal.SIGALRM, over_time)
        try:
            if limit < 1:
                raise Skipped("no time was left")
            self.deadline = begin + limit
            signal.setitimer(signal.ITIMER_REAL, limit)
            getattr(self, name)(part)
            part.status = "done" if part.status == "running" else part.status
        except Skipped as reason:
            part.status, part.reason = "skipped", str(reason)
        except OverTime:
            part.status, part.reason = "stopped", f"its {limit:.0f} s were over" + self.last_line(name)
        except Ended as signaled:
            self.is_ended = True
            part.status, part.reason = "stopped", f"the script was ended by {signal.Signals(signaled.args[0]).name}"
            raise
        except Exception as error:  # whatever it is, the next part goes on
            part.status, part.reason = "failed", f"{type(error).__name__}: {error}".replace("\n", " ")[:400]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.end_all(part)
            part.seconds += time.monotonic() - begin
            print(f"   {part.status}, {part.seconds:.0f} s {part.reason}", flush=True)
            self.write()

    def end_all(self, part):
        """What the part began, and what that began."""
        for worker in self.workers:
            worker.kill()
        self.workers = []
        if not self.begun.end():
            part.note("something that it began cannot be ended")

    def last_line(self, name):
        """Of the part's log, where it was stopped."""
        log = self.log_of(name)
        lines = log.read_text(errors="replace").split("\n") if log.exists() else []
        return next((": " + line.strip()[:200] for line in reversed(lines) if line.strip()), "")

    # ---- commands ----

    def log_of(self, name):
        return LOGS / f"{name}.log"

    def command(self, name, command, environment=None):
        """Runs it with its output in a log; what ran over its time is ended with all that it started. The output."""
        log = self.log_of(name)
        with log.open("w") as out:
            process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       cwd=ROOT, env={**os.environ, **(environment or {})}, start_new_session=True)
            try:
                process.wait(timeout=max(0.0, self.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise OverTime from None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        return process.returncode, log.read_text(errors="replace")

    def checked(self, part, name, command, environment=None, words=()):
        """The command has to succeed; lines of its output that have one of the words are noted."""
        status, text = self.command(name, command, environment)
        for line in text.splitlines():
            if any(word in line for word in words):
                part.note(line.strip())
        if status != 0:
            tail = [line.strip() for line in text.splitlines() if line.strip()][-3:]
            raise RuntimeError(f"exit status {status}: " + " / ".join(tail))
        return text

    def in_turn(self, part, count, tasks, run, tell):
        """run(task) for each, so many at a time; tell(task, result) as they come. Those that have not come when the time is over are
        noted."""
        left = list(tasks)
        pool = concurrent.futures.ThreadPoolExecutor(count)
        futures = {pool.submit(run, task): task for task in tasks}
        try:
            for future in concurrent.futures.as_completed(futures):
                tell(futures[future], future.result())
                left.remove(futures[future])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            if left:
                self.begun.end()  # so that the threads, which wait for them, end
                part.note(f"not finished: {' '.join(getattr(task, 'stem', None) or task.name for task in left)}")

    def worker(self, name, command, environment=None):
        worker = Worker(name, command, self.threads, environment)
        self.workers.append(worker)
        return worker

    # ---- what there is ----

    def build(self, part):
        if self.options.pack:
            self.unpack(part)
        else:
            targets = ["weber", "weber_tool", "benches"] if self.options.smoke else ["all", "tests"]
            self.checked(part, "build", ["scripts/build", "gcc", *targets])
        _, self.facts["devices"] = self.command("devices", [self.built / "bin/weber", "devices"], self.there)
        part.note(self.card())

    def find_libraries(self):
        """What the linker does not know may lie elsewhere; the toolkit's may have come with torch."""
        missing = [names for names in NVIDIA_LIBRARIES if not any(map(opens, names))]
        if not missing:
            return
        torchs = subprocess.run([self.torch or sys.executable, "-c", TORCHS_FOLDERS], capture_output=True, text=True).stdout
        folders = []
        for names in missing:
            found = [f for f in (*NVIDIA_FOLDERS, *torchs.splitlines()) if any((Path(f) / name).exists() for name in names)][:1]
            folders += [f for f in found if f not in folders]
            print(f"{names[0]}: the linker does not know it; {found[0] if found else 'nor is it anywhere else'}", flush=True)
        add_folders("LD_LIBRARY_PATH", folders)

    def unpack(self, part):
        """Anew, as files of this user's that nobody else may write: plugins are looked at."""
        shutil.rmtree(self.built, ignore_errors=True)
        os.umask(0o022)
        with tarfile.open(self.options.pack) as archive:
            archive.extractall(self.built)
        add_folders("LD_LIBRARY_PATH", [self.built / "lib"])
        if (self.built / "data").is_dir():
            os.environ["WEBER_DATA"] = str(self.built / "data")
        part.note("built elsewhere, of " + (self.built / "commit").read_text().strip())

    def card(self):
        """The device as Weber sees it."""
        worker = self.worker("card", [self.built / "bench/bench_rates", "--serve"], self.there)
        self.facts["card"] = worker.tell("card")
        return self.facts["card"]

    # ---- what was compiled, kept beside the results for the next run ----

    def unpack_caches(self):
        folder = LOGS / "caches"
        for variable, name in CACHES.items():
            os.environ.setdefault(variable, str(folder / name))
        os.environ.update(TORCHINDUCTOR_FX_GRAPH_CACHE="1", TORCHINDUCTOR_AUTOGRAD_CACHE="1")
        file = Path(self.options.caches)
        if file.exists():
            with tarfile.open(file) as archive:
                archive.extractall(folder)
        folder.mkdir(parents=True, exist_ok=True)

    def pack_caches(self):
        """To another name first: who is killed leaves the old ones."""
        file = Path(self.options.caches)
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(file.name + ".new")
        with tarfile.open(fresh, "w:gz", compresslevel=1) as archive:
            archive.add(LOGS / "caches", ".")
        fresh.replace(file)

    # ---- results ----

    def versions(self):
        def first(*command):
            try:
                return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=20, check=True).stdout.strip()
            except (OSError, subprocess.SubprocessError):
                return ""
        smi = first("nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,power.limit", "--format=csv,noheader")
        packed = self.built / "commit"
        commit = packed.read_text().strip() if packed.exists() else first("git", "-c", f"safe.directory={ROOT}", "describe", "--always", "--dirty")
        return {"commit": commit, "compiler": first("cc", "--version").partition("\n")[0],
                "nvidia-smi": smi, "kernel": os.uname().release, "cores": os.cpu_count()}

    def go_on_from(self, file):
        """The parts of an earlier run: what they have done is not done again."""
        earlier = json.loads(file.read_text())
        self.earlier = {part["name"]: part for part in earlier["parts"]}
        for old in earlier["parts"]:
            part = Part(old["name"], old)
            part.status, part.reason = old["status"], old["reason"]
            self.parts.append(part)
        self.facts.update({key: earlier[key] for key in ("peer",) if key in earlier})
        self.facts["resumed"] = f"{earlier['versions'].get('commit', '')} of {earlier['date']}"

    def write(self):
        if "versions" not in self.facts:
            self.facts["versions"] = self.versions()
        if "card" not in self.facts and not self.is_ended:
            with contextlib.suppress(RuntimeError, OSError):
                self.card()
            self.workers.pop().kill()
        name = re.sub(r"[^a-z0-9]+", "-", (self.facts.get("card", "").split(", ") + ["", ""])[1].lower()).strip("-")[:40] or self.backend.lower()
        date = datetime.date.today().isoformat()
        folder = Path(self.options.results)
        folder.mkdir(parents=True, exist_ok=True)
        stem = folder / f"gpu-{date}-{name}"
        Path(f"{stem}.json").write_text(json.dumps(
            {"date": date, "device": self.device, **self.facts, "parts": [vars(part) for part in self.parts]}, indent=1) + "\n")
        lines = [f"# {self.device}, {date}", "", f"- card: {self.facts.get('card', 'not seen')}",
                 *(f"- {key}: {value}" for key, value in self.facts["versions"].items() if value),
                 f"- peer: {self.facts.get('peer', 'none')}{', products of f32 rounded (tf32)' if self.options.tf32 else ''}",
                 *([f"- goes on from {self.facts['resumed']}"] if "resumed" in self.facts else []),
                 f"- `bench/gpu {' '.join(sys.argv[1:])}`", "",
                 "Microseconds of a step or operation, medians of rounds in turn on the same card; ratios above 1: Weber is faster.", ""]
        for part in self.parts:
            lines += part.markdown()
        Path(f"{stem}.md").write_text("\n".join(lines).rstrip() + "\n")
        self.written = f"{stem}.md"
