# SPDX-License-Identifier: Apache-2.0
"""Several policies: which one counts for a task; `exclusive` and `default`, which concern every process: these live in a pid namespace of
their own, where passes, one a second, find everything."""
from house import House, allowed, cpus, policy, threads, wait_for

PASSES = {"reconcile": "1s"}
EXCLUSIVE = policy("served", cpus="1", bind="set", exclusive=True, settle=0)
WIDE = policy("neighbour", cpus="0-1", bind="set", settle=0)
SAME = policy("neighbour", cpus="1", bind="set", settle=0)


class Order(House):
    def expect_row(self, wanted, **policies):
        self.fresh()
        self.daemon(**policies)
        self.expect(self.program("web"), wanted)

    def test_the_higher_priority_counts_then_more_conditions_then_the_first_name(self):
        zero, one = (policy("web", cpus=cpu, bind="set", settle=0) for cpu in "01")
        rows = {"the higher priority": ("1", {"a": zero, "b": one | {"priority": 5}}),
                "the higher priority, in the other order": ("1", {"a": one | {"priority": 5}, "b": zero}),
                "a condition more": ("1", {"a": zero, "b": one | {"match": one["match"] | {"user": "root"}}}),
                "of equals the first by name": ("0", {"a": zero, "b": one})}
        for what, (wanted, policies) in rows.items():
            with self.subTest(what):
                self.expect_row(wanted, **policies)

    def test_two_busy_programs_of_two_policies_have_a_cpu_each(self):
        self.daemon(**{name: policy(name, spread="cpu", bind="cpu", settle=0) for name in ("one", "two")})
        programs = [self.program(name) for name in ("one", "two")]
        wait_for(lambda: {allowed(program.pid) for program in programs} == {"0", "1"}, "each has a CPU of its own")

    def test_four_that_were_there_before_have_two_each(self):
        names = ("one", "two", "three", "four")
        programs = [self.program(name) for name in names]
        for program in programs:
            program.busy(program.thread("spinner"))
        daemon = self.daemon(**{name: policy(name, cpus="0-1", spread="cpu", bind="cpu", threads=[{"name": "spinner", "spread": "cpu", "bind": "cpu"}, {"leave": True}])
                                for name in names})

        def spinners():
            return sorted(allowed(program.pid, tid) for program in programs for tid in threads(program.pid)[-1:])
        wait_for(lambda: spinners() == ["0", "0", "1", "1"], lambda: f"two are on each CPU: {spinners()}")
        daemon.stop()
        self.assertEqual([self.everywhere] * 4, spinners())


class Exclusive(House):
    OWN_PIDS = True

    def three(self, **more):
        """A program with CPU 1 for itself; a neighbour with a policy and a bystander without one are kept off it."""
        self.served, self.neighbour, self.bystander = (self.program(name) for name in ("served", "neighbour", "bystander"))
        self.rest = ",".join(map(str, sorted(cpus(self.everywhere) - {1})))
        daemon = self.daemon(PASSES, excl=EXCLUSIVE, wide=WIDE, **more)
        self.are("1", "0", self.rest)
        return daemon

    def are(self, served, neighbour, bystander):
        for program, wanted in ((self.served, served), (self.neighbour, neighbour), (self.bystander, bystander)):
            self.expect(program, wanted)

    def test_a_release_lets_all_have_the_cpus_until_apply(self):
        for what in (["excl"], []):
            with self.subTest(release=what):
                self.fresh()
                daemon = self.three()
                daemon.ctl("release", *what)
                self.are(self.everywhere, "0-1", self.everywhere)
                daemon.later()
                self.are(self.everywhere, "0-1", self.everywhere)
                daemon.ctl("apply")
                self.are("1", "0", self.rest)
                daemon.stop()
                self.are(self.everywhere, self.everywhere, self.everywhere)

    def test_an_orphan_that_was_born_while_no_daemon_ran_gets_back_what_its_parent_had(self):
        daemon = self.three()
        daemon.kill()
        orphan = self.bystander.spawn("/bin/sleep", "600")
        self.at(orphan, self.rest)
        self.bystander.process.kill()
        self.bystander.process.wait()
        daemon.remove("excl")
        daemon.start()
        self.expect(orphan, self.everywhere)

    def test_a_released_process_is_not_kept_off_its_own_policys_cpus(self):
        daemon = self.three()
        other = self.program("served")
        self.expect(other, "1")
        daemon.ctl("release", self.served.pid)
        daemon.later()
        self.are(self.everywhere, "0", self.rest)
        self.assertEqual("released by hand", daemon.explain(self.served.pid)["threads"][0]["reason"])

    def test_explain_and_status_say_who_keeps_whom_off_what(self):
        daemon = self.three()
        explained = daemon.explain(self.bystander.pid)
        self.assertEqual("kept off CPU 1: exclusive of excl", explained["kept_off"])
        said = [problem["message"] for problem in daemon.status()["problems"] if problem["policy"] == "wide"]
        self.assertEqual(["only CPU 0 is used, as CPU 1 is reserved for excl (exclusive)"], said)
        checked = daemon.ctl("check", daemon.policies).text
        self.assertIn("'excl' claims CPU 1", checked)

    def test_a_policy_whose_cpus_are_all_claimed_by_another_has_none_and_check_says_so(self):
        for name in ("asame", "same"):  # the claim counts first, whatever the order of names
            with self.subTest(name):
                self.fresh()
                served, neighbour = self.program("served"), self.program("neighbour")
                daemon = self.daemon(PASSES, excl=EXCLUSIVE)
                self.expect(served, "1")
                daemon.write(name, SAME)
                daemon.later()
                self.expect(neighbour, "0")
                self.assertIn("no CPU is left: 'excl' claims CPU 1", daemon.ctl("check", daemon.policies, code=3).text)
                daemon.stop()
                self.at(neighbour, self.everywhere)

    def test_a_policy_that_restricts_nothing_here_is_noted(self):
        daemon = self.daemon(PASSES, idle=policy("idle", cpus="all", bind="set"))
        wait_for(lambda: daemon.policy("idle").get("note", "").startswith("restricts nothing on this machine"), "it is noted")
        self.assertIn("note: it restricts nothing on this machine", daemon.ctl("check", daemon.policies).out)


class Default(House):
    OWN_PIDS = True

    def test_a_default_policy_takes_all_that_no_other_wants(self):
        web, other = self.program("web"), self.program("other")
        daemon = self.daemon(PASSES, web=policy("web", cpus="1", bind="set"), rest={"version": 1, "default": True, "cpus": "0", "bind": "set"})
        self.expect(web, "1")
        self.expect(other, "0")
        self.expect(self.program("later"), "0")
        daemon.remove("rest")
        self.expect(other, self.everywhere)
        self.at(web, "1")
