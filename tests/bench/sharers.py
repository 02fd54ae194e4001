#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well `affinityctl sharers` finds who talks to whom, and what it costs the program that is watched. Needs root.

    tests/bench/sharers.py build find [--runs 100] [--seconds 1]
        Programs of known structure (tests/blackbox/sharing_threads.cpp), watched anew each time: four pairs that talk through futexes,
        pipes, sockets and a shared counter, with eventfds and loopback TCP as a fifth and sixth; and sixteen threads that have nothing to do
        with each other. The exit code is 1 if the pairs are found in fewer than 95 of 100 runs, or one is invented in any.
    tests/bench/sharers.py build cost [--rounds 40] [--seconds 1] [--work US] [--nothing | --other]
        Rounds that the four pairs play, with and without the command, in turn, while the program runs on: per second, which other load
        disturbs, and per second of CPU time that the program used. Prints the median of the ratios with its 95 % interval; the exit code is 1
        if the second one is below 0.98. The program has one CPU, since on several it decides more than anything else who runs where.
        --work: who has the turn computes for so many microseconds first, as programs do. --nothing: a program that does nothing instead of
        the command: how far chance goes. --other: another program is watched.
"""
import argparse
import contextlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

from locality_cost import CPUS, cpu_time, end, interval, wait_until_it_counts

KINDS = ("futex", "pipe", "socket", "counter")
MORE_KINDS = (*KINDS, "event", "tcp")
LEAST_FOUND, LEAST_LEFT = 0.95, 0.98


@contextlib.contextmanager
def program(build, *words, way=()):
    started = subprocess.Popen([*way, build / "tests/blackbox/sharing-threads", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if started.stdout.readline() != "ready\n":
            raise SystemExit("the program did not begin")
        yield started.pid
    finally:
        end(started)


def sharers(build, pid, seconds):
    done = subprocess.run([build / "tools/affinityctl/affinityctl", "sharers", str(pid), "--for", f"{int(seconds * 1000)}ms", "--json"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def pairs_in(answer):
    names = {(thread["tid"], thread["start_time"]): thread["name"] for thread in answer["threads"]}
    return {(names[pair["one"], pair["one_start_time"]], names[pair["other"], pair["other_start_time"]])
            for pair in answer["pairs"] if pair["sharers"]}


def find(options):
    wanted = {(f"{kind}-a", f"{kind}-b") for kind in MORE_KINDS}
    found = invented = 0
    for run in range(options.runs):
        with program(options.build, "--pause", str((0, 100, 1000, 5000)[run % 4]), *MORE_KINDS) as pid:
            pairs = pairs_in(sharers(options.build, pid, options.seconds))
        found += pairs == wanted
        if pairs != wanted:
            print(f"run {run}: missed {wanted - pairs}, invented {pairs - wanted}")
        with program(options.build, "independent") as pid:
            pairs = pairs_in(sharers(options.build, pid, options.seconds))
        invented += len(pairs)
        if pairs:
            print(f"run {run}: invented {pairs}")
        print(f"{run + 1} runs: all pairs and no other in {found}; {invented} invented among independent threads", flush=True)
    return found < LEAST_FOUND * options.runs or invented > 0


def window(options, pid, counter, watches):
    """Rounds per second, and per second of the program's CPU time."""
    with contextlib.ExitStack() as stack:
        if watches:
            words = [options.build / "tools/affinityctl/affinityctl", "sharers", str(os.getpid() if options.other else pid), "--for", "1h", "--json"]
            watching = subprocess.Popen(["sleep", "3600"] if options.nothing else [str(word) for word in words], stdout=subprocess.DEVNULL)
            stack.callback(end, watching)
            wait_until_it_counts(watching.pid, options.nothing)
        time.sleep(0.5)  # both ways
        tasks = [entry.name for entry in pathlib.Path(f"/proc/{pid}/task").iterdir()]
        used = lambda: cpu_time([f"{pid}/task/{task}" for task in tasks])
        rounds = lambda: struct.unpack("q", counter.read_bytes())[0]
        before, begin, began_with = rounds(), time.monotonic(), used()
        time.sleep(options.seconds)
        count, busy = rounds() - before, used() - began_with
        if count == 0 or busy == 0:  # a stalled machine says nothing
            return window(options, pid, counter, watches)
        return count / (time.monotonic() - begin), count / busy


def cost(options):
    found = ([], [])
    with tempfile.TemporaryDirectory(prefix="affinityd-sharers-") as folder:
        counter = pathlib.Path(folder, "rounds")
        way = ("taskset", "-c", str(CPUS[-1]))
        with program(options.build, "--count", str(counter), "--work", str(options.work), *KINDS, way=way) as pid:
            for number in range(options.rounds):
                rates = {watches: window(options, pid, counter, watches) for watches in ((False, True) if number % 2 == 0 else (True, False))}
                for ratios, with_it, without in zip(found, rates[True], rates[False], strict=True):
                    ratios.append(with_it / without)
                print(f"round {number + 1}: {rates[False][0]:.0f} turns a second without, {rates[True][0]:.0f} with; "
                      f"of equal CPU time {found[1][-1]:.3f}", flush=True)
    for name, ratios in (("turns per second", found[0]), ("turns per second of CPU time", found[1])):
        ratio, low, high = interval(ratios)
        print(f"{name}, with affinityctl sharers against without: {ratio:.3f} ({low:.3f} to {high:.3f})")
    return interval(found[1])[0] < LEAST_LEFT


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("what", choices=("find", "cost"))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=40, help="pairs of rounds, 2 or more")
    parser.add_argument("--seconds", type=float, default=1, help="of each run or round")
    parser.add_argument("--work", type=int, default=0, help="microseconds")
    parser.add_argument("--nothing", action="store_true")
    parser.add_argument("--other", action="store_true")
    options = parser.parse_args()
    options.build = options.build.resolve()
    return {"find": find, "cost": cost}[options.what](options)


if __name__ == "__main__":
    sys.exit(main())
