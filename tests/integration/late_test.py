# SPDX-License-Identifier: Apache-2.0
"""Conditions that come true after a program was started, without a program or a name that would say so. The regular pass is an hour away: it
saves nothing."""
import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import unittest

from daemon import Daemon, allowed, spawn, wait_for

NOBODY = 65534
PROGRAM = pathlib.Path(__file__).with_name("late_program.py")
NAME = f"late-{os.getpid()}-" + "x" * 40
POLICY = "version: 1\nmatch: {{{}}}\ncpus: \"1\"\nbind: set\n"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Late(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.everywhere = allowed(os.getpid())
        self.port = free_port()

    def start(self, **policies):
        daemon = Daemon(self.stack, {f"{name}.yaml": POLICY.format(match) for name, match in policies.items()})
        (daemon.folder / "affinityd.yaml").write_text("version: 1\nreconcile: 1h\n", encoding="utf-8")
        return daemon.start()

    def run_late(self, what, seconds=0.05):
        """The process whose condition has just come true."""
        program = spawn(self.stack, sys.executable, str(PROGRAM), what, str(seconds), str(self.port), NAME, stdout=subprocess.PIPE, text=True)
        return int(program.stdout.readline().split()[1])

    def is_placed(self, pid):
        wait_for(lambda: allowed(pid) == "1", f"process {pid} is on CPU 1")

    def test_a_title_that_a_program_writes_over_its_arguments(self):
        self.start(title="cmdline: \"late: checkpointer*\"")
        self.is_placed(self.run_late("title"))

    def test_a_title_that_a_child_writes_whose_parent_no_policy_wants(self):
        self.start(title="cmdline: \"late: checkpointer*\"")
        self.is_placed(self.run_late("child"))

    def test_a_title_that_brings_it_under_another_policy_that_comes_first(self):
        self.start(title="cmdline: \"late: checkpointer*\", user: root", other=f"cmdline: \"*{NAME}*\"")
        self.is_placed(self.run_late("title", 0.7))

    def test_a_user_that_it_becomes(self):
        daemon = self.start(user=f"cmdline: \"*{NAME}*\", user: nobody")
        self.is_placed(self.run_late("user"))
        daemon.stop()

    def test_a_user_that_it_is_no_more(self):
        self.start(user=f"cmdline: \"*{NAME}*\", user: root")
        pid = self.run_late("user", 1.0)
        wait_for(lambda: allowed(pid) == self.everywhere, "it has its own mask again")

    def test_a_port_on_which_it_listens_soon(self):
        self.start(port=f"listen: {self.port}")
        self.is_placed(self.run_late("listen"))

    def test_a_port_on_which_it_listens_long_after_its_start(self):
        self.start(port=f"listen: {self.port}")
        self.is_placed(self.run_late("listen", 6.0))

    def test_a_port_of_a_program_that_has_hundreds_of_descriptors_when_it_begins_to_listen(self):
        self.start(port=f"listen: {self.port}")
        self.is_placed(self.run_late("many"))

    def test_a_port_of_a_program_that_has_hundreds_of_descriptors_when_the_daemon_starts(self):
        pid = self.run_late("many")
        self.start(port=f"listen: {self.port}")
        self.is_placed(pid)

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_who_listens_is_known_although_another_user_has_thousands_of_sockets_there(self):
        daemon = self.start(port=f"listen: {self.port}, user: root")
        before = self.run_late("listen")
        self.is_placed(before)
        crowd = self.run_late("crowd")
        wait_for(lambda: any(f"user {NOBODY} has more than" in problem["message"] for problem in daemon.status()["problems"]), "status says who it is")
        self.is_placed(self.run_late("listen6"))
        self.assertEqual(allowed(before), "1")
        self.assertEqual(allowed(crowd), self.everywhere)

    def test_who_never_comes_under_a_policy_is_left_alone(self):
        self.start(title=f"cmdline: \"*{NAME}-not*\"", port=f"listen: {self.port}")
        pid = self.run_late("title")
        self.is_never(lambda: allowed(pid) != self.everywhere)

    def is_never(self, condition):
        with self.assertRaises(AssertionError):
            wait_for(condition, "never", patience=7)


if __name__ == "__main__":
    unittest.main()
