# SPDX-License-Identifier: Apache-2.0
"""Limits that pull towards few, larger files: a header with one user, files and lines of a room, the median file, callbacks of a class, and the
lines that a reader of a way in docs/ARCHITECTURE.md must read: those of its hops, and of all that these call in READ. Functions that are long
are warnings. Universal Ctags parses."""
import collections
import json
import re
import statistics
import subprocess

import sources

FUNCTION_LINES = 80
CALLBACKS = 2
FILES = 40
MEDIAN = 90
WALK_LINES = 2500
# Lines of each room, and of a folder of tools/ that is as pure; a commit that raises one says why. The aim is in the comment where a room is above it.
BUDGETS = {
    "base": 1013, "host": 1939,  # 20 of moving pages
    "policy": 3605,  # 2,600; 18 of the unit that a cpuset may hold, which check asks for, too; 35 of pairs of virtual CPUs and near: room
    "topology": 1520,  # 20 of free memory of nodes
    "inventory": 3054,  # 2,700; 200 of which thread waits on which listener, 75 of the pods of containers, 35 of the memory that a process has
    "irq": 1157, "netdev": 1931,  # 400 of ways to containers, 30 of NICs that were moved into one
    "machine": 1747,  # 1,300; 7 of policies that cannot be steered, 30 of masks of the kernel, 160 of the CPUs that containers have for themselves, 25 of NICs that these have, 5 of igb, whose bare label has the new name of an interface
    "locality": 395, "planner": 6512,  # 4,600; 7 of tasks whose core the kernel chooses, which crowd none; 20 of masters, which may use all CPUs; 110 of pairs of virtual CPUs, 30 of nodes without memory; 110 of what is kept off isolated CPUs; 510 of judgement and the choice of affinity: auto
    "state": 1730,  # 1,500
    "measure": 1045, "accounting": 1335,  # 1,900 together
    "enforcer": 882,
    "steer": 1731,  # 1,500; 36 of services that are replaced without a gap; 8 of programs that end before systemd lets them go; 60 of counting the listeners of others; what is left of a former daemon or an ended namespace is dropped, counts that are mapped
    "status": 1816,  # 1,200; 370 of the table of findings and the verdict, which were in affinityctl; with what metrics need: latencies of events, length of a pass, accepts; policies on trial
    "world": 235, "load": 556,
    "core": 4925,  # 4,300; 10 of nodes without memory; 30 of rights and files that a container may lack
    "behaviours": 4655,  # 6,500; 12 of tasks that a fence leaves on all CPUs; 20 of problems and trials that are none where nothing could change; with control/joins, accounting and their parts of planner, which are libraries below
    "events": 1770, "control": 1645,  # 2,800 together
    "affinityctl/survey": 1571,  # 760 of doctor (queues, containers), 790 of suggest
}
READ = {"core", "behaviours", "enforcer", "state", "planner"}
# Ways that take longer to read, and how many lines they have; 2,500 is the aim.
LONG_WAYS = {"A process is executed; its thread gets its CPUs.": 4500,
             "A link comes up; its interrupts get their CPUs before any task.": 4700}
# These own the parts of their room, and include each.
OWNERS = {"daemon/core/daemon.hpp", "daemon/events/loop.hpp", "daemon/control/server.hpp"}
# Headers with one user in their room -> the reason.
ONE_USER = {
    "daemon/core/behaviour.hpp": "the interface of behaviours",
    "daemon/core/task_events.hpp": "the queue of events and the budgets that pay for them, apart from the table of tasks",
    "daemon/behaviours/neighbours/other_writers.hpp": "tested by itself",
    "daemon/behaviours/neighbours/irqbalance.hpp": "the talk with irqbalance, apart from those that are only named",
    "daemon/behaviours/fences/unit_cpus.hpp": "the talk with systemd, tested by itself",
    "daemon/behaviours/memory/memory_mover.hpp": "a thread of its own, tested by itself",
    "daemon/inventory/command_lines.hpp": "threads of their own",
    "daemon/inventory/users.hpp": "a thread of its own",
    "daemon/state/record.hpp": "the format of the journal's lines, tested by itself",
}
# Classes with more callbacks -> how many.
CALLING = {
    "daemon/control/bus.hpp: affinityd::control::SystemBus::Hooks": 3,
    "daemon/events/cgroup_watch.hpp: affinityd::events::CgroupWatch::Listeners": 3,
    "daemon/events/sources.hpp: affinityd::events::Subscription::Parts": 3,
}
HOP = re.compile(r"^\| \d+ \| `([\w/]+)\.(?:bpf\.)?[ch](?:pp)?: ([\w:~() ]+)`")
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
CTAGS = ["ctags", "-R", "--languages=C++", "--langmap=C++:.cpp.hpp", "--kinds-C++=+p", "--fields=+neKSZt", "--output-format=json", "-f", "-"]


def tags(root, files):
    done = subprocess.run(CTAGS + ["-L", "-"], input="\n".join(source.name for source in files), cwd=root, capture_output=True, text=True,
                          check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def long_functions(found):
    for tag in found:
        is_lambda = tag["name"].startswith("__anon")
        if tag["kind"] == "function" and not is_lambda and (lines := tag["end"] - tag["line"] + 1) > FUNCTION_LINES:
            yield f"{tag['path']}:{tag['line']}: {tag['name']} has {lines} lines, more than {FUNCTION_LINES}"


def many_callbacks(found):
    # A class is known by its file and scope, so that equal names in unnamed namespaces of two files stay apart.
    callbacks = collections.Counter((tag["path"], tag.get("scope")) for tag in found
                                    if tag["kind"] == "member" and "std::function<" in tag.get("typeref", ""))
    for tag in found:
        scope = f"{tag['scope']}::{tag['name']}" if "scope" in tag else tag["name"]
        if tag["kind"] in ("class", "struct") and (count := callbacks[tag["path"], scope]) > CALLING.get(f"{tag['path']}: {scope}", CALLBACKS):
            yield f"{tag['path']}:{tag['line']}: {tag['name']} has {count} std::function members, more than {CALLBACKS}"


def headers_of_one_user(files):
    """A header that one file of its room includes belongs into that file; its own source does not count."""
    names = {source.name: source for source in files}
    users = collections.defaultdict(set)
    for source in files:
        for _, header, is_angled in source.includes:
            target = None if is_angled else sources.resolve(source, header, names)
            if target and target.removesuffix(".hpp") != source.name.removesuffix(".cpp"):
                users[target].add(source.name)
    for header, included in users.items():
        if names[header].room and len(included) == 1 and names[user := included.pop()].room == names[header].room and user not in OWNERS and header not in ONE_USER:
            yield f"{header}:1: only {user} includes it: it belongs there"
    for header in sorted(set(ONE_USER) & set(names) - {header for header in users}):
        yield f"{header}:1: no file includes it"


def rooms(files):
    lines, count = collections.Counter(), collections.Counter()
    for source in files:
        folder = f"daemon/{source.room}" if source.room else source.folder
        lines[folder] += source.text.count("\n")
        count[folder] += 1
    for folder in count:
        budget = BUDGETS.get(folder.partition("/")[2], lines[folder])
        if count[folder] > FILES:
            yield f"{folder}:1: {count[folder]} files, more than {FILES}"
        if lines[folder] > budget:
            yield f"{folder}:1: {lines[folder]} lines, more than {budget}"


def median(files):
    sizes = [source.text.count("\n") for source in files if source.name.startswith("daemon/")]
    if sizes and len(sizes) > FILES and statistics.median(sizes) < MEDIAN:
        yield f"daemon:1: the median file has {statistics.median(sizes):.0f} lines, fewer than {MEDIAN}"


def unit(name):
    """The name that a source and its header share: "daemon/steer/lanes"."""
    return name.rpartition(".")[0].removesuffix(".bpf")


def neighbours(files):
    """{unit: units of the headers that it includes, and of those that these include}"""
    names, direct = {source.name: source for source in files}, collections.defaultdict(set)
    for source in files:
        direct[unit(source.name)].update(unit(target) for _, header, is_angled in source.includes
                                         if not is_angled and (target := sources.resolve(source, header, names)))
    return {here: {here}.union(near, *(direct[there] for there in near)) for here, near in list(direct.items())}


def closure(begins, functions, files):
    """The functions that these call, and so on. A call is known by its name: of several functions of one name, each whose header is in sight counts."""
    code, near, read, ahead = {source.name: source.identifiers for source in files}, neighbours(files), {}, list(begins)
    while ahead:
        tag = ahead.pop()
        if (place := (tag["path"], tag["line"])) in read:
            continue
        read[place] = tag
        here = unit(tag["path"])
        for name in set(CALL.findall("\n".join(code[tag["path"]][tag["line"]:tag["end"]]))):
            ahead += [called for called in functions[name] if unit(called["path"]) in near.get(here, {here})]
    return read.values()


def ways(root, files, found):
    """Each hop of a way names a file and a function in it; what a way makes one read is limited."""
    page, rooms_of = root / "docs" / "ARCHITECTURE.md", {source.name: source.room for source in files}
    functions, begins, way = collections.defaultdict(list), collections.defaultdict(list), None
    for tag in found:
        if tag["kind"] == "function" and rooms_of[tag["path"]] in READ:
            functions[tag["name"]].append(tag)
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines() if page.exists() else (), 1):
        if line.startswith("**"):
            way = line.strip("*")
        hop = HOP.match(line)
        if not hop:
            continue
        stem, function = hop.groups()
        stem = stem if stem.startswith("tools/") else f"daemon/{stem}"
        if not any(unit(source.name) == stem and function.rpartition("::")[2] in source.text for source in files):
            yield f"docs/ARCHITECTURE.md:{number}: there is no {function} in {stem}"
        begins[way] += [tag for tag in found if tag["kind"] == "function" and tag["name"] == function.rpartition("::")[2] and unit(tag["path"]) == stem]
    for way, tags_of_hops in begins.items():
        if (lines := sum(tag["end"] - tag["line"] + 1 for tag in closure(tags_of_hops, functions, files))) > LONG_WAYS.get(way, WALK_LINES):
            yield f"docs/ARCHITECTURE.md:1: {way} {lines} lines to read, more than {LONG_WAYS.get(way, WALK_LINES)}"


def complaints(root, files):
    yield from headers_of_one_user(files)
    yield from rooms(files)
    yield from median(files)
    found = tags(root, files)
    yield from ways(root, files, found)
    yield from many_callbacks(found)


def warnings(root, files):
    yield from long_functions(tags(root, files))
