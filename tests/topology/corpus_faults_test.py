#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The corpus test itself, on copies of one recorded machine of which each expects one thing that is not so: every copy must
fail, the unchanged one must not. The folder is given by the environment, as another folder of recordings would be."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import corpus_test


def small_machine(corpus):
    """A machine with a distance matrix if there is one, so that every key has something to be wrong."""
    def weight(machine):
        expected = json.loads((machine / "expected.json").read_text(encoding="utf-8"))
        return expected.get("distance") is None, len(expected["cpus"])
    return min((path.parent for path in corpus.glob("*/expected.json")), key=weight)


def faults(expected):
    """(name, document): each key of the contract wrong, and each key of the first CPU, node and of the matrix."""
    places = [(key,) for key in corpus_test.KEYS]
    places += [("cpus", 0, key) for key in corpus_test.CPU_KEYS] + [("numa_nodes", 0, key) for key in corpus_test.NODE_KEYS]
    if expected.get("distance"):
        places += [("distance", "nodes"), ("distance", "matrix", 0, 0), ("distance", "matrix", -1, -1)]
    for path in places:
        document = copy.deepcopy(expected)
        container = document
        for key in path[:-1]:
            container = container[key] if isinstance(container, dict) or key < len(container) else None
            if container is None:
                break
        if container is None:
            continue
        container[path[-1]] = corpus_test.changed(container[path[-1]])
        if not isinstance(document["cpus"], list) or not isinstance(document["numa_nodes"], list):
            continue
        yield "-".join(map(str, path)), document


def main():
    program, default = sys.argv[1:3]
    machine = small_machine(pathlib.Path(os.environ.get("AFFINITYD_TOPOLOGIES", default)))
    expected = json.loads((machine / "expected.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="affinityd-topology-", dir=corpus_test.scratch_place()) as folder:
        wrong = dict(faults(expected))
        for name, document in {**wrong, "unchanged": expected}.items():
            copied = pathlib.Path(folder) / name
            copied.mkdir()
            (copied / "root.tar.gz").symlink_to((machine / "root.tar.gz").resolve())
            (copied / "expected.json").write_text(json.dumps(document), encoding="utf-8")
        done = subprocess.run([sys.executable, corpus_test.__file__, program, "/nowhere"], capture_output=True, text=True, check=False,
                              env={**os.environ, "AFFINITYD_TOPOLOGIES": folder})
        empty = subprocess.run([sys.executable, corpus_test.__file__, program, "/nowhere"], capture_output=True, text=True, check=False,
                               env={**os.environ, "AFFINITYD_TOPOLOGIES": "/nowhere"})
    lines = done.stdout.splitlines()
    unnoticed = [name for name in wrong if f"FAIL {name}" not in lines]
    print(f"{machine.name}: {len(wrong) - len(unnoticed)} of {len(wrong)} wrong expectations fail")
    for name in unnoticed:
        print(f"unnoticed: {name}")
    if "ok   unchanged" not in lines or done.returncode != 1 or empty.returncode != 1:
        print(f"exit codes {done.returncode} and {empty.returncode}:\n{done.stdout}{done.stderr}")
        return 1
    return 1 if unnoticed or len(wrong) < len(corpus_test.KEYS) else 0


if __name__ == "__main__":
    sys.exit(main())
