# SPDX-License-Identifier: Apache-2.0
"""Interfaces without interrupts that come and go: veth pairs between two network namespaces that the test makes. Daemon and receivers run in
one of them, senders in the other; the machine's own network stays untouched. Process events reach the initial namespace only (cn_proc), so
what the daemon notices here it notices through rtnetlink."""
import contextlib
import json
import os
import sys
import unittest

from daemon import PROGRAMS, Daemon, allowed, measured, spawn, wait_for
from namespaces import SIOCETHTOOL, Namespace, comm, ip, make_threaded, napi_threads

RECEIVER = """import socket, sys
open("/proc/self/comm", "w").write("nic-receiver")
with socket.create_server((sys.argv[1], 7001)) as listener:
    peer = listener.accept()[0]
    while peer.recv(65536):
        pass
"""
# Listens on all addresses, and reads from whoever comes.
SERVER = """import select, socket
open("/proc/self/comm", "w").write("nic-receiver")
with socket.create_server(("0.0.0.0", 7001)) as listener:
    open_ones = [listener]
    while True:
        for ready in select.select(open_ones, [], [])[0]:
            if ready is listener:
                open_ones.append(listener.accept()[0])
            elif not ready.recv(65536):
                open_ones.remove(ready)
                ready.close()
"""
SENDER = """import socket, sys, time
for _ in range(500):
    try:
        peer = socket.create_connection((sys.argv[1], 7001), 1)
        break
    except OSError:
        time.sleep(0.02)
while True:
    peer.sendall(bytes(4096))
    time.sleep(0.005)
"""
FULL = "version: 1\nmatch: {comm: nic-receiver}\naffinity: full\nnics: auto\nbind: core\n"
NAMED = 'version: 1\nmatch: {comm: no-such-program}\naffinity: irq\nnics: ["a%s*"]\n'
# struct ethtool_channels: command, four maxima, then rx, tx, other, combined.
CHANNELS = f"""import array, fcntl, socket, struct, sys
count = int(sys.argv[2])
value = array.array("B", struct.pack("9I", 0x3d, 0, 0, 0, 0, count, count, 0, 0))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, {SIOCETHTOOL}, struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0]))
"""


class Veth(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        # Names of NAPI threads contain those of interfaces, and threads of all namespaces are visible: names must be unique to this run.
        self.mark = f"{os.getpid() % 100000:05d}"
        self.near = Namespace(self.stack, f"affinity-near-{self.mark}")
        self.far = Namespace(self.stack, f"affinity-far-{self.mark}")

    def daemon(self, policies):
        daemon = Daemon(self.stack, policies)
        plain = daemon.command
        daemon.command = lambda: self.near.command(*plain())
        daemon.settings().write_text("version: 1\nreconcile: 1h\n", encoding="utf-8")  # no periodic pass may notice a change first
        return daemon

    def pair(self, number):
        name = f"a{self.mark}r{number}"
        ip("link", "add", name, "netns", self.near.name, "type", "veth", "peer", "name", f"a{self.mark}t{number}", "netns", self.far.name)
        for namespace, letter, host in ((self.near, "r", 1), (self.far, "t", 2)):
            namespace.ip("addr", "add", f"10.99.{number}.{host}/24", "dev", f"a{self.mark}{letter}{number}")
            namespace.ip("link", "set", f"a{self.mark}{letter}{number}", "up")
        make_threaded(self.near, name)
        return name

    def connections(self):
        return len(self.near.run("ss", "-Htn", "state", "established", "sport", "=", ":7001").splitlines())

    def xps(self, name, queue=0):
        return int(self.near.run("cat", f"/sys/class/net/{name}/queues/tx-{queue}/xps_cpus").replace(",", ""), 16)

    def test_full_keeps_each_receiver_and_the_napi_thread_of_its_interface_together(self):
        names = [self.pair(number) for number in (0, 1)]
        receivers = [spawn(self.stack, *self.near.command(sys.executable, "-c", RECEIVER, f"10.99.{number}.1")) for number in (0, 1)]
        for number in (0, 1):
            spawn(self.stack, *self.far.command(sys.executable, "-c", SENDER, f"10.99.{number}.1"))
        wait_for(lambda: {comm(process.pid) for process in receivers} == {"nic-receiver"}, "both receivers are there")
        # Which interface serves whom, passes alone find out, and the next one is an hour away.
        wait_for(lambda: self.connections() == 2, "both are served")
        pollers = [napi_threads(name)[0] for name in names]
        everywhere = allowed(os.getpid())
        self.assertEqual([everywhere] * 2, [allowed(tid) for tid in pollers])
        before = [self.xps(name) for name in names]

        daemon = self.daemon({"receivers.yaml": FULL}).start()

        def together():
            cpus = [allowed(process.pid) for process in receivers]
            return cpus if cpus == [allowed(tid) for tid in pollers] and everywhere not in cpus else None

        cpus = wait_for(together, "each receiver has the CPUs of its interface's thread")
        self.assertTrue(all(cpu.isdigit() for cpu in cpus), cpus)
        self.assertNotEqual(*cpus, "two interfaces, two cores")
        self.assertEqual([1 << int(cpu) for cpu in cpus], [self.xps(name) for name in names], "sent by the queue of the same core")
        self.assertEqual([], json.loads(daemon.control("plan", "--json"))["actions"])
        self.check_what_is_shown(daemon, names, pollers, receivers, cpus)
        daemon.control("release", "receivers")
        wait_for(lambda: [allowed(tid) for tid in pollers] == [everywhere] * 2, "released kernel threads have their masks back")
        daemon.control("apply")
        wait_for(together, "and are placed again")
        (daemon.policies / "receivers.yaml").unlink()
        wait_for(lambda: [allowed(tid) for tid in pollers] == [everywhere] * 2, "without the policy they have their masks back")
        daemon.write("receivers.yaml", FULL)
        wait_for(together, "and are placed again")
        daemon.stop()
        self.assertEqual([everywhere] * 4, [allowed(tid) for tid in pollers + [process.pid for process in receivers]])
        self.assertEqual(before, [self.xps(name) for name in names])

    def test_both_interfaces_of_one_server_are_with_it_also_while_one_client_is_away(self):
        names = [self.pair(number) for number in (0, 1)]
        server = spawn(self.stack, *self.near.command(sys.executable, "-c", SERVER))
        clients = [spawn(self.stack, *self.far.command(sys.executable, "-c", SENDER, f"10.99.{number}.1")) for number in (0, 1)]
        pollers = [napi_threads(name)[0] for name in names]
        everywhere = allowed(os.getpid())
        self.assertEqual([everywhere] * 2, [allowed(tid) for tid in pollers])

        wait_for(lambda: self.connections() == 2, "both clients are connected")
        daemon = self.daemon({"server.yaml": FULL}).start()

        def together():
            cpus = {allowed(tid) for tid in [server.pid, *pollers]}
            return cpus if len(cpus) == 1 and everywhere not in cpus else None

        wait_for(together, "the server and the threads of both interfaces have one CPU")
        lanes = daemon.status()["policies"][0]["lanes"]
        self.assertEqual([names], [group["nics"] for group in lanes])
        self.assertEqual(1, len(lanes[0]["cores"]))
        self.assertEqual(self.xps(names[0]), self.xps(names[1]))
        clients[1].kill()
        clients[1].wait()
        wait_for(lambda: self.connections() == 1, "one client has gone")
        passes = daemon.status()["reconciles"]
        for _ in range(2):  # the first looks at the sockets, the second would carry out what follows
            daemon.control("apply")
        wait_for(lambda: daemon.status()["reconciles"] >= passes + 2 and not daemon.status()["reconciling"], "two passes are over")
        self.assertTrue(together(), "a client that is silent for a while moves nobody")
        daemon.stop()
        self.assertEqual([everywhere] * 3, [allowed(tid) for tid in [server.pid, *pollers]])

    def check_what_is_shown(self, daemon, names, pollers, receivers, cpus):
        shown = json.loads(self.near.run(PROGRAMS["affinityctl"], "--runtime-dir", str(daemon.folder / "run"), "--json", "nics", *names))
        self.assertEqual(names, [nic["name"] for nic in shown])
        for nic, poller, receiver, cpu in zip(shown, pollers, receivers, cpus):
            queues = {queue["direction"]: queue for queue in nic["queues"]}
            self.assertEqual((poller, cpu), (queues["rx"]["napi_thread"], queues["rx"]["napi_thread_cpus"]))
            self.assertEqual(cpu, queues["tx"]["wanted"])
            self.assertEqual([{"pid": receiver.pid, "tid": receiver.pid, "comm": "nic-receiver"}], queues["tx"]["tasks"])
            self.assertEqual("receivers", queues["tx"]["policy"])

    def test_without_steering_transmit_maps_stay_as_they_are(self):
        name = self.pair(0)
        before = self.xps(name)
        policy = NAMED % self.mark
        daemon = self.daemon({"named.yaml": policy}).start()
        [poller] = napi_threads(name)
        everywhere = allowed(os.getpid())
        wait_for(lambda: self.xps(name) != before, "the map is set")
        daemon.write("named.yaml", policy + "steering: false\n")
        daemon.control("reload")
        wait_for(lambda: self.xps(name) == before, "the map is given back")
        self.assertEqual([], [queue for queue in daemon.status()["queues"] if queue["kind"] == "steering"])
        self.assertNotEqual(everywhere, allowed(poller), "what stands for the interrupt is still placed")
        daemon.stop()
        self.assertEqual((before, everywhere), (self.xps(name), allowed(poller)))

    def test_interfaces_that_come_change_and_go_are_placed_anew(self):
        name, other = f"a{self.mark}x", f"a{self.mark}y"
        daemon = self.daemon({"named.yaml": NAMED % self.mark}).start()

        def placed():
            return {(queue["nic"], queue["queue"]) for queue in daemon.status()["queues"] if queue["kind"] == "steering"}

        def expect(what, *queues):
            took = measured(lambda: {pair for pair in placed() if pair[1].startswith("tx")} == set(queues), what)
            times.append(f"{what} {took:.2f} s")

        times = []
        expect("no interface")
        self.near.ip("link", "add", name, "numtxqueues", "2", "numrxqueues", "2", "type", "veth", "peer", "name", "peer0", "numtxqueues", "2",
                     "numrxqueues", "2")
        self.near.run(sys.executable, "-c", CHANNELS, name, "1")
        self.near.ip("link", "set", name, "up")
        expect("a new interface", (name, "tx-0"))
        self.assertNotEqual(0, self.xps(name))
        self.near.run(sys.executable, "-c", CHANNELS, name, "2")
        expect("two channels", (name, "tx-0"), (name, "tx-1"))
        wait_for(lambda: {self.xps(name, 0), self.xps(name, 1)} == {1, 2}, "a CPU for each")
        self.near.ip("link", "set", name, "down")
        self.near.ip("link", "set", name, "name", other)
        self.near.ip("link", "set", other, "up")
        expect("another name", (other, "tx-0"), (other, "tx-1"))
        self.near.ip("link", "set", other, "netns", self.far.name)
        expect("gone to another namespace")
        self.far.ip("link", "set", other, "netns", self.near.name)
        expect("back again", (other, "tx-0"), (other, "tx-1"))
        wait_for(lambda: {self.xps(other, 0), self.xps(other, 1)} == {1, 2}, "a CPU for each")
        self.near.ip("link", "del", other)
        expect("removed")
        print("measured: seen in the status after", ", ".join(times), flush=True)
        daemon.stop()

    def test_an_interface_gets_back_what_it_had_also_under_another_name(self):
        names = [f"a{self.mark}{letter}" for letter in "xyz"]
        self.near.ip("link", "add", names[0], "type", "veth", "peer", "name", "peer0")
        self.near.ip("link", "set", names[0], "up")
        before = self.xps(names[0])
        daemon = self.daemon({"named.yaml": NAMED % self.mark}).start()

        def is_ours(name):
            queues = [queue for queue in daemon.status()["queues"] if (queue["nic"], queue["queue"]) == (name, "tx-0")]
            return bool(queues) and queues[0].get("original") is not None and self.xps(name) != before

        def rename(name, other):
            self.near.ip("link", "set", name, "down")
            self.near.ip("link", "set", name, "name", other)
            self.near.ip("link", "set", other, "up")

        wait_for(lambda: is_ours(names[0]), "it is placed")
        rename(names[0], names[1])
        wait_for(lambda: is_ours(names[1]), "the running daemon knows the record")
        daemon.kill()
        rename(names[1], names[2])
        daemon.start()
        wait_for(lambda: is_ours(names[2]), "the next one does, too")
        self.near.ip("link", "set", names[2], "netns", self.far.name)
        wait_for(lambda: not [queue for queue in daemon.status()["queues"] if queue["nic"] == names[2]], "it is elsewhere")
        self.far.ip("link", "set", names[2], "netns", self.near.name)
        wait_for(lambda: is_ours(names[2]), "what it has is still known as ours")
        daemon.stop()
        self.assertEqual(before, self.xps(names[2]))


if __name__ == "__main__":
    unittest.main()
