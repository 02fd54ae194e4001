#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: experiment_kills.py BUILD [ROUNDS [EXPERIMENT [OPTION ...]]]: ends an experiment of `affinityctl measure` at a random moment,
with ^C and kill -9 in turns, and looks whether it has left a thread, a mask, an interrupt's mask or a result behind. Default: 100 rounds
of latency; options: those by which it lasts longer than until the latest of these moments. Interrupts that somebody else moves meanwhile
(irqbalance) count, too: stop it first. Exits with 1 if anything is left, or if it had ended by itself in a tenth of the rounds."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

LATEST = 1.5  # seconds after its beginning; the first 0.5 s of an experiment are the look whether the machine is quiet
LONG = {"latency": ["--samples", "2000", "--round-trips", "1000"], "sharing": ["--rounds", "10000", "--additions", "1000000"],
        "smt": ["--rounds", "10000", "--numbers", "3000000"], "cache": ["--rounds", "1000"]}


def masks(pids):
    """By task and its start time, since numbers are given again."""
    found = {}
    for pid in pids:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                status = pathlib.Path(f"/proc/{pid}/task/{task}/status").read_text(encoding="utf-8", errors="replace")
                stat = pathlib.Path(f"/proc/{pid}/task/{task}/stat").read_text(encoding="utf-8", errors="replace")
                found[task, stat.rpartition(")")[2].split()[19]] = next(line for line in status.splitlines() if line.startswith("Cpus_allowed_list:"))
        except (OSError, StopIteration):
            continue
    return found


def interrupts():
    return {path.parent.name: path.read_text(encoding="ascii") for path in pathlib.Path("/proc/irq").glob("*/smp_affinity_list")}


def processes():
    return {name for name in os.listdir("/proc") if name.isdigit()}


def session_of(pid):
    try:
        return os.getsid(pid)
    except OSError:
        return None


def main():
    build, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
    experiment = sys.argv[3:] or ["latency"]
    experiment += LONG.get(experiment[0], []) if len(experiment) == 1 else []
    ended = 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs inherit that it is ignored, as in a shell's background
    irqs_before, old = interrupts(), processes()
    masks_before, left = masks(old), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            child = subprocess.Popen([f"{build}/tools/affinityctl/affinityctl", "measure", *experiment, "--state-dir", folder],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(random.uniform(0, LATEST))
            tasks = [task for task, _ in masks([child.pid])]
            ended += child.poll() is not None
            child.send_signal(signal.SIGKILL if number % 2 else signal.SIGINT)
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                left.append(f"round {number}: it does not end")
                child.kill()
                child.wait()
            left += [f"round {number}: task {task} is left" for task in tasks if os.path.exists(f"/proc/{task}")]
            left += [f"round {number}: process {pid} is left" for pid in processes() if session_of(int(pid)) == child.pid]
        if ended == 0:
            left += [f"{name} is kept, of an experiment that was not finished" for name in os.listdir(folder)]
    after = masks(old)
    left += [f"the mask of {task[0]} is another" for task, mask in masks_before.items() if after.get(task, mask) != mask]
    left += [f"the mask of interrupt {irq} is another" for irq, mask in interrupts().items() if irqs_before.get(irq, mask) != mask]
    print(f"{rounds} rounds of measure {experiment[0]}, {ended} of them ended before: {len(left)} things left behind")
    print("\n".join(left))
    return 1 if left or ended * 10 > rounds else 0


if __name__ == "__main__":
    sys.exit(main())
