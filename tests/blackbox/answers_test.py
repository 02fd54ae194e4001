# SPDX-License-Identifier: Apache-2.0
"""Verbs of affinityctl with a daemon: they do what they say, say what they did, and their exit status tells. 0: done; 1: not, or not all;
2: wrong usage; 3: errors in files; 4: no daemon."""
import ctypes
import fcntl
import os
import pty
import re
import resource
import struct
import subprocess
import termios

from house import PROGRAMS, House, affinityctl, allowed, children, document, masks, policy, run, set_mask, wait_for

WEB = policy("web", cpus="1", bind="set", settle=0, description="the web")
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}[os.uname().machine]


class InPlace(House):
    """A daemon and a program of three threads, which are in place."""

    def setUp(self):
        super().setUp()
        self.web = self.program("web")
        self.tids = [self.web.pid, self.web.thread("one"), self.web.thread("two")]
        self.running = self.daemon(web=WEB)
        self.expect_threads(self.web, "1")

    def say(self, *words, code=0):
        return self.running.ctl(*words, code=code).out

    def answer(self, *words, code=0):
        return self.running.ctl("--json", *words, code=code).json

    def displaced(self, count=1):
        self.running.calm()
        for tid in self.tids[:count]:
            set_mask(tid, "0")


class Verbs(InPlace):
    def test_apply_places_what_was_displaced_and_counts_it(self):
        self.assertEqual("everything was in place already: 3 threads\n", self.say("apply"))
        self.displaced()
        self.assertEqual("web: 1 thread placed; 2 threads were in place already\n", self.say("apply"))
        self.assertEqual({"1"}, set(masks(self.web.pid).values()))
        self.displaced(2)
        answer = self.answer("apply")
        self.assertEqual((True, 2, 1), (answer["ok"], answer["policies"][0]["placed"]["threads"], answer["policies"][0]["in_place"]["threads"]))

    def test_release_puts_back_what_was_changed_and_counts_it(self):
        self.assertEqual("web: 3 threads put back\n", self.say("release", "web"))
        self.assertEqual({self.everywhere}, set(masks(self.web.pid).values()))
        self.assertEqual("there was nothing to put back\n", self.say("release"))
        self.running.calm()
        self.assertEqual("web: 3 threads placed\n", self.say("apply"))
        self.displaced()
        answer = self.answer("release", self.web.pid)
        self.assertEqual((2, 1), (answer["policies"][0]["put_back"]["threads"], answer["policies"][0]["left"]))
        self.running.ctl("release", "no-such", code=1)

    def test_reload_says_what_is_in_force_and_fails_at_a_file_with_errors(self):
        self.assertEqual("reloaded: 1 policy\neverything was in place already: 3 threads\n", self.say("reload"))
        self.running.remove("web")
        self.expect_threads(self.web, self.everywhere)
        self.assertEqual("reloaded: 0 policies\nnothing is under policy: there was nothing to place\n", self.say("reload"))
        self.running.write("bad", "version: 1\nmatch: {comm: x}\ncpuz: 1\n")
        self.assertIn("bad.yaml:3:1: error: ", self.running.ctl("reload", code=1).text)
        self.assertFalse(self.answer("reload", code=1)["ok"])

    def test_refusals_are_counted_and_make_it_fail(self):
        """The kernel refuses a mask to a deadline task (EBUSY)."""
        other = self.program("other")
        tid = other.thread("deadline")
        attributes = struct.pack("=IIQiIQQQ", 48, 6, 0, 0, 0, 1_000_000, 100_000_000, 100_000_000)
        self.assertEqual(0, ctypes.CDLL(None).syscall(SCHED_SETATTR, tid, attributes, 0))
        self.running.write("other", policy("other", cpus="1", bind="set"))
        self.expect(other, "1")
        self.assertRegex(self.say("apply", code=1), r"other: 1 thread was in place already; 1 refused: .+")
        answer = self.answer("apply", code=1)
        self.assertEqual((False, 1), (answer["ok"], next(one for one in answer["policies"] if one["name"] == "other")["refused"]))
        self.running.remove("other")
        wait_for(lambda: not self.running.status()["refused"], "the refusal goes with its policy")

    def test_plan_is_what_the_next_pass_does(self):
        self.displaced(2)
        plan = {action["tid"]: (action["from"], action["to"]) for action in self.running.plan()}
        self.assertEqual({tid: ("0", "1") for tid in self.tids[:2]}, plan)
        self.running.passes()
        self.assertEqual({tid: to for tid, (_, to) in plan.items()}, {tid: allowed(self.web.pid, tid) for tid in plan})
        self.assertEqual([], self.running.plan())

    def test_a_preview_of_a_file_is_what_it_then_does(self):
        file = self.bin / "moved.yaml"
        file.write_text(document(**self.own(policy("web", cpus="0", bind="set", settle=0, priority=1))), encoding="utf-8")
        preview = {action["tid"]: action["to"] for action in self.running.plan(file)}
        self.assertEqual(dict.fromkeys(self.tids, "0"), preview)
        self.assertEqual({"1"}, set(masks(self.web.pid).values()), "a preview changes nothing")
        self.running.write("moved", file.read_text(encoding="utf-8"))
        self.expect_threads(self.web, "0")
        self.assertEqual([], self.running.plan())

    def test_explain_names_the_file_and_its_line(self):
        self.running.write("web", WEB | {"threads": [{"name": "one", "cpus": "0"}, {"name": "two", "leave": True}]})
        self.expect_threads(self.web, {self.name("web"): "1", "one": "0", "two": self.everywhere})
        text = self.say("explain", self.web.pid)
        self.assertRegex(text, re.escape(str(self.running.policies / "web.yaml")) + r":\d+")
        reasons = {thread["comm"]: thread["reason"] for thread in self.running.explain(self.web.pid)["threads"]}
        self.assertEqual("thread rule 2: leave", reasons["two"])
        self.assertIn("neither a PID", self.running.ctl("explain", "nosuch", code=1).text)

    def test_policies(self):
        self.running.write("idle", policy("idle"))
        wait_for(lambda: len(self.running.status()["policies"]) == 2, "both are in force")
        listed = {one["name"]: one for one in self.running.ctl("policies", "--json").json["policies"]}
        self.assertEqual((True, 1, 3, "the web", str(self.running.policies / "web.yaml")),
                         tuple(listed["web"][key] for key in ("loaded", "processes", "threads", "description", "file")))
        self.assertEqual((True, 0), (listed["idle"]["loaded"], listed["idle"]["processes"]))
        shown = self.running.ctl("policies", "--policies", self.running.policies, "show", "web").out
        for line in ("bind: set", "drift: enforce", "on_stop: restore"):
            self.assertIn("\n" + line + "\n", shown)

    def test_no_block_begins_it_and_returns(self):
        self.assertEqual("the release has begun\n", self.say("release", "--no-block", "web"))
        self.expect_threads(self.web, self.everywhere)
        self.assertEqual("a pass has begun\n", self.say("apply", "--no-block"))
        self.expect_threads(self.web, "1")

    def test_many_callers_at_once(self):
        callers = [self.spawn(PROGRAMS["affinityctl"], "--runtime-dir", self.running.folder / "run", verb, stdout=subprocess.PIPE, text=True)
                   for verb in ("apply", "reload") * 10]
        for caller in callers:
            self.assertIn("everything was in place already: 3 threads", caller.process.communicate(timeout=60)[0])
            self.assertEqual(0, caller.process.returncode)

    def test_watch(self):
        rows = wait_for(lambda: (lambda seen: len(seen) == 3 and seen)(self.running.ctl("watch", "--once", "--json", "--interval", "0.2").json), "three rows")
        self.assertEqual({("1", False, "web")}, {(row["mask"], row["astray"], row["policy"]) for row in rows})
        self.assertEqual(set(self.tids), {row["tid"] for row in rows})
        self.assertIn("did you mean 'web'?", self.running.ctl("watch", "wep", "--once", code=1).text)


class Measuring(InPlace):
    PLAIN = True  # the program that measures is of the daemon's own build

    def test_measure(self):
        self.running.settings(measure={"duration": "1s"})
        self.running.ctl("reload")
        self.assertRegex(self.say("measure"), r"^loopback \(which tests no NIC\): [0-9.]+ Gbit/s in [0-9.]+ s, ")
        self.running.settings(measure={"duration": "1s", "target": "127.0.0.1:9"})
        self.running.ctl("reload")
        self.assertRegex(self.running.ctl("measure", code=1).text, r"^affinityctl: not measured: unreachable: ")

    def test_a_caller_that_waits_is_told_when_the_daemon_ends(self):
        self.running.settings(measure={"duration": "60s"})
        for end, code, said in ((self.running.stop, 1, "the daemon is stopping"), (self.running.kill, 4, "the daemon ended")):
            with self.subTest(said):
                if self.running.process is None:
                    self.running.start()
                self.running.ctl("reload")
                caller = self.spawn(PROGRAMS["affinityctl"], "--runtime-dir", self.running.folder / "run", "measure", stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True)
                wait_for(lambda: children(self.running.process.pid), "it measures")
                end()
                self.assertIn(said, caller.process.communicate(timeout=60)[0])
                self.assertEqual(code, caller.process.returncode)

    def test_a_progress_line_on_a_terminal_is_wiped(self):
        self.running.settings(measure={"duration": "1s"})
        self.running.ctl("reload")
        for term in ("xterm", "dumb"):
            text = self.terminal("measure", term=term)
            self.assertEqual(term == "xterm", re.search(r"\rmeasuring: 0 s [^\r\n]*\x1b\[K.*\r\x1b\[Kloopback ", text) is not None, text)

    def test_lines_are_as_wide_as_the_terminal_or_columns(self):
        self.running.settings(measure={"duration": "1s"})
        self.running.ctl("reload")
        self.running.ctl("measure")
        self.running.write("a-long-name-of-a-policy-of-this-house", document(**policy("a-name-of-more-than-fifteen-bytes", description="words " * 20)))
        wait_for(lambda: len(self.running.status()["policies"]) == 2, "it is in force")
        for words in (("history",), ("policies",), ("metrics",)):
            with self.subTest(words):
                self.assertLessEqual(max(map(len, self.terminal(*words, term="dumb", columns=60).splitlines())), 60)
                if words != ("metrics",):
                    answer = run("env", "COLUMNS=60", PROGRAMS["affinityctl"], "--runtime-dir", self.running.folder / "run", *words)
                    self.assertLessEqual(max(map(len, answer.text.splitlines())), 60, answer.text)

    def terminal(self, *words, term, columns=80):
        outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = self.spawn(PROGRAMS["affinityctl"], "--runtime-dir", self.running.folder / "run", *words, stdout=inner, stderr=inner,
                             env=os.environ | {"TERM": term})
        os.close(inner)
        text = b""
        try:
            while part := os.read(outer, 4096):
                text += part
        except OSError:  # the end of a terminal
            pass
        os.close(outer)
        self.assertEqual(0, process.process.wait(timeout=60))
        return text.decode()


class WithoutDaemon(House):
    def test_exit_statuses(self):
        empty = self.bin / "empty"
        empty.mkdir()
        good, bad = self.bin / "good.yaml", self.bin / "bad.yaml"
        good.write_text(document(**policy("web")), encoding="utf-8")
        bad.write_text("version: 1\nmatch: {comm: x}\ncpuz: 1\n", encoding="utf-8")
        silent = ("--runtime-dir", empty)
        rows = [(0, ("--version",)), (0, ("--help",)), (0, ("topology",)), (0, ("cpus", "all")), (0, ("check", good)), (3, ("check", bad)),
                (1, ("check", self.bin / "missing.yaml")), (2, ("cpus", "0-")), (2, ("no-such-verb",)), (2, ("status", "--no-such-option")),
                (4, ("status",)), (4, ("apply",)), (4, ("release",)), (4, ("reload",)), (4, ("watch", "--once")), (0, ("plan", good)),
                (3, ("plan", bad)), (0, ("policies", "--policies", empty)), (1, ("policies", "--policies", empty, "show", "nothing"))]
        for code, words in rows:
            with self.subTest(words=" ".join(map(str, words))):
                affinityctl(*silent, *words, code=code)

    def test_hostile_names(self):
        for name in ("../wide", "\x1b[31m"):
            said = affinityctl("--runtime-dir", self.bin, "policies", "--policies", self.bin, "show", name, code=1).text
            self.assertNotIn("\x1b", said)


class Plans(House):
    def test_a_plan_fails_rather_than_leave_out_what_cannot_be_read(self):
        web, tested = self.program("web"), self.daemon(web=policy("web", cpus="0", bind="set", settle=0))
        self.expect(web, "0")
        tested.calm()
        set_mask(web.pid, "1")
        self.assertEqual(1, len(tested.plan()))
        used = {int(fd) for fd in os.listdir(f"/proc/{tested.process.pid}/fd")}
        free = [fd for fd in range(1024) if fd not in used]
        _, most = resource.prlimit(tested.process.pid, resource.RLIMIT_NOFILE)
        for count in range(2, 6):  # one is for the caller
            resource.prlimit(tested.process.pid, resource.RLIMIT_NOFILE, (free[count], most))
            answer = tested.ctl("plan", "--json", code=(0, 1))
            with self.subTest(count):
                self.assertTrue("Too many open files" in answer.err or len(answer.json["actions"]) == 1, answer.text)
