# SPDX-License-Identifier: Apache-2.0
"""`isolate: true` on a made-up machine of four CPUs: interrupts, RPS, the kernel's own masks are kept off its CPUs, and come back. In a pid
namespace of their own, so that no task of others is concerned. (tests/vm has a real machine with kernel threads.)"""
from house import cpus, policy, read, wait_for
from machines import OnMachine
from recorded import bits

WORK, NEW, RPS = "sys/devices/virtual/workqueue/cpumask", "proc/irq/default_smp_affinity", "sys/class/net/eth0/queues/rx-{}/rps_cpus"
ISOLATED = {"version": 1, "match": {"comm": "served"}, "cpus": "2-3", "bind": "set", "exclusive": "always", "isolate": True}
KEPT_OFF = {"everywhere": {0, 1}, "there alone": {0, 1}, "elsewhere": {1}, WORK: {0, 1}, NEW: {0, 1}, RPS.format(0): {0, 1}, RPS.format(1): set()}


class Isolation(OnMachine):
    OWN_PIDS = True

    def make_machine(self):
        super().make_machine()
        self.machine.nic("eth0", ["eth0-TxRx-0", "eth0-TxRx-1"], driver="ixgbe")
        self.irqs = {"everywhere": self.machine.irq("ahci"), "there alone": self.machine.irq("xhci", cpus={2}), "elsewhere": self.machine.irq("nvme", cpus={1})}
        for path, mask in ((WORK, {0, 1, 2, 3}), (RPS.format(0), {0, 1, 2, 3}), (RPS.format(1), {2})):
            self.machine.put(path, bits(mask))
        self.first = self.now()

    def mask(self, path):
        text = read(self.machine.root / path).replace(",", "")
        return {cpu for cpu in range(4) if int(text, 16) >> cpu & 1}

    def now(self):
        return {what: self.irq(irq) for what, irq in self.irqs.items()} | {path: self.mask(path) for path in KEPT_OFF if path not in self.irqs}

    def await_all(self, wanted):
        wait_for(lambda: self.now() == wanted, lambda: f"{wanted}: it is {self.now()}")

    def isolating(self, **more):
        daemon = self.acting({"reconcile": "1s"}, quiet=ISOLATED | more)
        self.await_all(KEPT_OFF)
        return daemon

    def test_all_is_kept_off_and_comes_back_on_each_way_to_end(self):
        def killed(daemon):
            daemon.kill()
            self.await_all(KEPT_OFF)
            daemon.start()
            self.await_all(KEPT_OFF)
            daemon.stop()
        ends = {"stop": lambda daemon: daemon.stop(), "kill -9, start, stop": killed, "release": lambda daemon: daemon.ctl("release", "quiet"),
                "policy removed": lambda daemon: daemon.remove("quiet"), "exclusive alone": lambda daemon: daemon.write("quiet", ISOLATED | {"isolate": False})}
        for what, end in ends.items():
            with self.subTest(what):
                self.fresh()
                self.make_machine()
                end(self.isolating())
                self.await_all(self.first)

    def test_what_another_program_resets_is_set_again_and_what_it_sets_elsewhere_stays(self):
        daemon = self.isolating()
        self.set_irq(self.irqs["everywhere"], "0-3")
        self.machine.put(WORK, bits({0, 1, 2, 3}))
        self.machine.put(NEW, bits({1, 2}))
        self.set_irq(self.irqs["there alone"], "0")
        self.await_all(KEPT_OFF | {"there alone": {0}})
        daemon.stop()
        self.await_all(self.first | {"there alone": {0}})

    def test_an_interrupt_that_is_requested_meanwhile_gets_the_default_of_before(self):
        daemon = self.isolating()
        before = daemon.status()["journal"]
        late = self.machine.irq("late", cpus={0, 1})
        wait_for(lambda: daemon.status()["journal"] > before, "the daemon has noted it")
        daemon.stop()
        self.expect_irqs({late: "0-3"})

    def test_a_message_of_a_device_with_several_handlers(self):
        port = self.machine.irq("PCIe PME, aerdrv", chip="PCI-MSI", folder=False)
        self.machine.put(f"sys/kernel/irq/{port}/chip_name", "PCI-MSI")
        for handler in ("PCIe PME", "aerdrv"):
            (self.machine.root / f"proc/irq/{port}/{handler}").mkdir()
        daemon = self.isolating()
        self.expect_irqs({port: "0-1"})
        daemon.stop()
        self.expect_irqs({port: "0-3"})

    def test_interrupts_that_a_policy_places_stay_with_it(self):
        ahci = self.irqs["everywhere"]
        daemon = self.acting({"reconcile": "1s"}, quiet=ISOLATED, disk={"version": 1, "affinity": "irq", "irqs": ["ahci"], "cpus": "1"})
        self.await_all(KEPT_OFF | {"everywhere": {1}})
        queues = {queue.get("irq"): queue["policy"] for queue in daemon.status()["queues"]}
        self.assertEqual("disk", queues[ahci])
        daemon.ctl("release", "disk")
        self.await_all(KEPT_OFF)

    def test_the_policys_own_interrupts_are_on_its_cpus(self):
        self.acting({"reconcile": "1s"}, quiet=ISOLATED | {"irqs": ["nvme"]})
        wait_for(lambda: self.irq(self.irqs["elsewhere"]) <= {2, 3} and self.irq(self.irqs["everywhere"]) == {0, 1}, lambda: f"{self.now()}")

    def test_what_cannot_be_moved_is_one_line_of_status(self):
        more = [self.machine.irq(f"nvme0q{queue}", cpus={2, 3}) for queue in range(3)]
        elsewhere = self.machine.irq("timer", cpus={0, 1, 2, 3}, effective=0)
        for irq, error in zip((*more, elsewhere), (5, 1, 13, 5)):  # EIO, EPERM since Linux 6.12, EACCES where the file's owner may not write
            self.machine.put(f"proc/irq/{irq}/smp_affinity_list.error", error)
        daemon = self.isolating()
        said = wait_for(lambda: [line for line in daemon.ctl("status", code=(0, 3)).out.splitlines() if "cannot be moved" in line], "it is said")
        self.assertEqual([f"note: policy quiet, 3 queues: cannot be moved, and stay where the kernel has them; the first is IRQ {more[0]} nvme0q0"], said)
        daemon.passes()  # no order fails because of them
        self.assertNotIn(elsewhere, [queue.get("irq") for queue in daemon.status()["queues"]])

    def test_a_plan_names_what_would_be_moved(self):
        daemon = self.acting({"reconcile": "1h"}, quiet=ISOLATED)
        self.await_all(KEPT_OFF)

        def named():  # unless it was put right a moment before
            self.machine.put(NEW, bits({0, 1, 2, 3}))
            return [(action["kind"], action["queue"], action["to"], action["reason"]) for action in daemon.plan()]
        wait_for(lambda: named() == [("kernel", "new interrupts", "0-1", "kept off CPUs 2-3: isolated by quiet")], named)

    def count(self, **counts):
        """As so many interruptions since the start, on each CPU; those of devices come with the first interrupt."""
        table = read(self.machine.root / "proc/interrupts").splitlines()
        rows = [row for row in table if row.split(":")[0].strip() not in ("LOC", "RES", "TLB", "NMI", "ERR", str(self.irqs["elsewhere"]))]
        rows += [f"{name if name != 'device' else self.irqs['elsewhere']:>4}: " + " ".join([f"{number:>10}"] * 4)
                 + ("  IR-PCI-MSIX   7-edge      nvme" if name == "device" else "   Some interrupts") for name, number in counts.items()]
        self.machine.put("proc/interrupts", "\n".join(rows + [" ERR:          0"]))

    def test_interruptions_of_its_cpus_are_counted_by_kind(self):
        self.count(device=100, LOC=1000, RES=10, TLB=1, NMI=5)
        daemon = self.isolating()
        self.assertNotIn("interruptions", daemon.policy("quiet"))
        daemon.later()
        self.count(device=103, LOC=1500, RES=17, TLB=3, NMI=6)
        counted = wait_for(lambda: (lambda now: now and now["device"] > 0 and now)(daemon.policy("quiet").get("interruptions")), "they are counted")
        self.assertGreaterEqual(counted.pop("seconds"), 5)
        self.assertEqual({"device": 6, "timer": 1000, "call": 18, "other": 2}, counted)
        metrics = daemon.ctl("metrics").out
        self.assertRegex(metrics, r'affinityd_policy_interruptions_call\{.*policy="quiet".*\} 18\n')
