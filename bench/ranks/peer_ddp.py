#!/usr/bin/env python3
"""peer_ddp.py CASE: observations per second of case c or d (bench/cases.h) under torch's DistributedDataParallel, gloo; two processes
of one thread each."""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import peer_torch

RANKS, WARM, ROUNDS = 2, 5, 30


def adam_of(model):
    try:
        return torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    except RuntimeError:  # before 2.4: for GPUs alone
        return torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)


def rank(number, case):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=number, world_size=RANKS)
    model = DistributedDataParallel(peer_torch.model_of(case))
    adam = adam_of(model)
    inputs = [peer_torch.input_of(case, k) for k in range(peer_torch.BENCH_INPUTS)]
    times = []
    for k in range(WARM + ROUNDS):
        x, y = inputs[k % len(inputs)]
        dist.barrier()
        begin = time.perf_counter()
        adam.zero_grad()
        F.cross_entropy(model(x), y).backward()
        adam.step()
        times.append(time.perf_counter() - begin)
    seconds = statistics.median(times[WARM:])
    if number == 0:
        print(f"case {case}: torch {torch.__version__} DDP, {RANKS} ranks, {1e3 * seconds:.2f} ms, {RANKS * len(y) / seconds:.0f} observations/s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(rank, args=(sys.argv[1],), nprocs=RANKS)
