# SPDX-License-Identifier: Apache-2.0
"""`affinityctl status` as an administrator types it: one screen, a subject alone, what is out of place, an exit status, a pager."""
import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import unittest

from daemon import PROGRAMS, Daemon, allowed, wait_for, workload

ONE = ("version: 1\nmatch: {comm: demo-workload}\ncpus: \"1\"\nbind: set\n"
       "threads:\n  - {name: \"free-*\", leave: true}\n  - {name: io, cpus: \"0\", bind: set}\n")
IDLE = "version: 1\nmatch: {comm: nobody-runs-this}\ncpus: \"0\"\n"


class Status(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.load = workload(self.stack, "--threads", "io,free-1")
        self.daemon = Daemon(self.stack, {"one.yaml": ONE, "idle.yaml": IDLE})
        self.daemon.settings().write_text("version: 1\nreconcile: 1h\n", encoding="utf-8")
        self.daemon.start()
        wait_for(lambda: allowed(self.load.pid) == "1", "pinned")
        wait_for(lambda: "is running, all is in place" in self.daemon.control("status"), lambda: self.daemon.control("status"))

    def line(self, policy):
        return next(line.split() for line in self.daemon.control("status").splitlines() if line.startswith(policy + " "))

    def test_all_is_well(self):
        said = self.daemon.control("status")
        self.assertIn("no errors; 2 policies in force", said)
        # The thread that is left alone is not missing, and the CPUs of thread rules are the policy's.
        self.assertEqual(["one", "process", "0-1", "-", "1", "2/2", "-", "-", "0", "-"], self.line("one"))
        self.assertEqual(["idle", "process", "0", "-", "0", "-", "-", "-", "0", "-"], self.line("idle"))
        self.assertEqual("", self.daemon.control("status", "--quiet"))

    def test_a_thread_that_somebody_moved(self):
        self.daemon.calm()
        os.sched_setaffinity(self.load.pid, os.sched_getaffinity(0))
        said = self.daemon.control("status")
        self.assertTrue(said.startswith("affinityd "), said)
        self.assertIn("needs no attention", said.splitlines()[0])
        self.assertIn(f"policy one: thread {self.load.pid} (demo-workload) was moved by somebody else; the next pass puts it right", said)
        self.assertIn("no action is needed; at once: affinityctl apply", said)
        self.assertEqual("", self.daemon.control("status", "--quiet"))
        self.assertEqual("", self.daemon.control("status", "idle", "--quiet"))
        failed = self.daemon.control("status", "one", "--failed")
        self.assertIn("drifted", failed)
        self.assertNotIn("free-1", failed)
        self.daemon.control("apply")
        wait_for(lambda: self.line("one")[8] == "1" and self.line("one")[5] == "2/2", "what was put right is counted")

    def test_a_subject_alone(self):
        for subject in ("one", str(self.load.pid)):
            said = self.daemon.control("status", subject)
            self.assertIn("free-1", said)
            self.assertNotIn("idle", said)
        self.assertEqual(["one"], [policy["name"] for policy in
                                   json.loads(self.daemon.control("status", str(self.load.pid), "--json"))["policies"]])
        self.assertIn("did you mean", self.daemon.control("status", "idl", code=1))
        self.assertIn("nothing under policy", self.daemon.control("status", "no-such.service", code=1))

    def test_lines_fit_the_columns(self):
        for width in ("80", "120"):
            done = subprocess.run([PROGRAMS["affinityctl"], "--runtime-dir", str(self.daemon.folder / "run"), "status", "one"], text=True,
                                  capture_output=True, timeout=60, check=True, env={**os.environ, "COLUMNS": width})
            self.assertLessEqual(max(map(len, done.stdout.splitlines())), int(width), done.stdout)

    def on_a_terminal(self, *words, **environment):
        """What it writes to a terminal, with another environment."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", 100, 200, 0, 0))
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, ours)
            with subprocess.Popen([PROGRAMS["affinityctl"], "--runtime-dir", str(self.daemon.folder / "run"), "status", *words], stdin=its,
                                  stdout=its, stderr=its, env={"PATH": os.environ["PATH"], "TERM": "xterm", **environment}) as program:
                os.close(its)
                text = b""
                with contextlib.suppress(OSError):  # the end of a terminal
                    while part := os.read(ours, 65536):
                        text += part
                self.assertEqual(0, program.wait(timeout=60), text)
        return text.decode()

    def test_a_pager_on_a_terminal(self):
        self.assertIn("IS RUNNING", self.on_a_terminal(AFFINITYCTL_PAGER="tr a-z A-Z"))
        self.assertIn("IS RUNNING", self.on_a_terminal(PAGER="tr a-z A-Z"))
        for words, environment in ((("--no-pager",), {"PAGER": "tr a-z A-Z"}), ((), {"PAGER": ""}), ((), {"PAGER": "cat"}),
                                   ((), {"PAGER": "/no/such/pager"}), ((), {"PAGER": "tr a-z A-Z", "TERM": "dumb"})):
            self.assertIn("is running", self.on_a_terminal(*words, **environment), (words, environment))
        # Whose environment it is is not sure under sudo.
        self.assertIn("is running", self.on_a_terminal(PAGER="tr a-z A-Z", SUDO_UID="1000", LESS="+G"))


if __name__ == "__main__":
    unittest.main()
