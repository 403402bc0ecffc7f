#!/usr/bin/env python3
"""scale.py: the cost model of docs/scale.md: writes its tables there, between the lines <!-- tables --> and <!-- end -->, and
docs/scale.svg. scale.py --check: both are as this script writes them."""
import math
import os
import sys

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
MIB = 1 << 20

# ---- what is assumed of a cluster: not measured here ----
ALPHA, BETA = 5e-6, 1 / 12.5e9  # a message, a byte: 100 Gbit/s for each rank
INSIDE_ALPHA, INSIDE_BETA, NODE = 2e-6, 1 / 200e9, 8  # within a machine of 8 devices
RATE = 120e12  # products and sums a second of a device, as training gets them
TOKENS = 16 * 1024  # of a rank in a step
JITTER = 0.03  # of a step's computation, standard deviation
RANKS = [8, 64, 256, 1000]
MODELS = {"GPT-2 124M": 124.4e6, "GPT-2 1.5B": 1557.6e6}
MPI_PIECE = 4 * MIB


# ---- an all-reduce of s bytes over n ranks: a + c s ----

def exchange(n):  # the canonical exchange, and a ring
    return 2 * (n - 1) * ALPHA, 2 * (n - 1) / n * BETA


def halving(n):
    return 2 * math.ceil(math.log2(n)) * ALPHA, 2 * (n - 1) / n * BETA


def nodes(n):  # reduce-scatter and all-gather inside, halving of an eighth between
    machines = max(1, n // NODE)
    a, c = (2 * math.ceil(math.log2(machines)) * ALPHA, 2 * (machines - 1) / machines * BETA / NODE) if machines > 1 else (0, 0)
    return a + 2 * (NODE - 1) * INSIDE_ALPHA, c + 2 * (NODE - 1) / NODE * INSIDE_BETA


def pieces(n, s):  # Weber's over MPI: an exchange for each 4 MiB
    a, c = exchange(n)
    return math.ceil(s / MPI_PIECE) * a + c * s


def bucket(s, a, c, backward):
    best = s * a / (backward - s * c) if s * c < backward else s * math.sqrt(a / backward)
    return min(s, max(MIB, best))


def largest_of(n):  # mean of the maximum of n normal numbers, in standard deviations (Blom 1958)
    p = (n - 0.375) / (n + 0.25)
    t = math.sqrt(-2 * math.log(1 - p))
    return t - (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t * t)


def step(parameters, n, cost, size=None):
    """Seconds of a step, and of its computation alone."""
    s = 4 * parameters
    compute = 6 * parameters * TOKENS / RATE
    forward, backward = compute / 3, compute * 2 / 3
    a, c = cost(n)
    b = size or bucket(s, a, c, backward)
    k = math.ceil(s / b)
    sums = max(backward + a + c * b, k * a + s * c + backward * b / s)
    return forward + sums + JITTER * compute * largest_of(n), compute


# ---- texts ----

def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(x) for x in row) + " |" for row in rows]) + "\n"


def reductions():
    rows = []
    for name, p in MODELS.items():
        for n in RANKS:
            s = 4 * p
            times = [a + c * s for a, c in (f(n) for f in (exchange, halving, nodes))] + [pieces(n, s)]
            rows.append([name, n] + [f"{1e3 * t:,.0f}" for t in times])
    return table(["model", "ranks", "ring", "halving", "machines of 8", "Weber over MPI"], rows)


def efficiencies():
    rows = []
    for name, p in MODELS.items():
        for n in RANKS:
            row = [name, n]
            for cost in (exchange, halving, nodes):
                t, compute = step(p, n, cost)
                row.append(f"{100 * compute / t:.0f} %")
            t, compute = step(p, n, exchange, 25 * MIB)
            rows.append(row + [f"{100 * compute / t:.0f} %"])
    return table(["model", "ranks", "ring", "halving", "machines of 8", "ring, buckets of 25 MiB"], rows)


def buckets():
    rows = []
    for name, p in MODELS.items():
        compute = 6 * p * TOKENS / RATE
        for n in RANKS:
            sizes = [bucket(4 * p, *cost(n), compute * 2 / 3) / MIB for cost in (exchange, halving, nodes)]
            rows.append([name, n] + [f"{x:,.0f}" for x in sizes])
    return table(["model", "ranks", "ring", "halving", "machines of 8"], rows)


def intervals():
    rows = []
    for n in RANKS:
        machines = max(1, n // NODE)
        mean = 5 * 365 * 24 * 3600 / machines
        rows.append([n, machines, f"{mean / 3600:,.0f} h"] + [f"{math.sqrt(2 * d * mean) / 60:,.0f} min" for d in (5, 30, 120)])
    return table(["ranks", "machines", "one fails each", "5 s", "30 s", "120 s"], rows)


def tables():
    return "\n".join([
        "Milliseconds of one all-reduce of all gradients (f32):\n", reductions(),
        "Part of the ideal speed, with the bucket size of the formula, and at last with buckets of 25 MiB:\n", efficiencies(),
        "Bucket sizes of the formula, MiB:\n", buckets(),
        "Time between checkpoints (Young 1974) that cost so many seconds, for machines that fail every five years:\n", intervals()])


# ---- the figure ----

COLOURS = {"ring": "#c0392b", "halving": "#2471a3", "machines of 8": "#1e8449"}


def figure():
    wide, high, left, top = 640, 360, 60, 30
    counts = [2 ** k for k in range(3, 11)]

    def place(n, part):
        return left + (math.log2(n) - 3) / 7 * (wide - left - 150), top + (1 - part) * (high - top - 50)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">',
           f'<rect width="{wide}" height="{high}" fill="white"/>',
           '<text x="60" y="18">GPT-2 124M: part of the ideal speed, by the model</text>']
    for part in (0, 0.25, 0.5, 0.75, 1):
        x, y = place(8, part)
        out.append(f'<line x1="{x}" y1="{y:.1f}" x2="{wide - 150}" y2="{y:.1f}" stroke="#ddd"/><text x="{x - 40}" y="{y + 4:.1f}">{100 * part:.0f} %</text>')
    for n in counts:
        x, y = place(n, 0)
        out.append(f'<text x="{x - 8:.1f}" y="{y + 18:.1f}">{n}</text>')
    out.append(f'<text x="{wide / 2 - 90}" y="{high - 8}">ranks</text>')
    for (name, colour), cost in zip(COLOURS.items(), (exchange, halving, nodes)):
        points = []
        for n in counts:
            t, compute = step(MODELS["GPT-2 124M"], n, cost)
            points.append(place(n, compute / t))
        out.append('<polyline fill="none" stroke-width="2" stroke="%s" points="%s"/>' % (colour, " ".join(f"{x:.1f},{y:.1f}" for x, y in points)))
        out.append(f'<text x="{points[-1][0] + 6:.1f}" y="{points[-1][1] + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    page, picture = os.path.join(DOCS, "scale.md"), os.path.join(DOCS, "scale.svg")
    text = open(page).read()
    head, rest = text.split("<!-- tables -->\n")
    tail = rest.split("<!-- end -->\n")[1]
    wanted = {page: head + "<!-- tables -->\n" + tables() + "<!-- end -->\n" + tail, picture: figure()}
    if sys.argv[1:] == ["--check"]:
        wrong = [p for p, t in wanted.items() if not os.path.exists(p) or open(p).read() != t]
        for p in wrong:
            print(f"scale: {p} is not what bench/ranks/scale.py writes")
        sys.exit(bool(wrong))
    for p, t in wanted.items():
        open(p, "w").write(t)


if __name__ == "__main__":
    main()
