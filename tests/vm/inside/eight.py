#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Eight servers on eight NICs: how soon all is in place after their policies are."""
import json
import time

import machine
import traffic
from daemon import install, status
from harness import main, run, test, wait_for

ALL = range(1, 9)
# Seconds. The first is what the daemon is to need, the second what fails: an emulated CPU may stand still for a while.
SOON, LATE = 2.5, 4.0
pids, irqs = {}, {}


def in_place(number):
    task = machine.allowed(pids[number])
    return len(task) == 1 and task <= machine.node_cpus(f"ens{number}") and all(machine.effective(irq) == task for irq in irqs[number])


def journal():
    entries = run("journalctl", "-u", "affinityd", "-o", "json", "--no-pager", "-q").splitlines()
    return [(int(entry["__MONOTONIC_TIMESTAMP"]) / 1e6, entry["MESSAGE"]) for entry in map(json.loads, entries)]


@test()
def eight_servers_on_eight_nics():
    traffic.wire_up(ALL)
    traffic.write_units()
    traffic.start(ALL)
    wait_for(lambda: all(traffic.receivers(ALL).values()), "all receivers run")
    pids.update(traffic.receivers(ALL))
    irqs.update({number: sorted(machine.data_irqs(f"ens{number}")) for number in ALL})
    install()
    wait_for(lambda: status()["reconciles"] > 0, "the daemon has looked at all")


def seconds_until_in_place():
    """By server, since their policies were written."""
    took = {}
    traffic.write_policies(ALL)
    begun = time.monotonic()
    while len(took) < len(ALL) and time.monotonic() - begun < 60:
        for number in ALL:
            if number not in took and in_place(number):
                took[number] = time.monotonic() - begun
        time.sleep(0.02)
    return begun, took


@test()
def all_is_in_place_soon_after_their_policies():
    told, longest = [], []
    for _ in range(5):
        begun, took = seconds_until_in_place()
        time.sleep(3)
        told.append(f"{ {number: round(seconds, 1) for number, seconds in took.items()} }")
        longest.append(max(took.values()) if len(took) == len(ALL) else 60)
        told += [f"    {when - begun:.2f} {text}" for when, text in journal() if when > begun]
        told.append(f"    passes {status()['reconciles']}")
        for number in ALL:
            (traffic.POLICIES / f"receiver{number}.yaml").unlink()
        wait_for(lambda: not any(len(machine.allowed(pid)) == 1 for pid in pids.values()), "all is put back")
        time.sleep(3)
    ordered = sorted(longest)
    text = f"measured: median {ordered[2]:.1f} s, {', '.join(f'{each:.1f}' for each in longest)}"
    print("\n".join(told), flush=True)
    assert ordered[2] <= LATE, text
    return text


if __name__ == "__main__":
    main()
