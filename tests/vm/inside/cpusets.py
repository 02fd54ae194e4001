# SPDX-License-Identifier: Apache-2.0
"""Masks in a cpuset that changes. Kernels before 6.2 widen every mask in a cpuset to the whole cpuset when the cpuset is written and, where
cpusets are in use, when a CPU goes offline or online. Importing this module adds its tests to those of a machine."""
import json

import machine
from harness import ROOM, broken_for, run, test, wait_for
from traffic import POLICIES

UNIT, CPU = "fenced.service", 1
POLICY = f'version: 1\nmatch: {{unit: {UNIT}}}\ncpus: "{CPU}"\nbind: set\n'


def fenced():
    return int(run("systemctl", "show", "-P", "MainPID", UNIT))


def holds():
    return machine.allowed(fenced()) == {CPU}


def again_soon(action):
    seconds = broken_for(action, holds)
    assert seconds < ROOM, f"the mask was {machine.allowed(fenced())} and wrong for {seconds:.2f} s"
    return f"wrong for {seconds:.2f} s"


def leave_cpus(text):
    run("systemctl", "set-property", "--runtime", "system.slice", f"AllowedCPUs={text}")


@test()
def a_unit_is_placed_by_affinity_alone():
    (POLICIES / "fenced.yaml").write_text(POLICY, encoding="utf-8")
    run("systemd-run", f"--unit={UNIT}", "tail", "-f", "/dev/null")
    wait_for(holds, lambda: f"{machine.allowed(fenced())}")


@test()
def a_cpuset_that_comes_into_use_costs_no_mask_for_long():
    return again_soon(lambda: leave_cpus(f"0-{max(machine.online())}"))


@test()
def a_cpuset_that_is_narrowed_and_widened_costs_no_mask_for_long():
    narrowed = again_soon(lambda: leave_cpus(f"0-{max(machine.online()) - 1}"))
    return f"{narrowed}, " + again_soon(lambda: leave_cpus(f"0-{max(machine.online())}"))


@test()
def a_cpu_that_goes_and_comes_with_cpusets_in_use_costs_no_mask_for_long():
    switch = machine.CPUS / f"cpu{max(machine.online())}/online"
    gone = again_soon(lambda: switch.write_text("0", encoding="utf-8"))
    return f"{gone}, " + again_soon(lambda: switch.write_text("1", encoding="utf-8"))


@test()
def the_original_is_right_after_all_that():
    run("affinityctl", "release", "fenced")
    wait_for(lambda: machine.allowed(fenced()) == machine.online(), lambda: f"{machine.allowed(fenced())}")
    run("affinityctl", "apply")
    wait_for(holds, lambda: f"{machine.allowed(fenced())}")
    told = json.loads(run("affinityctl", "explain", str(fenced()), "--json"))
    assert told["policy"] == "fenced", told
    (POLICIES / "fenced.yaml").unlink()
    wait_for(lambda: machine.allowed(fenced()) == machine.online(), lambda: f"{machine.allowed(fenced())}")
    run("systemctl", "stop", UNIT)
    leave_cpus("")
