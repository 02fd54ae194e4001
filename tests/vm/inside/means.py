# SPDX-License-Identifier: Apache-2.0
"""The stronger means of a policy, on a machine with two nodes: a cpuset set through systemd, and memory that follows its process. Importing
this module adds its tests to those of a machine."""
import json
import pathlib
import re

import machine
from harness import run, test, wait_for
from traffic import POLICIES

UNIT = "hoarder.service"
MEGABYTES = 64
# Allocates memory and writes to it, so that the kernel places it; then starts a child that sets its own mask to all CPUs it may have.
PROGRAM = f"""import os, time
data = bytearray(b'x') * ({MEGABYTES} << 20)
while True:
    os.sched_setaffinity(0, range(os.cpu_count()))
    time.sleep(0.2)
"""
# The daemon does not fight a program that keeps asking for all CPUs: the cpuset confines it.
POLICY = 'version: 1\nmatch: {{unit: {unit}}}\ncpus: "node:{node}"\nbind: set\nmeans: cpuset\ndrift: yield\nmemory: follow\n'


def hoarder():
    return int(run("systemctl", "show", "-P", "MainPID", UNIT))


def node_cpus(node):
    return machine.cpus(machine.read(f"/sys/devices/system/node/node{node}/cpulist"))


def pages(node):
    """Megabytes of the hoarder's private memory on a node."""
    text = machine.read(f"/proc/{hoarder()}/numa_maps")
    return sum(int(number) for line in text.splitlines() if "anon=" in line for number in re.findall(rf" N{node}=(\d+)", line)) * 4096 >> 20


def write_policy(node):
    (POLICIES / "hoarder.yaml").write_text(POLICY.format(unit=UNIT, node=node), encoding="utf-8")


def property_of_unit():
    return machine.cpus(",".join(run("systemctl", "show", "-P", "AllowedCPUs", UNIT).split()))


def is_on(node):
    return property_of_unit() == machine.allowed(hoarder()) == node_cpus(node)


def explained():
    return json.loads(run("affinityctl", "explain", str(hoarder()), "--json"))


def explained_memory():
    processes = json.loads(run("affinityctl", "status", "--json"))["processes"]
    return next((process["memory"]["state"] for process in processes if "memory" in process), "")


def told():
    return f"AllowedCPUs {property_of_unit()}, mask {machine.allowed(hoarder())}, node 0: {pages(0)} MiB, node 1: {pages(1)} MiB"


@test()
def a_program_that_always_takes_all_cpus_is_held_by_a_cpuset():
    pathlib.Path("/tmp/hoarder.py").write_text(PROGRAM, encoding="utf-8")
    run("systemd-run", f"--unit={UNIT}", "numactl", "--preferred=0", "/usr/bin/python3", "/tmp/hoarder.py")
    wait_for(lambda: pages(0) >= MEGABYTES, told)
    write_policy(0)
    wait_for(lambda: is_on(0), told)


@test()
def explain_tells_of_the_cpuset():
    # The kernel has it a moment before systemd answers.
    wait_for(lambda: explained()["means"] == {"cpuset_of": UNIT, "state": "in place"}, explained)


@test()
def its_memory_follows_it_to_the_other_node():
    assert pages(1) < MEGABYTES / 4, told()
    write_policy(1)
    wait_for(lambda: is_on(1), told)
    wait_for(lambda: pages(1) >= MEGABYTES > 4 * pages(0), told)
    return told()


@test()
def its_memory_is_spread_over_all_nodes():
    (POLICIES / "hoarder.yaml").write_text(f"version: 1\nmatch: {{unit: {UNIT}}}\nbind: set\nmemory: interleave\n", encoding="utf-8")
    wait_for(lambda: min(pages(0), pages(1)) > MEGABYTES / 3, told)
    wait_for(lambda: "spread in" in explained_memory(), explained_memory)
    write_policy(1)
    wait_for(lambda: pages(1) >= MEGABYTES > 4 * pages(0), told)
    return told()


@test()
def the_cpuset_goes_with_the_policy():
    (POLICIES / "hoarder.yaml").unlink()
    wait_for(lambda: not property_of_unit() and machine.allowed(hoarder()) == machine.online(), told)
    run("systemctl", "stop", UNIT)
