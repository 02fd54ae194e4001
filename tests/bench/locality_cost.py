#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of `affinityctl locality` for a server at full load: requests per second of nginx (two workers, each with a listener of its own) that
wrk asks over a veth pair between two network namespaces, in rounds with and without the command, in turn,
while the connections stay, workers and clients bound to two CPUs (who has which connection and runs where decides more than anything else).
Needs root and Debian's nginx-light and wrk. Prints ratios with their 95 % intervals: of requests per second, which other load disturbs, and per
second of CPU time that server and clients used, which is what a server at full load has; the exit code is 1 if this one is below 0.97.

    tests/bench/locality_cost.py build [--rounds 44] [--seconds 1] [--way=--udp | --nothing]
"""
import argparse
import contextlib
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

LEAST = 0.97
CPUS = sorted(os.sched_getaffinity(0))[:2]
NGINX = """worker_processes 2; daemon off; pid {0}/nginx.pid; error_log /dev/null; user root;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 100000000; server {{ listen 10.78.0.1:8080 reuseport; location / {{ return 200 "ok"; }} }} }}
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=30)


def link(stack, near, far):
    """Two namespaces and a cable with two queues between them."""
    for name in (near, far):
        ip("netns", "add", name)
        stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False, capture_output=True)
    ip("link", "add", "cost0", "netns", near, "numrxqueues", "2", "numtxqueues", "2", "type", "veth", "peer", "name", "cost1",
       "numrxqueues", "2", "numtxqueues", "2", "netns", far)
    for space, name, host in ((near, "cost0", 1), (far, "cost1", 2)):
        ip("-n", space, "address", "add", f"10.78.0.{host}/24", "dev", name)
        ip("-n", space, "link", "set", name, "up")


def end(process):
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
    if process.poll() is None:
        process.kill()
        process.wait()


def answers(pid):
    """TCP segments with data that were sent for the first time in the namespace of a process: one for each answer."""
    text = pathlib.Path(f"/proc/{pid}/net/netstat").read_text(encoding="ascii")
    names, values = (line.split() for line in text.splitlines() if line.startswith("TcpExt:"))
    return int(values[names.index("TCPOrigDataSent")])


def cpu_time(pids):
    """Seconds that these processes ran; schedstat, which counts nanoseconds."""
    return sum(int(pathlib.Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) for pid in pids) / 1e9


def wait_until_it_counts(pid, is_other):
    """Loading the program takes a tenth of a second of CPU time, once."""
    end_of_wait = time.monotonic() + 20
    while not is_other and time.monotonic() < end_of_wait:
        time.sleep(0.05)
        with contextlib.suppress(OSError):
            links = [os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
            if any(link.startswith("anon_inode:") and "bpf" in link and "prog" not in link and "map" not in link for link in links):
                return
    if not is_other:
        raise SystemExit("affinityctl does not count here")


def one_window(options, master, busy, watches):
    """Requests per second, and per second of CPU time that server and clients used."""
    with contextlib.ExitStack() as stack:
        if watches:
            words = [options.build / "tools/affinityctl/affinityctl", "locality", "--for", "1h", "--json",
                     *options.way.split()]
            words = ["sleep", "3600"] if options.nothing else words
            watching = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
            stack.callback(end, watching)
            wait_until_it_counts(watching.pid, options.way == "--sample" or options.nothing)
        time.sleep(0.5)  # both ways
        before, begin, used = answers(master), time.monotonic(), cpu_time(busy)
        time.sleep(options.seconds)
        count = answers(master) - before
        rates = count / (time.monotonic() - begin), count / (cpu_time(busy) - used)
        if watches and watching.poll() is not None:
            raise SystemExit("affinityctl ended by itself")
    return rates


def interval(ratios):
    """Median and its 95 % interval, by the bootstrap: rounds that other load disturbs must not decide."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(4000))
    return statistics.median(ratios), medians[100], medians[-101]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=44, help="pairs of rounds, 2 or more")
    parser.add_argument("--seconds", type=float, default=1, help="of each round")
    parser.add_argument("--way", default="", help="an option of affinityctl: --way=--udp or --way=--sample")
    parser.add_argument("--nothing", action="store_true", help="a program that does nothing instead: how far chance goes")
    options = parser.parse_args()
    options.build = options.build.resolve()
    near, far = (f"affinity-cost-{side}-{os.getpid()}" for side in ("near", "far"))
    with tempfile.TemporaryDirectory(prefix="affinityd-cost-") as folder, contextlib.ExitStack() as stack:
        link(stack, near, far)
        configuration = pathlib.Path(folder, "nginx.conf")
        configuration.write_text(NGINX.format(folder), encoding="utf-8")
        server = subprocess.Popen(["ip", "netns", "exec", near, "nginx", "-c", str(configuration), "-p", folder], stderr=subprocess.DEVNULL)
        stack.callback(end, server)
        time.sleep(1)
        total = int((options.seconds + 1) * 2 * options.rounds) + 60
        clients = []
        for cpu in CPUS:
            words = ["ip", "netns", "exec", far, "taskset", "-c", str(cpu), "wrk", "-t1", "-c64", f"-d{total}s", "http://10.78.0.1:8080/"]
            clients.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
            stack.callback(end, clients[-1])
        time.sleep(3)
        children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text(encoding="ascii").split()
        for cpu, worker in zip(CPUS, children, strict=True):
            os.sched_setaffinity(int(worker), {cpu})
        busy = [*children, *(client.pid for client in clients)]
        found = ([], [])
        for number in range(options.rounds):
            rates = {watches: one_window(options, server.pid, busy, watches) for watches in ((False, True) if number % 2 == 0 else (True, False))}
            for ratios, with_it, without in zip(found, rates[True], rates[False], strict=True):
                ratios.append(with_it / without)
            print(f"round {number + 1}: {rates[False][0]:.0f} requests a second without, {rates[True][0]:.0f} with; "
                  f"of equal CPU time {found[1][-1]:.3f}", flush=True)
    for name, ratios in (("requests per second", found[0]), ("requests per second of CPU time", found[1])):
        ratio, low, high = interval(ratios)
        print(f"{name}, with affinityctl locality against without: {ratio:.3f} ({low:.3f} to {high:.3f}), at least {LEAST:.2f}: "
              f"{'ok' if ratio >= LEAST else 'MISSED'}")
    return ratio < LEAST


if __name__ == "__main__":
    sys.exit(main())
