#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the daemon with SIGKILL at random moments, while programs start, end, rename themselves and leave children behind, and while the
policy is changed, broken and removed, SIGHUPs arrive by the dozen, and the daemon is stopped and continued. Then it is started once more and
stopped in order. Afterwards every task that is left, every bystander and every interrupt must have the mask from before the first start;
the daemon is not asked.

    tests/bench/chaos.py build [--rounds 5000] [--seed 1]
"""
import argparse
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

GOOD = "version: 1\nmatch: {{comm: chaos-firm}}\naffinity: process\ncpus: \"{}\"\nbind: set\n"
ENDED_BY_ERRORS = 3  # policies with errors
LAST = os.sysconf("SC_NPROCESSORS_ONLN") - 1
POLICIES = (GOOD.format(LAST), GOOD.format(0), GOOD.format(LAST) + "threads:\n  - {name: \"worker-*\", cpus: \"0\", bind: set}\n  - {name: \"*\"}\n",
            "version: 1\nmatch: {comm: [", None)


def read(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def allowed(pid):
    """Masks of the threads of a process, without those that have ended."""
    masks = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        lines = [line.split()[1] for line in (read(task) or "").splitlines() if line.startswith("Cpus_allowed_list")]
        masks += lines
    return masks


def of_session(leader):
    """All processes of a session, also those whose parents have ended; proc_pid_stat(5)."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        words = (read(folder / "stat") or "").rpartition(")")[2].split()
        if len(words) > 3 and words[3] == str(leader) and words[0] != "Z":
            found.append(int(folder.name))
    return found


def interrupts():
    return {str(path): read(path) for path in pathlib.Path("/proc/irq").glob("*/smp_affinity_list")}


class Chaos:
    def __init__(self, build, folder, seed):
        self.build, self.folder, self.random = build, folder, random.Random(seed)
        for name in ("policies", "run", "state"):
            (folder / name).mkdir()
        self.policy, self.daemon = folder / "policies" / "chaos.yaml", None

    def put(self, text):
        if text is None:
            self.policy.unlink(missing_ok=True)
        else:
            self.policy.write_text(text, encoding="utf-8")

    def start(self):
        with (self.folder / "log").open("w", encoding="utf-8") as log:
            self.daemon = subprocess.Popen([self.build / "daemon/affinityd", "--foreground", "--policies", self.folder / "policies", "--runtime-dir",
                                            self.folder / "run", "--state-dir", self.folder / "state"], stdout=log, stderr=log)

    def is_ready(self, patience=60):
        end = time.monotonic() + patience
        while "ready" not in (read(self.folder / "log") or ""):
            if self.daemon.poll() is not None or time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def has_begun(self):
        """A SIGHUP before main() ends any program."""
        blocked = [line.split()[1] for line in (read(f"/proc/{self.daemon.pid}/status") or "").splitlines() if line.startswith("SigBlk")]
        return bool(blocked) and bool(int(blocked[0], 16) >> (signal.SIGHUP - 1) & 1)

    def disturb(self):
        what = self.random.randrange(4)
        if what == 0:
            self.put(self.random.choice(POLICIES))
            self.daemon.send_signal(signal.SIGHUP)
        elif what == 1:
            for _ in range(20):
                self.daemon.send_signal(signal.SIGHUP)
        elif what == 2:
            self.daemon.send_signal(signal.SIGSTOP)
            time.sleep(self.random.uniform(0, 0.03))
            self.daemon.send_signal(signal.SIGCONT)

    def round(self):
        """A start, perhaps a disturbance, a kill. Returns whether the daemon ended by itself for a reason that is none."""
        self.start()
        time.sleep(self.random.uniform(0, 0.15))
        for _ in range(self.random.randrange(3)):
            if self.daemon.poll() is None and self.has_begun():
                self.disturb()
                time.sleep(self.random.uniform(0, 0.08))
        self.daemon.kill()
        code = self.daemon.wait()
        if self.random.random() < 0.5 or code == ENDED_BY_ERRORS:
            self.put(POLICIES[0])
        return code not in (-signal.SIGKILL, ENDED_BY_ERRORS)

    def stop_in_order(self):
        self.put(POLICIES[0])
        self.start()
        if not self.is_ready():
            return False
        time.sleep(1)
        self.daemon.terminate()
        return self.daemon.wait(timeout=120) == 0


def wrong_masks(churn, bystanders, before):
    """How many tasks were looked at, and which have another mask than before."""
    looked, wrong = 0, []
    for pid in of_session(churn.pid):
        masks = allowed(pid)
        looked += len(masks)
        wrong += [f"{pid} ({(read(f'/proc/{pid}/comm') or '').strip()}): {mask}" for mask in masks if mask != f"0-{LAST}"]
    for pid, mask in bystanders.items():
        looked += 1
        wrong += [f"bystander {pid}: {seen}" for seen in allowed(pid) if seen != mask]
    wrong += [f"{path}: {seen}" for path, seen in interrupts().items() if before.get(path, seen) != seen]
    return looked, wrong


def run(options, stack):
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="affinityd-bench-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)))
    chaos = Chaos(options.build, folder, options.seed)
    chaos.put(POLICIES[0])
    before = interrupts()
    churn = stack.enter_context(subprocess.Popen([options.build / "tests/bench/churn", "20", "chaos-firm", "4"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                                 start_new_session=True))
    stack.callback(churn.stdin.close)
    bystanders = {}
    for mask in ("0", str(LAST), f"0-{LAST}"):
        sleeper = stack.enter_context(subprocess.Popen(["taskset", "-c", mask, "sleep", "100000"]))
        stack.callback(sleeper.kill)
        bystanders[sleeper.pid] = mask
    time.sleep(0.5)
    stack.callback(lambda: chaos.daemon.poll() is None and chaos.daemon.kill())
    pinned = 0
    for number in range(options.rounds):
        if chaos.round():
            sys.exit(f"round {number}: the daemon ended by itself with {chaos.daemon.returncode}:\n{read(folder / 'log')}")
        if number % 25 == 0:
            pinned += len(wrong_masks(churn, bystanders, before)[1]) > 0
        if (number + 1) % options.check == 0 or number + 1 == options.rounds:
            if not chaos.stop_in_order():
                sys.exit(f"round {number}: it does not start or stop in order:\n{read(folder / 'log')}")
            looked, wrong = wrong_masks(churn, bystanders, before)
            print(f"chaos rounds={number + 1} looks_with_pinned_tasks={pinned} tasks={looked} interrupts={len(before)} wrong={len(wrong)}", flush=True)
            if wrong:
                print("\n".join(wrong[:20]), read(folder / "log"), sep="\n")
                return 1
    return pinned == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--check", type=int, default=250, help="after how many rounds the masks are looked at")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.ExitStack() as stack:
        return run(options, stack)


if __name__ == "__main__":
    sys.exit(main())
