#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`affinityctl measure sharing`, `smt` and `cache` from outside: which CPUs their threads are pinned to while they run, that ^C and
kill -9 leave nothing behind, what they print, keep and refuse."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

PROGRAM = os.environ["AFFINITYCTL"]
CPUS = sorted(os.sched_getaffinity(0))
PAIR = f"{CPUS[0]},{CPUS[-1]}"
CACHES = ["--caches", "32,1024,8192"]  # to empty what some machines tell takes long
SHORT = {"sharing": ["--rounds", "4", "--additions", "1000"],
         "smt": ["--rounds", "4", "--numbers", "1000"],
         "cache": ["--rounds", "4", "--quanta", "0.2,0.5", "--sizes", "16,64", *CACHES]}
LONG = {"sharing": ["--rounds", "10000", "--additions", "1000000"],
        "smt": ["--rounds", "10000", "--numbers", "3000000"],
        "cache": ["--rounds", "1000", "--quanta", "0.2", "--sizes", "16", *CACHES]}


def status_of(task, key):
    try:
        for line in pathlib.Path(f"/proc/{task}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(key + ":"):
                return line.split()[1]
    except (OSError, ProcessLookupError):
        pass
    return None


def masks(pid):
    try:
        return {tid: status_of(f"{pid}/task/{tid}", "Cpus_allowed_list") for tid in os.listdir(f"/proc/{pid}/task")}
    except OSError:
        return {}


class MeasureKernels(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_it(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, "measure", *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def measure(self, name, *arguments, code=0):
        return self.run_it(name, *SHORT[name], "--cpus", PAIR, "--state-dir", self.folder.name, *arguments, code=code)

    def started(self, name):
        """A run that measures, once each mask that is wanted was seen on some of its threads."""
        child = subprocess.Popen([PROGRAM, "measure", name, *LONG[name], "--cpus", PAIR, "--state-dir", self.folder.name],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        wanted, seen = {str(CPUS[0]), str(CPUS[-1])}, set()
        deadline = time.monotonic() + 120
        while not wanted <= seen:
            self.assertIsNone(child.poll(), "it ended too soon")
            self.assertLess(time.monotonic(), deadline, seen)
            found = masks(child.pid)
            self.assertEqual(found.get(str(child.pid)), status_of("self", "Cpus_allowed_list"), "the thread that waits for ^C is free")
            seen |= set(found.values())
        return child

    def test_pin_their_own_threads_and_leave_nothing(self):
        before = status_of("self", "Cpus_allowed_list")
        for name in SHORT:
            for number in (signal.SIGINT, signal.SIGKILL):
                child = self.started(name)
                tasks = list(masks(child.pid))
                child.send_signal(number)
                _, said = child.communicate(timeout=40)
                if number == signal.SIGINT:
                    self.assertEqual(child.returncode, 1)
                    self.assertRegex(said, "stopped .*; nothing is kept")
                for task in tasks:
                    self.assertIsNone(status_of(task, "Pid"), "a thread is left")
        self.assertEqual(status_of("self", "Cpus_allowed_list"), before)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_end_in_good_order_from_their_first_moment(self):
        for name, options in LONG.items():
            with subprocess.Popen([PROGRAM, "measure", name, *options, "--cpus", PAIR, "--state-dir", self.folder.name],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
                self.addCleanup(child.kill)
                while " takes " not in child.stderr.readline():  # it looks whether the machine is quiet now
                    self.assertIsNone(child.poll())
                child.send_signal(signal.SIGINT)
                _, said = child.communicate(timeout=40)
                self.assertEqual(child.returncode, 1, said)
                self.assertRegex(said, "stopped .*; nothing is kept")

    def test_print_the_documents_quantities(self):
        shown = self.measure("sharing").stdout
        for words in ("left to the scheduler", "pinned pairs", "pinned apart", "false sharing", "MS PER RUN", "L1D MISSES"):
            self.assertIn(words, shown)
        shown = self.measure("smt").stdout
        for words in ("accum  alone", "sin    two cores", "THAN ALONE"):
            self.assertIn(words, shown)
        done = self.measure("cache")
        for words in ("Interrupted every 0.2 ms", "16 KiB", "same CPU, L1/L2 lost", "Verdict: "):
            self.assertIn(words, done.stdout)
        self.assertRegex(done.stderr, "measuring what it costs to lose the cache takes (about|under) ")

    def test_refuse_what_is_empty(self):
        """As a variable of a script that was never set: it means neither all CPUs nor no picture."""
        for name in (*SHORT, "models"):
            for option in ("--cpus", "--svg"):
                said = self.run_it(name, option, "", "--state-dir", self.folder.name, code=2).stderr
                self.assertIn(option + ": expected a value, and this is empty", said)
        self.assertIn("--nics: expected a value", self.run_it("models", "--nics", "", code=2).stderr)
        for verb in (("topology",), ("locality",), ("sharers", "1")):
            done = subprocess.run([PROGRAM, *verb, "--svg", ""], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--svg: expected a value", done.stderr)

    def test_say_what_the_machine_cannot_do(self):
        document = json.loads(self.measure("smt", "--json").stdout)
        siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{CPUS[0]}/topology/thread_siblings_list").read_text(encoding="ascii").strip()
        if siblings == str(CPUS[0]):
            self.assertIn("no core has two hardware threads", document["no_siblings"])
            self.assertEqual({load["verdict"] for load in document["loads"]}, {"not measured"})
        for name in ("sharing", "smt"):
            self.assertIn("this needs two CPUs", self.run_it(name, "--cpus", str(CPUS[0]), code=1).stderr)
        alone = json.loads(self.run_it("cache", *SHORT["cache"], "--cpus", str(CPUS[0]), "--no-history", "--json").stdout)
        self.assertEqual(set(alone["places"]), {"kept", "displaced", "emptied"})
        self.assertEqual(alone["verdict"], "not known")
        self.assertEqual(len(alone["refused"]), 2)

    def test_go_by_the_caches_of_the_machine(self):
        """The sizes are those of the kernel, or of the C library where the kernel tells none, as in some virtual machines."""
        command = ["cache", "--rounds", "4", "--quanta", "0.2", "--sizes", "16", "--cpus", str(CPUS[0]), "--no-history", "--json"]
        kernel = [pathlib.Path(entry, "size").read_text(encoding="ascii").strip()
                  for entry in pathlib.Path(f"/sys/devices/system/cpu/cpu{CPUS[0]}/cache").glob("index*")
                  if pathlib.Path(entry, "level").read_text(encoding="ascii").strip() == "1"
                  and pathlib.Path(entry, "type").read_text(encoding="ascii").strip() != "Instruction" and pathlib.Path(entry, "size").exists()]
        library = int(subprocess.run(["getconf", "LEVEL1_DCACHE_SIZE"], capture_output=True, text=True, check=True).stdout.strip() or 0)
        if not kernel and library == 0:
            self.assertIn("--caches", self.run_it(*command, code=1).stderr)
            return
        told = json.loads(self.run_it(*command).stdout)
        self.assertEqual(told["l1d_bytes"], int(kernel[0].rstrip("K")) << 10 if kernel else library)
        self.assertEqual(any("C library" in remark for remark in told["remarks"]), not kernel)
        named = json.loads(self.run_it(*command, *CACHES).stdout)
        self.assertEqual((named["l1d_bytes"], named["own_bytes"], named["llc_bytes"]), (32 << 10, 1 << 20, 8 << 20))
        self.assertIn("the sizes of the caches are those of --caches", named["remarks"])

    def test_are_kept_with_a_line_each(self):
        for name in SHORT:
            document = json.loads(self.measure(name, "--json").stdout)
            self.assertEqual(document["cpus"], PAIR if CPUS[-1] > CPUS[0] + 1 else f"{CPUS[0]}-{CPUS[-1]}")
            self.assertTrue(document["meaning"])
            shown = subprocess.run([PROGRAM, "history", "--kind", name, "--state-dir", self.folder.name], capture_output=True, text=True, check=True)
            self.assertEqual(len([line for line in shown.stdout.splitlines() if f" {name} " in line]), 1, shown.stdout)

    def test_draw(self):
        for name in SHORT:
            self.assertTrue(self.measure(name, "--no-history", "--svg", "-").stdout.startswith("<svg "))

    def test_refuse_nonsense(self):
        for name in SHORT:
            for wrong in (["--rounds", "0"], ["--cpus", "nonsense"], ["--json", "--svg", "-"], ["--root", self.folder.name]):
                self.run_it(name, *wrong, code=2)
        self.run_it("cache", "--quanta", "2,x", code=2)
        self.run_it("cache", "--sizes", "0", code=2)
        for caches in ("32", "32,1024", "1024,32,8192", "0,1,2", "32,1024,8192,9000", "49152,1048576,33554432"):
            self.run_it("cache", "--caches", caches, code=2)
        self.run_it("smt", "--numbers", "-1", code=2)
        self.run_it("sharing", "--additions", "99999999999", code=2)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else a shell in the background has its children ignore it
    unittest.main()
