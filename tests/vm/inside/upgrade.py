#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages, upgraded again and again while nginx answers over the wire of queues.py: no worker, no interrupt and no
packet steering is let go for a moment, and no connection fails. /host/packages has the packages; an argument says how many upgrades."""
import os
import pathlib
import sys
import threading

import machine
from daemon import status
from harness import main, run, test, wait_for
from queues import ETC, EXAMPLES, HTTP, NGINX, NIC, Server, asking, has_own_listeners, new_ones, wire_up

UPGRADES = int(sys.argv[1]) if len(sys.argv) > 1 else 3
FIRST, LATER = pathlib.Path("/tmp/first.deb"), pathlib.Path("/tmp/later.deb")
original = {}


def dpkg(package):
    run("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--force-confdef", "--force-confold", "--install", str(package), patience=600)


def pids():
    return [int(pid) for pid in machine.read("/sys/fs/cgroup/system.slice/nginx.service/cgroup.procs").split()]


def width(mask):
    """How many CPUs are in a set, or in one of packet steering's files."""
    return len(mask) if isinstance(mask, set) else int(mask.replace(",", ""), 16).bit_count()


@test()
def a_wire_and_the_package():
    # Compression is work for an emulated CPU that has nothing to do with an upgrade. The later one has other settings.
    script = f"""cd $(mktemp -d) && dpkg-deb --raw-extract /host/packages/affinityd_*.deb new && dpkg-deb --root-owner-group -Znone --build new {FIRST} &&
        echo "# later" >>new/etc/affinityd/affinityd.yaml && (cd new && md5sum etc/affinityd/affinityd.yaml) >sum &&
        sed -i "/affinityd.yaml/d" new/DEBIAN/md5sums && cat sum >>new/DEBIAN/md5sums && sed -i 's/^Version: .*/&+later/' new/DEBIAN/control &&
        dpkg-deb --root-owner-group -Znone --build new {LATER}"""
    run("sh", "-c", script, patience=600)
    dpkg(FIRST)
    wire_up()
    original.update({irq: machine.requested(irq) for irq in machine.data_irqs(NIC)})
    assert run("systemctl", "is-active", "affinityd").strip() == "active"


@test(3000)
def upgrades_under_load_have_no_gap():
    (ETC / "nginx/nginx.conf").write_text(NGINX, encoding="utf-8")
    (ETC / "affinityd/affinityd.yaml").write_text("version: 1\nreconcile: 7m\n", encoding="utf-8")
    server = Server("nginx", "nginx", new_ones)
    server.policy((EXAMPLES / "nginx.yaml").read_text(encoding="utf-8"), "accept")
    run("affinityctl", "reload")
    with new_ones():
        server.await_so(has_own_listeners)
    irqs = machine.data_irqs(NIC)

    def held():
        return {f"task {pid}": os.sched_getaffinity(pid) for pid in workers} | {f"irq {irq}": machine.requested(irq) for irq in irqs} | machine.steering(NIC)

    workers = pids()
    before, looks, gaps, moves, over = held(), [0], [], [], threading.Event()
    assert {len(before[f"irq {irq}"]) for irq in irqs} == {1}, before

    def witness():
        seen = before
        while not over.wait(0.001):
            looks[0] += 1
            now = held()
            gaps.extend((name, before[name], now[name]) for name in before if width(now[name]) != width(before[name]))
            moves.extend((upgrade[0], name, seen[name], now[name]) for name in before if now[name] != seen[name])
            seen = now

    upgrade = [0]
    watching = threading.Thread(target=witness)
    with asking(HTTP, 500, 100, 200):
        watching.start()
        try:
            for number in range(UPGRADES):
                upgrade[0] = number
                daemon = run("systemctl", "show", "-P", "MainPID", "affinityd")
                dpkg(FIRST if number % 2 else LATER)
                wait_for(lambda old=daemon: run("systemctl", "show", "-P", "MainPID", "affinityd") not in ("0\n", old), "another daemon")
                wait_for(lambda: status()["policies"], "it has the policy")
        finally:
            over.set()
            watching.join()
    assert not gaps, f"{len(gaps)} in {looks[0]} looks: {gaps[:5]}"
    assert machine.read(ETC / "affinityd/affinityd.yaml") == "version: 1\nreconcile: 7m", "edited settings are kept"
    # A new daemon gives lanes out anew (affinityd(8)): that is no gap, but told.
    told = f"{len(workers)} processes, {len(irqs)} interrupts and {len(before) - len(workers) - len(irqs)} files of packet steering"
    first = [f"{name} at upgrade {number + 1}: {old} to {new}" for number, name, old, new in moves[:8]]
    return f"{UPGRADES} upgrades, 0 gaps in {looks[0]} looks at {told}, 0 connections failed; {len(moves)} went to another lane {first}"


@test()
def the_last_daemon_knows_what_was_there_before_the_first():
    workers = pids()
    run("systemctl", "stop", "affinityd", patience=80)
    wait_for(lambda: {irq: machine.requested(irq) for irq in machine.data_irqs(NIC)} == original, lambda: f"{original}", 20)
    assert all(os.sched_getaffinity(pid) == machine.online() for pid in workers)


if __name__ == "__main__":
    main()
