# SPDX-License-Identifier: Apache-2.0
"""Processes that are moved between control groups while they run, as kubelet or cgexec do. The regular pass is an hour away: it saves nothing."""
import contextlib
import os
import pathlib
import sys
import unittest

from daemon import Daemon, allowed, measured, remove_group, wait_for, workload

MOUNTED = pathlib.Path("/sys/fs/cgroup")
NAME = f"affinityd-test-{os.getpid()}"
POLICY = f"version: 1\nmatch: {{cgroup: \"/{NAME}/*\"}}\ncpus: \"1\"\nbind: set\n"


def hierarchy():
    """The folder of the groups that `match: cgroup` is about; none where no hierarchy of version 2 can be written."""
    for folder in (MOUNTED, MOUNTED / "unified"):
        if (folder / "cgroup.procs").exists() and (folder / "cgroup.controllers").exists() and os.access(folder, os.W_OK):
            return folder
    return None


class Groups(unittest.TestCase):
    def setUp(self):
        self.groups, self.stack = contextlib.ExitStack(), contextlib.ExitStack()
        self.addCleanup(self.groups.close)  # after the processes in them have been ended
        self.addCleanup(self.stack.close)
        top = hierarchy()
        self.daemon = Daemon(self.stack, {"group.yaml": POLICY})
        (self.daemon.folder / "affinityd.yaml").write_text("version: 1\nreconcile: 1h\n", encoding="utf-8")
        self.top = None
        if top is None:
            print("NO CONTROL GROUPS CAN BE MADE HERE: only that nobody is moved is tested; tests/events and tests/app try groups of files",
                  file=sys.stderr)
            return
        self.home = top / pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").strip().splitlines()[-1].split(":", 2)[2].lstrip("/")
        self.top = top / NAME
        self.make(self.top)

    def make(self, folder):
        folder.mkdir()
        self.groups.callback(remove_group, folder)
        return folder

    def started(self):
        load = workload(self.stack, "--threads", "io-1")
        wait_for(lambda: len(list(pathlib.Path(f"/proc/{load.pid}/task").iterdir())) == 2, "it runs")
        return load

    def stays_free(self):
        load = self.started()
        free = self.masks(load.pid)
        self.daemon.start()
        self.assertEqual(free, self.masks(load.pid))

    def masks(self, pid):
        return {allowed(pid, int(entry.name)) for entry in pathlib.Path(f"/proc/{pid}/task").iterdir()}

    def test_a_process_is_placed_where_it_comes_to_and_let_go_where_it_leaves(self):
        if self.top is None:
            return self.stays_free()
        inner = self.make(self.top / "inner")
        load = self.started()
        free = self.masks(load.pid)
        self.daemon.start()
        (inner / "cgroup.procs").write_text(str(load.pid), encoding="ascii")
        came = measured(lambda: self.masks(load.pid) == {"1"}, "the process is placed")
        (self.home / "cgroup.procs").write_text(str(load.pid), encoding="ascii")
        went = measured(lambda: self.masks(load.pid) == free, "the process is let go")
        print(f"measured: placed {came:.2f} s, let go {went:.2f} s after the move", file=sys.stderr)

    def test_a_group_that_is_made_later_is_known_at_once(self):
        if self.top is None:
            return self.stays_free()
        load = self.started()
        self.daemon.start()
        inner = self.make(self.top / "later")
        (inner / "cgroup.procs").write_text(str(load.pid), encoding="ascii")
        wait_for(lambda: self.masks(load.pid) == {"1"}, "the process is placed")

    def watches(self):
        """How many folders and files the daemon has under inotify."""
        found = 0
        for entry in pathlib.Path(f"/proc/{self.daemon.process.pid}/fdinfo").iterdir():
            with contextlib.suppress(OSError):
                found += entry.read_text(encoding="ascii").count("inotify wd:")
        return found

    def test_groups_that_come_and_go_by_the_hundred_lose_nobody(self):
        if self.top is None:
            return self.stays_free()
        load = self.started()
        self.daemon.start()
        before = self.watches()
        for number in range(300):
            folder = self.top / f"short-{number}"
            folder.mkdir()
            folder.rmdir()
        wait_for(lambda: self.watches() <= before + 100, "groups that are gone are watched no more")
        inner = self.make(self.top / "last")
        (inner / "cgroup.procs").write_text(str(load.pid), encoding="ascii")
        wait_for(lambda: self.masks(load.pid) == {"1"}, "the process is placed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
