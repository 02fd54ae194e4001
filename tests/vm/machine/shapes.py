# SPDX-License-Identifier: Apache-2.0
"""The machines that the suite can boot."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Shape:
    sockets: int = 1
    dies: int = 1
    cores: int = 1          # of a die
    threads: int = 1        # of a core
    nodes: int = 1          # NUMA nodes; CPUs are split evenly, in order
    memory: int = 1024      # MiB in all
    pairs: tuple = ()       # NICs two by two, joined by a wire, on nodes 0 and 1: a kind of KINDS each
    single: tuple = ()      # NICs on a wire that leads nowhere
    lines: int = 0          # NICs of conventional PCI, which share one interrupt line with each other and a USB controller
    spare: int = 0          # CPUs that can be plugged in, the last ones
    kernel: str = "6.12"
    words: str = ""         # more for the kernel's command line
    # max: what QEMU's emulation can do. 5-level page tables only cost time; with AMD as vendor siblings are not shown.
    processor: str = "max,la57=off,vendor=GenuineIntel"
    # True: x2apic with interrupt remapping, as servers have; an affinity takes effect at once. False: at the next interrupt.
    x2apic: bool = True

    @property
    def cpus(self):
        return self.sockets * self.dies * self.cores * self.threads


# QEMU device, queue pairs of a tap (0: none is needed, the wire is inside of QEMU), more properties
KINDS = {
    "virtio": ("virtio-net-pci", 4, "mq=on,vectors=10"),
    "virtio-8": ("virtio-net-pci", 8, "mq=on,vectors=18"),
    "igb": ("igb", 0, ""),
    "e1000e": ("e1000e", 0, ""),
    "vmxnet3": ("vmxnet3", 0, ""),
}

SHAPES = {
    # The machine of Foong, Fung and Newell: two sockets, eight NICs.
    "foong": Shape(sockets=2, cores=2, threads=2, nodes=2, pairs=("virtio", "igb", "e1000e", "vmxnet3")),
    # Many CPUs on several dies. The level is beyond the leaf that tells of dies, because QEMU answers questions for unknown leaves
    # with the last one, and is aborted when that is the leaf of dies and the firmware asks.
    "wide": Shape(processor="max,la57=off,vendor=GenuineIntel,level=0x20", sockets=2, dies=2, cores=2, threads=2, nodes=2, pairs=("igb",)),
    "small": Shape(sockets=1, cores=2, single=("virtio",)),
    # An older kernel on an older interrupt controller. The last CPU is not there at first: newer kernels plug CPUs in only under a hypervisor
    # that they know, which an emulation is not.
    "old": Shape(sockets=2, cores=2, nodes=2, pairs=("vmxnet3",), spare=1, kernel="6.1", x2apic=False),
    # A NIC of each driver, for what is put back.
    "drivers": Shape(sockets=2, cores=2, nodes=2, single=("virtio", "igb", "e1000e", "vmxnet3")),
    # A NIC with as many queues as there are CPUs, which spreads flows over them by a hash as real ones do.
    "queues": Shape(sockets=2, cores=4, nodes=2, memory=2048, pairs=("igb",)),
    # Control groups as older distributions have them, and siblings.
    "cgroup-v1": Shape(sockets=2, cores=2, threads=2, nodes=2, memory=2048, pairs=("igb",), kernel="6.1", words="systemd.unified_cgroup_hierarchy=0"),
    # The same with a NIC of a guest: its packets come back on the queue where the flow was sent.
    "queues-virtio": Shape(sockets=2, cores=4, nodes=2, memory=2048, pairs=("virtio-8",)),
    # Two of these, for a bond.
    "containers": Shape(sockets=2, cores=4, nodes=2, memory=2048, pairs=("igb", "igb")),
    # Devices that share an interrupt line.
    "lines": Shape(sockets=1, cores=4, lines=2),
    # A kernel whose drivers of these NICs tell by netlink which interrupt serves which queue.
    "new": Shape(sockets=2, cores=2, nodes=2, pairs=("igb", "e1000e"), kernel="7.2"),
}
