#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel 7.2, where igb and e1000e report over netlink which interrupt serves which queue: all sources agree, and each alone gives the same
placement."""
import json

import machine
import traffic
from daemon import await_order, install, status, traffic_at_home
from harness import main, run, test, wait_for

ALL = range(1, 5)
NICS = [f"ens{number}" for number in ALL]
told = {}


@test()
def all_links_are_up():
    install()
    traffic.wire_up(ALL)


@test()
def netlink_links_queues_to_interrupts():
    told.update(json.loads(run("/host/vm-sources", *NICS)))
    for nic in NICS:
        assert told["netlink"][nic], f"{nic}: netlink tells of no interrupt: {told}"
    assert len(told["netlink"]["ens1"]) == len(machine.data_irqs("ens1")), told["netlink"]["ens1"]


@test()
def every_source_knows_the_interrupts_that_the_kernel_lists():
    for nic in NICS:
        listed = {str(irq) for irq in machine.data_irqs(nic)}
        for source in ("msi_irqs", "label", "all"):
            assert set(told[source][nic]) == listed, f"{nic} by {source}: {told[source][nic]}, not {listed}"


@test()
def the_sources_agree_on_every_interrupt_they_know():
    for nic in NICS:
        for irq, facts in told["netlink"][nic].items():
            for source in ("msi_irqs", "label", "all"):
                assert told[source][nic][irq][1] == facts[1], f"{nic}, {irq}: {source} says {told[source][nic][irq]}, netlink {facts}"


@test()
def each_source_alone_gives_the_same_placement():
    for nic in NICS:
        for irq, facts in told["netlink"][nic].items():
            wanted = {source: told[source][nic][irq][2] for source in told}
            assert facts[2] and set(wanted.values()) == {facts[2]}, f"{nic}, {irq}: {wanted}"


@test()
def the_daemon_takes_netlinks_word():
    vectors = {nic["name"]: nic["vectors"] for nic in json.loads(run("affinityctl", "nics", "--json"))}
    for nic in NICS:
        by_netlink = {str(vector["irq"]) for vector in vectors[nic] if vector["source"] == "netlink"}
        assert by_netlink == set(told["netlink"][nic]), f"{nic}: {vectors[nic]}"


@test()
def receivers_and_interrupts_get_the_same_cpu():
    traffic.write_units()
    traffic.start(ALL)
    wait_for(lambda: all(traffic.receivers(ALL).values()), "all receivers run")
    traffic.write_policies(ALL)
    await_order(ALL)
    traffic_at_home(ALL)
    assert not status()["problems"], status()["problems"]


import wakes  # noqa: E402,F401  more tests, after these

if __name__ == "__main__":
    main()
