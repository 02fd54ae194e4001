#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers the questions of tests/run about a build folder and the log of its tests, one answer on each line.

  selection.py tests|targets BUILD KINDS    names of the tests of these kinds (a,b,c), or what has to be built for them
  selection.py installed BUILD              what has to be built for an installation
  selection.py counts TESTLOG               how many tests passed, and how many did not

Kinds: parsers (of the rooms that read foreign bytes), blackbox (which tests/blackbox/run runs), others; and the names of rooms.
"""
import json
import pathlib
import sys


def introspected(build, what):
    return json.loads((pathlib.Path(build) / "meson-info" / f"intro-{what}.json").read_text(encoding="utf-8"))


PARSING_ROOMS = {"base", "policy", "inventory", "irq", "netdev"}


def room(test):
    """A test "irq/reader" or "irq" is one of the room irq."""
    return test["name"].split("/")[0]


def kind(test):
    if room(test) == "blackbox":
        return "blackbox"
    return "parsers" if test["protocol"] == "gtest" and room(test) in PARSING_ROOMS else "others"


def chosen(build, kinds):
    wanted = kinds.split(",")
    return [test for test in introspected(build, "tests") if kind(test) in wanted or room(test) in wanted]


def paths(build, targets):
    """Files that ninja makes for targets, as it names them."""
    return sorted(pathlib.Path(name).relative_to(pathlib.Path(build).resolve()).as_posix() for target in targets for name in target["filename"])


def tests(build, kinds):
    return [test["name"] for test in chosen(build, kinds)]


def targets(build, kinds):
    needed = {target for test in chosen(build, kinds) for target in test["depends"]}
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


COMMANDS = {"tests": tests, "targets": targets, "installed": installed, "counts": counts}

if __name__ == "__main__":
    print("".join(f"{line}\n" for line in COMMANDS[sys.argv[1]](*sys.argv[2:])), end="")
