#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two CPUs, one NIC and a real server under the policy shipped for it."""
import pathlib
import shutil
import time

import machine
import verbs
from daemon import install, record, recording_reads_like_the_machine, status
from harness import ROOM, main, run, start_daemon, test, wait_for

NIC, ADDRESS = "ens1", "10.77.1.1"
POLICY = pathlib.Path("/etc/affinityd/policies.d/nginx.yaml")
SITE = "server {{ listen {}:80; location / {{ return 200 'here\\n'; }} }}\n"
FREE = frozenset({0, 1})
before = {}


def processes():
    group = run("systemctl", "show", "-P", "ControlGroup", "nginx").strip()
    return [int(pid) for pid in machine.read(f"/sys/fs/cgroup{group}/cgroup.procs").split()]


def masks():
    return sorted(sorted(machine.allowed(pid)) for pid in processes())


def interrupts():
    return {label: machine.requested(irq) for irq, label in machine.data_irqs(NIC).items()}


def await_masks(wanted):
    wait_for(lambda: masks() == wanted, lambda: f"wanted {wanted}, processes have {masks()}")


def await_apart():
    """A master and two workers on two cores, together with the NIC's queues."""
    wait_for(lambda: masks() in ([[0], [0], [1]], [[0], [1], [1]]), lambda: f"processes have {masks()}")
    wait_for(lambda: all(len(cpus) == 1 for cpus in interrupts().values()), lambda: f"interrupts: {interrupts()}")


def link_up():
    run("ip", "address", "replace", f"{ADDRESS}/24", "dev", NIC)
    run("ip", "link", "set", NIC, "up")


@test()
def a_server_starts_under_the_shipped_policy():
    link_up()
    before.update(interrupts())
    install()
    pathlib.Path("/etc/nginx/sites-enabled/default").write_text(SITE.format(ADDRESS), encoding="utf-8")
    run("systemctl", "start", "nginx")
    await_masks([[0, 1]] * 3)
    record()
    shutil.copy("/usr/share/affinityd/examples/nginx.yaml", POLICY)
    await_apart()


@test()
def a_recording_reads_like_the_machine():
    recording_reads_like_the_machine()


@test()
def workers_that_come_later_are_under_it_from_the_start():
    old = set(processes())
    run("systemctl", "restart", "nginx")
    await_apart()
    assert not old & set(processes())


@test()
def one_cpu_is_enough():
    switch = machine.CPUS / "cpu1/online"
    switch.write_text("0", encoding="utf-8")
    wait_for(lambda: all(machine.allowed(pid) & machine.online() == {0} for pid in processes()), lambda: f"processes have {masks()}")
    switch.write_text("1", encoding="utf-8")
    await_apart()


@test()
def release_puts_everything_back_and_apply_takes_it_up_again():
    run("affinityctl", "release", "nginx")
    await_masks([[0, 1]] * 3)
    wait_for(lambda: interrupts() == before, lambda: f"before {before}, now {interrupts()}")
    run("affinityctl", "apply")
    await_apart()


@test()
def a_policy_that_is_removed_lets_go():
    POLICY.unlink()
    await_masks([[0, 1]] * 3)
    wait_for(lambda: interrupts() == before, lambda: f"before {before}, now {interrupts()}")


@test()
def a_trial_ends_by_itself_whatever_ends_the_daemon():
    """systemd starts one that was killed again. Each daemon goes on with the trial."""
    length = 90
    begun = time.monotonic()
    run("affinityctl", "try", "nginx", "--for", f"{length}s", "--no-block")
    await_apart()
    start_daemon("restart")
    await_apart()
    run("kill", "-9", run("systemctl", "show", "-P", "MainPID", "affinityd").strip())
    wait_for(lambda: not list(pathlib.Path("/run/affinityd/trials").iterdir()), "the trial is over")
    took = time.monotonic() - begun
    await_masks([[0, 1]] * 3)
    wait_for(lambda: interrupts() == before, lambda: f"before {before}, now {interrupts()}")
    assert length - 1 < took < length + ROOM, f"{took:.1f} s of {length}"
    return f"{took:.1f} s of {length}"


verbs.register()


@test()
def nothing_went_wrong_by_the_daemons_own_account():
    problems = status()["problems"]
    assert not problems, problems


import wakes  # noqa: E402,F401  more tests, after these


@test()
def a_trial_begins_before_a_reboot():
    start_daemon()
    run("systemctl", "start", "nginx")
    run("affinityctl", "try", "nginx", "--for", "1h", "--no-block")
    await_apart()


@test(boot=2)
def a_reboot_ends_a_trial():
    link_up()
    run("systemctl", "start", "affinityd")
    run("systemctl", "restart", "nginx")
    wait_for(lambda: status()["reconciles"] > 0, "the daemon has looked at all")
    assert not status()["trials"], status()["trials"]
    await_masks([[0, 1]] * 3)


if __name__ == "__main__":
    main()
