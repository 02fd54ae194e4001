#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`affinityctl topology` on machines of up to 8,192 CPUs: little memory, little time, and text that a person can read."""
import multiprocessing
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

PROGRAM = os.environ.get("AFFINITYCTL", "affinityctl")
CPUS = 8192
CPU = "sys/devices/system/cpu/"
MOST_KIB = 128 * 1000
MOST_SECONDS = 20  # of CPU time; one is promised, for an optimized build on an idle machine


def to_list(cpus):
    cpus, parts, first = sorted(cpus), [], 0
    for at, cpu in enumerate(cpus):
        if at + 1 == len(cpus) or cpus[at + 1] != cpu + 1:
            parts.append(f"{cpus[first]}-{cpu}" if at > first else str(cpu))
            first = at + 1
    return ",".join(parts)


def groups(group_of, count):
    found = {}
    for cpu in range(count):
        found.setdefault(group_of(cpu), []).append(cpu)
    return {group: to_list(cpus) for group, cpus in found.items()}


class Folder:
    """Files of few different contents: each content is one file with many names."""

    def __init__(self, top, count):
        self.top, self.count, self.contents, self.made = top, count, {}, set()

    def put(self, path, text):
        folder = f"{self.top}/{path}".rpartition("/")[0]
        if folder not in self.made:
            os.makedirs(folder, exist_ok=True)
            self.made.add(folder)
        if text in self.contents:
            os.link(self.contents[text], f"{self.top}/{path}")
        else:
            self.contents[text] = f"{self.top}/{path}"
            pathlib.Path(self.contents[text]).write_text(f"{text}\n", encoding="ascii")

    def machine(self, core_of, llc_of, package_of, crossing=None):
        """A machine of these groups by CPU; each package is a node too. `crossing`: the list of the last-level cache of a CPU."""
        cores, llcs, packages = (groups(of, self.count) for of in (core_of, llc_of, package_of))
        for name in ("online", "present", "possible"):
            self.put(CPU + name, f"0-{self.count - 1}")
        for cpu in range(self.count):
            core, package = cores[core_of(cpu)], packages[package_of(cpu)]
            for name, text in (("physical_package_id", package_of(cpu)), ("core_id", core_of(cpu)), ("thread_siblings_list", core),
                               ("core_siblings_list", package)):
                self.put(f"{CPU}cpu{cpu}/topology/{name}", text)
            llc = crossing(cpu) if crossing else llcs[llc_of(cpu)]
            for index, (level, kind, shared) in enumerate(((1, "Data", core), (2, "Unified", core), (3, "Unified", llc))):
                for key, value in {"level": level, "type": kind, "size": f"{32 << index}K", "shared_cpu_list": shared}.items():
                    self.put(f"{CPU}cpu{cpu}/cache/index{index}/{key}", value)
        for node, cpus in packages.items():
            self.put(f"sys/devices/system/node/node{node}/cpulist", cpus)
            self.put(f"sys/devices/system/node/node{node}/distance", " ".join("10" if other == node else "20" for other in packages))
        self.put("proc/interrupts", "           CPU0")


class Large(unittest.TestCase):
    def setUp(self):
        top = tempfile.mkdtemp(prefix="affinityd-large-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(shutil.rmtree, top)
        self.root, self.policies, self.out = os.path.join(top, "root"), os.path.join(top, "policies"), os.path.join(top, "out")
        self.used = []
        os.mkdir(self.policies)
        for name, unit in (("web", "core"), ("db", "cpu")):
            pathlib.Path(self.policies, name + ".yaml").write_text(
                f"version: 1\nmatch: {{comm: {name}}}\naffinity: process\ncpus: all\nspread: {unit}\nbind: {unit}\n", encoding="ascii")

    def machine(self, *how, count=CPUS):
        # In a process of its own: what this one needs counts as memory of those that it starts.
        writer = multiprocessing.get_context("fork").Process(target=lambda: Folder(self.root, count).machine(*how))
        writer.start()
        writer.join()
        self.assertEqual(0, writer.exitcode)

    def lines(self, *arguments):
        """Returns the output of the program; checks that its memory and time are within bounds."""
        out = os.open(self.out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        command = [PROGRAM, "--root", self.root, "topology", *arguments]
        started = time.monotonic()
        pid = os.posix_spawnp(PROGRAM, command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
        os.close(out)
        _, status, usage = os.wait4(pid, 0)
        self.assertEqual(0, os.waitstatus_to_exitcode(status), command)
        self.used.append((usage.ru_maxrss, time.monotonic() - started))
        self.assertLess(usage.ru_maxrss, MOST_KIB, command)
        self.assertLess(usage.ru_utime + usage.ru_stime, MOST_SECONDS, command)
        return pathlib.Path(self.out).read_text(encoding="utf-8").splitlines()

    def all_views(self, width):
        """The tree and the picture with 12,288 places that policies have, and the bare tree; no line is wider. The bare tree."""
        for arguments in (("--svg", "-", "--policies", self.policies), ("--policies", self.policies)):
            self.assertLess(max(map(len, self.lines(*arguments))), width, arguments)
        tree = self.lines()
        self.assertLess(max(map(len, tree)), width)
        most_kib, most_seconds = map(max, zip(*self.used))
        print(f"measured: {self.id().split('.')[-1]}: at most {most_kib // 1000} MB, {most_seconds:.2f} s")
        return tree

    def test_cores_that_are_alike_share_a_line(self):
        self.machine(lambda cpu: cpu % 4096, lambda cpu: cpu % 4096 // 16, lambda cpu: cpu % 4096 // 128)
        tree = self.all_views(400)
        self.assertIn("      L2 64 KiB + L1d 32 KiB + cores 16-31, 16 alike: CPUs 16-31 + 4112-4127", tree)
        self.assertLess(len(tree), 1000)

    def test_a_cut_list_has_its_length(self):
        self.machine(lambda cpu: cpu, lambda cpu: cpu % 2, lambda cpu: 0, count=2048)
        tree = self.all_views(500)
        line = next(line for line in tree if "llc 1 " in line)
        self.assertIn("CPUs 1,3,5,7,", line)
        self.assertTrue(line.endswith(",... (1024 CPUs)"), line)

    def test_groups_that_cross_each_other_are_counted(self):
        even = set(range(0, CPUS, 2))
        self.machine(lambda cpu: cpu % 4096, lambda cpu: cpu, lambda cpu: cpu % 4096 // 128,
                     lambda cpu: to_list(even | {cpu, cpu * 7 % CPUS}))
        tree = self.all_views(500)
        self.assertEqual(16, sum("crosses the groups" in line for line in tree))
        self.assertTrue(any(line.startswith("  and ") and line.endswith(" more cross them") for line in tree))

    def test_distances_of_very_many_nodes_are_summed_up(self):
        self.machine(lambda cpu: cpu % 1024, lambda cpu: cpu % 1024, lambda cpu: cpu % 1024, count=2048)
        self.assertIn("node distances: 20 at most, between 1024 nodes", self.all_views(400))


if __name__ == "__main__":
    if not os.path.exists(PROGRAM):
        sys.exit(f"no such program: {PROGRAM}")
    unittest.main(verbosity=0)
