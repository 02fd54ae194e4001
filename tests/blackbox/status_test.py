# SPDX-License-Identifier: Apache-2.0
"""`affinityctl status` as an administrator types it: one screen, a subject alone, a moved thread, an exit status, a pager."""
import contextlib
import fcntl
import os
import pty
import struct
import termios

from house import PROGRAMS, House, policy, run, set_mask, wait_for


class Status(House):
    def setUp(self):
        super().setUp()
        self.web = self.program("web")
        self.web.thread("io"), self.web.thread("free-1")
        self.running = self.daemon({"reconcile": "1h"}, idle=policy("idle", cpus="0"), one=policy(
            "web", cpus="1", bind="set", settle=0, threads=[{"name": "free-*", "leave": True}, {"name": "io", "cpus": "0", "bind": "set"}]))
        self.expect_threads(self.web, {self.name("web"): "1", "io": "0", "free-1": self.everywhere})
        wait_for(lambda: "is running" in self.say().splitlines()[0] and "attention" not in self.say().lower(), lambda: self.say())

    def say(self, *words, code=0):
        return self.running.ctl("status", *words, code=code).out

    def line(self, name):
        return next(line.split() for line in self.say().splitlines() if line.startswith(name + " "))

    def test_all_is_well(self):
        # The thread that is left alone is not missing, and the CPUs of thread rules are the policy's.
        self.assertEqual((["one", "process", "0-1"], "2/2"), (self.line("one")[:3], self.line("one")[5]))
        self.assertEqual(["idle", "process", "0"], self.line("idle")[:3])
        self.assertEqual("", self.say("--quiet"))

    def test_a_thread_that_another_program_moved(self):
        self.running.calm()
        def shown_when_moved(*words):
            set_mask(self.web.pid, "0")  # again: a look of the daemon may have put it right meanwhile
            return self.say(*words, code=None)
        wait_for(lambda: f"thread {self.web.pid} ({self.name('web')})" in shown_when_moved(), "the thread is named")
        failed = wait_for(lambda: (lambda said: "drifted" in said and said)(shown_when_moved("one", "--failed")), "it is listed")
        self.assertNotIn("free-1", failed)
        self.running.ctl("apply")
        self.expect(self.web, "1")
        wait_for(lambda: self.line("one")[5] == "2/2", "all is in place again")
        self.assertLess(0, self.running.policy("one")["drift_put_right"])

    def test_a_subject_alone(self):
        for subject in ("one", str(self.web.pid)):
            said = self.say(subject)
            self.assertIn("free-1", said)
            self.assertNotIn("idle", said)
            self.assertEqual(["one"], [one["name"] for one in self.running.ctl("status", subject, "--json").json["policies"]])
        self.running.write("bad", "version: 1\nmatch: {comm: x}\ncpuz: 1\n")
        wait_for(lambda: "NEEDS ATTENTION" in self.say(code=None), "the machine is not as it should be")
        other = self.program("web")
        self.expect(other, "1")
        one = wait_for(lambda: self.running.ctl("status", self.web.pid, "--json").json["policies"][0], "its policy")
        self.assertEqual((1, 2, 2), (one["processes"], one["threads_in_place"], one["threads_wanted"]), "counted are those of the subject")
        self.assertIn("all is in place", self.say("one"), "judged is the subject")
        self.assertIn("1 problem elsewhere", self.say("one"))
        self.assertIn("did you mean", self.running.ctl("status", "idl", code=1).text)
        self.running.ctl("status", "no-such.service", code=1)

    def test_a_problem_is_no_part_of_the_verdict_while_it_is_acknowledged(self):
        self.running.write("bad", "version: 1\nmatch: {comm: x}\ncpuz: 1\n")
        wait_for(lambda: "NEEDS ATTENTION" in self.say(code=None), "the machine is not as it should be")
        self.assertIn("file/bad", self.running.ctl("acknowledge").out)
        self.running.ctl("acknowledge", "file/other", code=1)
        self.assertIn("if that is intended: affinityctl acknowledge file/bad", self.say(code=None))
        self.running.ctl("acknowledge", "file", "--for", "30d")  # the only one of its kind
        for _ in range(2):
            self.assertRegex(self.say(), r"acknowledged until 20\d\d-\S+: file/bad\n")
            self.assertIn('affinityd_problems{kind="file",severity="acknowledged"} 1', self.running.ctl("metrics").out)
            self.running.stop()
            self.running.start()
            wait_for(lambda: "all is in place" in self.say(code=None), lambda: self.say(code=None))
        self.running.ctl("acknowledge", "file/bad", "--for", "0")
        self.assertIn("NEEDS ATTENTION", self.say(code=3))

    def test_lines_fit_the_columns(self):
        for width in ("80", "120"):
            out = run("env", f"COLUMNS={width}", PROGRAMS["affinityctl"], "--runtime-dir", self.running.folder / "run", "status", "one", code=0).out
            self.assertLessEqual(max(map(len, out.splitlines())), int(width), out)

    def on_a_terminal(self, *words, **environment):
        ours, its = pty.openpty()
        self.stack.callback(os.close, ours)
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", 100, 200, 0, 0))
        program = self.spawn(PROGRAMS["affinityctl"], "--runtime-dir", self.running.folder / "run", "status", *words, stdin=its, stdout=its, stderr=its,
                             env={"PATH": os.environ["PATH"], "TERM": "xterm", **environment})
        os.close(its)
        text = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(ours, 65536):
                text += part
        self.assertEqual(0, program.process.wait(timeout=60), text)
        return text.decode()

    def test_a_pager_on_a_terminal(self):
        shout = "tr a-z A-Z"
        for paged, words, environment in ((True, (), {"AFFINITYCTL_PAGER": shout}), (True, (), {"PAGER": shout}), (False, ("--no-pager",), {"PAGER": shout}),
                                          (False, (), {"PAGER": ""}), (False, (), {"PAGER": "/no/such/pager"}), (False, (), {"PAGER": shout, "TERM": "dumb"}),
                                          (False, (), {"PAGER": shout, "SUDO_UID": "1000"})):  # whose environment it is is not sure under sudo
            with self.subTest(words=words, **environment):
                self.assertIn("IS RUNNING" if paged else "is running", self.on_a_terminal(*words, **environment))
