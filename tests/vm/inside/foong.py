#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two sockets, eight NICs: affinityd installed, at work, disturbed, stopped and started again."""
import array
import glob
import json
import os
import pathlib
import re
import socket

import machine
import traffic
from daemon import await_order, disorder, install, plugged, record, recording_reads_like_the_machine, status, traffic_at_home
from harness import ROOM, broken_for, longest_broken, main, run, start_daemon, test, wait_for

ALL = range(1, 9)
NICS = [f"ens{number}" for number in ALL]
before = {}


def masks():
    """Everything that affinityd may change on this machine."""
    found = {f"irq {irq} {label}": sorted(machine.requested(irq)) for nic in NICS for irq, label in machine.data_irqs(nic).items()}
    for nic in NICS:
        found |= machine.steering(nic)
    for number, pid in traffic.receivers(ALL).items():
        found[f"receiver {number}"] = sorted(machine.allowed(pid))
    return found


@test()
def the_machine_is_the_one_asked_for():
    assert machine.online() == set(range(8))
    assert sorted(path.name for path in machine.NETS.glob("ens*")) == NICS
    assert [min(machine.node_cpus(nic)) for nic in NICS] == [0, 4] * 4


@test()
def installed_as_a_user_does():
    install()
    assert run("systemctl", "is-active", "affinityd").strip() == "active"
    assert status()["policies"] == [], status()


@test()
def the_topology_is_read_right():
    told = json.loads(run("affinityctl", "topology", "--json"))
    assert told["package_groups"] == ["0-3", "4-7"], told
    assert [node["cpus"] for node in told["numa_nodes"]] == ["0-3", "4-7"], told


@test()
def receivers_run_where_the_interrupts_of_their_nics_arrive():
    traffic.wire_up(ALL)
    traffic.write_units()
    traffic.start(ALL)
    wait_for(lambda: all(traffic.receivers(ALL).values()), "all receivers run")
    before.update(masks())
    record()
    traffic.write_policies(ALL)
    await_order(ALL)


@test()
def every_core_serves_some_pair():
    cores = {cpu // 2 for pid in traffic.receivers(ALL).values() for cpu in machine.allowed(pid)}
    assert cores == {0, 1, 2, 3}, f"pairs are on cores {cores}"


@test()
def a_recording_reads_like_the_machine():
    recording_reads_like_the_machine()


@test()
def counters_grow_on_the_new_cpu_only():
    traffic_at_home(ALL)


@test()
def stopping_restores_everything():
    run("systemctl", "stop", "affinityd", patience=80)
    after = masks()
    changed = {name: (mask, after.get(name)) for name, mask in before.items() if after.get(name) != mask}
    assert not changed, f"before and after: {changed}"
    start_daemon()
    await_order(ALL)


def bindings():
    """For each pair: the receiver's mask, and the masks of its NIC's interrupts."""
    return {number: (machine.allowed(pid), [machine.requested(irq) for irq in machine.data_irqs(f"ens{number}")])
            for number, pid in traffic.receivers(ALL).items()}


def is_bound(model):
    """The models of the paper: none, interrupts only, processes only. Tasks and interrupts that a model leaves free have their first mask."""
    free = {name: mask for name, mask in before.items() if name.startswith("irq ")}
    now = masks()
    for number, (task, interrupts) in bindings().items():
        near = machine.node_cpus(f"ens{number}")
        if (len(task) == 1) != (model == "process") or (len(task) > 1 and task != machine.online()):
            return False
        if model == "irq" and not all(len(cpus) == 1 and cpus <= near for cpus in interrupts):
            return False
    return model == "irq" or all(now.get(name) == mask for name, mask in free.items())


@test()
def each_model_binds_what_it_names_and_nothing_else():
    for model in ("irq", "process", "none"):
        traffic.write_policies(ALL, model=model)
        wait_for(lambda model=model: is_bound(model), lambda model=model: f"{model}: {bindings()}")
    traffic.write_policies(ALL)
    await_order(ALL)


def again_soon(action, numbers=ALL):
    seconds = broken_for(action, lambda: not disorder(numbers))
    assert seconds < ROOM, f"order returned after {seconds:.2f} s only"
    return f"{seconds:.2f} s"


@test()
def an_interrupt_that_another_program_moved_is_put_back():
    irq = min(machine.data_irqs("ens6"))
    there = machine.IRQS / str(irq) / "smp_affinity_list"
    return again_soon(lambda: there.write_text("0", encoding="utf-8"))


def banned():
    """The interrupts that irqbalance itself says it leaves alone: irqbalance(1), SOCKET INTERFACE."""
    path = glob.glob("/run/irqbalance/*.sock")[0]
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(path)
        credentials = array.array("i", [os.getpid(), os.getuid(), os.getgid()])
        asking.sendmsg([b"setup"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials)])
        text = asking.recv(1 << 16).decode()
    return {int(number) for number in re.findall(r"IRQ (\d+)", text)}


@test()
def irqbalance_leaves_ours_alone():
    ours = {irq for nic in NICS for irq in machine.data_irqs(nic)}
    run("systemctl", "start", "irqbalance")
    # irqbalance begins to move interrupts 5 to 10 s after its start.
    longest = longest_broken(lambda: not disorder(ALL), 20)
    assert longest < ROOM, f"out of order for {longest:.2f} s"
    wait_for(lambda: ours <= banned(), lambda: f"irqbalance may move {sorted(ours - banned())}")
    assert run("systemctl", "is-active", "irqbalance").strip() == "active"
    run("systemctl", "stop", "irqbalance")
    return f"out of order for {longest:.2f} s at the longest"


@test()
def a_cpu_that_goes_offline_and_returns_leaves_every_pair_together():
    # CPU 0 cannot go offline.
    homes = [machine.allowed(pid) for pid in traffic.receivers(ALL).values()]
    gone = next(cpu for home in homes for cpu in home if cpu != 0)
    switch = machine.CPUS / f"cpu{gone}/online"
    offline = again_soon(lambda: switch.write_text("0", encoding="utf-8"))
    return f"offline {offline}, online " + again_soon(lambda: switch.write_text("1", encoding="utf-8"))


@test()
def a_link_that_goes_down_and_up_is_taken_up_again():
    took = []
    for nic in ("ens1", "ens3", "ens5", "ens7"): # one of each driver
        run("ip", "link", "set", nic, "down")
        took.append(f"{nic} " + again_soon(lambda nic=nic: run("ip", "link", "set", nic, "up")))
    return ", ".join(took)


@test()
def queues_that_become_fewer_and_more_are_taken_up_again():
    took = []
    for nic, counts in (("ens3", (2, 8)), ("ens1", (2, 4))):
        for count in counts:
            took.append(f"{nic} {count} " + again_soon(lambda: run("ethtool", "-L", nic, "combined", str(count))))
    return ", ".join(took)


@test()
def a_nic_that_is_removed_and_put_back_is_taken_up_again():
    number = 4
    run("qmp", "device_del", json.dumps({"id": f"nic{number - 1}"}))
    wait_for(lambda: f"nic{number - 1}" not in plugged(), "the NIC is unplugged")
    assert not (machine.NETS / f"ens{number}").exists()
    await_order([each for each in ALL if each not in (number, traffic.partner(number))])
    words = pathlib.Path("/host/nics").read_text(encoding="utf-8").splitlines()[number - 1].split(",")
    device = dict(word.split("=", 1) for word in words[1:]) | {"driver": words[0]}
    run("qmp", "device_add", json.dumps(device))
    wait_for(lambda: (machine.NETS / f"ens{number}").exists(), "the NIC is back")

    def connect():
        traffic.address(number)
        traffic.far_end(traffic.partner(number))

    return again_soon(connect)


@test()
def nothing_went_wrong_by_the_daemons_own_account():
    problems = status()["problems"]
    assert not problems, problems
    errors = run("journalctl", "-u", "affinityd", "-p", "err", "-q", "--no-pager", "-o", "cat")
    assert not errors, errors


@test(boot=2, limit=120)
def a_reboot_starts_it_again():
    assert run("systemctl", "is-active", "affinityd").strip() == "active"
    traffic.wire_up(ALL)
    traffic.start(ALL)
    await_order(ALL)


if __name__ == "__main__":
    main()
