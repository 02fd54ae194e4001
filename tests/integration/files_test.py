# SPDX-License-Identifier: Apache-2.0
"""Files with errors, at the start, at a reload and at the next start: all others are in force, and everybody is told."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from daemon import PROGRAMS, Daemon, allowed, spawn, threads, wait_for, workload

DEMO = "version: 1\nmatch: {comm: demo-workload}\ncpus: \"1\"\nbind: set\n"
OTHER = DEMO.replace("demo-workload", "another")
BAD = "version: 1\nmatch: {comm: demo-workload}\ncpuz: \"0\"\n"
STRANGER = 65534


class NotifySocket:
    """Takes what the daemon would say to its service manager."""

    def __init__(self, stack, folder):
        self.path = str(folder / "notify")
        self.socket = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.socket.bind(self.path)
        self.line = ""
        threading.Thread(target=self.take, daemon=True).start()  # who does not take holds the daemon up

    def take(self):
        with contextlib.suppress(OSError):
            while message := self.socket.recv(65536).decode():
                for line in message.splitlines():
                    if line.startswith("STATUS="):
                        self.line = line

    def status(self):
        return self.line


class Restricted(Daemon):
    """A daemon that something is taken from by another program first."""

    def __init__(self, stack, policies, taken):
        super().__init__(stack, policies)
        self.taken = taken

    def command(self):
        return [*self.taken, *super().command()]


class Files(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.everywhere = allowed(os.getpid())

    def faults(self, daemon):
        return [(os.path.basename(fault["file"]), fault["line"], bool(fault["in_force"])) for fault in daemon.status()["load"]["faults"]]

    def test_one_bad_file_at_the_start_is_left_out_and_told_everywhere(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO, "bad.yaml": BAD.replace("demo-workload", "nobody")})
        notify = NotifySocket(self.stack, daemon.folder)
        os.environ["NOTIFY_SOCKET"] = notify.path
        self.addCleanup(os.environ.pop, "NOTIFY_SOCKET", None)
        daemon.start()
        wait_for(lambda: allowed(load.pid) == "1", "the good file's policy is in force")
        path = str(daemon.policies / "bad.yaml")
        self.assertIn(f"{path}:3:1: error: ", daemon.text())
        self.assertIn("left out", daemon.text())
        self.assertEqual([("bad.yaml", 3, False)], self.faults(daemon))
        self.assertFalse(daemon.status()["load"]["ok"])
        self.assertIn(f"{path}:3:1: ", daemon.control("status"))
        wait_for(lambda: notify.status().startswith(f"STATUS=1 file has errors: {path}:3:1; "), "the unit's Status line")
        daemon.write("bad.yaml", OTHER)
        wait_for(lambda: daemon.status()["load"]["ok"], "the mended file is read")
        wait_for(lambda: notify.status().startswith("STATUS=2 policies"), "the line of a healthy daemon")
        self.assertNotIn("bad.yaml:3", daemon.control("status"))

    def test_the_last_good_version_stays_at_a_reload_and_at_the_next_start(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO, "other.yaml": OTHER}).start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.write("demo.yaml", BAD)
        said = daemon.control("reload", code=1)
        kept = daemon.folder / "state" / "last-good" / "demo.yaml"
        for part in (f"{daemon.policies / 'demo.yaml'}:3:1: error: ", f"its last good version stays in force: {kept}",
                     "1 file has errors; all others are in force"):
            self.assertIn(part, said)
        self.assertEqual("1", allowed(load.pid))
        daemon.stop()
        self.assertEqual(self.everywhere, allowed(load.pid))
        daemon.start()
        wait_for(lambda: allowed(load.pid) == "1", "the last good version is in force")
        self.assertEqual([("demo.yaml", 3, True)], self.faults(daemon))
        self.assertIn(str(kept), daemon.control("explain", str(load.pid)))
        daemon.kill()
        # A version that was cut short or changed is not taken for a policy.
        kept.write_text(kept.read_text(encoding="utf-8").replace("bind: set\n", ""), encoding="utf-8")
        daemon.start()
        self.assertEqual([("demo.yaml", 3, False)], self.faults(daemon))
        wait_for(lambda: allowed(load.pid) == self.everywhere, "nothing wants it any more")
        self.assertEqual(["other"], [policy["name"] for policy in daemon.status()["policies"]])

    def test_a_last_good_version_that_others_can_change_is_refused(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.stop()
        os.chmod(daemon.folder / "state" / "last-good", 0o777)
        daemon.write("demo.yaml", BAD)
        daemon.start()
        self.assertEqual([("demo.yaml", 3, False)], self.faults(daemon))
        for said in (daemon.text(), daemon.control("status")):
            self.assertIn("its last good version cannot be used", said)
            self.assertIn("everybody can write to it", said)
        self.assertEqual(self.everywhere, allowed(load.pid))

    def test_others_change_by_the_reload_that_one_file_makes_fail(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.write("broken.yaml", "version: 1\nmatch: {comm: [}\n")
        daemon.write("demo.yaml", DEMO.replace('"1"', '"0"'))
        said = json.loads(daemon.control("reload", "--json", code=1).splitlines()[0])
        self.assertFalse(said["ok"])
        self.assertIn("broken.yaml:2:", said["message"])
        wait_for(lambda: allowed(load.pid) == "0", "the good file counts")
        (daemon.policies / "broken.yaml").unlink()
        self.assertIn("reloaded: 1 polic", daemon.control("reload"))

    def test_a_file_that_others_can_change_is_left_out_alone(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO, "group.yaml": OTHER, "theirs.yaml": OTHER.replace("another", "third")})
        os.chmod(daemon.policies / "group.yaml", 0o664)
        os.chown(daemon.policies / "theirs.yaml", STRANGER, STRANGER)
        daemon.start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        self.assertIn(f"{daemon.policies / 'group.yaml'}: error: its group can write to it: refused", daemon.text())
        self.assertIn(f"{daemon.policies / 'theirs.yaml'}: error: it belongs to user 65534, not to root: refused", daemon.text())
        self.assertEqual([("group.yaml", 0, False), ("theirs.yaml", 0, False)], self.faults(daemon))

    def test_a_folder_that_others_can_change_ends_a_start_and_refuses_a_reload(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        os.chmod(daemon.policies, 0o775)
        said = daemon.control("reload", code=1)
        self.assertIn("its group can write to it", said)
        self.assertEqual("1", allowed(load.pid))
        self.assertIn("its group can write to it", daemon.status()["load"]["refused"])
        self.assertIn("what was in force before stays", daemon.control("status"))
        daemon.stop()
        run = subprocess.run(daemon.command(), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(78, run.returncode, run.stderr)

    def test_a_release_outlives_a_reload_that_finds_errors(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.control("release", "demo")
        self.assertEqual(self.everywhere, allowed(load.pid))
        daemon.write("demo.yaml", BAD)
        daemon.control("reload", code=1)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: daemon.text().count("reloaded: ") >= 2, "it has been read twice")
        daemon.control("plan")
        self.assertEqual(self.everywhere, allowed(load.pid))
        self.assertTrue(daemon.status()["policies"][0]["released"])

    def test_a_release_outlives_other_policies_that_are_saved(self):
        load = workload(self.stack)
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.control("release", "demo")
        daemon.write("other.yaml", OTHER)
        wait_for(lambda: "reloaded: 2 policies" in daemon.text(), "the other one is in force")
        daemon.control("plan")
        self.assertEqual(self.everywhere, allowed(load.pid))
        self.assertEqual({"demo": True, "other": False}, {policy["name"]: policy["released"] for policy in daemon.status()["policies"]})
        daemon.write("demo.yaml", DEMO + "description: another text\n")
        wait_for(lambda: allowed(load.pid) == "1", "who saves it wants it")
        daemon.control("release", "demo")
        daemon.control("reload")
        self.assertEqual("1", allowed(load.pid))
        self.assertIn("released by hand: policy demo", daemon.text())

    def test_settings_are_read_again_and_ones_with_errors_change_nothing(self):
        daemon = Daemon(self.stack, {"demo.yaml": DEMO})
        daemon.settings().write_text("version: 1\nreconcile: 1h\n", encoding="utf-8")
        daemon.start()
        daemon.settings().write_text("version: 1\nreconcile: 1s\n", encoding="utf-8")
        daemon.control("reload")
        before = daemon.status()["reconciles"]
        wait_for(lambda: daemon.status()["reconciles"] >= before + 5, "passes come every second")
        daemon.settings().write_text("version: 1\nreconcile: no\n", encoding="utf-8")
        said = daemon.control("reload", code=1)
        self.assertIn("affinityd.yaml:2:", said)
        self.assertIn("the settings in force stay", said)
        before = daemon.status()["reconciles"]
        wait_for(lambda: daemon.status()["reconciles"] >= before + 5, "as before")
        self.assertIn("affinityd.yaml:2:", daemon.control("status"))
        daemon.stop()
        run = subprocess.run(daemon.command(), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(78, run.returncode, run.stderr)

    def test_check_covers_settings(self):
        settings = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="affinityd-check-"))) / "affinityd.yaml"
        for text, code, said in (("version: 1\nreconcile: 10\n", 0, "0 errors"), ("version: 1\nreconcile: 10y\nrediel: 1\n", 3, ":2:12: error: ")):
            settings.write_text(text, encoding="utf-8")
            done = subprocess.run([PROGRAMS["affinityctl"], "check", str(settings)], capture_output=True, text=True, check=False)
            self.assertEqual(code, done.returncode, done.stdout + done.stderr)
            self.assertIn(said, done.stdout)
        self.assertIn(f"{settings}:3:1: error: ", done.stdout)
        document = json.loads(subprocess.run([PROGRAMS["affinityctl"], "--json", "check", str(settings)], capture_output=True, check=False).stdout)
        self.assertEqual((False, 2, []), (document["ok"], document["errors"], document["policies"]))

    def test_a_daemon_without_process_events_says_what_helps(self):
        load = workload(self.stack)
        daemon = Restricted(self.stack, {"demo.yaml": DEMO}, ("unshare", "--net", "--"))
        daemon.start()
        wait_for(lambda: allowed(load.pid) == "1", "a pass finds it")
        problem = next(problem for problem in daemon.status()["problems"] if problem["subject"] == "process events")
        self.assertIn("PrivateNetwork=", problem["hint"])
        self.assertIn("process events: ", daemon.control("status"))
        # Nobody tells it that the program has ended, and the next pass is a minute away.
        held = daemon.status()["policies"][0]
        self.assertEqual((1, 1), (held["processes"], held["threads_in_place"]))
        load.kill()
        load.wait()
        status = daemon.status()
        held = status["policies"][0]
        self.assertEqual((0, 0, 0, []), (held["processes"], held["threads"], held["threads_in_place"], status["processes"]))

    def test_a_daemon_without_the_right_to_move_tasks_says_it_once(self):
        crowd = ",".join(f"thread-{number}" for number in range(40))
        nobody = shutil.copy(PROGRAMS["workload"], f"/tmp/bound-{os.getpid()}")
        self.stack.callback(os.unlink, nobody)
        load = spawn(self.stack, nobody, "--threads", crowd, user=STRANGER)
        name = pathlib.Path(nobody).name[:15]
        wait_for(lambda: len(threads(load.pid)) == 41, "all its threads")
        daemon = Restricted(self.stack, {"demo.yaml": DEMO.replace("demo-workload", name)},
                            ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--"))
        daemon.start()
        wait_for(lambda: len(daemon.status()["refused"]) == 41, "all are refused")
        self.assertEqual({self.everywhere}, {allowed(load.pid, tid) for tid in threads(load.pid)})
        lines = [line for line in daemon.text().splitlines() if "could not be moved" in line]
        self.assertEqual(1, len(lines), daemon.text())
        self.assertIn("not permitted", lines[0])
        said = daemon.control("status")
        self.assertIn("41 of the changes now wanted are not permitted", said)
        self.assertIn("tasks of other users need CAP_SYS_NICE", said)
        self.assertIn("41 threads could not be set, first ", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
