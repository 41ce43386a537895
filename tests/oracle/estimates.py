#!/usr/bin/env python3
"""Computes the equations of the thesis's chapter 4 once more, in exact fractions. It writes
estimates.json, with which tests/tools/estimate_test.cpp compares duplex estimate.

Usage: estimates.py > estimates.json"""
import json
from fractions import Fraction as F

# Table 6.1 gives t_grad and t_comm, in seconds.
NETWORKS = {"VGG16E": ("0.719", "5.153"), "GoogLeNet": ("0.763", "0.210"), "SqueezeNet": ("0.758", "0.033"),
            "Resnet34": ("0.821", "0.811")}
D = 128


def central(way, n, c, g):
    """Returns the time of D batches on n workers with a central server, in seconds: best case and worst."""
    if way == "async":
        return (max((D + 1) * c + g, (n - 1) * c + F(D, n) * (2 * c + g)),  # (4.13)-(4.15)
                F(D, n) * (2 * n * c + g))  # (4.16)
    iterations, own = (F(D, n), g) if way == "sync-join" else (F(D), g / n)
    return iterations * ((n + 1) * c + own), iterations * (2 * n * c + own)  # (4.4), (4.7)


def seconds(way, server, n, c, g):
    """Returns the estimated time of D batches on n workers, in seconds."""
    if server == "central":
        return sum(central(way, n, c, g)) / 2  # (4.11), (4.20)
    if way == "async":
        return F(D, n) * (2 * c * F(n - 1, n) + g)  # (4.21)
    iterations, own = (F(D, n), g) if way == "sync-join" else (F(D), g / n)
    return iterations * (2 * c * F(n - 1, n) + own)  # (4.12)


def main():
    records = []
    for network, (grad, comm) in NETWORKS.items():
        for way in ("sync-join", "sync-split", "async"):
            for server in ("central", "distributed"):
                g, c = F(grad), F(comm)
                speedups = [float(D * g / seconds(way, server, n, c, g)) for n in range(1, 9)]  # (4.23)
                record = {"network": network, "t_grad": float(g), "t_comm": float(c), "type": way,
                          "server": server, "batches": D, "speedups": speedups}
                if server == "central":  # (4.10), (4.19)
                    for case, name in ((0, "best"), (1, "worst")):
                        record[name] = [float(D * g / central(way, n, c, g)[case]) for n in range(1, 9)]
                records.append(record)
    print("[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]")


if __name__ == "__main__":
    main()
