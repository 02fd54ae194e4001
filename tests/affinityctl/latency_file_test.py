# SPDX-License-Identifier: Apache-2.0
"""`plan --latency FILE` and `explain --latency FILE` on a recorded machine: tasks go to CPUs that the table has as one group, where these are
others than the topology's."""
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

AFFINITYCTL = os.environ["AFFINITYCTL"]
MACHINE = pathlib.Path(__file__).resolve().parent.parent / "machines" / "foong"  # 0-1, 2-3, 4-5 and 6-7 are cores, 0-3 and 4-7 sockets
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
CPUS = 8
POLICY = "version: 1\nmatch:\n  any:\n    - {unit: receiver@1.service}\n    - {unit: receiver@2.service}\nnear: measured\n"
CLOSEST = {frozenset((1, 6)): 9.5, frozenset((2, 7)): 8.25}


def ns(a, b):
    """Socket to socket is nearer than within one, so that the groups are pairs across them, of which two are nearest."""
    return CLOSEST.get(frozenset((a, b)), 60 if a // 4 != b // 4 else 90)


def table(value=ns):
    """As core-to-core-latency writes it: a lower triangle."""
    return "".join(",".join(str(value(row, column)) if column < row else "" for column in range(CPUS)) + "\n" for row in range(CPUS))


class LatencyFile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="affinityd-latency-", dir=SCRATCH)
        cls.addClassCleanup(temporary.cleanup)
        cls.root = pathlib.Path(temporary.name)
        with tarfile.open(MACHINE / "recording.tar.gz") as tar:
            tar.extractall(cls.root, filter="tar") if hasattr(tarfile, "tar_filter") else tar.extractall(cls.root)

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="affinityd-latency-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.policy = self.write("pair.yaml", POLICY)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def run_verb(self, *arguments, code=0):
        done = subprocess.run([AFFINITYCTL, "--runtime-dir", str(self.folder), "--root", str(self.root), "--json", *arguments],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done

    def places(self, *options):
        """pid -> CPUs of the two receivers, and why."""
        plan = json.loads(self.run_verb("plan", *options, self.policy).stdout)
        wanted = {process["pid"]: process["threads"][0]["wanted"] for process in plan["processes"]}
        reasons = [action["reason"] for action in plan["actions"] if action["kind"] == "task"]
        self.assertEqual(2, len(wanted), plan)
        return wanted, reasons

    def explained(self, pid, *options):
        return json.loads(self.run_verb("explain", "--policies", self.policy, *options, str(pid)).stdout)["threads"][0]

    def test_the_topology_decides_without_a_file(self):
        wanted, reasons = self.places()
        self.assertEqual(["0", "2"], sorted(wanted.values()), reasons)
        self.assertNotIn(" ns", " ".join(reasons))

    def expect_a_group(self, wanted, reasons):
        one, other = map(int, sorted(wanted.values()))
        self.assertLessEqual(ns(one, other), 60, reasons)

    def test_a_group_of_the_file_is_chosen(self):
        file = self.write("table.csv", table())
        wanted, reasons = self.places("--latency", file)
        self.expect_a_group(wanted, reasons)
        self.assertIn("by measured latency, ", " ".join(reasons))
        for pid, cpu in wanted.items():
            thread = self.explained(pid, "--latency", file)
            self.assertEqual(cpu, thread["wanted"])
            self.assertIn("by measured latency, ", thread["reason"])
        self.assertEqual(["0", "2"], sorted(self.explained(pid)["wanted"] for pid in wanted))

    def test_what_the_policy_leaves_out_is_not_chosen(self):
        self.policy = self.write("pair.yaml", POLICY + "cpus: \"!2\"\n")
        wanted, reasons = self.places("--latency", self.write("table.csv", table()))
        self.expect_a_group(wanted, reasons)
        self.assertNotIn("2", wanted.values())

    def test_json_of_the_experiment_is_read_like_csv(self):
        rows = [[ns(row, column) for column in range(row)] for row in range(CPUS)]
        file = self.write("table.json", json.dumps({"cpus": "0-7", "ns": rows}))
        self.expect_a_group(*self.places("--latency", file))

    def test_a_file_that_is_no_table_is_named(self):
        for content, words in (("", "found nothing"), (",\n-1,\n", "line 2, column 1"), ("{", "object of latencies")):
            file = self.write("bad", content)
            for verb in (["plan", self.policy], ["explain", "--policies", self.policy, "1"]):
                said = self.run_verb(*verb, "--latency", file, code=1).stderr
                self.assertIn(words, said)
                self.assertIn(file, said)
        self.assertIn("there is no such file", self.run_verb("plan", "--latency", "/nowhere", self.policy, code=1).stderr)


if __name__ == "__main__":
    unittest.main()
