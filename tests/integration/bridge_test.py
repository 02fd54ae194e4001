# SPDX-License-Identifier: Apache-2.0
"""Bridges with ports of guests and containers, in a network namespace that the test makes: what the kernel says of real ones. None of their
settings changes, unless a policy names the port itself."""
import contextlib
import json
import os
import subprocess
import unittest

from daemon import PROGRAMS, Daemon, wait_for

BRIDGED = 'version: 1\nmatch: {comm: no-such-program}\naffinity: irq\nnics: [%s]\n'


class Bridge(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.namespace = f"affinity-bridge-{os.getpid()}"
        self.host("ip", "netns", "add", self.namespace)
        self.stack.callback(subprocess.run, ["ip", "netns", "del", self.namespace], check=False, capture_output=True)
        self.ip("link", "add", "br0", "type", "bridge")
        for name in ("guest0", "guest1"):
            self.ip("link", "add", name, "numtxqueues", "2", "type", "veth", "peer", "name", f"{name}-end")
        self.ip("tuntap", "add", "tap0", "mode", "tap", "multi_queue")
        self.ip("link", "add", "own0", "numtxqueues", "2", "type", "veth", "peer", "name", "own0-end")
        self.ip("link", "add", "link", "own0", "name", "over0", "type", "macvlan", "mode", "bridge")
        for port in ("guest0", "guest1", "tap0"):
            self.ip("link", "set", port, "master", "br0")
        for name in ("br0", "guest0", "guest1", "guest0-end", "guest1-end", "tap0", "own0", "own0-end", "over0"):
            self.ip("link", "set", name, "up")

    @staticmethod
    def host(*words):
        return subprocess.run(words, check=True, capture_output=True, text=True, timeout=30).stdout

    def ip(self, *arguments):
        return self.host("ip", "-n", self.namespace, *arguments)

    def inside(self, *words):
        return self.host("ip", "netns", "exec", self.namespace, *words)

    def settings(self):
        """Every steering map of the namespace, by interface; those that the kernel does not tell are left out."""
        script = "for f in /sys/class/net/*/queues/*/[rx]ps_cpus; do v=$(cat $f 2>/dev/null) && echo $f $v; done; true"
        found = {}
        for line in self.inside("sh", "-c", script).splitlines():
            path, value = line.split()
            found.setdefault(path.split("/")[4], {})[path] = int(value.replace(",", ""), 16)
        return found

    def daemon(self, nics):
        daemon = Daemon(self.stack, {"bridged.yaml": BRIDGED % nics})
        plain = daemon.command
        daemon.command = lambda: ["ip", "netns", "exec", self.namespace, *plain()]
        return daemon.start()

    @staticmethod
    def placed(daemon):
        return sorted({queue["nic"] for queue in daemon.status()["queues"] if queue["kind"] == "steering"})

    def test_ports_of_guests_keep_their_settings_whoever_names_the_bridge(self):
        before = self.settings()
        self.assertLessEqual({"guest0", "guest1", "own0"}, set(before))
        daemon = self.daemon('br0, "*0", own0')
        wait_for(lambda: self.placed(daemon) == ["own0"], "the interface that is no port of anything is placed, and nothing else")
        daemon.control("apply")
        wait_for(lambda: self.settings()["own0"] != before["own0"], "it has its lanes")
        after = self.settings()
        self.assertEqual({name: maps for name, maps in before.items() if name != "own0"},
                         {name: maps for name, maps in after.items() if name != "own0"})
        self.assertEqual(["own0"], self.placed(daemon))
        shown = {nic["name"]: nic for nic in json.loads(self.inside(PROGRAMS["affinityctl"], "--json", "--runtime-dir",
                                                                    str(daemon.folder / "run"), "nics"))}
        self.assertEqual({"guest0", "guest1", "tap0"}, set(shown["br0"]["lower"]))
        self.assertEqual([], shown["br0"]["bottom"])
        problems = [problem for problem in daemon.status()["problems"] if problem["subject"] == "br0"]
        self.assertEqual(1, len(problems), daemon.status()["problems"])
        daemon.stop()
        self.assertEqual(before, self.settings())

    def test_a_port_that_a_policy_names_is_the_policys(self):
        before = self.settings()
        daemon = self.daemon("guest1")
        wait_for(lambda: self.settings()["guest1"] != before["guest1"], "the named port has its lanes")
        self.assertEqual(["guest1"], self.placed(daemon))
        self.assertEqual(before["guest0"], self.settings()["guest0"])
        daemon.stop()
        self.assertEqual(before, self.settings())


if __name__ == "__main__":
    unittest.main()
