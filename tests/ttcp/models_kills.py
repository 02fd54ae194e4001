#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""affinityctl measure models, ended at random moments by ^C and by kill -9, leaves nothing behind: no process, no interface here, and no NAPI
thread, which live as long as the experiment's namespaces and interfaces and are all that has a mask from it.

    tests/ttcp/models_kills.py AFFINITYCTL [RUNS [SEED]]
"""
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time
import uuid

MARK = f"AFFINITYD_MODELS_KILLS={uuid.uuid4()}"
WORKS = (("--direction", "receive"), ("--direction", "transmit", "--sizes", "128,4K"), ("--direction", "answer", "--rr", "1,64:4K"))
PATIENCE = 60  # seconds: the kernel removes namespaces in the background


def processes():
    """The processes that this test started, and what they have started: their environment has its mark."""
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if MARK.encode() in path.read_bytes():
                found.add(int(path.parent.name))
        except OSError:
            pass
    return found - {os.getpid()}


def threads():
    """NAPI threads of the experiment's interfaces, by tid and start time."""
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if re.search(r"\(napi/af[mp][0-9a-f]{3}\d", text):
            found.add((path.parent.name, text.rpartition(")")[2].split()[19]))
    return found


def interfaces():
    return sorted(name for _, name in socket.if_nameindex())


def own_mask():
    return os.sched_getaffinity(0)


def wait_until_gone(look, what):
    until = time.monotonic() + PATIENCE
    while left := look():
        if time.monotonic() > until:
            sys.exit(f"FAILED: {what} left: {left}")
        time.sleep(0.02)


def one_run(affinityctl, number, chance):
    here, mask, strangers = interfaces(), own_mask(), threads()
    environment = dict(os.environ, **dict([MARK.split("=")]))
    # The first model warms up, too: it binds threads and processes from the beginning.
    command = [affinityctl, "--json", "measure", "models", "--models", "full,irq,process,none", "--connections", "2", "--rounds", "50", "--seconds", "0.3", *WORKS[number % len(WORKS)]]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as program:
        time.sleep(chance.uniform(0, 6) + chance.choice((0, 0, 5)))  # while it warms up, or later
        seen = threads() - strangers
        how = signal.SIGKILL if number % 2 else signal.SIGINT
        program.send_signal(how)
        if how == signal.SIGINT:
            output, _ = program.communicate(timeout=PATIENCE)
            # A signal that comes before the program has begun ends it as any other program.
            if program.returncode == 1 and b'"killed"' not in output:
                sys.exit(f"FAILED: interrupted: {output!r}")
        program.wait(timeout=PATIENCE)
    wait_until_gone(processes, "processes")
    wait_until_gone(lambda: seen & threads(), "NAPI threads")
    if interfaces() != here or own_mask() != mask:
        sys.exit(f"FAILED: before {here} {mask}, now {interfaces()} {own_mask()}")
    return bool(seen)


def main():
    affinityctl, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    if os.getuid() != 0:
        done = subprocess.run([affinityctl, "measure", "models", "--rounds", "1"], capture_output=True, text=True, check=False)
        if done.returncode != 1 or "root is needed" not in done.stderr:
            sys.exit(f"FAILED: without root: {done}")
        return
    if len(socket.if_nameindex()) > 1:  # what other tests make and remove meanwhile is not this one's
        os.execvp("unshare", ["unshare", "-n", sys.executable, __file__, affinityctl, str(runs), str(seed)])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else a shell in the background has its children ignore it
    chance = random.Random(seed)
    began = [one_run(affinityctl, number, chance) for number in range(runs)]
    print(f"measured: {runs} runs of measure models ended at random ({runs // 2} by kill -9, {sum(began)} with interfaces of their own at that moment): "
          "nothing is left")
    if not any(began):
        sys.exit("FAILED: no run had begun when it was ended")


if __name__ == "__main__":
    main()
