# SPDX-License-Identifier: Apache-2.0
"""Tests that run one after the other on one machine, each under a time limit of its own. Later tests build on earlier ones, so all
of them run whatever fails. One line a test: "ok NAME" or "FAIL NAME: why"."""
import pathlib
import signal
import subprocess
import sys
import time
import traceback

TESTS = []
BOOTS, FAILED = pathlib.Path("/host/boots"), pathlib.Path("/host/failed")
# What a test awaits comes within seconds; an emulated machine on a busy host may need much longer.
PATIENCE = 40
# Seconds that convergence may take. The daemon needs less than one; tests print what was measured, and fail only where no busy host and no
# emulation explains it.
ROOM = 15.0


def test(limit=90, boot=1):
    """Makes a function a test of this boot of the machine; its name, words joined by _, is what it claims. What it returns are figures
    for people."""
    def register(function):
        TESTS.append((boot, function.__name__.replace("_", " "), limit, function))
        return function
    return register


def run(*command, code=0, patience=60):
    """A command's output; fails if it ends otherwise than with `code`."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience, stdin=subprocess.DEVNULL, check=False)
    text = done.stdout + done.stderr
    assert done.returncode == code, f"{' '.join(command)}: ended with {done.returncode}\n{text}"
    return done.stdout


def wait_for(condition, what, patience=PATIENCE):
    """Polls until the condition gives something true, which is returned. `what` may be a function that tells how things stand."""
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {patience} s: {what() if callable(what) else what}")
        time.sleep(0.3)


def broken_for(action, condition, watch=4):
    """Seconds from the action's end to the last moment at which the condition did not hold, as seen while it was watched."""
    action()
    started, last = time.monotonic(), 0.0
    while (now := time.monotonic() - started) < watch or last > now - 1:
        if not condition():
            last = time.monotonic() - started
        assert now < 10 * watch, "it never holds"
        time.sleep(0.01)
    return last


def longest_broken(condition, watch):
    """Seconds of the longest time in a row, of the next `watch` seconds, that the condition did not hold."""
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
    """Runs the tests of this boot, and if others wait for the next one reboots; the number of those that failed is the exit status."""
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
