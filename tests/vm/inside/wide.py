#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""16 CPUs on dies, of which one is plugged in while the daemon runs."""
import json
import pathlib

import machine
import traffic
from daemon import await_order, install, record, recording_reads_like_the_machine, status, traffic_at_home
from harness import main, run, test, wait_for

BOTH = (1, 2)
POLICY = 'version: 1\nmatch: {comm: sleep}\ncpus: "node:1"\nbind: set\n'


@test()
def dies_and_threads_are_read_right():
    install()
    told = json.loads(run("affinityctl", "topology", "--json"))
    assert machine.online() == set(range(15))
    assert told["package_groups"] == ["0-7", "8-14"], told
    assert told["die_groups"] == ["0-3", "4-7", "8-11", "12-14"], told
    assert [each["smt"] for each in told["cpus"]][12:] == ["12-13", "12-13", "14"], told


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
def a_cpu_that_is_plugged_in_joins_its_node():
    pathlib.Path("/etc/affinityd/policies.d/sleep.yaml").write_text(POLICY, encoding="utf-8")
    run("systemd-run", "--unit=sleeper", "sleep", "10000")
    pid = int(run("systemctl", "show", "-P", "MainPID", "sleeper"))
    wait_for(lambda: machine.allowed(pid) == set(range(8, 15)), lambda: f"{machine.allowed(pid)}")
    free = [slot for slot in json.loads(run("qmp", "query-hotpluggable-cpus")) if "qom-path" not in slot]
    run("qmp", "device_add", json.dumps({"driver": free[0]["type"], "id": "late", **free[0]["props"]}))
    switch = machine.CPUS / "cpu15/online"
    wait_for(switch.exists, "the CPU is there")
    switch.write_text("1", encoding="utf-8")
    wait_for(lambda: machine.allowed(pid) == set(range(8, 16)), lambda: f"{machine.allowed(pid)}")
    await_order(BOTH)


@test()
def nothing_went_wrong_by_the_daemons_own_account():
    problems = status()["problems"]
    assert not problems, problems


if __name__ == "__main__":
    main()
