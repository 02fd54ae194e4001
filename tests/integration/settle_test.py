# SPDX-License-Identifier: Apache-2.0
"""Programs that count their CPUs when they start count those of their policy; their threads get places of their own afterwards."""
import contextlib
import os
import subprocess
import sys
import time
import unittest

from daemon import Daemon, allowed, spawn, threads, wait_for

NAME = f"count-{os.getpid()}"
POLICY = f"version: 1\nmatch: {{cmdline: \"*{NAME}*\"}}\ncpus: \"0-1\"\nspread: cpu\nbind: cpu\n"
COUNT = """
import os, sys, threading, time
name, before, made = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
time.sleep(before)
print(len(os.sched_getaffinity(0)), flush=True)
for _ in range(made):
    threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
line = sys.stdin.readline()
if line.startswith("again"):
    os.execv(sys.executable, [sys.executable, "-c", os.environ["COUNT"], name, "0.3", "0"])
"""
SINGLE = {"0", "1"}


class Settle(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def start(self, more="", reconcile="1h"):
        daemon = Daemon(self.stack, {"count.yaml": POLICY + more})
        (daemon.folder / "affinityd.yaml").write_text(f"version: 1\nreconcile: {reconcile}\n", encoding="utf-8")
        return daemon.start()

    def counting(self, before, made):
        return spawn(self.stack, sys.executable, "-c", COUNT, NAME, str(before), str(made), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                     text=True, env=os.environ | {"COUNT": COUNT})

    def test_a_single_thread_counts_all_cpus_and_is_placed_later(self):
        self.start()
        program = self.counting(0.5, 0)
        self.assertEqual("2\n", program.stdout.readline())
        wait_for(lambda: allowed(program.pid) in SINGLE, "it has its own place")

    def test_threads_are_placed_soon_after_the_last_was_made_each_by_itself(self):
        daemon = self.start("settle: 40s\n")
        program = self.counting(0.3, 3)
        self.assertEqual("2\n", program.stdout.readline())
        wait_for(lambda: len(threads(program.pid)) == 4, "all are there")
        self.assertEqual({"0-1"}, {allowed(program.pid, tid) for tid in threads(program.pid)})
        wait_for(lambda: {allowed(program.pid, tid) for tid in threads(program.pid)} == SINGLE, lambda: self.told(daemon, program.pid),
                 patience=30)

    @staticmethod
    def told(daemon, pid):
        return {tid: allowed(pid, tid) for tid in threads(pid)}, daemon.control("explain", str(pid)), daemon.text()

    def test_passes_do_not_put_that_off(self):
        self.start("settle: 40s\n", reconcile="1s")
        program = self.counting(0.3, 3)
        self.assertEqual("2\n", program.stdout.readline())
        wait_for(lambda: {allowed(program.pid, tid) for tid in threads(program.pid)} == SINGLE, "they are apart", patience=30)

    def test_a_program_that_is_run_by_a_process_with_a_place_counts_all_again(self):
        self.start("settle: 5s\n")
        program = self.counting(0.1, 0)
        self.assertEqual("2\n", program.stdout.readline())
        wait_for(lambda: allowed(program.pid) in SINGLE, "it has its own place")
        program.stdin.write("again\n")
        program.stdin.flush()
        self.assertEqual("2\n", program.stdout.readline())
        wait_for(lambda: allowed(program.pid) in SINGLE, "it has its own place again")

    def test_it_is_kept_inside_its_policy_meanwhile(self):
        daemon = Daemon(self.stack, {"one.yaml": f"version: 1\nmatch: {{cmdline: \"*{NAME}*\"}}\ncpus: \"1\"\nbind: cpu\nsettle: 1m\n"})
        daemon.start()
        program = self.counting(0.5, 0)
        self.assertEqual("1\n", program.stdout.readline())

    def test_without_time_to_settle_it_is_placed_at_once(self):
        self.start("settle: 0\n")
        program = self.counting(1.5, 0)
        wait_for(lambda: allowed(program.pid) in SINGLE, "it has its own place")
        self.assertEqual("1\n", program.stdout.readline())

    def test_who_was_there_before_has_settled(self):
        program = self.counting(0.1, 3)
        program.stdout.readline()
        wait_for(lambda: len(threads(program.pid)) == 4, "all are there")
        self.start("settle: 100ms\n")
        self.assertEqual(SINGLE, {allowed(program.pid, tid) for tid in threads(program.pid)})

    def test_the_end_puts_back_what_it_had(self):
        daemon = self.start("settle: 20s\n")
        program = self.counting(0.1, 3)
        program.stdout.readline()
        wait_for(lambda: {allowed(program.pid, tid) for tid in threads(program.pid)} == SINGLE, "they are apart")
        daemon.stop()
        self.assertEqual({allowed(os.getpid())}, {allowed(program.pid, tid) for tid in threads(program.pid)})

    def test_a_mask_that_it_sets_meanwhile_is_its_own_where_the_policy_gives_way(self):
        for drift in ("yield", "once"):
            with self.subTest(drift), contextlib.ExitStack() as stack:
                self.stack = stack
                policy = f"version: 1\nmatch: {{cmdline: \"*{NAME}*\"}}\nspread: cpu\nbind: cpu\nsettle: 1s\ndrift: {drift}\n"
                Daemon(stack, {"count.yaml": policy}).start()
                first = self.counting(0.1, 0)
                wait_for(lambda: allowed(first.pid) in SINGLE, "it has its own place")
                program = self.counting(0.1, 0)
                program.stdout.readline()
                own = allowed(first.pid)  # the policy wants the other one
                os.sched_setaffinity(program.pid, {int(own)})
                time.sleep(2)
                self.assertEqual(own, allowed(program.pid))

    def test_explain_says_so(self):
        daemon = self.start("settle: 1m\n")
        program = self.counting(0.1, 0)
        program.stdout.readline()
        wait_for(lambda: "until it has settled" in daemon.control("explain", str(program.pid)), "explain names it")


if __name__ == "__main__":
    unittest.main()
