# SPDX-License-Identifier: Apache-2.0
"""Policies with `exclusive`, what they do to everybody else, and what is said of it. Such a policy concerns every process, so the tests
and their daemons live in a pid namespace of their own. It has no process events: the daemon finds everything by passes, one a second."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

INSIDE = "AFFINITYD_TEST_IN_OWN_PIDS"


def enter_own_pids():
    """Begins this program again as the first process of a pid namespace that ends with it."""
    if INSIDE in os.environ:
        return
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:  # cannot make one
        refused = subprocess.run([*command, "true"], check=False, capture_output=True).returncode != 0
        sys.exit(0 if refused else 1)
    os.environ[INSIDE] = "1"
    os.execvp(command[0], [*command, sys.executable, *sys.argv])


enter_own_pids()

from daemon import PROGRAMS, Daemon, spawn, wait_for  # noqa: E402

HEAD = "version: 1\nbind: set\n"
EXCL = HEAD + "match: {comm: served}\nexclusive: true\ncpus: \"1\"\n"
WIDE = HEAD + "match: {comm: neighbour}\ncpus: \"0-1\"\n"
SAME = HEAD + "match: {comm: neighbour}\ncpus: \"1\"\n"


class PassingDaemon(Daemon):
    reconcile = "1s"

    def settings(self):
        path = self.folder / "affinityd.yaml"
        path.write_text(f"version: 1\nreconcile: {self.reconcile}\n", encoding="utf-8")
        return path

    def wait_for_passes(self, count=3):
        """Until that many more whole passes are over."""
        end = self.status()["reconciles"] + count + 1
        wait_for(lambda: self.status()["reconciles"] >= end, f"{count} passes are over")

    def problems(self, policy):
        return [problem["message"] for problem in self.status()["problems"] if problem["policy"] == policy]

    def policy(self, name):
        return next(policy for policy in self.status()["policies"] if policy["name"] == name)


class Fence(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.everywhere = os.sched_getaffinity(0)
        self.rest = self.everywhere - {1}
        # The daemons of earlier tests have put this process back, too.
        self.assertTrue({0, 1} <= self.everywhere, "CPUs 0 and 1 are there")

    def daemon(self, **policies):
        return PassingDaemon(self.stack, {name + ".yaml": text for name, text in policies.items()})

    def program(self, name, *arguments):
        """demo-workload under another name."""
        path = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="affinityd-fence-"))) / name
        path.symlink_to(PROGRAMS["workload"])
        process = spawn(self.stack, str(path), "--seconds", "600", *arguments)
        wait_for(lambda: pathlib.Path(f"/proc/{process.pid}/comm").read_text(encoding="utf-8").strip() == name, f"{name} runs")
        return process.pid

    def are(self, wanted):
        """{pid: CPUs} holds, by the kernel."""
        wait_for(lambda: all(os.sched_getaffinity(pid) == cpus for pid, cpus in wanted.items()), f"masks are {wanted}")

    def three(self, daemon):
        """served has CPU 1 for itself; a neighbour with a policy and a bystander without one are kept off it."""
        served, neighbour, bystander = (self.program(name) for name in ("served", "neighbour", "bystander"))
        daemon.start()
        self.are({served: {1}, neighbour: {0}, bystander: self.rest})
        return served, neighbour, bystander

    def released(self, daemon, *what):
        served, neighbour, bystander = self.three(daemon)
        daemon.control("release", *what)
        free = {served: self.everywhere, bystander: self.everywhere,
                neighbour: {0, 1} if what else self.everywhere}
        self.are(free)
        daemon.wait_for_passes()
        late = self.program("bystander")
        daemon.wait_for_passes()
        self.are(free | {late: self.everywhere})
        daemon.control("apply")
        self.are({served: {1}, neighbour: {0}, bystander: self.rest, late: self.rest})

    def test_a_released_policy_claims_nothing_until_apply(self):
        self.released(self.daemon(excl=EXCL, wide=WIDE), "excl")

    def test_after_a_release_of_everything_nobody_is_displaced_until_apply(self):
        self.released(self.daemon(excl=EXCL, wide=WIDE))

    def test_a_released_process_is_not_kept_off_the_cpus_that_its_policy_claims(self):
        daemon = self.daemon(excl=EXCL, wide=WIDE)
        served, neighbour, bystander = self.three(daemon)
        other = self.program("served")
        self.are({other: {1}})
        daemon.control("release", str(served))
        self.are({served: self.everywhere})
        daemon.wait_for_passes()
        self.are({served: self.everywhere, other: {1}, neighbour: {0}, bystander: self.rest})
        explained = json.loads(daemon.control("explain", str(served), "--json"))
        self.assertEqual("released by hand", explained["threads"][0]["reason"])
        self.assertIn("released by hand", daemon.control("explain", str(served)))
        daemon.control("apply")
        self.are({served: {1}})

    def test_explain_says_who_keeps_a_task_off_which_cpu(self):
        daemon = self.daemon(excl=EXCL, wide=WIDE)
        _, _, bystander = self.three(daemon)
        text = daemon.control("explain", str(bystander))
        self.assertIn("kept off CPU 1: exclusive of excl", text)
        self.assertNotIn("no policy wants it", text)
        explained = json.loads(daemon.control("explain", str(bystander), "--json"))
        self.assertEqual("kept off CPU 1: exclusive of excl", explained["kept_off"])
        self.assertEqual("kept off CPU 1: exclusive of excl", explained["threads"][0]["reason"])

    def test_explain_names_the_rule_that_leaves_a_thread_alone(self):
        rules = "threads:\n  - {name: \"io-*\", cpus: \"0\"}\n  - {name: \"free-*\", leave: true}\n"
        daemon = self.daemon(demo=HEAD + "match: {comm: served}\ncpus: \"1\"\n" + rules)
        served = self.program("served", "--threads", "free-1")
        daemon.start()
        self.are({served: {1}})

        def reasons():  # until the thread has its name, and the daemon has seen it, there may be none
            threads = json.loads(daemon.control("explain", str(served), "--json"))["threads"]
            return {thread["comm"]: thread.get("reason") for thread in threads}
        wait_for(lambda: reasons().get("free-1") == "thread rule 2: leave", "explain names the rule")

    def test_explain_says_why_no_policy_places_an_interrupt(self):
        daemon = self.daemon(excl=EXCL).start()
        table = pathlib.Path("/proc/interrupts").read_text(encoding="ascii").splitlines()[1:]
        numbers = [int(line.split(":")[0]) for line in table if line.split(":")[0].strip().isdigit()]
        free = max([*numbers, *(int(entry.name) for entry in pathlib.Path("/proc/irq").iterdir() if entry.name.isdigit())], default=0) + 1
        self.assertIn("does not exist", daemon.control("explain", f"irq:{free}", code=1))
        for number in numbers[:1]:  # a timer or the like, everywhere but in the smallest of containers
            self.assertRegex(daemon.control("explain", f"irq:{number}"), "belongs to no NIC|no policy places it")

    def test_another_policy_leaves_claimed_cpus_out_and_says_so(self):
        daemon = self.daemon(excl=EXCL, wide=WIDE)
        self.three(daemon)
        self.assertEqual(["only CPU 0 is used, as CPU 1 is reserved for excl (exclusive)"], daemon.problems("wide"))
        self.assertEqual([], daemon.problems("excl"))
        checked = daemon.control("check", str(daemon.policies))
        self.assertIn(f"{daemon.policies}/wide.yaml:4:8: warning: not all of these CPUs are used: 'excl' claims CPU 1", checked)
        self.assertIn(f"({daemon.policies}/excl.yaml:5:8)", checked)

    def test_a_policy_without_any_cpu_left_is_refused_in_either_order(self):
        # Policies are in the order of their names here; the claim is met first all the same.
        for name in ("asame", "same"):
            daemon = self.daemon(excl=EXCL)
            served, neighbour = self.program("served"), self.program("neighbour")
            daemon.start()
            self.are({served: {1}, neighbour: self.rest})
            daemon.write(name + ".yaml", SAME)
            said = f"{daemon.policies}/{name}.yaml:4:8: error: no CPU is left: 'excl' claims CPU 1"
            self.assertIn(said, daemon.control("check", str(daemon.policies), code=3))
            wait_for(lambda: said in daemon.text(), "the daemon has met it, too")
            daemon.wait_for_passes()
            self.are({served: {1}, neighbour: self.rest})
            daemon.stop()
            self.are({served: self.everywhere, neighbour: self.everywhere})

    def test_cpus_barred_for_a_program_that_does_not_run_are_told(self):
        daemon = self.daemon(excl=EXCL).start()
        said = ["CPU 1 is barred to all others, and no process is under this policy now"]
        wait_for(lambda: daemon.problems("excl") == said, "the idle claim is a problem")
        self.assertIn("all others are kept off its CPUs all the same", daemon.control("check", str(daemon.policies)))
        served = self.program("served")
        self.are({served: {1}})
        wait_for(lambda: daemon.problems("excl") == [], "it is none any more")
        self.assertNotIn("kept off its CPUs all the same", daemon.control("check", str(daemon.policies)))

    def test_a_policy_that_restricts_nothing_here_is_told(self):
        daemon = self.daemon(idle="version: 1\nmatch: {comm: served}\ncpus: all\nbind: set\n", excl=EXCL.replace("served", "nobody")).start()
        wait_for(lambda: "note" not in daemon.policy("idle"), "a claim leaves it fewer CPUs than all")
        daemon.control("release", "excl")
        wait_for(lambda: daemon.policy("idle").get("note", "").startswith("restricts nothing on this machine"), "it is noted")
        (daemon.policies / "excl.yaml").unlink()
        self.assertIn("note: it restricts nothing on this machine", daemon.control("check", str(daemon.policies)))

    def test_status_shows_masks_as_they_are_and_counts_what_was_put_right(self):
        daemon = self.daemon(wide=HEAD + "match: {comm: neighbour}\ncpus: \"0\"\n")
        daemon.reconcile = "1d"  # nothing but the questions looks at the threads
        neighbour = self.program("neighbour")
        daemon.start()
        self.are({neighbour: {0}})
        wait_for(lambda: daemon.policy("wide")["threads_in_place"] == 1, "it is in place")

        def drifted():
            os.sched_setaffinity(neighbour, {1})  # again and again: a pass that follows the start may put it right
            status = daemon.status()
            return status if status["processes"][0]["threads"][0]["state"] == "drifted" else None

        status = wait_for(drifted, "the mask is shown as it is")
        [thread] = status["processes"][0]["threads"]
        self.assertEqual(("0", "1"), (thread["wanted"], thread["present"]))
        [policy] = status["policies"]
        self.assertEqual((0, 1), (policy["threads_in_place"], policy["threads_drifted"]))
        before = policy["drift_put_right"]
        daemon.control("apply")
        self.are({neighbour: {0}})
        wait_for(lambda: daemon.policy("wide")["drift_put_right"] > before, "it is counted")
        self.assertRegex(daemon.text(), r"policy wide: task .* was changed to 1 by somebody else: put right, to 0")


if __name__ == "__main__":
    unittest.main(verbosity=2)
