#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A server behind several NICs: bonds in three modes, a VLAN on a bond, a bridge with ports of guests, a macvlan. The other ends of the wires
are in a namespace of their own."""
import contextlib
import pathlib
import time

import machine
from daemon import install, status
from harness import ROOM, broken_for, main, run, test, wait_for
from traffic import POLICIES, UNITS

# Wires join NICs 3 and 4 (igb), 5 and 6 (e1000e); NICs of odd numbers are on node 0, the others on node 1.
NEAR = ("ens3", "ens5")    # both on node 0
APART = ("ens3", "ens6")   # one on each node
OTHER_END = {"ens3": "ens4", "ens4": "ens3", "ens5": "ens6", "ens6": "ens5"}
HERE, THERE = "10.78.0.1", "10.78.0.2"
SENDERS = [f"sender@{number}" for number in range(6)]
SERVER = "server.service"
UNIT = """[Service]
ExecStart={}
Restart=always
RestartSec=1
{}
"""
POLICY = "version: 1\nmatch: {unit: server.service}\naffinity: full\nbind: cpu\nnics: "
before = {}


def far(*words):
    return run("ip", "-n", "far", *words)


def bond(ports, mode):
    """bond0 here, and its counterpart there."""
    words = ["type", "bond", "mode", mode, "miimon", "100"]
    if mode != "active-backup":
        words += ["xmit_hash_policy", "layer3+4"]
    if mode == "802.3ad":
        words += ["lacp_rate", "fast"]
    for ip, names in ((lambda *line: run("ip", *line), ports), (far, [OTHER_END[port] for port in ports])):
        ip("link", "add", "bond0", *words)
        for name in names:
            ip("link", "set", name, "down")
            ip("link", "set", name, "master", "bond0")
        ip("link", "set", "bond0", "up")


def hand_over(ports):
    """The other ends of these wires are in the namespace."""
    for port in ports:
        run("ip", "link", "set", OTHER_END[port], "netns", "far")


def address(here, there):
    run("ip", "address", "replace", f"{HERE}/24", "dev", here)
    run("ip", "link", "set", here, "up")
    far("address", "replace", f"{THERE}/24", "dev", there)
    far("link", "set", there, "up")
    run("systemctl", "restart", SERVER, *SENDERS)
    # Until LACP has agreed, nothing gets through.
    wait_for(lambda: established() >= len(SENDERS), lambda: f"{established()} connections")


def established():
    return sum(line.split()[3] == "01" and line.split()[1].endswith(":1389") for line in machine.read("/proc/net/tcp").splitlines()[1:])


def names_there():
    return [line.split(":")[1].strip().partition("@")[0] for line in far("-o", "link").splitlines()]


@contextlib.contextmanager
def wired(ports, nics, *made):
    """The other ends of these NICs are in the namespace, and the server is under policy; `made` are the interfaces that a test makes here."""
    hand_over(ports)
    use(nics)
    try:
        yield
    finally:
        take_down(made)


def take_down(made):
    """Removes what a test made on both sides, and brings the NICs home."""
    run("systemctl", "stop", SERVER, *SENDERS)
    for name in made:
        if (machine.NETS / name).exists():
            run("ip", "link", "delete", name)
    for name in ("vlan7", "bond0"):
        if name in names_there():
            far("link", "delete", name)
    for name in OTHER_END:
        if name in names_there():
            far("link", "set", name, "netns", "1")
        run("ip", "address", "flush", "dev", name)
        run("ip", "link", "set", name, "up")


def pid():
    return int(run("systemctl", "show", "-P", "MainPID", SERVER))


def home():
    return machine.allowed(pid())


def use(nics):
    (POLICIES / "server.yaml").write_text(POLICY + nics + "\n", encoding="utf-8")


def share_at_home(ports):
    """The part of the interrupts of these NICs that arrives on the server's CPU."""
    irqs = [irq for port in ports for irq in machine.data_irqs(port)]
    first, cpus = machine.counters(), home()
    grown = lambda: {irq: {cpu: count - first[irq][cpu] for cpu, count in row.items()} for irq, row in machine.counters().items() if irq in irqs}
    per_port = lambda: [sum(sum(grown()[irq].values()) for irq in machine.data_irqs(port)) for port in ports]

    def all_carry():
        counts = per_port()
        if sum(counts) > 2000 and min(counts) <= 10:  # a hash of the connections' ports decides: one time of 32 it is the same for all
            run("systemctl", "restart", *SENDERS)
            first.update(machine.counters())
        return sum(counts) > 200 and min(counts) > 10

    wait_for(all_carry, lambda: f"hardly any traffic: {per_port()}")
    counts = grown()
    total = sum(sum(row.values()) for row in counts.values())
    return sum(count for row in counts.values() for cpu, count in row.items() if cpu in cpus) / total


def arrives_at_home(ports, least=0.9):
    wait_for(lambda: len(home()) == 1 and all(machine.requested(irq) == home() for port in ports for irq in machine.data_irqs(port)),
             lambda: f"server on {home()}, interrupts on { {port: [machine.requested(irq) for irq in machine.data_irqs(port)] for port in ports} }")
    share = share_at_home(ports)
    assert share >= least, f"{share:.0%} of the interrupts arrive where the server runs"
    return f"{share:.1%} of the interrupts"


def masks():
    found = {f"irq {folder.name}": machine.read(folder / "smp_affinity_list") for folder in machine.IRQS.iterdir() if folder.is_dir()}
    for nic in OTHER_END:
        found |= machine.steering(nic)
    return found


@test()
def one_nic_is_the_measure():
    run("ip", "netns", "add", "far")
    for name in OTHER_END:
        for state in ("up", "down", "up"):
            run("ip", "link", "set", name, state)
    (UNITS / SERVER).write_text(UNIT.format("/usr/bin/python3 -S /host/inside/receiver.py 0.0.0.0", ""), encoding="utf-8")
    (UNITS / "sender@.service").write_text(
        UNIT.format(f"/usr/bin/affinity-ttcp -t -s --seconds 86400 --stall 5 --wait 5 {HERE}",
                    "CPUQuota=6%\nNetworkNamespacePath=/run/netns/far"), encoding="utf-8")
    run("systemctl", "daemon-reload")
    before.update(masks())
    install()
    with wired(["ens3"], "auto"):
        address("ens3", "ens4")
        return arrives_at_home(["ens3"], 0.99)


def serves(ports, mode, nics):
    with wired(ports, nics, "bond0"):
        bond(ports, mode)
        address("bond0", "bond0")
        return arrives_at_home(ports)


@test()
def lacp_over_two_nics_of_a_node():
    return serves(NEAR, "802.3ad", "auto")


@test()
def lacp_that_the_policy_names():
    return serves(NEAR, "802.3ad", "[bond0]")


@test()
def balance_xor_over_two_nodes():
    return serves(APART, "balance-xor", "auto")


@test()
def a_vlan_on_a_bond():
    with wired(NEAR, "auto", "vlan7", "bond0"):
        bond(NEAR, "802.3ad")
        run("ip", "link", "add", "link", "bond0", "name", "vlan7", "type", "vlan", "id", "7")
        far("link", "add", "link", "bond0", "name", "vlan7", "type", "vlan", "id", "7")
        address("vlan7", "vlan7")
        return arrives_at_home(NEAR)


def node_of(cpus):
    return {0 if cpu in machine.node_cpus("ens3") else 1 for cpu in cpus}


@test()
def the_port_in_use_decides_and_a_failover_moves_the_server():
    def use_port(port):
        far("link", "set", "bond0", "type", "bond", "active_slave", OTHER_END[port])
        run("ip", "link", "set", "bond0", "type", "bond", "active_slave", port)

    with wired(APART, "auto", "bond0"):
        bond(APART, "active-backup")
        # Only a port with a link can be chosen.
        wait_for(lambda: all(far("link", "show", OTHER_END[port]).count("LOWER_UP") for port in APART), "all ports have a link")
        time.sleep(1)
        use_port("ens3")
        address("bond0", "bond0")
        wait_for(lambda: node_of(home()) == {0}, lambda: f"server on {home()}")
        seconds = broken_for(lambda: use_port("ens6"), lambda: node_of(home()) == {1})
        assert seconds < ROOM, f"server on {home()} after {seconds:.2f} s"
        return f"moved after {seconds:.2f} s, {arrives_at_home(['ens6'])}"


@test()
def ports_of_guests_on_a_bridge_are_nobodys():
    guests = ["guest0", "guest1", "tap7"]
    with wired(["ens3"], "auto", "br0", *guests):
        run("ip", "link", "add", "br0", "type", "bridge")
        for guest in guests[:2]:
            run("ip", "link", "add", guest, "numtxqueues", "2", "numrxqueues", "2", "type", "veth", "peer", "name", f"inner-{guest}",
                "netns", "far")
        run("modprobe", "tun")
        run("ip", "tuntap", "add", "tap7", "mode", "tap", "multi_queue")
        for port in ("ens3", *guests):
            run("ip", "link", "set", port, "master", "br0")
            run("ip", "link", "set", port, "up")
        theirs = {guest: machine.steering(guest) for guest in guests}
        assert all(theirs.values()), theirs
        address("br0", "ens4")
        told = arrives_at_home(["ens3"])
        use("[br0]")
        told += f", named: {arrives_at_home(['ens3'])}"
        assert theirs == {guest: machine.steering(guest) for guest in guests}, theirs
        queues = [queue["nic"] for queue in status()["queues"]]
        assert not set(queues) & set(guests), queues
        return told


@test()
def a_macvlan_on_a_nic():
    with wired(["ens3"], "auto", "mac0"):
        run("ip", "link", "add", "link", "ens3", "name", "mac0", "type", "macvlan", "mode", "bridge")
        address("mac0", "ens4")
        return arrives_at_home(["ens3"])


@test()
def all_is_as_it_was_in_the_end():
    (POLICIES / "server.yaml").unlink()
    run("systemctl", "stop", "affinityd", patience=80)
    now = masks()
    changed = {name: (mask, now.get(name)) for name, mask in before.items() if now.get(name) != mask}
    assert not changed, changed
    pathlib.Path(UNITS / SERVER).unlink()


if __name__ == "__main__":
    main()
