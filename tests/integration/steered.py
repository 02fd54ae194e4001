# SPDX-License-Identifier: Apache-2.0
"""What tests of steering share: Debian's nginx on a veth pair of two queues; daemon and server run in one namespace that the test makes,
clients in another. What listeners are told, and where connections arrive, is asked of the kernel through the workers' own sockets
(pidfd_getfd(2))."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from daemon import Daemon, allowed, spawn, wait_for
from namespaces import Namespace, ip, make_threaded, send_to_napi

PIDFD_GETFD, SO_INCOMING_CPU = 438, 49
LIBC = ctypes.CDLL(None, use_errno=True)
NGINX = """daemon off;
worker_processes 2;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 10.98.0.1:8080{reuseport}; location / {{ return 200 "$pid"; }} }}
}}
"""
# Opens connections, keeps them, and asks for something over each of them as often as a line comes in. Writes a line when it is through.
CLIENT = """import socket, sys
REQUEST = b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
peers = []
for line in sys.stdin:
    while len(peers) < int(line):
        peers.append(socket.create_connection(("10.98.0.1", 8080), 5))
    for peer in peers:
        peer.sendall(REQUEST)
        assert peer.recv(4096).startswith(b"HTTP/1.1 200")
    print("through", flush=True)
"""
# A server of two processes with a listener each. On SIGUSR1 they have it under another descriptor (move), or tell it another CPU (tell);
# one of them may wait in select(2) instead of an epoll (select).
WORKERS = """import os, select, signal, socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
way = sys.argv[2]
def listener():
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind(("10.98.0.1", 8080))
    one.listen()
    return one
listeners = [listener(), listener()]
is_child = os.fork() == 0
mine = listeners.pop(is_child)
listeners.pop().close()
poll = select.epoll()
def turn(*_):
    global mine
    if way == "move":
        moved = socket.socket(fileno=os.dup2(mine.fileno(), 77))
        mine.close()
        mine = moved
        poll.register(mine, select.EPOLLIN)
    else:
        mine.setsockopt(socket.SOL_SOCKET, 49, 1 - mine.getsockopt(socket.SOL_SOCKET, 49))
signal.signal(signal.SIGUSR1, turn)
if way != "select" or not is_child:
    poll.register(mine, select.EPOLLIN)
while True:
    if way == "select" and is_child:
        select.select([mine], [], [])
    else:
        poll.poll()
    mine.accept()
"""
POLICY = "version: 1\nmatch: {{comm: {comm}}}\naffinity: full\nnics: [{nic}]\nbind: core\nsettle: 0s\nsteer: {steer}\n"


def sockets(pid):
    """Copies of the TCP sockets that a process has open, by descriptor; to be closed by the caller."""
    pidfd = os.pidfd_open(pid)
    found = {}
    try:
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if not os.readlink(entry).startswith("socket:"):
                    continue
                copy = LIBC.syscall(PIDFD_GETFD, pidfd, int(entry.name), 0)
                if copy < 0:
                    continue
                one = socket.socket(fileno=copy)
                if one.family == socket.AF_INET and one.type == socket.SOCK_STREAM:
                    found[int(entry.name)] = one
                else:
                    one.close()
    finally:
        os.close(pidfd)
    return found


def incoming_cpus(pid, listening):
    """SO_INCOMING_CPU of its listeners, or of its connections, by descriptor."""
    cpus = {}
    for number, one in sockets(pid).items():
        with one:
            if bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)) == listening:
                cpus[number] = one.getsockopt(socket.SOL_SOCKET, SO_INCOMING_CPU)
    return cpus


def polled(pid):
    """Descriptors that epolls of the process watch."""
    numbers = set()
    for entry in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            for line in entry.read_text(encoding="ascii").splitlines():
                if line.startswith("tfd:"):
                    numbers.add(int(line.split()[1]))
    return numbers


class Steered(unittest.TestCase):
    """Two namespaces joined by a veth pair of two queues, and what a test of steering starts in them."""

    def setUp(self):
        self.assertGreaterEqual(len(os.sched_getaffinity(0)), 2, "this test needs two CPUs")
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.mark = f"{os.getpid() % 100000:05d}"
        self.near = Namespace(self.stack, f"affinity-near-{self.mark}")
        self.far = Namespace(self.stack, f"affinity-far-{self.mark}")
        self.nic = f"s{self.mark}r"
        ip("link", "add", self.nic, "netns", self.near.name, "numrxqueues", "2", "numtxqueues", "2", "type", "veth",
           "peer", "name", f"s{self.mark}t", "netns", self.far.name, "numrxqueues", "2", "numtxqueues", "2")
        for namespace, name, host in ((self.near, self.nic, 1), (self.far, f"s{self.mark}t", 2)):
            namespace.ip("addr", "add", f"10.98.0.{host}/24", "dev", name)
            namespace.ip("link", "set", name, "up")
        make_threaded(self.near, self.nic, 2)
        send_to_napi(self.far, f"s{self.mark}t")
        self.comm = f"ngx-{self.mark}"

    def daemon(self, steer):
        daemon = Daemon(self.stack, {"server.yaml": self.policy(steer)})
        plain = daemon.command
        daemon.command = lambda: self.near.command(*plain())
        daemon.settings().write_text("version: 1\nreconcile: 2s\n", encoding="utf-8")  # no process events reach this namespace
        return daemon

    def policy(self, steer):
        return POLICY.format(comm=self.comm, nic=self.nic, steer=steer)

    def nginx(self, folder, reuseport=" reuseport"):
        """Starts it under a name of this test's own; the pid of its master."""
        self.server = folder / self.comm
        if not self.server.exists():
            shutil.copy("/usr/sbin/nginx", self.server)
            folder.chmod(0o755)
        self.settings = folder / "nginx.conf"
        self.settings.write_text(NGINX.format(folder=folder, reuseport=reuseport), encoding="utf-8")
        master = spawn(self.stack, *self.near.command(str(self.server), "-c", str(self.settings), "-p", str(folder)))
        self.stack.callback(master.wait)
        self.stack.callback(master.terminate)  # it ends its workers first
        wait_for(lambda: len(self.workers(master.pid)) == 2, "the workers are there")
        return master.pid

    def workers(self, master):
        text = pathlib.Path(f"/proc/{master}/task/{master}/children").read_text(encoding="ascii")
        found = []
        for pid in map(int, text.split()):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # one of an older generation has ended
                if polled(pid) & set(incoming_cpus(pid, True)):
                    found.append(pid)
        return found

    def own_listeners(self, master):
        """(CPUs that the worker may use, CPU that its own listener is told) of each worker."""
        found = []
        for pid in self.workers(master):
            told = incoming_cpus(pid, True)
            found += [(allowed(pid), told[number]) for number in polled(pid) & set(told)]
        return sorted(found)

    def wait_until_steered(self, master):
        return wait_for(lambda: self.own_listeners(master) == [("0", 0), ("1", 1)], "each worker's listener gets its CPU's connections")

    def told(self, master):
        return sorted(incoming_cpus(master, True).values())  # the master has all of them open

    @contextlib.contextmanager
    def client(self, connections=40):
        """A function that asks for something over each of so many connections."""
        client = subprocess.Popen(self.far.command(sys.executable, "-c", CLIENT), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def ask():
            client.stdin.write(f"{connections}\n")
            client.stdin.flush()
            self.assertEqual("through", client.stdout.readline().strip())

        try:
            yield ask
        finally:
            client.stdin.close()
            client.stdout.close()
            client.wait(timeout=30)

    def share_that_is_right(self, master, connections=40):
        """Of the connections, those that arrive where their worker runs."""
        right = [str(cpu) == allowed(pid) for pid in self.workers(master) for cpu in incoming_cpus(pid, False).values() if cpu >= 0]
        self.assertGreaterEqual(len(right), connections * 0.9)
        return sum(right) / len(right)

    def arrivals(self, master, connections=40):
        with self.client(connections) as ask:
            for _ in range(3):
                ask()
            return self.share_that_is_right(master, connections)

    def sampled(self, daemon, ask):
        """What the daemon says of how local reads are, when it has seen a few hundred."""
        def enough():
            ask()
            time.sleep(0.2)
            (policy,) = daemon.status()["policies"]
            return policy["local"] if policy.get("local", {"samples": 0})["samples"] >= 200 else None

        return wait_for(enough, "enough samples", patience=60)

    def two_workers(self, way):
        """A daemon that is to be started, and the processes of a server of two."""
        daemon = self.daemon("accept")
        server = spawn(self.stack, *self.near.command(sys.executable, "-c", WORKERS, self.comm, way))
        children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children")
        wait_for(lambda: children.read_text(encoding="ascii").split(), "it has its second process")
        pids = [server.pid, int(children.read_text(encoding="ascii"))]
        self.stack.callback(os.kill, pids[1], signal.SIGKILL)
        wait_for(lambda: all(len(incoming_cpus(pid, True)) == 1 for pid in pids), "each has its own listener")
        return daemon, pids

    @staticmethod
    def told_of(pids):
        return [cpu for pid in pids for cpu in incoming_cpus(pid, True).values()]
