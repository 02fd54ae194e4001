# SPDX-License-Identifier: Apache-2.0
"""Processes and threads of real programs, as the kernel shows them."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from daemon import Daemon, allowed, masks, spawn, threads, wait_for, workload

REDIS = "version: 1\nmatch: {comm: redis-server}\naffinity: process\ncpus: \"1\"\nbind: set\n"
DEMO = """version: 1
match: {comm: demo-workload}
cpus: "0"
bind: set
threads:
  - {name: "io-*", cpus: "1", bind: cpu}
  - {name: "free-*", leave: true}
"""


class Tasks(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.everywhere = allowed(os.getpid())

    def test_a_server_started_later_is_pinned_with_all_its_threads_and_let_go_at_the_end(self):
        daemon = Daemon(self.stack, {"redis.yaml": REDIS}).start()
        folder = tempfile.mkdtemp(prefix="affinityd-redis-")
        self.stack.callback(shutil.rmtree, folder, ignore_errors=True)
        redis = spawn(self.stack, "redis-server", "--port", "0", "--unixsocket", folder + "/socket", "--dir", folder, "--save", "")
        wait_for(lambda: len(threads(redis.pid)) >= 4, "redis has its background threads")
        wait_for(lambda: set(masks(redis.pid).values()) == {"1"}, "every thread of redis is on CPU 1")
        daemon.stop()
        self.assertEqual({self.everywhere}, set(masks(redis.pid).values()))

    def test_processes_that_were_there_before_are_pinned(self):
        load = workload(self.stack, "--threads", "io-1,worker,free-1")
        wait_for(lambda: len(masks(load.pid)) == 4, "all threads have their names")
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        wanted = {"demo-workload": "0", "worker": "0", "io-1": "1", "free-1": self.everywhere}
        wait_for(lambda: masks(load.pid) == wanted, f"masks are {wanted}")
        self.assertEqual([], daemon_plan(daemon))

    def test_thread_rules_follow_the_names_of_new_threads(self):
        Daemon(self.stack, {"demo.yaml": DEMO}).start()
        load = workload(self.stack, "--threads", "io-1,io-2,worker")
        wanted = {"demo-workload": "0", "worker": "0", "io-1": "1", "io-2": "1"}
        wait_for(lambda: masks(load.pid) == wanted, f"masks are {wanted}")

    def test_a_program_that_takes_a_matching_name_is_pinned(self):
        Daemon(self.stack, {"redis.yaml": REDIS}).start()
        load = workload(self.stack, "--rename-after", "300", "redis-server")
        self.assertEqual(self.everywhere, allowed(load.pid))
        wait_for(lambda: allowed(load.pid) == "1", "the renamed program is on CPU 1")

    def test_a_program_that_gives_up_its_name_gets_its_mask_back(self):
        Daemon(self.stack, {"demo.yaml": DEMO}).start()
        load = workload(self.stack, "--rename-after", "700", "something-else")
        wait_for(lambda: allowed(load.pid) == "0", "pinned under its first name")
        wait_for(lambda: allowed(load.pid) == self.everywhere, "its own mask is back")

    def test_an_exec_into_a_matching_program_is_pinned_and_out_of_one_let_go(self):
        Daemon(self.stack, {"s.yaml": REDIS.replace("redis-server", "sleep"), "demo.yaml": DEMO}).start()
        into = workload(self.stack, "--exec-after", "300", "sleep", "100")
        wait_for(lambda: allowed(into.pid) == "0", "still the workload")
        wait_for(lambda: allowed(into.pid) == "1", "now sleep")
        out = workload(self.stack, "--exec-after", "500", "tail", "-f", "/dev/null")
        wait_for(lambda: allowed(out.pid) == "0", "still the workload")
        wait_for(lambda: allowed(out.pid) == self.everywhere, "tail is nobody's")

    def test_a_child_that_no_policy_wants_is_not_left_with_the_mask_it_was_born_with(self):
        daemon = Daemon(self.stack, {"shell.yaml": REDIS.replace("redis-server", "test-shell")})
        shell = shutil.copy("/bin/dash", daemon.folder / "test-shell")
        daemon.start()
        parent = spawn(self.stack, str(shell), "-c", "sleep 0.5; sleep 1000 & wait")
        wait_for(lambda: allowed(parent.pid) == "1", "the shell is pinned")
        child = wait_for(lambda: [pid for pid in children(parent.pid) if name_of(pid, "cmdline") == "sleep\0" + "1000\0"], "its child")[0]
        self.stack.callback(end, child)
        wait_for(lambda: allowed(child) == self.everywhere, "the child has what its parent had before")
        self.assertEqual("1", allowed(parent.pid))

    def test_a_foreign_mask_is_put_right_or_left_as_the_policy_says(self):
        for drift, at_last in (("enforce", "0"), ("once", "1"), ("yield", "1")):
            with self.subTest(drift=drift), contextlib.ExitStack() as stack:
                daemon = Daemon(stack, {"demo.yaml": DEMO + f"drift: {drift}\n"}).start()
                load = workload(stack)
                wait_for(lambda: allowed(load.pid) == "0", "pinned")
                subprocess.run(["taskset", "-p", "-c", "1", str(load.pid)], check=True, capture_output=True)
                passes = daemon.status()["reconciles"]
                daemon.control("apply")
                wait_for(lambda: daemon.status()["reconciles"] > passes and not daemon.status()["reconciling"], "a full pass")
                self.assertEqual(at_last, allowed(load.pid))

    def test_release_lets_go_and_apply_takes_up_again(self):
        daemon = Daemon(self.stack, {"demo.yaml": DEMO}).start()
        load = workload(self.stack)
        wait_for(lambda: allowed(load.pid) == "0", "pinned")
        daemon.control("release", "demo")
        self.assertEqual(self.everywhere, allowed(load.pid))
        daemon.control("apply")
        wait_for(lambda: allowed(load.pid) == "0", "pinned again")

    def test_exclusive_cpus_are_cleared_of_others(self):
        other = workload(self.stack, "--rename-after", "0", "bystander")
        policy = "version: 1\nmatch: {comm: [owner, bystander-not]}\ncpus: \"1\"\nbind: set\nexclusive: true\n"
        with contextlib.ExitStack() as inner:
            # The test may move its own tasks only; for all others the policy is tried in a dry run.
            daemon = Daemon(inner, {"owner.yaml": policy}, ["--dry-run"]).start()
            actions = {action["pid"]: action["to"] for action in daemon_plan(daemon) if action["kind"] == "task"}
            self.assertEqual("0", actions[other.pid])
            self.assertEqual(self.everywhere, allowed(other.pid), "a dry run changes nothing")


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]


def name_of(pid, what):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/{what}").read_text(encoding="utf-8", errors="replace")
    return ""


def end(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def daemon_plan(daemon):
    return json.loads(daemon.control("plan", "--json"))["actions"]


if __name__ == "__main__":
    unittest.main(verbosity=2)
