#!/usr/bin/env python3
"""tests/bench/transformer_values.py >tests/bench/transformer_values.h: what torch says of bench/transformer.h's model in f64.

Losses of STEPS steps of AdamW, and, for the first, each parameter's gradient projected on the numbers 2 u - 1 of sequence 5000 + its
place (bench_uniform in torch's memory order), so that one wrong or misplaced element shows."""
import sys
from pathlib import Path

import torch

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import peer_torch

SIZES, STEPS, PROJECTION = "2,16,2,8,11,2,f64", 3, 5000
PARTS = ("norm1.gain", "norm1.bias", "qkv.weight", "qkv.bias", "out.weight", "out.bias", "norm2.gain", "norm2.bias", "up.weight", "up.bias",
         "down.weight", "down.bias")


def parameters(model):
    """Weber's path and torch's parameter, in Weber's order."""
    yield "token", model.token
    yield "place", model.place
    for number, block in enumerate(model.blocks, 1):
        for part in PARTS:
            layer, _, name = part.partition(".")
            yield f"blocks.layers.{number}.{part}", getattr(getattr(block, layer), "weight" if name == "gain" else name)
    yield "norm.gain", model.norm.weight
    yield "norm.bias", model.norm.bias


def main():
    peer_torch.OPTIONS.transformer = SIZES
    training = peer_torch.Training("e", "eager")
    losses = []
    for step in range(STEPS):
        training.step()
        losses.append(training.loss.item())
        if step == 0:
            rows = [(path, (p.grad.flatten() * (2 * peer_torch.uniform(PROJECTION + k, p.numel()).double() - 1)).sum().item())
                    for k, (path, p) in enumerate(parameters(training.model))]
    print(f"/* Written by transformer_values.py with torch {torch.__version__}, f64. */")
    print(f'#define SIZES "{SIZES.rpartition(",")[0]}"')
    print(f"enum {{ STEPS = {STEPS}, PROJECTION = {PROJECTION} }};\n")
    print("static const double losses[STEPS] = {" + ", ".join(f"{loss:.17g}" for loss in losses) + "};\n")
    print("/* Of each parameter's gradient in the first step. */")
    print("static const struct {\n    const char *path;\n    double projection;\n} gradients_of_torch[] = {")
    print("\n".join(f'    {{"{path}", {value:.17g}}},' for path, value in rows))
    print("};")


if __name__ == "__main__":
    main()
