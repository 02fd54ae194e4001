# SPDX-License-Identifier: Apache-2.0
"""Clients that connect in the first second after a server's start, restart or reload stay connected: what they send is read where it arrives, too.
Process events do not reach the near namespace, so `affinityctl apply` stands for them. bpftrace is the witness."""
import os
import signal
import time

from house import policy, python, report, wait_for
from reloads_test import Reloads
from steering_test import Witness

# So many connections within a second, each made and used from one CPU; then twenty requests on each of them whenever it is told to.
KEPT = """import os, socket, sys, time
number, begun, request = int(sys.argv[1]), time.monotonic(), b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
clients = []
def ask(one):
    one.sendall(request)
    assert one.recv(4096).startswith(b"HTTP/1.1 200")
for i in range(number):
    time.sleep(max(0, begun + i / number - time.monotonic()))
    clients.append(socket.create_connection(("10.99.0.1", 7001), 20))
    ask(clients[-1])
print("connected", flush=True)
while sys.stdin.readline():
    for _ in range(20):
        for one in clients:
            ask(one)
    print("asked", flush=True)
"""


class FirstClients(Witness, Reloads):
    ALONE = True
    PLAIN = True  # it measures how soon the daemon is there

    def begin_first(self):
        nic = self.pair(queues=2)
        hasty = [*self.near.command(), "nice", "-n", "-15"]  # the load of other tests does not matter here
        self.served = self.inside({"reconcile": "1h"}, hasty, web=policy("server", affinity="full", nics=[nic], spread="core", bind="core"))

    def local_reads(self, server, what):
        """The part of the reads of clients that connect during the second that begins now."""
        self.served.ctl("apply")
        clients = [self.spawn(*self.far.command("taskset", "-c", cpu, *python(KEPT, "30")), stdin=-1, stdout=-1, text=True) for cpu in ("0", "1")]
        for client in clients:
            self.assertEqual("connected\n", client.process.stdout.readline())
        time.sleep(2.5)  # workers have their places

        def ask():
            for client in clients:
                client.process.stdin.write("ask\n")
                client.process.stdin.flush()
            for client in clients:
                self.assertEqual("asked\n", client.process.stdout.readline())
        local = self.witnessed(server, ask)
        report(f"{what}: {local:.1f} % of the reads of clients that came in the first second are local")
        for client in clients:
            client.end()
        return local

    def workers(self, find, master, old):
        """The two workers, once the old ones have ended: these would close connections that they take."""
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid, _ in old), "the former workers have ended")
        return wait_for(lambda: (lambda now: now if len(now) == 2 else None)(set(find(master))), "it has its workers")

    def serve_first(self, start, find, number, what):
        """Two starts and two reloads of at most four: a busy machine may hold the daemon up."""
        self.begin_first()
        found = {"start": [], "reload": []}
        while len(found["start"]) < 4 and any(sum(part >= 95 for part in parts) < 2 for parts in found.values()):
            server = start()
            wait_for(lambda: self.near.run("ss", "-Hltn").count("10.99.0.1:7001") == 2, "it listens")
            old = self.workers(find, server, set())
            found["start"].append(self.local_reads(server, f"{what}, start"))
            os.kill(server.pid, number)
            self.workers(find, server, old)
            found["reload"].append(self.local_reads(server, f"{what}, reload"))
            server.end()
            wait_for(lambda: "10.99.0.1:7001" not in self.near.run("ss", "-Hltn"), "it has ended")
        for parts in found.values():
            self.assertGreaterEqual(sorted(parts)[-2], 95, found)

    def test_of_nginx_with_a_listener_for_each_worker(self):
        self.serve_first(lambda: self.nginx(reuseport=" reuseport"), self.nginx_workers, signal.SIGHUP, "nginx")

    def test_of_haproxy_with_a_listener_for_each_thread(self):
        self.serve_first(self.haproxy, self.haproxy_workers, signal.SIGUSR2, "HAProxy")
