# SPDX-License-Identifier: Apache-2.0
"""A made-up machine that a daemon acts on: its /sys, /proc/irq and /proc/interrupts are files of a Recorded, which the daemon sees in a mount
namespace of its own. Writes count there as on a real machine. Interrupts and NICs only: tasks run on the CPUs that are there."""
import os

from house import House, compiled, cpus, read, wait_for
from recorded import Recorded

# /proc/irq and /proc/interrupts, then /sys, in which control groups and the kernel's own files are the real ones.
SEEN = """mount --make-rprivate / && mount --bind {root}/proc/irq /proc/irq && mount --bind {root}/proc/interrupts /proc/interrupts &&
mount --rbind /sys/fs {root}/sys/fs && mount --rbind /sys/kernel/btf {root}/sys/kernel/btf && mount --rbind {root}/sys /sys && {more}
exec "$@" """


class OnMachine(House):
    """`self.machine` is the Recorded; `self.acting(**policies)` a daemon on it."""

    CPUS = 4
    MORE = ""  # commands in the daemon's mount namespace

    def setUp(self):
        super().setUp()
        self.make_machine()

    def make_machine(self):
        self.machine = Recorded(self.bin / "root", cpus=self.CPUS)
        for folder in ("sys/fs", "sys/kernel/btf"):
            (self.machine.root / folder).mkdir(parents=True)
        self.before = {}

    def acting(self, settings=None, arguments=(), **policies):
        words = ["env", f"LD_PRELOAD={compiled('settable.c')}", "ASAN_OPTIONS=verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")]
        script = SEEN.format(root=self.machine.root, more=self.MORE)
        return self.daemon(settings or {"reconcile": "1h"}, arguments, namespace=("unshare", "--mount", "sh", "-c", script, "sh", *words), **policies)

    def nic(self, name="eth0", queues=2, **options):
        """An interface of that many queues with an interrupt each, as ixgbe labels them; the interrupts' numbers."""
        made = self.machine.nic(name, [f"{name}-TxRx-{queue}" for queue in range(queues)], driver="ixgbe", **options)
        self.before |= {irq: self.irq(irq) for irq in made}
        return made

    def irq(self, number):
        return cpus(read(self.machine.root / f"proc/irq/{number}/smp_affinity_list"))

    def set_irq(self, number, wanted):
        """As another program would."""
        self.machine.put(f"proc/irq/{number}/smp_affinity_list", wanted)

    def expect_irqs(self, wanted):
        """{interrupt: CPUs}"""
        wait_for(lambda: all(self.irq(irq) == cpus(mask) for irq, mask in wanted.items()),
                 lambda: f"interrupts are {wanted}: they are { {irq: self.irq(irq) for irq in wanted} }")

    def apart(self, irqs):
        """Each interrupt has a CPU that none of the others has; these."""
        def so():
            places = [self.irq(irq) for irq in irqs]
            return all(len(place) == 1 for place in places) and len(set().union(*places)) == len(irqs) and places
        return wait_for(so, lambda: f"each has a CPU of its own: {[self.irq(irq) for irq in irqs]}")

    def originals(self, irqs=None):
        """All interrupts (or these) have what they had before the daemon came."""
        wait_for(lambda: all(self.irq(irq) == self.before[irq] for irq in irqs or self.before),
                 lambda: f"originals {self.before}: they are { {irq: self.irq(irq) for irq in self.before} }")
