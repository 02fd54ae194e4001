#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded machines: what affinityctl finds against what other programs found (expected.json). The folder is named by
AFFINITYD_TOPOLOGIES. Each value is also changed on purpose, to see that the comparison would notice."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

KEYS = ("online", "offline", "cpus", "package_groups", "die_groups", "cluster_groups", "l2_groups", "l3_groups", "numa_nodes",
        "distance")
CPU_KEYS = ("cpu", "package", "die", "core", "smt", "node")
NODE_KEYS = ("node", "cpus", "memory")


def contract(document):
    """The part of a document that the contract is about, in one form."""
    value = {key: copy.deepcopy(document.get(key)) for key in KEYS}
    value["cpus"] = [{key: cpu.get(key) for key in CPU_KEYS} for cpu in value["cpus"]]
    value["numa_nodes"] = [{key: node.get(key) for key in NODE_KEYS} for node in value["numa_nodes"]]
    return value


def differences(found, expected):
    return [f"{key}: found {json.dumps(found[key])[:300]}, expected {json.dumps(expected[key])[:300]}"
            for key in KEYS if found[key] != expected[key]]


def mutations(expected):
    """The expectation with one value changed, for each key."""
    for key in KEYS:
        changed = copy.deepcopy(expected)
        value = changed[key]
        if isinstance(value, str):
            changed[key] = value + ",4095" if value else "4095"
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            inner = next(iter(value[0]))
            for inner in value[0]:
                again = copy.deepcopy(expected)
                again[key][0][inner] = "changed"
                yield again
            continue
        elif isinstance(value, list):
            changed[key] = value + ["4095"]
        else:
            changed[key] = {"nodes": [4095], "matrix": [[1]]}
        yield changed


def read(program, archive):
    with tempfile.TemporaryDirectory(prefix="affinityd-topology-") as folder:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="tar") if hasattr(tarfile, "tar_filter") else tar.extractall(folder)
        done = subprocess.run([program, "topology", "--root", folder, "--json"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)


def main():
    program, default = sys.argv[1:3]
    corpus = pathlib.Path(os.environ.get("AFFINITYD_TOPOLOGIES", default))
    machines = sorted(path.parent for path in corpus.glob("*/expected.json"))
    if not machines:
        print(f"no recorded machines in {corpus}")
        return 1
    failed = 0
    for machine in machines:
        expected = contract(json.loads((machine / "expected.json").read_text(encoding="utf-8")))
        found = contract(read(program, machine / "root.tar.gz"))
        wrong = differences(found, expected)
        blind = 0 if wrong else sum(not differences(found, mutation) for mutation in mutations(expected))
        failed += bool(wrong or blind)
        print(f"{'ok  ' if not wrong and not blind else 'FAIL'} {machine.name}" + (f" ({blind} mutations unnoticed)" if blind else ""))
        for text in wrong:
            print(f"     {text}")
    print(f"{len(machines) - failed} of {len(machines)} machines agree in every key")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
