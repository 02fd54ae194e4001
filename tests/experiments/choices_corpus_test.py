#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: choices_corpus_test.py EXPERIMENTS_CHOICES FOLDER: on recorded machines, the CPUs that `measure sharing`, `smt` and `cache`
choose are what they are said to be, by the machine's own files: hardware threads of one core, CPUs of one last-level cache or of two."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def listed(path):
    try:
        text = path.read_text(encoding="ascii").strip().strip("\0")
    except OSError:
        return None
    cpus = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


class Machine:
    def __init__(self, root, online):
        self.cpus = pathlib.Path(root) / "sys/devices/system/cpu"
        self.online = set(online)

    def core(self, cpu):
        found = listed(self.cpus / f"cpu{cpu}/topology/thread_siblings_list") or {cpu}
        return (found & self.online) | {cpu}

    def llc(self, cpu):
        """The CPUs of the highest cache; None: none is recorded."""
        best = (1, None)
        for index in (self.cpus / f"cpu{cpu}/cache").glob("index*"):
            level = int((index / "level").read_text(encoding="ascii"))
            if level >= best[0] and (index / "type").read_text(encoding="ascii").strip() != "Instruction":
                best = (level, listed(index / "shared_cpu_list"))
        return best[1]


def faults_of(machine, choice):
    smt, cache, sharing = choice.get("smt"), choice.get("cache"), choice["sharing"]
    has_smt = any(len(machine.core(cpu)) > 1 for cpu in machine.online)
    if smt and smt["siblings"]:
        a, b = smt["siblings"]
        if b not in machine.core(a):
            yield f"siblings {a} and {b} are of two cores"
    elif smt and has_smt:
        yield "siblings are missing"
    if smt and smt["cores"]:
        a, b = smt["cores"]
        if b in machine.core(a) or smt["alone"] not in (a, b):
            yield f"cores {a} and {b}"
    elif smt and not smt["why_not"][1]:
        yield "no second core, and no reason"
    if sharing is not None:
        for placing, cpus in sharing.items():
            if placing != "scheduler" and not {cpu for one in cpus for cpu in one} <= machine.online:
                yield f"{placing}: {cpus} are not online"
        if sharing["pairs"][0] != sharing["pairs"][2] or sharing["pairs"][0] == sharing["pairs"][1]:
            yield f"pairs {sharing['pairs']}"
    if cache:
        home, llc = cache["kept"], machine.llc(cache["kept"])
        if cache["group"] is not None and llc is not None and (cache["group"] not in llc or cache["group"] in machine.core(home)):
            yield f"group {cache['group']} of {home}"
        for place in ("other_llc", "other_node"):
            if cache[place] is not None and llc is not None and cache[place] in llc:
                yield f"{place} {cache[place]} shares the cache of {home}"
        if None in (cache["group"], cache["other_llc"], cache["other_node"]) and not cache["refused"]:
            yield "a place is missing, and no reason given"
        if cache["footprints"] != sorted(set(cache["footprints"])):
            yield f"footprints {cache['footprints']}"


def scratch_place():
    """Thousands of small files: where they cost least."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main():
    program, folder = sys.argv[1], pathlib.Path(os.environ.get("AFFINITYD_TOPOLOGIES", sys.argv[2]))
    recordings = sorted(folder.glob("*/root.tar.gz"))
    faults, whole = [], 0
    for recording in recordings:
        with tempfile.TemporaryDirectory(dir=scratch_place()) as root:
            subprocess.run(["tar", "-xzf", recording, "-C", root, "--no-same-owner", "--no-same-permissions", "--wildcards", "sys/devices/system/*"], check=True)
            done = subprocess.run([program, root], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                faults.append(f"{recording.parent.name}: exit status {done.returncode}")
                continue
            choice = json.loads(done.stdout)
            found = list(faults_of(Machine(root, choice["online"]), choice))
            faults += [f"{recording.parent.name}: {fault}" for fault in found]
            whole += bool(choice.get("cache") and choice["cache"]["group"] is not None)
    print(f"{len(recordings)} machines, {whole} of them with another core in one last-level cache; {len(faults)} faults")
    print("\n".join(faults))
    return 1 if faults or len(recordings) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
