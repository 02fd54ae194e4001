# SPDX-License-Identifier: Apache-2.0
"""affinityctl watch: for scripts, and for a person at a terminal."""
import contextlib
import json
import os
import pty
import select
import signal
import time
import unittest

from daemon import PATIENCE, PROGRAMS, Daemon, allowed, wait_for, workload

DEMO = "version: 1\nmatch: {comm: demo-workload}\ncpus: \"1\"\nbind: set\n"


def last_cpu(pid, tid):
    """Where the kernel says the thread ran last: field 39 of proc(5)'s stat, the 37th after the name."""
    with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as stat:
        return int(stat.read().rpartition(")")[2].split()[36])


class Terminal:
    """affinityctl on a pseudo terminal. The test's end ends it, whatever happens."""

    def __init__(self, stack, arguments):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(PROGRAMS["affinityctl"], [PROGRAMS["affinityctl"], *arguments])
        self.seen = b""
        self.code = None
        stack.callback(self.end)

    def await_text(self, text, what):
        """Reads until the text appears after the text that was awaited last."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            if time.monotonic() > end:
                raise AssertionError(f"{what}: never saw {text!r}, but {self.seen!r}")
            if select.select([self.fd], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self.fd, 65536)
        self.seen = self.seen[self.seen.index(text) + len(text):]

    def press(self, keys):
        os.write(self.fd, keys)

    def has_ended(self):
        if self.code is None:
            with contextlib.suppress(OSError):
                if select.select([self.fd], [], [], 0)[0]:
                    os.read(self.fd, 65536)
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def end(self):
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


class Watch(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.daemon = Daemon(self.stack, {"demo.yaml": DEMO, "idle.yaml": DEMO.replace("demo-workload", "nobody-is-so")}).start()
        self.load = workload(self.stack, "--threads", "io-1")
        wait_for(lambda: allowed(self.load.pid) == "1", "the workload is on CPU 1")
        wait_for(lambda: len(self.once()) == 2, "both threads are watched")

    def once(self):
        return json.loads(self.daemon.control("watch", "--once", "--json", "--interval", "0.2"))

    def test_once_tells_each_thread_as_the_kernel_has_it(self):
        rows = self.once()
        self.assertEqual({"demo-workload", "io-1"}, {row["comm"] for row in rows})
        for row in rows:
            self.assertEqual(("1", False, "demo"), (row["mask"], row["astray"], row["policy"]))
            self.assertEqual(last_cpu(row["pid"], row["tid"]), row["cpu"], "a thread that sleeps stays where it was")
            self.assertIsNotNone(row["share"])
            self.assertGreaterEqual(row["migrations_per_second"], 0)
        table = self.daemon.control("watch", "demo", "--once", "--interval", "0.2", "--sort", "name")
        self.assertLess(table.index("demo-workload"), table.index("io-1"))
        self.assertNotIn("demo-workload", self.daemon.control("watch", "idle", "--once", "--interval", "0.2"))
        self.assertIn("no policy dmo (did you mean 'demo'?)", self.daemon.control("watch", "dmo", "--once", code=1))

    def test_a_person_at_a_terminal_sorts_holds_and_quits(self):
        screen = Terminal(self.stack, ["--runtime-dir", str(self.daemon.folder / "run"), "watch", "--interval", "0.2"])
        screen.await_text(b"2 threads under policy", "the first picture")
        screen.await_text(b"demo-workload", "its rows")
        screen.press(b"s")
        screen.await_text(b"migrations", "the next order")
        screen.press(b" ")
        screen.await_text(b"HELD", "the picture is held")
        screen.press(b"q")
        wait_for(screen.has_ended, "q ends it")
        self.assertEqual(0, screen.code)

    def test_a_daemon_that_goes_away_ends_the_watch_with_its_own_exit_code(self):
        screen = Terminal(self.stack, ["--runtime-dir", str(self.daemon.folder / "run"), "watch", "--interval", "0.2"])
        screen.await_text(b"2 threads under policy", "the first picture")
        self.daemon.stop()
        wait_for(screen.has_ended, "the watch ends")
        self.assertEqual(4, screen.code)


if __name__ == "__main__":
    unittest.main()
