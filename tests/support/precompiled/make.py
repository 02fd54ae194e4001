#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes FOLDER/plain and FOLDER/gtest, each with an affinityd_precompiled.hpp that gcc has precompiled, unless they are up to date.

  make.py FOLDER COMPILER ARGUMENT...
"""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def state(words, header):
    """The sources of the precompiled header: the command, and names, sizes and times of all headers."""
    done = subprocess.run([*words, "-x", "c++-header", "-M", header], check=True, capture_output=True, text=True)
    files = [pathlib.Path(name) for name in done.stdout.replace("\\\n", " ").split()[1:]]
    lines = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files]
    version = subprocess.run([*words[:1], "--version"], check=True, capture_output=True, text=True).stdout
    return "\n".join([*words, version, *lines])


def make(folder, words, header):
    folder.mkdir(parents=True, exist_ok=True)
    copy, made, stamp = (folder / f"affinityd_precompiled.hpp{end}" for end in ("", ".gch", ".state"))
    now = state(words, header)
    if made.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == now:
        return
    copy.write_text(f'#include "{header}"\n', encoding="utf-8")
    subprocess.run([*words, "-x", "c++-header", "-o", made, copy], check=True)
    stamp.write_text(now, encoding="utf-8")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1], "plain"), sys.argv[2:], HERE / "plain.hpp")
    make(pathlib.Path(sys.argv[1], "gtest"), [*sys.argv[2:], "-O0", "-U_FORTIFY_SOURCE"], HERE / "gtest.hpp")
