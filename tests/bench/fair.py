#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fair connections are shared among nginx's two workers while listeners are steered: with one client, three and a thousand, whose packets
arrive on both queues, and with a thousand whose packets all arrive on one, also where a hundred a second are closed at once. There steering must
be withdrawn within 90 seconds, and nowhere else: nor where one worker has 500 connections from before the daemon was started, and new ones come
on both queues, nor where one client keeps a worker busy and short connections are another server's.

    tests/bench/fair.py build
"""
import argparse
import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import sys
import time

from steer import imports

LIMIT = 90  # seconds
# Connections, whether their packets arrive on one queue only
SETTINGS = (("worker_connections 256", "worker_connections 2048"), ("daemon off;", "daemon off; worker_rlimit_nofile 4096;"),
            ("access_log off;", "access_log off; keepalive_timeout 1h; keepalive_requests 1000000000;"))
KINDS = ((1, False), (3, False), (1000, False), (1000, True))


def send_on_one_queue(case, is_one):
    """The far end of a veth pair hands packets to the queue on which they were sent."""
    for queue in range(2):
        mask = "3" if queue == 0 and is_one else "0"
        path = f"/sys/class/net/s{case.mark}t/queues/tx-{queue}/xps_cpus"
        case.far.run("sh", "-c", f"echo {mask} >{path}")


def share(case, master):
    """Of all connections, those of the worker that has most."""
    import steered
    counts = [len(steered.incoming_cpus(pid, False)) for pid in case.workers(master)]
    return max(counts) / max(1, sum(counts))


def is_withdrawn(daemon):
    return any(one["state"] == "withdrawn" for policy in daemon.status()["policies"] for one in policy.get("steer", {}).get("left", []))


def measure(case, connections, is_one):
    send_on_one_queue(case, is_one)
    daemon = case.daemon("accept")
    master = case.nginx(daemon.folder)
    try:
        daemon.start()
        case.wait_until_steered(master)
        with case.client(connections) as ask:
            ask()
            begun, withdrawn = time.monotonic(), None
            while withdrawn is None and time.monotonic() - begun < LIMIT:
                time.sleep(1)
                withdrawn = time.monotonic() - begun if is_withdrawn(daemon) else None
            worst = share(case, master)
    finally:
        daemon.stop()
        os.kill(master, signal.SIGTERM)
    told = "not withdrawn" if withdrawn is None else f"withdrawn after {withdrawn:.0f} s"
    where = "all on one queue" if is_one else "on both queues"
    print(f"{connections} connections, {where}: the busier of two workers has {worst:.0%}; steering {told}", flush=True)
    return (withdrawn is not None) == is_one


def measure_old(case):
    """A daemon that is killed leaves listeners told their CPUs: what comes on one queue is one worker's. Then a later daemon is started."""
    send_on_one_queue(case, True)
    daemon = case.daemon("accept")
    master = case.nginx(daemon.folder)
    try:
        daemon.start()
        case.wait_until_steered(master)
        daemon.process.kill()
        daemon.process.wait()
        with case.client(500) as ask_old:
            ask_old()
            worst = share(case, master)
            send_on_one_queue(case, False)
            daemon.start()
            case.wait_until_steered(master)
            begun, withdrawn = time.monotonic(), None
            while withdrawn is None and time.monotonic() - begun < LIMIT:
                with case.client(20) as ask:
                    for _ in range(5):
                        ask()
                        time.sleep(1)
                withdrawn = time.monotonic() - begun if is_withdrawn(daemon) else None
    finally:
        daemon.stop()
        os.kill(master, signal.SIGTERM)
    told = "not withdrawn" if withdrawn is None else f"withdrawn after {withdrawn:.0f} s"
    print(f"500 old connections, of which one of two workers has {worst:.0%}, and new ones on both queues; steering {told}", flush=True)
    return withdrawn is None


# A connection that is closed as soon as it was answered, a hundred times a second.
SHORT = """import socket, sys, time
next = time.monotonic()
while True:
    with socket.create_connection(("10.98.0.1", int(sys.argv[1])), 5) as one:
        one.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
        while one.recv(4096):
            pass
    next += 0.01
    time.sleep(max(0, next - time.monotonic()))
"""
# What they come to where they are not nginx's.
OTHER = """import socket
listener = socket.create_server(("10.98.0.1", 8081), backlog=128)
print("listens", flush=True)
while True:
    listener.accept()[0].close()
"""
# One client that asks as fast as it can, over one connection.
HEAVY = """import socket
one = socket.create_connection(("10.98.0.1", 8080), 5)
for _ in range(100_000_000):
    one.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    assert one.recv(4096)
"""


def measure_short(case, is_one, are_others):
    """Connections that are too short to be counted; of another server, while nginx has a single client that keeps one of its workers busy."""
    send_on_one_queue(case, is_one)
    daemon = case.daemon("accept")
    master = case.nginx(daemon.folder)
    with contextlib.ExitStack() as stack:
        def start(namespace, *command):
            process = subprocess.Popen(namespace.command(sys.executable, "-c", *command), stdout=subprocess.PIPE, text=True)
            stack.callback(process.stdout.close)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        stack.callback(os.kill, master, signal.SIGTERM)
        stack.callback(daemon.stop)
        daemon.start()
        case.wait_until_steered(master)
        if are_others:
            start(case.near, OTHER).stdout.readline()
            start(case.far, HEAVY)
        start(case.far, SHORT, "8081" if are_others else "8080")
        begun, withdrawn = time.monotonic(), None
        while withdrawn is None and time.monotonic() - begun < LIMIT:
            time.sleep(1)
            withdrawn = time.monotonic() - begun if is_withdrawn(daemon) else None
    told = "not withdrawn" if withdrawn is None else f"withdrawn after {withdrawn:.0f} s"
    where = "to another server, and one client that keeps a worker busy" if are_others else "all on one queue" if is_one else "on both queues"
    print(f"short connections, {where}; steering {told}", flush=True)
    return (withdrawn is not None) == (is_one and not are_others)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args()
    imports(options.build)
    import steered
    for old, new in SETTINGS:
        steered.NGINX = steered.NGINX.replace(old, new)
    good = True
    for run in (*(functools.partial(measure, connections=connections, is_one=is_one) for connections, is_one in KINDS), measure_old,
                *(functools.partial(measure_short, is_one=is_one, are_others=others) for is_one, others in ((True, False), (False, False), (False, True)))):
        case = steered.Steered()
        case.setUp()
        with contextlib.ExitStack() as stack:
            stack.callback(case.doCleanups)
            good &= run(case)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
