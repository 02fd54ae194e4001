# SPDX-License-Identifier: Apache-2.0
"""A recorded machine (`--root`): plans for it are made without a daemon, and never touch this one."""
from house import House, affinityctl, document, policy
from recorded import Recorded

KNOWN = [f"eth0-TxRx-{queue}" for queue in range(4)]


class Plans(House):
    def setUp(self):
        super().setUp()
        self.machine = Recorded(self.bin / "root", cpus=8)

    def plan(self, **policies):
        """{what: CPUs} that these policies would change."""
        files = []
        for name, keys in policies.items():
            files.append(self.bin / f"{name}.yaml")
            files[-1].write_text(document(**keys), encoding="utf-8")
        actions = affinityctl("--root", self.machine.root, "--json", "plan", *files).json["actions"]
        return {action.get("tid") or action.get("irq") or (action.get("nic"), action.get("queue")): action["to"] for action in actions}

    def test_each_queue_has_a_cpu_of_its_own(self):
        irqs = self.machine.nic("eth0", KNOWN, driver="ixgbe")
        plan = self.plan(nic={"version": 1, "affinity": "irq", "nics": ["eth0"]})
        self.assertEqual({"0", "1", "2", "3"}, {plan[irq] for irq in irqs})

    def test_a_unit_and_its_threads(self):
        self.machine.process(900, "server", unit="server.service", threads={901: "reader"})
        plan = self.plan(server=policy(match={"unit": "server.service"}, cpus="2-3", bind="set", threads=[{"name": "reader", "cpus": "4"}]))
        self.assertEqual({900: "2-3", 901: "4"}, plan)

    def test_a_process_with_less_than_a_quarter_of_its_cpus_is_told(self):
        threads = {901 + at: "worker" for at in range(15)}
        self.machine = Recorded(self.bin / "wide", cpus=16)
        self.machine.process(900, "server", unit="server.service", threads=threads)
        match = {"unit": "server.service"}
        for keys, told in (({"together": "core"}, "process 900 with 16 threads has CPU 0 of 16"), ({"together": "core", "cpus": "0-3"}, ""),
                           ({"together": "llc"}, ""), ({"spread": "core", "bind": "core"}, "")):
            file = self.bin / "server.yaml"
            file.write_text(document(**policy(match=match) | keys), encoding="utf-8")
            problems = affinityctl("--root", self.machine.root, "--json", "plan", file, code=None).json["problems"]
            said = [problem["message"] for problem in problems]
            self.assertEqual([f"less than a quarter of the CPUs that it may use: {told}"] if told else [], said, keys)
