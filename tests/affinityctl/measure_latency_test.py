#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`affinityctl measure latency` from outside: what its threads are pinned to while it runs, that ^C and kill -9 leave nothing
behind, what it prints, keeps and refuses, and how it takes tables that mean ill."""
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
LONG = ["--samples", "10000", "--round-trips", "3000"]  # minutes, if it is not ended


def mask_of(task):
    try:
        for line in pathlib.Path(f"/proc/{task}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("Cpus_allowed_list:"):
                return line.split()[1]
    except (OSError, ProcessLookupError):
        pass
    return None


def masks(pid):
    """Masks of all threads of a process, by number."""
    try:
        return {tid: mask_of(f"{pid}/task/{tid}") for tid in os.listdir(f"/proc/{pid}/task")}
    except OSError:
        return {}


class MeasureLatency(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def command(self, *arguments):
        return [PROGRAM, "measure", "latency", *arguments]

    def run_it(self, *arguments, code=0, env=None):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def measure(self, *arguments, code=0):
        return self.run_it("--cpus", f"{CPUS[0]},{CPUS[-1]}", "--samples", "6", "--round-trips", "50", "--state-dir", self.folder.name,
                           *arguments, code=code)

    def started(self, *arguments):
        """A run that measures, and has both threads on their CPUs."""
        child = subprocess.Popen(self.command(*LONG, "--cpus", f"{CPUS[0]},{CPUS[-1]}", "--state-dir", self.folder.name, *arguments),
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        wanted = {str(CPUS[0]), str(CPUS[-1])}
        deadline = time.monotonic() + 60
        while not wanted <= set(masks(child.pid).values()):
            self.assertIsNone(child.poll(), "it ended too soon")
            self.assertLess(time.monotonic(), deadline, masks(child.pid))
            time.sleep(0.01)
        return child

    def test_pins_its_own_threads_only(self):
        before = mask_of("self")
        child = self.started()
        found = masks(child.pid)
        self.assertEqual(found[str(child.pid)], before, "the thread that waits for ^C is free")
        self.assertEqual(mask_of("self"), before)
        self.assertEqual(len(found), 4, found)

    def test_interrupts_leave_nothing_behind(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            child = self.started()
            tasks = list(masks(child.pid))
            child.send_signal(number)
            _, said = child.communicate(timeout=60)
            if number == signal.SIGKILL:
                self.assertEqual(child.returncode, -number)
            else:
                self.assertEqual(child.returncode, 1)
                self.assertIn("stopped before its end; nothing is kept", said)
            for task in tasks:
                self.assertIsNone(mask_of(task), "a thread is left")
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_prints_what_was_measured(self):
        done = self.measure()
        self.assertIn("Latency between 2 CPUs, ns for one way", done.stdout)
        self.assertIn(f"{CPUS[0]} and {CPUS[-1]}", done.stdout)
        self.assertIn("95 % INTERVAL", done.stdout)
        self.assertIn("measuring latency between 1 pair of CPUs takes under 1 s", done.stderr)

    def test_keeps_it_and_shows_a_line_of_it(self):
        document = json.loads(self.measure("--json").stdout)
        self.assertEqual(document["cpus"], f"{CPUS[0]}-{CPUS[-1]}" if CPUS[-1] == CPUS[0] + 1 else f"{CPUS[0]},{CPUS[-1]}")
        self.assertEqual(document["levels"], [])
        self.assertEqual((document["means"], document["samples"], document["round_trips"]), ("cas", 6, 50))
        self.assertLessEqual(document["low"][1][0], document["ns"][1][0] + 0.01)
        self.assertGreaterEqual(document["high"][1][0], document["ns"][1][0] - 0.01)
        self.measure("--means", "store")
        self.measure("--no-history")
        shown = subprocess.run([PROGRAM, "history", "--kind", "latency", "--state-dir", self.folder.name], capture_output=True, text=True, check=True)
        lines = [line for line in shown.stdout.splitlines() if " latency " in line]
        self.assertEqual(len(lines), 2, shown.stdout)
        self.assertIn(" ns; uniform", lines[0])
        self.assertIn("CPUs " + document["cpus"], lines[0])
        table = pathlib.Path(self.folder.name) / "kept.json"
        table.write_text(json.dumps(document), encoding="utf-8")
        again = json.loads(self.run_it("--from", str(table), "--json").stdout)
        self.assertEqual(again["ns"], document["ns"])

    def test_refuses_what_cannot_be_done(self):
        done = self.run_it("--cpus", str(CPUS[0]), code=1)
        self.assertIn(f"this needs two CPUs, and only CPU {CPUS[0]} may be used here: name more with --cpus", done.stderr)
        none = self.run_it("--cpus", "!all", code=1)
        self.assertIn("none of these CPUs may be used here: name others with --cpus", none.stderr)
        alone = subprocess.run(["taskset", "-c", str(CPUS[0]), *self.command()], capture_output=True, text=True, check=False)
        self.assertEqual(alone.returncode, 1)
        self.assertIn("this needs two CPUs", alone.stderr)
        self.run_it("--cpus", "nonsense", code=2)
        self.run_it("--pairs", "most", code=2)
        self.run_it("--samples", "0", code=2)
        self.run_it("--json", "--svg", "-", code=2)
        self.run_it("--from", "x", "--cpus", "0", code=2)
        self.run_it("--root", self.folder.name, code=2)
        for option in ("--cpus", "--svg", "--from"):
            self.assertIn(option + ": expected a value, and this is empty", self.run_it(option, "", code=2).stderr)
        self.assertEqual(os.listdir(self.folder.name), [], "of all that nothing was measured")

    def test_that_cannot_be_kept_is_shown_all_the_same(self):
        done = self.run_it("--cpus", f"{CPUS[0]},{CPUS[-1]}", "--samples", "4", "--state-dir", "/dev/null/x")
        self.assertIn("Latency between", done.stdout)
        self.assertIn("not kept", done.stderr)

    def test_a_result_without_a_reader_is_kept_all_the_same(self):
        reader, writer = os.pipe()
        os.close(reader)  # as a pager that is left at once
        unbuffered = ["stdbuf", "-o0"]  # as what is printed of many CPUs
        done = subprocess.run([*unbuffered, *self.command("--cpus", f"{CPUS[0]},{CPUS[-1]}", "--samples", "6", "--state-dir", self.folder.name)],
                              stdout=writer, stderr=subprocess.DEVNULL, check=False)
        os.close(writer)
        self.assertNotEqual(done.returncode, 0)
        shown = subprocess.run([PROGRAM, "history", "--kind", "latency", "--state-dir", self.folder.name], capture_output=True, text=True, check=True)
        self.assertEqual(len([line for line in shown.stdout.splitlines() if " latency " in line]), 1, shown.stdout)

    def table(self, content):
        path = pathlib.Path(self.folder.name) / "table.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def test_draws_foreign_tables(self):
        path = self.table(",,,\n20,,,\n90,91,,\n92,90,21,\n")
        done = self.run_it("--from", path)
        self.assertIn("within groups of level 1", done.stdout)
        self.assertIn("0-1  2-3", done.stdout)
        self.assertEqual(done.stderr, "")
        levels = json.loads(self.run_it("--from", path, "--json").stdout)["levels"]
        self.assertEqual(levels, [{"ns": 20.5, "groups": ["0-1", "2-3"]}])
        self.assertTrue(self.run_it("--from", path, "--svg", "-").stdout.startswith("<svg "))
        self.assertEqual(os.listdir(self.folder.name), ["table.csv"], "it is not kept in the history")

    def test_takes_hostile_tables(self):
        for content, words in (("", "found nothing"), (b"\x00\xff\x1b[2J", "commas"), (",\n\x1b[31mx,\n", "line 2, column 1"), (",,\n1,\n", "line 2"),
                               ("{", "object of latencies"), ('{"cpus":"0-9"}', "row for each CPU"), (",\nnan,\n", "line 2, column 1"),
                               ('{"cpus":"0-1","ns":[[],["a"]]}', "above 0"), ('{"cpus":"0-1","ns":[[],[-4]]}', "above 0"),
                               ('{"cpus":"0-1","ns":[[],[1e300]]}', "above 0"), ('{"cpus":"0-1","ns":[[],[null]]}', "no pair of CPUs has a value")):
            done = self.run_it("--from", self.table(content), code=1)
            self.assertIn(words, done.stderr)
            self.assertNotIn("\x1b", done.stderr)
        self.assertIn("there is no such file", self.run_it("--from", "/nowhere", code=1).stderr)
        self.run_it("--from", "/dev/zero", code=1)
        self.assertIn("excludes", self.run_it("--from", "/nowhere", "--samples", "4", code=2).stderr)

    def test_reads_tables_that_are_piped(self):
        table = ",,,\n20,,,\n90,91,,\n92,90,21,\n"
        wanted = json.loads(self.run_it("--from", self.table(table), "--json").stdout)
        for source in ("-", "/dev/stdin"):
            done = subprocess.run(self.command("--from", source, "--json"), input=table, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(json.loads(done.stdout)["ns"], wanted["ns"])
        self.assertIn("standard input", subprocess.run(self.command("--from", "-"), input=table, capture_output=True, text=True, check=True).stdout)
        fifo = pathlib.Path(self.folder.name) / "fifo"
        os.mkfifo(fifo)
        with subprocess.Popen(self.command("--from", str(fifo), "--json"), stdout=subprocess.PIPE, text=True) as reader:
            fifo.write_text(table, encoding="ascii")  # waits for the reader, and the reader for this
            self.assertEqual(json.loads(reader.communicate(timeout=60)[0])["ns"], wanted["ns"])
        with subprocess.Popen(["yes", ","], stdout=subprocess.PIPE) as endless:
            done = subprocess.run(self.command("--from", "-"), stdin=endless.stdout, capture_output=True, text=True, check=False)
            endless.stdout.close()
        self.assertEqual(done.returncode, 1)
        self.assertIn("larger than 32 MiB", done.stderr)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else a shell in the background has its children ignore it
    unittest.main()
