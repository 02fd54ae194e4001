# SPDX-License-Identifier: Apache-2.0
"""Kill, restart, stop, second instances and bad policies."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from daemon import PROGRAMS, Daemon, allowed, masks, spawn, wait_for, workload

DEMO = "version: 1\nmatch: {comm: demo-workload}\ncpus: \"1\"\nbind: set\n"
FAULTS = {
    "unknown key": ("version: 1\nmatch: {comm: a}\ncpu: \"1\"\n", ":3:1:", "cpus"),
    "CPU that does not exist": ("version: 1\nmatch: {comm: a}\ncpus: \"4000\"\n", ":3:", "4000"),
    "bad type": ("version: 1\nmatch: {comm: a}\nexclusive: maybe\n", ":3:", "true or false"),
    "syntax": ("version: 1\nmatch: {comm: a\n", ":", ""),
    "repeated key": ("version: 1\nmatch: {comm: a}\nmatch: {comm: b}\n", ":3:1:", "match"),
}


def fill(path):
    """Writes to a new file until its file system has no room left."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        for _ in range(1024):
            file.write(b"x" * 4096)
        raise AssertionError(f"{path}: its file system has no end")


class Lifetime(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.everywhere = allowed(os.getpid())

    def test_after_kill_restart_and_stop_every_mask_is_what_it_was(self):
        free = workload(self.stack, "--threads", "a,b,c")
        narrow = workload(self.stack, "--threads", "a,b")
        subprocess.run(["taskset", "-a", "-p", "-c", "0", str(narrow.pid)], check=True, capture_output=True)
        wait_for(lambda: len(masks(narrow.pid)) == 3 and len(masks(free.pid)) == 4, "threads are named")
        before = {process.pid: masks(process.pid) for process in (free, narrow)}
        self.assertEqual({"0"}, set(before[narrow.pid].values()) & {"0"})
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        for process in (free, narrow):
            wait_for(lambda: set(masks(process.pid).values()) == {"1"}, "pinned")
        daemon.kill()
        self.assertEqual({"1"}, set(masks(free.pid).values()), "a killed daemon cannot have put anything back")
        daemon.start()
        daemon.stop()
        for process in (free, narrow):
            self.assertEqual(before[process.pid], masks(process.pid))

    def test_a_restart_with_another_policy_undoes_the_old_one(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.kill()
        daemon.write("demo.yaml", DEMO.replace("demo-workload", "nobody-has-this"))
        daemon.start()
        wait_for(lambda: allowed(load.pid) == self.everywhere, "its own mask is back")

    def test_a_reader_of_its_log_that_ends_does_not_end_it(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO})
        daemon.process = subprocess.Popen(daemon.command(), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.stack.callback(daemon.process.stderr.close)
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.process.stderr.close()
        daemon.process.send_signal(signal.SIGHUP)  # of which it writes a line
        daemon.write("demo.yaml", DEMO.replace("demo-workload", "nobody-has-this"))
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: allowed(load.pid) == self.everywhere, "it works on")
        daemon.stop()

    def test_two_daemons_cannot_run_in_one_place(self):
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        second = subprocess.run(daemon.command(), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(4, second.returncode)
        self.assertIn("runs here already", second.stderr)
        self.assertEqual(1, len(daemon.status()["policies"]), "the first goes on")

    def test_a_bad_file_is_refused_with_its_place_by_check_and_daemon(self):
        for what, (text, place, hint) in FAULTS.items():
            with self.subTest(what), contextlib.ExitStack() as stack:
                daemon = Daemon(stack, {"bad.yaml": text})
                path = str(daemon.policies / "bad.yaml")
                check = subprocess.run([PROGRAMS["affinityctl"], "check", path], capture_output=True, text=True, check=False)
                self.assertEqual(3, check.returncode, check.stdout + check.stderr)
                self.assertIn(path + place, check.stdout + check.stderr)
                self.assertIn(hint, check.stdout + check.stderr)
                daemon.start()
                self.assertIn(path + place, daemon.text())
                self.assertEqual([], daemon.status()["policies"])
                self.assertIn(path + place, daemon.control("reload", code=1))

    def test_a_duplicate_name_is_refused(self):
        daemon = Daemon(self.stack, {"a.yaml": DEMO})
        other = daemon.folder / "other"
        other.mkdir()
        (other / "a.yaml").write_text(DEMO, encoding="utf-8")
        check = subprocess.run([PROGRAMS["affinityctl"], "check", str(daemon.policies / "a.yaml"), str(other / "a.yaml")],
                               capture_output=True, text=True, check=False)
        self.assertEqual(3, check.returncode, check.stdout + check.stderr)
        self.assertIn("a.yaml", check.stdout + check.stderr)

    def test_a_reload_with_a_bad_file_leaves_the_running_set(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.write("demo.yaml", "version: 1\nmatch: {comm: demo-workload}\ncpus: \"0\nbind: set\n")
        said = daemon.control("reload", code=1)
        self.assertIn("demo.yaml:", said)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: daemon.text().count("its last good version stays in force") >= 2, "SIGHUP was refused too")
        self.assertEqual("1", allowed(load.pid))
        self.assertEqual(["demo"], [policy["name"] for policy in daemon.status()["policies"]])
        daemon.write("demo.yaml", DEMO.replace('"1"', '"0"'))
        daemon.control("reload")
        wait_for(lambda: allowed(load.pid) == "0", "the mended file counts")

    def test_what_cannot_be_written_down_is_not_done(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO, "late.yaml": DEMO.replace("demo-workload", "late-comer")})
        run = daemon.folder / "run"
        run.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,nr_inodes=16,mode=755", "none", str(run)], check=True)
        self.stack.callback(subprocess.run, ["umount", "-l", str(run)], check=False)
        # It has all its threads before a policy matches it; their lines need more than what will be left: the rest of
        # the journal's last page, and the page of another file of the daemon that is replaced.
        crowd = ",".join(f"thread-{number}" for number in range(240))
        early = shutil.copy(PROGRAMS["workload"], daemon.folder / "early-bird")
        late = spawn(self.stack, str(early), "--threads", crowd, "--seconds", "120", "--rename-after", "1500", "late-comer")
        wait_for(lambda: len(masks(late.pid)) == 241, "all its threads")
        daemon.start()
        wait_for(lambda: allowed(load.pid) == "1", "there is room for this one")
        fill(run / "ballast")
        wait_for(lambda: "nothing is changed until it can be written" in daemon.text(), "the daemon says so")
        self.assertIn(self.everywhere, masks(late.pid).values(), "what was not written down was not done")
        daemon.stop()
        for process in (load, late):
            self.assertEqual({self.everywhere}, set(masks(process.pid).values()))

    def test_a_torn_journal_loses_no_whole_line(self):
        load = workload(self.stack, "--threads", "a,b,c")
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: set(masks(load.pid).values()) == {"1"} and len(masks(load.pid)) == 4, "pinned")
        daemon.kill()
        journal = daemon.folder / "run" / "undo.journal"
        with journal.open("ab") as file:
            file.write(b"task\t1\t2\t3\tinit\theld\t0-1\t0\t0\tdemo\t00000000\nirq\tgarb")
        daemon.start()
        daemon.stop()
        self.assertEqual({self.everywhere}, set(masks(load.pid).values()))

    def test_a_child_whose_parent_was_killed_while_no_daemon_ran_gets_its_mask_back(self):
        daemon = Daemon(self.stack, {"demo.yaml": DEMO})
        shell = shutil.copy("/bin/sh", daemon.folder / "demo-workload")
        parent = spawn(self.stack, str(shell), "-c", 'while read -r line; do eval "$line"; done', stdin=subprocess.PIPE, start_new_session=True)
        wait_for(lambda: pathlib.Path(f"/proc/{parent.pid}/comm").read_text(encoding="utf-8").strip() == "demo-workload", "it has its name")
        daemon.start()
        wait_for(lambda: allowed(parent.pid) == "1", "pinned")
        daemon.kill()
        noted = daemon.folder / "child"
        parent.stdin.write(f"sleep 600 & echo $! > {noted}.new; mv {noted}.new {noted}\n".encode())
        parent.stdin.flush()
        wait_for(noted.exists, "there is a child")
        child = int(noted.read_text(encoding="utf-8"))
        self.stack.callback(os.kill, child, signal.SIGKILL)
        self.assertEqual("1", allowed(child))
        parent.kill()
        parent.wait()
        # Somebody else's, of another session: nothing shows that it has its mask from the daemon.
        other = spawn(self.stack, "taskset", "-c", "1", "sleep", "600", start_new_session=True)
        wait_for(lambda: pathlib.Path(f"/proc/{other.pid}/comm").read_text(encoding="utf-8").strip() == "sleep", "it runs")
        daemon.start()
        wait_for(lambda: allowed(child) == self.everywhere, "the original of its parent")
        self.assertEqual("1", allowed(other.pid))
        self.assertIn("nothing shows that they have them from there", daemon.text())
        daemon.stop()
        self.assertEqual(self.everywhere, allowed(child))
        self.assertEqual("1", allowed(other.pid))

    def test_what_was_kept_is_restored_by_a_later_daemon(self):
        load = workload(self.stack, "--threads", "a,b,c")
        daemon = Daemon(self.stack, {"demo.yaml": DEMO + "on_stop: keep\n"}).start()
        wait_for(lambda: set(masks(load.pid).values()) == {"1"} and len(masks(load.pid)) == 4, "pinned")
        daemon.stop()
        self.assertEqual({"1"}, set(masks(load.pid).values()))
        daemon.write("demo.yaml", DEMO.replace('"1"', '"0"'))
        daemon.start()
        wait_for(lambda: set(masks(load.pid).values()) == {"0"}, "moved")
        daemon.stop()
        self.assertEqual({self.everywhere}, set(masks(load.pid).values()))

    def test_a_lost_journal_makes_no_mask_of_ours_an_original(self):
        load = workload(self.stack, "--threads", "a,b,c")
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: set(masks(load.pid).values()) == {"1"} and len(masks(load.pid)) == 4, "pinned")
        daemon.kill()
        (daemon.folder / "run" / "undo.journal").unlink()
        daemon.write("demo.yaml", DEMO.replace('"1"', '"0"'))
        daemon.start()
        wait_for(lambda: set(masks(load.pid).values()) == {"0"}, "moved")
        daemon.stop()
        self.assertEqual({self.everywhere}, set(masks(load.pid).values()))

    def test_a_measurement_on_demand_is_shown_and_survives_a_restart(self):
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        self.assertIsNone(daemon.status()["measurement"])
        daemon.control("measure")
        last = wait_for(lambda: (daemon.status()["measurement"] or {}).get("last"), "a result", patience=60)
        self.assertEqual("done", last["outcome"], last)
        self.assertGreater(last["bits_per_second"], 0)
        self.assertGreater(last["cpu_seconds"], 0)
        self.assertFalse(last["touches_nic_interrupts"])
        self.assertEqual(("process", "demo"), (last["model"], last["policies"]))
        daemon.stop()
        daemon.start()
        self.assertEqual(last, daemon.status()["measurement"]["last"])

    def test_the_sequence_root_without_dry_run_is_refused(self):
        done = subprocess.run([PROGRAMS["affinityd"], "--root", "/tmp"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(2, done.returncode)
        self.assertIn("--dry-run", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
