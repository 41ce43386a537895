#!/usr/bin/env python3
"""Gloo's all-reduce, the yardstick of an exchange. A process is one rank.

gloo.py RANK RANKS STORE INTERFACE BYTES REPEATS

Sums BYTES of float32 over all ranks in two ways. In the first, each of REPEATS sums begins at a barrier, after one that
does not count. In the second, each begins where the one before ends, as a training's steps do, after SETTLING that do
not count. Ranks meet at rank 0's TCP store, on host STORE. Rank 0 prints a line of seconds for each way: in the first
line the slowest rank's, in the second its own.
"""
import os
import sys
import time

rank, ranks, size, repeats = (int(sys.argv[index]) for index in (1, 2, 5, 6))
store, interface = sys.argv[3:5]
os.environ["GLOO_SOCKET_IFNAME"] = interface

import torch  # noqa: E402  # It reads the environment that was just set.
import torch.distributed as distributed  # noqa: E402

SETTLING = 4

torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method=f"tcp://{store}:7311", rank=rank, world_size=ranks)
values = torch.empty(size // 4)


def from_barriers():
    for step in range(repeats + 1):
        values.fill_(1)
        distributed.barrier()
        begin = time.perf_counter()
        distributed.all_reduce(values)
        slowest = torch.tensor([time.perf_counter() - begin], dtype=torch.float64)
        assert values[0] == ranks and values[-1] == ranks
        distributed.all_reduce(slowest, distributed.ReduceOp.MAX)
        if step > 0:
            yield slowest.item()


def in_a_row():
    values.fill_(0)  # Zeros, so that the sums do not grow.
    distributed.barrier()
    before = time.perf_counter()
    for step in range(SETTLING + repeats):
        distributed.all_reduce(values)
        now = time.perf_counter()
        if step >= SETTLING:
            yield now - before
        before = now


for seconds in (list(from_barriers()), list(in_a_row())):
    if rank == 0:
        print(*(f"{each:.6f}" for each in seconds))
distributed.destroy_process_group()
