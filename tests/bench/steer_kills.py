#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the daemon with SIGKILL at random moments while it tells nginx's listeners their CPUs, while nginx reloads, the policy changes, goes
and comes back, and clients connect all the time. Every few rounds, and at the end, a daemon is started and stopped in order: then each
listener must have what it had before the first start, and each worker and kernel thread its mask. As many reloads without any daemon say how
many connections nginx itself loses.

    tests/bench/steer_kills.py build [--rounds 200] [--seed 1]
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

from steer import imports

POLICIES = ("accept", "accept", "none", "auto", None)
BETWEEN_CHECKS = 20  # rounds
# One connection after the other, each of which asks for one thing; at its end it says how many were answered, refused and reset.
CLIENT = """import signal, socket, sys, time
counts = dict.fromkeys(("answered", "refused", "reset", "other"), 0)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(*(f"{name}={count}" for name, count in counts.items()), flush=True)))
while True:
    try:
        with socket.create_connection(("10.98.0.1", 8080), 10) as peer:
            peer.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
            text = b""
            while part := peer.recv(4096):
                text += part
        counts["answered" if text.startswith(b"HTTP/1.1 200") else "other"] += 1
    except ConnectionRefusedError:
        counts["refused"] += 1
    except ConnectionResetError:
        counts["reset"] += 1
    except OSError:
        counts["other"] += 1
    time.sleep(0.002)
"""


@contextlib.contextmanager
def clients(case):
    """Its value has the counts at the end."""
    counts = {}
    process = subprocess.Popen(case.far.command(sys.executable, "-c", CLIENT), stdout=subprocess.PIPE, text=True)
    try:
        yield counts
    finally:
        process.terminate()
        for word in process.communicate(timeout=60)[0].split():
            name, count = word.split("=")
            counts[name] = int(count)


class Trial:
    def __init__(self, case, folder, seed):
        self.case, self.random = case, random.Random(seed)
        self.master = case.nginx(folder)
        self.daemon = case.daemon("accept")
        self.before = self.state()

    def state(self):
        """What affinityd may change: the listeners' CPUs, and the masks of nginx and of the interface's threads."""
        from daemon import allowed
        from namespaces import napi_threads
        tasks = [self.master, *self.case.workers(self.master), *napi_threads(self.case.nic)]
        return self.case.told(self.master), sorted({allowed(pid) for pid in tasks})

    def reload(self):
        os.kill(self.master, signal.SIGHUP)

    def change_policy(self):
        steer = self.random.choice(POLICIES)
        if steer is None:
            (self.daemon.policies / "server.yaml").unlink(missing_ok=True)
        else:
            self.daemon.write("server.yaml", self.case.policy(steer))

    def round(self):
        self.daemon.process = subprocess.Popen(self.daemon.command(), stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        actions = [self.reload, self.random.choice((self.reload, self.change_policy, lambda: None))]
        for action in self.random.sample(actions, 2):
            time.sleep(self.random.uniform(0, 0.6))
            action()
        time.sleep(self.random.choice((0, 0.01, self.random.uniform(0, 0.5))))
        self.daemon.process.kill()
        self.daemon.process.wait()
        return self.case.told(self.master) != self.before[0]  # it had something to take back

    def check(self):
        """Whether all is as before, after a daemon that is stopped in order. Old workers of nginx may be ending."""
        self.daemon.start()
        time.sleep(self.random.uniform(0, 1))
        self.daemon.stop()
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                if self.state() == self.before:
                    return True
            time.sleep(0.1)
        print(f"not as before: {self.state()}, but {self.before}", flush=True)
        return False


def run(trial, options):
    told = wrong = checks = 0
    with clients(trial.case) as counts:
        for number in range(1, options.rounds + 1):
            told += trial.round()
            if number % BETWEEN_CHECKS == 0 or number == options.rounds:
                checks += 1
                wrong += not trial.check()
    with clients(trial.case) as without:
        for _ in range(options.rounds // 2):
            trial.reload()
            time.sleep(trial.random.uniform(0, 0.6))
    lost = sum(count for name, count in counts.items() if name != "answered")
    print(f"seed {options.seed}: {options.rounds} kills, after {told} of them listeners had CPUs to be taken back; {checks} checks, {wrong} wrong")
    print(f"connections: {counts}; with as many reloads and no daemon: {without}", flush=True)
    return wrong + lost > sum(count for name, count in without.items() if name != "answered")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    imports(options.build)
    import steered
    case = steered.Steered()
    case.setUp()
    try:
        with tempfile.TemporaryDirectory(prefix="affinityd-steer-") as folder:
            return int(run(Trial(case, pathlib.Path(folder), options.seed), options))
    finally:
        case.doCleanups()


if __name__ == "__main__":
    sys.exit(main())
