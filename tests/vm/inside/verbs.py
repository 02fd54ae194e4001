# SPDX-License-Identifier: Apache-2.0
"""Every verb and every job that runs by itself, under exactly the units that are installed."""
import json
import pathlib
import subprocess
import xml.dom.minidom

from harness import run, start_daemon, test, wait_for

SETTINGS = pathlib.Path("/etc/affinityd/affinityd.yaml")
POLICIES = pathlib.Path("/etc/affinityd/policies.d")


def asked(*words):
    return json.loads(run("affinityctl", *words, "--json", code=(0, 3)))


def every_verb_answers_under_the_installed_unit():
    sleeper = subprocess.Popen(["sleep", "1000"])
    policy = POLICIES / "sleepers.yaml"
    policy.write_text('version: 1\nmatch: {exe: /usr/bin/sleep, user: root}\ncpus: "0"\nbind: set\n', encoding="utf-8")
    try:
        run("affinityctl", "reload")
        wait_for(lambda: asked("status")["policies"], "the policy is in force")
        answers = {words: asked(*words) for words in (
            ("status",), ("watch", "--once"), ("plan",), ("plan", "--cpus"), ("explain", str(sleeper.pid)), ("policies",),
            ("policies", "show", "sleepers"), ("topology",), ("cpus", "all"), ("nics",), ("irqs",), ("history",))}
        assert answers["explain", str(sleeper.pid)]["policy"] == "sleepers", answers
        run("affinityctl", "check", str(policy))
        run("affinityctl", "explain", "lo")
        run("affinityctl", "release", "sleepers")
        run("affinityctl", "apply")
        picture = pathlib.Path("/run/topology.svg")
        run("affinityctl", "topology", "--svg", str(picture))
        xml.dom.minidom.parse(str(picture))
        return f"{len(answers) + 6} verbs"
    finally:
        policy.unlink()
        sleeper.kill()
        sleeper.wait()
        run("affinityctl", "reload")


def runs():
    return asked("history", "--kind", "ttcp")["records"]


def last_run(number):
    wait_for(lambda: len(runs()) >= number, "a run is on record")
    record = runs()[number - 1]
    assert record["outcome"] == "done" and record["bits_per_second"] > 0, record
    return record


def measuring_works_under_the_installed_units():
    """When asked for, and by itself."""
    known = len(runs())
    run("affinityctl", "measure", "--no-block")
    asked_for = last_run(known + 1)
    shipped = SETTINGS.read_text(encoding="utf-8")
    SETTINGS.write_text("version: 1\nmeasure: {interval: 1s, duration: 1s}\n", encoding="utf-8")
    try:
        start_daemon("restart")
        last_run(known + 2)
    finally:
        SETTINGS.write_text(shipped, encoding="utf-8")
        start_daemon("restart")
    return f"{asked_for['bits_per_second'] / 1e9:.2f} Gbit/s"


def a_sink_serves_under_its_unit():
    run("systemctl", "start", "affinity-ttcp.socket")
    try:
        report = json.loads(run("affinity-ttcp", "--target", "127.0.0.1:5001", "--bytes", "10000000", "--json"))
        assert report["outcome"] == "done", report
        listening = {line.split()[3] for line in run("ss", "-Hltn", "sport", "=", ":5001").splitlines()}
        assert listening == {"127.0.0.1:5001", "[::1]:5001"}, listening
    finally:
        run("systemctl", "stop", "affinity-ttcp.socket")


def nothing_was_refused_to_the_units():
    """The filter of system calls kills no process, and ends no call that is needed: refused calls are in the log."""
    told = run("journalctl", "-u", "affinityd", "-u", "affinity-measure@*", "-u", "affinity-ttcp@*", "--no-pager", "-o", "cat")
    for word in ("SIGSYS", "status=31", "core-dump", "Operation not permitted", "Address family not supported"):
        assert word not in told, told


def exposure(unit):
    """The exposure that systemd-analyze security computes, 0 to 10."""
    told = run("systemd-analyze", "security", "--offline=true", "--no-pager", f"/lib/systemd/system/{unit}")
    return float(told.rsplit(": ", 1)[1].split()[0])


def units_are_as_closed_as_promised():
    found = {unit: exposure(unit) for unit in ("affinityd.service", "affinity-measure@.service", "affinity-ttcp@.service")}
    assert found["affinityd.service"] <= 2.4 and found["affinity-measure@.service"] <= 1.5 and found["affinity-ttcp@.service"] <= 1.5, found
    return json.dumps(found)


def register():
    """Makes these the next tests of the machine."""
    for each in (every_verb_answers_under_the_installed_unit, measuring_works_under_the_installed_units, a_sink_serves_under_its_unit,
                 units_are_as_closed_as_promised, nothing_was_refused_to_the_units):
        test()(each)
