# SPDX-License-Identifier: Apache-2.0
"""affinityctl policies, with and without a daemon; and policies for programs in a cpuset."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from daemon import PROGRAMS, Daemon, allowed, remove_group, wait_for, workload

WIDE = "version: 1\ndescription: the wide one\nmatch: {comm: demo-workload}\npriority: 7\ncpus: \"0-1\"\nbind: set\n"
APART = WIDE.replace("\"0-1\"", "\"1\"")


def affinityctl(*arguments, code=0):
    done = subprocess.run([PROGRAMS["affinityctl"], *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, f"affinityctl {arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


class Policies(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def folders(self, *contents):
        made = []
        for files in contents:
            folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="affinityd-policies-")))
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
            made.append(folder)
        return made

    def test_what_a_running_daemon_holds(self):
        daemon = Daemon(self.stack, {"wide.yaml": WIDE, "idle.yaml": "version: 1\nmatch: {comm: nobody-is-called-so}\n"}).start()
        load = workload(self.stack, "--threads", "one,two")
        wait_for(lambda: self.one(daemon, "wide")["threads"] == 3, "three threads are under the policy")
        wide = self.one(daemon, "wide")
        self.assertEqual((True, 1, 7, "process", "the wide one"),
                         (wide["loaded"], wide["processes"], wide["priority"], wide["affinity"], wide["description"]))
        self.assertEqual(str(daemon.policies / "wide.yaml"), wide["file"])
        self.assertEqual(0, self.one(daemon, "idle")["processes"])
        table = daemon.control("policies")
        self.assertRegex(table, r"(?m)^wide +7 +process +1 +3 +0 +.*wide\.yaml$")
        self.assertIsNone(load.poll())

    @staticmethod
    def one(daemon, name):
        document = json.loads(affinityctl("--runtime-dir", str(daemon.folder / "run"), "policies", "--json").stdout)
        return next(policy for policy in document["policies"] if policy["name"] == name)

    def test_a_file_that_was_not_loaded_is_told(self):
        daemon = Daemon(self.stack, {"wide.yaml": WIDE})
        daemon.start()
        # The daemon watches its own folder only, so it never loads what is in another one.
        [other] = self.folders({"later.yaml": APART})
        text = daemon.control("policies", "--policies", str(other))
        self.assertIn("later is not loaded", text)

    def test_check_and_topology_read_the_daemons_folders(self):
        daemon = Daemon(self.stack, {"wide.yaml": WIDE}).start()
        load = workload(self.stack, "--threads", "one")
        checked = json.loads(daemon.control("check", "--json"))
        self.assertEqual(["wide"], checked["policies"])
        self.assertEqual({"wide": 1}, checked["processes"])
        self.assertIn("wide: 1 process matches now\n", daemon.control("check"))
        self.assertIn("wide", daemon.control("topology", "--policy", "wide"))
        self.assertIsNone(load.poll())

    def test_a_preview_is_what_the_daemon_then_does(self):
        daemon = Daemon(self.stack, {}).start()
        load = workload(self.stack, "--threads", "one,two")
        [folder] = self.folders({"apart.yaml": APART})
        preview = json.loads(daemon.control("plan", "--json", str(folder / "apart.yaml")))
        self.assertEqual({(str(load.pid), "1")}, {(str(action["pid"]), action["to"]) for action in preview["actions"]})
        self.assertEqual(3, len(preview["actions"]))
        self.assertNotEqual("1", allowed(load.pid), "a preview changes nothing")
        daemon.write("apart.yaml", APART)
        daemon.control("reload")
        wait_for(lambda: allowed(load.pid) == "1", "the policy that was previewed is in force")
        self.assertEqual([], json.loads(daemon.control("plan", "--json", str(daemon.policies / "apart.yaml")))["actions"])

    def test_policies_and_units_are_explained_and_unknown_ones_refused(self):
        daemon = Daemon(self.stack, {"wide.yaml": WIDE}).start()
        load = workload(self.stack, "--threads", "one")
        wait_for(lambda: self.one(daemon, "wide")["threads"] == 2, "two threads are under the policy")
        policy, process = json.loads(daemon.control("explain", "--json", "wide", str(load.pid)))
        self.assertEqual([load.pid], [part["pid"] for part in policy["explanations"]])
        self.assertEqual(policy["explanations"], [process])
        text = daemon.control("explain", "wide")
        self.assertIn("policy wide (", text)
        self.assertIn(f"process {load.pid} (", text)
        self.assertIn("neither a PID", daemon.control("explain", "nosuch", code=1))
        self.assertIn("no policy wied (did you mean 'wide'?)", daemon.control("watch", "--once", "wied", code=1))

    def test_without_a_daemon_the_files_are_listed(self):
        first, second = self.folders({"a.yaml": WIDE, "b.yaml": WIDE, "c.yaml": WIDE}, {"a.yaml": APART, "b.yaml": ""})
        arguments = ("--runtime-dir", str(first), "policies", "--policies", str(first), "--policies", str(second))
        document = json.loads(affinityctl(*arguments, "--json").stdout)
        self.assertFalse(document["daemon"])
        self.assertEqual({"a", "c"}, {policy["name"] for policy in document["policies"]})
        a = next(policy for policy in document["policies"] if policy["name"] == "a")
        self.assertEqual((str(second / "a.yaml"), [str(first / "a.yaml")], False, None),
                         (a["file"], a["overrides"], a["loaded"], a["processes"]))
        self.assertEqual([{"name": "b", "file": str(first / "b.yaml"), "by": str(second / "b.yaml")}], document["masked"])
        table = affinityctl(*arguments).stdout
        self.assertIn("No daemon answers", table)
        self.assertIn(f"overrides {first / 'a.yaml'}", table)
        self.assertRegex(table, r"(?m)^b .*masks")

    def test_one_is_shown_with_every_key(self):
        [folder] = self.folders({"wide.yaml": WIDE})
        arguments = ("--runtime-dir", str(folder), "policies", "--policies", str(folder), "show", "wide")
        text = affinityctl(*arguments).stdout
        self.assertTrue(text.startswith(f"# {folder / 'wide.yaml'}, every key"), text)
        for line in ("priority: 7", "bind: set", "drift: enforce", "on_stop: restore"):
            self.assertIn("\n" + line + "\n", text)
        document = json.loads(affinityctl(*arguments, "--json").stdout)
        self.assertEqual("wide", document["name"])
        # The output is a policy with the same meaning: shown again, it gives the same text.
        [again] = self.folders({"wide.yaml": document["yaml"]})
        shown = affinityctl("--runtime-dir", str(folder), "policies", "--policies", str(again), "show", "wide", "--json").stdout
        self.assertEqual(document["yaml"], json.loads(shown)["yaml"])

    def test_unknown_names_and_faults(self):
        [folder] = self.folders({"wide.yaml": WIDE})
        arguments = ("--runtime-dir", str(folder), "policies", "--policies", str(folder))
        for name in ("nobody", "wide.yaml", "../wide", "\x1b[31m"):
            done = affinityctl(*arguments, "show", name, code=1)
            self.assertEqual("", done.stdout)
            self.assertIn("there is no policy", done.stderr)
            self.assertNotIn("\x1b", done.stderr)
        affinityctl(*arguments, "show", code=2)
        (folder / "wide.yaml").write_text("version: 1\nmatch: {comm: a}\ncpuz: 1\n", encoding="utf-8")
        done = affinityctl(*arguments, code=3)
        self.assertIn("wide.yaml:3:1", done.stderr)


class Cpuset:
    """A cpuset of CPU 0 in a hierarchy of either version; or no cpuset, and the reason."""

    def __init__(self, stack):
        self.folder = None
        self.reason = ""
        name = f"affinityd-test-{os.getpid()}"
        old = pathlib.Path("/sys/fs/cgroup/cpuset")
        unified = pathlib.Path("/sys/fs/cgroup")
        try:
            if (old / "cpuset.cpus").exists():
                self.folder = old / name
                self.make(stack)
                (self.folder / "cpuset.mems").write_text((old / "cpuset.mems").read_text(encoding="ascii"), encoding="ascii")
            elif "cpuset" in (unified / "cgroup.subtree_control").read_text(encoding="ascii").split():
                self.folder = unified / name
                self.make(stack)
            else:
                self.reason = "the cpuset controller is handed on by no hierarchy"
                return
            (self.folder / "cpuset.cpus").write_text("0", encoding="ascii")
        except OSError as error:
            self.folder = None
            self.reason = str(error)

    def make(self, stack):
        self.folder.mkdir()
        stack.callback(remove_group, self.folder)

    def take(self, pid):
        (self.folder / "cgroup.procs").write_text(str(pid), encoding="ascii")


class Cpusets(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.cpuset = Cpuset(self.stack)
        if self.cpuset.folder is None:
            print(f"NO CPUSET ON THIS MACHINE ({self.cpuset.reason}): only that nothing is cut is tested here; "
                  "tests/inventory and tests/app try cpusets over files", file=sys.stderr)

    def caged(self):
        load = workload(self.stack)
        wait_for(lambda: pathlib.Path(f"/proc/{load.pid}/comm").read_text(encoding="utf-8").strip() == "demo-workload", "it runs")
        if self.cpuset.folder is not None:
            self.cpuset.take(load.pid)
            self.assertEqual("0", allowed(load.pid))
        return load

    @staticmethod
    def thread_of(daemon, pid):
        return next((process["threads"][0] for process in daemon.status()["processes"] if process["pid"] == pid), None)

    def test_what_its_cpuset_leaves_of_the_policys_cpus(self):
        load = self.caged()
        daemon = Daemon(self.stack, {"wide.yaml": WIDE}).start()
        thread = wait_for(lambda: self.thread_of(daemon, load.pid), "the daemon knows it")
        self.assertEqual("in place", thread["state"])
        self.assertEqual("0" if self.cpuset.folder is not None else "0-1", thread["wanted"])
        self.assertEqual(thread["wanted"], allowed(load.pid))
        self.assertEqual({}, daemon.status()["refused"])

    def test_a_policy_for_other_cpus_leaves_it_alone_and_says_why(self):
        load = self.caged()
        daemon = Daemon(self.stack, {"apart.yaml": APART}).start()
        thread = wait_for(lambda: self.thread_of(daemon, load.pid), "the daemon knows it")
        explained = json.loads(daemon.control("explain", str(load.pid), "--json"))["threads"][0]
        if self.cpuset.folder is None:
            self.assertEqual(("in place", "1"), (thread["state"], allowed(load.pid)))
            return
        self.assertEqual("outside its cpuset", thread["state"])
        self.assertEqual("0", allowed(load.pid))
        self.assertEqual("its cpuset (0) has none of the policy's CPUs", explained["reason"])
        self.assertIn(f"thread {load.pid} (demo-workload) may not leave its cpuset for the CPUs of the policy", daemon.control("status"))
        self.assertIn("outside its cpuset", daemon.control("status", "apart"))
        self.assertIn("its cpuset (0) has none", daemon.control("explain", str(load.pid)))
        self.assertEqual({}, daemon.status()["refused"])
        self.assertEqual([], json.loads(daemon.control("plan", "--json"))["actions"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
