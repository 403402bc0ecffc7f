"""The parts of bench/gpu that measure: cases beside torch, operations beside the copy, launches, profiles."""
import contextlib
import shutil
import time
from pathlib import Path

from contest import ROOT, Worker, disagreement
from parts import Skipped

CHECK_STEPS = {"b": 50, "c": 10, "d": 5, "e": 3}  # 2 of the others; 1 in halves of those below
# a rounding of weights is a percent of the loss two steps later, in torch beside itself, and in halves four
RESTLESS = "nrs"
# of loss and sum of parameters; where products are of bf16 or f16; at most, where weights a rounding apart go apart
AGREE, AGREE_HALF, AGREE_MOST = 1e-4, 1e-2, 1e-2
NUDGES = 4  # times as far apart as the peer is from itself
HALVES = ("bf16", "f16")
GOALS = {"b": ("eager", 3.0), "gpt2": ("compiled", 1.0)}  # so many times faster than that peer
GOAL_OF_COPY = 0.85

# torch's ways (peer_torch.py), as its users have them; the deterministic one is shown and not among the best
EVERY, OF_TRAINING, OF_IMAGES, OF_ATTENTION = ("eager", "compiled", "graphs"), ("fused",), ("contiguous",), ("flash", "efficient", "cudnn")
DETERMINISTIC = "deterministic"
VARIANTS = (*EVERY[:1], *OF_TRAINING, *EVERY[1:], *OF_IMAGES, *OF_ATTENTION, DETERMINISTIC)
NOT_LEARNT = "ghjklmq"

GPT2 = "12,768,12,1024,50257,8,bf16"
SMALL_GPT2 = "2,32,2,16,67,2,bf16"
# quickest first
LARGE = ("k:512", "k:512,bf16", "k:512,gradient", "k:512,gradient,bf16", "k:2048,gradient", "k:2048,gradient,bf16",
         "k:2048,gradient,f32,medium", "k:16384,bf16", "k:16384,gradient,bf16", "k:16384,gradient",
         "f:96,256,64,64", "j:256", "i:256,bf16", "i:256", "i:256,f32,medium", "n:128,bf16", "n:128", "n:128,f32,medium",
         "r:128,bf16", "r:128", "s:64,bf16", "s:64", "e:" + GPT2)
SMALL_LARGE = ("k:tiny", "n:2")
PROFILED = ("i:256", "i:256,bf16", "n:128", "n:128,bf16", "r:128", "s:64,bf16", "f:96,256,64,64", "k:2048,gradient,bf16", "e:" + GPT2)

MILLION = 1 << 20
# bytes that an operation has to move, as f(bytes of an element, sizes...); lines of bench_rates
BANDWIDTH = [
    ("copy f32 {n}", lambda e, n: 2 * e * n),
    ("map f32 {n}", lambda e, n: 2 * e * n),
    ("fma f32 {n}", lambda e, n: 4 * e * n),
    ("fma bf16 {n}", lambda e, n: 4 * e * n),
    ("gelu bf16 {n}", lambda e, n: 2 * e * n),
    ("sum f32 {n}", lambda e, n: e * n),
    ("columns f32 768 {rows768}", lambda e, c, r: e * c * r),
    ("softmax f32 1024 {rows1024}", lambda e, c, r: 2 * e * c * r),
    ("softmax bf16 1024 {rows1024}", lambda e, c, r: 2 * e * c * r),
    ("softmax_gradient f32 1024 {rows1024}", lambda e, c, r: 3 * e * c * r),
    ("layernorm f32 768 {rows768}", lambda e, c, r: 2 * e * c * r),
    ("layernorm_gradient f32 768 {rows768}", lambda e, c, r: 3 * e * c * r),
    ("crossentropy f32 50257 {rows50257}", lambda e, c, r: 2 * e * c * r),
    ("adam f32 {n}", lambda e, n: 7 * e * n),
]
ROW_KERNELS = ("softmax", "softmax_gradient", "layernorm", "layernorm_gradient", "crossentropy")
# floating-point operations, as f(sizes...)
ARITHMETIC = [
    ("matmul f32 {side} {side} {side} 1", lambda m, n, k, b: 2 * m * n * k * b),
    ("matmul bf16 {side} {side} {side} 1", lambda m, n, k, b: 2 * m * n * k * b),
    ("matmul bf16 3072 {rows} 768 1", lambda m, n, k, b: 2 * m * n * k * b),
    ("matmul bf16 1024 1024 64 96", lambda m, n, k, b: 2 * m * n * k * b),
    ("matmul f32 256 64 784 1", lambda m, n, k, b: 2 * m * n * k * b),
    ("conv f32 56 64 64 3 {images}", lambda s, c, f, k, n: 2 * s * s * c * f * k * k * n),
    ("conv_data f32 56 64 64 3 {images}", lambda s, c, f, k, n: 2 * s * s * c * f * k * k * n),
    ("conv_filter f32 56 64 64 3 {images}", lambda s, c, f, k, n: 2 * s * s * c * f * k * k * n),
    ("conv bf16 56 64 64 3 {images}", lambda s, c, f, k, n: 2 * s * s * c * f * k * k * n),
]
ELEMENT_BYTES = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8}


def check_steps(case):
    return 1 if case[0] in RESTLESS and halves_of(case) else CHECK_STEPS.get(case[0], 2)


def halves_of(case):
    return any(word in HALVES for word in case.split(","))


def digits(apart):
    return None if apart is None else f"{apart:.1e}"


def variants_of(case):
    """Torch's ways for a case, by its name in cases.h."""
    letter = case[0]
    return [*EVERY[:1], *(() if letter in NOT_LEARNT else OF_TRAINING), *EVERY[1:], *(OF_IMAGES if letter in "dijnqrs" else ()),
            *(OF_ATTENTION if letter in "eko" else ()), DETERMINISTIC]


class Measures:
    # ---- contests ----

    def contestants(self, case, peers):
        """Weber with and without graphs, and torch. Weber times its ways of convolutions alone; then the others get ready at the same
        time."""
        cases = [self.built / "bench/bench_cases", "--serve", "--threads", self.threads, case]
        workers = [self.worker("Weber", cases, {**self.there, "WEBER_GRAPHS": "1"})]
        with contextlib.suppress(RuntimeError, OSError):  # told when it is asked for its row
            workers[0].tell("reset")
        if self.backend.lower() in ("cuda", "amdgpu"):
            workers.append(self.worker("without graphs", cases, {**self.there, "WEBER_GRAPHS": "0"}))
        for variant in peers if self.torch else ():
            if self.options.peers and variant not in self.options.peers:
                continue
            tf32 = ["--tf32"] if self.options.tf32 else []
            workers.append(self.worker(variant, [self.torch, ROOT / "bench/peer_torch.py", case, variant, self.threads,
                                                 "--device", self.torch_device, *tf32]))
        return workers

    def get_ready(self, part, contests, share=0.5):
        """All of them at the same time, for a share of the time that is left; who is late is left out."""
        begin = time.monotonic()
        last = begin + (self.deadline - begin) * share
        for name, workers in contests.items():
            for worker in list(workers):
                if not worker.is_ready(last - time.monotonic()):
                    part.note(f"{name}, {worker.name}: not ready after {last - begin:.0f} s")
                    worker.kill()
                    workers.remove(worker)

    def present(self, part, name, workers, steps):
        """Those that are there, with what they have computed; and how far the first peer goes from itself, with weights that are a
        rounding apart at the beginning."""
        there, apart = [], 0.0
        for worker in workers:
            try:
                worker.sums = worker.ask(f"check {steps}")
                there.append(worker)
                if worker.greeting.startswith("torch"):
                    self.facts["peer"] = worker.greeting.split(",")[0] + " on " + self.torch_device
                if worker.name == "eager":
                    apart = disagreement(worker.sums, [worker.ask(f"nudged {steps}")])
            except (RuntimeError, OSError) as error:
                part.note(f"{name}: {error}")
        if not there or there[0].name != "Weber":
            raise RuntimeError(part.notes[-1] if part.notes else "no contestant")
        return there, apart

    def contest(self, part, name, workers, checks, agree):
        """One row: the steps of all contestants in turn."""
        there, nudged = self.present(part, name, workers, 1 if self.options.smoke else checks)
        seconds, rounds = (0.0, 1) if self.options.smoke else (0.25, 5)
        steps = {w: max(2, min(2000, int(seconds * 1e6 / w.ask("flow 2")[0]))) for w in there}
        waited = there[0].ask(f"run {min(steps[there[0]], 50)}")[0]
        for _ in range(rounds):
            for w in there:
                w.times.append(w.ask(f"flow {steps[w]}")[0])
        self.contest_row(part, name, there, waited, min(max(agree, NUDGES * nudged), max(agree, AGREE_MOST)))
        part.known[name] = True

    def contest_row(self, part, name, there, waited, agree):
        us = {w.name: w.result() for w in there}
        peers = [w for w in there if w.name not in ("Weber", "without graphs", DETERMINISTIC)]
        apart = disagreement(there[0].sums, [w.sums for w in there[1:]]) if len(there) > 1 else None
        best = min(peers, key=Worker.result, default=None)
        ratio = best.result() / us["Weber"] if best else None
        against, goal = GOALS.get(name, (None, None))
        reached = us[against] / us["Weber"] if against in us else None
        words = f"{reached:.2f} times {against}, goal {goal:g}" if reached else f"goal: {goal:g} times {against}" if goal else ""
        if apart is not None and apart > agree:
            words = "VOID: results are apart"
        memory = there[0].ask("memory")[1] / 1e9
        part.row(name, us["Weber"], min(there[0].times), waited, us.get("without graphs"), *(us.get(variant) for variant in VARIANTS),
                 best.name if best else None, ratio, digits(apart), digits(agree), words, memory,
                 best.ask("memory")[1] / 1e9 if best else None)
        for w in there:
            w.close()

    COLUMNS = ["case", "Weber us", "least", "waited for each", "without graphs", *("torch " + v if v == "eager" else v for v in VARIANTS),
               "best", "best / Weber", "apart", "may be", "goal", "Weber GB", "torch GB"]

    def agreement(self, name):
        return AGREE_HALF if halves_of(name) else AGREE

    def cases(self, part):
        """Small ones: all get ready at the same time."""
        part.columns = self.COLUMNS
        batch = f":{self.options.batch}" if self.options.batch else ""
        names = self.options.cases.split(";") if ";" in self.options.cases or ":" in self.options.cases else self.options.cases
        contests = {}
        for name in names:
            if name not in part.known:
                peers = EVERY[:1] if self.options.smoke else variants_of(name)
                contests[name] = self.contestants(name + (batch if name in tuple("bcd") else ""), peers)
        self.get_ready(part, contests)
        for name, workers in contests.items():
            try:
                self.contest(part, name, workers, check_steps(name), self.agreement(name))
            except (RuntimeError, OSError) as error:
                part.status, part.reason = "failed", str(error)

    def large(self, part):
        """One after another, since each may want most of a card's memory. A case that compiles for too long goes on without its
        compiled peers; what they have compiled until then is kept for the next run."""
        part.columns = self.COLUMNS
        for name in SMALL_LARGE if self.options.smoke else LARGE:
            if name in part.known:
                continue
            workers = self.contestants(name, EVERY[:1] if self.options.smoke else variants_of(name))
            try:
                self.get_ready(part, {name: workers})
                self.contest(part, name, workers, check_steps(name), self.agreement(name))
            except (RuntimeError, OSError) as error:
                part.note(f"{name}: {error}")
                part.status, part.reason = "failed", f"{name}: {error}"
            for worker in workers:
                worker.kill()
            self.pack_caches()

    def gpt2(self, part):
        """The batch is halved until it fits."""
        part.columns = self.COLUMNS + ["sizes"]
        *shape, batch, kind = (SMALL_GPT2 if self.options.smoke else self.options.gpt2).split(",")
        batch = int(batch)
        while batch > 0 and "gpt2" not in part.known:
            sizes = ",".join([*shape, str(batch), kind])
            workers = self.contestants("e:" + sizes, EVERY[:1] if self.options.smoke else variants_of("e"))
            try:
                self.get_ready(part, {"gpt2": workers})
                self.contest(part, "gpt2", workers, 2, self.agreement(kind))
                part.rows[-1].append(sizes)
            except (RuntimeError, OSError) as error:
                part.note(f"batch {batch}: {error}")
                for worker in self.workers:
                    worker.kill()
                batch //= 2
        self.pack_caches()
        if "gpt2" not in part.known:
            raise RuntimeError("not at any size")

    # ---- rates ----

    def rate_workers(self):
        workers = [self.worker("Weber", [self.built / "bench/bench_rates", "--serve", *(["--smoke"] if self.options.smoke else [])],
                               {**self.there, "WEBER_GRAPHS": "1"})]
        if self.torch:
            tf32 = ["--tf32"] if self.options.tf32 else []
            workers.append(self.worker("torch", [self.torch, ROOT / "bench/peer_rates.py", "--device", self.torch_device,
                                                 "--threads", self.threads, *tf32]))
        return [w for w in workers if w.alive or w.name == "Weber"]

    def warm(self, part, workers, lines):
        """All that will be asked, once, by all of them at the same time: kernels are compiled and chosen now, and not in between."""
        begin = time.monotonic()

        def run(worker):
            for line in lines if worker.alive else ():
                with contextlib.suppress(RuntimeError, OSError):  # told when it is asked
                    worker.tell("warm " + line)

        self.in_turn(part, len(workers), workers, run, lambda worker, _: part.note(f"{worker.name}: warm after {time.monotonic() - begin:.1f} s"))

    def ask_all(self, part, workers, line):
        """The median of each, or None; and how far the sums of their results are apart."""
        times, sums = {}, []
        for worker in workers:
            try:
                times[worker.name] = worker.ask("time " + line)[0]
                if not line.startswith(("copy", "empty")):
                    sums.append(worker.ask("check " + line))
            except (RuntimeError, OSError) as error:
                if "no such thing" not in str(error):
                    part.note(f"{line}: {error}")
        return times, disagreement(sums[0], sums[1:]) if len(sums) > 1 else None

    def rates(self, part):
        part.columns = ["operation", "Weber us", "rate", "of copy", "torch us", "torch / Weber", "apart", "goal"]
        workers, copy = self.rate_workers(), part.known.get("copy")
        count = 4096 if self.options.smoke else self.options.elements * MILLION
        sizes = {"n": count, "side": 64 if self.options.smoke else 4096, "rows": 64 if self.options.smoke else 8192,
                 "images": 1 if self.options.smoke else 64, **{f"rows{c}": max(1, count // c) for c in (768, 1024, 50257)}}
        lines = [(template.format(**sizes), work) for template, work in BANDWIDTH + ARITHMETIC]
        left = [(line, work) for line, work in lines if line not in part.known]
        self.warm(part, workers, [line for line, _ in left])
        for line, work in left:
            kind, dtype, *numbers = line.split()
            numbers = [int(n) for n in numbers]
            times, apart = self.ask_all(part, workers, line)
            us, peer = times.get("Weber"), times.get("torch")
            is_bandwidth = work in [work for _, work in BANDWIDTH]
            amount = work(ELEMENT_BYTES[dtype], *numbers) if is_bandwidth else work(*numbers)
            rate = amount / us if us else None  # per microsecond
            if kind == "copy":
                part.known["copy"] = copy = rate
            share = rate / copy if rate and copy and is_bandwidth else None
            text = None if not rate else f"{rate / 1e3:.0f} GB/s" if is_bandwidth else f"{rate / 1e6:.2f} TFLOP/s"
            goal = f"goal {GOAL_OF_COPY}" if kind in ROW_KERNELS else ""
            agree = AGREE if dtype == "f32" else AGREE_HALF
            goal = "VOID: results are apart" if apart is not None and apart > agree else goal
            part.row(line, us, text, share, peer, peer / us if us and peer else None, digits(apart), goal)
            part.known[line] = True

    def launch(self, part):
        part.columns = ["what", "Weber us", "WEBER_GRAPHS=0", "torch us"]
        lines = [("the smallest kernel, past the library", "empty f32"), ("x + 1 of one number", "tiny f32 1"),
                 ("64 products of 4x4 in a plan", "chain f32 64")]
        workers = self.rate_workers()
        without = self.worker("without graphs", [self.built / "bench/bench_rates", "--serve"], {**self.there, "WEBER_GRAPHS": "0"})
        self.warm(part, [*workers, without], [line for _, line in lines])
        for what, line in lines:
            times, _ = self.ask_all(part, [*workers, without], line)
            part.row(what, times.get("Weber"), times.get("without graphs"), times.get("torch"))
        smoke = ["--smoke"] if self.options.smoke else []
        _, text = self.command("device", [self.built / "bench/bench_device", *smoke, self.backend, self.device.partition(":")[2] or "0"], self.there)
        for line in text.splitlines():
            part.note(line)

    # ---- profiles ----

    def profile(self, part):
        """Steady steps by operation and layer; the tables go beside the results, their first rows here."""
        folder = Path(self.options.results)
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("b:tiny",) if self.options.smoke else PROFILED:
            if name in part.known:
                continue
            log = "profile-" + "".join(c if c.isalnum() else "-" for c in name)
            status, text = self.command(log, [self.built / "bin/weber", "profile", "--skip=3", "--rows=60", self.built / "bench/bench_cases",
                                              "--threads", self.threads, name], self.there)
            shutil.copy(self.log_of(log), folder / f"{log}.txt")
            lines = [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith("weber info: ")]
            if status != 0 or not any("all; " in line for line in lines):
                part.note(f"{name}: exit status {status}: " + " / ".join(lines[-3:]))
                part.status, part.reason = "failed", name
                continue
            part.note(f"{name}: {lines[0]}")
            for line in lines[1:8] + [line for line in lines if "all; " in line]:
                part.note("`" + line + "`")
            part.known[name] = True
        if not part.known:
            raise Skipped("nothing could be profiled")
