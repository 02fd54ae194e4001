#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs that count their CPUs when they start: they make as many threads with the daemon as without it, and a second
and a half after `settle` each thread has a place of its own. Needs root, two CPUs or more, and Debian's haproxy, golang-go, a JDK, g++, nginx-light, postgresql and
redis-server; a program that is not there is named and left out.

    tests/bench/counting.py build [--restarts 20] [--only haproxy]
"""
import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SETTLE = 2.0
GO = """package main
import ("fmt"; "runtime"; "time")
func main() { fmt.Println(runtime.GOMAXPROCS(0)); time.Sleep(time.Minute) }
"""
JAVA = """public class Count { public static void main(String[] a) throws Exception {
    System.out.println(Runtime.getRuntime().availableProcessors()); Thread.sleep(60000); } }
"""
OPENMP = """#include <cstdio>
#include <omp.h>
#include <unistd.h>
int main() {
    std::printf("%d\\n", omp_get_max_threads());
    std::fflush(stdout);
#pragma omp parallel
    ::sleep(60);
}
"""
PYTHON = "import os, time\nprint(len(os.sched_getaffinity(0)), flush=True)\ntime.sleep(60)\n"
HAPROXY = "global\n  stats timeout 10s\ndefaults\n  mode http\n  timeout client 5s\n  timeout server 5s\n  timeout connect 5s\n"
HAPROXY += "frontend f\n  bind unix@{}/haproxy.socket\n"
NGINX = "worker_processes auto;\ndaemon off;\npid {0}/nginx.pid;\nerror_log /dev/null;\nevents {{}}\nhttp {{ access_log off; server {{ listen unix:{0}/nginx.socket; }} }}\n"


def compiled(folder):
    """Programs and the commands that make them."""
    for name, text in (("count.go", GO), ("Count.java", JAVA), ("openmp.cpp", OPENMP)):
        (folder / name).write_text(text, encoding="utf-8")
    yield "go", ["go", "build", "-o", folder / "go-count", folder / "count.go"], [folder / "go-count"]
    yield "java", ["javac", "-d", folder, folder / "Count.java"], ["java", "-XX:+UseParallelGC", "-cp", folder, "Count"]
    yield "openmp", ["g++", "-fopenmp", "-o", folder / "openmp-count", folder / "openmp.cpp"], [folder / "openmp-count"]


def programs(folder):
    """Name, command, user."""
    for name, make, run in compiled(folder):
        if shutil.which(make[0]) and subprocess.run(make, env=os.environ | {"GOCACHE": str(folder / "go")}, capture_output=True, check=False).returncode == 0:
            yield name, run, None
    (folder / "haproxy.cfg").write_text(HAPROXY.format(folder), encoding="utf-8")
    (folder / "nginx.conf").write_text(NGINX.format(folder), encoding="utf-8")
    yield "python", [sys.executable, "-c", PYTHON, folder], None
    yield "haproxy", ["haproxy", "-db", "-f", folder / "haproxy.cfg"], None
    yield "nginx", ["nginx", "-c", folder / "nginx.conf"], None
    yield "redis", ["redis-server", "--port", "0", "--unixsocket", folder / "redis", "--io-threads", "4", "--save", "", "--dir", folder], None
    for binary in pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"):
        data = folder / "data"
        folder.chmod(0o755)
        data.mkdir(mode=0o700)
        shutil.chown(data, "postgres")
        subprocess.run([binary.with_name("initdb"), "-D", data], user="postgres", cwd=data, capture_output=True, check=True)
        yield "postgresql", [binary, "-D", data, "-c", "listen_addresses=", "-c", f"unix_socket_directories={data}"], "postgres"


def family(leader):
    """A process and its descendants, also those with sessions of their own; proc_pid_stat(5)."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if words[0] != "Z":
                parents[int(stat.parent.name)] = int(words[1])
    found = [leader]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def masks(leader):
    """Of all threads of the session, by thread."""
    found = {}
    for pid in family(leader):
        for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
            with contextlib.suppress(OSError):
                lines = status.read_text(encoding="utf-8", errors="replace").splitlines()
                found[int(status.parent.name)] = next(line.split()[1] for line in lines if line.startswith("Cpus_allowed_list"))
    return found


def run_once(command, user):
    """What it counted: what it prints or, if it prints nothing, how many threads it has (those of Go's runtime vary by themselves). And the
    masks of its threads, some time after it must have settled."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                          start_new_session=True, user=user, cwd="/") as process:
        try:
            time.sleep(SETTLE + 1.5)
            found = masks(process.pid)
            os.set_blocking(process.stdout.fileno(), False)
            printed = (process.stdout.read() or b"").split(b"\n")[0].decode(errors="replace")
            return printed if printed.isdigit() else str(len(found)), found
        finally:
            everybody = family(process.pid)
            process.terminate()  # so that it removes its sockets
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            for pid in everybody:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    build = options.build.resolve()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="affinityd-counting-") as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        policies = folder / "policies"
        policies.mkdir()
        known = [one for one in programs(folder) if shutil.which(str(one[1][0]))]
        for file, match in (("counting", f"cmdline: \"*{folder.name}*\""), ("children", "parent: counting")):
            (policies / f"{file}.yaml").write_text(f"version: 1\nmatch: {{{match}}}\ncpus: \"0-1\"\nspread: cpu\nbind: cpu\n", encoding="utf-8")
        without = {name: run_once(command, user)[0] for name, command, user in known if not options.only or name in options.only}
        daemon = subprocess.Popen([build / "daemon/affinityd", "--policies", policies, "--runtime-dir", folder / "run", "--state-dir",
                                   folder / "state"], stderr=subprocess.DEVNULL)
        stack.callback(lambda: (daemon.terminate(), daemon.wait()))
        time.sleep(2)
        for name, command, user in known:
            if name not in without:
                continue
            same = right = 0
            for _ in range(options.restarts):
                count, found = run_once(command, user)
                same += count == without[name]
                right += bool(found) and all(mask in ("0", "1") for mask in found.values())
            wrong += 2 * options.restarts - same - right
            print(f"{name}: counts {without[name]} without the daemon; with it the same in {same} of {options.restarts} restarts, "
                  f"each thread in its place in {right}", flush=True)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
