#!/usr/bin/env python3
"""Breaks every elementwise row of ops.def, in a copy of the tree, and lists the tests of the row that noticed.

    tests/mutate.py FOLDER > docs/mutations.md

FOLDER gets the copy and its build (debug, two jobs). A row is broken in its value, in its derivative and, if it has two
inputs, in that by the second. Each build breaks one thing in many rows at once: those whose tests do not meet, so that
what a test notices is its own row. Exits with 1 if something went unnoticed.
"""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TESTS = ["ops/test_elementwise", "gradient/test_table"]
ROW = re.compile(r"^WB_(UNARY|BINARY|MACRO)\(")


def split(line):
    """The arguments of a row, with where each begins and ends."""
    start, depth, text, parts = line.index("(") + 1, 0, False, []
    begin = start
    for i in range(start, len(line)):
        c = line[i]
        if c == '"':
            text = not text
        if text:
            continue
        if c == "(":
            depth += 1
        elif c == ")" and depth > 0:
            depth -= 1
        elif (c == "," and depth == 0) or (c == ")" and depth == 0):
            parts.append((begin, i))
            begin = i + 1
            if c == ")":
                return parts
    raise ValueError(line)


def mutant(line, what):
    """The row with its value, its derivative or that by y broken; None where it has none."""
    kind, parts = ROW.match(line).group(1), split(line)
    get = lambda k: line[parts[k][0]:parts[k][1]].strip()
    put = lambda k, new: line[:parts[k][0]] + " " + new + line[parts[k][1]:]
    if what == "value":
        if kind == "MACRO":
            return put(3, "ADD(%s, NUM(0.001))" % get(3))
        return put(2, "!(%s)" % get(2) if get(1) in ("COMPARE", "LOGIC") else "(%s) + (x == x)" % get(2))
    if what == "derivative by y" and kind != "BINARY":
        return None
    k = 4 if kind == "MACRO" or what == "derivative by y" else 3
    return None if get(k) == "NONE" else put(k, "MUL(%s, NUM(1.01))" % get(k))


# texts that the CPU does not run, and why
NOT_RUN = {"sin": "nobody: the CPU's loop is that of its math table, `tests/backends/cpu/test_math` watches it",
           "cos": "nobody: the CPU's loop is that of its math table, `tests/backends/cpu/test_math` watches it"}

# what is broken together: (kinds of rows, what)
BUILDS = [[("UNARY BINARY", "value")],
          [("MACRO", "value"), ("BINARY", "derivative by y")],
          [("UNARY BINARY MACRO", "derivative")]]


def failures(build, test):
    """The rows of a test program that failed."""
    done = subprocess.run([os.path.join(build, "tests", test)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    text = done.stdout.decode(errors="replace")
    return sorted(set(re.findall(r"\[  (?:FAILED |ERROR  )\s*\] (?!---)(?:ops/\S+: |gradient/\S+: )?(.*)", text)))


def name_of(line):
    return line[line.index("(") + 1:line.index(",")].strip()


def break_rows(lines, group):
    """The table with the group's rows broken, and which they are."""
    broken, what_broke = list(lines), []
    for number, line in enumerate(lines):
        for kinds, what in group:
            if ROW.match(line) and ROW.match(line).group(1) in kinds.split() and mutant(line, what):
                broken[number] = mutant(line, what)
                what_broke.append((name_of(line), what))
    return broken, what_broke


def main():
    folder = sys.argv[1]
    tree, build = os.path.join(folder, "tree"), os.path.join(folder, "build")
    shutil.copytree(ROOT, tree, dirs_exist_ok=True, ignore=shutil.ignore_patterns("build", ".git"))
    table = os.path.join(tree, "include", "weber", "ops.def")
    lines = re.sub(r"\n {9,}", " ", open(table).read()).split("\n")  # a row is one line
    subprocess.check_call(["cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DWEBER_BENCH=OFF",
                           "-DWEBER_EXAMPLES=OFF"], stdout=subprocess.DEVNULL)
    print("# Mutations\n\nEach elementwise row of `include/weber/ops.def` broken in each of its parts, and the tests of the row that "
          "noticed. Written by\n`tests/mutate.py`.\n")
    print("| row | broken | noticed by |\n|---|---|---|")
    unnoticed = 0
    for group in BUILDS:
        broken, what_broke = break_rows(lines, group)
        with open(table, "w") as out:
            out.write("\n".join(broken))
        targets = ["tests-" + t.replace("/", "-") for t in TESTS]
        made = subprocess.run(["ninja", "-j2", "-C", build] + targets, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if made.returncode != 0:
            sys.exit(made.stdout.decode(errors="replace")[-3000:])
        failed = [row for test in TESTS for row in failures(build, test)]
        for name, what in what_broke:
            own = ["the derivative of %s agrees" % name] if what != "value" else ["%s " % name]
            if name in ("not", "and", "or"):
                own = ["logic"]
            noticed = [row for row in failed if any(row.startswith(o) for o in own)]
            expected = NOT_RUN.get(name) if what == "value" else None
            unnoticed += not noticed and not expected
            print("| %s | %s | %s |" % (name, what, ", ".join(noticed) or expected or "**nobody**"), flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
