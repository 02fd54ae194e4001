#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two NICs and a USB controller on one interrupt line, which has one mask: one policy decides, and one original is put back."""
import json
import random
import time

import machine
from daemon import install, status
from harness import main, run, start_daemon, test, wait_for
from traffic import POLICIES

nics = []
before = {}


def line():
    """The number that all of them have."""
    numbers = {int(machine.read(machine.NETS / nic / "device/irq")) for nic in nics}
    assert len(numbers) == 1, numbers
    return numbers.pop()


def handlers():
    return sorted(path.name for path in (machine.IRQS / str(line())).iterdir() if path.is_dir())


def mask():
    return machine.requested(line())


def masks():
    return {folder.name: machine.read(folder / "smp_affinity_list") for folder in machine.IRQS.iterdir() if folder.is_dir()}


def write(name, nic, cpu):
    (POLICIES / f"{name}.yaml").write_text(f'version: 1\naffinity: irq\nnics: [{nic}]\ncpus: "{cpu}"\n', encoding="utf-8")


def write_both():
    write("a", nics[0], 1)
    write("b", nics[1], 2)


def remove(name):
    (POLICIES / f"{name}.yaml").unlink()


def link(number, state):
    run("ip", "link", "set", nics[number], state)


def becomes(cpus):
    wait_for(lambda: mask() == cpus, lambda: f"IRQ {line()} of {handlers()} is on {mask()} instead of {cpus}")


@test()
def two_nics_and_usb_share_a_line():
    run("modprobe", "ohci_pci")
    for path in sorted(machine.NETS.iterdir()):
        if (path / "device/driver").exists() and (path / "device/driver").resolve().name == "8139cp":
            nics.append(path.name)
    assert len(nics) == 2, nics
    for state in ("up", "down", "up"):
        link(0, state)
        link(1, state)
    assert [name for name in handlers() if name not in nics], handlers()
    assert set(nics) <= set(handlers()), handlers()
    install()
    before.update(masks())
    return f"IRQ {line()}: {', '.join(handlers())}"


@test()
def the_first_policy_decides_and_nothing_is_written_twice():
    write_both()
    becomes({1})
    seen, end = set(), time.monotonic() + 12
    while time.monotonic() < end:
        seen.add(tuple(sorted(mask())))
        time.sleep(0.02)
    assert seen == {(1,)}, seen


@test()
def who_decides_and_with_whom_the_line_is_shared_is_said():
    told = {queue["policy"]: queue for queue in status()["queues"] if queue["kind"] == "irq"}
    assert set(told) == {"a", "b"}, told
    assert nics[1] in told["a"]["shared_with"] and "usb" in told["a"]["shared_with"], told
    assert "policy a" in told["b"]["note"], told
    assert status()["journal"] == len([queue for queue in status()["queues"] if queue.get("original") is not None and
                                       queue["wanted"] == queue["present"]]), "one original for one line"


@test()
def the_decision_goes_to_the_next_when_the_first_has_no_handler_or_no_policy():
    link(0, "down")
    becomes({2})
    link(0, "up")
    becomes({1})
    remove("a")
    becomes({2})
    write("a", nics[0], 1)
    becomes({1})
    run("affinityctl", "release", "a")
    becomes({2})
    run("affinityctl", "apply")
    becomes({1})


EVENTS = {"down 0": lambda: link(0, "down"), "down 1": lambda: link(1, "down"), "up 0": lambda: link(0, "up"), "up 1": lambda: link(1, "up"),
          "removed a": lambda: remove("a"), "removed b": lambda: remove("b"),
          "stopped": lambda: run("systemctl", "stop", "affinityd", patience=80)}


@test(limit=800)
def in_whichever_order_things_go_one_original_is_put_back():
    chance = random.Random(13)
    for _ in range(12):
        write_both()
        start_daemon()
        becomes({1})
        order = list(EVENTS)
        chance.shuffle(order)
        for name in order:
            EVENTS[name]()
            time.sleep(0.5)
        link(0, "up")
        link(1, "up")
        changed = {irq: (text, masks().get(irq)) for irq, text in before.items() if masks().get(irq) != text}
        assert not changed, f"{order}: {changed}"


@test()
def a_driver_that_is_unbound_leaves_the_line_to_the_other():
    write_both()
    start_daemon()
    becomes({1})
    function = machine.NETS / nics[0] / "device"
    name, driver = function.resolve().name, (function / "driver").resolve()
    number = line()
    (driver / "unbind").write_text(name, encoding="utf-8")
    wait_for(lambda: machine.requested(number) == {2}, lambda: f"{machine.requested(number)}")
    (driver / "bind").write_text(name, encoding="utf-8")
    wait_for((machine.NETS / nics[0]).exists, "the interface is back")
    link(0, "up")
    becomes({1})
    run("systemctl", "stop", "affinityd", patience=80)
    assert masks()[str(number)] == before[str(number)], masks()[str(number)]


@test()
def nothing_went_wrong_by_the_daemons_own_account():
    start_daemon()
    told = status()
    assert not told["refused"], told["refused"]
    errors = run("journalctl", "-u", "affinityd", "-p", "err", "-q", "--no-pager", "-o", "cat")
    assert not errors, errors
    return json.dumps(told["outcomes"])


if __name__ == "__main__":
    main()
