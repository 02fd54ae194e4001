#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of counting and steering: nanoseconds of CPU time of a round trip over TCP (two reads), and of a whole connection with one,
both ends on one CPU (ping-pong), while the daemon does nothing for the program, while it counts (`affinity: full` with `steer: none`), while it
steers its listeners, and while these have the option SO_INCOMING_CPU that steered them before there was BPF, in turn. Needs root and a build
with -Dtests=true. Prints medians, and ratios to "nothing" of the same round with their 95 % intervals.

    tests/bench/steering_cost.py build [--rounds 40] [--seconds 0.3]
"""
import argparse
import os
import pathlib
import statistics
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "blackbox"), str(pathlib.Path(__file__).resolve().parent)]
from locality_cost import interval  # noqa: E402

MODES = ("nothing", "counts", "steers", "option")


def measure(options):
    os.environ["AFFINITYD_TESTED"] = str(options.build)
    from house import policy, wait_for
    from nets import Net

    class Cost(Net):
        def runTest(self):
            nic = self.pair(queues=2)
            self.near.ip("link", "set", "lo", "up")
            daemon = self.inside({"reconcile": "1s"})
            program = self.spawn(*self.near.command("taskset", "-c", "0", self.copy_of(options.build / "tests/bench/ping-pong", "pong"), "10.99.0.1", "7001"),
                                 stdin=-1, stdout=-1, stderr=None, text=True).process

            def ask(what, seconds=options.seconds):
                program.stdin.write(f"{what} {seconds}\n")
                program.stdin.flush()
                return float(program.stdout.readline())

            def listeners():
                ask("new", 0.05)
                return daemon.policy("web").get("steer", {}).get("listeners")

            def become(mode):
                ask("option", 0 if mode == "option" else -1)
                if mode in ("nothing", "option"):
                    daemon.write("web", policy(self.name("pong"), affinity="none"))
                else:
                    daemon.write("web", policy(self.name("pong"), affinity="full", nics=[nic], cpus="0", bind="cpu", steer="none" if mode == "counts" else "accept"))
                daemon.ctl("reload")
                daemon.passes(2)
                if mode == "steers":
                    wait_for(lambda: listeners() == 2, lambda: f"both listeners are steered: {daemon.policy('web')}")

            found = {(mode, what): [] for mode in MODES for what in ("kept", "new")}
            for number in range(options.rounds):
                for mode in MODES[number % len(MODES):] + MODES[:number % len(MODES)]:
                    become(mode)
                    for what in ("kept", "new"):
                        found[mode, what].append(ask(what))
                print(f"round {number + 1}: " + ", ".join(f"{mode} {what} {values[-1]:.0f}" for (mode, what), values in found.items()), flush=True)
            for what, name in (("kept", "a round trip"), ("new", "a whole connection")):
                for mode in MODES:
                    ratio, low, high = interval([one / other for one, other in zip(found[mode, what], found["nothing", what], strict=True)])
                    print(f"{name}, {mode}: {statistics.median(found[mode, what]):.0f} ns, {ratio:.3f} ({low:.3f} to {high:.3f}) of nothing")

    return unittest.TextTestRunner().run(Cost()).wasSuccessful()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each figure")
    return 0 if measure(parser.parse_args()) else 1


if __name__ == "__main__":
    sys.exit(main())
