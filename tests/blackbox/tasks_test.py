# SPDX-License-Identifier: Apache-2.0
"""A task under policy, from its first moment to its last: which CPUs it has, and how soon."""
import os
import shutil
import socket
import statistics
import time

from house import House, allowed, children, comm, cpus, group, masks, measured, policy, report, set_mask, threads, wait_for

WEB = policy("web", cpus="0", bind="set", settle=0)
THREADS = WEB | {"threads": [{"name": "io-*", "cpus": "1", "bind": "cpu"}, {"name": "free-*", "leave": True}]}
# No regular pass helps where a change must be seen at once.
SELDOM = {"reconcile": "1h"}


def milliseconds(name, values):
    report(f"{name}: median {1000 * statistics.median(values):.1f} ms, worst of {len(values)} {1000 * max(values):.1f} ms")


class Births(House):
    """exec, fork, a thread's birth."""

    def test_a_program_that_was_there_before_is_placed_at_the_start(self):
        web = self.program("web")
        for name in ("io-1", "free-1", "other"):
            web.thread(name)
        daemon = self.daemon(web=THREADS)
        self.expect_threads(web, {self.name("web"): "0", "io-1": "1", "free-1": self.everywhere, "other": "0"})
        self.assertEqual([], daemon.plan())

    def test_a_program_that_starts_later_is_placed(self):
        self.daemon(SELDOM, web=WEB)
        path, took = self.copy_of(self.program("web").process.args[0], "web"), []
        for _ in range(20):
            begin = time.monotonic()
            web = self.spawn(path, stdin=-1)
            wait_for(lambda: allowed(web.pid) == "0", "it is placed")
            took.append(time.monotonic() - begin)
        milliseconds("start of a program -> mask", took)

    def test_a_thread_that_is_made_later_is_placed_by_its_rule(self):
        self.daemon(SELDOM, web=THREADS)
        web = self.program("web")
        self.expect(web, "0")
        self.expect(web, self.everywhere, tid=web.thread("free-1"))
        took = []
        for _ in range(20):
            tid = web.thread("io-1")
            took.append(measured(lambda: allowed(web.pid, tid) == "1", "the thread has its own place"))
        milliseconds("birth of a thread with a name -> mask", took)

    def test_a_child_of_a_placed_program_is_placed_like_it(self):
        self.daemon(SELDOM, web=WEB)
        web = self.program("web")
        self.expect(web, "0")
        self.expect(web.fork(), "0")

    def test_a_child_that_another_policy_wants_goes_where_that_says(self):
        self.daemon(SELDOM, web=WEB, helper=policy("helper", cpus="1", bind="set"))
        web = self.program("web")
        self.expect(web, "0")
        self.expect(web.spawn(self.copy_of("/bin/sleep", "helper"), 600), "1")

    def test_a_child_that_no_policy_wants_has_what_its_parent_had_before(self):
        self.daemon(SELDOM, web=WEB)
        web = self.program("web")
        self.expect(web, "0")
        self.expect(web.spawn("sleep", 600), self.everywhere)
        self.at(web, "0")

    def test_an_exec_into_a_program_of_a_policy_and_out_of_it(self):
        self.daemon(SELDOM, web=WEB, helper=policy("helper", cpus="1", bind="set"))
        for stem, wanted in (("helper", "1"), ("stranger", self.everywhere)):
            with self.subTest(stem):
                web = self.program("web")
                self.expect(web, "0")
                web.exec(self.copy_of("/bin/sleep", stem), "600")
                self.expect(web, wanted)
                self.assertEqual(self.name(stem), comm(web.pid))

    def test_a_real_server_with_threads_of_its_own(self):
        daemon = self.daemon(redis=policy(match={"cmdline": f"*redis-server*{self.bin}/socket*"}, cpus="1", bind="set"))
        redis = self.spawn("redis-server", "--port", "0", "--unixsocket", self.bin / "socket", "--dir", self.bin, "--save", "")
        wait_for(lambda: len(threads(redis.pid)) >= 4, "redis has its background threads")
        self.expect_threads(redis, "1")
        daemon.stop()
        self.assertEqual({self.everywhere}, set(masks(redis.pid).values()))


class Changes(House):
    """A task that comes under a policy, or leaves it, while it runs. The regular pass is an hour away."""

    def free_port(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            return server.getsockname()[1]

    def test_a_process_that_is_renamed_is_matched_again(self):
        self.daemon(SELDOM, web=WEB)
        other = self.program("other")
        self.stays(other, self.everywhere, 0.3)
        other.rename(self.name("web"))
        report(f"new name of a process -> mask: {1000 * measured(lambda: allowed(other.pid) == '0', 'placed'):.1f} ms")
        other.rename(self.name("other"))
        self.expect(other, self.everywhere)

    def test_a_thread_that_is_renamed_is_matched_again(self):
        self.daemon(SELDOM, web=THREADS)
        web = self.program("web")
        tid = web.thread("plain")
        self.expect(web, "0", tid)
        for name, wanted in (("io-7", "1"), ("plain", "0"), ("free-1", self.everywhere), ("io-8", "1")):
            web.rename(name, tid)
            self.expect(web, wanted, tid)

    def test_a_process_that_changes_its_title_is_matched_again(self):
        title = f"{self.mark}:checkpointer"
        self.daemon(SELDOM, web=policy(match={"cmdline": f"{title}*"}, cpus="0", bind="set"))
        for what in ("a process", "a child that runs no other program"):
            with self.subTest(what):
                web = self.program("web")
                web.tell("title", title)
                self.expect(web, "0")

    def test_a_process_that_changes_its_user_is_matched_again(self):
        self.daemon(SELDOM, nobody=policy(match={"cmdline": f"*{self.mark}*", "user": "nobody"}, cpus="0", bind="set"),
                    root=policy(match={"cmdline": f"*{self.mark}*", "user": "root"}, cpus="1", bind="set"))
        web = self.program("web")
        self.expect(web, "1")
        web.tell("uid", 65534)
        report(f"new user -> mask: {1000 * measured(lambda: allowed(web.pid) == '0', 'placed'):.1f} ms")

    def test_a_process_that_begins_to_listen_is_matched_again(self):
        port = self.free_port()
        self.daemon(SELDOM, web=policy(match={"listen": port}, cpus="0", bind="set"))
        for wait in (0, 6):
            with self.subTest(f"on which it listens {wait} s after its start"):
                web = self.program(f"web{wait}")
                self.stays(web, self.everywhere, wait)
                web.tell("listen", port)
                self.expect(web, "0")
                web.end()

    def test_a_process_that_moves_to_another_control_group_is_matched_again(self):
        top, home = group(self.stack, f"affinityd-{self.mark}"), f"affinityd-{self.mark}"
        daemon = self.daemon(SELDOM, group=policy(match={"cgroup": f"/{home}/*"}, cpus="1", bind="set"))
        for number in range(200):  # groups that come and go by the hundred lose none
            (top / f"short-{number}").mkdir()
            (top / f"short-{number}").rmdir()
        inner = top / "inner"
        inner.mkdir()
        self.stack.callback(inner.rmdir)
        web = self.program("web")
        web.thread("io-1")
        self.stack.callback(web.end)
        for folder, wanted, what in ((inner, "1", "into"), (top.parent, self.everywhere, "out of"), (inner, "1", "again into")):
            (folder / "cgroup.procs").write_text(str(web.pid), encoding="ascii")
            took = measured(lambda: set(masks(web.pid).values()) == {wanted}, f"moved {what} the group")
            report(f"moved {what} a control group -> mask: {1000 * took:.0f} ms")
        self.assertEqual([], daemon.plan())

    def test_a_process_that_no_policy_wants_is_never_touched(self):
        self.daemon(SELDOM, web=WEB)
        other = self.program("other")
        other.rename("something-else"), other.tell("uid", 65534), other.thread("io-1")
        self.stays(other, self.everywhere, 2)


class Settling(House):
    """A new process has all CPUs of its policy; it and its threads get places of their own when it has settled."""

    COUNT = policy("web", cpus="0-1", spread="cpu", bind="cpu")

    def test_it_counts_the_cpus_of_its_policy_and_is_placed_later(self):
        self.daemon(SELDOM, web=self.COUNT)
        web = self.program("web")
        self.assertEqual(2, web.cpus())
        wait_for(lambda: len(cpus(allowed(web.pid))) == 1, "it has its own place")

    def test_threads_are_placed_soon_after_the_last_was_made(self):
        for reconcile in ("1h", "1s"):  # passes do not put that off
            with self.subTest(reconcile=reconcile):
                self.fresh()
                self.daemon({"reconcile": reconcile}, web=self.COUNT | {"settle": "40s"})
                web = self.program("web")
                for _ in range(3):
                    web.thread()
                wait_for(lambda: {allowed(web.pid, tid) for tid in threads(web.pid)} == {"0", "1"}, "they are apart", patience=30)

    def test_inside_its_policy_meanwhile_and_explain_says_so(self):
        daemon = self.daemon(SELDOM, web=policy("web", cpus="1", bind="cpu", settle="1m"))
        web = self.program("web")
        self.expect(web, "1")
        self.assertEqual(1, web.cpus())
        daemon.write("web", self.COUNT | {"settle": "1m"})
        self.fresh()
        daemon = self.daemon(SELDOM, web=self.COUNT | {"settle": "1m"})
        web = self.program("web")
        wait_for(lambda: "until it has settled" in daemon.ctl("explain", web.pid).out, "explain names it")

    def test_without_time_to_settle_and_one_that_was_there_before(self):
        before = self.program("web")
        self.daemon(SELDOM, web=self.COUNT | {"settle": 0})
        after = self.program("web")
        wait_for(lambda: {allowed(before.pid), allowed(after.pid)} == {"0", "1"}, "each has its own place")

    def test_a_mask_that_it_sets_meanwhile_is_its_own_where_the_policy_gives_way(self):
        for drift in ("yield", "once"):
            with self.subTest(drift=drift):
                self.fresh()
                daemon = self.daemon(web=policy("web", cpus="0-1", spread="cpu", bind="cpu", settle="3s", drift=drift))
                first = self.program("web")
                wait_for(lambda: len(cpus(allowed(first.pid))) == 1, "it has its own place")
                second = self.program("web")
                wait_for(lambda: daemon.policy("web")["processes"] == 2, "the daemon knows it")
                second.mask(allowed(first.pid))  # the policy wants the other one
                self.stays(second, allowed(first.pid), 4)


class ForeignWriters(House):
    """A mask that another program sets: the policy's `drift` decides. ("tasks" in balance_test.py: one that does so each second.)"""

    def test_a_change_by_another_program_is_put_right_or_kept_as_drift_says(self):
        for drift, at_last in (("enforce", "0"), ("once", "1"), ("yield", "1")):
            with self.subTest(drift=drift):
                self.fresh()
                daemon = self.daemon(SELDOM, web=WEB | {"drift": drift})
                web = self.program("web")
                self.expect(web, "0")
                daemon.calm()
                set_mask(web.pid, "1")
                daemon.passes(2)
                self.at(web, at_last)
                daemon.stop()
                self.at(web, self.everywhere if at_last == "0" else "1")

    def test_what_was_put_right_is_shown_and_counted(self):
        daemon = self.daemon(SELDOM, web=WEB)
        web = self.program("web")
        self.expect(web, "0")
        daemon.calm()
        set_mask(web.pid, "1")
        [thread] = daemon.status()["processes"][0]["threads"]
        self.assertEqual(("drifted", "0", "1"), (thread["state"], thread["wanted"], thread["present"]))
        [action] = daemon.plan()
        self.assertEqual((web.pid, "1", "0"), (action["tid"], action["from"], action["to"]))
        daemon.passes()
        self.at(web, "0")
        wait_for(lambda: daemon.policy("web")["drift_put_right"] == 1, "it is counted")


class Cpusets(House):
    """A task in a cpuset has of its policy's CPUs those that the cpuset leaves."""

    WIDE = policy("web", cpus="0-1", bind="set", settle=0)

    def cage(self, cpus_of_it):
        folder = group(self.stack, f"affinityd-{self.mark}", "cpuset")
        if (folder / "cpuset.mems").exists():
            (folder / "cpuset.mems").write_text((folder.parent / "cpuset.mems").read_text(encoding="ascii"), encoding="ascii")
        (folder / "cpuset.cpus").write_text(cpus_of_it, encoding="ascii")
        web = self.program("web")
        self.stack.callback(web.end)
        (folder / "cgroup.procs").write_text(str(web.pid), encoding="ascii")
        self.at(web, cpus_of_it)
        return folder, web

    def state(self, daemon, pid):
        return wait_for(lambda: [process["threads"][0] for process in daemon.status()["processes"] if process["pid"] == pid], "it is known")[0]

    def test_what_the_cpuset_leaves_is_in_place(self):
        _, web = self.cage("0")
        daemon = self.daemon(web=self.WIDE)
        thread = self.state(daemon, web.pid)
        self.assertEqual(("in place", "0"), (thread["state"], thread["wanted"]))
        self.assertEqual([], daemon.plan())

    def test_a_policy_for_other_cpus_leaves_it_alone_and_says_why(self):
        _, web = self.cage("0")
        daemon = self.daemon(web=policy("web", cpus="1", bind="set"))
        self.assertEqual("outside its cpuset", self.state(daemon, web.pid)["state"])
        self.at(web, "0")
        self.assertEqual("its cpuset (0) has none of the policy's CPUs", daemon.explain(web.pid)["threads"][0]["reason"])
        self.assertEqual(([], {}), (daemon.plan(), daemon.status()["refused"]))

    def test_a_cpuset_that_is_cut_and_widened_again(self):
        folder, web = self.cage("0-1")
        daemon = self.daemon({"reconcile": "1s"}, web=policy("web", cpus="1", bind="set", settle=0))
        self.expect(web, "1")
        (folder / "cpuset.cpus").write_text("0", encoding="ascii")
        self.expect(web, "0")
        wait_for(lambda: self.state(daemon, web.pid)["state"] == "outside its cpuset", "status says so")
        (folder / "cpuset.cpus").write_text("0-1", encoding="ascii")
        self.expect(web, "1")
        daemon.stop()
        self.at(web, "0-1")


class Company(House):
    """Two threads that talk to each other come close, by what `measure latency` measured."""

    PONG = """import os, sys, threading, time
there, back = os.pipe(), os.pipe()
def pong(source, target):
    while data := os.read(source, 1):
        time.sleep(0.01)
        os.write(target, data)
for ends in ((there[0], back[1]), (back[0], there[1])):
    threading.Thread(target=pong, args=ends, daemon=True).start()
os.write(there[1], b"x")
sys.stdin.read()
"""

    def test_threads_of_a_pipe_and_explain_says_by_what(self):
        daemon = self.daemon(pong=policy(match={"cmdline": f"*{self.mark}-pong*"}, settle="300ms",
                                         threads=[{"index": "1-2", "near": "measured"}, {"leave": True}]))
        pong = self.spawn(shutil.which("python3"), "-c", self.PONG, f"{self.mark}-pong", stdin=-1)
        wait_for(lambda: len(threads(pong.pid)) == 3, "all are there")

        def talking():
            return [allowed(pong.pid, tid) for tid in threads(pong.pid) if tid != pong.pid]
        wait_for(lambda: sorted(talking()) == ["0", "1"], "each of the two has a CPU of its own")
        self.at(pong, self.everywhere)
        self.assertIn("by topology, as no latencies were measured here", daemon.ctl("explain", pong.pid).out)
        daemon.ctl("measure", "latency", "--cpus", "0,1", "--state-dir", daemon.folder / "state")
        daemon.ctl("reload")
        wait_for(lambda: "by measured latency" in daemon.ctl("explain", pong.pid).out, "the daemon knows of it")
        daemon.stop()
        self.assertEqual({self.everywhere}, set(talking()))


class Leaving(House):
    """Nothing is left behind where a task that had a mask of ours goes on without its policy. (undo_test.py has the whole table.)"""

    def test_a_release_lasts_until_apply(self):
        daemon = self.daemon({"reconcile": "1s"}, web=WEB)
        web = self.program("web")
        self.expect(web, "0")
        daemon.ctl("release", "web")
        self.at(web, self.everywhere)
        daemon.later()
        self.at(web, self.everywhere)
        self.assertTrue(daemon.policy("web")["released"])
        daemon.ctl("apply")
        self.expect(web, "0")

    def test_orphans_keep_their_place_and_get_back_what_their_parent_had(self):
        daemon = self.daemon(web=WEB)
        web = self.program("web")
        self.expect(web, "0")
        orphan = web.fork()
        self.assertEqual([orphan], children(web.pid))
        self.expect(orphan, "0")
        web.process.kill()
        web.process.wait()
        daemon.stop()
        self.expect(orphan, self.everywhere)
        self.assertTrue(os.path.exists(f"/proc/{orphan}"))
