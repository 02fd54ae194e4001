# SPDX-License-Identifier: Apache-2.0
"""Which room may include which, and what a room must not know: the tables of docs/ARCHITECTURE.md as rules on includes, library
headers, literals and names."""
import fnmatch
import re

# A room includes rooms of a lower rank only.
RANKS = [{"base"}, {"host"}, {"policy", "topology", "inventory", "irq", "netdev", "measure"}, {"machine"}, {"planner", "locality"}, {"state", "world"},
         {"enforcer", "accounting", "steer"}, {"status"}, {"load"}, {"core"}, {"behaviours"}, {"events", "control"}]
RANK = {room: number for number, rooms in enumerate(RANKS) for room in rooms}

# Where a library may be included: patterns of files inside daemon/ or tools/.
LIBRARIES = {
    "yaml-cpp/": ["policy/tree.cpp"],
    "re2/": ["policy/pattern.cpp"],
    "sqlite3.h": ["state/*"],
    "libproc2/": ["inventory/*"],
    "netlink/": ["host/*", "netdev/*", "inventory/*", "affinity-ttcp/*"],
    "systemd/sd-event.h": ["host/sd_handles.hpp", "events/*", "control/*"],
    "systemd/sd-bus.h": ["host/sd_handles.hpp", "control/*", "behaviours/fences/*", "events/*", "affinityctl/*"],
    "spdlog/": ["core/*", "events/*", "control/*", "main.cpp", "options.cpp"],
    "CLI/": ["options.cpp", "affinityctl/*", "affinity-ttcp/*", "experiments/*", "affinity-exporter/*"],
    "nlohmann/": ["policy/*", "topology/latencies.cpp", "state/*", "measure/*", "status/*", "affinityctl/*", "affinity-ttcp/*", "experiments/*", "affinity-exporter/*"],
    "microhttpd.h": ["affinity-exporter/*"],
    "boost/": ["measure/*"],
    "curses.h": ["affinityctl/*"],
    "bpf/": ["steer/*", "affinityctl/intruders/*", "affinityctl/sharers/*"],
}
FILES = ["<fstream>", "<filesystem>", "<fcntl.h>", "<unistd.h>", "<dirent.h>", "<sys/stat.h>", "host/*"]
SOCKETS = ["<sys/socket.h>", "<sys/un.h>", "<netinet/*", "<netlink/*"]
LOGGING = ["<spdlog/*", "<iostream>", "<print>", "<syslog.h>"]
CLOCKS = [r"\b(?:steady|system|high_resolution)_clock\b", r"\bclock_gettime\b", r"\bgettimeofday\b", r"\btime\(nullptr\)"]
SETTERS = [r"\bsched_setaffinity\b", r"\bset_mempolicy\b", r"\bmigrate_pages\b"]
LIBRARY_HEADERS = ["<*.hpp>", "<netlink/*", "<systemd/*", "<sqlite3.h>", "<fmt/*", "<spdlog/*", "<re2/*", "<libproc2/*", "<yaml-cpp/*"]

# Patterns of files -> (what they must not know, headers, names and literals as regular expressions).
MUST_NOT_KNOW = [
    ("daemon/base/*", "kernel headers", ["<linux/*", "<sys/s*", "<sys/mman.h>", "<sys/ioctl.h>", "<sched.h>", "<fcntl.h>", "<dirent.h>"], []),
    ("daemon/base/*", "libraries", LIBRARY_HEADERS, []),
    ("daemon/host/*", "what a policy, a NIC or a process means", ["<yaml-cpp/*", "<netlink/route/*", "<libproc2/*"],
     [r'"policies', r'"class/net', r"\bPolicy\b", r"\bNic\b"]),
    ("daemon/policy/*", "the clock", ["<ctime>", "<time.h>"], CLOCKS),
    ("daemon/policy/*", "the bus", ["<systemd/*"], []),
    ("daemon/planner/*", "files", FILES, [r"\bfopen\b"]),
    ("daemon/planner/*", "sockets", SOCKETS, []),
    ("daemon/planner/*", "time of day", ["<ctime>", "<time.h>", "<sys/time.h>"], CLOCKS),
    ("daemon/planner/*", "logging", LOGGING, []),
    ("daemon/enforcer/*", "why an action was chosen", ["policy/*", "planner/match*", "planner/place*", "planner/assign*", "planner/check*",
                                                      "planner/explain*"], []),
    ("daemon/state/*", "how actions are carried out", ["enforcer/*"], SETTERS),
    ("daemon/measure/*", "policies, planner, actions", ["policy/*", "planner/*", "state/*"], []),
    ("daemon/core/*", "the event loop", ["<systemd/sd-event.h>", "host/sd_handles.hpp"], [r"\bsd_event\b"]),
    ("daemon/core/*", "the bus", ["<systemd/sd-bus.h>"], [r"\bsd_bus\b"]),
    ("daemon/core/*", "argv", ["<CLI/*", "<getopt.h>"], [r"\bargv\b"]),
    ("daemon/core/*", "JSON", ["<nlohmann/*"], [r"\bnlohmann\b"]),
    ("daemon/behaviours/*", "the event loop", ["<systemd/sd-event.h>", "host/sd_handles.hpp"], [r"\bsd_event\b"]),
    ("daemon/behaviours/*", "JSON", ["<nlohmann/*"], [r"\bnlohmann\b"]),
    ("daemon/world/*", "files", FILES, [r"\bfopen\b"]),
    ("daemon/world/*", "time of day", ["<ctime>", "<time.h>", "<sys/time.h>"], CLOCKS),
    ("daemon/load/*", "JSON", ["<nlohmann/*"], [r"\bnlohmann\b"]),
    ("daemon/status/*", "files of the host", FILES, []),
    ("daemon/control/*", "files of the host", ["<fstream>", "<filesystem>", "<dirent.h>", "host/root.hpp", "host/file.hpp"],
     [r'"/(?:etc|usr|var)/']),
    ("tools/affinityctl/*", "core, load, enforcer, state", ["core/*", "load/*", "behaviours/*", "enforcer/*", "state/*", "events/*", "control/*"], []),
    ("tools/affinityctl/survey/*", "files", FILES, [r"\bfopen\b"]),
    ("tools/affinityctl/survey/*", "sockets", SOCKETS, []),
    ("tools/affinityctl/survey/*", "time of day", ["<ctime>", "<time.h>", "<sys/time.h>"], CLOCKS),
    ("tools/affinityctl/survey/*", "logging", LOGGING, []),
    ("tools/affinity-ttcp/*", "policies, planner, actions", ["policy/*", "planner/*", "state/*", "enforcer/*", "core/*", "events/*", "control/*", "accounting/*"], []),
    ("tools/experiments/*", "policies, planner, actions", ["policy/*", "planner/*", "state/*", "enforcer/*", "core/*", "events/*", "control/*", "accounting/*"], []),
]
KERNEL_TREE = re.compile(r'"/(?:proc|sys)(?:/|")')
LOG_CALL = re.compile(r"\bspdlog::|\bstd::c(?:out|err|log)\b|\bfprintf\(stderr\b")


def arrows(source):
    """Includes of rooms that do not run down."""
    for number, header, is_angled in source.includes:
        target = header.split("/")[0]
        if is_angled or "/" not in header or source.room is None or target == source.room:
            continue
        if source.room not in RANK:
            yield f"{source.name}:{number}: the room {source.room} has no rank"
        elif target in RANK and RANK[target] >= RANK[source.room]:
            way = "sideways" if RANK[target] == RANK[source.room] else "up"
            yield f"{source.name}:{number}: {source.room} includes {header}: an arrow that runs {way}"


def libraries(source):
    for number, header, _ in source.includes:
        for library, places in LIBRARIES.items():
            if header.startswith(library) and not any(fnmatch.fnmatch(source.in_room, place) for place in places):
                yield f"{source.name}:{number}: {header} is only for {', '.join(places)}"


def must_not_know(source):
    for pattern, what, headers, names in MUST_NOT_KNOW:
        if not fnmatch.fnmatch(source.name, pattern):
            continue
        for number, header, is_angled in source.includes:
            written = f"<{header}>" if is_angled else header
            if any(fnmatch.fnmatch(written, unwanted) for unwanted in headers):
                yield f"{source.name}:{number}: {header}: must not know {what}"
        for number, (code, identifiers) in enumerate(zip(source.code, source.identifiers), 1):
            for name in names:
                # A rule that begins with a quotation mark is about a literal.
                if re.search(name, code if name.startswith('"') else identifiers):
                    yield f"{source.name}:{number}: {re.search(name, code).group(0)}: must not know {what}"


def kernel_trees(source):
    """Only host names /proc and /sys; others have a host::Root."""
    for number, line in enumerate(source.code, 1):
        if source.room != "host" and KERNEL_TREE.search(line):
            yield f"{source.name}:{number}: names a kernel tree; only host does"


def logs(source):
    """Rooms below core return what they have to say."""
    if source.room in RANK and RANK[source.room] < RANK["core"]:
        for number, line in enumerate(source.identifiers, 1):
            if LOG_CALL.search(line):
                yield f"{source.name}:{number}: {source.room} must not log: rooms below core return values"


def behaviours(files):
    """The daemon works without any behaviour: rooms below name none, neither in includes nor as namespace or class; nor do others."""
    names = {parts[2] for source in files if (parts := source.name.split("/"))[:2] == ["daemon", "behaviours"] and len(parts) > 3}
    known = re.compile(r"\bbehaviours::|\b(?:" + "|".join(name.capitalize() for name in sorted(names)) + r")\b")
    for source in files:
        for number, header, _ in source.includes if source.room == "behaviours" else ():
            if (own := source.folder.partition("/")[2]) and header.startswith("behaviours/") and header.count("/") > 1 and not header.startswith(own + "/"):
                yield f"{source.name}:{number}: {header}: behaviours do not know each other"
        if source.room not in ("planner", "world", "load", "core"):
            continue
        for number, header, is_angled in source.includes:
            if not is_angled and (names | {"behaviours"}) & set(re.split(r"[/._]", header)):
                yield f"{source.name}:{number}: {header}: must not know behaviours"
        for number, line in enumerate(source.identifiers, 1):
            if names and (word := known.search(line)):
                yield f"{source.name}:{number}: {word.group(0)}: must not know behaviours"


CHECKS = [arrows, libraries, must_not_know, kernel_trees, logs]
