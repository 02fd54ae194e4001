# SPDX-License-Identifier: Apache-2.0
"""New connections go to the worker on whose lane they arrive. The witness is the server itself, which asks SO_INCOMING_CPU of each connection
and knows nothing of BPF; of servers of others it is bpftrace."""
import array
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from house import Namespace, Program, allowed, children, ip, policy, python, report, run, wait_for
from nets import Net
from reloads_test import HAPROXY, NGINX

# Two workers, each with a listener of its own; the answer says on which CPU the packets arrive and on which CPU they are read.
WORKERS = """import ctypes, os, socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
cpu = ctypes.CDLL(None).sched_getcpu
def listener(address=sys.argv[2]):
    one = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind((address, 7001))
    one.listen(int(sys.argv[4]))
    return one
number = int(sys.argv[3])
if sys.argv[5:]:  # each worker listens later, when it is told to
    for _ in range(number - 1):
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(1, 9)
            break
    os.read(0, 1)
    number = 1
mine, others = listener(), [listener() for _ in range(number - 1)]
for other in others:
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 9)  # it ends with its parent
        mine = other
        break
while True:
    one = mine.accept()[0]
    try:
        if one.recv(100):
            one.sendall(f"{os.getpid()} {one.getsockopt(socket.SOL_SOCKET, 49)} {cpu()}".encode())
    except OSError:
        pass
    one.close()
"""
# So many connections, one after the other (more than a million: until its input ends); then who answered how often, and how many were local and lost.
# Each is made on another CPU than the one before, as a packet of a veth pair arrives on the CPU of its sender.
CLIENT = """import collections, json, os, select, socket, sys
address, number, sent = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode().decode("unicode_escape").encode()
workers, local, lost = collections.Counter(), 0, 0
cpus = sorted(os.sched_getaffinity(0))
for i in range(number):
    if number > 1000000 and select.select([sys.stdin], [], [], 0)[0]: break
    try:
        os.sched_setaffinity(0, {cpus[i % len(cpus)]})
        with socket.create_connection((address, 7001), 20) as one:
            one.sendall(sent)
            words = one.recv(4096).decode().split()
            pid, arrived, read = words if len(words) == 3 else (words[0], "", "-")  # of another server
            workers[pid] += 1
            local += arrived == read
    except (OSError, IndexError):
        lost += 1
print(json.dumps({"workers": workers, "local": local, "lost": lost}))
"""
# Another program of type sk_lookup, which lets everything pass, in this network namespace until it ends. See bpf(2).
FOREIGN = """import ctypes, os, struct, sys
call, number = ctypes.CDLL(None, use_errno=True).syscall, {"x86_64": 321, "aarch64": 280}[os.uname().machine]
def bpf(command, text):
    made = call(number, command, ctypes.create_string_buffer(text, 128), 128)
    assert made >= 0, os.strerror(ctypes.get_errno())
    return made
code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 1, 0x95, 0, 0, 0))
license = ctypes.create_string_buffer(b"GPL")
program = bpf(5, struct.pack("<IIQQIIQII16sII", 30, 2, ctypes.addressof(code), ctypes.addressof(license), 0, 0, 0, 0, 0, b"foreign", 0, 36))
link = bpf(28, struct.pack("<III", program, os.open("/proc/self/ns/net", os.O_RDONLY), 36))
print("ready", flush=True)
sys.stdin.read()
"""
NUMBER = 1500
# So many clients at once, for so many seconds; how many connections were answered, and how many not within a second.
CROWD = """import json, os, socket, sys, threading, time
number, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
cpus = sorted(os.sched_getaffinity(0))
done, failed = [], []
def client(i):
    os.sched_setaffinity(0, {cpus[i % len(cpus)]})
    while time.monotonic() < end:
        try:
            with socket.create_connection(("10.99.0.1", 7001), 1) as one:
                one.sendall(b"x")
                (done if one.recv(4096) else failed).append(1)
        except OSError:
            failed.append(1)
threads = [threading.Thread(target=client, args=(i,)) for i in range(number)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps([len(done), len(failed)]))
"""
# Reads of a process and its children, by the CPU where the packet arrived and that of the read.
WITNESS = """BEGIN { printf("ready\\n"); }
tracepoint:tcp:tcp_rcv_space_adjust /pid == %d || curtask->real_parent->tgid == %d/ {
  $sk = (struct sock *)args->skaddr; @[$sk->__sk_common.skc_incoming_cpu == cpu] = count(); }"""
# A worker for each of so many sockets of UDP, which share a port; with a number more, one of these has a peer. A socket's filter cuts each datagram
# to 1 + CPU bytes where it arrives, so the answer says on which CPU that was, and on which one it is read.
DATAGRAMS = """import ctypes, os, socket, struct, sys
open("/proc/self/comm", "w").write(sys.argv[1])
cpu = ctypes.CDLL(None).sched_getcpu
code = ctypes.create_string_buffer(struct.pack("HBBI" * 3, 0x20, 0, 0, 0xfffff024, 0x04, 0, 0, 9, 0x16, 0, 0, 0))
def made():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HxxxxxxP", 3, ctypes.addressof(code)))
    one.bind((sys.argv[2], 7001))
    return one
mine, *others = [made() for _ in range(int(sys.argv[3]))]
if sys.argv[4:]:
    others.append(made())
    others[-1].connect(("10.99.0.2", int(sys.argv[4])))
for other in others:
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 9)  # it ends with its parent
        mine = other
        break
else:
    print("ready", flush=True)
while True:
    data, peer = mine.recvfrom(1000)
    mine.sendto(f"{os.getpid()} {len(data) - 1} {cpu()}".encode(), peer)
"""
# So many sockets of UDP, each on an address and a port of its own.
MANY_SOCKETS = """import resource, socket, sys, time
number = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (number + 100, number + 100))
kept = []
for i in range(number):
    kept.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    kept[-1].bind((f"127.1.{i // 200}.{i % 200 + 1}", 20000 + i))
print("ready", flush=True)
time.sleep(600)
"""
# So many datagrams, one after the other, each from another port (or from this one) and CPU; then as CLIENT says.
SENDER = """import collections, json, os, socket, sys
workers, local, lost = collections.Counter(), 0, 0
cpus = sorted(os.sched_getaffinity(0))
for i in range(int(sys.argv[1])):
    os.sched_setaffinity(0, {cpus[i % len(cpus)]})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("10.99.0.2", int(sys.argv[2])))
        one.settimeout(5)
        one.sendto(bytes(1000), ("10.99.0.1", 7001))
        try:
            pid, arrived, read = one.recv(100).decode().split()
            workers[pid] += 1
            local += arrived == read
        except OSError:
            lost += 1
print(json.dumps({"workers": workers, "local": local, "lost": lost}))
"""
# Listeners on so many other addresses of the same port.
MANY = """import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
many = [socket.socket() for _ in range(int(sys.argv[1]))]
for i, one in enumerate(many):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind((f"127.1.{i // 250}.{i % 250 + 1}", 7001))
    one.listen(1)
print("ready", flush=True)
time.sleep(600)
"""
# Opens listeners on so many other addresses of the same port again and again, some at once.
RESTLESS = """import os, resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
os.setuid(int(sys.argv[2]))
print("ready", flush=True)
i = 0
while True:
    many = [socket.socket() for _ in range(int(sys.argv[3]))]
    for one in many:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind((f"127.1.{i // 250 % 250}.{i % 250 + 1}", 7001))
        one.listen(1)
        i = (i + 1) % int(sys.argv[1])
    for one in many:
        one.close()
"""
# Asks one of them, which takes the connection and says nothing.
SILENT = """import socket
try:
    with socket.create_connection(("127.1.19.250", 7001), 5) as one:
        one.settimeout(1)
        one.sendall(b"x")
        print(one.recv(100))
except OSError as error:
    print(error)
"""
# The program that follows, with descriptors of another process as systemd hands them over: PID, descriptors and names, and "--".
HANDED = """import ctypes, os, sys
words = sys.argv[2:sys.argv.index("--")]
call, holder = ctypes.CDLL(None).syscall, os.pidfd_open(int(sys.argv[1]))
got = [call(438, holder, int(word), 0) for word in words[::2]]
for i, fd in enumerate([os.dup2(fd, 200 + i, False) for i, fd in enumerate(got)]):
    os.dup2(fd, 3 + i)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(got)), "LISTEN_FDNAMES": ":".join(words[1::2])}
os.execvp(sys.argv[sys.argv.index("--") + 1], sys.argv[sys.argv.index("--") + 1:])
"""


# So many processes of another user, each in namespaces of its own; they may listen there.
CROWDED = """import ctypes, os, signal, socket, sys
os.setuid(65534)
libc = ctypes.CDLL(None)
for _ in range(int(sys.argv[2])):
    told, tell = os.pipe()
    if os.fork() == 0:
        libc.prctl(1, 9)  # it ends with its parent
        assert libc.unshare(0x10000000 | 0x40000000) == 0  # a user and a network namespace
        libc.prctl(15, sys.argv[1].encode())
        many = [socket.socket() for _ in range(2 * len(sys.argv[3:]))]
        for one in many:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            one.bind(("0.0.0.0", 7001))
            one.listen(5)
        os.write(tell, b"x")
        signal.pause()
    os.close(tell)
    assert os.read(told, 1)
    os.close(told)
print("ready", flush=True)
signal.pause()
"""


class Store:
    """Stands for systemd with FileDescriptorStoreMax=: keeps descriptors by name, and hands them to the next process; `is_slow`: lets none go."""

    def __init__(self, path, is_slow=False):
        self.kept, self.path, self.is_slow = {}, path, is_slow
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            data, extra, _, _ = self.socket.recvmsg(4096, 4096)
            fds = array.array("i", b"".join(part[2] for part in extra))
            keys = dict(line.split("=", 1) for line in data.decode().splitlines() if "=" in line)
            name = keys.get("FDNAME", "")
            for old in self.kept.pop(name, []) if "FDSTOREREMOVE" in keys and not self.is_slow else []:
                os.close(old)
            if "FDSTORE" in keys:
                self.kept.setdefault(name, []).extend(fds)

    def words(self):
        """The beginning of the next process's command."""
        handed = [word for name, fds in self.kept.items() for fd in fds for word in (str(fd), name)]
        return ["env", f"NOTIFY_SOCKET={self.path}", *python(HANDED, str(os.getpid()), *handed), "--"]

    def end(self):
        for fds in self.kept.values():
            for fd in fds:
                os.close(fd)
        self.kept = {}


class Witness(Net):
    def witnessed(self, server, load):
        """The part of the reads of a server and its children that bpftrace sees on the CPU where the packet arrived, while load() runs."""
        here = pathlib.Path("/sys/kernel/tracing/events").exists()
        way = () if here else ("unshare", "--mount", "sh", "-c", 'mount -t tracefs nodev /sys/kernel/tracing && exec "$@"', "sh")
        tracer = self.spawn(*way, "bpftrace", "-f", "json", "-e", WITNESS % (server.pid, server.pid), stdout=-1, stderr=-1, text=True).process
        line = " "
        while line and "ready" not in line:
            line = tracer.stdout.readline()
        load()
        tracer.send_signal(signal.SIGINT)
        try:
            out, err = tracer.communicate(timeout=20)
        except subprocess.TimeoutExpired:  # bpftrace can miss one
            tracer.send_signal(signal.SIGINT)
            out, err = tracer.communicate(timeout=60)
        counts = next((json.loads(line)["data"]["@"] for line in out.splitlines() if '"map"' in line), {})
        self.assertGreater(sum(counts.values()), 500, out + err)
        return 100 * counts.get("1", 0) / sum(counts.values())


class Served(Witness):
    LONG = True
    KILLS = int(os.environ.get("AFFINITYD_KILLS", "5"))
    local = all = 0  # of all connections

    def begin(self, workers=2, steer="auto", address="10.99.0.1", backlog=256, later=False):
        nic = self.pair(queues=2)
        self.served = self.inside({"reconcile": "2s"}, web=policy("server", affinity="full", nics=[nic], spread="core", bind="core", steer=steer))
        words = (self.name("server"), address, str(workers), str(backlog), *(["later"] if later else []))
        self.server = self.spawn(*self.near.command(*python(WORKERS, *words)), **({"stdin": -1, "text": True} if later else {}))
        shown = "*" if address == "::" else address
        wait_for(lambda: later or f"{shown}:7001" in self.near.run("ss", "-Hltn"), "it listens")
        self.assertEqual([], [text for text in self.served.problems() if "steered" in text])
        return self.served

    def load(self, number=NUMBER, address="10.99.0.1"):
        seen = json.loads(self.far.run(*python(CLIENT, address, str(number), "x")))
        self.local, self.all = self.local + seen["local"], self.all + sum(seen["workers"].values())
        return seen

    def steered(self, listeners=2):
        """Clients come until the daemon steers so many listeners."""
        def are_known():
            self.load(60)
            return self.served.policy("web").get("steer", {}).get("listeners") == listeners
        wait_for(are_known, lambda: f"listeners are steered: {self.served.policy('web')} {self.served.problems()}")

    def clients(self):
        """Connections one after the other, until end_clients()."""
        return self.spawn(*self.far.command(*python(CLIENT, "10.99.0.1", "10000000", "x")), stdin=-1, stdout=-1, text=True)

    @staticmethod
    def end_clients(client):
        return json.loads(client.process.communicate("end", timeout=60)[0])

    @staticmethod
    def share(seen):
        return 100 * seen["local"] / max(1, sum(seen["workers"].values()))

    def links(self, inode=None):
        """Programs that are attached to the near namespace, or to another one."""
        inode = inode or os.stat(f"/run/netns/{self.near.name}").st_ino
        return [link for link in json.loads(run("bpftool", "link", "show", "-j").text or "[]") if link.get("netns_ino") == inode]

    @staticmethod
    def tables(pid):
        """The daemon's tables in the kernel."""
        found = set()
        for entry in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found |= set(map(int, re.findall(r"^map_id:\s*(\d+)$", entry.read_text(encoding="ascii"), re.MULTILINE)))
        return found

    @staticmethod
    def tables_left(tables):
        return tables & {one["id"] for one in json.loads(run("bpftool", "map", "show", "-j").text or "[]")}


class Steered(Served):
    def test_connections_go_to_the_worker_where_they_arrive(self):
        self.begin()
        self.steered()
        seen = self.load()
        self.assertEqual(0, seen["lost"])
        report(f"{self.share(seen):.1f} % of {NUMBER} connections were read where they arrive, steered")
        self.assertGreaterEqual(self.share(seen), 97)
        explained = self.served.explain(str(self.server.pid))
        self.assertEqual([7001], [listener["port"] for listener in explained["listeners"]])
        local = wait_for(lambda: (lambda now: now if now and now["samples"] > 0.98 * NUMBER else None)(self.served.policy("web").get("local")),
                         "all reads were counted")
        report(f"LOCAL is {100 * local['same']['cpu']:.1f} % of {local['samples']} reads, the witness has {100 * self.local / self.all:.1f} % of {self.all}")
        self.assertAlmostEqual(self.local / self.all, local["same"]["cpu"], delta=0.05)
        self.served.remove("web")
        wait_for(lambda: not self.links(), lambda: f"no program is left: {self.links()}")

    def test_a_listener_of_ipv6_gets_connections_of_ipv4_too(self):
        self.begin(address="::")
        for space, letter, host in ((self.near, "r", 1), (self.far, "t", 2)):
            space.ip("addr", "add", f"fd99::{host}/64", "dev", self.nic(f"{letter}0x"), "nodad")
        self.steered()
        for address in ("10.99.0.1", "fd99::1"):
            seen = self.load(300, address)
            self.assertEqual(0, seen["lost"])
            self.assertGreaterEqual(self.share(seen), 97, address)
        stranger = self.spawn(*self.near.command(*python(WORKERS, self.name("stranger"), "0.0.0.0", "1", "256")))
        wait_for(lambda: "0.0.0.0:7001" in self.near.run("ss", "-Hltn"), "the other program listens")
        self.assertEqual({str(stranger.pid): 300}, self.load(300)["workers"])
        self.assertGreaterEqual(self.share(self.load(300, "fd99::1")), 97)

    def test_without_steering_half_of_the_connections_are_read_where_they_arrive(self):
        self.begin(steer="none")
        wait_for(lambda: {allowed(pid) for pid in (self.server.pid, *children(self.server.pid))} == {"0", "1"}, "the workers are placed")
        seen = self.load()
        report(f"{self.share(seen):.1f} % without steering")
        self.assertLess(self.share(seen), 80)
        self.assertFalse(self.links())

    def test_nothing_is_left_after_kill_9_and_no_connection_is_lost(self):
        daemon = self.begin()
        self.steered()
        self.assertTrue(self.links())
        client = self.clients()
        for _ in range(self.KILLS):
            tables = self.tables(daemon.process.pid)
            self.assertTrue(self.tables_left(tables))
            daemon.kill()
            wait_for(lambda: not self.links() and not self.tables_left(tables), "no program and no table is left")
            daemon.start()
            wait_for(self.links, "it steers again")
        seen = self.end_clients(client)
        report(f"{seen['lost']} of {sum(seen['workers'].values())} connections lost over {self.KILLS} kill -9, {self.share(seen):.1f} % local meanwhile")
        self.assertEqual(0, seen["lost"])

    def test_systemd_keeps_steering_in_force_while_the_daemon_is_restarted(self):
        store = Store(self.bin / "notify")
        self.stack.callback(store.end)
        inside = self.near.command()
        self.near.command = lambda *words: [*inside, *words] if words else [*inside, *store.words()]
        daemon = self.begin()
        del self.near.command
        self.steered()
        time.sleep(2)  # a server younger than that would settle once more
        first = {link["id"] for link in self.links()}
        client = self.clients()
        for _ in range(2):
            daemon.kill()
            for _ in range(5):
                self.assertTrue(self.links())
                time.sleep(0.05)
            daemon.namespace = [*inside, *store.words()]
            daemon.start()
            wait_for(lambda: len(self.links()) == 1 and not first & {link["id"] for link in self.links()}, lambda: f"the new daemon's alone is in force: {self.links()}")
            first |= {link["id"] for link in self.links()}
        seen = self.end_clients(client)
        report(f"{seen['lost']} of {sum(seen['workers'].values())} connections lost over two restarts with descriptors kept, {self.share(seen):.1f} % local meanwhile")
        self.assertEqual(0, seen["lost"])
        self.assertGreaterEqual(self.share(seen), 97)
        daemon.stop()
        store.end()  # as systemd does when the unit stops
        wait_for(lambda: not self.links(), lambda: f"nothing is left: {self.links()}")

    def test_a_server_that_comes_again_is_steered_however_slow_systemd_is(self):
        store = Store(self.bin / "notify", is_slow=True)
        self.stack.callback(store.end)
        inside = self.near.command()
        self.near.command = lambda *words: [*inside, *words] if words else [*inside, *store.words()]
        daemon = self.begin()
        del self.near.command
        self.steered()
        text = (daemon.policies / "web.yaml").read_text(encoding="utf-8")
        daemon.remove("web")
        wait_for(lambda: not self.links(), lambda: f"the program has ended: {self.links()}")
        daemon.write("web", text)
        wait_for(lambda: daemon.status()["policies"], "the policy is in force again")
        self.steered()
        self.assertGreaterEqual(self.share(self.load(300)), 97)

    def test_a_more_specific_listener_gets_all_of_its_connections(self):
        self.begin(address="0.0.0.0")
        self.steered()
        stranger = self.spawn(*self.near.command(*python(WORKERS, self.name("stranger"), "10.99.0.1", "1", "256")))
        wait_for(lambda: "10.99.0.1:7001" in self.near.run("ss", "-Hltn"), "the other program listens")
        seen = self.load(300)
        self.assertEqual({str(stranger.pid): 300}, seen["workers"])

    def neighbour(self, user, addresses, at_once):
        self.near.ip("link", "set", "lo", "up")
        neighbour = self.spawn(*self.near.command(*python(RESTLESS, str(addresses), user, str(at_once))), stdout=-1, text=True)
        self.assertEqual("ready\n", neighbour.process.stdout.readline())
        return neighbour

    def restless(self, user, addresses=1, at_once=1):
        neighbour = self.neighbour(user, addresses, at_once)
        seen = self.load()
        report(f"{self.share(seen):.1f} % beside a neighbour of user {user} that listens again and again on {addresses} addresses")
        self.assertIsNone(neighbour.process.poll())
        self.assertEqual(0, seen["lost"])
        self.assertGreaterEqual(self.share(seen), 97)

    def test_another_user_who_listens_again_and_again_does_not_keep_it_from_being_steered(self):
        self.begin()
        self.steered()
        self.restless("65534")

    def test_its_own_user_who_listens_again_and_again_on_a_more_specific_address_does_not_keep_it_from_being_steered(self):
        self.begin(address="0.0.0.0")
        self.steered()
        self.restless("0")

    def test_one_who_listens_on_ever_other_addresses_does_not_keep_it_from_being_steered(self):
        self.begin(address="0.0.0.0")
        self.steered()
        self.restless("0", 60000, 20)

    def test_where_it_leaves_no_room_that_is_said(self):
        daemon = self.begin(address="0.0.0.0")
        self.steered()
        self.neighbour("0", 60000, 6000)
        wait_for(lambda: any("more addresses than can be noted" in text for text in daemon.problems()), lambda: f"that is said: {daemon.problems()}")
        self.assertEqual(0, self.load(300)["lost"])

    def test_one_namespace_leaves_the_others_their_room(self):
        daemon = self.begin(address="0.0.0.0")
        self.steered()
        other = Namespace(self.stack, f"affinity-other-{self.mark}")
        for space in (self.near, other):
            space.ip("link", "set", "lo", "up")
        self.spawn(*other.command(*python(WORKERS, self.name("server"), "0.0.0.0", "2", "256")))
        inode = os.stat(f"/run/netns/{other.name}").st_ino
        wait_for(lambda: self.links(inode), "the other one is steered")
        for space, number in ((other, "3900"), (self.near, "400")):
            crowd = self.spawn(*space.command(*python(MANY, number)), stdout=-1, text=True)
            self.assertEqual("ready\n", crowd.process.stdout.readline())
            if space is other:
                wait_for(lambda: any(f"(network namespace {inode})" in text for text in daemon.problems()), daemon.problems)
            time.sleep(6)  # all namespaces were looked at
        told = [text for text in daemon.problems() if "network namespace" in text]
        self.assertEqual([True], [f"(network namespace {inode})" in text and "addresses of a namespace" in text for text in told], told)
        self.assertGreaterEqual(self.share(self.load(500)), 97)

    def test_listeners_that_are_opened_later_are_steered(self):
        self.begin(later=True)
        wait_for(lambda: {allowed(pid) for pid in (self.server.pid, *children(self.server.pid))} == {"0", "1"}, "the workers are placed")
        time.sleep(5)  # its descriptors are gone through no more
        self.server.process.stdin.write("go")
        self.server.process.stdin.flush()
        wait_for(lambda: self.near.run("ss", "-Hltn").count("10.99.0.1:7001") == 2, "its workers listen")
        self.steered()

    def test_a_namespace_that_ends_while_its_server_is_steered(self):
        nic = self.pair(queues=2)
        daemon = self.inside({"reconcile": "1s"}, web=policy("server", affinity="full", nics=[nic], spread="core", bind="core"))
        other = Namespace(self.stack, f"affinity-other-{self.mark}")
        other.ip("link", "set", "lo", "up")
        self.spawn(*other.command(*python(WORKERS, self.name("server"), "127.0.0.1", "2", "256")))
        wait_for(lambda: "127.0.0.1:7001" in other.run("ss", "-Hltn"), "it listens")

        def are_known():
            other.run(*python(CLIENT, "127.0.0.1", "60", "x"))
            return daemon.policy("web").get("steer", {}).get("listeners") == 2
        wait_for(are_known, lambda: f"listeners are steered: {daemon.policy('web')} {daemon.problems()}")
        inode = os.stat(f"/run/netns/{other.name}").st_ino
        self.assertTrue(self.links(inode))
        for pid in map(int, run("ip", "netns", "pids", other.name).out.split()):
            os.kill(pid, signal.SIGKILL)
        ip("netns", "delete", other.name)
        wait_for(lambda: not self.links(inode) and "steer" not in daemon.policy("web"), lambda: f"nothing is left: {self.links(inode)} {daemon.policy('web')}")
        self.assertEqual([], [text for text in daemon.problems() if "steered" in text])

    def test_a_namespace_that_starts_again_under_the_same_number_is_steered_again(self):
        """As a container's may that is restarted: the kernel gives the number to the next one."""
        nic = self.pair(queues=2)
        daemon = self.inside({"reconcile": "1s"}, web=policy("server", affinity="full", nics=[nic], spread="core", bind="core"))
        inodes = []
        self.stack.callback(os.kill, daemon.process.pid, signal.SIGCONT)
        for turn in range(2):
            with contextlib.ExitStack() as stack:
                end = time.monotonic() + 200  # another test may have the number of the first for as long as it lasts
                other = Namespace(stack, f"affinity-other-{self.mark}")
                while turn == 1 and os.stat(f"/run/netns/{other.name}").st_ino != inodes[0] and time.monotonic() < end:
                    stack.close()
                    time.sleep(0.05)
                    other = Namespace(stack, f"affinity-other-{self.mark}")
                inodes.append(os.stat(f"/run/netns/{other.name}").st_ino)
                other.ip("link", "set", "lo", "up")
                server = Program(stack, other.command(*python(WORKERS, self.name("server"), "127.0.0.1", "2", "256")))
                wait_for(lambda: other.run("ss", "-Hltn").count("127.0.0.1:7001") == 2, "it listens")
                os.kill(daemon.process.pid, signal.SIGCONT)
                wait_for(lambda: self.links(inodes[0]), lambda: f"it is steered: {daemon.policy('web')} {daemon.problems()}", 90)
                if not turn:  # the daemon never sees the number unused
                    os.kill(daemon.process.pid, signal.SIGSTOP)
        self.assertEqual(1, len(set(inodes)))

    def test_a_program_kept_for_a_namespace_that_nobody_steers_any_more_is_dropped(self):
        store = Store(self.bin / "notify")
        self.stack.callback(store.end)
        inside = self.near.command()
        self.near.command = lambda *words: [*inside, *words] if words else [*inside, *store.words()]
        daemon = self.begin()
        del self.near.command
        self.steered()
        daemon.kill()
        daemon.write("web", policy("server", affinity="full", nics=[self.nic("r0x")], spread="core", bind="core", steer="none"))
        self.assertTrue(self.links())
        daemon.namespace = [*inside, *store.words()]
        daemon.start()
        wait_for(lambda: not self.links(), lambda: f"nothing steers: {self.links()}", 20)
        daemon.stop()

    def test_a_single_listener_is_left_alone_and_that_is_said(self):
        daemon = self.begin(workers=1)

        def is_said():
            self.load(20)
            return any(group["why"].startswith("no other one shares the address") for group in daemon.policy("web").get("steer", {}).get("left", []))
        wait_for(is_said, lambda: f"that is said: {daemon.policy('web')}")


class Servers(Served):
    """Servers of HTTP, of datagrams, and PostgreSQL; limits."""

    def serve_http(self, *command):
        nic = self.pair(queues=2)
        keys = {"affinity": "full", "nics": [nic], "spread": "core", "bind": "core"}
        daemon = self.inside({"reconcile": "2s"}, web=policy("server", **keys, steer="none"))
        server = self.spawn(*self.near.command(*command))
        wait_for(lambda: "10.99.0.1:7001" in self.near.run("ss", "-Hltn"), "it listens")
        request = "GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"

        def load(number=NUMBER):
            self.assertEqual(0, json.loads(self.far.run(*python(CLIENT, "10.99.0.1", str(number), request)))["lost"])
        wait_for(lambda: {allowed(pid, tid) for pid in (server.pid, *children(server.pid)) for tid in map(int, os.listdir(f"/proc/{pid}/task"))} >= {"0", "1"},
                 "the workers are placed")
        without = self.witnessed(server, load)
        daemon.write("web", policy("server", **keys))

        def is_steered():
            load(60)
            return daemon.policy("web").get("steer", {}).get("listeners") == 2
        wait_for(is_steered, lambda: f"listeners are steered: {daemon.policy('web')} {daemon.problems()}")
        steered = self.witnessed(server, load)
        report(f"{pathlib.Path(command[0]).name.split('.')[0]} {self._testMethodName}: bpftrace sees {steered:.1f} % of reads where packets arrive, {without:.1f} % without steering")
        self.assertGreaterEqual(steered, 95)
        self.assertLess(without, 80)

    def test_nginx_reads_where_packets_arrive(self):
        path = self.bin / "nginx.conf"
        path.write_text(NGINX.format(folder=self.bin, reuseport=" reuseport"), encoding="utf-8")
        self.bin.chmod(0o755)
        self.serve_http(self.copy_of("/usr/sbin/nginx", "server"), "-p", self.bin, "-c", path)

    def test_haproxy_reads_where_packets_arrive(self):
        path = self.bin / "haproxy.cfg"
        path.write_text(HAPROXY.format(folder=self.bin, threads=2, shards=" shards by-thread"), encoding="utf-8")
        self.serve_http(self.copy_of("/usr/sbin/haproxy", "server"), "-f", path)

    def begin_datagrams(self, steer, address="10.99.0.1", *peer):
        nic = self.pair(queues=2)
        self.keys = {"affinity": "full", "nics": [nic], "spread": "core", "bind": "core"}
        self.served = self.inside({"reconcile": "2s"}, web=policy("server", **self.keys, steer=steer))
        self.server = self.spawn(*self.near.command(*python(DATAGRAMS, self.name("server"), address, "2", *peer)), stdout=-1, text=True)
        self.assertEqual("ready\n", self.server.process.stdout.readline())
        return self.served

    def send(self, number=NUMBER, port=0):
        return json.loads(self.far.run(*python(SENDER, str(number), str(port))))

    def left(self, answer):
        return {one["why"]: one["listeners"] for one in answer}

    def datagrams_steered(self):
        """Datagrams come until the daemon steers two sockets. False: the kernel does not tell who reads them, and that is said."""
        def are_known():
            self.send(60)
            steer = self.served.policy("web").get("steer", {})
            untold = any("does not tell which task reads" in why for why in self.left(steer.get("left", [])))
            return "untold" if untold else "steered" if steer.get("listeners") == 2 else None
        return wait_for(are_known, lambda: f"sockets are steered: {self.served.policy('web')} {self.served.problems()}") == "steered"

    def test_datagrams_go_to_the_worker_where_they_arrive(self):
        """With `steer: accept` only. A socket with a peer keeps what this one sends."""
        daemon = self.begin_datagrams("auto", "10.99.0.1", "7002")
        why = "UDP is steered only where the policy says steer: accept"
        wait_for(lambda: self.left(daemon.policy("web").get("steer", {}).get("left", [])) == {why: 2}, lambda: f"that is said: {daemon.policy('web')}")
        self.assertEqual({why: 2}, self.left(daemon.explain(str(self.server.pid))["not_steered"]))
        workers = wait_for(lambda: (lambda pids: pids if len(pids) == 2 else None)(children(self.server.pid)), "it has its workers")
        wait_for(lambda: {allowed(pid) for pid in (self.server.pid, *workers)} == {"0", "1"}, "the workers are placed")
        without = self.send()
        self.assertLess(self.share(without), 80)
        daemon.write("web", policy("server", **self.keys, steer="accept"))
        if not self.datagrams_steered():
            return
        seen = self.send()
        report(f"{self.share(seen):.1f} % of {NUMBER} datagrams were read where they arrive, steered, {self.share(without):.1f} % without")
        self.assertEqual(0, seen["lost"])
        self.assertGreaterEqual(self.share(seen), 97)
        self.assertEqual({str(workers[-1]): 100}, self.send(100, 7002)["workers"])
        explained = daemon.explain(str(self.server.pid))
        self.assertEqual([(7001, "udp")], [(one["port"], one["protocol"]) for one in explained["listeners"]])
        self.assertGreaterEqual(explained["handed_datagrams"]["to_lane"], 0.97 * NUMBER)
        daemon.remove("web")
        wait_for(lambda: not self.links(), lambda: f"no program is left: {self.links()}")
        self.assertEqual(0, self.send(100)["lost"])

    def test_among_more_sockets_of_udp_than_are_listed_the_kernel_chooses(self):
        """The kernel lists them slowly, and any user may open them."""
        self.near.ip("link", "set", "lo", "up")
        crowd = self.spawn(*self.near.command(*python(MANY_SOCKETS, "8000")), stdout=-1, text=True)
        self.assertEqual("ready\n", crowd.process.stdout.readline())
        daemon = self.begin_datagrams("accept", "0.0.0.0")

        def is_told():
            self.send(60)
            left = self.left(daemon.policy("web").get("steer", {}).get("left", []))
            return any("not all sockets of other programs" in text for text in daemon.problems()) or any("does not tell which task" in why for why in left)
        wait_for(is_told, lambda: f"that is said: {daemon.policy('web')} {daemon.problems()}")
        self.assertEqual(0, self.send(100)["lost"])
        crowd.end()
        wait_for(self.datagrams_steered, "there is room again")

    def test_a_more_specific_socket_gets_all_of_its_datagrams(self):
        self.begin_datagrams("accept", "0.0.0.0")
        if not self.datagrams_steered():
            return
        stranger = self.spawn(*self.near.command(*python(DATAGRAMS, self.name("stranger"), "10.99.0.1", "1")), stdout=-1, text=True)
        self.assertEqual("ready\n", stranger.process.stdout.readline())
        wait_for(lambda: self.send(20)["workers"] == {str(stranger.pid): 20}, "the daemon has seen the other socket")
        self.assertEqual({str(stranger.pid): 300}, self.send(300)["workers"])
        stranger.end()
        wait_for(self.datagrams_steered, "they are steered again")
        self.assertEqual(0, self.send(100)["lost"])

    def test_more_listeners_than_there_is_room_for(self):
        daemon = self.begin(address="0.0.0.0")
        self.steered()
        self.near.ip("link", "set", "lo", "up")
        crowd = self.spawn(*self.near.command(*python(MANY, "5000")), stdout=-1, text=True)
        self.assertEqual("ready\n", crowd.process.stdout.readline())
        wait_for(lambda: any("no room for all addresses of other programs" in text for text in daemon.problems()), lambda: f"that is said: {daemon.policy('web')} {daemon.problems()}")
        self.assertEqual(0, self.load(500)["lost"])
        self.assertEqual("timed out", self.near.run(*python(SILENT)))  # the server would answer
        crowd.end()
        wait_for(lambda: not any("no room" in text for text in daemon.problems()), lambda: f"there is room again: {daemon.problems()}")
        self.steered()

    def test_where_bpf_is_not_allowed_workers_have_the_cache_group(self):
        nic = self.pair(queues=2)
        keys = {"affinity": "full", "nics": [nic], "spread": "core", "bind": "core"}
        daemon = self.daemon({"reconcile": "1s"}, namespace=[*self.near.command(), "setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin"], web=policy("server", **keys))
        server = self.spawn(*self.near.command(*python(WORKERS, self.name("server"), "10.99.0.1", "2", "256")))
        wait_for(lambda: any("does not allow BPF" in text for text in daemon.problems()) and any("widened to the cache group" in text for text in daemon.problems()),
                 lambda: f"both are said: {daemon.problems()}")
        pids = (server.pid, *wait_for(lambda: children(server.pid), "it has two workers"))
        group = run("cat", "/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list").out.strip() or self.everywhere
        for pid in pids:
            self.expect(pid, group)
        daemon.write("web", policy("server", **keys, steer="none"))
        wait_for(lambda: {allowed(pid) for pid in pids} == {"0", "1"}, lambda: f"steer: none leaves the policy's own: {[allowed(pid) for pid in pids]}")

    def test_where_another_program_steers_workers_have_the_cache_group(self):
        nic = self.pair(queues=2)
        foreign = self.spawn(*self.near.command(*python(FOREIGN)), stdin=-1, stdout=-1, text=True)
        self.assertEqual("ready\n", foreign.process.stdout.readline())
        daemon = self.inside({"reconcile": "1s"}, web=policy("server", affinity="full", nics=[nic], spread="core", bind="core"))
        server = self.spawn(*self.near.command(*python(WORKERS, self.name("server"), "10.99.0.1", "2", "256")))
        pids = wait_for(lambda: children(server.pid), "it has two workers") + [server.pid]
        wait_for(lambda: all(any(words in text for text in daemon.problems()) for words in ("another sk_lookup program", "widened to the cache group")),
                 lambda: f"both are said: {daemon.problems()}")
        group = run("cat", "/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list").out.strip() or self.everywhere
        for pid in pids:
            self.expect(pid, group)

    def test_postgresql_processes_go_to_where_packets_arrive(self):
        data, title = self.bin / "data", self.name("pg")
        self.bin.chmod(0o755)
        data.mkdir()
        shutil.chown(data, "postgres")
        programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        mine = ("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups")
        run(*mine, programs / "initdb", "-D", data, "-A", "trust", "-N", code=0)
        with (data / "pg_hba.conf").open("a", encoding="ascii") as rules:
            rules.write("host all all 10.99.0.2/32 trust\n")
        nic = self.pair(queues=2)
        keys = {"match": {"cmdline": f"*{title}*"}, "affinity": "full", "nics": [nic], "spread": "core", "bind": "core"}
        daemon = self.inside({"reconcile": "1s"}, web=policy(None, **keys, steer="none"))
        options = [word for key, value in {"listen_addresses": "10.99.0.1", "port": "7001", "unix_socket_directories": data, "cluster_name": title, "fsync": "off"}.items()
                   for word in ("-c", f"{key}={value}")]
        server = self.spawn(*self.near.command(*mine, programs / "postgres", "-D", data, *options))
        self.stack.callback(server.process.wait, 60)  # killed, it would leave shared memory behind
        self.stack.callback(server.process.send_signal, signal.SIGINT)
        wait_for(lambda: "10.99.0.1:7001" in self.near.run("ss", "-Hltn"), "it listens")
        (self.bin / "one.sql").write_text("select 1;\n", encoding="ascii")
        for cpu in ("0", "1"):  # packets of a veth pair arrive where they are sent
            self.spawn(*self.far.command("taskset", "-c", cpu, "pgbench", "-n", "-c", "6", "-j", "1", "-R", "300", "-T", "600", "-f", self.bin / "one.sql",
                                         "-h", "10.99.0.1", "-p", "7001", "-U", "postgres", "postgres"))

        def sessions():
            return [pid for pid in children(server.pid) if "10.99.0.2" in pathlib.Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")]
        wait_for(lambda: len(sessions()) == 12 and {allowed(pid) for pid in sessions()} == {"0", "1"}, "the sessions are placed")
        without = self.witnessed(server, lambda: time.sleep(6))
        daemon.write("web", policy(None, **keys, steer="tasks"))

        def are_there():
            states = {one["is_there"]: one["tasks"] for one in daemon.policy("web").get("at_arrivals", [])}
            return states.get(True, 0) >= 12
        wait_for(are_there, lambda: f"they are where their packets arrive: {daemon.policy('web')}")
        steered = self.witnessed(server, lambda: time.sleep(6))
        report(f"PostgreSQL: bpftrace sees {steered:.1f} % of reads where packets arrive, {without:.1f} % without steering")
        self.assertGreaterEqual(steered, 90)  # chance alone may have all of so few sessions in place

    def test_a_worker_that_stands_still_is_passed_over(self):
        seen = {}
        for steer in ("none", "auto"):
            if seen:
                self.fresh()
                Net.setUp(self)
            self.begin(steer=steer, backlog=8)
            if steer == "auto":
                self.steered()
            worker = wait_for(lambda: children(self.server.pid), "there is a worker")[0]
            os.kill(worker, signal.SIGSTOP)
            seen[steer] = json.loads(self.far.run(*python(CROWD, "24", "3")))
            os.kill(worker, signal.SIGCONT)
        report(f"a worker that stands still: {seen['auto']} connections answered and failed, {seen['none']} without steering")
        part = {steer: failed / (answered + failed) for steer, (answered, failed) in seen.items()}
        self.assertLess(part["auto"], part["none"] / 2)


class ManyNamespaces(Witness):
    """They are cheap for any user."""
    ALONE = True
    PLAIN = True  # it measures how soon the daemon answers
    NUMBER = int(os.environ.get("AFFINITYD_NAMESPACES", "300"))

    def crowd(self, number, listens):
        """A daemon, and so many processes of one user in a network namespace each, of which a pass learns. The daemon answers as without
        them, or within two seconds."""
        nic = self.pair(queues=2)
        hasty = [*self.near.command(), "nice", "-n", "-15"]  # the load of other tests does not matter here
        daemon = self.inside({"reconcile": "1h"}, hasty, web=policy("server", affinity="full", nics=[nic], spread="core", bind="core"))
        alone = self.longest_answer(daemon, 5)
        crowd = self.spawn(*self.near.command(*python(CROWDED, self.name("server"), str(number), *(["listens"] if listens else []))), stdout=-1, text=True)
        self.assertEqual("ready\n", crowd.process.stdout.readline())
        longest = self.longest_answer(daemon, 10)
        report(f"{number} namespaces with{'' if listens else 'out'} listeners: the daemon answered after {longest * 1000:.0f} ms at the latest, "
               f"{alone * 1000:.0f} ms without them")
        self.assertLess(longest, max(2, 10 * alone))
        return daemon

    @staticmethod
    def longest_answer(daemon, seconds):
        """In seconds, from the begin of a pass on."""
        longest, end = 0.0, time.monotonic() + seconds
        for words in (("apply",), *[("nics",)] * 1000):
            asked = time.monotonic()
            daemon.ctl(*words)
            longest = max(longest, time.monotonic() - asked)
            if asked > end:
                break
        return longest

    def test_namespaces_without_listeners_hold_nobody_up(self):
        self.crowd(self.NUMBER, listens=False)

    def test_of_one_user_some_are_steered_and_that_is_said(self):
        daemon = self.crowd(80, listens=True)
        wait_for(lambda: any("16 network namespaces are not steered: at most 256 are, and 64 of one user" in text for text in daemon.problems()),
                 lambda: f"that is said: {daemon.problems()}")
