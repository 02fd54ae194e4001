# SPDX-License-Identifier: Apache-2.0
"""Two threads that talk to each other come onto the closest CPUs by what `measure latency` measured, and the daemon says so."""
import contextlib
import os
import subprocess
import sys
import unittest

from daemon import Daemon, allowed, spawn, threads, wait_for

NAME = f"pong-{os.getpid()}"
POLICY = f"""version: 1
match: {{cmdline: "*{NAME}*"}}
settle: 300ms
threads:
  - {{index: 1-2, near: measured}}
  - {{leave: true}}
"""
PONG = """
import os, sys, threading, time
there, back = os.pipe(), os.pipe()
def pong(source, target):
    while data := os.read(source, 1):
        time.sleep(0.01)
        os.write(target, data)
for ends in ((there[0], back[1]), (back[0], there[1])):
    threading.Thread(target=pong, args=ends, daemon=True).start()
os.write(there[1], b"x")
sys.stdin.read()
"""


class Company(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def talking(self, pid):
        """Where the two are that talk."""
        return [allowed(pid, tid) for tid in sorted(threads(pid))[1:]]

    def test_two_threads_of_a_pipe_come_close_and_explain_says_by_what(self):
        daemon = Daemon(self.stack, {"pong.yaml": POLICY}).start()
        pong = spawn(self.stack, sys.executable, "-c", PONG, NAME, stdin=subprocess.PIPE)
        wait_for(lambda: len(threads(pong.pid)) == 3, "all are there")

        def are_alone():
            places = self.talking(pong.pid)
            return len(set(places)) == 2 and all(place.isdigit() for place in places)
        wait_for(are_alone, "each of the two has a CPU of its own")
        self.assertEqual(allowed(os.getpid()), allowed(pong.pid), "the main thread is left alone")
        self.assertIn("by topology, as no latencies were measured here", daemon.control("explain", str(pong.pid)))
        before = self.talking(pong.pid)
        daemon.control("measure", "latency", "--cpus", ",".join(before), "--state-dir", str(daemon.folder / "state"))
        daemon.control("reload")
        wait_for(lambda: "by measured latency" in daemon.control("explain", str(pong.pid)), "the daemon knows of it")
        text = daemon.control("explain", str(pong.pid))
        print("measured:", next(line.strip() for line in text.splitlines() if "by measured latency" in line))
        self.assertRegex(text, r"close to the one that it belongs to, on CPU \d+, by measured latency, \d+\.\d ns")
        self.assertEqual(before, self.talking(pong.pid), "a matrix of one pair moves nobody")
        daemon.stop()
        self.assertEqual({allowed(os.getpid())}, set(self.talking(pong.pid)))


if __name__ == "__main__":
    unittest.main()
