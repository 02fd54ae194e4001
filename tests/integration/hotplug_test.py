# SPDX-License-Identifier: Apache-2.0
"""A CPU goes offline and online: the kernel's event, and what the daemon then reads and plans. The test changes the files of a small recorded
machine; the event is a real one, which the kernel repeats on request (uevent)."""
import contextlib
import json
import pathlib
import unittest

from daemon import Daemon, wait_for

POLICY = "version: 1\nmatch: {comm: no-such-program}\naffinity: process\ncpus: all - 0\nspread: cpu\nbind: cpu\n"


class Hotplug(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def test_a_cpu_that_goes_and_comes_changes_what_is_planned_at_once(self):
        daemon = Daemon(self.stack, {"all.yaml": POLICY})
        machine = daemon.folder / "machine"
        self.online = machine / "sys/devices/system/cpu/online"
        (machine / "proc").mkdir(parents=True)
        for cpu in range(4):
            (machine / f"sys/devices/system/cpu/cpu{cpu}/topology").mkdir(parents=True)
        for name in ("possible", "present", "online"):
            (self.online.parent / name).write_text("0-3\n", encoding="ascii")
        # No periodic pass may notice the change first.
        daemon.settings().write_text("version: 1\nreconcile: 1h\n", encoding="utf-8")
        daemon.arguments += ["--root", str(machine), "--dry-run"]
        daemon.start()
        self.assertEqual("1-3", cpus(daemon))
        for action, online, expected in (("offline", "0-1,3", "1,3"), ("online", "0-3", "1-3")):
            self.online.write_text(online + "\n", encoding="ascii")
            pathlib.Path("/sys/devices/system/cpu/cpu0/uevent").write_text("change", encoding="ascii")
            wait_for(lambda expected=expected: cpus(daemon) == expected, f"the policy has CPUs {expected} after {action}")


def cpus(daemon):
    return json.loads(daemon.control("status", "--json"))["policies"][0]["cpus"]


if __name__ == "__main__":
    unittest.main()
