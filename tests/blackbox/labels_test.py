# SPDX-License-Identifier: Apache-2.0
"""Interrupts of network interfaces on recorded machines: those that carry data, where they go, and the report of those that the daemon does not
know."""
import random

from house import House, affinityctl, allowed, cpus, document, measured, policy, python, report, wait_for
from machines import OnMachine
from nets import Net
from recorded import Planned, Recorded

# printf formats of drivers that do not exist: for interface, number and PCI function.
FORMATS = ["{i}.zq{n}", "zz_{n}:{i}", "{i}/channel/{n}", "vec{n}_{i}_rxtx", "zdrv-{p}-{n}", "{i}~r{n}", "fastnic{n}@{p}", "{i} [ring {n}]", "{i}+{n}",
           "q-{n}-of-{i}", "eth-{p}.{n}", "{i}.rx.{n}", "ZNIC {n} {i}", "{i}_chan{n}", "zen{n}", "{i}=cmpl{n}", "znic-cq-{p}-{n}", "{i}|{n}", "cq{n}",
           "{i}:vector{n}", "the same for all"]


class UnknownLabels(Planned):
    def test_no_two_share_a_cpu_while_another_has_none_and_all_are_told(self):
        rng = random.Random(46)
        for number, form in enumerate(FORMATS):
            with self.subTest(form):
                count, vectors = rng.choice((4, 8, 16)), rng.randint(2, 20)
                machine = Recorded(self.bin / f"root{number}", cpus=count, smt=rng.choice((1, 1, 2)))
                labels = [form.format(i="eth0", n=vector, p="0000:41:00.0") for vector in range(vectors)]
                irqs = machine.nic("eth0", labels, driver="znic", queues=(rng.randint(1, vectors), rng.randint(1, vectors)))
                plan, _, problems = self.plan(machine.root, self.irq_policy())
                self.assertEqual(set(irqs), set(plan))
                self.assertEqual(min(count, vectors), len(set(plan.values())), plan)
                told = " ".join(problems)
                self.assertIn(f"{vectors} of its interrupts are not known (driver znic)", told)
                self.assertIn(labels[0], told)
                check = affinityctl("--root", machine.root, "check", self.bin / "nic.yaml", code=None).text
                self.assertIn(f"eth0: the labels of {vectors} of its interrupts", check)

    def test_the_bare_name_beside_them_is_left_where_it_is(self):
        machine = Recorded(self.bin / "root", cpus=4)
        bare, *others = machine.nic("eth0", ["eth0", "zz0", "zz1"], driver="znic")
        self.assertEqual({others[0]: "0", others[1]: "1"}, self.plan(machine.root, self.irq_policy())[0])
        del bare

    def test_one_labelled_with_the_bare_name_alone_is_its_only_one(self):
        machine = Recorded(self.bin / "root", cpus=4)
        irqs = machine.nic("eth0", ["eth0"], driver="znic", queues=(1, 1))
        plan, _, problems = self.plan(machine.root, self.irq_policy())
        self.assertEqual(({irqs[0]: "0"}, []), (plan, problems))

    def test_none_known_names_the_driver_and_labels_with_its_name(self):
        machine = Recorded(self.bin / "root", cpus=4)
        machine.nic("eth0", ["zq0-eth0x", "zq1-eth0x"], driver="znic", msi=False)
        plan, maps, problems = self.plan(machine.root, self.irq_policy())
        self.assertEqual({}, plan)
        self.assertEqual(["0", "1"], maps["eth0"])
        self.assertIn("eth0: none of its interrupts is known (driver znic): only XPS is set", problems[0])
        self.assertIn("zq0-eth0x", problems[0])
        check = affinityctl("--root", machine.root, "check", self.bin / "nic.yaml", code=None).text
        self.assertIn("eth0: none of its interrupts is known (driver znic)", check)

    def test_those_left_out_beside_known_ones_are_told(self):
        machine = Recorded(self.bin / "root", cpus=4)
        irqs = machine.nic("eth0", ["eth0-rx-0", "eth0.zq0", "eth0-rx-1", "eth0.zq1"], driver="znic", msi=False, queues=(2, 2))
        machine.nic("eth01", ["eth01-rx-0"], driver="ixgbe")
        plan, _, problems = self.plan(machine.root, self.irq_policy())
        self.assertEqual({irqs[0]: "0", irqs[2]: "1"}, plan)
        told = "2 of its interrupts stay where they are, as their labels are not known (driver znic): eth0.zq0, eth0.zq1"
        self.assertEqual([f"eth0: {told}"], problems)
        self.assertIn(told, affinityctl("--root", machine.root, "check", self.bin / "nic.yaml", code=None).text)

    def test_those_of_xen_have_the_name_of_the_device(self):
        machine = Recorded(self.bin / "root", cpus=4)
        for number, name in enumerate(("enX0", "lan")):
            irqs = machine.nic(name, [f"vif{number}-q{queue}-{way}" for queue in range(2) for way in ("tx", "rx")], driver="vif", queues=(2, 2),
                               device=f"vif-{number}", msi=False)
            plan, _, problems = self.plan(machine.root, self.irq_policy(name))
            self.assertEqual((dict(zip(irqs, "0011")), []), (plan, problems))

    def test_an_interface_that_was_renamed_while_it_was_up_keeps_its_interrupts(self):
        """Their labels have the former name."""
        for number, (driver, *forms) in enumerate((("ixgbe", "{}-TxRx-0", "{}-TxRx-1", "{}"), ("be2net", "{}-q0", "{}-q1"), ("tg3", "{}-tx-1", "{}-rx-1", "{}-0"),
                                                   ("hinic", "{}_rxq0", "{}_txq0"), ("cxgb4", "{}-FWeventq", "{} (queue 0)", "{} (queue 1)"),
                                                   ("vmxnet3", "{}-rxtx-0", "{}-rxtx-1", "{}-event-2"))):
            plans = []
            for name in ("lan0", "eth0", "uplink"):
                machine = Recorded(self.bin / f"root{number}-{name}", cpus=4)
                machine.nic("lan0", [form.format(name) for form in forms], driver=driver, queues=(2, 2))
                plans.append(self.plan(machine.root, self.irq_policy("lan0")))
            with self.subTest(driver):
                self.assertEqual(2, len(plans[0][0]), plans[0])
                self.assertEqual([plans[0]] * 3, plans)

    def test_a_bare_label_of_the_new_name_leaves_the_queues_their_old_ones(self):
        machine = Recorded(self.bin / "root", cpus=4)
        other, *queues = machine.nic("lan0", ["lan0", "ens1-TxRx-0", "ens1-TxRx-1"], driver="igb", queues=(2, 2))
        self.assertEqual(set(queues), set(self.plan(machine.root, self.irq_policy("lan0"))[0]), other)

    def test_a_controller_that_refuses_every_mask_is_told(self):
        machine = Recorded(self.bin / "root", cpus=4)
        machine.nic("eth0", [], driver="am65-cpsw-nuss", queues=(1, 1))
        irq = machine.irq("eth0-tx-0", chip="MSI-INTA")
        plan, _, problems = self.plan(machine.root, self.irq_policy())
        self.assertEqual({}, plan)
        self.assertTrue(any(f"{irq} stay where they are" in problem and "MSI-INTA" in problem for problem in problems), problems)

    def test_queues_use_the_nearest_cores_first_and_then_the_others(self):
        machine = Recorded(self.bin / "root", cpus=8, nodes=2)
        machine.nic("eth0", [f"eth0-TxRx-{queue}" for queue in range(8)], driver="ixgbe")
        for text, most in (("0-7", 8), ("nic", 4)):
            plan, _, problems = self.plan(machine.root, self.irq_policy(cpus=text))
            self.assertEqual((most, []), (len(set(plan.values())), problems), plan)


class SubFunctions(Planned):
    def test_each_has_the_interrupts_of_its_own_list(self):
        machine = Recorded(self.bin / "root", cpus=8)
        pci = "0000:41:00.0"
        parent = machine.nic("p0", [f"mlx5_comp{n}@pci:{pci}" for n in range(2)], driver="mlx5_core", pci=pci)
        pool = [machine.irq(f"mlx5_sf_comp{n}@pci:{pci}") for n in range(4)]
        device = f"sys/devices/pci0000:00/{pci}"
        for irq in pool:
            machine.put(f"{device}/msi_irqs/{irq}", "msix")
        for number, own in ((4, pool[:2]), (5, pool[1:])):  # the second is in both lists
            sub, name = f"{device}/mlx5_core.sf.{number}", f"p0s{number}"
            for key, value in {"ifindex": 90 + number, "flags": "0x1003", "type": 1, "operstate": "up"}.items():
                machine.put(f"{sub}/net/{name}/{key}", value)
            for queue in range(2):
                machine.put(f"{sub}/net/{name}/queues/tx-{queue}/xps_cpus", "0")
                machine.put(f"{sub}/net/{name}/queues/rx-{queue}/rps_cpus", "0")
            for irq in own:
                machine.put(f"{sub}/irqs/{irq}", "")
            for path, to in ((f"sys/class/net/{name}", f"{sub}/net/{name}"), (f"{sub}/net/{name}/device", sub), (f"{sub}/subsystem", "sys/bus/auxiliary")):
                machine.link(path, to)
        plan, _, problems = self.plan(machine.root, self.irq_policy("p0*"))
        self.assertEqual(set(parent + pool), set(plan))
        self.assertEqual(len(plan), len(set(plan.values())), "no two on one CPU")
        self.assertFalse(any("sub-function's own" in problem for problem in problems), problems)


class OwnForms(Planned):
    """/etc/affinityd/labels.d/*.yaml: a new driver needs no new version."""

    def setUp(self):
        super().setUp()
        self.machine = Recorded(self.bin / "root", cpus=4)
        self.irqs = self.machine.nic("eth0", ["zmgmt@eth0", "zq1:eth0", "zq0:eth0"], driver="znic", queues=(2, 2))

    def forms(self, text):
        return self.machine.put("etc/affinityd/labels.d/znic.yaml", text)

    def test_a_form_says_what_an_interrupt_is(self):
        self.forms('version: 1\nlabels:\n  - {label: "zmgmt@{IF}", kind: control}\n  - label: "zq{N}:{IF}"\n    kind: rxtx\n    driver: znic')
        plan, _, problems = self.plan(self.machine.root, self.irq_policy())
        self.assertEqual(({self.irqs[1]: "1", self.irqs[2]: "0"}, []), (plan, problems))

    def test_a_file_with_an_error_counts_for_nothing_and_is_told_with_its_place(self):
        file = self.forms('version: 1\nlabels:\n  - {label: "zq{QUEUE}:{IF}", kind: rxtx}')
        plan, _, problems = self.plan(self.machine.root, self.irq_policy())
        self.assertEqual(3, len(set(plan.values())))
        self.assertTrue(any("znic.yaml:3:" in problem and "no such placeholder" in problem for problem in problems), problems)
        for words in (("--root", self.machine.root, "check", self.bin / "nic.yaml"), ("check", file)):
            answer = affinityctl(*words, code=3)
            self.assertIn("znic.yaml:3:", answer.text)

    def test_hostile_files_are_findings(self):
        for text in ("labels: 1", "labels: [1]", "labels: [{}]", "labels: [{label: '', kind: rx}]", "labels: [{label: '{IF}{NIC}', kind: rx}]",
                     "labels: [{label: '{', kind: rx}]", "labels: [{label: '}', kind: rx}]", "labels: [{label: a, kind: none}]", "labels: &a [*a]",
                     f"labels: [{{label: {'{X}' * 200}, kind: rx}}]", "labels: [{label: a, kind: rx, only: true}]", "labels: [{label: a, first: -1, kind: rx}]"):
            with self.subTest(text[:60]):
                answer = affinityctl("check", self.forms(text), code=3)
                self.assertIn("znic.yaml:1:", answer.text)


WORKER = """import socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
with socket.create_server(("10.99.0.1", 7001), reuse_port=True) as listener:
    taken = []
    while True:
        taken.append(listener.accept()[0])
"""
MANY_CLIENTS = """import signal, socket, sys
kept = [socket.create_connection((sys.argv[1], 7001)) for _ in range(40)]
signal.pause()
"""


class Usage(Net):
    """Which interface serves a server is remembered by the device."""

    def test_two_that_swap_their_names_keep_their_servers(self):
        nics = [self.pair(number) for number in (0, 1)]
        servers = [self.server(f"server{number}", f"10.99.{number}.1") for number in (0, 1)]
        [self.client(number) for number in (0, 1)]
        daemon = self.inside(settings={"reconcile": "2s"},
                             **{f"web{number}": policy(f"server{number}", affinity="full", nics="auto", cpus=str(number), bind="core", settle=0)
                                for number in (0, 1)})

        def served():
            queues = daemon.status()["queues"]
            return {(queue["nic"], queue["policy"]) for queue in queues if queue["kind"] == "steering" and queue["queue"].startswith("tx")}
        wait_for(lambda: served() == {(nics[0], "web0"), (nics[1], "web1")}, served)
        middle = self.nic("m")
        for old, new in ((nics[0], middle), (nics[1], nics[0]), (middle, nics[1])):
            self.near.ip("link", "set", old, "name", new)
        wait_for(lambda: served() == {(nics[1], "web0"), (nics[0], "web1")}, served)
        self.assertEqual(["0", "1"], [allowed(server.pid) for server in servers])

    def test_workers_older_than_the_daemon_are_spread_once_their_number_is_known(self):
        nic = self.pair()
        workers = [self.spawn(*self.near.command(*python(WORKER, self.name("worker")))) for _ in range(4)]
        wait_for(lambda: self.near.run("ss", "-Hltn").count(":7001") == 4, "they listen")
        self.spawn(*self.far.command(*python(MANY_CLIENTS, "10.99.0.1")))
        wait_for(lambda: self.connections() >= 40, "clients are connected")
        self.inside({"reconcile": "2s"}, web=policy("worker", affinity="full", nics=[nic], spread="core", bind="core", settle=0))
        wait_for(lambda: sorted(allowed(worker.pid) for worker in workers) == ["0", "0", "1", "1"], lambda: [allowed(one.pid) for one in workers])

    def test_an_address_of_no_wire_is_served_by_the_default_route(self):
        nic = self.pair()
        self.near.ip("link", "set", "lo", "up")
        self.near.ip("addr", "add", "203.0.113.9/32", "dev", "lo")
        self.near.ip("route", "add", "default", "via", "10.99.0.2")
        self.server("server", "203.0.113.9")
        daemon = self.inside(web=policy("server", affinity="full", nics="auto", bind="core", settle=0))
        wait_for(lambda: {name for name, _ in self.placed(daemon)} == {nic}, lambda: daemon.status()["problems"])


class LeftOut(OnMachine):
    def test_status_names_labels_of_the_interface_that_fit_no_form(self):
        irqs = self.machine.nic("eth0", ["eth0-rx-0", "eth0.zq0"], driver="znic", msi=False, queues=(1, 1))
        daemon = self.acting(nic=policy(affinity="irq", nics=["eth0"]))
        self.expect_irqs({irqs[0]: "0", irqs[1]: "0-3"})
        self.assertIn("eth0.zq0", " ".join(daemon.problems()))


class Workers(OnMachine):
    def test_interrupts_go_where_workers_are_soon_after_some_have_ended(self):
        irqs = self.nic("eth0", 2)
        workers = [self.program("server") for _ in range(2)]
        daemon = self.acting(web=policy("server", affinity="full", nics=["eth0"], cpus="0-1", spread="core", bind="core", settle=0))

        def places():
            return [{cpu for irq in irqs for cpu in self.irq(irq)}, {cpu for worker in workers for cpu in cpus(allowed(worker.pid))}]
        wait_for(lambda: places() == [{0, 1}, {0, 1}], places)
        daemon.calm()
        workers.pop().end()
        took = measured(lambda: len(places()[1]) == 1 and places()[0] == places()[1], places)
        report(f"interrupts are where the last worker is after {took:.1f} s")
