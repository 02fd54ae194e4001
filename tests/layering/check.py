#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads daemon/ and tools/ of a project: arrows between rooms, names that rooms must not know, cycles, and limits of rooms, files and ways;
and the comments of all sources.
Prints one line for each complaint; the exit code is 1 if there is any. Long functions are warnings.

  check.py PROJECT [--only rooms|cycles|limits|comments]
"""
import argparse
import pathlib
import sys

import comments
import cycles
import limits
import rooms
import sources


def complaints(root, files, only):
    if only in (None, "rooms"):
        yield from (text for source in files for check in rooms.CHECKS for text in check(source))
        yield from rooms.behaviours(files)
    if only in (None, "cycles"):
        yield from cycles.complaints(files)
    if only in (None, "limits"):
        yield from limits.complaints(root, files)
    if only in (None, "comments"):
        yield from comments.complaints(root)


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=pathlib.Path)
    parser.add_argument("--only", choices=("rooms", "cycles", "limits", "comments"))
    arguments = parser.parse_args(words)
    files = sources.read(arguments.project)
    if not files:
        print(f"{arguments.project}: no sources found")
        return 1
    found = list(complaints(arguments.project, files, arguments.only))
    warnings = [f"warning: {text}" for text in limits.warnings(arguments.project, files)]
    print("\n".join(warnings + found + [f"{len(files)} files read, {len(found)} complaints, {len(warnings)} warnings"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
