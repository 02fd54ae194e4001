# SPDX-License-Identifier: Apache-2.0
"""Neighbours that mean ill, or do not think: folders that never rest, links that are switched, interfaces that come and go
all the time."""
import contextlib
import os
import pathlib
import re
import resource
import socket
import stat
import threading
import time

from house import AUTHENTICATED, House, bus_call, measured, policy, read, report, wait_for
from nets import Net

WEB = policy("web", cpus="0", bind="set", settle=0)


@contextlib.contextmanager
def again_and_again(action, pause):
    """Does it in the background until the end of the block."""
    over = threading.Event()

    def work():
        while not over.wait(pause):
            action()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Folders(House):
    def test_a_file_that_is_written_ten_times_a_second_holds_no_other_up(self):
        daemon = self.daemon({"reconcile": "1h"}, web=WEB)
        web = self.program("web")
        self.expect(web, "0")
        with again_and_again(lambda: (daemon.policies / "noise.yaml").write_text(f"# {time.monotonic()}\n", encoding="utf-8"), 0.1):
            time.sleep(0.5)
            daemon.write("web", self.own(WEB | {"cpus": "1"}))
            self.expect(web, "1")

    def switched(self, make, switch):
        """Files are made below the daemon's folder, then switched to their second version."""
        daemon = self.daemon({"reconcile": "1s"}, start=False)
        versions = {}
        for version, cpu in (("v1", "0"), ("v2", "1")):
            versions[version] = self.bin / version
            versions[version].mkdir()
            daemon.write("web", self.own(WEB | {"cpus": cpu}))
            (daemon.policies / "web.yaml").rename(versions[version] / "web.yaml")
            os.utime(versions[version] / "web.yaml", (1, 1))  # as in a Nix store
        make(daemon.policies, versions["v1"])
        daemon.start()
        web = self.program("web")
        self.expect(web, "0")
        switch(daemon.policies, versions["v2"])
        self.expect(web, "1")

    @staticmethod
    def link(path, target):
        """Made, or replaced, by one rename."""
        new = path.with_name(path.name + "_tmp")
        new.symlink_to(target)
        new.rename(path)

    def test_a_config_map_of_kubernetes_is_followed(self):
        def make(folder, version):
            self.link(folder / "..data", version)
            (folder / "web.yaml").symlink_to("..data/web.yaml")
        self.switched(make, lambda folder, version: self.link(folder / "..data", version))

    def test_a_link_whose_way_is_switched_is_followed(self):
        current = self.bin / "current"

        def make(folder, version):
            self.link(current, version)
            (folder / "web.yaml").symlink_to(current / "web.yaml")
        self.switched(make, lambda _, version: self.link(current, version))

    def test_a_link_to_a_file_that_is_written_every_second_holds_no_other_link_up(self):
        noise = self.bin / "noise.yaml"

        def make(folder, version):
            (folder / "web.yaml").symlink_to(version / "web.yaml")
            noise.touch()
            (folder / "noise.yaml").symlink_to(noise)

        def switch(_, version):
            (version.parent / "v1/web.yaml").write_text((version / "web.yaml").read_text(encoding="utf-8"), encoding="utf-8")
        with again_and_again(lambda: noise.write_text(f"# {time.monotonic()}\n", encoding="utf-8"), 0.5):
            self.switched(make, switch)

    def test_a_folder_that_is_a_link_is_followed(self):
        def make(folder, version):
            folder.rmdir()
            self.link(folder, version)
        self.switched(make, self.link)


class Listening(House):
    def hears(self, daemon):
        """True if the daemon has a socket of the process connector that is in its group."""
        inodes = set()
        for entry in pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = os.readlink(entry)
                inodes |= {target[8:-1]} if target.startswith("socket:[") else set()
        connector = 11
        lines = pathlib.Path("/proc/net/netlink").read_text(encoding="ascii").splitlines()[1:]
        return any(int(words[1]) == connector and int(words[3], 16) & 1 and words[9] in inodes for words in map(str.split, lines))

    def test_the_daemon_listens_to_process_events_only_while_there_is_a_policy(self):
        daemon = self.daemon({"reconcile": "1h"})
        wait_for(lambda: not self.hears(daemon), "it does not listen")
        daemon.write("web", self.own(WEB))
        wait_for(lambda: self.hears(daemon), "it listens")
        daemon.calm()
        web = self.program("web")
        self.expect(web, "0")
        daemon.remove("web")
        self.expect(web, self.everywhere)
        wait_for(lambda: not self.hears(daemon), "it does not listen any more")


class Containers(Net):
    def test_containers_whose_interfaces_come_and_go_hide_no_fight(self):
        nic = self.pair(queues=2, threaded=False)
        daemon = self.daemon({"reconcile": "1s"}, namespace=self.near.command(), named={"version": 1, "affinity": "irq", "nics": [nic]})
        wait_for(lambda: (nic, "tx-0") in self.placed(daemon), "placed")
        foreign = f"for q in 0 1; do echo 3 > /sys/class/net/{nic}/queues/tx-$q/xps_cpus; done"

        def come_and_go():
            self.near.ip("link", "add", "container0", "type", "veth", "peer", "name", "container1")
            self.near.ip("link", "del", "container0")
        with again_and_again(lambda: self.near.run("sh", "-c", foreign), 0.3), again_and_again(come_and_go, 0.02):
            wait_for(lambda: "fought over" in {queue["state"] for queue in daemon.status()["queues"]},
                     lambda: f"the fight is noticed: {[queue['state'] for queue in daemon.status()['queues']]}")


class PrivateSocket(House):
    """Whoever comes to the private socket of root, the daemon answers others and ends."""

    # No words at all, a header of 128 MiB, of an endianness that does not exist, and half of one.
    JUNK = (b"GET / HTTP/1.0\r\n\r\n", b"A" * 100000, b"\0", AUTHENTICATED, AUTHENTICATED + b"l\1\0\1\xff\xff\xff\x07\1\0\0\0\xff\xff\xff\x03",
            AUTHENTICATED + b"X\1\0\1" + b"\0\0\0\0\1\0\0\0\0\0\0\0" + b"\xff" * 64, AUTHENTICATED + bytes(4096), AUTHENTICATED + b"l")

    def ends(self, daemon):
        self.assertLess(measured(lambda: daemon.stop() is None, "it ends"), 20)

    def test_the_socket_is_roots_and_goes_with_the_daemon(self):
        daemon = self.daemon(web=WEB)
        path = daemon.folder / "run/control"
        self.assertEqual(stat.S_IFSOCK | 0o600, path.lstat().st_mode)
        daemon.kill()
        self.assertTrue(path.exists())
        daemon.start()
        self.assertEqual("web", daemon.status()["policies"][0]["name"])
        daemon.stop()
        self.assertFalse(path.exists())

    def test_wrong_calls_are_refused_and_others_are_answered(self):
        daemon = self.daemon(web=WEB)
        for error, method, *words in (("UnknownMethod", "Destroy"), ("InvalidArgs", "Explain"), ("InvalidArgs", "Explain", "1", "2"), ("InvalidArgs", "Reload", "x"),
                                      ("InvalidArgs", "Begin", "GetStatus", ""), ("InvalidArgs", "Begin", "apply", ""), ("InvalidArgs", "Begin", "", "")):
            with self.subTest(method, words=words):
                is_error, head, _ = daemon.call(method, *words)
                self.assertTrue(is_error)
                self.assertIn(f"org.freedesktop.DBus.Error.{error}".encode(), head)
        for word in ("", "../../etc", "%s%n", "\1\2\n", "a" * (1 << 20)):
            self.assertTrue(daemon.call("Release", word)[0] or not word, word[:20])
        for junk in self.JUNK:
            daemon.connect(junk)
        self.assertEqual("web", daemon.status()["policies"][0]["name"])

    def test_silent_peers_make_room_for_others_and_hold_up_no_end(self):
        daemon = self.daemon(web=WEB)
        peers = [daemon.connect() for _ in range(80)]
        for peer in peers:
            peer.setblocking(False)

        def closed():
            found = []
            for at, peer in enumerate(peers):
                with contextlib.suppress(BlockingIOError):
                    if not peer.recv(1):
                        found.append(at)
            return found
        wait_for(lambda: closed() == list(range(16)), lambda: f"the oldest of more than 64 are closed: {closed()} are")
        self.assertEqual("web", daemon.status()["policies"][0]["name"])
        self.ends(daemon)

    def test_a_peer_that_never_reads_holds_up_no_end(self):
        daemon = self.daemon(**{f"p{number}": policy(f"p{number}", cpus="0", description="x" * 4000) for number in range(100)})
        daemon.connect(AUTHENTICATED + b"".join(bus_call(serial, "GetStatus") for serial in range(1, 20)))
        daemon.status()
        self.ends(daemon)

    def test_a_peer_waits_and_the_daemon_rests_while_no_descriptor_is_left(self):
        daemon = self.daemon({"reconcile": "1h"}, web=WEB)
        daemon.calm()
        used = {int(fd) for fd in os.listdir(f"/proc/{daemon.process.pid}/fd")}
        before = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (next(fd for fd in range(1024) if fd not in used), before[1]))
        peer = daemon.connect(b"\0AUTH EXTERNAL\r\nDATA\r\n")
        peer.settimeout(1)
        spent = self.cpu_seconds(daemon)
        with self.assertRaises(TimeoutError):
            peer.recv(1)
        self.assertLess(self.cpu_seconds(daemon) - spent, 0.9)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, before)
        peer.settimeout(60)
        self.assertTrue(peer.recv(1))

    @staticmethod
    def cpu_seconds(daemon):
        return sum(map(int, read(f"/proc/{daemon.process.pid}/stat").rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


class Callers(House):
    """Programs of root that call over the private socket, and read nothing."""
    LONG = True
    PLAIN = True  # it measures memory, and a sanitizer keeps what was freed
    PEERS, CALLS = 40, 300

    def peer(self, daemon):
        return daemon.connect(AUTHENTICATED + b"".join(bus_call(serial, "GetStatus") for serial in range(1, self.CALLS + 1)))

    @staticmethod
    def is_closed(peer):
        """The daemon has let it go: what is sent arrives nowhere."""
        try:
            peer.send(b"l", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False

    def test_callers_that_read_nothing_take_little_memory_and_are_let_go(self):
        daemon = self.daemon({"reconcile": "1h"}, **{f"p{number}": policy(f"p{number}", cpus="0", description="x" * 2000) for number in range(300)})
        size = len(daemon.ctl("status", "--json").out)
        peers = [self.peer(daemon) for _ in range(self.PEERS)]

        def memory():
            return int(re.search(r"VmRSS:\s+(\d+)", read(f"/proc/{daemon.process.pid}/status"))[1]) / 1024
        most, end = 0, time.monotonic() + 10
        while time.monotonic() < end:
            self.assertTrue(daemon.status()["policies"])
            most = max(most, memory())
            self.assertLess(most, 200, f"MiB, with answers of {size} bytes")
        report(f"{self.PEERS} peers that leave answers of {size} bytes unread: {most:.0f} MiB")
        wait_for(lambda: all(map(self.is_closed, peers)), lambda: f"all are closed: {sum(map(self.is_closed, peers))} are")
