# SPDX-License-Identifier: Apache-2.0
"""queues: lanes, on a veth pair of four queues between two namespaces that the test makes: how many channels the interface has is asked of the
kernel itself (ethtool's ioctl), whatever the daemon says."""
import contextlib
import json
import os
import sys
import time
import unittest

from daemon import PROGRAMS, Daemon, spawn, wait_for
from namespaces import SIOCETHTOOL, Namespace, ip

RECEIVER = """import socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
with socket.create_server(("10.97.0.1", int(sys.argv[2]))) as listener:
    peer = listener.accept()[0]
    while peer.recv(65536):
        pass
"""
SENDER = """import socket, sys, time
for _ in range(1000):
    try:
        peer = socket.create_connection(("10.97.0.1", int(sys.argv[1])), 1)
        break
    except OSError:
        time.sleep(0.02)
while True:
    peer.sendall(bytes(512))
    time.sleep(0.02)
"""
# struct ethtool_channels: command, four maxima, then rx, tx, other, combined. Prints what there is; with a number, sets that.
CHANNELS = f"""import array, fcntl, socket, struct, sys
def ask(value):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, {SIOCETHTOOL}, struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0]))
    return struct.unpack("9I", value.tobytes())
if len(sys.argv) > 2:
    count = int(sys.argv[2])
    ask(array.array("B", struct.pack("9I", 0x3d, 0, 0, 0, 0, count, count, 0, 0)))
now = ask(array.array("B", struct.pack("9I", 0x3c, *[0] * 8)))
print(now[5], now[6])
"""
# Prints (rps_cpus, rps_flow_cnt) of each receive queue, and xps_cpus of each transmit queue; with values, sets these of all.
MAPS = """import json, pathlib, sys
queues = pathlib.Path("/sys/class/net", sys.argv[1], "queues")
def one(path, value):
    if value is not None:
        path.write_text(value)
    return path.read_text().strip().lstrip("0,") or "0"
rps, flows, xps = sys.argv[2:] or [None] * 3
print(json.dumps([[[one(queue / "rps_cpus", rps), one(queue / "rps_flow_cnt", flows)] for queue in sorted(queues.glob("rx-*"))],
                  [one(queue / "xps_cpus", xps) for queue in sorted(queues.glob("tx-*"))]]))
"""
PAUSE = 15  # seconds; more than the least that requeue takes, so that a slow machine sees what is in between


class Queues(unittest.TestCase):
    def setUp(self):
        self.assertGreaterEqual(len(os.sched_getaffinity(0)), 2, "this test needs two CPUs")
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.mark = f"{os.getpid() % 100000:05d}"
        self.near = Namespace(self.stack, f"affinity-near-{self.mark}")
        self.far = Namespace(self.stack, f"affinity-far-{self.mark}")
        self.nic = f"q{self.mark}r"
        ip("link", "add", self.nic, "netns", self.near.name, "numrxqueues", "4", "numtxqueues", "4", "type", "veth",
           "peer", "name", f"q{self.mark}t", "netns", self.far.name, "numrxqueues", "4", "numtxqueues", "4")
        for namespace, name, host in ((self.near, self.nic, 1), (self.far, f"q{self.mark}t", 2)):
            namespace.ip("addr", "add", f"10.97.0.{host}/24", "dev", name)
            namespace.ip("link", "set", name, "up")
        self.comm = f"queued-{self.mark}"
        self.channels(4)

    def channels(self, *count):
        """(rx, tx) that the interface has, or has from now on."""
        return tuple(map(int, self.near.run(sys.executable, "-c", CHANNELS, self.nic, *map(str, count)).split()))

    def policy(self, queues="lanes"):
        return f"version: 1\nmatch: {{comm: {self.comm}}}\naffinity: full\nnics: [{self.nic}]\nsettle: 0s\nqueues: {queues}\n"

    def daemon(self):
        daemon = Daemon(self.stack, {"queued.yaml": self.policy()})
        plain = daemon.command
        daemon.command = lambda: self.near.command(*plain())
        daemon.settings().write_text(f"version: 1\nreconcile: 1s\nrequeue: {PAUSE}s\n", encoding="utf-8")
        return daemon

    def worker(self, port):
        """A process that is served by the interface: one lane more."""
        spawn(self.stack, *self.near.command(sys.executable, "-c", RECEIVER, self.comm, str(port)))
        spawn(self.stack, *self.far.command(sys.executable, "-c", SENDER, str(port)))
        wait_for(lambda: self.near.run("ss", "-Htn", "state", "established", "sport", "=", f":{port}"), "it is served")

    def wait_until(self, count, what):
        wait_for(lambda: self.channels() == (count, count), what)

    def shown(self, daemon):
        (found,) = [queue for queue in daemon.status()["queues"] if queue["kind"] == "queues"]
        return found

    def changes(self, daemon):
        return daemon.text().count(f"{self.nic} queues: ")

    def test_an_interface_has_as_many_queues_as_lanes_and_is_changed_seldom(self):
        self.worker(7101)
        daemon = self.daemon().start()
        self.wait_until(1, "one worker, one lane, one queue of each direction")
        begin = time.monotonic()
        self.worker(7102)
        wait_for(lambda: all(self.shown(daemon)[key] == value for key, value in (("wanted", "rx 2 tx 2"), ("state", "waits"))),
                 "another lane, so another queue is wanted, but later")
        self.assertEqual((1, 1), self.channels())
        self.assertEqual(1, self.changes(daemon), daemon.text())
        self.wait_until(2, "it comes when it is time")
        took = time.monotonic() - begin
        self.assertGreater(took, PAUSE - 3)
        print(f"measured: the second change came {took:.1f} s after the first was seen", file=sys.stderr)

        wait_for(lambda: self.shown(daemon)["state"] == "in place", "status says so")
        self.assertEqual(("rx 2 tx 2", "rx 2 tx 2", "rx 4 tx 4"), tuple(self.shown(daemon)[key] for key in ("wanted", "present", "original")))
        self.assertIn("a queue for each of its 2 lanes", daemon.control("explain", self.nic))
        nics = self.near.run(PROGRAMS["affinityctl"], "--runtime-dir", str(daemon.folder / "run"), "nics", self.nic)
        self.assertIn("queues rx 2 of 4, tx 2 of 4; wanted rx 2 tx 2 by policy queued (was rx 4 tx 4)", nics)
        self.assertEqual([], json.loads(daemon.control("plan", "--json"))["actions"])
        # The events of our own changes have come and gone: nothing follows from them.
        passes = daemon.status()["reconciles"]
        wait_for(lambda: daemon.status()["reconciles"] >= passes + 2, "some passes later")
        daemon.stop()
        self.assertEqual((4, 4), self.channels())
        self.assertEqual(2, self.changes(daemon), daemon.text())

    def test_what_was_changed_is_put_back_whatever_ends_it(self):
        self.worker(7101)
        daemon = self.daemon().start()
        self.wait_until(1, "it is changed")
        daemon.kill()
        self.assertEqual((1, 1), self.channels())
        daemon.start()
        daemon.stop()
        self.assertEqual((4, 4), self.channels(), "killed, started, stopped")
        daemon.start()
        self.wait_until(1, "it is changed again")
        daemon.control("release", "queued")
        self.assertEqual((4, 4), self.channels(), "released")
        daemon.control("apply")
        self.wait_until(1, "taken up again")
        daemon.write("queued.yaml", self.policy("keep"))
        self.wait_until(4, "the policy says keep")
        daemon.write("queued.yaml", self.policy())
        self.wait_until(1, "and lanes again")
        (daemon.policies / "queued.yaml").unlink()
        self.wait_until(4, "the policy is gone")
        daemon.stop()
        self.assertEqual((4, 4), self.channels())

    def maps(self, *values):
        """(rps_cpus, rps_flow_cnt) of each receive queue there is, and xps_cpus of each transmit queue; or sets these of all."""
        return json.loads(self.near.run(sys.executable, "-c", MAPS, self.nic, *values))

    def test_maps_of_queues_that_go_come_back_with_them(self):
        """The kernel frees them with the queue. Those that the policy leaves alone and has no record of, too."""
        before = self.maps("3", "4096", "2")
        self.assertEqual([[["3", "4096"]] * 4, ["2"] * 4], before)
        self.worker(7101)
        for policy in (self.policy(), self.policy() + "steering: false\n"):
            with self.subTest(policy=policy):
                daemon = self.daemon()
                daemon.write("queued.yaml", policy)
                daemon.start()
                self.wait_until(1, "it is changed")
                passes = daemon.status()["reconciles"]
                wait_for(lambda: daemon.status()["reconciles"] >= passes + 2, "some passes later")
                daemon.kill()
                daemon.start()
                wait_for(lambda: daemon.status()["reconciles"] >= 2, "and some passes of another daemon")
                daemon.stop()
                self.assertEqual((4, 4), self.channels())
                self.assertEqual(before, self.maps())

    def test_an_administrator_who_gives_the_number_back_gets_the_maps_back(self):
        before = self.maps("3", "4096", "2")
        self.worker(7101)
        for policy in (self.policy(), self.policy() + "steering: false\n"):
            with self.subTest(policy=policy):
                daemon = self.daemon()
                daemon.write("queued.yaml", policy)
                daemon.start()
                self.wait_until(1, "it is changed")
                passes = daemon.status()["reconciles"]
                wait_for(lambda: daemon.status()["reconciles"] >= passes + 2, "some passes later")
                self.channels(4)
                wait_for(lambda: self.shown(daemon)["state"] == "left alone", "that is seen")
                if "steering" in policy:
                    wait_for(lambda: self.maps()[0][1:] == before[0][1:], "nobody else wants anything of these")
                daemon.stop()
                self.assertEqual((4, 4), self.channels())
                self.assertEqual(before[0][1:], self.maps()[0][1:])
                self.assertEqual(before[1][1:], self.maps()[1][1:])

    def test_a_map_that_an_administrator_sets_after_his_number_stays(self):
        self.maps("3", "4096", "2")
        self.worker(7101)
        daemon = self.daemon()
        daemon.write("queued.yaml", self.policy() + "steering: false\n")
        daemon.start()
        self.wait_until(1, "it is changed")
        self.channels(4)
        wait_for(lambda: self.shown(daemon)["state"] == "left alone", "that is seen")
        his = self.maps("2", "1024", "1")
        passes = daemon.status()["reconciles"]
        wait_for(lambda: daemon.status()["reconciles"] >= passes + 3, "some passes later")
        daemon.stop()
        self.assertEqual(his, self.maps())

    def test_a_number_that_an_administrator_sets_meanwhile_stays(self):
        self.worker(7101)
        daemon = self.daemon().start()
        self.wait_until(1, "it is changed")
        self.channels(3)
        wait_for(lambda: self.shown(daemon)["state"] == "left alone", "that is seen")
        self.assertIn("affinityctl apply", self.shown(daemon)["note"])
        passes = daemon.status()["reconciles"]
        wait_for(lambda: daemon.status()["reconciles"] >= passes + 3, "some passes later")
        self.assertEqual((3, 3), self.channels())
        daemon.control("apply")
        self.wait_until(1, "somebody asked for it")
        self.channels(3)
        wait_for(lambda: self.shown(daemon)["state"] == "left alone", "that is seen")
        daemon.stop()
        self.assertEqual((3, 3), self.channels(), "it is not ours any more")


if __name__ == "__main__":
    unittest.main()
