#!/usr/bin/env python3
"""Breaks what tests should notice, in a copy of the tree, and writes who noticed into docs/mutations.md.

    tests/mutate.py FOLDER        all
    tests/mutate.py FOLDER rows   every elementwise row of ops.def
    tests/mutate.py FOLDER list   the fixed list of tests/mutants.py
    tests/mutate.py FOLDER list WORD  those of the list whose name has WORD; printed, not written

FOLDER gets the copy and its build (debug, two jobs, through ccache if it is there), for this run and the next.

A row is broken in its value, in its derivative and, if it has two inputs, in that by the second. Each build breaks one
thing in many rows at once: those whose tests do not meet, so that what a test notices is its own row. Of the list each
mutant is built by itself, with the programs that are named there alone. Exits with 1 if something went unnoticed.
"""
import filecmp
import os
import re
import shutil
import subprocess
import sys

from mutants import MUTANTS

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
    """The tests of a program that failed, and whether it ended as it should."""
    try:
        done = subprocess.run([os.path.join(build, "tests", test)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    except subprocess.TimeoutExpired:
        return ["does not end"], False
    text = done.stdout.decode(errors="replace")
    failed = sorted(set(re.findall(r"\[  (?:FAILED |ERROR  )\s*\] (?!---|\d+ test)(?:ops/\S+: |gradient/\S+: )?(.*)", text)))
    return failed, done.returncode == 0


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


def make(build, tests):
    targets = ["tests-" + t.replace("/", "-") for t in tests]
    made = subprocess.run(["ninja", "-j2", "-C", build] + targets, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode != 0:
        sys.exit(made.stdout.decode(errors="replace")[-3000:])


def put(path, text):
    with open(path, "w") as out:
        out.write(text)


def copy_tree(folder):
    """The tree without what was built. Files that are there already and equal stay, so that the build goes on; those that
    a run before left broken are written again."""
    tree, build = os.path.join(folder, "tree"), os.path.join(folder, "build")
    listed_files = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT).decode().split("\n")
    files = {f for f in listed_files if os.path.isfile(os.path.join(ROOT, f))}
    for file in files:
        name, to = os.path.join(ROOT, file), os.path.join(tree, file)
        if not os.path.exists(to) or not filecmp.cmp(name, to, shallow=False):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(name, to)
    for path, _, names in os.walk(tree):
        for name in names:
            if os.path.relpath(os.path.join(path, name), tree) not in files:
                os.remove(os.path.join(path, name))
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    subprocess.check_call(["cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DWEBER_BENCH=OFF",
                           "-DWEBER_EXAMPLES=OFF"] + launcher, stdout=subprocess.DEVNULL)
    return tree, build


def rows(tree, build):
    """The table of the rows of ops.def, and how many went unnoticed."""
    table = os.path.join(tree, "include", "weber", "ops.def")
    original = open(table).read()
    lines = re.sub(r"\n {9,}", " ", original).split("\n")  # a row is one line
    out, unnoticed = ["| row | broken | noticed by |", "|---|---|---|"], 0
    for group in BUILDS:
        broken, what_broke = break_rows(lines, group)
        put(table, "\n".join(broken))
        make(build, TESTS)
        failed = [row for test in TESTS for row in failures(build, test)[0]]
        for name, what in what_broke:
            own = ["the derivative of %s agrees" % name] if what != "value" else ["%s " % name]
            if name in ("not", "and", "or"):
                own = ["logic"]
            noticed = [row for row in failed if any(row.startswith(o) for o in own)]
            expected = NOT_RUN.get(name) if what == "value" else None
            unnoticed += not noticed and not expected
            out.append("| %s | %s | %s |" % (name, what, ", ".join(noticed) or expected or "**nobody**"))
    put(table, original)
    return out, unnoticed


def who_noticed(build, programs):
    """Of each program that failed its first test that did, and how many more."""
    noticed = []
    for program in programs:
        failed, is_good = failures(build, program)
        if not is_good:
            more = " and %d more" % (len(failed) - 1) if len(failed) > 1 else ""
            noticed.append("%s: %s%s" % (program, failed[0] if failed else "it crashed", more))
    return noticed


def listed(tree, build, word=""):
    """The table of the list, and how many mutants lived."""
    out, lived = ["| mutant | file | noticed by |", "|---|---|---|"], 0
    chosen = [m for m in MUTANTS if word in m[0]]
    sources = {file: open(os.path.join(tree, file)).read() for _, file, _, _, _ in MUTANTS}
    for name, file, old, _, _ in MUTANTS:
        if sources[file].count(old) != 1:
            sys.exit("mutants.py: %s: the text stands %d times in %s" % (name, sources[file].count(old), file))
    programs = sorted({p for m in chosen for p in m[4].split()})
    make(build, programs)
    for program in programs:
        if not failures(build, program)[1]:
            sys.exit("%s fails though nothing is broken" % program)
    for name, file, old, new, programs in chosen:
        put(os.path.join(tree, file), sources[file].replace(old, new))
        make(build, programs.split())
        noticed = who_noticed(build, programs.split())
        put(os.path.join(tree, file), sources[file])
        lived += not noticed
        out.append("| %s | %s | %s |" % (name, file, "; ".join(noticed) or "**nobody**"))
        print(out[-1], flush=True)
    return out, lived


SECTIONS = [("rows", "Rows of ops.def",
             "Each elementwise row of `include/weber/ops.def` broken in each of its parts, and the tests of the row that "
             "noticed."),
            ("list", "Elsewhere",
             "The fixed list of `tests/mutants.py`: of each program that noticed, the first test that failed.")]


def write(tables):
    """Puts the tables into the page; a section that is not made again stays."""
    path = os.path.join(ROOT, "docs", "mutations.md")
    before = re.split(r"^## (.*)\n", open(path).read(), flags=re.M)
    parts = dict(zip(before[1::2], before[2::2]))
    page = "# Mutations\n\nWhat was broken on purpose, and which tests noticed.\nWritten by `tests/mutate.py`.\n"
    for key, heading, words in SECTIONS:
        body = "\n%s\n\n%s\n" % (words, "\n".join(tables[key])) if key in tables else parts.get(heading, "").rstrip("\n") + "\n"
        page += "\n## %s\n%s" % (heading, body)
    put(path, page)


def main():
    what = sys.argv[2:] or ["rows", "list"]
    tree, build = copy_tree(sys.argv[1])
    tables, lived = {}, 0
    if "rows" in what:
        tables["rows"], lived = rows(tree, build)
    if "list" in what:
        word = what[1] if what[0] == "list" and len(what) > 1 else ""
        tables["list"], more = listed(tree, build, word)
        lived += more
        if word:
            return 1 if lived else 0
    write(tables)
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main())
