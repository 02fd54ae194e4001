#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a condition that comes true after a program was started is seen: arguments that it writes, a child writes, a user that it becomes, a
port on which it listens, a control group (as of a unit) to which it is moved, each 100 times after a moment by chance. The regular pass is an hour away. With --storm, also while a user floods
the kernel's process events, and with what the daemon costs meanwhile. --cost compares that with another build in turn: seconds of CPU for
each thousand forks of the machine. Needs root and two CPUs or more.

    tests/bench/late.py build [--times 100] [--longest 0.3] [--seed 1] [--storm exec]
    tests/bench/late.py build --cost other-build [--times 5] [--storm exec]
"""
import argparse
import contextlib
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "integration/late_program.py"
MOUNTED = pathlib.Path("/sys/fs/cgroup")
POLICIES = {"group": "cgroup: \"/{name}/*\"", "title": "cmdline: \"late: checkpointer*\"", "user": "cmdline: \"*{name}*\", user: nobody", "listen": "listen: {port}"}
PATIENCE = 30


def allowed(pid):
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Cpus_allowed_list"):
                return line.split()[1]
    return None


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def latencies(what, moments, name, port):
    """Seconds from the moment when it comes true, for programs that run one after the other."""
    found = []
    for moment in moments:
        with subprocess.Popen([sys.executable, PROGRAM, what, str(moment), str(port), name], stdout=subprocess.PIPE, text=True) as program:
            at, pid = program.stdout.readline().split()
            while allowed(pid) != "1" and time.monotonic() < float(at) + PATIENCE:
                time.sleep(0.005)
            found.append(time.monotonic() - float(at))
            program.kill()
    return found


@contextlib.contextmanager
def control_group(name):
    """Two folders deep. cgroups(7): those of version 2, which may be mounted beside version 1."""
    top = next(folder for folder in (MOUNTED, MOUNTED / "unified") if (folder / "cgroup.controllers").exists()) / name
    inner = top / "inner"
    inner.mkdir(parents=True)
    os.environ["AFFINITYD_LATE_GROUP"] = str(inner)
    try:
        yield
    finally:
        while (inner / "cgroup.procs").read_text(encoding="ascii"):
            time.sleep(0.05)  # who was killed ends
        inner.rmdir()
        top.rmdir()


def policies_in(folder, name, port):
    (folder / "policies").mkdir()
    for file, match in POLICIES.items():
        text = f"version: 1\nmatch: {{{match.format(name=name, port=port)}}}\ncpus: \"1\"\nbind: set\n"
        (folder / f"policies/{file}.yaml").write_text(text, encoding="utf-8")
    (folder / "affinityd.yaml").write_text("version: 1\nreconcile: 1h\n", encoding="utf-8")


@contextlib.contextmanager
def daemon_of(build, folder):
    """A daemon under the policies of the folder, once it is at work."""
    with subprocess.Popen([build / "daemon/affinityd", "--config", folder / "affinityd.yaml", "--policies", folder / "policies",
                           "--runtime-dir", folder / "run", "--state-dir", folder / "state"], stderr=subprocess.DEVNULL) as daemon:
        try:
            time.sleep(2)
            yield daemon.pid
        finally:
            daemon.terminate()


def storm_of(build, kind, seconds):
    """Starts it; it ends by itself."""
    return subprocess.Popen([build / "tests/bench/flood", kind, str(seconds)], stdout=subprocess.DEVNULL)


def used(pid):
    """CPU seconds of a process; proc_pid_stat(5)."""
    words = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def forks():
    """Of the machine, since it was booted; proc_stat(5)."""
    lines = pathlib.Path("/proc/stat").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("processes "))


def compare(options, folder):
    """CPU seconds for each thousand forks under a storm, of both builds in turn."""
    found = {options.build: [], options.cost: []}
    for _ in range(options.times):
        for build, costs in found.items():
            with daemon_of(build, folder) as pid, storm_of(options.build, options.storm or "exec", 10) as storm:
                before, begun = used(pid), forks()
                storm.wait()
                costs.append(1000 * (used(pid) - before) / (forks() - begun))
    for build, costs in found.items():
        print(f"{build}: {statistics.median(costs):.4f} CPU s for 1,000 forks ({min(costs):.4f} to {max(costs):.4f})")
    print(f"ratio of the medians {statistics.median(found[options.build]) / statistics.median(found[options.cost]):.3f}")


def measure(options, folder, name, port):
    chance = random.Random(options.seed)
    with daemon_of(options.build, folder) as pid:
        for what in ("title", "child", "user", "listen", "group"):
            storm = storm_of(options.build, options.storm, 600) if options.storm else None
            try:
                moments = [chance.uniform(0, options.longest) for _ in range(options.times)]
                before, begun = used(pid), time.monotonic()
                times = sorted(latencies(what, moments, name, port))
                share = (used(pid) - before) / (time.monotonic() - begun)
            finally:
                if storm:
                    storm.terminate()
                    storm.wait()
            within = [sum(time <= limit for time in times) for limit in (0.3, 6)]
            print(f"{what}: median {times[len(times) // 2]:.3f} s, worst {times[-1]:.3f} s; {within[0]} within 0.3 s and {within[1]} within 6 s "
                  f"of {len(times)}; the daemon used {share:.2f} of a CPU", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--longest", type=float, default=0.3, help="seconds from the start to the moment, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--storm", help="of these events: see flood.cpp")
    parser.add_argument("--cost", type=pathlib.Path, help="another build")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="affinityd-late-") as folder:
        folder = pathlib.Path(folder)
        name, port = f"{folder.name}-" + "x" * 40, free_port()
        policies_in(folder, name, port)
        with control_group(name):
            if options.cost:
                compare(options, folder)
            else:
                measure(options, folder, name, port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
