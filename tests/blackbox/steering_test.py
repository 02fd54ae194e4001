# SPDX-License-Identifier: Apache-2.0
"""New connections go to the worker on whose lane they arrive. The witness is the server itself, which asks SO_INCOMING_CPU of each connection
and knows nothing of BPF."""
import json
import os
import shutil
import unittest

from house import allowed, children, policy, python, report, run, wait_for
from nets import Net
from reloads_test import NGINX

# Two workers, each with a listener of its own; the answer says on which CPU the packets arrive and on which CPU they are read.
WORKERS = """import ctypes, os, socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
cpu = ctypes.CDLL(None).sched_getcpu
def listener(address=sys.argv[2]):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind((address, 7001))
    one.listen(256)
    return one
number = int(sys.argv[3])
mine, others = listener(), [listener() for _ in range(number - 1)]
for other in others:
    if os.fork() == 0:
        mine = other
        break
while True:
    one = mine.accept()[0]
    try:
        if one.recv(100):
            one.sendall(f"{os.getpid()} {one.getsockopt(socket.SOL_SOCKET, 49)} {cpu()}".encode())
    except OSError:
        pass
    one.close()
"""
# So many connections, one after the other; then who answered how often, and how many were local and lost.
# Each is made on another CPU than the one before, as a packet of a veth pair arrives on the CPU of its sender.
CLIENT = """import collections, json, os, socket, sys
address, number, sent = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode().decode("unicode_escape").encode()
workers, local, lost = collections.Counter(), 0, 0
cpus = sorted(os.sched_getaffinity(0))
for i in range(number):
    try:
        os.sched_setaffinity(0, {cpus[i % len(cpus)]})
        with socket.create_connection((address, 7001), 20) as one:
            one.sendall(sent)
            text = one.recv(4096).decode()
            pid, arrived, read = text.split()[-3:]
            workers[pid] += 1
            local += arrived == read
    except (OSError, ValueError):
        lost += 1
print(json.dumps({"workers": workers, "local": local, "lost": lost}))
"""
NUMBER = 1500


class Steered(Net):
    local = all = 0  # of all connections

    def begin(self, workers=2, steer="auto", address="10.99.0.1"):
        nic = self.pair(queues=2)
        self.served = self.inside({"reconcile": "2s"}, web=policy("server", affinity="full", nics=[nic], spread="core", bind="core", steer=steer))
        self.server = self.spawn(*self.near.command(*python(WORKERS, self.name("server"), address, str(workers))))
        wait_for(lambda: f"{address}:7001" in self.near.run("ss", "-Hltn"), "it listens")
        why = [text for text in self.served.problems() if "steered" in text]
        if why:
            self.skipTest(why[0])
        return self.served

    def load(self, number=NUMBER, address="10.99.0.1"):
        seen = json.loads(self.far.run(*python(CLIENT, address, str(number), "x")))
        self.local, self.all = self.local + seen["local"], self.all + sum(seen["workers"].values())
        return seen

    def steered(self, listeners=2):
        """Clients come until the daemon steers so many listeners."""
        def are_known():
            self.load(60)
            return self.served.policy("web").get("steer", {}).get("listeners") == listeners
        wait_for(are_known, lambda: f"listeners are steered: {self.served.policy('web')} {self.served.problems()}")

    @staticmethod
    def share(seen):
        return 100 * seen["local"] / max(1, sum(seen["workers"].values()))

    def links(self):
        """Programs that are attached to the near namespace."""
        inode = os.stat(f"/run/netns/{self.near.name}").st_ino
        return [link for link in json.loads(run("bpftool", "link", "show", "-j").text or "[]") if link.get("netns_ino") == inode]

    def test_connections_go_to_the_worker_where_they_arrive(self):
        self.begin()
        self.steered()
        seen = self.load()
        self.assertEqual(0, seen["lost"])
        report(f"{self.share(seen):.1f} % of {NUMBER} connections were read where they arrive, steered")
        self.assertGreaterEqual(self.share(seen), 97)
        explained = self.served.explain(str(self.server.pid))
        self.assertEqual([7001], [listener["port"] for listener in explained["listeners"]])
        local = wait_for(lambda: (lambda now: now if now and now["samples"] > 0.98 * self.all else None)(self.served.policy("web").get("local")),
                         "all reads were counted")
        report(f"LOCAL is {100 * local['same']['cpu']:.1f} % of {local['samples']} reads, the witness has {100 * self.local / self.all:.1f} % of {self.all}")
        self.assertAlmostEqual(self.local / self.all, local["same"]["cpu"], delta=0.02)
        self.served.remove("web")
        wait_for(lambda: not self.links(), lambda: f"no program is left: {self.links()}")

    def test_without_steering_half_of_the_connections_are_read_where_they_arrive(self):
        self.begin(steer="none")
        wait_for(lambda: {allowed(pid) for pid in (self.server.pid, *children(self.server.pid))} == {"0", "1"}, "the workers are placed")
        seen = self.load()
        report(f"{self.share(seen):.1f} % without steering")
        self.assertLess(self.share(seen), 80)
        self.assertFalse(self.links())

    def test_nothing_is_left_after_kill_9_and_no_connection_is_lost(self):
        daemon = self.begin()
        self.steered()
        self.assertTrue(self.links())
        client = self.spawn(*self.far.command(*python(CLIENT, "10.99.0.1", "4000", "x")), stdout=-1, text=True)
        for _ in range(3):
            daemon.kill()
            wait_for(lambda: not self.links(), lambda: f"no program is left: {self.links()}")
            daemon.start()
        seen = json.loads(client.process.communicate(timeout=300)[0])
        report(f"{seen['lost']} of 4000 connections lost over 3 kill -9, {self.share(seen):.1f} % local meanwhile")
        self.assertEqual(0, seen["lost"])

    def test_a_more_specific_listener_gets_all_of_its_connections(self):
        self.begin(address="0.0.0.0")
        self.steered()
        stranger = self.spawn(*self.near.command(*python(WORKERS, self.name("stranger"), "10.99.0.1", "1")))
        wait_for(lambda: "10.99.0.1:7001" in self.near.run("ss", "-Hltn"), "the other program listens")
        seen = self.load(300)
        self.assertEqual({str(stranger.pid): 300}, seen["workers"])

    def test_a_single_listener_is_left_alone_and_that_is_said(self):
        daemon = self.begin(workers=1)

        def is_said():
            self.load(20)
            return any(group["why"] == "the only listener of its address" for group in daemon.policy("web").get("steer", {}).get("left", []))
        wait_for(is_said, lambda: f"that is said: {daemon.policy('web')}")

    @unittest.skipUnless(shutil.which("nginx") or os.path.exists("/usr/sbin/nginx"), "no nginx")
    def test_nginx_reads_where_packets_arrive(self):
        nic = self.pair(queues=2)
        daemon = self.inside({"reconcile": "2s"}, web=policy("server", affinity="full", nics=[nic], spread="core", bind="core"))
        path = self.bin / "nginx.conf"
        path.write_text(NGINX.format(folder=self.bin, reuseport=" reuseport"), encoding="utf-8")
        self.bin.chmod(0o755)
        self.spawn(*self.near.command(self.copy_of("/usr/sbin/nginx", "server"), "-p", self.bin, "-c", path))
        wait_for(lambda: "10.99.0.1:7001" in self.near.run("ss", "-Hltn"), "it listens")
        request = "GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"

        def load(number):
            self.far.run(*python(CLIENT, "10.99.0.1", str(number), request))

        def is_steered():
            load(60)
            return daemon.policy("web").get("steer", {}).get("listeners") == 2
        wait_for(is_steered, lambda: f"listeners are steered: {daemon.policy('web')} {daemon.problems()}")
        load(6000)
        local = wait_for(lambda: (lambda now: now if now and now["samples"] > 6000 else None)(daemon.policy("web").get("local")), "reads were counted")
        report(f"LOCAL of nginx is {100 * local['same']['cpu']:.1f} % of {local['samples']} reads, the first ones included")
        self.assertGreaterEqual(local["same"]["cpu"], 0.9)


if __name__ == "__main__":
    unittest.main()
