# SPDX-License-Identifier: Apache-2.0
"""Signals that arrive while the daemon starts: before its loop runs."""
import contextlib
import fcntl
import os
import signal
import subprocess
import unittest

from daemon import PROGRAMS, Daemon, allowed, masks, wait_for, workload

DEMO = "version: 1\nmatch: {comm: demo-workload}\ncpus: \"1\"\nbind: set\n"
STRANGER = 65534


class HeldStart:
    """A daemon whose start does not end before somebody reads its log: the first line does not fit into the pipe that it is written to."""

    def __init__(self, stack, daemon):
        read_end, write_end = os.pipe()
        self.read_end = stack.enter_context(os.fdopen(read_end, "rb"))
        size = fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
        os.write(write_end, b"\n" * size)
        command = ["env", "--default-signal=HUP,INT,TERM", *daemon.command()]
        daemon.process = self.process = subprocess.Popen(command, stderr=write_end, stdin=subprocess.DEVNULL)
        os.close(write_end)
        self.log = ""
        wait_for((daemon.folder / "run" / "lock").exists, "the daemon starts")

    def send(self, number):
        self.process.send_signal(number)

    def read_until(self, text):
        """Reads the log up to a line with that text, or to its end."""
        fcntl.fcntl(self.read_end, fcntl.F_SETPIPE_SZ, 1 << 20)  # for what the daemon says while nobody reads
        os.set_blocking(self.read_end.fileno(), False)

        def is_there():
            with contextlib.suppress(BlockingIOError):
                while chunk := os.read(self.read_end.fileno(), 65536):
                    self.log += chunk.decode("utf-8", errors="replace").lstrip("\n")  # without what filled the pipe
                return True  # the daemon has ended
            return text in self.log
        wait_for(is_there, f"the log says '{text}'")


class Start(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.everywhere = allowed(os.getpid())

    def test_a_hangup_during_the_start_reloads_when_the_daemon_is_up(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO})
        start = HeldStart(self.stack, daemon)
        start.send(signal.SIGHUP)
        start.read_until("reloading: SIGHUP")
        self.assertIn("reloading: SIGHUP", start.log)
        start.read_until("ready")
        self.assertIsNone(start.process.poll(), start.log)
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.stop()
        self.assertEqual(self.everywhere, allowed(load.pid))

    def test_a_termination_during_the_start_ends_the_daemon_and_puts_back_what_one_before_had_changed(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name), contextlib.ExitStack() as stack:
                load = workload(stack, "--threads", "a,b")
                wait_for(lambda: len(masks(load.pid)) == 3, "threads are named")
                daemon = Daemon(stack, {"demo.yaml": DEMO}).start()
                wait_for(lambda: set(masks(load.pid).values()) == {"1"}, "pinned")
                daemon.kill()
                (daemon.folder / "run" / "lock").unlink()
                start = HeldStart(stack, daemon)
                start.send(number)
                start.read_until("no line says this: the log is read to its end")
                self.assertEqual(0, start.process.wait(timeout=60), start.log)
                self.assertEqual({self.everywhere}, set(masks(load.pid).values()))

    def test_a_folder_that_others_can_change_is_refused_with_a_line_for_each(self):
        cases = {
            "run": [("run", 0o775, 0, "its group can write to it")],
            "state": [("state", 0o757, 0, "everybody can write to it"), ("run", 0o755, STRANGER, "it belongs to user 65534, not to root")],
            "policies": [("policies", 0o775, 0, "its group can write to it")],
            "settings": [("affinityd.yaml", 0o666, 0, "everybody can write to it")],
            "above": [(".", 0o755, STRANGER, "it belongs to user 65534, not to root")],
        }
        for what, faults in cases.items():
            with self.subTest(what), contextlib.ExitStack() as stack:
                daemon = Daemon(stack, {"a.yaml": DEMO, "b.yaml": DEMO.replace("demo-workload", "another")})
                command = daemon.command()
                for name in ("run", "state"):
                    (daemon.folder / name).mkdir(mode=0o755)
                for name, mode, owner, _ in faults:
                    os.chmod(daemon.folder / name, mode)
                    os.chown(daemon.folder / name, owner, owner)
                done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
                self.assertIn(done.returncode, (1, 78), done.stderr)
                for name, _, _, why in faults:
                    path = str(daemon.folder) if name == "." else str(daemon.folder / name)
                    self.assertIn(f"{path}: {why}: ", done.stderr)
                if what != "policies":
                    self.assertEqual([], list((daemon.folder / "run").iterdir()), "nothing was begun there")

    def test_after_a_reload_that_is_refused_the_running_policies_stay(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        prepared, path = daemon.folder / "planted", daemon.policies / "planted.yaml"
        prepared.write_text(DEMO.replace('"1"', '"0"') + "priority: 9\n", encoding="utf-8")
        os.chown(prepared, STRANGER, STRANGER)
        prepared.rename(path)
        self.assertIn(f"{path}: error: it belongs to user 65534, not to root: refused", daemon.control("reload", code=1))
        self.assertEqual(["demo"], [policy["name"] for policy in daemon.status()["policies"]])
        check = subprocess.run([PROGRAMS["affinityctl"], "check", str(path)], capture_output=True, text=True, check=False)
        self.assertEqual(0, check.returncode, check.stdout + check.stderr)

    def test_a_journal_that_cannot_be_read_is_put_aside_and_told(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.kill()
        journal = daemon.folder / "run" / "undo.journal"
        journal.unlink()
        os.mkfifo(journal)
        daemon.start()
        said = f"{journal}: not a regular file; put aside as {journal}.unreadable"
        self.assertIn(said, daemon.text())
        self.assertIn(f"{journal}: the undo journal: not a regular file", daemon.control("status"))
        daemon.stop()
        self.assertEqual(self.everywhere, allowed(load.pid), "which masks are ours is in another file")


if __name__ == "__main__":
    unittest.main(verbosity=2)
