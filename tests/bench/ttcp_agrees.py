#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does `affinityctl measure models` measure what a plain ttcp does? The model none, beside plain_ttcp, which shares no code with it, on veth pairs
of the same making: each kind of work in turns, a batch of the one and a batch of the other, in an order that changes. Prints both means with
their 95 % intervals, and whether the intervals of their ratio hold 1. Needs root and minutes.

    tests/bench/ttcp_agrees.py BUILD [--batches 6] [--seconds 1]
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

ROUNDS = 4  # of a batch
STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)  # 1 to 15 degrees
KINDS = (("receive", 65536, "Gbit/s"), ("transmit", 65536, "Gbit/s"), ("receive", 128, "Gbit/s"), ("answer", 1, "requests/s"),
         ("answer", 1, "us, median latency"))


def ours(build, work, size, options):
    """Figures of each round: throughput in Gbit/s, or (requests per second, median in us)."""
    where = ["--rr", str(size)] if work == "answer" else ["--length", str(size)]
    command = [build / "tools/affinityctl/affinityctl", "--json", "measure", "models", "--models", "none,none", "--rounds", str(ROUNDS // 2),
               "--no-history", "--connections", str(options.connections), "--seconds", str(options.seconds), "--direction", work, *where]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout)
    samples = [sample for model in report["models"] for sample in model["samples"]]
    if work == "answer":
        return [(each["exchanges"] / each["seconds"], each["p50_seconds"] * 1e6) for each in samples]
    return [(each["bits_per_second"] / 1e9,) for each in samples]


def plain(build, work, size, options):
    """Warms up in short rounds, as ours does."""
    command = [build / "tests/bench/plain_ttcp", work, str(options.connections), str(options.seconds), str(size), "131072", str(ROUNDS)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [tuple(float(word) for word in line.split()) for line in lines]


def interval(values):
    """Geometric mean of batches with its 95 % interval by Student's t, since rounds of a batch are alike and batches are few."""
    logs = [math.log(value) for value in values]
    half = STUDENT[len(logs) - 2] * statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.fmean(logs)
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def text(figures):
    return "{:.4g} ({:.4g} to {:.4g})".format(*figures)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--batches", type=int, default=6, choices=range(2, 17), metavar="2..16")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--work", choices=("receive", "transmit", "answer"), help="only this")
    options = parser.parse_args()
    measured = {}
    agree = True
    for work, size, unit in KINDS:
        if options.work not in (None, work):
            continue
        if (work, size) not in measured:
            pairs = []
            for batch in range(options.batches):
                both = {}
                for who in (ours, plain) if batch % 2 == 0 else (plain, ours):
                    both[who] = who(options.build, work, size, options)
                pairs.append((both[ours], both[plain]))
            measured[work, size] = pairs
        at = 1 if "latency" in unit else 0
        pairs = [([values[at] for values in one], [values[at] for values in other]) for one, other in measured[work, size]]
        means = [(statistics.fmean(one), statistics.fmean(other)) for one, other in pairs]
        ratio = interval([one / other for one, other in means])
        holds = ratio[1] <= 1 <= ratio[2]
        agree = agree and holds
        print(f"measured: {work} {size} B, {unit}: measure models {text(interval([one for one, _ in means]))}, "
              f"plain {text(interval([other for _, other in means]))}, ratio {text(ratio)}: {'agree' if holds else 'DIFFER'}", flush=True)
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
