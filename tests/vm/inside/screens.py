#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows `affinityctl status` in the states that an administrator meets: each is brought about on two sockets with eight NICs, shown at
80 and 120 columns, and printed for people to read. The first line says whether all is well, and what is to be typed is on the screen."""
import contextlib
import os
import pathlib
import shutil
import sqlite3
import subprocess
import threading

import machine
import traffic
from daemon import await_order, install, status
from harness import main, run, start_daemon, test, wait_for

SOME = (1, 2, 3, 4)
HEALTHY, AILING = "is running, all is in place", "is running and NEEDS ATTENTION"
MENDING = "is running and needs no attention"
UNIT = pathlib.Path("/etc/systemd/system")
HISTORY = pathlib.Path("/var/lib/affinityd/history.db")


def screen(width, *words):
    done = subprocess.run(["affinityctl", "status", *words], env={**os.environ, "COLUMNS": str(width), "LANG": "C.UTF-8"}, text=True,
                          capture_output=True, timeout=120, check=False)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


def shows(name, verdict, *parts):
    """Waits until the screen says so, and prints it for people."""
    def wrong():
        text = screen(120)
        whole = " ".join(text.split())  # long lines are wrapped
        return [part for part in (verdict, *parts) if part not in (text.split("\n", 1)[0] if part == verdict else whole)]

    wait_for(lambda: not wrong(), lambda: f"{wrong()} not in\n{screen(120)}")
    for width in (80, 120):
        text = screen(width)
        print(*(f"    {line}" for line in (f"-- {name}, {width} columns", *text.splitlines())), sep="\n", flush=True)
        long = [line for line in text.splitlines() if len(line) > width]
        assert not long, long
        assert len(text.splitlines()) <= (40 if width == 80 else 24), "it is one screen"
    quiet = subprocess.run(["affinityctl", "status", "--quiet"], capture_output=True, text=True, timeout=120, check=False)
    assert (quiet.returncode, quiet.stdout) == (3 if verdict == AILING else 0, ""), quiet


@contextlib.contextmanager
def drop_in(unit, text):
    """A change to a unit, and the daemon under it."""
    path = UNIT / f"{unit}.d" / "test.conf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    try:
        run("systemctl", "daemon-reload")
        yield
    finally:
        path.unlink()
        run("systemctl", "daemon-reload")


def all_is_well_again():
    await_order(SOME)
    wait_for(lambda: HEALTHY in screen(120), lambda: screen(120))


@test()
def healthy():
    traffic.wire_up(SOME)
    traffic.write_units()
    traffic.start(SOME)
    wait_for(lambda: all(traffic.receivers(SOME).values()), "all receivers run")
    install()
    traffic.write_policies(SOME)
    await_order(SOME)
    shows("healthy", HEALTHY, "no errors; 4 policies in force", "receiver1", "last measurement of throughput: none yet")


@test()
def drifted():
    pid = traffic.receivers(SOME)[1]
    os.sched_setaffinity(pid, range(8))
    shows("drifted", MENDING, "policy receiver1: thread ", "was moved by somebody else", "no action is needed")
    assert str(pid) in screen(80, "--failed")
    run("affinityctl", "apply")
    all_is_well_again()


@test()
def an_interrupt_that_is_refused():
    irq = min(machine.data_irqs("ens2"))
    other = machine.node_cpus("ens2") - machine.requested(irq)
    run("systemctl", "stop", "affinityd", patience=80)
    pathlib.Path(f"/proc/irq/{irq}/smp_affinity_list").write_text(str(min(other)), encoding="utf-8")
    try:
        with drop_in("affinityd.service", f"[Service]\nReadOnlyPaths=/proc/irq/{irq}\n"):
            start_daemon()
            shows("interrupt refused", AILING, "policy receiver2: ", "Read-only file system", "systemctl cat affinityd")
    finally:
        start_daemon("restart")
    all_is_well_again()


@test()
def a_policy_that_is_broken():
    path = traffic.POLICIES / "receiver3.yaml"
    good = path.read_text(encoding="utf-8")
    path.write_text(good + "cpuss: 1\n", encoding="utf-8")
    try:
        line = len(good.splitlines()) + 1
        shows("policy broken", AILING, f"{path}:{line}:1", "did you mean 'cpus'", "correct and save", "its last good version stays in force")
    finally:
        path.write_text(good, encoding="utf-8")
    all_is_well_again()


@test()
def somebody_fights():
    """irqbalance is at work, and a script of old keeps writing what it thinks is right."""
    irq = min(machine.data_irqs("ens4"))
    done = threading.Event()

    def write():
        while not done.wait(0.2):
            pathlib.Path(f"/proc/irq/{irq}/smp_affinity_list").write_text("0", encoding="utf-8")

    run("systemctl", "start", "irqbalance")
    writer = threading.Thread(target=write)
    writer.start()
    try:
        shows("irqbalance fighting", AILING, "policy receiver4: ", "is fought over: another program (not irqbalance) keeps changing it",
              "other programs here: irqbalance")
    finally:
        done.set()
        writer.join()
        run("systemctl", "stop", "irqbalance")
    run("affinityctl", "apply")
    all_is_well_again()


def measure():
    runs = lambda: (status()["measurement"] or {}).get("runs", 0)  # noqa: E731
    already = runs()
    run("affinityctl", "measure")
    wait_for(lambda: runs() > already, "a measurement is done")


def pretend_that_it_was_faster(times=10):
    """In place of the only measurement that is kept, nine in as many hours by a machine so many times as fast. The figures of an emulator with little
    time measures differs too much from run to run."""
    rest = "kind, outcome, reason, path, model, policies, seconds, bytes, cpu_seconds, ghz_per_gbps, detail"
    with contextlib.closing(sqlite3.connect(HISTORY, timeout=30)) as history, history:
        done = history.execute("UPDATE measurement SET bits_per_second = bits_per_second * ?, time = time - 9 * 3600 WHERE kind = 'ttcp'", (times,))
        assert done.rowcount == 1, f"{done.rowcount} measurements are kept"
        for hours in range(1, 9):
            history.execute(f"INSERT INTO measurement (time, bits_per_second, {rest}) SELECT time + 3600 * ?, bits_per_second, {rest} "
                            "FROM measurement WHERE kind = 'ttcp' ORDER BY id LIMIT 1", (hours,))


@test(limit=900)
def a_measurement_that_regressed():
    measure()
    run("systemctl", "stop", "affinityd", patience=80)
    pretend_that_it_was_faster()
    start_daemon()
    measure()
    shows("measurement regressed", AILING, "throughput fell: the last measurement, over loopback, is ", "affinityctl measure (a usual")
    run("systemctl", "stop", "affinityd", patience=80)
    for path in HISTORY.parent.glob("history.db*"):
        path.unlink()
    start_daemon()
    all_is_well_again()


@test()
def no_process_events():
    """The kernel sends them to the machine's own network namespace only. Without its interfaces, a policy for CPUs is what remains."""
    aside = traffic.POLICIES.with_name("aside")
    traffic.POLICIES.rename(aside)
    traffic.POLICIES.mkdir()
    (traffic.POLICIES / "receivers.yaml").write_text('version: 1\nmatch: {unit: "receiver@*.service"}\ncpus: "1-4"\nspread: cpu\nbind: cpu\n',
                                                     encoding="utf-8")
    with drop_in("affinityd.service", "[Service]\nPrivateNetwork=yes\n"):
        start_daemon("restart")
        shows("no process events", AILING, "process events: new processes and threads are placed up to 60 s late", "systemctl cat affinityd")
        pid = traffic.receivers(SOME)[1]
        os.sched_setaffinity(pid, {7})
        run("affinityctl", "apply")
        assert os.sched_getaffinity(pid) <= {1, 2, 3, 4}, "passes go on"
    shutil.rmtree(traffic.POLICIES)
    aside.rename(traffic.POLICIES)
    start_daemon("restart")
    all_is_well_again()


@test()
def cpus_that_are_claimed():
    (traffic.POLICIES / "claim.yaml").write_text('version: 1\nmatch: {exe: /usr/bin/sleep, user: root}\ncpus: "0,1"\nexclusive: true\n',
                                                 encoding="utf-8")
    (traffic.POLICIES / "other.yaml").write_text('version: 1\nmatch: {exe: /usr/bin/tail, user: root}\ncpus: "1,2"\nbind: set\n',
                                                 encoding="utf-8")
    with contextlib.ExitStack() as stack:
        for command in (("sleep", "1000"), ("tail", "-f", "/dev/null")):
            child = subprocess.Popen(command)
            stack.callback(child.wait)
            stack.callback(child.kill)
        wait_for(lambda: "no process is under this policy" not in screen(120), "the claim has its process")
        shows("exclusive claimed", AILING, "policy other, cpus 1-2: only CPU 2 is used, as CPU 1 is reserved for claim (exclusive)",
              "write cpus: 2 in other.yaml, which is what it uses now")
    for name in ("claim.yaml", "other.yaml"):
        (traffic.POLICIES / name).unlink()
    all_is_well_again()


@test()
def a_unit_an_interface_and_a_process_are_shown_alone():
    pid = traffic.receivers(SOME)[1]
    for subject in ("receiver1", "ens1", "receiver@1.service", str(pid)):
        text = screen(80, subject)
        assert str(pid) in text and "ens1" in text and "receiver2" not in text, f"{subject}:\n{text}"
        assert all(len(line) <= 80 for line in text.splitlines()), text
    asked = subprocess.run(["affinityctl", "status", "receiver"], capture_output=True, text=True, timeout=120, check=False)
    assert asked.returncode == 1 and "receiver" in asked.stderr, asked


if __name__ == "__main__":
    main()
