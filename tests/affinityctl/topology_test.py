#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`affinityctl topology` and `affinityctl cpus` as their users see them, on a small recorded machine made here. The published
recordings are the subject of tests/topology/corpus_test.py."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

PROGRAM = os.environ.get("AFFINITYCTL", "affinityctl")
SVG = "{http://www.w3.org/2000/svg}"
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
CPU = "sys/devices/system/cpu/"
# An interface's name may be any bytes but / and blanks. These are markup, a terminal's commands and no text at all.
HOSTILE = (b"<b>&\"'x]]>", b"\x1b[2Jeth", b"\xc2\x9b31m\xff\xfe", "€-lan".encode())


class Machine(unittest.TestCase):
    """Two packages of two cores of two threads; CPU 7 is offline, 5 isolated; interfaces with odd names at node 1."""

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="affinityd-topology-", dir=SCRATCH)
        self.addCleanup(shutil.rmtree, self.top)
        for name, text in {"online": "0-6", "present": "0-7", "possible": "0-7", "isolated": "5"}.items():
            self.put(CPU + name, text)
        for cpu in range(7):
            core = f"{cpu & ~1}-{cpu | 1}" if cpu < 6 else "6"
            package = "0-3" if cpu < 4 else "4-6"
            self.put(f"{CPU}cpu{cpu}/topology/physical_package_id", cpu // 4)
            self.put(f"{CPU}cpu{cpu}/topology/core_id", cpu // 2 % 2)
            self.put(f"{CPU}cpu{cpu}/topology/thread_siblings_list", core)
            self.put(f"{CPU}cpu{cpu}/topology/core_siblings_list", package)
            for index, (level, kind, shared) in enumerate(((1, "Data", core), (2, "Unified", core), (3, "Unified", package))):
                for key, value in {"level": level, "type": kind, "size": f"{32 << index}K", "shared_cpu_list": shared}.items():
                    self.put(f"{CPU}cpu{cpu}/cache/index{index}/{key}", value)
        for node, cpus in enumerate(("0-3", "4-6")):
            self.put(f"sys/devices/system/node/node{node}/cpulist", cpus)
            self.put(f"sys/devices/system/node/node{node}/distance", "10 21" if node == 0 else "21 10")
        self.put("proc/interrupts", "           CPU0\n")
        self.nic("near0", 0)
        for name in HOSTILE:
            self.nic(os.fsdecode(name), 1)

    def put(self, path, value):
        file = pathlib.Path(self.top, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n", encoding="utf-8")
        return str(file)

    def nic(self, name, node):
        links = pathlib.Path(self.top, "sys/class/net")
        links.mkdir(parents=True, exist_ok=True)
        place = f"devices/pci0000:00/0000:0{node}:{len(os.listdir(links)):02}.0/"
        self.put(f"sys/{place}numa_node", node)
        self.put(f"sys/{place}net/{name}/ifindex", len(os.listdir(links)) + 2)
        self.put(f"sys/{place}net/{name}/queues/rx-0/rps_cpus", "0")
        (links / name).symlink_to(f"../../{place}net/{name}")

    def run_it(self, *arguments, code=0, root=None):
        done = subprocess.run([PROGRAM, "--root", root or self.top, *arguments], capture_output=True, check=False)
        self.assertEqual(code, done.returncode, done.stderr)
        return done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape")

    def picture(self, *arguments, root=None):
        text = self.run_it("topology", "--svg", "-", *arguments, root=root)[0]
        return ElementTree.fromstring(text.encode(errors="surrogateescape")), text

    def policy(self, name, text):
        return self.put(f"policies/{name}.yaml", text)


def by_id(picture, name):
    return next((each for each in picture.iter(SVG + "g") if each.get("id") == name), None)


def words(element):
    return "\n".join("".join(each.itertext()) for each in element.iter() if each.tag in (SVG + "text", SVG + "title"))


class Tree(Machine):
    def test_what_holds_what(self):
        lines = self.run_it("topology")[0].splitlines()
        self.assertEqual(os.path.basename(self.top) + ": 7 CPUs, 4 cores, 2 packages, 2 nodes", lines[0])
        self.assertIn("  package 1 + node 1: CPUs 4-6", lines)
        self.assertIn("    llc 1 (L3 128 KiB): CPUs 4-6", lines)
        self.assertIn("      L2 64 KiB + L1d 32 KiB + core 2: CPU 4, CPU 5 (isolated)", lines)
        for line in ("offline: CPUs 7", "isolated: CPUs 5", "housekeeping: CPUs 0-4,6", "    1   21   10"):
            self.assertIn(line, lines)

    def test_interfaces_hang_at_their_node(self):
        lines = self.run_it("topology")[0].splitlines()
        node1 = next(number for number, line in enumerate(lines) if "node 1" in line)
        places = {line.split("NIC ")[1].split(" (")[0]: number > node1 for number, line in enumerate(lines) if "NIC " in line}
        self.assertEqual(len(HOSTILE) + 1, len(places))
        self.assertFalse(places.pop("near0"))
        self.assertEqual({True}, set(places.values()))

    def test_no_name_reaches_the_terminal_as_a_command(self):
        for arguments in (["topology"], ["topology", "--table"], ["cpus", "nic:none"]):
            out, err = self.run_it(*arguments, code=1 if "cpus" in arguments else 0)
            text = (out + err).encode(errors="surrogateescape")
            self.assertNotIn(b"\x1b", text)
            self.assertNotIn(b"\x9b", text)
            self.assertNotIn(b"\xc2\x9b", text)

    def test_what_a_policy_would_occupy(self):
        folder = os.path.dirname(self.policy("web", "version: 1\nmatch: {comm: web}\naffinity: process\ncpus: node:1 & !smt - isolated\nspread: core\nbind: core"))
        out = self.run_it("topology", "--policies", folder)[0]
        self.assertIn("  web (affinity process): CPUs 4,6; 2 slots\n", out)
        self.assertIn("CPU 6\n        > web: slot", out)
        self.assertEqual(out.replace("policies", "policy web").replace("the policy web", "policy web"),
                         self.run_it("topology", "--policies", folder, "--policy", "web")[0])
        self.assertIn("did you mean 'web'", self.run_it("topology", "--policies", folder, "--policy", "wbe", code=1)[1])
        self.policy("web", "version: 1\nmatch: {comm: web}\ncpu: node:1")
        self.assertIn("web.yaml:3:1: error", self.run_it("topology", "--policies", folder, code=3)[1])


class Table(Machine):
    def test_a_line_for_each_cpu(self):
        lines = [line.split() for line in self.run_it("topology", "--table")[0].splitlines()]
        self.assertEqual("CPU NODE SOCKET LLC CORE L1D L2 L3 ONLINE WHAT".split(), lines[0])
        self.assertEqual("5 1 1 1 2 2 2 1 yes isolated".split(), lines[6])
        self.assertEqual("7 - - - - - - - no -".split(), lines[8])
        self.assertEqual([str(cpu) for cpu in range(8)], [line[0] for line in lines[1:]])


class Picture(Machine):
    def test_boxes_in_boxes(self):
        picture = self.picture()[0]
        self.assertEqual(SVG + "svg", picture.tag)
        for outer, inner in (("machine", "package-1"), ("package-1", "node-1"), ("node-1", "core-2"), ("core-2", "cpu-5")):
            self.assertIsNotNone(by_id(by_id(picture, outer), inner), f"{inner} in {outer}")
        self.assertIsNone(by_id(by_id(picture, "package-0"), "cpu-5"))
        self.assertIn("isolated", words(by_id(picture, "cpu-5")))
        self.assertIn("offline", words(picture))

    def test_interfaces_hang_at_their_node_and_are_text(self):
        picture, text = self.picture()
        self.assertEqual(len(HOSTILE), words(by_id(picture, "package-1")).count("0000:01:"))
        self.assertIn("near0", words(by_id(picture, "package-0")))
        self.assertIn("<b>&\"'x]]>", words(by_id(picture, "package-1")))
        self.assertIn("€-lan", words(picture))
        self.assertNotIn("<b>", text)
        text.encode("utf-8")  # fails where bytes went through that are none

    def test_inner_boxes_stay_inside_and_apart(self):
        def boxes_in(element, left=0.0, top=0.0):
            """The nearest elements with an id, each with the edges of its box."""
            for each in element.findall(SVG + "g"):
                move = re.fullmatch(r"translate\(([0-9.]+) ([0-9.]+)\)", each.get("transform", "translate(0 0)"))
                x, y = left + float(move[1]), top + float(move[2])
                if each.get("id") is None:
                    yield from boxes_in(each, x, y)
                elif (rect := each.find(SVG + "rect")) is not None:
                    yield each, (x, y, x + float(rect.get("width")), y + float(rect.get("height")))

        def check(outer, frame):
            inner = list(boxes_in(outer))
            self.assertTrue(inner or outer.get("id").startswith("cpu-"))
            for number, (element, (left, top, right, bottom)) in enumerate(inner):
                self.assertTrue(right <= frame[0] and bottom <= frame[1], element.get("id"))
                for _, other in inner[number + 1:]:
                    self.assertTrue(right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top, element.get("id"))
                check(element, (right - left, bottom - top))

        check(by_id(self.picture()[0], "machine"), (10000, 10000))

    def test_who_is_pinned_where(self):
        folder = os.path.dirname(self.policy("web", "version: 1\nmatch: {comm: web}\naffinity: process\ncpus: node:1 & !smt - isolated\nspread: core\nbind: core"))
        picture = self.picture("--policies", folder)[0]
        self.assertIn("web: slot 1 of 2", words(by_id(picture, "cpu-4")))
        self.assertNotIn("web", words(by_id(picture, "cpu-0")))
        self.assertIn("web (affinity process): CPUs 4,6; 2 slots", words(picture))

    def test_into_a_file(self):
        path = os.path.join(self.top, "picture.svg")
        self.assertEqual("", self.run_it("topology", "--svg", path)[0])
        ElementTree.parse(path)
        self.run_it("topology", "--svg", self.top + "/no/such/picture.svg", code=1)


class Cpus(Machine):
    def test_the_set_as_a_list(self):
        for text, expected in {"llc:1 & !smt - housekeeping": "", "llc:1 & !smt & housekeeping": "4,6", "all": "0-6", "nic:near0": "0-3",
                               "nic:*": "0-6", "7,0": "0,7", "!(socket:0)": "4-6"}.items():
            self.assertEqual(expected + "\n", self.run_it("cpus", text)[0], text)
        self.assertEqual("70\n", self.run_it("cpus", "--mask", "node:1")[0])
        self.assertIn("offline", self.run_it("cpus", "7")[1])
        self.assertIn("no CPU", self.run_it("cpus", "node:0 & node:1")[1])

    def test_json(self):
        answer = json.loads(self.run_it("cpus", "--json", "core:2,3|7")[0])
        self.assertEqual({"ok": True, "expression": "core:2-3 | 7", "cpus": "4-7", "mask": "f0", "count": 4, "offline": "7"}, answer)

    def test_a_bare_nic_is_asked_for(self):
        self.assertIn("column 5: error: which interface", self.run_it("cpus", "all&nic", code=1)[1])
        self.assertEqual("0-3\n", self.run_it("cpus", "nic", "--nic", "near0")[0])
        self.assertEqual("0-6\n", self.run_it("cpus", "nic", "--nic", "near0", "--nic", "*lan")[0])
        self.assertIn("--nic: there is no interface", self.run_it("cpus", "nic", "--nic", "eth9", code=1)[1])

    def test_faults_have_their_place(self):
        for text, code, column, length in (("0 | node:3", 1, 5, 6), ("0-3 &", 2, 6, 1), ("nodes:1", 2, 1, 5), ("0-3,99", 1, 1, 6),
                                           ("€ | 0", 2, 1, 1), ("(0", 2, 1, 1), ("kind:fast", 1, 1, 9)):
            err = self.run_it("cpus", text, code=code)[1]
            first, line, carets = err.rstrip("\n").split("\n")
            self.assertTrue(first.startswith(f"affinityctl: column {column}: error: "), err)
            self.assertEqual("    " + text, line)
            self.assertEqual(" " * (column + 3) + "^", carets[:column + 4], err)
            answer = json.loads(self.run_it("--json", "cpus", text, code=code)[0])
            self.assertEqual((False, column), (answer["ok"], answer["column"]), text)
            if text.isascii():
                self.assertEqual(length, answer["length"], text)

    def test_hostile_expressions(self):
        for text in ("", " ", "\x1b[2J", "(" * 5000, "nic:\x1b[2J", b"\xff\xfe", b"nic:\xc2\x9b31m", "0-4294967295", "1" * 100000, "!" * 4000 + "0"):
            done = subprocess.run([PROGRAM, "--root", self.top, "cpus", "--", text], capture_output=True, check=False)
            self.assertIn(done.returncode, (1, 2), text[:20])
            self.assertNotIn(b"\x1b", done.stdout + done.stderr)
            self.assertLess(len(done.stderr), 2000)

    def test_no_machine(self):
        self.run_it("cpus", "0", root="/nonexistent", code=1)
        self.run_it("cpus", code=2)


if __name__ == "__main__":
    unittest.main()
