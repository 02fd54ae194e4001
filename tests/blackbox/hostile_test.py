# SPDX-License-Identifier: Apache-2.0
"""Neighbours that mean ill, or do not think: folders that never rest, links that are switched, interfaces that come and go
all the time."""
import contextlib
import os
import pathlib
import re
import socket
import struct
import threading
import time

from house import House, policy, read, report, wait_for
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

    def test_to_process_events_only_while_there_is_a_policy(self):
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
    def test_whose_interfaces_come_and_go_hide_no_fight(self):
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


class Callers(House):
    """Programs of root that call over the private socket, and read nothing."""
    ALONE = True
    PLAIN = True  # it measures memory, and a sanitizer keeps what was freed
    PEERS, CALLS = 40, 300

    @staticmethod
    def call(serial):
        """A call of GetStatus as the bytes of a message."""
        fields = b""
        for code, kind, text in ((1, b"o", b"/org/affinityd"), (2, b"s", b"org.affinityd.Manager1"), (3, b"s", b"GetStatus")):
            fields += bytes(-len(fields) % 8) + bytes([code, 1]) + kind + b"\0" + struct.pack("<I", len(text)) + text + b"\0"
        return b"l\1\0\1" + struct.pack("<III", 0, serial, len(fields)) + fields + bytes(-len(fields) % 8)

    def peer(self, daemon):
        made = socket.socket(socket.AF_UNIX)
        self.stack.callback(made.close)
        made.connect(str(daemon.folder / "run/control"))
        made.sendall(b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n" + b"".join(map(self.call, range(1, self.CALLS + 1))))
        return made

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

    def test_who_read_nothing_take_little_memory_and_are_let_go(self):
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
