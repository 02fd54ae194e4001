# SPDX-License-Identifier: Apache-2.0
"""affinityd in the machine: installs it, asks it, and checks it against the kernel."""
import json
import pathlib
import time

import machine
import traffic
from harness import run, wait_for


def install():
    """As a user would: copies files, then calls systemctl."""
    run("cp", "-a", "/host/install/.", "/")
    run("systemctl", "enable", "--now", "affinityd", patience=80)


def status():
    return json.loads(run("affinityctl", "status", "--json", code=(0, 3)))


def plugged():
    """Names of the devices that QEMU's monitor can unplug."""
    told = json.loads(run("qmp", "qom-list", json.dumps({"path": "/machine/peripheral"})))
    return [entry["name"] for entry in told]


def record():
    """Leaves /host/recording.tar.gz."""
    run("/host/gather-host", "/host/recording.tar.gz")


def _facts(verb, *options):
    """The part of a reading that a recording can reproduce: addresses and channels come over netlink, counters grow."""
    told = json.loads(run("affinityctl", *options, verb, "--json"))
    if verb == "topology":
        return told
    return {nic["name"]: {key: nic[key] for key in ("driver", "pci", "node", "local_cpus")} |
            {"interrupts": [[vector["irq"], vector["label"], vector["queue"]] for vector in nic["vectors"]]} for nic in told}


def recording_reads_like_the_machine():
    folder = pathlib.Path("/tmp/recording")
    folder.mkdir()
    run("tar", "-xzf", "/host/recording.tar.gz", "-C", str(folder))
    for verb in ("topology", "nics"):
        live, recorded = _facts(verb), _facts(verb, "--root", str(folder))
        assert live == recorded, f"{verb}: {live} recorded as {recorded}"


def disorder(numbers, where=machine.effective):
    """Pairs of a NIC and its receiver that do not share one CPU of the NIC's node, each with its masks."""
    wrong = []
    for number, pid in traffic.receivers(numbers).items():
        nic = f"ens{number}"
        try:
            task = machine.allowed(pid)
            interrupts = {irq: where(irq) for irq in machine.data_irqs(nic)}
        except OSError as error:
            wrong.append(f"{nic}: {error}")
            continue
        cpu = min(task, default=-1)
        if len(task) != 1 or cpu not in machine.node_cpus(nic) & machine.online() or set(map(tuple, interrupts.values())) != {(cpu,)}:
            wrong.append(f"{nic} (node {sorted(machine.node_cpus(nic))}): receiver on {sorted(task)}, interrupts on {interrupts}")
    return wrong


def await_order(numbers, where=machine.effective, patience=60):
    wait_for(lambda: not disorder(numbers, where), lambda: "; ".join(disorder(numbers, where)), patience)


def traffic_at_home(numbers, late=0):
    """Fails unless each NIC's interrupts arrive, all on its receiver's CPU; `late` interrupts of each may still arrive elsewhere."""
    homes = {number: machine.allowed(pid) for number, pid in traffic.receivers(numbers).items()}
    assert all(len(home) == 1 for home in homes.values()), homes
    irqs = {number: machine.data_irqs(f"ens{number}") for number in numbers}
    first = machine.counters()

    def grown():
        now = machine.counters()
        return {number: {cpu: sum(now[irq][cpu] - first[irq][cpu] for irq in irqs[number]) for cpu in machine.online()} for number in numbers}

    wait_for(lambda: all(sum(counts.values()) > 40 for counts in grown().values()), lambda: f"hardly any traffic: {grown()}")
    for number, counts in grown().items():
        elsewhere = sum(count for cpu, count in counts.items() if cpu not in homes[number])
        assert elsewhere <= late * len(irqs[number]), f"ens{number}: home is {homes[number]}, interrupts came on {counts}"


def plug_in_cpu():
    """Plugs a CPU into a free socket of the machine, switches it on, and returns its number."""
    there = machine.cpus(machine.read(machine.CPUS / "present"))
    free = next(slot for slot in json.loads(run("qmp", "query-hotpluggable-cpus")) if "qom-path" not in slot)
    run("qmp", "device_add", json.dumps({"driver": free["type"], "id": "late", **free["props"]}))
    new = wait_for(lambda: machine.cpus(machine.read(machine.CPUS / "present")) - there, "the CPU is there")
    number = min(new)
    switch = machine.CPUS / f"cpu{number}/online"
    wait_for(switch.exists, "the CPU has a switch")
    switch.write_text("1", encoding="utf-8")
    return number
