# SPDX-License-Identifier: Apache-2.0
"""affinity: auto on a veth pair: the server takes four times as much CPU time for each byte while it may run everywhere, so that its place is
worth something to it and nothing to chance."""
import time

from house import allowed, comm, group, policy, python, report, wait_for
from nets import Net

DEAR = """import os, socket, sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
with socket.create_server(("10.99.0.1", 7001)) as listener:
    peer = listener.accept()[0]
    while data := peer.recv(1 << 20):
        until = time.process_time() + len(data) / 65536 * (0.004 if len(os.sched_getaffinity(0)) > 1 else 0.001)
        while time.process_time() < until:
            pass
"""
SOURCE = """import socket, time
peer = socket.create_connection(("10.99.0.1", 7001))
while True:
    peer.sendall(bytes(65536))
    time.sleep(0.01)
"""


class Auto(Net):
    ALONE = True  # others' traffic through a busy machine would be noise
    PLAIN = True  # it measures what traffic costs
    PATIENCE = 300  # seconds, for some fifty rounds of a second or two

    def begin(self):
        nic = self.pair()
        folder = group(self.stack, f"affinityd-{self.mark}")
        self.server = self.spawn(*self.near.command(*python(DEAR, self.name("dear"))))
        wait_for(lambda: comm(self.server.pid) == self.name("dear"), "the server runs")
        (folder / "cgroup.procs").write_text(str(self.server.pid), encoding="ascii")
        self.everywhere = allowed(self.server.pid)
        self.web = self.policy("dear", affinity="auto", cpus="0", nics=[nic])
        return self.inside({"reconcile": "1s", "auto": {"round": "1s"}}, self.with_groups(), web=self.web)

    def state(self):
        return self.served.policy("web").get("auto", "")

    def test_it_takes_what_is_cheaper_and_keeps_it_over_a_restart(self):
        self.served = self.begin()
        self.served.later(3)
        self.assertEqual("waits for traffic", self.state())
        self.assertEqual(self.everywhere, allowed(self.server.pid))
        self.spawn(*self.far.command(*python(SOURCE)))
        wait_for(lambda: "tries " in self.state(), lambda: f"it tries: {self.state()}")
        wait_for(lambda: allowed(self.server.pid) == "0", "the server is placed in its turn")
        until, state = time.monotonic() + self.PATIENCE, ""
        while "chose" not in state and time.monotonic() < until:
            time.sleep(1)
            state = self.state()
        report(state)
        self.assertIn("chose process: CPU time per GB against none, after ", state)
        wait_for(lambda: allowed(self.server.pid) == "0", "the choice is in force")
        self.assertEqual(state, self.served.explain(str(self.server.pid))["auto"])
        kept = wait_for(lambda: self.served.ctl("history", "--kind", "auto", "--json").json["records"], "it is in the history")
        self.assertEqual([("process", "web", state.split(": ", 1)[1])], [(one["model"], one["policies"], one["reason"]) for one in kept])
        self.served.stop()
        self.assertEqual(self.everywhere, allowed(self.server.pid))
        self.served.start()
        self.assertEqual(state, self.state())
        wait_for(lambda: allowed(self.server.pid) == "0", "the next daemon keeps the choice")
        self.served.later(3)
        self.assertEqual(state, self.state())  # nothing is tried again
