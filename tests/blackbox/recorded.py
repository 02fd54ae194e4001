# SPDX-License-Identifier: Apache-2.0
"""Files of a machine for `--root`, made up by a test: as many CPUs, NICs and programs as a sentence needs.

    machine = Recorded(folder, cpus=8)
    machine.nic("eth0", ["eth0-rx-0", "eth0-rx-1"], driver="example")
    machine.process(900, "server", unit="server.service", threads={901: "reader"})
    affinityctl("--root", machine.root, "plan", file)
"""
import os
import pathlib

from house import House, affinityctl, document


def numbers(cpus):
    """{0, 1, 2, 5} as "0-2,5"."""
    runs = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def bits(cpus):
    """As the kernel's hexadecimal masks: groups of 32."""
    value = sum(1 << cpu for cpu in cpus)
    words = []
    while value or not words:
        words.append(f"{value & 0xffffffff:08x}")
        value >>= 32
    return ",".join(reversed(words))


class Recorded:
    """A machine of `nodes` sockets, which are NUMA nodes and share an L3 each unless `llcs` (sets of CPUs) says otherwise. `smt` threads a
    core, numbered one after the other. Interrupts begin at 40."""

    def __init__(self, root, cpus=8, nodes=1, smt=1, llcs=None, isolated=(), cmdline="quiet", release="6.12.0"):
        self.root, self.all = pathlib.Path(root), set(range(cpus))
        self.next_irq, self.rows, self.nics, self.links = 40, [], 0, set()
        self.nodes = [set(range(cpus * node // nodes, cpus * (node + 1) // nodes)) for node in range(nodes)]
        llcs = [set(llc) for llc in llcs or self.nodes]
        system = "sys/devices/system/"
        for name, value in {"online": self.all, "present": self.all, "possible": self.all, "isolated": isolated, "offline": (), "nohz_full": ()}.items():
            self.put(f"{system}cpu/{name}", numbers(value))
        for cpu in self.all:
            node = next(number for number, members in enumerate(self.nodes) if cpu in members)
            core = {other for other in self.nodes[node] if other // smt == cpu // smt}
            topology = f"{system}cpu/cpu{cpu}/topology/"
            for key, value in {"physical_package_id": node, "die_id": 0, "core_id": cpu // smt, "thread_siblings_list": numbers(core),
                               "core_cpus_list": numbers(core), "core_siblings_list": numbers(self.nodes[node]),
                               "package_cpus_list": numbers(self.nodes[node]), "die_cpus_list": numbers(self.nodes[node])}.items():
                self.put(topology + key, value)
            llc = next(members for members in llcs if cpu in members)
            for index, (level, kind, shared) in enumerate(((1, "Data", core), (2, "Unified", core), (3, "Unified", llc))):
                for key, value in {"level": level, "type": kind, "size": f"{(32, 1024, 32768)[index]}K", "shared_cpu_list": numbers(shared),
                                   "id": min(shared)}.items():
                    self.put(f"{system}cpu/cpu{cpu}/cache/index{index}/{key}", value)
        for node, members in enumerate(self.nodes):
            self.put(f"{system}node/node{node}/cpulist", numbers(members))
            self.put(f"{system}node/node{node}/cpumap", bits(members))
            self.put(f"{system}node/node{node}/distance", " ".join("10" if other == node else "20" for other in range(nodes)))
            self.put(f"{system}node/node{node}/meminfo", f"Node {node} MemTotal: 33554432 kB")
        self.put(f"{system}node/online", numbers(range(nodes)))
        self.put("proc/cmdline", cmdline)
        self.put("proc/version", f"Linux version {release} (b@h) (gcc) #1 SMP")
        self.put("proc/stat", "cpu 0 0 0 0\nbtime 1700000000")
        self.put("proc/irq/default_smp_affinity", bits(self.all))
        self.put("proc/cpuinfo", "\n\n".join(f"processor\t: {cpu}\nvendor_id\t: GenuineIntel" for cpu in self.all))
        self.write_interrupts()

    def put(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n", encoding="utf-8")
        return file

    def link(self, path, to):
        """A symbolic link to another place of the tree, which need not exist yet."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(os.path.relpath(self.root / to, place.parent))

    def irq(self, label, number=None, cpus=None, effective=None, node=0, folder=True, chip="IR-PCI-MSIX", count=100):
        """An interrupt with this label; its number. Without `folder` its handler has none, as in some recordings."""
        number = self.next_irq if number is None else number
        self.next_irq = max(self.next_irq, number + 1)
        cpus = self.all if cpus is None else set(cpus)
        effective = min(cpus) if effective is None else effective
        for key, value in {"smp_affinity": bits(cpus), "smp_affinity_list": numbers(cpus), "effective_affinity": bits({effective}),
                           "effective_affinity_list": effective, "affinity_hint": "0", "node": node}.items():
            self.put(f"proc/irq/{number}/{key}", value)
        self.put(f"sys/kernel/irq/{number}/actions", label)
        if folder:
            (self.root / f"proc/irq/{number}" / label.replace("/", "!")).mkdir(exist_ok=True)
        self.rows.append((number, effective, chip, label, count))
        self.write_interrupts()
        return number

    def fire(self, places, count=250_000):
        """{interrupt: CPU}: so often these have come to that CPU, and to no other."""
        self.rows = [(number, places.get(number, effective), chip, label, count if number in places else had)
                     for number, effective, chip, label, had in self.rows]
        for number, cpu in places.items():
            self.put(f"proc/irq/{number}/effective_affinity", bits({cpu}))
            self.put(f"proc/irq/{number}/effective_affinity_list", cpu)
        self.write_interrupts()

    def cpuset(self, path, cpus):
        """Sets the cpuset of a control group."""
        self.put(f"sys/fs/cgroup{path}/cpuset.cpus.effective", numbers(cpus))

    def free(self, irqs):
        """The handlers of these interrupts go, as when a link is down or a device is reset; the interrupts stay."""
        self.freed = [row for row in self.rows if row[0] in irqs]
        self.rows = [row for row in self.rows if row[0] not in irqs]
        for number, _, _, label, _ in self.freed:
            (self.root / f"proc/irq/{number}" / label).rmdir()
            self.put(f"sys/kernel/irq/{number}/actions", "")
        self.write_interrupts()

    def request(self):
        """Requests the interrupts that were freed last again."""
        self.rows += self.freed
        for number, _, _, label, _ in self.freed:
            (self.root / f"proc/irq/{number}" / label).mkdir()
            self.put(f"sys/kernel/irq/{number}/actions", label)
        self.write_interrupts()

    def write_interrupts(self):
        lines = ["            " + " ".join(f"{f'CPU{cpu}':>10}" for cpu in sorted(self.all))]
        for number, effective, chip, label, count in self.rows:
            lines.append(f"{number:>4}: " + " ".join(f"{count * (cpu == effective):>10}" for cpu in sorted(self.all))
                         + f"  {chip}   {number}-edge      {label}")
        self.put("proc/interrupts", "\n".join(lines))

    def nic(self, name, labels=(), driver="example", pci=None, node=0, queues=None, msi=True, up=True, folders=True, virtual=False, address=None, device=None):
        """An interface, with an interrupt for each label; their numbers. `queues`: (rx, tx), else one for each label. `device`: one that is not of
        PCI, below /sys/devices."""
        self.nics += 1
        pci = pci or f"0000:{0x40 + self.nics:02x}:00.0"
        device = f"sys/devices/{device or ('virtual' if virtual else f'pci0000:00/{pci}')}"
        net = f"{device}/net/{name}"
        irqs = [self.irq(label, node=node, folder=folders) for label in labels]
        rx, tx = queues or (max(1, len(irqs)),) * 2
        for key, value in {"ifindex": self.nics + 1, "iflink": self.nics + 1, "flags": "0x1003" if up else "0x1002", "type": 1, "speed": 25000,
                           "carrier": int(up), "operstate": "up" if up else "down", "address": address or f"52:54:00:00:00:{self.nics:02x}"}.items():
            self.put(f"{net}/{key}", value)
        for queue in range(rx):
            self.put(f"{net}/queues/rx-{queue}/rps_cpus", "0")
            self.put(f"{net}/queues/rx-{queue}/rps_flow_cnt", "0")
        for queue in range(tx):
            self.put(f"{net}/queues/tx-{queue}/xps_cpus", "0")
        self.link(f"sys/class/net/{name}", net)
        if virtual:
            return irqs
        for irq in irqs if msi else ():
            self.put(f"{device}/msi_irqs/{irq}", "msix")
        near = self.nodes[node] if node >= 0 else self.all
        for key, value in {"numa_node": node, "local_cpulist": numbers(near), "local_cpus": bits(near), "class": "0x020000", "irq": 0,
                           "vendor": "0x8086", "device": "0x1593"}.items():
            self.put(f"{device}/{key}", value)
        (self.root / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
        for path, to in ((f"{net}/device", device), (f"{device}/driver", f"sys/bus/pci/drivers/{driver}"), (f"{device}/subsystem", "sys/bus/pci"),
                         (f"sys/bus/pci/devices/{pci}", device)):
            self.link(path, to)
        return irqs

    def process(self, pid, name, unit=None, cgroup=None, threads=None, cpus=None, ppid=1, exe=None, cmdline=None, uid=0, resident=0):
        """A process whose main thread and `threads` ({tid: name}) have these CPUs; with a unit, it is one of that service. `resident`: KiB."""
        cpus = self.all if cpus is None else set(cpus)
        cgroup = cgroup or (f"/system.slice/{unit}" if unit else "/")
        members = {pid: name} | (threads or {})
        for folder, tid, title in [(f"proc/{pid}", pid, name)] + [(f"proc/{pid}/task/{tid}", tid, title) for tid, title in members.items()]:
            self.put(f"{folder}/comm", title)
            self.put(f"{folder}/stat", f"{tid} ({title}) S {ppid} {pid} {pid} 0 -1 4194560 0 0 0 0 10 10 0 0 20 0 {len(members)} 0 1000 0 0 "
                     "18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0")
            self.put(f"{folder}/status", "\n".join((
                f"Name:\t{title}", "State:\tS (sleeping)", f"Tgid:\t{pid}", f"Pid:\t{tid}", f"PPid:\t{ppid}", f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}",
                f"Gid:\t{uid}\t{uid}\t{uid}\t{uid}", f"VmRSS:\t{resident} kB", f"Threads:\t{len(members)}", "Kthread:\t0", f"Cpus_allowed:\t{bits(cpus)}",
                f"Cpus_allowed_list:\t{numbers(cpus)}", f"Mems_allowed_list:\t{numbers(range(len(self.nodes)))}")))
        (self.root / f"proc/{pid}/cmdline").write_bytes(b"\0".join(word.encode() for word in cmdline or [name]) + b"\0")
        self.put(f"proc/{pid}/cgroup", f"0::{cgroup}")
        self.put(f"proc/{pid}/cpuset", cgroup)
        (self.root / f"proc/{pid}/exe").symlink_to(exe or f"/usr/bin/{name}")
        return pid


class Planned(House):
    def plan(self, root, *files):
        """({interrupt: CPUs}, {interface: [CPUs of tx-0, ...]}, problems) of a plan; an interrupt twice is a failure."""
        answer = affinityctl("--root", root, "--json", "plan", *files, code=None).json
        irqs, maps = {}, {}
        for action in answer["actions"]:
            if action["kind"] == "irq":
                self.assertNotIn(action["irq"], irqs, "planned twice")
                irqs[action["irq"]] = action["to"]
            elif "queue" in action and action["queue"].startswith("tx-"):
                maps.setdefault(action["nic"], []).append(action["to"])
        return irqs, maps, [f"{problem['subject']}: {problem['message']}" for problem in answer["problems"]]

    def irq_policy(self, nic="eth0", **keys):
        file = self.bin / "nic.yaml"
        file.write_text(document(**({"version": 1, "affinity": "irq", "nics": [nic]} | keys)), encoding="utf-8")
        return file
