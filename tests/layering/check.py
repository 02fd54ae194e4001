#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every #include of a daemon tree and says which arrows run up or sideways, which libraries are used outside their
file, where kernel trees are named outside `host`, and which files are too long. Exit code 1 if anything is said."""
import pathlib
import re
import sys

RANKS = [{"base"}, {"host"}, {"policy", "topology", "inventory", "irq", "netdev"}, {"machine"}, {"planner"},
         {"state", "enforcer", "measure"}, {"app"}, {"events", "control", "metrics"}]
RANK = {room: number for number, rooms in enumerate(RANKS) for room in rooms}
# Header -> where it may be included: a file or a room.
LIBRARIES = {"yaml-cpp/": ["policy/tree.cpp"], "re2/": ["policy/pattern.cpp"], "sqlite3.h": ["state/history.cpp"],
             "libproc2/": ["inventory/pid_stream.cpp"], "systemd/sd-bus.h": ["control", "enforcer/unit_cpus.cpp"], "systemd/sd-event.h": ["events", "control"],
             "spdlog/": ["app", "options.cpp"], "CLI/": ["options.cpp"], "nlohmann/": ["app", "measure", "policy/schema.cpp"]}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
KERNEL_TREE = re.compile(r'"/(?:proc|sys)(?:/|")')
LONGEST = 600


def complaints_of(root, path):
    name = path.relative_to(root).as_posix()
    room = name.split("/")[0] if "/" in name else None
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) > LONGEST:
        yield f"{name}: {len(lines)} lines, more than {LONGEST}"
    for number, line in enumerate(lines, 1):
        if room not in (None, "host") and KERNEL_TREE.search(line.split("//")[0]):
            yield f"{name}:{number}: names a kernel tree; only host does"
        found = INCLUDE.match(line)
        if not found:
            continue
        header = found.group(1)
        target = header.split("/")[0]
        if target in RANK and room is not None and target != room:
            if room not in RANK:
                yield f"{name}:{number}: the room {room} has no rank"
            elif RANK[target] >= RANK[room]:
                way = "sideways" if RANK[target] == RANK[room] else "up"
                yield f"{name}:{number}: {room} includes {header}: an arrow that runs {way}"
        for library, places in LIBRARIES.items():
            if header.startswith(library) and name not in places and room not in places:
                yield f"{name}:{number}: {header} is for {', '.join(places)} only"


def main():
    root = pathlib.Path(sys.argv[1])
    files = sorted(path for path in root.rglob("*") if path.suffix in (".cpp", ".hpp"))
    if not files:
        print(f"{root}: no sources found")
        return 1
    found = [text for path in files for text in complaints_of(root, path)]
    for text in found:
        print(text)
    print(f"{len(files)} files read, {len(found)} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
