# SPDX-License-Identifier: Apache-2.0
"""Interrupts of NICs on a made-up machine of four CPUs: placed, put right or left alone, put back. (tests/vm has real ones.)"""
import os
import shutil
import socket
import threading

from house import read, report, run, wait_for
from machines import OnMachine

IRQ = {"version": 1, "affinity": "irq", "nics": ["eth0"]}


class Placing(OnMachine):
    def test_each_queue_has_a_cpu_of_its_own_and_no_other_interrupt_is_touched(self):
        ours, others, disk = self.nic("eth0", 4), self.nic("eth1", 2), self.machine.irq("ahci")
        daemon = self.acting(nic=IRQ)
        self.apart(ours)
        self.originals(others)
        self.assertEqual({0, 1, 2, 3}, self.irq(disk))
        self.assertEqual([], daemon.plan())

    def test_inside_the_policys_cpus(self):
        irqs = self.nic("eth0", 2)
        self.acting(nic=IRQ | {"cpus": "2-3"})
        self.assertEqual({2, 3}, set().union(*self.apart(irqs)))

    def test_interrupts_of_channels_that_are_added_are_placed_too(self):
        irqs = self.nic("eth0", 2)
        daemon = self.acting(nic=IRQ)
        self.apart(irqs)
        more = [self.machine.irq(f"eth0-TxRx-{queue}") for queue in (2, 3)]
        for irq in more:
            self.machine.put(f"sys/devices/pci0000:00/0000:41:00.0/msi_irqs/{irq}", "msix")
        daemon.passes()
        self.apart(irqs + more)
        self.before |= dict.fromkeys(more, {0, 1, 2, 3})
        daemon.stop()
        self.originals()

    def test_steering_follows_the_interrupts(self):
        irqs = self.nic("eth0", 2)
        daemon = self.acting(nic=IRQ)
        places = self.apart(irqs)
        maps = [self.machine.root / f"sys/class/net/eth0/queues/tx-{queue}/xps_cpus" for queue in (0, 1)]
        wait_for(lambda: [int(one.read_text(), 16) for one in maps] == [1 << cpu for place in places for cpu in place], "each queue sends from its CPU")
        daemon.stop()
        self.assertEqual([0, 0], [int(one.read_text(), 16) for one in maps])


class Undo(OnMachine):
    """However it ends, each interrupt has what it had before."""

    def test_originals_are_back_after_each_way_to_end(self):
        def killed(daemon):
            daemon.kill()
            daemon.start()
            daemon.stop()

        def killed_and_moved(daemon):
            daemon.kill()
            daemon.write("nic", IRQ | {"cpus": "3"})
            daemon.start()
            daemon.stop()
        ends = {"stop": lambda daemon: daemon.stop(), "kill -9, start, stop": killed, "kill -9, another policy, stop": killed_and_moved,
                "release": lambda daemon: daemon.ctl("release", "nic"), "policy removed": lambda daemon: daemon.remove("nic"),
                "policy of other NICs": lambda daemon: daemon.write("nic", IRQ | {"nics": ["eth9"]})}
        for what, end in ends.items():
            with self.subTest(what):
                self.fresh()
                self.make_machine()
                irqs = self.nic("eth0", 3)
                self.set_irq(irqs[0], "1,3")
                self.before[irqs[0]] = {1, 3}
                daemon = self.acting(nic=IRQ | {"cpus": "0-2"})
                self.apart(irqs)
                end(daemon)
                self.originals()

    def test_with_on_stop_keep_they_stay_and_a_later_daemon_still_knows_the_originals(self):
        irqs = self.nic("eth0", 2)
        daemon = self.acting(nic=IRQ | {"on_stop": "keep"})
        places = self.apart(irqs)
        daemon.stop()
        self.assertEqual(places, [self.irq(irq) for irq in irqs])
        daemon.write("nic", IRQ)
        daemon.start()
        daemon.stop()
        self.originals()

    def test_an_interrupt_that_another_program_set_since_keeps_that(self):
        irqs = self.nic("eth0", 2)
        daemon = self.acting(nic=IRQ)
        self.apart(irqs)
        daemon.kill()
        self.set_irq(irqs[0], "2-3")
        self.before[irqs[0]] = {2, 3}
        daemon.remove("nic")
        daemon.start()
        daemon.stop()
        self.originals()


class ForeignWriters(OnMachine):
    def test_a_change_by_another_program_is_put_right(self):
        irqs = self.nic("eth0", 2)
        daemon = self.acting(nic=IRQ)
        places = self.apart(irqs)
        daemon.calm()
        self.set_irq(irqs[0], "2-3")
        daemon.passes()
        self.assertEqual(places, [self.irq(irq) for irq in irqs])


class Refusals(OnMachine):
    """Answers of the kernel to a write."""

    def refused(self, error, value=""):
        """Three interrupts, of which the kernel refuses the second; the daemon."""
        irqs = self.nic("eth0", 3)
        self.file = self.machine.put(f"proc/irq/{irqs[1]}/smp_affinity_list.error", f"{error} {value}")
        return irqs, self.acting({"reconcile": "1s"}, nic=IRQ)

    def test_each_answer_is_told_once_and_asked_again_where_that_may_help(self):
        for error, again, what in ((5, False, "EIO: managed by the kernel"), (1, False, "EPERM: managed, since Linux 6.12"), (22, True, "EINVAL: no such CPU"),
                                   (16, True, "EBUSY: later"), (11, True, "EAGAIN: later")):
            with self.subTest(what):
                self.fresh()
                self.make_machine()
                irqs, daemon = self.refused(error)
                self.apart([irqs[0], irqs[2]])
                daemon.later(1)
                said = [line for line in daemon.text().splitlines() if f"IRQ {irqs[1]}" in line or f"interrupt {irqs[1]}" in line]
                self.assertLessEqual(len(said), 1, said)
                self.file.unlink()
                if again:
                    self.apart(irqs)
                else:
                    daemon.later(1)
                    self.assertEqual(self.before[irqs[1]], self.irq(irqs[1]))
                    daemon.ctl("apply")  # tries all anew
                    self.apart(irqs)
                daemon.stop()
                self.originals()

    def test_a_cpu_without_a_free_vector_is_passed_over(self):
        irqs, daemon = self.refused(28, "1")  # ENOSPC
        self.apart([irqs[0], irqs[2]])
        wait_for(lambda: len(self.irq(irqs[1])) == 1 and self.irq(irqs[1]) != {1}, "it has another one of the policy's")
        daemon.stop()
        self.originals()

    def test_where_every_cpu_is_full_each_is_asked_once_in_a_minute(self):
        irqs = self.nic("eth0", 3)
        files = [self.machine.put(f"proc/irq/{irq}/smp_affinity_list.error", 28) for irq in irqs]
        daemon = self.acting({"reconcile": "1s"}, nic=IRQ)
        daemon.later(10)
        tries = sum(len(read(file.with_suffix(".tries"))) for file in files if file.with_suffix(".tries").exists())
        report(f"{tries} writes for 3 interrupts in ten passes on 4 full CPUs")
        self.assertLessEqual(tries, 4)
        self.originals()
        self.assertEqual(3, sum("No space left" in str(queue) for queue in daemon.status()["queues"]))
        for file in files:
            file.unlink()
        daemon.ctl("apply")
        self.apart(irqs)

    def test_an_original_that_is_refused_for_a_while_is_put_back_later(self):
        irqs, daemon = self.refused(16, "0-3")
        self.apart(irqs)
        daemon.ctl("release", "nic", code=None)
        self.originals([irqs[0], irqs[2]])
        self.file.unlink()
        self.originals()


class SharedLines(OnMachine):
    """A line of interrupts for two devices is one thing, and one policy decides."""

    def test_the_first_policy_decides_and_both_are_told(self):
        self.nic("eth0", 1)
        [line] = self.machine.nic("eth1", ["eth1"], driver="e100", msi=False)
        self.machine.rows[-1] = (*self.machine.rows[-1][:3], "eth1, eth2", 100)
        self.machine.put(f"sys/kernel/irq/{line}/actions", "eth1,eth2")
        self.machine.write_interrupts()
        self.machine.nic("eth2", [], driver="e100", msi=False)
        self.machine.put("sys/devices/pci0000:00/0000:43:00.0/irq", line)
        self.machine.put("sys/devices/pci0000:00/0000:42:00.0/irq", line)
        (self.machine.root / f"proc/irq/{line}/eth2").mkdir()
        self.before[line] = self.irq(line)
        daemon = self.acting(a=IRQ | {"nics": ["eth1"], "cpus": "2", "priority": 1}, b=IRQ | {"nics": ["eth2"], "cpus": "3"})
        self.expect_irqs({line: "2"})
        self.assertEqual([], daemon.plan())
        self.assertIn("eth2", " ".join(daemon.problems()) + daemon.ctl("explain", "eth2").text)
        daemon.ctl("release", "a")
        self.expect_irqs({line: "3"})
        daemon.stop()
        self.originals()


class Leaving(OnMachine):
    """Handlers, devices and CPUs that go while interrupts are ours."""

    def test_handlers_that_are_freed_while_the_link_is_down(self):
        irqs = self.nic("eth0", 2)
        for what in ("the daemon stops", "the policy goes"):
            with self.subTest(what):
                daemon = self.acting({"reconcile": "1s"}, nic=IRQ)
                self.apart(irqs)
                self.machine.free(irqs)
                daemon.later(2)
                daemon.stop() if what == "the daemon stops" else daemon.remove("nic")
                self.originals()
                self.machine.request()

    def test_a_device_that_is_reset(self):
        irqs = self.nic("eth0", 2)
        daemon = self.acting({"reconcile": "1s"}, nic=IRQ)
        places = self.apart(irqs)
        self.machine.free(irqs)
        daemon.later(1)
        for irq in irqs:
            self.set_irq(irq, "0-3")  # as a driver does that asks for them anew
        self.machine.request()
        self.expect_irqs({irq: ",".join(map(str, place)) for irq, place in zip(irqs, places)})
        self.assertNotIn("keeps changing", daemon.text())
        daemon.stop()
        self.originals()

    def test_a_device_that_is_unplugged(self):
        irqs, others = self.nic("eth0", 2), self.nic("eth1", 2)
        daemon = self.acting({"reconcile": "1s"}, nic=IRQ | {"nics": ["eth*"]})
        self.apart(irqs)
        self.machine.free(irqs)
        for path in ("sys/class/net/eth0", "sys/bus/pci/devices/0000:41:00.0"):
            (self.machine.root / path).unlink()
        shutil.rmtree(self.machine.root / "sys/devices/pci0000:00/0000:41:00.0")
        for irq in irqs:
            shutil.rmtree(self.machine.root / f"proc/irq/{irq}")
            self.before.pop(irq)
        wait_for(lambda: {queue["nic"] for queue in daemon.status()["queues"]} == {"eth1"}, "its queues are gone")
        self.apart(others)
        daemon.stop()
        self.originals(others)

    def test_an_interface_that_is_renamed_while_it_is_up(self):
        """Their labels keep the former name."""
        irqs = self.nic("uplink", 2)
        daemon = self.acting({"reconcile": "1s"}, nic=IRQ | {"nics": ["uplink", "lan0"]})
        places = self.apart(irqs)
        net = self.machine.root / "sys/devices/pci0000:00/0000:41:00.0/net"
        (net / "uplink").rename(net / "lan0")
        (self.machine.root / "sys/class/net/uplink").unlink()
        self.machine.link("sys/class/net/lan0", "sys/devices/pci0000:00/0000:41:00.0/net/lan0")

        def placed():
            return sorted((queue["nic"], queue.get("irq", 0)) for queue in daemon.status()["queues"] if queue["kind"] == "irq")
        wait_for(lambda: placed() == [("lan0", irq) for irq in irqs], placed)
        self.set_irq(irqs[0], "0-3")
        self.expect_irqs({irq: ",".join(map(str, place)) for irq, place in zip(irqs, places)})
        daemon.stop()
        self.originals()

    def test_a_cpu_that_goes_and_comes(self):
        irqs = self.nic("eth0", 2)
        daemon = self.acting(nic=IRQ | {"cpus": "2-3"})
        self.assertEqual({2, 3}, set().union(*self.apart(irqs)))
        for online, wanted in (("0-2", {2}), ("0-3", {2, 3})):
            self.machine.put("sys/devices/system/cpu/online", online)
            with open("/sys/devices/system/cpu/cpu0/uevent", "w", encoding="ascii") as event:
                event.write("change")
            wait_for(lambda wanted=wanted: set().union(*(self.irq(irq) for irq in irqs)) == wanted, f"the interrupts are on {wanted}")
        daemon.stop()
        self.originals()

    def test_a_line_that_another_device_has_now_is_left_to_it(self):
        irqs = self.nic("eth0", 2)
        daemon = self.acting({"reconcile": "1s"}, nic=IRQ)
        self.apart(irqs)
        daemon.kill()
        (self.machine.root / f"proc/irq/{irqs[0]}/eth0-TxRx-0").rename(self.machine.root / f"proc/irq/{irqs[0]}/nvme0q1")
        (self.machine.root / f"sys/devices/pci0000:00/0000:41:00.0/msi_irqs/{irqs[0]}").unlink()
        self.machine.rows[0] = (*self.machine.rows[0][:3], "nvme0q1", 100)
        self.machine.write_interrupts()
        self.machine.put(f"sys/kernel/irq/{irqs[0]}/actions", "nvme0q1")
        self.set_irq(irqs[0], "2")
        daemon.start()
        daemon.later(2)
        daemon.stop()
        self.assertEqual(({2}, self.before[irqs[1]]), (self.irq(irqs[0]), self.irq(irqs[1])))


class Irqbalance(OnMachine):
    """A program that speaks as irqbalance does (its SOCKET INTERFACE): it is asked to leave ours alone, and later to have its own list again."""

    OWN_PIDS = True
    MORE = "mount -t tmpfs none /run && mkdir /run/irqbalance && mount --bind {folder} /run/irqbalance &&"

    def irqbalance(self, banned):
        """Starts an irqbalance; returns the list that it has."""
        self.balancer = self.spawn(self.copy("irqbalance"), "600")
        now = {"irqs": list(banned)}
        listener = self.stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        listener.bind(str(self.folder / f"irqbalance{self.balancer.pid}.sock"))
        listener.listen()

        def serve():
            while True:
                try:
                    peer = listener.accept()[0]
                except OSError:
                    return
                with peer:
                    request = peer.recvmsg(500, 1000)[0].decode().rstrip("\0")
                    if request == "setup":
                        peer.sendall(("SLEEP 10 " + "".join(f"IRQ {irq} LOAD 0 DIFF 0 CLASS 5 " for irq in now["irqs"]) + "BANNED 0").encode())
                    elif request.startswith("settings ban irqs "):
                        now["irqs"] = [int(word) for word in request.split()[3:]]
        threading.Thread(target=serve, daemon=True).start()
        return now

    def copy(self, name):
        run("cp", "/bin/sleep", self.bin / name, code=0)
        return self.bin / name

    def setUp(self):
        super().setUp()
        self.folder = self.bin / "irqbalance.d"
        self.folder.mkdir()
        self.MORE = type(self).MORE.format(folder=self.folder)

    def test_irqbalance_leaves_ours_alone_whichever_of_both_starts_first(self):
        for order in ("irqbalance first", "the daemon first"):
            with self.subTest(order):
                irqs = self.nic("eth0", 2) if order == "irqbalance first" else irqs
                now = self.irqbalance([7]) if order == "irqbalance first" else None
                daemon = self.acting({"reconcile": "1s"}, nic=IRQ)
                self.apart(irqs)
                now = now or self.irqbalance([7])
                wait_for(lambda: sorted(now["irqs"]) == [7, *irqs], lambda: f"it leaves ours alone: {now}, {daemon.text()}")
                daemon.stop()
                wait_for(lambda: now["irqs"] == [7], "it has its own list again")
                self.balancer.end()
                os.unlink(self.folder / f"irqbalance{self.balancer.pid}.sock")
