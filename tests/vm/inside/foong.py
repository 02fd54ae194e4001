#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two sockets, eight NICs: affinityd installed, at work, disturbed, stopped and started again."""
import json
import os
import pathlib
import time

import machine
import traffic
from harness import main, run, test, wait_for

ALL = range(1, 9)
NICS = [f"ens{number}" for number in ALL]
before = {}


def status():
    return json.loads(run("affinityctl", "status", "--json"))


def masks():
    """Everything that affinityd may change on this machine."""
    found = {f"irq {irq} {label}": sorted(machine.requested(irq)) for nic in NICS for irq, label in machine.data_irqs(nic).items()}
    for nic in NICS:
        found |= machine.steering(nic)
    for number, pid in traffic.receivers(ALL).items():
        found[f"receiver {number}"] = sorted(machine.allowed(pid))
    return found


def disorder(numbers=ALL):
    """Pairs of a NIC and a receiver that are not together on one CPU of the NIC's node, with how they are."""
    wrong = []
    for number, pid in traffic.receivers(numbers).items():
        nic = f"ens{number}"
        try:
            task = machine.allowed(pid)
            effective = {irq: machine.effective(irq) for irq in machine.data_irqs(nic)}
        except OSError as error:
            wrong.append(f"{nic}: {error}")
            continue
        cpu = min(task, default=-1)
        if len(task) != 1 or cpu not in machine.node_cpus(nic) & machine.online() or set(map(tuple, effective.values())) != {(cpu,)}:
            wrong.append(f"{nic} (node {sorted(machine.node_cpus(nic))}): receiver on {sorted(task)}, interrupts on {effective}")
    return wrong


def await_order(numbers=ALL, patience=60):
    wait_for(lambda: not disorder(numbers), lambda: "; ".join(disorder(numbers)), patience)


@test()
def the_machine_is_the_one_asked_for():
    assert machine.online() == set(range(8))
    assert sorted(path.name for path in machine.NETS.glob("ens*")) == NICS
    assert [min(machine.node_cpus(nic)) for nic in NICS] == [0, 4] * 4


@test()
def installed_as_a_user_does():
    run("cp", "-a", "/host/install/.", "/")
    # What no event tells of (a foreign hand on an interrupt) is found by looking again: sooner than by default.
    pathlib.Path("/etc/affinityd/affinityd.yaml").write_text("version: 1\nreconcile: 5s\n", encoding="utf-8")
    run("systemctl", "enable", "--now", "affinityd", patience=80)
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
    traffic.write_policies(ALL)
    await_order()


@test()
def counters_grow_on_the_new_cpu_only():
    homes = {number: machine.allowed(pid) for number, pid in traffic.receivers(ALL).items()}
    assert all(len(home) == 1 for home in homes.values()), homes
    first = machine.counters()
    time.sleep(4)
    last = machine.counters()
    for number, home in homes.items():
        grown = {cpu: sum(last[irq][cpu] - first[irq][cpu] for irq in machine.data_irqs(f"ens{number}")) for cpu in machine.online()}
        total = sum(grown.values())
        assert total > 40, f"ens{number}: hardly any traffic: {grown}"
        assert sum(grown[cpu] for cpu in home) == total, f"ens{number}: home is {home}, interrupts came on {grown}"


@test()
def stopping_restores_everything():
    run("systemctl", "stop", "affinityd", patience=80)
    after = masks()
    changed = {name: (mask, after.get(name)) for name, mask in before.items() if after.get(name) != mask}
    assert not changed, f"before and after: {changed}"
    run("systemctl", "start", "affinityd", patience=80)
    await_order()


@test()
def an_interrupt_moved_by_a_foreign_hand_is_put_back():
    irq = min(machine.data_irqs("ens6"))
    (machine.IRQS / str(irq) / "smp_affinity_list").write_text("0", encoding="utf-8")
    assert machine.effective(irq) == {0}
    await_order()


@test()
def irqbalance_does_not_have_the_last_word():
    run("systemctl", "start", "irqbalance")
    # It begins to move interrupts 5 to 10 s after its start.
    time.sleep(12)
    await_order()
    assert run("systemctl", "is-active", "irqbalance").strip() == "active"
    run("systemctl", "stop", "irqbalance")


@test(limit=150)
def a_cpu_that_goes_offline_and_returns_leaves_every_pair_together():
    # CPU 0 cannot go.
    homes = [machine.allowed(pid) for pid in traffic.receivers(ALL).values()]
    gone = next(cpu for home in homes for cpu in home if cpu != 0)
    switch = machine.CPUS / f"cpu{gone}/online"
    switch.write_text("0", encoding="utf-8")
    await_order()
    switch.write_text("1", encoding="utf-8")
    await_order()


@test(limit=150)
def a_nic_that_is_removed_and_put_back_is_taken_up_again():
    number = 4
    run("qmp", "device_del", json.dumps({"id": f"nic{number - 1}"}))
    plugged = json.dumps({"path": "/machine/peripheral"})
    wait_for(lambda: f'"nic{number - 1}"' not in run("qmp", "qom-list", plugged), "the NIC is unplugged")
    assert not (machine.NETS / f"ens{number}").exists()
    await_order([each for each in ALL if each not in (number, traffic.partner(number))])
    words = pathlib.Path("/host/nics").read_text(encoding="utf-8").splitlines()[number - 1].split(",")
    device = dict(word.split("=", 1) for word in words[1:]) | {"driver": words[0]}
    run("qmp", "device_add", json.dumps(device))
    wait_for(lambda: (machine.NETS / f"ens{number}").exists(), "the NIC is back")
    traffic.address(number)
    traffic.far_end(traffic.partner(number))
    await_order()


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
    await_order()


if __name__ == "__main__":
    main()
