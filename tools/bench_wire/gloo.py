#!/usr/bin/env python3
"""Gloo's all-reduce, the yardstick of an exchange: one rank a process.

gloo.py RANK RANKS STORE INTERFACE BYTES REPEATS

Sums BYTES of float32 over all ranks, REPEATS times after once that does not count. Ranks meet at a TCP store on
host STORE, rank 0's. Rank 0 prints the seconds of each, the slowest rank's.
"""
import os
import sys
import time

rank, ranks, store, interface, size, repeats = sys.argv[1:]
os.environ["GLOO_SOCKET_IFNAME"] = interface

import torch  # noqa: E402  # After the environment that it reads.
import torch.distributed as distributed  # noqa: E402

torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method=f"tcp://{store}:7311", rank=int(rank), world_size=int(ranks))
values = torch.empty(int(size) // 4)
times = []
for step in range(int(repeats) + 1):
    values.fill_(1)
    distributed.barrier()
    begin = time.perf_counter()
    distributed.all_reduce(values)
    slowest = torch.tensor([time.perf_counter() - begin], dtype=torch.float64)
    assert values[0] == int(ranks) and values[-1] == int(ranks)
    distributed.all_reduce(slowest, distributed.ReduceOp.MAX)
    if step > 0:
        times.append(slowest.item())
if rank == "0":
    print(*(f"{seconds:.6f}" for seconds in times))
distributed.destroy_process_group()
