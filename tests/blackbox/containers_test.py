# SPDX-License-Identifier: Apache-2.0
"""Servers in network namespaces of their own: `nics: auto` finds the NIC that their packets come by. The NIC is a veth whose kernel thread takes in
its packets; that thread and the server on one CPU are the witness."""
from house import Namespace, allowed, comm, ip, policy, python, wait_for
from nets import CLIENT, SERVER, Net, napi_threads

FULL = policy("server", affinity="full", nics="auto", bind="core", settle=0)


class Contained(Net):
    """`self.inner` is the container's namespace; its server has 10.88.0.1, unless `address` says otherwise."""

    address = "10.88.0.1"

    def setUp(self):
        super().setUp()
        self.inner = Namespace(self.stack, f"affinity-inner-{self.mark}")
        self.inner.ip("link", "set", "lo", "up")
        self.host = self.pair()
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

    def found(self, way):
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
        self.veth("pod0")
        self.near.ip("addr", "add", "10.88.0.254/24", "dev", "pod0")
        self.inner.ip("route", "add", "default", "via", "10.88.0.254")
        self.routed()
        self.found(["eth0", "pod0", self.host])


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
        [problem] = self.ways(daemon)
        self.assertEqual(("web", "nics", f"name the NIC in the policy: nics: {self.host}"), tuple(problem[key] for key in ("policy", "subject", "hint")))
        self.assertIn("eth0 → pod0 → br0", problem["message"])
        daemon.write("web", FULL | {"nics": [self.host]})
        wait_for(lambda: allowed(server.pid) == allowed(poller) and allowed(poller).isdigit(), "with its name, both are on one CPU")
        self.assertEqual([], self.ways(daemon))
