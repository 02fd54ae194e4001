# SPDX-License-Identifier: Apache-2.0
"""Every change answers: apply, release, reload and measure say what they did, with --no-block that it has begun."""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import termios
import time
import unittest

from daemon import PROGRAMS, Daemon, allowed, masks, spawn, threads, wait_for, workload

DEMO = "version: 1\nmatch: {comm: demo-workload}\ncpus: \"1\"\nbind: set\nsettle: 0s\n"
NOBODY = DEMO.replace("demo-workload", "nobody")
SYS_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}[os.uname().machine]


def children(pid):
    return [word for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text(encoding="ascii").split()]


def make_deadline_task(tid):
    """Such a task takes no mask that is smaller than its scheduling domain: the kernel refuses with EBUSY."""
    libc = ctypes.CDLL(None, use_errno=True)
    # size, policy (SCHED_DEADLINE), flags, nice, priority, runtime, deadline, period
    attributes = struct.pack("=IIQiIQQQ", 48, 6, 0, 0, 0, 1_000_000, 100_000_000, 100_000_000)
    if libc.syscall(SYS_SCHED_SETATTR, tid, attributes, 0) != 0:
        raise OSError(ctypes.get_errno(), "sched_setattr")


class Answers(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.everywhere = allowed(os.getpid())

    def start(self):
        """A daemon and a program of three threads, which is in place."""
        self.load = workload(self.stack, "--threads", "one,two")
        wait_for(lambda: len(threads(self.load.pid)) == 3, "its threads are there")
        self.daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        self.in_place()
        return self.daemon

    def in_place(self):
        wait_for(lambda: set(masks(self.load.pid).values()) == {"1"}, "all threads are in place")

    def elsewhere(self):
        wait_for(lambda: set(masks(self.load.pid).values()) == {self.everywhere}, "all threads are back")

    def answer(self, *arguments, code=0):
        return json.loads(self.daemon.control("--json", *arguments, code=code).splitlines()[0])

    def test_apply_says_what_it_placed(self):
        daemon = self.start()
        self.assertEqual("everything was in place already: 3 threads\n", daemon.control("apply"))
        daemon.calm()
        os.sched_setaffinity(threads(self.load.pid)[1], [0])
        self.assertEqual("demo: 1 thread placed; 2 threads were in place already\n", daemon.control("apply"))
        self.in_place()  # nothing is waited for: the answer comes when it is done
        self.assertEqual({"1"}, set(masks(self.load.pid).values()))
        daemon.calm()
        os.sched_setaffinity(threads(self.load.pid)[1], [0])
        answer = self.answer("apply")
        self.assertEqual((True, "demo: 1 thread placed; 2 threads were in place already"), (answer["ok"], answer["message"]))
        self.assertEqual(["demo"], [policy["name"] for policy in answer["policies"]])
        self.assertEqual((1, 2), (answer["policies"][0]["placed"]["threads"], answer["policies"][0]["in_place"]["threads"]))

    def test_release_says_what_it_put_back_and_apply_takes_it_up_again(self):
        daemon = self.start()
        self.assertEqual("demo: 3 threads put back\n", daemon.control("release", "demo"))
        self.assertEqual({self.everywhere}, set(masks(self.load.pid).values()))
        self.assertEqual("there was nothing to put back\n", daemon.control("release"))
        daemon.calm()  # else a pass that is under way may place them before the one that is counted
        self.assertEqual("demo: 3 threads placed\n", daemon.control("apply"))
        self.assertEqual({"1"}, set(masks(self.load.pid).values()))
        daemon.calm()
        os.sched_setaffinity(self.load.pid, [0])
        answer = self.answer("release", str(self.load.pid))
        self.assertEqual((2, 1), (answer["policies"][0]["put_back"]["threads"], answer["policies"][0]["left"]), answer)
        self.assertIn("neither a policy nor a process", daemon.control("release", "nobody", code=1))
        self.assertIn("neither a policy nor a process", daemon.control("release", "nobody", "--no-block", code=1))

    def test_reload_says_what_the_pass_after_it_did(self):
        daemon = self.start()
        self.assertEqual("reloaded: 1 policy\neverything was in place already: 3 threads\n", daemon.control("reload"))
        daemon.write("other.yaml", NOBODY)
        wait_for(lambda: daemon.text().count("reloaded: 2 policies") == 1, "it was read by itself")
        (daemon.policies / "demo.yaml").unlink()
        wait_for(lambda: daemon.text().count("reloaded: 1 policy") == 2, "that, too")
        self.elsewhere()
        self.assertEqual("reloaded: 1 policy\nnothing is under policy: there was nothing to place\n", daemon.control("reload"))
        daemon.write("bad.yaml", "version: 1\nmatch: {comm: x}\ncpuz: 1\n")
        said = daemon.control("reload", code=1)
        self.assertIn(f"{daemon.policies}/bad.yaml:3:1: error: ", said)
        self.assertIn("nothing is under policy", said)
        answer = self.answer("reload", code=1)
        self.assertEqual((False, []), (answer["ok"], answer["policies"]))
        os.chmod(daemon.policies, 0o777)
        said = daemon.control("reload", code=1)
        self.assertRegex(said, r"^affinityctl: reload failed: (.*\n)+.*everybody can write to it: refused\nthe running set stays\n$")

    def test_refusals_are_counted_and_make_it_fail(self):
        load = workload(self.stack, "--threads", "one")
        tids = wait_for(lambda: len(threads(load.pid)) == 2 and threads(load.pid), "its thread is there")
        for tid in tids:  # else it is no deadline task
            os.sched_setaffinity(tid, range(os.cpu_count()))
        try:
            make_deadline_task(tids[1])
        except PermissionError:
            self.assertNotEqual(0, os.geteuid())
            return
        self.daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wait_for(lambda: allowed(load.pid) == "1", "the other one is in place")
        said = self.daemon.control("apply", code=1)
        self.assertRegex(said, r"^demo: 1 thread was in place already; 1 refused: .+; affinityctl status --failed\n$")
        answer = self.answer("apply", code=1)
        self.assertEqual((False, 1), (answer["ok"], answer["policies"][0]["refused"]))
        self.assertEqual("demo: 1 thread put back\n", self.daemon.control("release"))

    def test_measure_gives_the_result(self):
        daemon = self.start()
        said = daemon.control("measure")
        self.assertRegex(said, r"^loopback \(which tests no NIC\): [0-9.]+ Gbit/s in [0-9.]+ s, .*not compared yet: too few runs\n$")
        answer = self.answer("measure")
        self.assertEqual((True, []), (answer["ok"], answer["policies"]))
        daemon.settings().write_text("version: 1\nmeasure: {duration: 1s, target: \"127.0.0.1:9\"}\n", encoding="utf-8")
        daemon.control("reload")
        self.assertRegex(daemon.control("measure", code=1), r"^affinityctl: not measured: unreachable: .*\n$")

    def test_no_block_begins_it_and_returns(self):
        daemon = self.start()
        self.assertEqual("the release has begun\n", daemon.control("release", "--no-block", "demo"))
        self.elsewhere()
        self.assertEqual("a pass has begun\n", daemon.control("apply", "--no-block"))
        self.in_place()
        self.assertEqual({"ok": True, "message": "reloaded: 1 policy", "policies": []}, self.answer("reload", "--no-block"))
        daemon.write("bad.yaml", "version: 1\nmatch: {comm: x}\ncpuz: 1\n")
        self.assertIn("bad.yaml:3:1: error: ", daemon.control("reload", "--no-block", code=1))
        self.assertEqual("a measurement has begun\n", daemon.control("measure", "--no-block"))
        self.assertIn("running already", daemon.control("measure", "--no-block", code=1))
        wait_for(lambda: daemon.status()["measurement"], "it has been measured")
        self.assertIn("--no-block", daemon.control("measure", "--no-block", "models", code=2))

    def waiting(self, *arguments):
        """The verb in the background: a measurement of a minute, or a pass that is held up."""
        return subprocess.Popen([PROGRAMS["affinityctl"], "--runtime-dir", str(self.daemon.folder / "run"), *arguments],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_who_waits_is_told_when_the_daemon_stops(self):
        self.start()
        self.daemon.settings().write_text("version: 1\nmeasure: {duration: 60s}\n", encoding="utf-8")
        self.daemon.control("reload")
        caller = self.waiting("measure")
        wait_for(lambda: children(self.daemon.process.pid), "it measures")
        self.daemon.stop()
        said, _ = caller.communicate(timeout=60)
        self.assertEqual((1, "affinityctl: the daemon is stopping: the measurement is given up\n"), (caller.returncode, said))

    def test_who_waits_is_told_when_the_daemon_dies(self):
        self.start()
        self.daemon.settings().write_text("version: 1\nmeasure: {duration: 60s}\n", encoding="utf-8")
        self.daemon.control("reload")
        caller = self.waiting("measure")
        wait_for(lambda: children(self.daemon.process.pid), "it measures")
        self.daemon.kill()
        said, _ = caller.communicate(timeout=60)
        self.assertEqual((4, "affinityctl: the daemon ended, or closed the connection, before it answered\n"), (caller.returncode, said))

    def test_many_callers_at_once_are_all_answered(self):
        """Also those whose pass is overtaken by reloads."""
        self.start()
        callers = [self.waiting(verb) for verb in ("apply", "reload") * 10]
        for caller in callers:
            said, _ = caller.communicate(timeout=60)
            self.assertEqual(0, caller.returncode, said)
            self.assertIn("everything was in place already: 3 threads", said)

    def on_terminal(self, *arguments, term="xterm"):
        """What the verb writes on a terminal."""
        outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        process = spawn(self.stack, PROGRAMS["affinityctl"], "--runtime-dir", str(self.daemon.folder / "run"), *arguments,
                        stdout=inner, stderr=inner, env=os.environ | {"TERM": term})
        os.close(inner)
        text = b""
        with contextlib.suppress(OSError):  # how a terminal ends
            while part := os.read(outer, 4096):
                text += part
        os.close(outer)
        self.assertEqual(0, process.wait(timeout=60))
        return text.decode()

    def test_a_progress_line_is_shown_after_half_a_second_and_wiped(self):
        self.start()
        text = self.on_terminal("measure")  # takes a second
        self.assertRegex(text, r"^\rmeasuring: 0 s [^\r\n]*\x1b\[K(\rmeasuring: [0-9]+ s [^\r\n]*\x1b\[K)*\r\x1b\[Kloopback ")
        self.assertTrue(all(len(re.sub(r"\x1b\[K", "", part)) < 80 for part in text.split("\r")[:-2]))
        self.assertNotIn("\x1b", self.on_terminal("measure", term="dumb"))
        begin = time.monotonic()
        text = self.on_terminal("apply")
        if time.monotonic() - begin < 0.5:
            self.assertNotIn("\x1b", text)

    def test_the_log_tells_each_first_placement_once(self):
        daemon = self.start()
        self.assertEqual(1, daemon.text().count("policy demo: 3 threads placed"), daemon.text())
        daemon.control("apply")
        daemon.calm()
        os.sched_setaffinity(self.load.pid, [0])
        daemon.control("apply")
        self.assertEqual(1, daemon.text().count(" placed"), daemon.text())
        self.assertEqual(1, daemon.text().count("by somebody else: put right, to 1"), daemon.text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
