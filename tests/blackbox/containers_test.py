# SPDX-License-Identifier: Apache-2.0
"""Servers in network namespaces of their own: `nics: auto` finds the NIC that their packets come by. The NIC is a veth whose kernel thread takes in
its packets; that thread and the server on one CPU are the witness."""
import collections
import contextlib
import json
import os
import re
import statistics
import time

from house import House, Namespace, affinityctl, allowed, comm, group, ip, measured, policy, python, read, report, wait_for
from nets import CLIENT, SERVER, Net, napi_threads
from steering_test import CLIENT as MANY, WORKERS

FULL = policy("server", affinity="full", nics="auto", bind="core", settle=0)


class Contained(Net):
    """`self.inner` is the container's namespace; its server has 10.88.0.1, unless `address` says otherwise."""

    address, queues = "10.88.0.1", 1

    def setUp(self):
        super().setUp()
        self.inner = Namespace(self.stack, f"affinity-inner-{self.mark}")
        self.inner.ip("link", "set", "lo", "up")
        self.host = self.pair(queues=self.queues)
        self.peer = self.host.replace("r", "t", 1)

    def add(self, space, *words, up, address=None):
        """Makes an interface there."""
        space.ip("link", "add", *words)
        self.ready(space, up, address)

    def ready(self, space, name, address=None):
        if address:
            space.ip("addr", "add", address, "dev", name)
        space.ip("link", "set", name, "up")

    def veth(self, host_end):
        """A pair into the container, whose end there is eth0."""
        ip("link", "add", host_end, "netns", self.near.name, "type", "veth", "peer", "name", "eth0", "netns", self.inner.name)
        self.ready(self.near, host_end)
        self.ready(self.inner, "eth0", f"{self.address}/24")

    def routed(self):
        """The near namespace hands packets on; the far one knows that."""
        self.near.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self.near.ip("route", "add", "default", "via", "10.99.0.2")
        self.far.ip("route", "add", "10.88.0.0/24", "via", "10.99.0.1")

    def serve(self):
        made = self.spawn(*self.inner.command(*python(SERVER, self.name("server"), "0.0.0.0")))
        wait_for(lambda: comm(made.pid) == self.name("server") and ":7001" in self.inner.run("ss", "-Hltn"), "the server listens")
        self.spawn(*self.far.command(*python(CLIENT, self.address)))
        wait_for(lambda: self.inner.run("ss", "-Htn", "state", "established", "sport", "=", ":7001"), "the client is connected")
        return made

    def ways(self, daemon):
        """The problems with ways."""
        return [problem for problem in daemon.status()["problems"] if problem["subject"] == "nics"]

    def found(self, way, also=lambda: True):
        """The server is where the packets of the NIC arrive, and `explain` says how these come to it; all is as before in the end."""
        server, [poller] = self.serve(), napi_threads(self.host)
        before = self.maps(self.host)
        daemon = self.inside(web=FULL)

        def placed():
            return len({allowed(server), allowed(poller)}) == 1 and allowed(poller).isdigit()
        server = server.pid
        wait_for(placed, lambda: f"server and NIC are on one CPU: {allowed(server)}, {allowed(poller)}; {daemon.ctl('explain', server).text}")
        self.assertEqual(([self.host], way), (daemon.policy("web")["nics"], daemon.explain(server)["way"].split(" → ")))
        self.assertIn(" → ".join(way), daemon.ctl("explain", server).out)
        self.assertEqual(([], []), (self.ways(daemon), daemon.plan()))
        wait_for(also, "what is beside it is set, too")
        daemon.stop()
        self.assertEqual((self.everywhere, self.everywhere, before), (allowed(server), allowed(poller), self.maps(self.host)))


class Ways(Contained):
    def test_a_pair_at_a_bridge_whose_port_is_on_top_of_the_nic(self):
        self.add(self.near, "link", self.host, "name", "over0", "type", "macvlan", "mode", "passthru", up="over0")
        self.far.ip("addr", "add", "10.88.0.2/24", "dev", self.peer)
        self.add(self.near, "br0", "type", "bridge", up="br0")
        self.veth("pod0")
        for port in ("over0", "pod0"):
            self.near.ip("link", "set", port, "master", "br0")
        self.found(["eth0", "pod0", "br0", "over0", self.host])

    def test_a_pair_at_a_bridge_of_its_own_and_the_route_of_the_host(self):
        self.add(self.near, "br0", "type", "bridge", up="br0", address="10.88.0.254/24")
        self.veth("pod0")
        self.near.ip("link", "set", "pod0", "master", "br0")
        self.inner.ip("route", "add", "default", "via", "10.88.0.254")
        self.routed()
        self.found(["eth0", "pod0", "br0", self.host])

    def test_a_pair_without_a_bridge(self):
        """RPS at the host's end would have the server's packets go on from another CPU."""
        self.veth("pod0")
        self.near.run("sh", "-c", "echo 3 > /sys/class/net/pod0/queues/rx-0/rps_cpus")
        self.near.ip("addr", "add", "10.88.0.254/24", "dev", "pod0")
        self.inner.ip("route", "add", "default", "via", "10.88.0.254")
        self.routed()
        self.found(["eth0", "pod0", self.host], lambda: self.maps("pod0", "rx") == [0])
        self.assertEqual([3], self.maps("pod0", "rx"))


class Local(Contained):
    """The server's own word: SO_INCOMING_CPU of each connection, and the CPU on which it reads."""

    LONG, queues = True, 2

    def setUp(self):
        super().setUp()
        self.add(self.near, "br0", "type", "bridge", up="br0", address="10.88.0.254/24")
        self.veth("pod0")
        self.near.ip("link", "set", "pod0", "master", "br0")
        self.inner.ip("route", "add", "default", "via", "10.88.0.254")
        self.routed()

    def workers(self):
        self.spawn(*self.inner.command(*python(WORKERS, self.name("server"), "0.0.0.0", "2", "256")))
        wait_for(lambda: ":7001" in self.inner.run("ss", "-Hltn"), "the workers listen")

    def share(self, number):
        seen = json.loads(self.far.run(*python(MANY, self.address, str(number), "x")))
        self.assertEqual(0, seen["lost"])
        return 100 * seen["local"] / sum(seen["workers"].values())

    def steered(self, daemon):
        wait_for(lambda: self.share(60) > 0 and daemon.policy("web").get("steer", {}).get("listeners") == 2,
                 lambda: f"both listeners are steered: {daemon.policy('web')} {daemon.problems()}")

    def test_two_workers_behind_a_bridge_read_where_the_two_queues_of_the_nic_bring_their_packets(self):
        self.workers()
        without = self.share(300)
        self.steered(self.inside({"reconcile": "2s"}, web=FULL | {"spread": "core"}))
        part = self.share(1500)
        report(f"{part:.1f} % of the connections of a server behind a bridge are read where they arrive, {without:.1f} % without")
        self.assertGreaterEqual(part, 95)

    def test_two_workers_that_start_under_the_policy_are_steered_soon(self):
        daemon = self.inside({"reconcile": "2s"}, web=FULL | {"spread": "core", "settle": "2s"})
        self.workers()
        began = time.monotonic()
        self.steered(daemon)
        took, part = time.monotonic() - began, self.share(300)
        report(f"behind a bridge both workers are steered {took:.2f} s after they listen; then {part:.1f} % are read where they arrive")
        self.assertGreaterEqual(part, 95)


class Parents(Contained):
    address = "10.99.0.7"

    def test_an_interface_on_top_of_the_nic(self):
        self.near.ip("link", "add", "link", self.host, "name", "over0", "type", "macvlan", "mode", "bridge")
        self.near.ip("link", "set", "over0", "netns", self.inner.name)
        self.ready(self.inner, "over0", f"{self.address}/24")
        self.found(["over0", self.host])


class Lost(Contained):
    def test_a_bridge_that_leads_nowhere_is_told_once_and_the_name_of_the_nic_helps(self):
        """The server keeps its cache group: no reader is pinned more closely while its NIC is not known."""
        self.add(self.near, "br0", "type", "bridge", up="br0")
        self.veth("pod0")
        for port in (self.host, "pod0"):
            self.near.ip("link", "set", port, "master", "br0")
        self.far.ip("addr", "add", "10.88.0.2/24", "dev", self.peer)
        server, [poller] = self.serve(), napi_threads(self.host)
        self.near.ip("route", "add", "default", "dev", self.host)
        daemon = self.inside(web=FULL)
        wait_for(lambda: self.ways(daemon), "it is told")
        daemon.passes(2)
        self.at(server, self.everywhere)
        [problem] = self.ways(daemon)
        self.assertEqual(("web", "nics", f"name the NIC in the policy: nics: {self.host}"), tuple(problem[key] for key in ("policy", "subject", "hint")))
        self.assertIn("eth0 → pod0 → br0", problem["message"])
        daemon.write("web", FULL | {"nics": [self.host]})
        wait_for(lambda: allowed(server.pid) == allowed(poller) and allowed(poller).isdigit(), "with its name, both are on one CPU")
        self.assertEqual([], self.ways(daemon))


class Churn(Contained):
    """Pods that come and go, at a hundred a minute: a namespace with a pair at the bridge, and a server, of which one in five is under policy. AFFINITYD_PODS
    says how many; a thousand are ten minutes."""
    ALONE = PLAIN = True  # it measures time, and memory
    PODS, DISTANCE, TOGETHER = int(os.environ.get("AFFINITYD_PODS", "24")), 0.6, 5
    LONGEST = 800 + 2 * PODS

    def pod(self, number):
        """Begins one; the stack that ends it."""
        with contextlib.ExitStack() as stack:
            space = Namespace(stack, f"affinity-pod{number}-{self.mark}")
            end = f"pod{number}"
            ip("link", "add", end, "netns", self.near.name, "type", "veth", "peer", "name", "eth0", "netns", space.name)
            self.near.ip("link", "set", end, "master", "br0")
            self.ready(self.near, end)
            self.ready(space, "eth0", f"10.88.{number // 250}.{number % 250 + 1}/16")
            space.ip("route", "add", "default", "via", "10.88.255.254")
            stack.callback(self.spawn(*space.command(*python(SERVER, self.name("pod" if number % 5 else "web"), "0.0.0.0"))).end)
            return stack.pop_all()

    def holdings(self, daemon):
        """Megabytes, descriptors, what the journal holds, numbered namespaces."""
        pid = daemon.process.pid
        return (int(re.search(r"VmRSS:\s+(\d+)", read(f"/proc/{pid}/status"))[1]) / 1024, len(os.listdir(f"/proc/{pid}/fd")),
                daemon.status()["journal"], self.near.run("ip", "netns", "list-id").count("\n"))

    def innocent(self, daemon):
        """Seconds until a program under another policy has its place after it was asked for."""
        made = self.program("innocent")
        began = time.monotonic()
        daemon.ctl("apply", "--no-block")
        wait_for(lambda: allowed(made.pid) == "0", "it has its place")
        took = time.monotonic() - began
        made.end()
        return took

    def test_a_hundred_a_minute_leave_nothing_behind_and_cost_little(self):
        self.add(self.near, "br0", "type", "bridge", up="br0", address="10.88.255.254/16")
        self.routed()
        daemon = self.inside({"reconcile": "5s"}, web=policy("web", affinity="full", nics="auto", bind="core", settle=0),
                            innocent=policy("innocent", cpus="0", bind="set", settle=0))
        alone = [self.innocent(daemon) for _ in range(5)]
        alive, during, number = collections.deque(), [], 0

        def turn():
            nonlocal number
            alive.append(self.stack.enter_context(self.pod(number)))
            number += 1
            if len(alive) > self.TOGETHER:
                alive.popleft().close()
        for _ in range(2 * self.TOGETHER):
            turn()
        wait_for(lambda: daemon.policy("web")["processes"] > 0, "one is placed")
        daemon.passes(2)
        before, began, spent = self.holdings(daemon), time.monotonic(), self.cpu_seconds(daemon)
        for count in range(self.PODS):
            turn()
            if count % 5 == 0:
                during.append(self.innocent(daemon))
            time.sleep(max(0.0, began + (count + 1) * self.DISTANCE - time.monotonic()))
        share = 100 * (self.cpu_seconds(daemon) - spent) / (time.monotonic() - began)
        while alive:
            alive.popleft().close()
        daemon.passes(2)
        after = self.holdings(daemon)
        report(f"{self.PODS} pods: {share:.1f} % of a CPU; {before[0]:.1f} MiB and {before[1:]} before, {after[0]:.1f} MiB and {after[1:]} after; an innocent has its "
               f"place after {1000 * statistics.median(during):.0f} ms in the median, {1000 * max(during):.0f} ms at most, {1000 * statistics.median(alone):.0f} ms without pods")
        self.assertLessEqual(share, 25)  # on a busy machine CPU time counts for more
        self.assertLess(after[0], before[0] * 1.1 + 2)
        for had, has in zip(before[1:], after[1:]):
            self.assertLessEqual(has, had)

    @staticmethod
    def cpu_seconds(daemon):
        return sum(map(int, read(f"/proc/{daemon.process.pid}/stat").rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


class Pods(House):
    """`pods` in cpus: the CPUs that containers have for themselves."""

    def test_the_rest_of_the_cpus_follows_each_write_to_a_cpuset(self):
        top = group(self.stack, f"kubepods.{self.mark}", "cpuset")
        pod = top / "pod0"
        pod.mkdir()
        self.stack.callback(pod.rmdir)
        for folder, its in ((top, self.everywhere), (pod, "1")):
            if (folder / "cpuset.mems").exists():
                (folder / "cpuset.mems").write_text((folder.parent / "cpuset.mems").read_text(encoding="ascii"), encoding="ascii")
            (folder / "cpuset.cpus").write_text(its, encoding="ascii")
        daemon = self.daemon({"reconcile": "1h"}, batch=self.policy("batch", cpus="all - pods", bind="set", settle=0))
        batch = self.program("batch")
        self.expect(batch, "0")
        self.assertEqual("0", affinityctl("cpus", "all - pods").out.split("\n")[0].split(" ")[-1])
        took = []
        for turn in range(20):
            its, rest = ("0", "1") if turn % 2 == 0 else ("1", "0")
            (pod / "cpuset.cpus").write_text(its, encoding="ascii")
            took.append(measured(lambda rest=rest: allowed(batch.pid) == rest, f"the rest is {rest}"))
        report(f"pods: a rewritten cpuset is followed within {max(took) * 1000:.0f} ms, in the median {sorted(took)[10] * 1000:.0f} ms")
        self.assertLess(sorted(took)[-3], 10)  # the next pass is an hour away
        (pod / "cpuset.cpus").write_text(self.everywhere, encoding="ascii")
        self.expect(batch, self.everywhere)
        daemon.stop()
