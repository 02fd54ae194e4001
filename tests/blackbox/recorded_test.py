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

    def guest(self, pid, virtual_cpus, **options):
        self.machine.process(pid, "qemu-system-x86", threads={pid + 1 + at: f"CPU {at}/KVM" for at in range(virtual_cpus)}, **options)

    def test_virtual_cpus_that_a_guest_takes_for_siblings_sit_on_siblings(self):
        self.machine = Recorded(self.bin / "siblings", cpus=16, nodes=2, smt=2)
        self.guest(900, 4)
        self.guest(950, 4)
        plan = self.plan(guests=policy(match={"comm": "qemu-system-x86"}, together="node", threads=[{"name": "CPU */KVM", "spread": "core", "smt": "pair"}]))
        cores = [{int(plan[first]), int(plan[first + 1])} for first in (901, 903, 951, 953)]
        self.assertEqual({2}, {len(core) for core in cores}, plan)
        self.assertEqual({1}, {len({cpu // 2 for cpu in core}) for core in cores}, plan)
        self.assertEqual(4, len({min(core) for core in cores}), plan)
        self.assertEqual({"0-7", "8-15"}, {plan[900], plan[950]}, plan)
        self.assertEqual([plan[900], plan[950]], ["0-7" if int(plan[tid]) < 8 else "8-15" for tid in (901, 951)], plan)

    def test_a_process_goes_to_the_node_that_has_memory_for_it(self):
        self.machine = Recorded(self.bin / "room", cpus=8, nodes=2)
        self.guest(900, 2, resident=4_000_000)
        rule = policy(match={"comm": "qemu-system-x86"}, together="node", near="room")
        for free, files, expected in ((8_000_000, 0, "0-3"), (3_000_000, 0, "4-7"), (3_000_000, 6_000_000, "0-3")):
            for node, kib in enumerate((free, 9_000_000)):
                self.machine.put(f"sys/devices/system/node/node{node}/meminfo",
                                 f"Node {node} MemFree: {kib} kB\nNode {node} FilePages: {files} kB\nNode {node} Shmem: 0 kB")
            self.assertEqual({expected}, set(self.plan(guests=rule).values()), (free, files))

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
