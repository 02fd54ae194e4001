# SPDX-License-Identifier: Apache-2.0
"""steer: accept, where somebody holds the locks of a server's listeners for a while, as whoever has them open can."""
import contextlib
import pathlib
import subprocess
import sys
import time
import unittest

from daemon import spawn, wait_for
from steered import Steered, sockets


class HeldLocks(Steered):
    def test_listeners_whose_locks_were_held_are_steered_soon_after(self):
        """By looks that are due to that alone: the next pass is a day away."""
        daemon, pids = self.two_workers("tell")
        daemon.settings().write_text("version: 1\nreconcile: 1d\n", encoding="utf-8")
        let_go = self.hold_locks_of(pids)
        daemon.start()
        self.wait_until_not_reached(daemon)
        time.sleep(4)  # longer than the looks after a start last
        let_go()
        self.assertEqual([-1, -1], self.told_of(pids), "they rest first")
        wait_for(lambda: sorted(self.told_of(pids)) == [0, 1], "they are steered", patience=90)

    def test_listeners_whose_locks_are_held_stay_steered_and_are_put_back_soon_after_they_are_let_go(self):
        daemon, pids = self.two_workers("tell")
        daemon.settings().write_text("version: 1\nreconcile: 1d\n", encoding="utf-8")
        daemon.start()
        wait_for(lambda: sorted(self.told_of(pids)) == [0, 1], "they are steered")
        let_go = self.hold_locks_of(pids)
        self.wait_until_not_reached(daemon)
        self.assertEqual(2, daemon.status()["policies"][0]["steer"]["listeners"])
        for pid in pids:
            self.assertNotIn("no steering", daemon.control("explain", str(pid)))
        (daemon.policies / "server.yaml").unlink()
        wait_for(lambda: not daemon.status()["policies"], "the policy is gone")
        time.sleep(2)
        let_go()
        self.assertEqual([0, 1], sorted(self.told_of(pids)), "they rest first")
        wait_for(lambda: self.told_of(pids) == [-1, -1], "they are put back", patience=90)

    def test_at_the_end_also_those_are_put_back_that_rest(self):
        daemon, pids = self.two_workers("tell")
        daemon.start()
        wait_for(lambda: sorted(self.told_of(pids)) == [0, 1], "they are steered")
        let_go = self.hold_locks_of(pids)
        self.wait_until_not_reached(daemon)
        let_go()
        time.sleep(1)  # until the calls have come back
        daemon.stop()
        self.assertEqual([-1, -1], self.told_of(pids))

    def hold_locks_of(self, pids):
        """Returns what lets them go."""
        with contextlib.ExitStack() as copies:
            numbers = [copies.enter_context(one).fileno() for pid in pids for one in sockets(pid).values()]
            holder = spawn(self.stack, sys.executable, str(pathlib.Path(__file__).with_name("held_locks.py")), *map(str, numbers),
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=numbers)
            self.assertEqual(b"holds\n", holder.stdout.readline())

        def let_go():
            holder.stdin.close()
            holder.wait()

        return let_go

    @staticmethod
    def wait_until_not_reached(daemon):
        wait_for(lambda: "it cannot be reached" in str(daemon.status()["policies"][0].get("steer")), "status says so")


if __name__ == "__main__":
    unittest.main()
