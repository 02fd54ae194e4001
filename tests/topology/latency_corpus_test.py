#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: latency_corpus_test.py AFFINITYCTL FOLDER: `affinityctl measure latency --from` on published measurements of real machines
finds the groups that these machines are known to have (vendors' manuals, and which CPUs share a core, cache or socket as their
operating systems number them), and none on machines of a single group."""
import json
import pathlib
import subprocess
import sys


def listed(cpus):
    cpus, parts = sorted(cpus), []
    for cpu in cpus:
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def blocks(count, size):
    """Neighbours: 0-5, 6-11."""
    return [set(range(first, first + size)) for first in range(0, count, size)]


def with_siblings(groups, away):
    """And the second hardware threads, numbered behind all first ones."""
    return [group | {cpu + away for cpu in group} for group in groups]


def apart(count, away):
    """Siblings i and i + away."""
    return with_siblings(blocks(count, 1), away)


# name: (groups that share a last-level cache, a die or a socket, cores with several hardware threads)
KNOWN = {
    "amd-epyc-7r13-48-core-processor": (with_siblings(blocks(96, 8), 96), apart(96, 96)),
    "amd-ryzen-7-2700x-eight-core-processor": (blocks(16, 8), blocks(16, 2)),
    "amd-ryzen-9-5900x": (blocks(24, 12), blocks(24, 2)),
    "amd-ryzen-threadripper-1950x": (with_siblings(blocks(16, 4), 16), apart(16, 16)),
    "apple-m1-pro": ([{0, 1}, {2, 3, 4}, {5, 6, 7}], None),
    "dual-ibm-power7-8-cores-3-3-ghz-2010-q1": (blocks(16, 8), None),
    "dual-intel-xeon-cpu-e5-2630-v4-2-20ghz": (with_siblings(blocks(20, 10), 20), apart(20, 20)),
    "dual-intel-xeon-cpu-e5-2680-v4-2-40ghz": (with_siblings(blocks(28, 14), 28), apart(28, 28)),
    "dual-intel-xeon-cpu-e5-2690-0-2-90ghz": (with_siblings(blocks(16, 8), 16), apart(16, 16)),
    "dual-intel-xeon-cpu-x5650-2-67ghz": (with_siblings(blocks(12, 6), 12), apart(12, 12)),
    "dual-sun-oracle-sparc-t4-8-cores-2-85-ghz": (blocks(16, 8), None),
    "hisilicon-kunpeng-920-6426-2-6ghz": (blocks(64, 32), None),
    "intel-xeon-cpu-e5-2695-v4-2-10ghz": (with_siblings(blocks(36, 18), 36), apart(36, 36)),
    "intel-xeon-phi-cpu-7210-1-30ghz": (blocks(64, 2), None),
    "intel-xeon-platinum-8275cl-cpu-3-00ghz": (with_siblings(blocks(48, 24), 48), apart(48, 48)),
    "intel-xeon-platinum-8375c-cpu-2-90ghz": (with_siblings(blocks(64, 32), 64), apart(64, 64)),
}
# Machines of one cache and one die: nothing but the hardware threads of a core is nearer than the rest.
SINGLE = {
    "amd-ryzen-7-5700x": apart(8, 8),
    "amd-ryzen-9-5900hx-3-3-ghz": blocks(16, 2),
    "aws-graviton2": None,
    "intel-atom-cpu-d510-1-66ghz": apart(2, 2),
    "intel-core-i5-4590-cpu-3-30ghz": None,
    "intel-core-i7-1165g7-2-80ghz": apart(4, 4),
    "intel-core-i7-6700k": blocks(8, 2),
    "intel-xeon-gold-6242-2-8ghz": apart(16, 16),
    "m1-ultra-16p-4e": None,  # measured without pinning: whatever its cores are, these figures show no groups
}


def levels_of(program, path):
    done = subprocess.run([program, "measure", "latency", "--from", path, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{path}: {done.stderr}")
    return [level["groups"] for level in json.loads(done.stdout)["levels"]]


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    found, missed, single, wrong = 0, [], 0, []
    for path in sorted(folder.glob("*.csv")):
        levels = levels_of(program, path)
        groups, cores = KNOWN.get(path.stem, (None, SINGLE.get(path.stem)))
        core_level = sorted(map(listed, cores)) if cores else None
        if path.stem in KNOWN:
            if sorted(map(listed, groups)) in [sorted(level) for level in levels]:
                found += 1
            else:
                missed.append(f"{path.stem}: {levels}")
            if core_level and core_level not in [sorted(level) for level in levels]:
                wrong.append(f"{path.stem}: the cores were not found: {levels}")
        elif path.stem in SINGLE:
            if [sorted(level) for level in levels] == ([core_level] if cores else []):
                single += 1
            else:
                wrong.append(f"{path.stem}: {levels}")
    print(f"measured: known groups found on {found} of {found + len(missed)} machines, none invented on {single} machines of one group")
    print("\n".join(missed + wrong))
    machines = found + len(missed) + single + len(wrong)
    return 0 if machines > 0 and not wrong and found >= 0.9 * (found + len(missed)) else 1


if __name__ == "__main__":
    sys.exit(main())
