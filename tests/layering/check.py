#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads daemon/ and tools/ of a project: arrows between rooms, what rooms must not know, and cycles. Prints one line for each complaint; the
exit code is 1 if there is any. Sizes of functions and numbers of callbacks are warnings.

  check.py PROJECT [--only rooms|cycles|limits]
"""
import argparse
import pathlib
import sys

import cycles
import limits
import rooms
import sources


def complaints(files, only):
    if only in (None, "rooms"):
        yield from (text for source in files for check in rooms.CHECKS for text in check(source))
    if only in (None, "cycles"):
        yield from cycles.complaints(files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=pathlib.Path)
    parser.add_argument("--only", choices=("rooms", "cycles"))
    arguments = parser.parse_args()
    files = sources.read(arguments.project)
    if not files:
        print(f"{arguments.project}: no sources found")
        return 1
    found = list(complaints(files, arguments.only))
    warnings = [f"warning: {text}" for text in limits.warnings(arguments.project, files)]
    print("\n".join(warnings + found + [f"{len(files)} files read, {len(found)} complaints, {len(warnings)} warnings"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
