#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy with the checks of .clang-tidy over the sources of daemon/ and tools/, as a build folder compiles them. Prints each
finding once; the exit code is 1 if there is any.

  tidy.py [--for SECONDS] BUILD [FOLDER...]     FOLDER: only sources below it, such as daemon/planner

Where BUILD compiles several sources at once (meson's unity builds), they are also checked at once, which takes half the time as most of it
goes to headers. Then sources are read by themselves: those with using-declarations for these alone, every other one for what it uses and
does not include. Sources that the last commits changed come first and are always read; after SECONDS no other reading begins, and the order
of those changes with the commit. The last line says how many were left out.
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
COMMITS = 10  # sources that these changed are read however long it takes
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
    """The findings of clang-tidy in one file. `options`: of the compiler; `checks`: besides those of .clang-tidy."""
    language = [] if path.suffix == ".c" else CXX
    done = subprocess.run([TIDY, "--quiet", f"--config-file={PROJECT / '.clang-tidy'}", f"--checks={checks}", str(path), "--",
                           *options, SHADOW, *language, "-Wno-unknown-warning-option", *shlex.split(os.environ.get("CLANG_TIDY_EXTRA", ""))],
                          cwd=directory, capture_output=True, text=True, check=False)
    found = findings(done.stdout)
    if found is None:
        return [f"{path}: {TIDY}: {done.stderr.strip()}"] if done.returncode else []
    return found


def git(*words):
    return subprocess.run(["git", "-C", str(PROJECT), *words], capture_output=True, text=True, check=False).stdout


def readings(todo):
    """(path, folder to be in, arguments of the compiler, checks, whether it may be left out), those first that may not be."""
    head = git("rev-parse", "HEAD")
    changed = {PROJECT / name for name in git("log", f"-{COMMITS}", "--name-only", "--format=").splitlines()}

    def turn(path):
        return hashlib.sha256(f"{head} {path.name}".encode()).digest()
    whole = [(path, *how, "", not changed.intersection(sources)) for (path, sources), how in todo.items()]
    alone = [(source, *how, f"-*,{OF_ONE},clang-diagnostic-shadow", True) for (path, sources), how in todo.items() if sources != (path,) for source in sources]
    yield from sorted(whole, key=lambda reading: (reading[4], turn(reading[0])))
    yield from sorted(alone, key=lambda reading: (reading[0] not in changed, not USING.search(reading[0].read_text(encoding="utf-8")), turn(reading[0])))


def main():
    begin = time.monotonic()
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("--for", dest="seconds", type=float, default=float("inf"))
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("folders", nargs="*")
    asked = options.parse_args()
    make_headers(asked.build)
    todo = commands(asked.build, asked.folders or ["daemon", "tools"])
    if not todo:
        print(f"{asked.build}: no sources found")
        return 1

    def read(path, directory, words, checks, may_be_left):
        if may_be_left and time.monotonic() - begin > asked.seconds:
            return None
        return tidy(path, directory, words, checks)

    found, left, total = set(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for lines in pool.map(lambda reading: read(*reading), readings(todo)):
            left, total = left + (lines is None), total + 1
            # A finding appears with each file that includes its own.
            for line in lines or []:
                if line not in found:
                    print(line, flush=True)
                    found.add(line)
    print(f"{total - left} of {total} readings, {left} left out, {len(found)} findings in {time.monotonic() - begin:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
