#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The unit file, the name on the bus, and permissions, in a container whose first process is systemd."""
import json
import os
import pathlib
import subprocess

import verbs
from harness import main, run, start_daemon, test, wait_for

NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


def shown(name):
    return run("systemctl", "show", "-P", name, "affinityd").strip()


@test()
def the_unit_file_is_right():
    run("cp", "-a", "/host/install/.", "/")
    run("systemctl", "daemon-reload")
    complaints = subprocess.run(["systemd-analyze", "verify", "--man=no", "affinityd.service"], capture_output=True, text=True, check=True)
    assert not complaints.stderr, complaints.stderr


@test()
def it_starts_and_tells_when_it_is_ready():
    run("systemctl", "enable", "--now", "affinityd")
    assert shown("ActiveState") == "active"
    wait_for(lambda: "0 policies" in shown("StatusText"), lambda: shown("StatusText"))
    assert pathlib.Path("/etc/systemd/system/multi-user.target.wants/affinityd.service").exists()


@test()
def everybody_may_read_over_the_bus():
    told = run(*NOBODY, "affinityctl", "status", "--json")
    assert json.loads(told)["policies"] == [], told


@test()
def only_root_may_change_something():
    refused = subprocess.run([*NOBODY, "affinityctl", "apply"], capture_output=True, text=True, check=False)
    assert refused.returncode != 0, refused.stdout
    run("affinityctl", "apply")


@test()
def only_root_may_own_the_name():
    owner = run("busctl", "call", "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "GetConnectionUnixUser", "s", "org.affinityd")
    assert owner.split() == ["u", "0"], owner
    run("systemctl", "stop", "affinityd")
    call = ("busctl", "call", "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "RequestName", "su", "org.affinityd", "0")
    refused = subprocess.run([*NOBODY, *call], capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and "denied" in refused.stderr.lower() + refused.stdout.lower(), refused
    start_daemon()


@test()
def a_policy_dropped_in_is_loaded_by_reload_and_a_broken_one_fails_it_and_changes_nothing():
    folder = pathlib.Path("/etc/affinityd/policies.d")
    (folder / "sleepers.yaml").write_text('version: 1\nmatch: {comm: sleep}\ncpus: "0"\nbind: set\n', encoding="utf-8")
    run("systemctl", "reload", "affinityd")
    wait_for(lambda: [each["name"] for each in json.loads(run("affinityctl", "status", "--json"))["policies"]] == ["sleepers"], "loaded")
    sleeper = subprocess.Popen(["sleep", "100"])
    wait_for(lambda: os.sched_getaffinity(sleeper.pid) == {0}, "a new process is pinned")
    (folder / "sleepers.yaml").write_text("version: 1\nmatch: {comm: [}\n", encoding="utf-8")
    (folder / "others.yaml").write_text('version: 1\nmatch: {comm: nobody-at-all}\ncpus: "0"\n', encoding="utf-8")
    reload = subprocess.run(["systemctl", "reload", "affinityd"], capture_output=True, text=True, check=False)
    assert reload.returncode != 0, reload
    run("systemctl", "is-active", "affinityd")
    wait_for(lambda: "sleepers.yaml:2" in run("systemctl", "show", "-p", "StatusText", "affinityd"), "the Status line says so")
    assert [each["name"] for each in json.loads(run("affinityctl", "status", "--json"))["policies"]] == ["others", "sleepers"]
    wait_for(lambda: "sleepers.yaml:2" in run("journalctl", "-u", "affinityd", "-o", "cat", "--no-pager"), "the fault is told")
    assert os.sched_getaffinity(sleeper.pid) == {0}
    (folder / "others.yaml").unlink()
    (folder / "sleepers.yaml").unlink()
    sleeper.kill()
    sleeper.wait()


verbs.register()


@test()
def a_killed_daemon_is_started_again():
    first = int(shown("MainPID"))
    os.kill(first, 9)
    wait_for(lambda: shown("ActiveState") == "active" and int(shown("MainPID")) not in (0, first), "it runs again")


@test()
def it_stops_orderly():
    run("systemctl", "stop", "affinityd")
    assert shown("Result") == "success" and shown("ExecMainStatus") == "0", shown("Result")


if __name__ == "__main__":
    main()
