#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The experiments on a machine of two sockets and hardware threads, beside the installed daemon: what they find there, that they leave nothing
behind however they end, and that threads of a real server go by what was measured."""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import time

import machine
from daemon import install, status
from harness import main, run, test, wait_for

HISTORY = pathlib.Path("/var/lib/affinityd/history.db")
POLICY = pathlib.Path("/etc/affinityd/policies.d/redis.yaml")
REDIS_SETTINGS = pathlib.Path("/etc/redis/redis.conf")
# As short as figures that mean nothing may be taken.
SHORT = {"latency": ("--samples", "4", "--round-trips", "10"), "sharing": ("--rounds", "4", "--additions", "1000"),
         "smt": ("--rounds", "4", "--numbers", "10000"), "cache": ("--rounds", "4", "--quanta", "2", "--sizes", "16,64")}
LONG = {"latency": ("--samples", "10000", "--round-trips", "1000"), "sharing": ("--rounds", "10000", "--additions", "1000000"),
        "smt": ("--rounds", "10000", "--numbers", "3000000"), "cache": ("--rounds", "1000")}
CLOSE = (1, 3, 4, 6)  # one of each core, on both sockets: no topology would put them together
THREADS = re.compile(r"redis-server|io_thd_\d+")
TOGETHER = """version: 1
match: {unit: redis-server.service}
threads:
  - {name: [redis-server, "io_thd_*"], near: measured}
  - {leave: true}
"""


@contextlib.contextmanager
def nothing_is_changed():
    before = machine.interrupt_masks() | machine.task_masks()
    yield
    after = machine.interrupt_masks() | machine.task_masks()
    changed = {name: (mask, after[name]) for name, mask in before.items() if after.get(name, mask) != mask}
    assert not changed, f"before and after: {changed}"


def kept():
    """How many results the history has."""
    return sum(record["kind"] in SHORT for record in json.loads(run("affinityctl", "history", "--json"))["records"])


def measure(experiment):
    return json.loads(run("affinityctl", "measure", experiment, *SHORT[experiment], "--json"))


@test()
def there_is_a_daemon_whose_history_begins_with_the_first_result():
    install()
    assert kept() == 0 and not HISTORY.exists()


@test(limit=600)
def experiments_find_sockets_and_hardware_threads_and_leave_masks_alone():
    already = kept()
    with nothing_is_changed():
        told = {experiment: measure(experiment) for experiment in SHORT}
    for experiment, document in told.items():
        assert any("emulated" in remark and "mean nothing" in remark for remark in document["remarks"]), f"{experiment}: {document['remarks']}"
    # On a busy host, some pairs are disturbed in each of their samples.
    assert {one["name"] for one in told["latency"]["distances"]} <= {"same core", "same LLC", "across sockets"}, told["latency"]["distances"]
    assert told["latency"]["pairs"]["possible"] == 28 and told["latency"]["pairs"]["measured"] > 0, told["latency"]["pairs"]
    assert {"pairs", "neighbours", "apart", "false_sharing"} < {one["placing"] for one in told["sharing"]["placings"]}, told["sharing"]
    shared = {tuple(one["cpus"]) for one in told["smt"]["companies"] if one["company"] == "siblings"}
    assert all(machine.read(machine.CPUS / f"cpu{first}/topology/thread_siblings_list") in (f"{first}-{second}", f"{first},{second}")
               for first, second in shared) and shared, told["smt"]["companies"]
    places = {one["place"] for one in told["cache"]["cells"]}
    assert {"kept", "displaced", "emptied", "group", "other_node"} <= places, places
    assert kept() == already + len(SHORT), "each result is kept"


@test(limit=900)
def one_that_is_ended_at_any_moment_leaves_nothing():
    already = kept()
    for experiment, options in LONG.items():
        for how in (signal.SIGINT, signal.SIGKILL):
            with nothing_is_changed():
                child = subprocess.Popen(["affinityctl", "measure", experiment, *options], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL, start_new_session=True)
                try:
                    wait_for(lambda: is_pinned(child.pid), f"{experiment} runs")
                    time.sleep(random.uniform(0, 2))
                    assert child.poll() is None, f"{experiment} has ended by itself"
                finally:
                    child.send_signal(how)
                    child.wait(60)
                left = [pid for pid in os.listdir("/proc") if pid.isdigit() and session(int(pid)) == child.pid]
                assert not left, f"{experiment}, signal {how}: {left}"
    assert kept() == already, "nothing is kept of what was not finished"


def is_pinned(pid):
    """Some thread of it."""
    for tid in machine.threads(pid):
        with contextlib.suppress(OSError):
            if re.search(r"^Cpus_allowed_list:\s*\d+$", machine.read(f"/proc/{pid}/task/{tid}/status"), re.MULTILINE):
                return True
    return False


def session(pid):
    try:
        return os.getsid(pid)
    except OSError:
        return None


def pretend():
    """Makes CLOSE, and all other CPUs, groups by the latencies that are kept."""
    with contextlib.closing(sqlite3.connect(HISTORY, timeout=30)) as history, history:
        number, detail = history.execute("SELECT id, detail FROM measurement WHERE kind = 'latency' ORDER BY id DESC").fetchone()
        document = json.loads(detail)
        for one, row in enumerate(document["ns"]):
            document["ns"][one] = [20.0 if (one in CLOSE) == (other in CLOSE) else 100.0 for other in range(len(row))]
        history.execute("UPDATE measurement SET detail = ?, time = time + 1 WHERE id = ?", (json.dumps(document), number))


def redis():
    """{thread of redis that talks: its CPUs}"""
    pid = int(run("systemctl", "show", "-P", "MainPID", "redis-server"))
    found = {}
    for tid in machine.threads(pid):
        name = machine.read(f"/proc/{pid}/task/{tid}/comm")
        if THREADS.fullmatch(name):
            text = machine.read(f"/proc/{pid}/task/{tid}/status")
            found[tid] = frozenset(machine.cpus(re.search(r"^Cpus_allowed_list:\s*(\S*)", text, re.MULTILINE)[1]))
    return found


def are_alone(places):
    return len(places) == len(CLOSE) and all(len(place) == 1 for place in places) and len(set(places)) == len(places)


def are_close(places):
    return len({cpu in CLOSE for place in places for cpu in place}) == 1


@test(limit=600)
def threads_of_redis_go_where_it_was_measured_that_they_are_close():
    with REDIS_SETTINGS.open("a", encoding="utf-8") as file:
        file.write(f"\nio-threads {len(CLOSE)}\nio-threads-do-reads yes\n")
    run("systemctl", "restart", "redis-server")
    everywhere = frozenset(machine.online())
    try:
        pretend()
        POLICY.write_text(TOGETHER, encoding="utf-8")
        run("affinityctl", "reload")
        wait_for(lambda: are_alone(list(redis().values())) and are_close(redis().values()), lambda: f"{redis()}, {explained()}")
        with subprocess.Popen(["redis-benchmark", "-q", "-c", "50", "-n", "100000", "-t", "get"], stdout=subprocess.DEVNULL) as clients:
            time.sleep(5)
            assert are_close(redis().values()), redis()
            clients.kill()
        text = explained()
        assert "by measured latency, 20.0 ns" in text, text
        POLICY.unlink()
        wait_for(lambda: set(redis().values()) == {everywhere}, lambda: f"put back: {redis()}")
    finally:
        POLICY.unlink(missing_ok=True)
        run("systemctl", "stop", "redis-server")


def explained():
    return "".join(run("affinityctl", "explain", str(tid)) for tid in redis())


@test()
def nothing_went_wrong_by_the_daemons_own_account():
    problems = status()["problems"]
    assert not problems, problems


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs inherit that it is ignored, as in a shell's background
    main()
