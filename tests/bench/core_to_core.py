#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: core_to_core.py BUILD [A,B] [ROUNDS]: `affinityctl measure latency` beside a plain loop that shares no code with it
(core_to_core.cpp), in turns; the median of one divided by the other in the same round, for both ways to pass the line on. Exits with
1 where they differ by more than 10 %. In each round, since the CPUs of a virtual machine are far from each other at one time and close
at another. On a busy machine, more rounds tell more."""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile


def ours(build, pair, means, folder):
    done = subprocess.run([f"{build}/tools/affinityctl/affinityctl", "measure", "latency", "--cpus", ",".join(pair), "--pairs", "all", "--means", means,
                           "--state-dir", folder, "--json"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    return document["median"][1][0], document["ns"][1][0]


def plain(build, pair, means):
    done = subprocess.run([f"{build}/tests/bench/core-to-core", *pair, means], capture_output=True, text=True, check=True)
    return tuple(float(value) for value in re.match(r"median ([\d.]+) ns, harmonic mean ([\d.]+) ns", done.stdout).groups())


def main():
    build = sys.argv[1]
    pair = sys.argv[2].split(",") if len(sys.argv) > 2 else [str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2]]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 25
    agree = True
    with tempfile.TemporaryDirectory() as folder:
        for means in ("cas", "store"):
            figures = {"affinityctl": [], "plain loop": []}
            for _ in range(rounds):
                figures["affinityctl"].append(ours(build, pair, means, folder))
                figures["plain loop"].append(plain(build, pair, means))
            for name, values in figures.items():
                median = statistics.median(value[0] for value in values)
                low, high = min(value[0] for value in values), max(value[0] for value in values)
                print(f"{means:5} CPUs {pair[0]} and {pair[1]}, {name:11}: median {median:.2f} ns (rounds {low:.2f} to {high:.2f}), "
                      f"harmonic mean {statistics.median(value[1] for value in values):.2f} ns")
            ratios = sorted(mine[0] / its[0] for mine, its in zip(*figures.values()))
            change = statistics.median(ratios) - 1
            agree = agree and abs(change) <= 0.1
            print(f"{means:5} differ by {100 * change:+.1f} % (rounds {100 * (ratios[0] - 1):+.1f} to {100 * (ratios[-1] - 1):+.1f})")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
