#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy with the checks of .clang-tidy over the sources of daemon/ and tools/, as a build folder compiles them. Prints each
finding once; the exit code is 1 if there is any.

  tidy.py [--alone-for SECONDS] BUILD [FOLDER...]     FOLDER: only sources below it, such as daemon/planner

Where BUILD compiles several sources at once (meson's unity builds), they are also checked at once, which takes half the time as most of it
goes to headers. Sources with using-declarations are then read by themselves for those alone. So is every other source, which finds what it
uses and does not include: that is half of the work, so after SECONDS no such reading begins but for forty, which change with the commit.
The last line says how many were left out.
"""
import argparse
import concurrent.futures
import hashlib
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
# In a file of several sources it misses something: what one declares, another may use.
OF_ONE = "misc-unused-using-decls"
USING = re.compile(r"^\s*using (?!namespace\b)[^=;]*;", re.MULTILINE)
LEAST_ALONE = 40  # other sources that are read by themselves however long it takes: others of them with each commit
CXX = ["-std=c++2b", "-include", str(PROJECT / "tests/lint/concepts.hpp")]
FINDING = re.compile(r"^([^\s:]+):\d+:\d+: (warning|error|note): ")


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


def is_anothers(finding, note):
    """Whether a finding is of a file of several sources only: what a name of one source shadows is another's."""
    return note and "[clang-diagnostic-shadow" in finding[0] and note[1][2] == "note" and note[1][1].endswith(".cpp") and note[1][1] != finding[1][1]


def findings(output):
    """The lines of clang-tidy's output that state a finding; None if no line says anything."""
    told = [(line, match) for line in output.splitlines() if (match := FINDING.match(line))]
    true = [line for (line, match), note in zip(told, [*told[1:], None]) if match[2] != "note" and not is_anothers((line, match), note)]
    return [re.sub(r"^\S*/\.\./", "", line.replace(f"{PROJECT}/", "")) for line in true] if told else None


def tidy(path, directory, options, checks=""):
    """What clang-tidy finds in one file. `options`: of the compiler; `checks`: besides those of .clang-tidy."""
    language = [] if path.suffix == ".c" else CXX
    done = subprocess.run([TIDY, "--quiet", f"--config-file={PROJECT / '.clang-tidy'}", f"--checks={checks}", str(path), "--",
                           *options, SHADOW, *language, "-Wno-unknown-warning-option", *shlex.split(os.environ.get("CLANG_TIDY_EXTRA", ""))],
                          cwd=directory, capture_output=True, text=True, check=False)
    found = findings(done.stdout)
    if found is None:
        return [f"{path}: {TIDY}: {done.stderr.strip()}"] if done.returncode else []
    return found


def by_turns(sources):
    """In an order that changes with the commit."""
    head = subprocess.run(["git", "-C", str(PROJECT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout
    return sorted(sources, key=lambda reading: hashlib.sha256(f"{head} {reading[0].name}".encode()).digest())


def readings(todo):
    """(path, folder to be in, arguments of the compiler, checks, whether it may be left out), those first that may not be."""
    for (path, _), (directory, words) in todo.items():
        yield path, directory, words, "", False
    alone = [(source, directory, words) for (path, sources), (directory, words) in todo.items() if sources != (path,) for source in sources]
    using = [reading for reading in alone if USING.search(reading[0].read_text(encoding="utf-8"))]
    others = by_turns(reading for reading in alone if reading not in using)
    for at, reading in enumerate([*using, *others]):
        yield *reading, f"-*,{OF_ONE},clang-diagnostic-shadow", at >= len(using) + LEAST_ALONE


def main():
    begin = time.monotonic()
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("--alone-for", type=float, default=float("inf"))
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("folders", nargs="*")
    asked = options.parse_args()
    make_headers(asked.build)
    todo = commands(asked.build, asked.folders or ["daemon", "tools"])
    if not todo:
        print(f"{asked.build}: no sources found")
        return 1

    def read(path, directory, words, checks, may_be_left):
        if may_be_left and time.monotonic() - begin > asked.alone_for:
            return None
        return tidy(path, directory, words, checks)

    found, left = set(), 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for lines in pool.map(lambda reading: read(*reading), readings(todo)):
            left += lines is None
            # A finding appears with each file that includes its own.
            for line in lines or []:
                if line not in found:
                    print(line, flush=True)
                    found.add(line)
    print(f"{sum(len(sources) for _, sources in todo)} files read, {left} of them not by themselves, {len(found)} findings in {time.monotonic() - begin:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
