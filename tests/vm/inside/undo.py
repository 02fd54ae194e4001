#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Four drivers that treat their interrupts differently when a link goes down. Whatever happens in whichever order, the machine is in the end as
it was before the first daemon: every interrupt, all steering, every task."""
import itertools
import json
import time

import machine
from daemon import install, status
from harness import main, run, start_daemon, test, wait_for
from traffic import POLICIES

NICS = ["ens1", "ens2", "ens3", "ens4"]  # virtio, igb, e1000e, vmxnet3
POLICY = 'version: 1\naffinity: irq\nnics: [{}]\ncpus: "1,3"\n{}'
before = {}


def snapshot():
    found = machine.interrupt_masks() | machine.task_masks()
    for nic in NICS:
        if (machine.NETS / nic).exists():
            found |= machine.steering(nic)
    return found


def changed():
    """The values that differ between before and now."""
    now = snapshot()
    return {name: (mask, now[name]) for name, mask in before.items() if name in now and now[name] != mask}


def assert_as_before(when):
    wait_for(lambda: not changed(), lambda: f"{when}: before and after: {changed()}", 20)


def links(state, nics=tuple(NICS)):
    for nic in nics:
        run("ip", "link", "set", nic, state)


def write_policies(more=""):
    for nic in NICS:
        (POLICIES / f"{nic}.yaml").write_text(POLICY.format(nic, more), encoding="utf-8")


def remove_policies():
    for nic in NICS:
        (POLICIES / f"{nic}.yaml").unlink()


def are_placed():
    irqs = [irq for nic in NICS for irq in machine.data_irqs(nic)]
    return len(irqs) >= 8 and all(machine.requested(irq) in ({1}, {3}) for irq in irqs)


def start():
    start_daemon()


def stop():
    run("systemctl", "stop", "affinityd", patience=80)


def begin(more=""):
    """A daemon that has placed the interrupts of all four."""
    write_policies(more)
    start()
    wait_for(are_placed, lambda: f"{ {nic: {irq: machine.requested(irq) for irq in machine.data_irqs(nic)} for nic in NICS} }")


@test()
def the_four_drivers_are_there():
    # Some drivers set masks of their own when a link goes up for the first time, or CPUs to send from.
    for state in ("up", "down", "up"):
        links(state)
    time.sleep(2)
    install()
    before.update(snapshot())
    told = [machine.read(f"/sys/class/net/{nic}/device/uevent") for nic in NICS]
    drivers = [text.split("DRIVER=")[1].split()[0] for text in told]
    assert drivers == ["virtio_net", "igb", "e1000e", "vmxnet3"], drivers
    assert not changed()


EVENTS = {"down": lambda: links("down"), "up": lambda: links("up"), "removed": remove_policies, "stopped": stop}


def in_all_orders(last):
    """Six of the 24 orders: those that end with this event."""
    for order in itertools.permutations(EVENTS):
        if order[-1] != last:
            continue
        begin()
        for event in order:
            EVENTS[event]()
            time.sleep(1)
        assert_as_before(", ".join(order))
        links("up")
        time.sleep(0.5)
        assert_as_before(", ".join(order) + ", links up again")


@test(limit=900)
def orders_that_end_with_the_daemon_leave_nothing():
    in_all_orders("stopped")


@test(limit=900)
def orders_that_end_with_the_policy_leave_nothing():
    in_all_orders("removed")


@test(limit=900)
def orders_that_end_with_the_link_going_down_leave_nothing():
    in_all_orders("down")


@test(limit=900)
def orders_that_end_with_the_link_coming_up_leave_nothing():
    in_all_orders("up")


@test()
def what_was_kept_has_its_original_under_a_later_daemon():
    begin("on_stop: keep\n")
    stop()
    assert are_placed(), "kept"
    begin()
    stop()
    assert_as_before("kept, then restored at the end")
    begin("on_stop: keep\n")
    stop()
    write_policies()
    start()
    wait_for(are_placed, "still in place")
    remove_policies()
    assert_as_before("kept, then restored when the policy went")
    stop()


@test()
def an_interface_that_is_elsewhere_when_the_daemon_ends_is_restored_by_the_next_one():
    for nic in ("ens2", "ens3", "ens4"):
        begin()
        run("ip", "netns", "add", "elsewhere")
        run("ip", "link", "set", nic, "netns", "elsewhere")
        time.sleep(1)
        stop()
        remove_policies()
        run("ip", "-n", "elsewhere", "link", "set", nic, "netns", "1")
        run("ip", "netns", "delete", "elsewhere")
        links("up")
        start()
        assert_as_before(f"{nic} came back")
        stop()
        assert_as_before(f"{nic} came back, and the daemon ended")


@test()
def a_virtual_function_that_is_lent_to_a_namespace_is_restored_when_it_comes_back():
    lent, switch = "ens2v0", machine.NETS / "ens2/device/sriov_numvfs"
    switch.write_text("1", encoding="utf-8")
    wait_for((machine.NETS / lent).exists, "the virtual function is there")
    links("up", [lent])
    irqs = machine.data_irqs(lent)
    first = {irq: machine.requested(irq) for irq in irqs}
    (POLICIES / "lent.yaml").write_text(POLICY.format(lent, ""), encoding="utf-8")
    start()
    wait_for(lambda: all(machine.requested(irq) in ({1}, {3}) for irq in irqs), lambda: f"{irqs}")
    run("ip", "netns", "add", "guest")
    run("ip", "link", "set", lent, "netns", "guest")
    time.sleep(1)
    stop()
    (POLICIES / "lent.yaml").unlink()
    run("ip", "-n", "guest", "link", "set", lent, "netns", "1")
    run("ip", "netns", "delete", "guest")
    links("up", [lent])
    start()
    now = lambda: {irq: machine.requested(irq) for irq in irqs}
    wait_for(lambda: now() == first, lambda: f"before {first}, after {now()}", 20)
    stop()
    switch.write_text("0", encoding="utf-8")
    assert_as_before("a virtual function came and went")
    assert len(irqs) >= 2, irqs
    return ", ".join(irqs.values())


@test()
def a_driver_that_is_bound_anew_begins_without_us():
    for nic in ("ens2", "ens3", "ens4"):
        begin()
        function = machine.function_of(nic)
        driver = (function / "driver").resolve()
        (driver / "unbind").write_text(function.name, encoding="utf-8")
        time.sleep(1)
        remove_policies()
        time.sleep(1)
        (driver / "bind").write_text(function.name, encoding="utf-8")
        wait_for((machine.NETS / nic).exists, f"{nic} is back")
        links("up")
        stop()
        assert_as_before(f"the driver of {nic} was bound anew")


@test()
def a_daemon_that_was_killed_is_followed_by_one_that_restores():
    begin()
    links("down")
    first = run("systemctl", "show", "-P", "MainPID", "affinityd")
    run("systemctl", "kill", "-s", "KILL", "affinityd")
    wait_for(lambda: run("systemctl", "show", "-P", "ActiveState", "affinityd").strip() == "active" and
             run("systemctl", "show", "-P", "MainPID", "affinityd") != first, "it is started again")
    remove_policies()
    assert_as_before("killed with the links down, then the policies removed")
    links("up")
    stop()
    assert_as_before("killed with the links down")


@test()
def nothing_went_wrong_by_the_daemons_own_account():
    start()
    told = status()
    assert told["journal"] == 0, told["journal"]
    assert not told["problems"], told["problems"]
    errors = run("journalctl", "-u", "affinityd", "-p", "err", "-q", "--no-pager", "-o", "cat")
    assert not errors, errors
    return json.dumps(told["outcomes"])


if __name__ == "__main__":
    main()
