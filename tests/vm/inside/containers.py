#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""nginx in a container on each kind of network, with a NIC of eight queues, and clients behind the wire. bpftrace counts how much is read where it arrived:
without a policy, with one, and after the container was made anew."""
import contextlib
import json
import pathlib
import subprocess
import time

import machine
from daemon import install, status
from harness import main, run, start_daemon, test, wait_for
from lanes import FULL, group, policy, workers
from witness import reads

# Both on node 0; the others are the far ends of their wires.
NIC, SECOND, FAR, FAR_SECOND = "ens1", "ens3", "ens2", "ens4"
HERE, POD, THERE = "10.77.1.1", "10.77.1.5", "10.77.1.2"
CLIENTS, WORKERS = 40, 4
LEAST = 0.95
NGINX = """user www-data;
worker_processes 4;
pid /run/nginx.pid;
error_log stderr;
events { }
http { access_log off; keepalive_timeout 1h; keepalive_requests 1000000; server { listen 8080 reuseport; location / { return 200 "ok"; } } }
"""
DROP_IN = pathlib.Path("/etc/systemd/system/nginx.service.d/pod.conf")
IRQS = {}


def far(*words):
    return run("ip", "-n", "far", *words)


def ip(*words):
    return run("ip", *words)


def inner(*words):
    return run("ip", "-n", "pod", *words)


def masks():
    found = machine.interrupt_masks()
    for nic in machine.NETS.glob("*/queues"):
        found |= machine.steering(nic.parent.name)
    return found


def arrivals(*nics):
    """CPUs where interrupts of these come."""
    return set().union(*(machine.effective(irq) for nic in nics for irq in IRQS[nic]))


# Networks: each makes the container's eth0.

def pair_at_bridge(port):
    ip("link", "add", "br0", "type", "bridge")
    ip("link", "add", "pod0", "type", "veth", "peer", "name", "eth0", "netns", "pod")
    for name in (port, "pod0"):
        ip("link", "set", name, "master", "br0")
        ip("link", "set", name, "up")
    ip("link", "set", "br0", "up")


def bridge():
    pair_at_bridge(NIC)


def on_top(kind, mode):
    ip("link", "add", "link", NIC, "name", "over0", "type", kind, "mode", mode)
    ip("link", "set", "over0", "netns", "pod", "name", "eth0")


def moved():
    ip("link", "set", NIC, "netns", "pod", "name", "eth0")


def bond(ip_there, nics):
    ip_there("link", "add", "bond0", "type", "bond", "mode", "802.3ad", "miimon", "100", "lacp_rate", "fast", "xmit_hash_policy", "layer3+4")
    for nic in nics:
        ip_there("link", "set", nic, "down")
        ip_there("link", "set", nic, "master", "bond0")
    ip_there("link", "set", "bond0", "up")
    ip_there("link", "add", "link", "bond0", "name", "vlan7", "type", "vlan", "id", "7")
    ip_there("link", "set", "vlan7", "up")


def vlan_on_bond():
    if not (machine.NETS / "bond0").exists():
        bond(ip, (NIC, SECOND))
    pair_at_bridge("vlan7")


class Netns:
    """nginx.service in a network namespace of its own."""
    address, match = POD, "unit: nginx.service"

    def __init__(self, network):
        self.network = network

    def start(self):
        ip("netns", "add", "pod")
        self.network()
        inner("address", "add", f"{POD}/24", "dev", "eth0")
        for name in ("lo", "eth0"):
            inner("link", "set", name, "up")
        run("systemctl", "start", "nginx")

    @staticmethod
    def workers():
        return workers(group("nginx"))

    def stop(self):
        run("systemctl", "stop", "nginx")
        if not (machine.NETS / NIC).exists():
            inner("link", "set", "eth0", "down")
            inner("link", "set", "eth0", "netns", "1", "name", NIC)
        ip("netns", "delete", "pod")
        if (machine.NETS / "br0").exists():
            ip("link", "delete", "br0")
        wait_for(lambda: not (machine.NETS / "pod0").exists(), "the namespace has ended")
        ip("link", "set", NIC, "up")

    def restart(self):
        self.stop()
        self.start()


class Podman:
    """A container of podman with a published port; its root is this machine's."""
    address, match = HERE, 'container: "podman:*"'

    def start(self):
        run("podman", "run", "--detach", "--name", "web", "--publish", "8080:8080", "--rootfs", "/srv/web", "nginx", "-g", "daemon off;", patience=300)

    @staticmethod
    def workers():
        pid = run("podman", "inspect", "--format", "{{.State.Pid}}", "web", patience=300).strip()
        return workers(pathlib.Path("/sys/fs/cgroup" + machine.read(f"/proc/{pid}/cgroup").partition("::")[2]))

    def restart(self):
        run("podman", "restart", "--time", "5", "web", patience=300)

    def stop(self):
        run("podman", "rm", "--force", "--time", "5", "web", patience=300)


@contextlib.contextmanager
def clients(address):
    with subprocess.Popen(["ip", "netns", "exec", "far", "/usr/bin/python3", "-S", "/host/inside/readers.py", "ask", str(CLIENTS), address, "8080"]) as process:
        try:
            wait_for(lambda: connected() == CLIENTS, lambda: f"{connected()} clients are connected")
            yield
        finally:
            process.kill()


def connected():
    return run("ip", "netns", "exec", "far", "ss", "-Htn", "state", "established", "dport", "=", ":8080").count("\n")


def share(address, nics=()):
    """The local share of the reads. Under a policy, packets arrive where the interrupts of its NICs are."""
    with clients(address):
        seen = reads("nginx")
    if nics:
        where = arrivals(*nics)
        strays = sum(count for (arrival, _), count in seen.counts.items() if arrival not in where)
        assert strays <= (1 - LEAST) * seen.total(), f"{strays} of {seen.total()} arrive elsewhere than interrupts, which are on {where}: {seen.counts}"
        assert seen.local_share() >= LEAST, f"{seen.local_share():.1%} are local: {seen.elsewhere()}; interrupts are on {where}"
    return f"{seen.local_share():.1%}"


def explained(pid):
    return json.loads(run("affinityctl", "explain", str(pid), "--json", code=(0, 1)))


def seconds_until_steered(container, nics):
    """Until packets arrive at the workers, and connections go to the worker where they arrive, from when these are there. An emulated machine takes several
    times what others do."""
    begun = time.monotonic()

    def is_steered():
        masks, queues = container.workers(), [machine.effective(irq) for nic in nics for irq in IRQS[nic]]
        shares = {sum(cpus <= mask for cpus in queues) for mask in masks.values()}
        return len(masks) == WORKERS and shares == {len(queues) // WORKERS} and all(explained(pid).get("listeners") for pid in masks)

    wait_for(is_steered, lambda: f"{[explained(pid) for pid in container.workers()]}, interrupts on {arrivals(*nics)}, {status()['problems']}")
    return f"{time.monotonic() - begun:.1f} s"


def serves(container, nics, way):
    """`nics`: as the policy is to find them, and `way`, as explain prints it."""
    own = [NIC, SECOND] if SECOND in nics else [NIC]
    run("systemctl", "stop", "affinityd", patience=80)
    before = masks()
    try:
        container.start()
        told = [f"{share(container.address)} of the reads are local without"]
        container.stop()
        with policy("web", FULL.format(match=container.match, nics="auto", more="")):
            start_daemon()
            for begin, what in ((container.start, "with"), (container.restart, "made anew")):
                begin()
                told.append(f"steered after {seconds_until_steered(container, own)}, {share(container.address, own)} {what}")
                [found] = [each for each in status()["policies"] if each["name"] == "web"]
                ways = {explained(pid)["way"] for pid in container.workers()}
                assert (found["nics"], ways, status()["problems"]) == (nics, {way}, []), (found, ways, status()["problems"])
            run("systemctl", "stop", "affinityd", patience=80)
            now = masks()
        changed = {name: (mask, now.get(name)) for name, mask in before.items() if now.get(name, mask) != mask}
        assert not changed, changed
    finally:
        container.stop()
    return "measured: " + ", ".join(told)


@test()
def clients_on_another_machine():
    ip("netns", "add", "far")
    for nic in (FAR, FAR_SECOND):
        ip("link", "set", nic, "netns", "far")
    far("address", "add", f"{THERE}/24", "dev", FAR)
    for nic in (FAR, FAR_SECOND):
        far("link", "set", nic, "up")
    for nic in (NIC, SECOND):
        ip("link", "set", nic, "up")
    wait_for(lambda: machine.read(machine.NETS / NIC / "carrier") == "1", "there is a link")
    DROP_IN.parent.mkdir()
    DROP_IN.write_text("[Service]\nNetworkNamespacePath=/run/netns/pod\n", encoding="ascii")
    pathlib.Path("/etc/nginx/nginx.conf").write_text(NGINX, encoding="ascii")
    install()
    for nic in (NIC, SECOND):
        IRQS[nic] = sorted(machine.data_irqs(nic))
    assert [len(irqs) for irqs in IRQS.values()] == [8, 8], IRQS


@test()
def a_pair_at_a_bridge():
    return serves(Netns(bridge), [NIC], f"eth0 → pod0 → br0 → {NIC}")


@test()
def a_nic_of_its_own():
    device = machine.function_of(NIC).name
    return serves(Netns(moved), [device], f"eth0 → {device}")


@test()
def a_port_that_podman_publishes():
    pathlib.Path("/srv/web").mkdir()
    run("mount", "--bind", "/", "/srv/web")
    pathlib.Path("/etc/containers").mkdir(exist_ok=True)
    pathlib.Path("/etc/containers/storage.conf").write_text('[storage]\ndriver = "vfs"\nrunroot = "/run/containers"\ngraphroot = "/var/lib/containers"\n', encoding="ascii")
    ip("address", "add", f"{HERE}/24", "dev", NIC)
    ip("route", "add", "default", "via", THERE)
    try:
        return serves(Podman(), [NIC], f"eth0 → veth0 → podman0 → {NIC}")
    finally:
        ip("address", "flush", "dev", NIC)
        run("umount", "/srv/web")


@test()
def a_macvlan():
    return serves(Netns(lambda: on_top("macvlan", "bridge")), [NIC], f"eth0 → {NIC}")


@test()
def an_ipvlan():
    return serves(Netns(lambda: on_top("ipvlan", "l2")), [NIC], f"eth0 → {NIC}")


@test()
def a_vlan_on_a_bond_under_a_bridge():
    bond(far, (FAR, FAR_SECOND))
    far("address", "flush", "dev", FAR)
    far("address", "add", f"{THERE}/24", "dev", "vlan7")
    return serves(Netns(vlan_on_bond), [NIC, SECOND], f"eth0 → pod0 → br0 → vlan7 → {NIC} → {SECOND}")


if __name__ == "__main__":
    main()
