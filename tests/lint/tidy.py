#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy with the checks of .clang-tidy over the sources of daemon/ and tools/, as a build folder compiles them. Prints each
finding once; the exit code is 1 if there is any.

  tidy.py BUILD [FOLDER...]     FOLDER: only sources below it, such as daemon/planner

Where BUILD compiles several sources at once (meson's unity builds), they are also checked at once, which takes half the time as most of it
goes to headers; each source is then read by itself for a few checks only, which finds what it uses and does not include.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
# clang before 16 cannot compile the std::expected of libstdc++ 12 (P0848). 16 can, but states an older date for concepts.
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-16")
SHADOW = "-Wshadow"
# Checks that miss something, or find too much, in a file of several sources: names of one source are no others' to shadow.
OF_ONE = "misc-unused-using-decls,clang-diagnostic-shadow"
CXX = ["-std=c++2b", "-include", str(PROJECT / "tests/lint/concepts.hpp")]
FINDING = re.compile(r"^[^\s:]+:\d+:\d+: (?:warning|error): ")


def sources_of(path):
    """The sources that a file compiles: itself, or those that a file of a unity build includes."""
    if not re.search(r"-unity\d+\.c(pp)?$", path.name):
        return (path,)
    return tuple(pathlib.Path(name).resolve() for name in re.findall(r"^#include<(.*)>$", path.read_text(encoding="utf-8"), re.MULTILINE))


def commands(build, folders):
    """{(file, its sources): (folder to be in, arguments of the compiler)} without what only gcc understands; of files that compile the same
    sources there is one."""
    found, known = {}, set()
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        sources = sources_of(path)
        if known.issuperset(sources) or not any(source.is_relative_to(PROJECT / folder) for source in sources for folder in folders):
            continue
        known.update(sources)
        words = [word for word in shlex.split(entry["command"]) if word.startswith(("-I", "-D", "-isystem", "-f")) and "precompiled" not in word]
        found[path, sources] = (entry["directory"], [word for word in words if not word.startswith(("-fsanitize", "-fdiagnostics"))])
    return found


def make_headers(build):
    """Headers that a program writes are there before sources that include them are read."""
    headers = re.findall(r"^build (\S+\.skel\.h):", (build / "build.ninja").read_text(encoding="utf-8"), re.MULTILINE)
    if headers:
        subprocess.run(["ninja", "-C", str(build), *headers], check=True, stdout=subprocess.DEVNULL)


def tidy(path, directory, options, checks=""):
    """What clang-tidy finds in one file. `options`: of the compiler; `checks`: besides those of .clang-tidy."""
    language = [] if path.suffix == ".c" else CXX
    done = subprocess.run([TIDY, "--quiet", f"--config-file={PROJECT / '.clang-tidy'}", f"--checks={checks}", str(path), "--",
                           *options, *language, "-Wno-unknown-warning-option", *shlex.split(os.environ.get("CLANG_TIDY_EXTRA", ""))],
                          cwd=directory, capture_output=True, text=True, check=False)
    return [re.sub(r"^\S*/\.\./", "", line.replace(f"{PROJECT}/", "")) for line in done.stdout.splitlines() if FINDING.match(line)] or (
        [f"{path}: {TIDY}: {done.stderr.strip()}"] if done.returncode else [])


def check(path, sources, directory, words):
    if sources == (path,):
        return tidy(path, directory, [*words, SHADOW])
    found = tidy(path, directory, words)
    for source in sources:
        found += tidy(source, directory, [*words, SHADOW], f"-*,{OF_ONE}")
    return found


def main():
    begin = time.monotonic()
    make_headers(pathlib.Path(sys.argv[1]))
    todo = commands(pathlib.Path(sys.argv[1]), sys.argv[2:] or ["daemon", "tools"])
    if not todo:
        print(f"{sys.argv[1]}: no sources found")
        return 1
    found = set()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for lines in pool.map(lambda item: check(*item[0], *item[1]), todo.items()):
            # A finding appears with each file that includes its own.
            for line in lines:
                if line not in found:
                    print(line, flush=True)
                    found.add(line)
    print(f"{sum(len(sources) for _, sources in todo)} files read, {len(found)} findings in {time.monotonic() - begin:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
