# SPDX-License-Identifier: Apache-2.0
"""affinityctl --root: verbs that speak to the daemon refuse it, the others never ask one, and explain works on the recording."""
import json
import os
import pathlib
import re
import socket
import subprocess
import tarfile
import tempfile
import threading
import unittest

AFFINITYCTL = os.environ["AFFINITYCTL"]
MACHINE = pathlib.Path(__file__).resolve().parent.parent / "machines" / "small"
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
SPEAKING = (["status"], ["watch", "--once"], ["reload"], ["apply"], ["release"], ["release", "nginx"], ["measure"], ["measure", "ttcp"],
            ["measure", "models", "--connections", "1", "--rounds", "1", "--seconds", "0.1"], ["history"])
READING = (["topology"], ["topology", "--table"], ["nics"], ["irqs"], ["cpus", "all"], ["check", str(MACHINE / "policies")],
           ["plan", str(MACHINE / "policies")], ["plan", "--cpus", str(MACHINE / "policies")],
           ["policies", "--policies", str(MACHINE / "policies")], ["explain", "--policies", str(MACHINE / "policies"), "ens1"])


class Listener:
    """Sits where a daemon would, counts who comes, and tells them nothing."""

    def __init__(self, folder):
        self.visits = 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(folder / "control"))
        self.socket.listen()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                visitor, _ = self.socket.accept()
            except OSError:
                return
            self.visits += 1
            visitor.close()

    def end(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="affinityd-recorded-", dir=SCRATCH)
        cls.addClassCleanup(temporary.cleanup)
        cls.root = pathlib.Path(temporary.name)
        with tarfile.open(MACHINE / "recording.tar.gz") as tar:
            tar.extractall(cls.root, filter="tar") if hasattr(tarfile, "tar_filter") else tar.extractall(cls.root)

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="affinityd-recorded-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.daemon = Listener(self.folder)
        self.addCleanup(self.daemon.end)

    def run_verb(self, *arguments):
        return subprocess.run([AFFINITYCTL, "--runtime-dir", str(self.folder), "--root", str(self.root), *arguments], capture_output=True,
                              text=True, timeout=60, check=False)

    def explain(self, *subjects):
        done = self.run_verb("--json", "explain", "--policies", str(MACHINE / "policies"), *subjects)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def workers(self):
        """pid -> name of the processes of nginx.service, from the recording's own files."""
        found = {}
        for group in self.root.glob("proc/[0-9]*/cgroup"):
            if "/nginx.service" in group.read_text(encoding="utf-8"):
                found[int(group.parent.name)] = (group.parent / "comm").read_text(encoding="utf-8").strip()
        return found

    def test_the_listener_would_notice(self):
        subprocess.run([AFFINITYCTL, "--runtime-dir", str(self.folder), "status"], capture_output=True, timeout=60, check=False)
        self.assertEqual(1, self.daemon.visits)

    def test_verbs_that_speak_to_the_daemon_refuse(self):
        for verb in SPEAKING:
            with self.subTest(verb):
                done = self.run_verb(*verb)
                self.assertEqual(2, done.returncode, done.stdout + done.stderr)
                self.assertIn("--root names a recorded machine", done.stderr)
        self.assertEqual(0, self.daemon.visits)

    def test_verbs_that_read_never_ask(self):
        for verb in READING:
            with self.subTest(verb):
                done = self.run_verb(*verb)
                self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
        self.assertEqual(0, self.daemon.visits)

    def test_an_interface_and_its_interrupts_are_explained(self):
        nic = self.explain("ens1")
        interrupts = [queue for queue in nic["queues"] if queue["kind"] == "irq"]
        self.assertTrue(interrupts, nic)
        first = interrupts[0]
        self.assertEqual("nginx", first["policy"])
        listed = (self.root / f"proc/irq/{first['irq']}/smp_affinity_list").read_text(encoding="utf-8").strip()
        self.assertEqual(listed, first["present"])
        one = self.explain(f"irq:{first['irq']}")
        self.assertEqual([first], one["queues"])
        self.assertEqual(one["queues"], self.explain(first["label"])["queues"])

    def test_a_process_is_explained_as_it_would_be_placed(self):
        pids = self.workers()
        self.assertTrue(pids)
        plan = json.loads(self.run_verb("--json", "plan", str(MACHINE / "policies")).stdout)
        wanted = {process["pid"]: process["threads"] for process in plan["processes"]}
        for pid, name in pids.items():
            answer = self.explain(str(pid))
            self.assertEqual((pid, name, "nginx"), (answer["pid"], answer["comm"], answer["policy"]))
            self.assertEqual([thread["wanted"] for thread in wanted[pid]], [thread["wanted"] for thread in answer["threads"]])
            self.assertRegex(answer["threads"][0]["decided_by"], r"nginx\.yaml:\d+$")
        text = self.run_verb("explain", "--policies", str(MACHINE / "policies"), str(min(pids))).stdout
        self.assertRegex(text, rf"(?m)^process {min(pids)} \(")

    def test_several_subjects_a_policy_and_a_unit(self):
        pids = set(self.workers())
        self.assertEqual(["ens1", "nginx"], [answer["subject"] for answer in self.explain("ens1", "nginx")])
        policy = self.explain("nginx")
        self.assertEqual(pids, {part["pid"] for part in policy["explanations"] if "pid" in part})
        self.assertTrue(any("queues" in part for part in policy["explanations"]))
        self.assertEqual(pids, {part["pid"] for part in self.explain("nginx.service")["explanations"]})

    def test_what_the_recording_does_not_have(self):
        for subject, words in (("irq:99999", "there is no interrupt"), ("4000000", "no such process"), ("nosuch0", "neither a PID")):
            done = self.run_verb("explain", "--policies", str(MACHINE / "policies"), subject)
            self.assertEqual(1, done.returncode, subject)
            self.assertTrue(re.search(words, done.stderr), done.stderr)

    def test_policies_for_explain_are_for_recordings(self):
        done = subprocess.run([AFFINITYCTL, "--runtime-dir", str(self.folder), "explain", "--policies", str(MACHINE / "policies"), "1"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(2, done.returncode)
        self.assertEqual(0, self.daemon.visits)


if __name__ == "__main__":
    unittest.main()
