#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Machines recorded by tools/gather-host. Their topology and NICs are as they were built (expected.json, written by hand from QEMU's
arguments); a daemon that starts on them with the folder's policies would change what plan.txt says, and that keeps the promise of
`affinity: full`, checked line by line."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # thousands of small files


def ask(program, root, verb, *arguments):
    done = subprocess.run([program, "--json", "--root", root, verb, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{verb} ended with {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def facts(topology, nics):
    """The statements of expected.json, in the same form."""
    groups = {name: topology[f"{name}_groups"] for name in ("package", "die", "l2", "l3")}
    return {"online": topology["online"], **groups, "nodes": [node["cpus"] for node in topology["numa_nodes"]],
            "distance": (topology["distance"] or {"matrix": []})["matrix"],
            "nics": {nic["name"]: [nic["driver"], nic["node"], nic["local_cpus"], sum(queue["direction"] == "rx" for queue in nic["queues"]),
                                   sum(queue["direction"] == "tx" for queue in nic["queues"])] for nic in nics if nic["device"]}}


def line(action):
    """An action without the numbers that change with every boot."""
    what = {"task": "task {comm}", "irq": "interrupt {label}", "steering": "{nic} {queue}"}[action["kind"]].format(**action)
    return f"{action['policy']}: {what}: {action['from'] or 'off'} -> {action['to']}"


def cpus(text):
    """A set from a list like 0-3,8."""
    numbers = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def check_full(actions, expected, policies):
    """Every task and interrupt of each policy goes to one core near its NIC, and each task's core also takes interrupts."""
    for name, text in policies.items():
        nic = re.search(r"nics: \[(.*)\]", text)[1]
        near = cpus(expected["nics"][nic][2])
        mine = [action for action in actions if action["policy"] == name]
        tasks, interrupts = ([cpus(action["to"]) for action in mine if action["kind"] == kind] for kind in ("task", "irq"))
        assert tasks and interrupts, f"{name}: nothing to do"
        cores = [cpus(core) for core in expected["l2"]]
        for mask in tasks + interrupts:
            assert mask <= near and any(mask <= core for core in cores), f"{name}: {mask} is not a core near {nic}: {near}"
        if len(tasks) == 1:
            assert all(mask == tasks[0] for mask in interrupts), f"{name}: interrupts of {nic} arrive elsewhere than on {tasks[0]}"
        for mask in tasks:
            assert any(mask & taken for taken in interrupts), f"{name}: no interrupt of {nic} arrives on {mask}"


def check(program, machine):
    expected = json.loads((machine / "expected.json").read_text(encoding="utf-8"))
    policies = {path.stem: path.read_text(encoding="utf-8") for path in (machine / "policies").glob("*.yaml")}
    with tempfile.TemporaryDirectory(prefix="affinityd-machine-", dir=SCRATCH) as root:
        with tarfile.open(machine / "recording.tar.gz") as tar:
            tar.extractall(root, filter="tar") if hasattr(tarfile, "tar_filter") else tar.extractall(root)
        found = facts(ask(program, root, "topology"), ask(program, root, "nics"))
        for key in expected.keys() | found.keys():
            assert found.get(key) == expected.get(key), f"{key}: found {found.get(key)}, expected {expected.get(key)}"
        plan = ask(program, root, "plan", str(machine / "policies"))
        again = ask(program, root, "plan", str(machine / "policies"))
    assert plan == again, "the same input gave another plan"
    assert not plan["problems"], plan["problems"]
    check_full(plan["actions"], expected, policies)
    lines = [line(action) for action in plan["actions"]]
    wanted = (machine / "plan.txt").read_text(encoding="utf-8").splitlines()
    assert lines == wanted, "\n".join(["the plan has changed; found:", *lines])


def main():
    failed = 0
    machines = sorted(path.parent for path in HERE.glob("*/recording.tar.gz"))
    assert machines, "there are no recordings"
    for machine in machines:
        try:
            check(sys.argv[1], machine)
            print(f"ok {machine.name}")
        except AssertionError as error:
            failed += 1
            print(f"FAIL {machine.name}: {error}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
