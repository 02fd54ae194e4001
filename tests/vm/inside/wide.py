#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""16 CPUs on four dies, each die with its own last-level cache."""
import json
import pathlib

import machine
import traffic
from daemon import await_order, install, record, recording_reads_like_the_machine, status, traffic_at_home
from harness import main, run, test, wait_for

BOTH, SLEEPERS = (1, 2), range(4)
POLICY = "version: 1\nmatch: {comm: sleep}\nspread: llc\nbind: llc\n"


def sleepers():
    pids = [int(run("systemctl", "show", "-P", "MainPID", f"sleeper{number}")) for number in SLEEPERS]
    return sorted((machine.allowed(pid) for pid in pids), key=min)


def await_dies():
    wait_for(lambda: sleepers() == [set(range(first, first + 4)) for first in (0, 4, 8, 12)], lambda: f"{sleepers()}")


@test()
def dies_and_threads_are_read_right():
    install()
    told = json.loads(run("affinityctl", "topology", "--json"))
    assert machine.online() == set(range(16))
    assert told["package_groups"] == ["0-7", "8-15"], told
    assert told["die_groups"] == ["0-3", "4-7", "8-11", "12-15"], told
    assert told["l3_groups"] == told["die_groups"], told
    assert [each["smt"] for each in told["cpus"]][12:] == ["12-13", "12-13", "14-15", "14-15"], told


# Before the receivers: those who come later keep away from dies that are busy.
@test()
def processes_are_dealt_out_to_dies():
    pathlib.Path("/etc/affinityd/policies.d/sleep.yaml").write_text(POLICY, encoding="utf-8")
    for number in SLEEPERS:
        run("systemd-run", f"--unit=sleeper{number}", "sleep", "10000")
    await_dies()


@test()
def receivers_run_where_the_interrupts_of_their_nics_arrive():
    traffic.wire_up(BOTH)
    traffic.write_units()
    traffic.start(BOTH)
    wait_for(lambda: all(traffic.receivers(BOTH).values()), "both receivers run")
    record()
    traffic.write_policies(BOTH)
    await_order(BOTH)
    traffic_at_home(BOTH)


@test()
def a_recording_reads_like_the_machine():
    recording_reads_like_the_machine()


@test()
def a_cpu_that_goes_and_comes_leaves_all_in_order():
    switch = machine.CPUS / "cpu13/online"
    switch.write_text("0", encoding="utf-8")
    wait_for(lambda: sleepers()[3] & machine.online() == {12, 14, 15}, lambda: f"{sleepers()}")
    switch.write_text("1", encoding="utf-8")
    await_dies()
    await_order(BOTH)


import cpusets  # noqa: E402,F401  more tests, after these
import means  # noqa: E402,F401


@test()
def nothing_went_wrong_by_the_daemons_own_account():
    problems = status()["problems"]
    assert not problems, problems


if __name__ == "__main__":
    main()
