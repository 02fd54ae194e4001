#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded machines: what affinityctl finds against what other programs found (expected.json). The folder is named by
AFFINITYD_TOPOLOGIES. Each expected value is also changed on purpose, one by one, to see that the comparison would notice."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
KEYS = ("online", "offline", "cpus", "package_groups", "die_groups", "cluster_groups", "l2_groups", "l3_groups", "numa_nodes",
        "distance")
CPU_KEYS = ("cpu", "package", "die", "core", "smt", "node")
NODE_KEYS = ("node", "cpus", "memory")


def contract(document):
    """The part of a document that the contract is about, in one form."""
    value = {key: document.get(key) for key in KEYS}
    value["cpus"] = [{key: cpu.get(key) for key in CPU_KEYS} for cpu in value["cpus"]]
    value["numa_nodes"] = [{key: node.get(key) for key in NODE_KEYS} for node in value["numa_nodes"]]
    return value


def differences(found, expected):
    return [f"{key}: found {json.dumps(found[key])[:300]}, expected {json.dumps(expected[key])[:300]}"
            for key in KEYS if found[key] != expected[key]]


def places(value):
    """(container, key) of every value inside a container, at any depth."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def changed(value):
    """Something of the same form that is not the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value + ",4095" if value else "4095"
    if isinstance(value, list):
        return value[:-1] if value else [{}]
    return None if value == {} else {}


def blind_spots(found, document):
    """How many values there are in the contract's part of a document, and those that could be wrong unnoticed."""
    inside = {key: document[key] for key in KEYS if key in document}
    inside["cpus"] = [{key: cpu[key] for key in CPU_KEYS if key in cpu} for cpu in inside["cpus"]]
    inside["numa_nodes"] = [{key: node[key] for key in NODE_KEYS if key in node} for node in inside["numa_nodes"]]
    count, unnoticed = 0, []
    for container, key in places(inside):
        kept = container[key]
        container[key] = changed(kept)
        if contract(inside) == found:
            unnoticed.append(f"{key}: {kept!r}")
        container[key] = kept
        count += 1
    return count, unnoticed


def remarks(document, expected):
    """Where kinds of cores differ, which is no fault: the expectation goes by frequency and capacity, we go by what the kernel
    calls the cores, else capacity, else caches. We do not report that all cores are of one kind."""
    wanted = sorted(expected.get("cpu_kinds") or [])
    found = sorted(kind["cpus"] for kind in document["cpu_kinds"])
    return [] if wanted == found or (len(wanted) < 2 and not found) else [f"note: kinds of cores {found}, by frequency {wanted}"]


def scratch_place():
    """In memory where there is such a place: a recording is thousands of files, which a disk takes a minute for."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def picture_faults(picture, document):
    """The picture is well-formed and has each online CPU once, and the interfaces that have a device."""
    try:
        root = ElementTree.fromstring(picture)
    except ElementTree.ParseError as error:
        return [f"picture: {error}"]
    boxes = sorted(int(group.get("id")[4:]) for group in root.iter(SVG + "g") if (group.get("id") or "").startswith("cpu-"))
    wanted = [cpu["cpu"] for cpu in document["cpus"]]
    words = {"".join(text.itertext()) for text in root.iter(SVG + "tspan")}
    lost = [nic["name"] for nic in document.get("net_devices") or [] if nic.get("pci") and nic["name"] not in words]
    return ([f"picture: CPUs {boxes}"] if boxes != wanted else []) + [f"picture: no interface {name}" for name in lost]


def read(program, archive):
    """The answers of the program about a recording: the document, and the picture."""
    with tempfile.TemporaryDirectory(prefix="affinityd-topology-", dir=scratch_place()) as folder:
        subprocess.run(["tar", "-xzf", archive, "-C", folder, "--no-same-owner", "--no-same-permissions"], check=True)
        outputs = []
        for form in (["--json"], ["--svg", "-"]):
            done = subprocess.run([program, "topology", "--root", folder, *form], capture_output=True, check=False)
            if done.returncode != 0:
                raise AssertionError(done.stderr)
            outputs.append(done.stdout)
        return json.loads(outputs[0]), outputs[1]


def main():
    program, default = sys.argv[1:3]
    corpus = pathlib.Path(os.environ.get("AFFINITYD_TOPOLOGIES", default))
    machines = sorted(path.parent for path in corpus.glob("*/expected.json"))
    if not machines:
        print(f"no recorded machines in {corpus}")
        return 1
    failed = values = 0
    for machine in machines:
        expected = json.loads((machine / "expected.json").read_text(encoding="utf-8"))
        document, picture = read(program, machine / "root.tar.gz")
        found = contract(document)
        wrong = differences(found, contract(expected)) + picture_faults(picture, document)
        count, unnoticed = (0, []) if wrong else blind_spots(found, expected)
        values += count
        failed += bool(wrong or unnoticed)
        print(f"{'FAIL' if wrong or unnoticed else 'ok  '} {machine.name}")
        for text in wrong + [f"could be wrong unnoticed: {text}" for text in unnoticed] + remarks(document, expected):
            print(f"     {text}")
    print(f"{len(machines) - failed} of {len(machines)} machines agree in every key; {values} values changed one by one, to be noticed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
