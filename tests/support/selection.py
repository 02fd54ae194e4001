#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tests/run asks of a build folder and of the log of its tests, one answer on each line.

  selection.py tests|targets BUILD ROOMS    names of the tests of these rooms, or what has to be built for them; ROOMS: a,b,c or all
  selection.py installed BUILD              what has to be built for an installation
  selection.py counts TESTLOG               how many tests passed, and how many did not
  selection.py measured TESTLOG             what the tests have measured: their lines "measured: ..."
"""
import json
import pathlib
import sys


def introspected(build, what):
    return json.loads((pathlib.Path(build) / "meson-info" / f"intro-{what}.json").read_text(encoding="utf-8"))


def chosen(build, rooms):
    """The tests of the rooms: a test "irq/reader" or "irq" is one of the room irq."""
    return [test for test in introspected(build, "tests") if rooms == "all" or test["name"].split("/")[0] in rooms.split(",")]


def paths(build, targets):
    """Files that ninja makes for targets, as it names them."""
    return sorted(pathlib.Path(name).relative_to(pathlib.Path(build).resolve()).as_posix() for target in targets for name in target["filename"])


def tests(build, rooms):
    if rooms == "all":
        return []
    # Tests that are named run in this order, whatever their priorities.
    return [test["name"] for test in sorted(chosen(build, rooms), key=lambda test: (-test["priority"], test["name"]))]


def targets(build, rooms):
    if rooms == "all":
        return []
    needed = {target for test in chosen(build, rooms) for target in test["depends"]}
    return paths(build, [target for target in introspected(build, "targets") if target["id"] in needed])


def installed(build):
    return paths(build, [target for target in introspected(build, "targets") if target["installed"]])


def entries(log):
    path = pathlib.Path(log)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def counts(log):
    results = [entry["result"] for entry in entries(log)]
    # A log without tests is itself a failure.
    return [f"{results.count('OK')} {len(results) - results.count('OK') or (not results) * 1}"]


def measured(log):
    return [f"{entry['name']}: {line.partition('measured:')[2].strip()}" for entry in entries(log)
            for line in entry.get("stdout", "").splitlines() if line.startswith("measured:")]


COMMANDS = {"tests": tests, "targets": targets, "installed": installed, "counts": counts, "measured": measured}

if __name__ == "__main__":
    print("".join(f"{line}\n" for line in COMMANDS[sys.argv[1]](*sys.argv[2:])), end="")
