#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: experiment_kills.py BUILD [ROUNDS [EXPERIMENT [OPTION ...]]]: ends an experiment of `affinityctl measure` at a random moment,
with ^C and kill -9 in turns, and looks whether it has left a thread, a mask or an interrupt's mask behind. Default: 100 rounds of
latency. Interrupts that somebody else moves meanwhile (irqbalance) count, too: stop it first. Exits with 1 if anything is left."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time


def masks(pids):
    found = {}
    for pid in pids:
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                status = pathlib.Path(f"/proc/{pid}/task/{task}/status").read_text(encoding="utf-8", errors="replace")
                found[task] = next(line for line in status.splitlines() if line.startswith("Cpus_allowed_list:"))
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
    experiment = sys.argv[3:] or ["latency", "--samples", "2000", "--round-trips", "1000"]
    irqs_before, old = interrupts(), processes()
    masks_before, left = masks(old), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            child = subprocess.Popen([f"{build}/tools/affinityctl/affinityctl", "measure", *experiment, "--state-dir", folder],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(random.uniform(0, 1.5))
            tasks = list(masks([child.pid]))
            child.send_signal(signal.SIGKILL if number % 2 else signal.SIGINT)
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                left.append(f"round {number}: it does not end")
                child.kill()
                child.wait()
            left += [f"round {number}: task {task} is left" for task in tasks if os.path.exists(f"/proc/{task}")]
            left += [f"round {number}: process {pid} is left" for pid in processes() if session_of(int(pid)) == child.pid]
    after = masks(old)
    left += [f"the mask of {task} is another" for task, mask in masks_before.items() if after.get(task, mask) != mask]
    left += [f"the mask of interrupt {irq} is another" for irq, mask in interrupts().items() if irqs_before.get(irq, mask) != mask]
    print(f"{rounds} rounds of measure {experiment[0]}: {len(left)} things left behind")
    print("\n".join(left))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
