"""The parts of bench/gpu that prove: tests, sanitizers, flat memory, the demo."""
import os
import re
import shutil
import time

from parts import LOGS, OverTime, Skipped

NO_SANITIZER = "Device not supported"  # as it says it, for instance in some virtual machines
NO_LIBRARIES = {"WEBER_CUBLASLT_LIBRARY": "/no/such/library.so", "WEBER_CUDNN_LIBRARY": "/no/such/library.so"}
# programs that have each kind of kernel, forty of them; those of which memcheck finishes in a minute
FIRST_TESTS = ("ops/test_*", "gradient/test_table", "layers/test_batchnorm", "layers/test_conv", "layers/test_dense",
               "layers/test_layernorm", "layers/test_recur", "losses/test_*", "optimise/test_adam", "optimise/test_update",
               "values/test_04*", "values/test_06*", "values/test_08*", "values/test_14*", "values/test_15*", "values/test_19*")
FIRST_COUNT = 40
FIRST_CHECKED = ("test_join", "test_softmax", "test_index", "test_matmul")


class Proofs:
    # ---- the suite ----

    def suite(self, part):
        if self.options.pack:
            self.programs(part, self.tests("*/test_*"))
        else:
            self.built_suite(part, self.device)

    def opencl(self, part):
        """On the card's own OpenCL."""
        device = "CPU" if self.options.smoke else "OpenCL"
        there = {**self.there, "WEBER_DEVICE": device}
        worker = self.worker("card", [self.built / "bench/bench_rates", "--serve"], there)
        if not worker.alive:
            raise Skipped(worker.why_not)
        part.note(worker.tell("card"))
        if self.options.pack:
            self.programs(part, self.tests("*/test_*"), there)
        else:
            self.built_suite(part, device)

    def built_suite(self, part, device):
        tests = {"TESTS": "^ops/test_(join|softmax)$"} if self.options.smoke else {}
        text = self.checked(part, part.name, ["scripts/test", "device"], {"DEVICE": device, **tests},
                            ("tests in", "passed,", "Failed)", "Timeout)"))
        if re.search(r"\b0 passed, 0 failed", text):
            raise Skipped("no test ran" + ("" if (self.built / "tests").is_dir() else ": they are not built (cmocka is missing; --pack)"))

    def programs(self, part, tests, there=None):
        """Without ctest, which wants to be where the tests were built."""
        part.columns = ["program", "passed", "failed", "skipped", "seconds"]
        results = part.known.setdefault("programs", {})

        def tell(test, result):
            counts, seconds = result
            results[self.name_of(test)] = counts
            if counts[1]:
                part.row(self.name_of(test), *counts, seconds)

        try:
            left = [test for test in tests if self.name_of(test) not in results]
            self.in_turn(part, self.threads, left, lambda test: self.program(part, test, there or self.there), tell)
        finally:
            passed, failed, skipped = (sum(column) for column in zip(*results.values())) if results else (0, 0, 0)
            part.note(f"{passed + failed + skipped} tests in {len(results)} of {len(tests)} programs: {passed} passed, {failed} failed, "
                      f"{skipped} skipped")
        if failed:
            raise RuntimeError(f"{failed} tests failed: {LOGS}/{part.name}-*.log")

    def program(self, part, test, there):
        """Passed, failed, skipped; a program that fails without a word of its tests, or is over time, counts as one that failed."""
        begin = time.monotonic()
        try:
            status, text = self.command(f"{part.name}-" + self.name_of(test).replace("/", "-"), [test], there)
        except OverTime:
            status, text = 1, ""
        counts = [sum(map(int, re.findall(rf"\[  {word} *\] (\d+) test", text))) for word in ("PASSED", "FAILED", "SKIPPED")]
        if status != 0 and counts[1] == 0:
            counts[1] = 1
        return counts, time.monotonic() - begin

    def name_of(self, test):
        return str(test.relative_to(self.built / "tests"))

    def tests(self, *patterns):
        found = [path for pattern in patterns for path in sorted((self.built / "tests").glob(pattern))]
        tests = [path for path in found if os.access(path, os.X_OK) and path.is_file()]
        if not tests:
            raise Skipped("the tests are not built (cmocka is missing; --pack)")
        return [test for test in tests if test.stem in ("test_join", "test_softmax")] if self.options.smoke else tests

    # ---- a minute ----

    def first(self, part):
        """Whether a card is worth more of anybody's time."""
        _, text = self.command("devices", [self.built / "bin/weber", "devices"], self.there)
        for line in text.splitlines():
            if self.backend.lower() in line.lower():
                part.note(line.strip())
        try:
            self.programs(part, self.tests(*FIRST_TESTS)[:FIRST_COUNT])
        except RuntimeError as error:
            part.status, part.reason = "failed", str(error)
        checked = [test for test in self.tests("ops/test_*") if test.stem in FIRST_CHECKED]
        results = part.known.setdefault("memcheck", {})

        def tell(test, result):
            results[test.name] = result[0]
            part.note(f"memcheck of own kernels, {test.name}: {result[0]}, {result[1]:.1f} s")

        self.in_turn(part, 2, [t for t in checked if t.name not in results],
                     lambda test: self.sanitized(self.sanitizer(), "memcheck", test, NO_LIBRARIES), tell)
        if any(result not in ("clean", NO_SANITIZER) for result in results.values()):
            raise RuntimeError("memcheck: see the lines below")

    # ---- sanitizers ----

    def sanitizer(self):
        program = self.options.sanitizer or shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not shutil.which(program):
            raise Skipped("compute-sanitizer is not there")
        return program

    def check_all(self, part, tool, environment=None):
        program, tests = self.sanitizer(), self.tests("ops/test_*")
        part.columns = ["program", "result", "seconds"]
        results = part.known.setdefault("programs", {})

        def tell(test, result):
            results[test.name] = result[0]
            part.row(test.name, *result)

        self.in_turn(part, max(1, min(4, self.threads // 2)), [test for test in tests if test.name not in results],
                     lambda test: self.sanitized(program, tool, test, environment), tell)
        if all(result == NO_SANITIZER for result in results.values()):
            raise Skipped("compute-sanitizer does not know this device, or may not look at it")
        bad = [name for name, result in results.items() if result != "clean"]
        if bad:
            raise RuntimeError(f"{len(bad)} of {len(tests)} programs: " + " ".join(bad))

    def sanitized(self, program, tool, test, environment):
        begin = time.monotonic()
        status, text = self.command(f"{tool}-{test.name}", [program, "--tool", tool, "--report-api-errors", "no",
                                                            "--error-exitcode", "99", test], {**self.there, **(environment or {})})
        found = re.findall(r"(ERROR SUMMARY: .*|RACECHECK SUMMARY: .*)", text)
        result = NO_SANITIZER if NO_SANITIZER in text else "clean" if status == 0 else f"exit status {status}" + (f", {found[-1]}" if found else "")
        return result, time.monotonic() - begin

    def memcheck(self, part):
        self.check_all(part, "memcheck")

    def racecheck(self, part):
        """Of Weber's own kernels for products and convolutions, too: not of the libraries'."""
        self.check_all(part, "racecheck", NO_LIBRARIES)

    # ---- long runs ----

    def flat(self, part):
        steps = ["--smoke"] if self.options.smoke else ["--steps", "10000"]
        self.checked(part, "flat", [self.built / "bench/bench_flat", *steps, "b"], self.there, ("steps", "GREW", "loss", "bytes"))

    def demo(self, part):
        short = {"EPOCHS": "1"} if self.options.smoke else {}
        command, environment = ["scripts/demo"], {"DEVICE": self.device, **short}  # make demo, without its looking for packages
        if self.options.pack:
            command = [self.built / "demo", "--device", self.device, *(["--epochs", "1"] if short else [])]
        self.checked(part, "demo", command, {**self.there, **environment}, ("first step", "accuracy", "memory"))
