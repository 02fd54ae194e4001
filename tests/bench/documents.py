#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: documents.py BUILD [sharing|smt|cache ...] [--turns N]: `affinityctl measure sharing`, `smt` and `cache` beside straightforward
versions of the documents' own programs that share no code with them (shared_lines.cpp, hardware_threads.cpp, lost_cache.cpp), in turns.
For each figure both means over the turns with 95 % intervals (Student's t); they agree where the difference by turn has zero in its
interval, or is below 3 % of the figure (of `cache`, whose figures are percentages themselves: below 3 of them). Exits with 1 where any
does not, or where affinityctl refuses (`cache` where neither the kernel nor the C library knows the caches). N is 4 at least, 10 by default, and a turn takes some 15 s. A quiet machine tells more."""
import json
import math
import statistics
import subprocess
import sys
import tempfile

T95 = {3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 9: 2.262, 11: 2.201, 14: 2.145, 19: 2.093}

LEAST_TURNS = min(T95) + 1


def interval(values):
    mean = statistics.fmean(values)
    degrees = len(values) - 1
    t = T95[max(key for key in T95 if key <= degrees)]
    return mean, t * statistics.stdev(values) / math.sqrt(len(values))


class Refused(Exception):
    pass


def ours(build, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([f"{build}/tools/affinityctl/affinityctl", "measure", *arguments, "--json", "--state-dir", folder],
                              capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"affinityctl ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def plain(build, name, *arguments):
    done = subprocess.run([f"{build}/tests/bench/{name}", *(str(argument) for argument in arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"{name} ended with {done.returncode}: {done.stderr.strip()}")
    return [[float(value) for value in line.split()] for line in done.stdout.splitlines()]


def mean_of(lines):
    return statistics.fmean(value for line in lines for value in line)


def sharing(build):
    document = ours(build, "sharing", "--rounds", "20")
    placings = {one["placing"]: one for one in document["placings"]}
    cpus = placings["pairs"]["threads"][:2]
    return {"ms, left to the scheduler": (placings["scheduler"]["ms"]["estimate"], mean_of(plain(build, "shared-lines", 20))),
            "ms, pinned pairs": (placings["pairs"]["ms"]["estimate"], mean_of(plain(build, "shared-lines", 20, *cpus))),
            "ms, false sharing": (placings["false_sharing"]["ms"]["estimate"], mean_of(plain(build, "shared-lines", 20, *cpus, "one-line")))}


def smt(build):
    numbers = 1 << 20
    document = ours(build, "smt", "--rounds", "10", "--numbers", str(numbers))
    figures = {}
    for one in document["companies"]:
        cpus = one["cpus"][:1] if one["company"] == "alone" else one["cpus"]
        figures[f"ms, {one['load']} {one['company']}"] = (one["ms"]["estimate"],
                                                          mean_of(plain(build, "hardware-threads", one["load"], numbers, 10, *cpus)))
    return figures


def cache(build):
    figures = {}
    probe = ours(build, "cache", "--sizes", "16", "--quanta", "1", "--rounds", "4")
    own, places = probe["own_bytes"] >> 10, probe["places"]
    sizes = [probe["l1d_bytes"] >> 11, own // 2]
    document = ours(build, "cache", "--sizes", ",".join(map(str, sizes)), "--quanta", "2", "--rounds", "12")
    all_lost = document["polluter_bytes"] >> 10
    polluters = {"displaced": (2 * own, []), "emptied": (all_lost, [])}
    for place in ("group", "other_llc", "other_node"):
        if place in places:
            polluters[place] = (2 * own if place == "group" else all_lost, [places[place]])
    for size in sizes:
        kept = mean_of(plain(build, "lost-cache", size, 2, 14, 0, places["kept"]))
        for place, (kib, cpus) in polluters.items():
            cell = next(one for one in document["cells"] if one["place"] == place and one["bytes"] == size << 10)
            lost = mean_of(plain(build, "lost-cache", size, 2, 14, kib, places["kept"], *cpus))
            figures[f"% lost every 2 ms, {size} KiB, {place}"] = (100 * cell["longer_than_kept"]["estimate"], 100 * (lost / kept - 1))
    return figures


def compare(name, turns):
    """Prints all figures of an experiment; whether they agree."""
    assert turns[0] and all(turn.keys() == turns[0].keys() for turn in turns), turns
    agree = True
    for figure in turns[0]:
        pairs = [turn[figure] for turn in turns]
        (mean, half), (other, other_half) = (interval([pair[i] for pair in pairs]) for i in (0, 1))
        change, change_half = interval([pair[0] - pair[1] for pair in pairs])
        small = 3 if figure.startswith("%") else 0.03 * other
        same = abs(change) <= change_half or abs(change) <= small
        agree = agree and same
        print(f"{name:7} {figure:34} affinityctl {mean:7.2f} +- {half:5.2f}, document's program {other:7.2f} +- {other_half:5.2f}, "
              f"difference {change:+6.2f} +- {change_half:5.2f}: {'agree' if same else 'DIFFER'}")
    return agree


def main():
    arguments = sys.argv[1:]
    turns = 10
    if "--turns" in arguments:
        at = arguments.index("--turns")
        turns = int(arguments[at + 1])
        del arguments[at:at + 2]
    figures_of = {"sharing": sharing, "smt": smt, "cache": cache}
    build, names = (arguments or [""])[0], arguments[1:] or list(figures_of)
    if not build or turns < LEAST_TURNS or not set(names) <= set(figures_of):
        sys.exit(__doc__)
    agree = True
    for name in names:
        try:
            agree = compare(name, [figures_of[name](build) for _ in range(turns)]) and agree
        except Refused as error:
            print(f"{name:7} not compared: {error}")
            agree = False
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
