# SPDX-License-Identifier: Apache-2.0
"""Tests that run one after the other on one machine, each under its own time limit. Later tests build on earlier ones; all run, whatever
fails. Prints one line for each test: "ok NAME" or "FAIL NAME: why"."""
import pathlib
import signal
import subprocess
import sys
import time
import traceback

TESTS = []
PARTS = ("cpusets", "means")  # they have no machine of their own
BOOTS, FAILED = pathlib.Path("/host/boots"), pathlib.Path("/host/failed")
# An awaited event comes within seconds; an emulated machine on a busy host may need much longer.
PATIENCE = 120
# Seconds that convergence may take. The daemon needs less than one; tests print what was measured, and fail only where no busy host and no
# emulation explains it.
ROOM = 15.0


def test(limit=400, boot=1):
    """Registers a function of the script, or of a part of scripts, but not of another script that it imports, as a test of this boot of the
    machine. The name, words joined by _, is the claim; the function may return figures to print for people."""
    def register(function):
        if function.__module__ in ("__main__", *PARTS):
            TESTS.append((boot, function.__name__.replace("_", " "), limit, function))
        return function
    return register


def run(*command, code=0, patience=180):
    """The standard output of a command; fails unless it ends with `code`, or one of them."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience, stdin=subprocess.DEVNULL, check=False)
    text = done.stdout + done.stderr
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), f"{' '.join(command)}: ended with {done.returncode}\n{text}"
    return done.stdout


def start_daemon(how="start"):
    """Starts or restarts the daemon, however often a test does so: systemd refuses more than a few starts within seconds."""
    run("systemctl", "reset-failed")
    run("systemctl", how, "affinityd", patience=80)


def wait_for(condition, what, patience=PATIENCE):
    """Polls until the condition returns something true, and returns that. `what` may be a function that describes the current state."""
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {patience} s: {what() if callable(what) else what}")
        time.sleep(0.3)


def broken_for(action, condition, watch=4):
    """Seconds from the end of the action to the last moment at which the condition did not hold; looks for `watch` seconds or longer."""
    action()
    started, last = time.monotonic(), 0.0
    while (now := time.monotonic() - started) < watch or last > now - 1:
        if not condition():
            last = time.monotonic() - started
        assert now < 10 * watch, "it never holds"
        time.sleep(0.01)
    return last


def longest_broken(condition, watch):
    """The longest time without interruption, in the next `watch` seconds, for which the condition did not hold."""
    end, since, longest = time.monotonic() + watch, None, 0.0
    while (now := time.monotonic()) < end or since:
        if condition():
            since = None
        else:
            since = since or now
            longest = max(longest, time.monotonic() - since)
            assert longest < watch, "it never holds"
        time.sleep(0.01)
    return longest


def _overdue(*_):
    raise AssertionError("took too long")


def _report(name, started, fault, figures):
    seconds = f"({time.monotonic() - started:.1f} s)"
    told = f": {figures}" if figures else ""
    print(f"ok {name} {seconds}{told}" if fault is None else f"FAIL {name} {seconds}: {fault}", flush=True)


def _run_all(tests):
    failed = 0
    for name, limit, function in tests:
        started, fault, figures = time.monotonic(), None, None
        signal.alarm(limit)
        try:
            figures = function()
        except AssertionError as error:
            fault = str(error) or traceback.format_exc()
        except Exception:
            fault = traceback.format_exc()
        signal.alarm(0)
        failed += fault is not None
        _report(name, started, fault, figures)
    return failed


def main():
    """Runs the tests of this boot, and reboots if there are tests of a later one. The exit status is the number of failed tests."""
    signal.signal(signal.SIGALRM, _overdue)
    boot = int(BOOTS.read_text(encoding="utf-8"))
    FAILED.touch()
    failed = int(FAILED.read_text(encoding="utf-8") or 0) + _run_all([entry for number, *entry in TESTS if number == boot])
    FAILED.write_text(str(failed), encoding="utf-8")
    if boot == max(number for number, *_ in TESTS):
        sys.exit(failed)
    # The machine is started so that a reboot ends it: a crash must not loop.
    run("qmp", "set-action", '{"reboot": "reset"}')
    run("systemctl", "reboot")
    signal.pause()
