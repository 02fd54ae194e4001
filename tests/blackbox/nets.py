# SPDX-License-Identifier: Apache-2.0
"""Networks of a test: veth pairs between two namespaces that it makes, servers in the near one and clients in the far one. The machine's own
interfaces stay untouched. Process events reach the initial namespace only (cn_proc), so a daemon in the near one learns of new programs by
passes."""
import pathlib

from house import House, Namespace, comm, ip, python, wait_for

# struct ethtool_channels and ethtool_value by ioctl, as ethtool(8) does: WHAT is gro, tso or channels.
ETHTOOL = """import array, fcntl, socket, struct, sys
name, what, value = sys.argv[1], sys.argv[2], int(sys.argv[3])
words = {"gro": ("II", 0x2c, value), "tso": ("II", 0x1f, value), "channels": ("9I", 0x3d, 0, 0, 0, 0, value, value, 0, 0)}[what]
data = array.array("B", struct.pack(*words))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, 0x8946, struct.pack("16sP", name.encode(), data.buffer_info()[0]))
"""
# Listens at an address, and reads what any client sends.
SERVER = """import select, socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
with socket.create_server((sys.argv[2], 7001)) as listener:
    open_ones = [listener]
    while True:
        for ready in select.select(open_ones, [], [])[0]:
            if ready is listener:
                open_ones.append(listener.accept()[0])
            elif not ready.recv(65536):
                open_ones.remove(ready)
                ready.close()
"""
CLIENT = """import socket, sys, time
for _ in range(500):
    try:
        peer = socket.create_connection((sys.argv[1], 7001), 1)
        break
    except OSError:
        time.sleep(0.02)
while True:
    peer.sendall(bytes(4096))
    time.sleep(0.005)
"""


def napi_threads(nic):
    """Kernel threads that take in the packets of an interface. (/proc/2/task/2/children is not reliable while kthreadd runs.)"""
    pids = (int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())
    return sorted(pid for pid in pids if comm(pid).startswith(f"napi/{nic}-"))


class Net(House):
    """Two namespaces; `self.near` is that of the daemon."""

    def setUp(self):
        super().setUp()
        self.near, self.far = (Namespace(self.stack, f"affinity-{side}-{self.mark}") for side in ("near", "far"))

    def nic(self, letter):
        """An interface's name that no other test has: the kernel's threads of all namespaces are seen together."""
        return f"{letter}{self.mark}"[:15]

    def pair(self, number=0, queues=1, threaded=True):
        """A veth pair 10.99.NUMBER.1 to .2; the near one's name. `threaded`: kernel threads take in its packets, and stand for interrupts."""
        near, far = self.nic(f"r{number}x"), self.nic(f"t{number}x")
        many = ("numrxqueues", str(queues), "numtxqueues", str(queues)) if queues > 1 else ()  # a single one by birth has no maps
        ip("link", "add", near, "netns", self.near.name, *many, "type", "veth", "peer", "name", far, "netns", self.far.name, *many)
        for space, name, host in ((self.near, near, 1), (self.far, far, 2)):
            space.ip("addr", "add", f"10.99.{number}.{host}/24", "dev", name)
            space.ip("link", "set", name, "up")
        if queues > 1:
            self.ethtool(near, "channels", queues)
        if threaded:
            # A veth has NAPI instances, and so their threads, only with generic receive offload.
            self.ethtool(near, "gro", 1)
            self.near.run(*python('import sys; open(f"/sys/class/net/{sys.argv[1]}/threaded", "w").write("1")', near))
            wait_for(lambda: len(napi_threads(near)) == queues, "the threads that poll the interface are there")
        return near

    def ethtool(self, nic, what, value, space=None):
        (space or self.near).run(*python(ETHTOOL, nic, what, str(value)))

    def inside(self, settings=None, namespace=None, **policies):
        """A daemon in the near namespace, whose regular pass is an hour away: no pass may notice a change first."""
        return self.daemon(settings or {"reconcile": "1h"}, namespace=namespace or self.near.command(), **policies)

    def with_groups(self):
        """The near namespace for a daemon that sees control groups, which the /sys of the namespace lacks."""
        kept = self.bin / "groups"
        kept.mkdir()
        within = f'mount --rbind {kept} /sys/fs/cgroup && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", f'mount --rbind /sys/fs/cgroup {kept} && exec "$@"', "sh", *self.near.command("sh", "-c", within, "sh")]

    def server(self, stem="server", address="0.0.0.0"):
        made = self.spawn(*self.near.command(*python(SERVER, self.name(stem), address)))
        wait_for(lambda: comm(made.pid) == self.name(stem) and f"{address}:7001" in self.near.run("ss", "-Hltn"), "the server listens")
        return made

    def client(self, number=0):
        """A client that sends to 10.99.NUMBER.1, and is connected."""
        before = self.connections()
        made = self.spawn(*self.far.command(*python(CLIENT, f"10.99.{number}.1")))
        wait_for(lambda: self.connections() > before, "the client is connected")
        return made

    def connections(self):
        return len(self.near.run("ss", "-Htn", "state", "established", "sport", "=", ":7001").splitlines())

    def maps(self, nic, direction="tx"):
        """XPS (tx) or RPS (rx) of each queue, as numbers."""
        file = {"tx": "xps_cpus", "rx": "rps_cpus"}[direction]
        text = self.near.run("sh", "-c", f"cat /sys/class/net/{nic}/queues/{direction}-*/{file}")
        return [int(line.replace(",", ""), 16) for line in text.splitlines()]

    def placed(self, daemon):
        """{(interface, queue)} whose steering a policy wants."""
        return {(queue["nic"], queue["queue"]) for queue in daemon.status()["queues"] if queue["kind"] == "steering"}
