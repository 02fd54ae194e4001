# SPDX-License-Identifier: Apache-2.0
"""CPUs, interfaces and interrupts as machines have them: which CPUs a policy may use, which name means what, and what a check tells before."""
from house import PROGRAMS, House, affinityctl, document, policy, run, wait_for
from machines import OnMachine
from recorded import Recorded

IRQ = {"version": 1, "affinity": "irq", "nics": ["eth0"]}


class OnRecording(House):
    def machine_of(self, cpus=8, **options):
        self.machine = Recorded(self.bin / "root", cpus=cpus, **options)
        return self.machine

    def ctl(self, *words, code=0):
        return affinityctl("--root", self.machine.root, *words, code=code)

    def file(self, name, keys):
        path = self.bin / f"{name}.yaml"
        path.write_text(document(**keys), encoding="utf-8")
        return path

    def plan(self, **policies):
        """{subject: CPUs} that these policies would change."""
        files = [self.file(name, keys) for name, keys in policies.items()]
        actions = self.ctl("--json", "plan", *files).json["actions"]
        return {action.get("tid") or action.get("irq") or (action.get("nic"), action.get("queue")): action["to"] for action in actions}

    def check(self, code=0, **policies):
        return self.ctl("check", *(self.file(name, keys) for name, keys in policies.items()), code=code).out


class Cpus(OnRecording):
    def test_cpus_that_a_partition_isolates_count_as_isolated(self):
        machine = self.machine_of(4)
        irqs = machine.nic("eth0", [f"eth0-TxRx-{queue}" for queue in range(4)], driver="ixgbe")
        machine.put("sys/fs/cgroup/cpuset.cpus.isolated", "2-3")
        self.assertEqual(["2-3", "0-1"], [self.ctl("cpus", word).out.strip() for word in ("isolated", "housekeeping")])
        plan = self.plan(nic=IRQ)
        self.assertEqual({"0", "1"}, {plan[irq] for irq in irqs})

    def test_low_power_cores_are_a_kind(self):
        machine = self.machine_of(8)
        for name, cpus in (("core", "0-3"), ("atom", "4-5"), ("lowpower", "6-7")):
            machine.put(f"sys/devices/cpu_{name}/cpus", cpus)
        kinds = {kind: self.ctl("cpus", f"kind:{kind}").out.strip() for kind in ("performance", "efficiency", "lowpower")}
        self.assertEqual({"performance": "0-3", "efficiency": "4-5", "lowpower": "6-7"}, kinds)

    def test_one_file_is_for_machines_of_several_sizes(self):
        machine = self.machine_of(8)
        irqs = machine.nic("eth0", [f"eth0-TxRx-{queue}" for queue in range(8)], driver="ixgbe")
        for cpus, meant in (("all - 64-255", 8), ("all - 6-255", 6), ("!node:7", 8), ("all - core:0,99", 7), ("0-3 - nic:eth7", 4)):
            with self.subTest(cpus):
                told = self.check(nic=IRQ | {"cpus": cpus})
                self.assertIn("0 errors, 0 warnings, 1 note", told)
                self.assertIn("nic.yaml:", told)
                self.assertEqual(meant, len({self.plan(nic=IRQ | {"cpus": cpus})[irq] for irq in irqs}))
        for cpus in ("0-63", "64-255 - 0", "node:7 - node:8"):
            with self.subTest(cpus):
                self.assertIn("1 error", self.check(code=3, nic=IRQ | {"cpus": cpus}))

    def test_pasted_lists(self):
        self.machine_of(8)
        for text, meant in (("0 2 4", "0,2,4"), ("0-1 4-5", "0-1,4-5"), ("0 2-3 & 2-7", "2-3"), ("0, 2", "0,2")):
            with self.subTest(text):
                self.assertEqual(meant, self.ctl("cpus", text).out.strip())
        for text, hint in (("0-7:1/2", "write each CPU"), ("2-N", "write the last CPU's number"), ("0xff", "masks are not read here"),
                           ("numa:0", "write node:0"), ("ccd:1", "write llc:1"), ("~0", "write !")):
            with self.subTest(text):
                self.assertIn(hint, self.ctl("cpus", text, code=None).text)


class Workers(OnRecording):
    def test_workers_share_no_core_while_an_allowed_one_has_none_of_them(self):
        """Idle tasks of other policies are on some cores, and on others not."""
        for number, (cpus, smt, workers, others) in enumerate(((4, 1, 4, 3), (8, 1, 6, 20), (8, 2, 4, 5), (16, 2, 8, 40), (16, 1, 8, 1))):
            with self.subTest(cpus=cpus, smt=smt, workers=workers, others=others):
                self.machine = Recorded(self.bin / f"root{number}", cpus=cpus, smt=smt)
                for pid in range(100, 100 + others):
                    self.machine.process(pid, "other")
                master = self.machine.process(1000, "web")
                pids = [self.machine.process(pid, "web", ppid=master) for pid in range(1001, 1001 + workers)]
                plan = self.plan(other=policy("other", spread="core", bind="core", cpus=f"0-{cpus // 2}"),
                                 web=policy("web", spread="core", bind="core"))
                self.assertEqual(workers, len({plan[pid] for pid in pids}), {pid: plan[pid] for pid in pids})


class Interrupts(OnRecording):
    def test_one_receive_queue_is_spread_over_the_cores(self):
        machine = self.machine_of(8)
        irq, = machine.nic("eth0", ["eth0-0"], driver="r8125", queues=(1, 1))
        plan = self.plan(nic=IRQ | {"cpus": "4-7"})
        self.assertEqual(("4", "4-7"), (plan[irq], plan["eth0", "rx-0"]))

    def test_a_recording_without_folders_of_handlers(self):
        machine = self.machine_of(8)
        irqs = machine.nic("eth0", [f"eth0-TxRx-{queue}" for queue in range(4)], driver="ixgbe", folders=False)
        plan = self.plan(nic=IRQ)
        self.assertEqual({"0", "1", "2", "3"}, {plan.get(irq) for irq in irqs})

    def serial(self):
        machine = self.machine_of(4)
        machine.process(400, "klippy", unit="klipper.service")
        return machine.irq("ttyS0"), machine.irq("ttyS1"), [machine.irq(f"reo2host-{ring}") for ring in range(3)]

    def test_other_interrupts_that_a_policy_names(self):
        serial, other, rings = self.serial()
        klipper = policy(match={"unit": "klipper.service"}, cpus="3", bind="set", irqs=["ttyS0"])
        plan = self.plan(klipper=klipper, wifi={"version": 1, "affinity": "irq", "irqs": ["reo2host-*"], "cpus": "1-2"})
        self.assertEqual({400: "3", serial: "3", rings[0]: "1", rings[1]: "2", rings[2]: "1"}, plan)
        self.assertNotIn(other, plan)
        explained = self.ctl("explain", f"irq:{serial}", "--policies", self.bin / "klipper.yaml").out
        self.assertIn("policy klipper, irqs", explained)

    def test_two_policies_that_name_one_interrupt(self):
        serial, _, _ = self.serial()
        one = {"version": 1, "affinity": "irq", "irqs": "ttyS*", "cpus": "1"}
        answer = self.ctl("--json", "plan", self.file("a", one), self.file("b", one | {"cpus": "2"}), code=3).json
        self.assertEqual(["1"], [action["to"] for action in answer["actions"] if action.get("irq") == serial])
        self.assertIn("it is already placed by policy a", str(answer["problems"]))


class Checks(OnRecording):
    FULL = {"version": 1, "match": {"unit": "control.service"}, "affinity": "full", "nics": "eth0"}

    def test_threads_that_are_not_where_the_interrupts_go(self):
        machine = self.machine_of(6)
        machine.nic("eth0", ["eth0-TxRx-0"], driver="igc")
        machine.process(900, "server", unit="control.service", threads={901: "ethercrab-txrx"})
        for cpus, rules, is_told in (("0-3", [{"name": "ethercrab*", "cpus": "4"}], True), ("0-3", [{"name": "ethercrab*", "cpus": "3-4"}], False),
                                     ("4", [{"name": "ethercrab*", "bind": "cpu"}, {"name": "*", "cpus": "0-3", "bind": "set"}], False)):
            with self.subTest(cpus=cpus, rules=rules):
                told = self.check(full=self.FULL | {"cpus": cpus, "bind": "set", "threads": rules})
                self.assertEqual(is_told, "not where the interrupts go" in told, told)

    def test_programs_that_count_their_cpus_again_and_again(self):
        machine = self.machine_of(4)
        machine.process(900, "java", unit="app.service")
        machine.put("proc/900/maps", "7f00-7f10 r-xp 00000000 00:1 1 /usr/lib/jvm/lib/server/libjvm.so")
        java = policy(match={"unit": "app.service"}, cpus="0-3")
        self.assertIn("use libjvm", self.check(java=java | {"bind": "core", "spread": "core"}))
        self.assertNotIn("libjvm", self.check(java=java | {"bind": "set"}))

    def test_claims_that_leave_nothing(self):
        self.machine_of(4)
        claim = policy(match={"comm": "a"}, exclusive=True, bind="set")
        for cpus in ({"cpus": "0-3"}, {}):
            self.assertIn("leaves none to all other programs", self.check(code=3, a=claim | cpus))
        two = self.check(code=3, a=claim | {"cpus": "0-1"}, b=claim | {"cpus": "2-3", "match": {"comm": "b"}})
        self.assertIn("b.yaml:", two.split("leaves none")[0])

    def test_the_later_file_of_two_claims_is_refused(self):
        self.machine_of(4)
        claim = policy(match={"comm": "a"}, exclusive=True, cpus="3")
        told = self.check(code=3, a=claim, b=claim | {"match": {"comm": "b"}, "priority": 9})
        self.assertIn("'a' claims it too", told)


class Idle(OnRecording):
    def test_a_claim_holds_while_a_program_of_the_policy_runs(self):
        for exclusive, runs, planned in ((True, False, {}), (True, True, {500: "3", 600: "0-2"}), ("always", False, {600: "0-2"})):
            with self.subTest(exclusive=exclusive, runs=runs):
                self.fresh()
                self.machine_of(4).process(600, "other")
                if runs:
                    self.machine.process(500, "claimer")
                self.assertEqual(planned, self.plan(claim=policy(match={"comm": "claimer"}, cpus="3", bind="set", exclusive=exclusive)))


class Claims(House):
    OWN_PIDS = True

    def test_others_have_the_cpus_again_when_the_last_program_has_ended(self):
        other = self.program("other")
        daemon = self.daemon({"reconcile": "1s"}, claim=policy("claimer", cpus="1", bind="set", exclusive=True, settle=0))
        daemon.passes(2)
        self.at(other, self.everywhere)
        claimer = self.program("claimer")
        self.expect(claimer, "1")
        self.expect(other, "0")
        claimer.end()
        self.expect(other, self.everywhere)

    def test_a_new_claim_does_not_take_over_one_in_force(self):
        claim = policy("claimer", cpus="1", bind="set", exclusive=True, settle=0)
        claimer, second = self.program("claimer"), self.program("second")
        daemon = self.daemon(zz=claim)
        self.expect(claimer, "1")
        daemon.write("aa", self.own(claim | policy("second", priority=9)))
        wait_for(lambda: any("aa.yaml" in problem["subject"] for problem in daemon.status()["problems"]), lambda: daemon.status()["problems"])
        self.assertTrue(daemon.policy("zz")["active"])
        self.expect(claimer, "1")
        self.expect(second, "0")

    def test_a_new_claim_does_not_take_the_last_cpu_of_a_policy_in_force(self):
        web, second = self.program("web"), self.program("second")
        daemon = self.daemon(web=policy("web", cpus="1", bind="set", settle=0))
        self.expect(web, "1")
        daemon.write("aa", self.own(policy("second", cpus="1", bind="set", exclusive=True, settle=0)))
        wait_for(lambda: any("aa.yaml" in problem["subject"] for problem in daemon.status()["problems"]), lambda: daemon.status()["problems"])
        self.assertTrue(daemon.policy("web")["active"])
        self.at(web, "1")
        self.at(second, self.everywhere)


class Named(House):
    def test_exe_names_a_program_through_links_too(self):
        target = self.copy_of("/bin/sleep", "sleeper")
        link = self.bin / "link"
        link.symlink_to(target)
        self.daemon(linked=policy(match={"exe": str(link)}, cpus="0", bind="set", settle=0))
        self.expect(self.spawn(target, "600"), "0")

    def test_a_match_that_cannot_match_is_noted(self):
        daemon = self.daemon(unit=policy(match={"unit": f"{self.name('web')}"[:9].replace(".", "-")}, cpus="0"), never=policy("never", cpus="0"))
        daemon.passes(2)
        self.assertIn("no process can match it: write unit:", daemon.policy("unit")["note"])
        self.assertIn("no process has matched it yet", daemon.policy("never")["note"])

    def test_a_mask_of_its_own_that_a_policy_replaces_is_told(self):
        web = self.program("web", first_mask="0")
        daemon = self.daemon(web=policy("web", cpus="1", bind="set"))
        self.expect(web, "1")
        daemon.passes(2)
        self.assertIn("had CPUs of its own (0: CPUAffinity=", str(daemon.status()["notes"]))

    def test_other_names_of_an_interface(self):
        file = self.bin / "nic.yaml"
        file.write_text(document(version=1, affinity="irq", nics="enp65s0f0np0", cpus="nic:enp65s0f0np0"), encoding="utf-8")
        script = ("mount -t sysfs none /sys && ip link add v0 type veth peer name v1 && ip link property add dev v0 altname enp65s0f0np0 && "
                  f"for words in 'nics enp65s0f0np0' 'check {file}' 'explain enp65s0f0np0 --policies {file} --root /'; do \"$0\" $words; done")
        said = run("unshare", "-n", "-m", "sh", "-c", script, PROGRAMS["affinityctl"]).text
        self.assertNotIn("no interface", said)
        self.assertIn("v0  driver", said)
        self.assertIn("0 errors, 0 warnings", said)


class OtherInterrupts(OnMachine):
    def test_a_serial_port_is_placed_when_it_is_opened_and_put_back(self):
        self.nic("eth0", 2)
        serial = self.machine.irq("ttyS0")
        daemon = self.acting(serial={"version": 1, "affinity": "irq", "irqs": "ttyS*", "cpus": "3"})
        self.expect_irqs({serial: "3"})
        later = self.machine.irq("ttyS1")
        daemon.passes()
        self.expect_irqs({later: "3"})
        self.assertEqual([], daemon.plan())
        daemon.kill()
        daemon.start()
        daemon.stop()
        self.assertEqual([{0, 1, 2, 3}] * 2, [self.irq(serial), self.irq(later)])
        self.originals()


class Partitions(OnMachine):
    MORE = "mount --bind {folder} /sys/fs/cgroup &&"

    def test_interrupts_leave_a_partition_that_is_made_later(self):
        folder = self.bin / "groups"
        folder.mkdir()
        self.MORE = type(self).MORE.format(folder=folder)
        irqs = self.nic("eth0", 2)
        daemon = self.acting(nic=IRQ)
        self.apart(irqs)
        (folder / "cpuset.cpus.isolated").write_text("0-1\n")
        daemon.passes()
        self.assertEqual({2, 3}, set().union(*self.apart(irqs)))
