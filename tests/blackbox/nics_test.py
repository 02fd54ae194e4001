# SPDX-License-Identifier: Apache-2.0
"""Interfaces that come, change and go, and programs that they serve: veth pairs in namespaces of the test. (The VM has interrupts.)"""
from house import allowed, cpus, group, measured, policy, report, wait_for
from nets import Net, napi_threads

FULL = policy("server", affinity="full", nics="auto", bind="core", settle=0)


class Full(Net):
    def together(self, tasks):
        """The one CPU of all these tasks."""
        masks = {allowed(tid) for tid in tasks}
        return masks.pop() if len(masks) == 1 and all(mask.isdigit() for mask in masks) else None


class Servers(Full):
    """`affinity: full`: a server, and the thread that takes in its interface's packets, are together."""

    def test_each_server_with_its_own_interface(self):
        nics = [self.pair(number) for number in (0, 1)]
        servers = [self.server(address=f"10.99.{number}.1") for number in (0, 1)]
        [self.client(number) for number in (0, 1)]
        pollers, before = [napi_threads(nic)[0] for nic in nics], [self.maps(nic) for nic in nics]
        daemon = self.inside(web=FULL)
        pairs = [(server.pid, poller) for server, poller in zip(servers, pollers)]

        def placed():
            places = [self.together(pair) for pair in pairs]
            return places if None not in places and places[0] != places[1] else None
        places = wait_for(placed, "each server has the CPU of its interface's thread")
        self.assertEqual([[1 << int(cpu)] for cpu in places], [self.maps(nic) for nic in nics], "sent by the queue of the same core")
        self.assertEqual([], daemon.plan())
        self.shown(daemon, nics, pollers, servers, places)

        everywhere = [self.everywhere] * 4
        everyone = [task for pair in pairs for task in pair]
        for what, undo, again in (("release", lambda: daemon.ctl("release", "web"), lambda: daemon.ctl("apply")),
                                  ("the policy's end", lambda: daemon.remove("web"), lambda: daemon.write("web", FULL)),
                                  ("stop", daemon.stop, None)):
            with self.subTest(what):
                undo()
                wait_for(lambda: [allowed(task) for task in everyone] == everywhere, "all have their own masks")
                wait_for(lambda: [self.maps(nic) for nic in nics] == before, "and the interfaces their maps")
                if again:
                    again()
                    wait_for(placed, "all is placed again")

    def test_a_reload_that_drops_the_rule_of_a_reader_keeps_the_daemon(self):
        """Readers are counted by the rules of the former text until the next pass."""
        nic = self.pair(0)
        server, _ = self.server(), self.client(0)
        rules = [{"name": "none", "leave": True}] * 5 + [{"name": self.name("server"), "bind": "core"}]
        daemon = self.inside(web={**FULL, "threads": rules})
        wait_for(lambda: self.together([server.pid, napi_threads(nic)[0]]), "the rule's thread is near its interface")
        daemon.write("web", FULL)
        wait_for(lambda: self.together([server.pid, napi_threads(nic)[0]]), "and is so without the rule")
        daemon.passes(2)
        self.assertEqual([], daemon.plan())

    def shown(self, daemon, nics, pollers, servers, places):
        """`affinityctl nics` says the same as the kernel."""
        for nic, poller, server, cpu in zip(daemon.ctl("--json", "nics", *nics).json, pollers, servers, places):
            queues = {queue["direction"]: queue for queue in nic["queues"]}
            self.assertEqual((poller, cpu), (queues["rx"]["napi_thread"], queues["rx"]["napi_thread_cpus"]))
            self.assertEqual((cpu, "web", [server.pid]), (queues["tx"]["wanted"], queues["tx"]["policy"], [task["pid"] for task in queues["tx"]["tasks"]]))

    def test_a_server_whose_cpuset_moves_away_is_followed_by_the_thread_of_its_queue(self):
        nic = self.pair(0)
        server, _ = self.server(), self.client(0)
        daemon = self.inside(namespace=self.with_groups(), web=FULL)
        near = wait_for(lambda: self.together([server.pid, napi_threads(nic)[0]]), "it is near its interface")
        far = next(cpu for cpu in ("0", "1") if cpu != near)
        folder = group(self.stack, f"affinityd-{self.mark}", "cpuset")
        if (folder / "cpuset.mems").exists():
            (folder / "cpuset.mems").write_text((folder.parent / "cpuset.mems").read_text(encoding="ascii"), encoding="ascii")
        (folder / "cpuset.cpus").write_text(far, encoding="ascii")
        self.stack.callback(server.end)
        (folder / "cgroup.procs").write_text(str(server.pid), encoding="ascii")

        def thread():
            return [process["threads"][0] for process in daemon.status()["processes"] if process["pid"] == server.pid][0]
        daemon.passes(2)
        wait_for(lambda: (thread()["state"], thread()["wanted"]) == ("in place", far), "it has a place in its cpuset")
        wait_for(lambda: self.together([server.pid, napi_threads(nic)[0]]) == far, "the thread of its queue is there, too")

    def test_both_interfaces_of_one_server_also_while_one_client_is_away(self):
        nics = [self.pair(number) for number in (0, 1)]
        server, clients = self.server(), [self.client(number) for number in (0, 1)]
        everyone = [server.pid, *(napi_threads(nic)[0] for nic in nics)]
        daemon = self.inside(web=FULL)
        wait_for(lambda: self.together(everyone), "the server and the threads of both interfaces have one CPU")
        clients[1].end()
        wait_for(lambda: self.connections() == 1, "one client has gone")
        daemon.passes(2)
        self.assertTrue(self.together(everyone), "a client that is silent for a while moves nothing")
        daemon.stop()
        self.assertEqual([self.everywhere] * 3, [allowed(task) for task in everyone])


class Links(Net):
    """`affinity: irq` on named interfaces follows what the kernel says of links."""

    def irq(self, **keys):
        return {"version": 1, "affinity": "irq", "nics": [f"?{self.mark}"]} | keys

    def test_interfaces_are_followed_as_they_come_change_are_renamed_and_go(self):
        nic, other = self.nic("x"), self.nic("y")
        daemon = self.inside(named=self.irq())

        def expect(what, name, queues):
            wanted = {(name, f"tx-{queue}") for queue in range(queues)}
            took = measured(lambda: {pair for pair in self.placed(daemon) if pair[1].startswith("tx")} == wanted, what)
            times.append(f"{what} {1000 * took:.0f} ms")
            if queues == 2:
                wait_for(lambda: set(self.maps(name)) == {1, 2}, "a CPU for each queue")
        times = []
        self.near.ip("link", "add", nic, "numtxqueues", "2", "numrxqueues", "2", "type", "veth", "peer", "name", "peer0", "numtxqueues", "2", "numrxqueues", "2")
        self.ethtool(nic, "channels", 1)
        self.near.ip("link", "set", nic, "up")
        expect("link up", nic, 1)
        self.ethtool(nic, "channels", 2)
        expect("two channels", nic, 2)
        self.near.ip("link", "set", nic, "down")
        self.near.ip("link", "set", nic, "name", other)
        self.near.ip("link", "set", other, "up")
        expect("another name", other, 2)
        self.near.ip("link", "set", other, "netns", self.far.name)
        expect("gone", other, 0)
        self.far.ip("link", "set", other, "netns", self.near.name)
        expect("back", other, 2)
        self.near.ip("link", "del", other)
        expect("unplugged", other, 0)
        report("seen by status after " + ", ".join(times))

    def test_it_gets_back_what_it_had_under_every_name_also_after_kill(self):
        names = [self.nic(letter) for letter in "xyz"]
        self.near.ip("link", "add", names[0], "type", "veth", "peer", "name", "peer0")
        self.near.ip("link", "set", names[0], "up")
        before = self.maps(names[0])
        daemon = self.inside(named=self.irq())

        def rename(old, new):
            self.near.ip("link", "set", old, "down")
            self.near.ip("link", "set", old, "name", new)
            self.near.ip("link", "set", new, "up")

        def is_placed(name):
            return (name, "tx-0") in self.placed(daemon) and self.maps(name) != before
        wait_for(lambda: is_placed(names[0]), "placed")
        rename(*names[:2])
        wait_for(lambda: is_placed(names[1]), "placed under its new name")
        daemon.kill()
        rename(*names[1:])
        daemon.start()
        wait_for(lambda: is_placed(names[2]), "the next daemon knows it")
        daemon.stop()
        self.assertEqual(before, self.maps(names[2]))

    def test_without_steering_maps_stay_and_the_thread_is_placed_all_the_same(self):
        nic = self.pair()
        before, [poller] = self.maps(nic), napi_threads(nic)
        keys = {"version": 1, "affinity": "irq", "nics": [nic]}
        daemon = self.inside(named=keys)
        wait_for(lambda: self.maps(nic) != before, "the map is set")
        daemon.write("named", keys | {"steering": False})
        wait_for(lambda: self.maps(nic) == before, "the map is given back")
        self.assertEqual((set(), 1), (self.placed(daemon), len(cpus(allowed(poller)))))
        daemon.stop()
        self.assertEqual((before, self.everywhere), (self.maps(nic), allowed(poller)))


class Bridges(Net):
    """Ports of guests and containers: none of their settings changes, unless a policy names the port itself."""

    NAMES = ("br0", "guest0", "guest1", "guest0-end", "guest1-end", "tap0", "own0", "own0-end", "over0")

    def setUp(self):
        super().setUp()
        self.near.ip("link", "add", "br0", "type", "bridge")
        for name in ("guest0", "guest1", "own0"):
            self.near.ip("link", "add", name, "numtxqueues", "2", "type", "veth", "peer", "name", f"{name}-end")
        self.near.ip("tuntap", "add", "tap0", "mode", "tap", "multi_queue")
        self.near.ip("link", "add", "link", "own0", "name", "over0", "type", "macvlan", "mode", "bridge")
        for port in ("guest0", "guest1", "tap0"):
            self.near.ip("link", "set", port, "master", "br0")
        for name in self.NAMES:
            self.near.ip("link", "set", name, "up")
        self.before = self.settings()

    def settings(self):
        """Every steering map that the kernel tells, by interface."""
        script = "for f in /sys/class/net/*/queues/*/[rx]ps_cpus; do v=$(cat $f 2>/dev/null) && echo $f $v; done; true"
        found = {}
        for path, value in (line.split() for line in self.near.run("sh", "-c", script).splitlines()):
            found.setdefault(path.split("/")[4], {})[path] = int(value.replace(",", ""), 16)
        return found

    def changed(self):
        now = self.settings()
        return {name for name, maps in self.before.items() if now[name] != maps}

    def test_only_interfaces_that_no_bridge_has_match_a_glob(self):
        for nics, wanted in ((["br0", "*0", "own0"], {"own0"}), (["guest1"], {"guest1"})):
            with self.subTest(nics=nics):
                daemon = self.inside(bridged={"version": 1, "affinity": "irq", "nics": nics})
                wait_for(lambda: self.changed() == wanted, f"{wanted} has its maps")
                daemon.passes()
                self.assertEqual((wanted, wanted), (self.changed(), {nic for nic, _ in self.placed(daemon)}))
                if "br0" in nics:
                    [shown] = [nic for nic in daemon.ctl("--json", "nics").json if nic["name"] == "br0"]
                    self.assertEqual(({"guest0", "guest1", "tap0"}, []), (set(shown["lower"]), shown["bottom"]))
                    self.assertEqual(1, len([problem for problem in daemon.status()["problems"] if problem["subject"] == "br0"]))
                daemon.stop()
                self.assertEqual(set(), self.changed())
