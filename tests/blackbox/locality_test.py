# SPDX-License-Identifier: Apache-2.0
"""affinityctl locality against bpftrace, which counts the same reads without our program: two workers with listeners of their own and
their clients, over a veth pair between two network namespaces that the test makes. Where the kernel allows no BPF, the sampling of
sockets is tested alone."""
import collections
import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from house import PROGRAMS, House, Namespace, ip, policy, run, wait_for

HOSTILE = "w\x1b[31m)\n("
# Two workers, each with its own listener, that answer each request; the first argument says on which CPU each runs.
SERVER = """import os, select, socket, sys
open("/proc/self/comm", "w").write(sys.argv[4])
os.sched_setaffinity(0, {int(sys.argv[1])})
listener = socket.socket(int(sys.argv[5]))
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
listener.bind((sys.argv[2], int(sys.argv[3])))
listener.listen(64)
poll = select.epoll()
poll.register(listener, select.EPOLLIN)
known = {}
while True:
    for number, _ in poll.poll():
        if number == listener.fileno():
            peer = listener.accept()[0]
            known[peer.fileno()] = peer
            poll.register(peer, select.EPOLLIN)
            continue
        try:
            data = known[number].recv(65536)
        except OSError:
            data = b""
        if not data:
            known.pop(number).close()
        elif data == b"rename":
            open("/proc/self/comm", "w").write("renamed")
            known[number].sendall(b"x")
        else:
            known[number].sendall(b"x")
"""
# Connections that ask in turn, so many times each, at once or slowly.
CLIENT = """import socket, sys, time
peers = [socket.create_connection((sys.argv[1], 7001), 5) for _ in range(int(sys.argv[2]))]
word = sys.argv[5].encode()
print("connected", flush=True)
for _ in range(int(sys.argv[3])):
    for peer in peers:
        peer.sendall(word)
    for peer in peers:
        peer.recv(1)
    time.sleep(float(sys.argv[4]))
print("done", flush=True)
sys.stdin.read()
"""
# A connected and an unconnected UDP socket of one process.
DATAGRAMS = """import socket, sys
open_one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
open_one.bind((sys.argv[1], 7002))
bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
bound.bind((sys.argv[1], 7003))
bound.connect((sys.argv[2], 7003))
print("ready", flush=True)
while True:
    open_one.recv(100)
    bound.recv(100)
"""
SENDER = """import socket, sys
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind((sys.argv[2], 7003))
for _ in range(300):
    one.sendto(b"x", (sys.argv[1], 7002))
    one.sendto(b"x", (sys.argv[1], 7003))
"""
WITNESS = """BEGIN { printf("ready\\n"); }
tracepoint:tcp:tcp_rcv_space_adjust /pid == %d || pid == %d/ {
  $sk = (struct sock *)args->skaddr; @[pid, $sk->__sk_common.skc_incoming_cpu == cpu] = count(); }"""
CPUS = sorted(os.sched_getaffinity(0))


def locality(*words, code=0, way=()):
    done = subprocess.run([*way, PROGRAMS["affinityctl"], "locality", *words], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == code, f"locality {words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@functools.cache
def is_bpf_allowed():
    return run(PROGRAMS["affinityctl"], "locality", "--for", "100ms", "--json").code == 0


def holds_programs(pid):
    """True: affinityctl has attached both of its programs, or the only one."""
    links = []
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(os.readlink(entry))
    # Not the library, which the loader has open for a moment.
    return any(link.startswith("anon_inode:") and "bpf" in link and "prog" not in link and "map" not in link for link in links)


class Locality(House):
    def setUp(self):
        is_bpf_allowed()  # asked once, and not while something is watched
        super().setUp()
        self.near, self.far = (Namespace(self.stack, f"affinity-{side}-{self.mark}") for side in ("near", "far"))
        self.nic = f"a{self.mark}l"
        ip("link", "add", self.nic, "netns", self.near.name, "type", "veth", "peer", "name", f"a{self.mark}f", "netns", self.far.name)
        for space, name, host in ((self.near, self.nic, 1), (self.far, f"a{self.mark}f", 2)):
            space.ip("address", "add", f"10.79.0.{host}/24", "dev", name)
            space.ip("address", "add", f"fd79::{host}/64", "dev", name, "nodad")
            for link in (name, "lo"):
                space.ip("link", "set", link, "up")

    def begin(self, *command, **options):
        return self.spawn(*command, **options).process

    def workers(self, family=2, name=HOSTILE):
        address = {2: "10.79.0.1", 10: "fd79::1"}[family]
        started = [self.begin(*self.near.command(sys.executable, "-c", SERVER, str(CPUS[i % len(CPUS)]), address, "7001", name, str(family)))
                   for i in range(2)]
        wait_for(lambda: self.near.run("ss", "-Hltn").count(":7001") == 2, "the workers listen")
        return started

    def client(self, connections, rounds, pause=0.0, address="10.79.0.1", word="x"):
        words = (address, str(connections), str(rounds), str(pause), word)
        client = self.begin(*self.far.command(sys.executable, "-c", CLIENT, *words), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       text=True)
        self.assertEqual("connected\n", client.stdout.readline())
        return client

    def start(self, *words, way=()):
        return self.begin(*way, PROGRAMS["affinityctl"], "locality", *words, "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def await_watching(watching):
        """Waits until affinityctl has found its subject."""
        if is_bpf_allowed():
            wait_for(lambda: holds_programs(watching.pid), "affinityctl counts")
        else:
            wait_for(lambda: "sigtimedwait" in pathlib.Path(f"/proc/{watching.pid}/wchan").read_text(encoding="ascii"), "it waits between two looks")

    def finish(self, watching):
        out, err = watching.communicate(timeout=90)
        self.assertEqual(0, watching.returncode, out + err)
        return json.loads(out)

    def witness(self, pids):
        """bpftrace, which has begun to count."""
        here = pathlib.Path("/sys/kernel/tracing/events").exists()
        way = () if here else ("unshare", "--mount", "sh", "-c", 'mount -t tracefs nodev /sys/kernel/tracing && exec "$@"', "sh")
        tracer = self.begin(*way, "bpftrace", "-f", "json", "-e", WITNESS % tuple(pids), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True)
        line = ""
        while "ready" not in line:
            line = tracer.stdout.readline()
            self.assertNotEqual("", line, "bpftrace did not begin")
        return tracer

    def witnessed(self, tracer):
        """{(pid, whether on the same CPU): reads}"""
        tracer.send_signal(2)
        out, err = tracer.communicate(timeout=60)
        counts = collections.Counter()
        for line in out.splitlines():
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if value.get("type") == "map":
                    for key, number in value["data"]["@"].items():
                        pid, same = key.split(",")
                        counts[int(pid), same.strip() == "1"] = number
        self.assertTrue(counts, err)
        return counts

    def compare(self, family):
        workers = self.workers(family)
        pids = [worker.pid for worker in workers]
        client = None
        watching = self.start("--for", "60s")
        wait_for(lambda: holds_programs(watching.pid), "affinityctl counts")
        tracer = self.witness(pids)
        client = self.client(20, 700, address={2: "10.79.0.1", 10: "fd79::1"}[family])
        self.assertEqual("done\n", client.stdout.readline())
        theirs = self.witnessed(tracer)
        watching.send_signal(signal.SIGINT)
        ours = self.finish(watching)
        self.assertEqual(0, ours["lost"])
        everything = sum(theirs.values())
        self.assertGreater(everything, 10000)
        for pid in pids:
            [process] = [one for one in ours["processes"] if one["pid"] == pid]
            self.assertEqual(HOSTILE.replace("\n", ""), process["name"].replace("\n", ""))
            reads = theirs[pid, True] + theirs[pid, False]
            if reads > 500:
                self.assertAlmostEqual(theirs[pid, True] / reads, process["same"]["cpu"], delta=0.02)
                self.assertAlmostEqual(1, process["reads"] / reads, delta=0.02)
            raw = [count for count in ours["counts"] if count["pid"] == pid]
            self.assertEqual(process["reads"], sum(count["reads"] for count in raw))
            local = sum(count["reads"] for count in raw if count["arrival"] == count["cpu"])
            self.assertAlmostEqual(local / max(process["reads"], 1), process["same"]["cpu"] if process["same"] else 0, delta=0.001)
        counted = [one for one in ours["processes"] if one["pid"] in pids]
        same = sum(one["same"]["cpu"] * one["reads"] for one in counted if one["same"]) / sum(one["reads"] for one in counted)
        wanted = (theirs[pids[0], True] + theirs[pids[1], True]) / everything
        print(f"measured: of {everything} reads bpftrace has {wanted:.4f} on the CPU of arrival, affinityctl {same:.4f}")
        self.assertAlmostEqual(wanted, same, delta=0.02)

    def test_it_agrees_with_bpftrace(self):
        if not is_bpf_allowed():
            self.skipTest("BPF is not allowed here")
        self.compare(2)

    def test_it_agrees_with_bpftrace_over_ipv6(self):
        if not is_bpf_allowed():
            self.skipTest("BPF is not allowed here")
        self.compare(10)

    def test_where_bpf_is_not_allowed_that_is_said(self):
        """Root without the capabilities for BPF: what a container has."""
        answer = run("setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin", PROGRAMS["affinityctl"], "locality", "--for", "100ms")
        self.assertEqual((1, True), (answer.code, "does not allow BPF" in answer.text))

    def test_another_process_space_is_said(self):
        answer = run("unshare", "--pid", "--fork", "--mount-proc", PROGRAMS["affinityctl"], "locality", "--for", "100ms")
        self.assertEqual((1, True), (answer.code, "PID namespace" in answer.text))

    def test_of_one_interface_only_its_own_flows_count(self):
        """Flows of other interfaces do not count, nor those of an interface with the same number elsewhere."""
        workers = self.workers()
        self.client(4, 4000, 0.002)
        inside = self.near.command()
        answer = self.finish(self.start("--for", "2s", self.nic, way=inside))
        if is_bpf_allowed():
            self.assertEqual({worker.pid for worker in workers} & {one["pid"] for one in answer["processes"]},
                             {one["pid"] for one in answer["processes"]})
            self.assertGreater(answer["all"]["reads"], 100)
            self.assertTrue(all(self.nic in source for place in answer["arrivals"] for source in place["sources"]), answer["arrivals"])
            loop = self.finish(self.start("--for", "300ms", "lo", way=inside))
            self.assertEqual(0, loop["all"]["reads"])
        else:
            self.assertTrue(answer["remarks"])

    def test_a_policy_and_its_new_processes(self):
        name = self.name("web")
        daemon = self.daemon(web=policy("web", affinity="none"))
        first = self.workers(name=name)[0]
        wait_for(lambda: any(process["pid"] == first.pid for process in daemon.status()["processes"]), "the daemon knows the worker")
        watching = self.start("--for", "6s", "web", "--runtime-dir", str(daemon.folder / "run"))
        wait_for(lambda: holds_programs(watching.pid) or watching.poll() is None, "it watches")
        later = self.workers_later(name)
        self.client(40, 800, 0.002)
        answer = self.finish(watching)
        self.assertEqual("policy web", answer["subject"])
        self.assertIn(first.pid, [one["pid"] for one in answer["processes"]])
        self.assertIn(later.pid, [one["pid"] for one in answer["processes"]])
        self.assertEqual(3, answer["listeners"])
        daemon.ctl("locality", "--for", "100ms", "wep", code=1)

    def workers_later(self, name):
        later = self.begin(*self.near.command(sys.executable, "-c", SERVER, str(CPUS[0]), "10.79.0.1", "7001", name, "2"))
        wait_for(lambda: self.near.run("ss", "-Hltn").count(":7001") == 3, "the third worker listens")
        return later

    def test_a_unit_by_its_control_group(self):
        folder = next((path for path in ("/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(path + "/cgroup.procs")))
        group = pathlib.Path(folder) / f"locality-{self.mark}.service"
        group.mkdir()
        self.addCleanup(group.rmdir)
        workers = self.workers()
        (group / "cgroup.procs").write_text(str(workers[0].pid), encoding="ascii")
        self.addCleanup(lambda: (pathlib.Path(folder) / "cgroup.procs").write_text(str(workers[0].pid), encoding="ascii"))
        self.client(20, 1500, 0.002)
        answer = self.finish(self.start("--for", "2s", group.name))
        self.assertEqual(f"unit {group.name}", answer["subject"])
        self.assertEqual([workers[0].pid], [one["pid"] for one in answer["processes"]])

    def test_datagrams(self):
        """The kernel does not note where packets of a UDP socket without a peer arrive."""
        reader = self.begin(*self.near.command(sys.executable, "-c", DATAGRAMS, "10.79.0.1", "10.79.0.2"), stdout=subprocess.PIPE, text=True)
        self.assertEqual("ready\n", reader.stdout.readline())
        if not is_bpf_allowed():
            self.skipTest("BPF is not allowed here")
        watching = self.start("--for", "1h", "--udp", str(reader.pid))
        wait_for(lambda: holds_programs(watching.pid), "affinityctl counts")
        self.far.run(sys.executable, "-c", SENDER, "10.79.0.1", "10.79.0.2")
        time.sleep(1)  # for the last of them to be read
        watching.send_signal(signal.SIGINT)
        answer = self.finish(watching)
        if not answer["all_protocols"]:
            self.assertIn("TCP only", " ".join(answer["remarks"]))
            return
        self.assertEqual({17}, {count["protocol"] for count in answer["counts"]})
        known = sum(count["reads"] for count in answer["counts"] if count["arrival"] is not None)
        self.assertEqual(answer["all"]["reads"] - answer["all"]["unknown"], known)
        self.assertGreater(known, 200)
        self.assertGreater(answer["all"]["unknown"], 200)

    def test_a_process_that_ends_meanwhile(self):
        workers = self.workers()
        watching = self.start("--for", "30s", str(workers[0].pid))
        self.await_watching(watching)
        self.client(20, 100)
        workers[0].kill()
        workers[0].wait()
        answer = self.finish(watching)
        self.assertLess(answer["seconds"], 29)
        if is_bpf_allowed():
            self.assertEqual([workers[0].pid] if answer["all"]["reads"] else [], [one["pid"] for one in answer["processes"]])
            self.assertIn("ended", " ".join(answer["remarks"]))

    def test_the_last_name_counts_and_is_escaped(self):
        workers = self.workers()
        watching = self.begin(PROGRAMS["affinityctl"], "locality", "--for", "3s", "--svg", "-", stdout=subprocess.PIPE, text=True)
        self.await_watching(watching)
        self.client(20, 100)
        picture = watching.communicate(timeout=60)[0]
        self.assertTrue(picture.startswith("<svg"))
        self.assertNotIn("\x1b", picture)
        # Watches one worker: among all processes, those of other tests may be busier.
        watching = self.begin(PROGRAMS["affinityctl"], "locality", "--for", "1h", str(workers[0].pid), stdout=subprocess.PIPE, text=True)
        self.await_watching(watching)
        self.assertEqual("done\n", self.client(40, 60).stdout.readline())
        watching.send_signal(signal.SIGINT)
        text = watching.communicate(timeout=60)[0]
        self.assertNotIn("\x1b", text)
        if is_bpf_allowed():
            self.assertIn("w\\x1b[31m)", text)
            self.assertLessEqual(max(len(line) for line in text.splitlines() if "%" in line), 250)
        watching = self.start("--for", "3s", str(workers[0].pid))
        self.await_watching(watching)
        self.client(30, 40, 0.002, word="rename")
        answer = self.finish(watching)
        if answer["processes"]:
            self.assertEqual("renamed", answer["processes"][0]["name"])

    def test_a_signal_ends_the_watch_early(self):
        watching = self.start("--for", "1h")
        self.await_watching(watching)  # it has blocked the signals before
        watching.send_signal(signal.SIGINT)
        self.assertLess(self.finish(watching)["seconds"], 60)

    def test_a_subject_that_is_not_there_is_said(self):
        with tempfile.TemporaryDirectory(prefix="affinityd-locality-") as folder:
            silent = ("--runtime-dir", folder)
            self.assertIn("there is no process", locality("999999999", *silent, code=1))
            self.assertIn("no daemon answers", locality("nginks", *silent, code=4))
            self.assertIn("no interface, policy or process of a unit", locality("nginks.service", *silent, code=1))
            self.assertIn("no process", locality("99999999999999999999", *silent, code=1))
            self.assertIn("no daemon answers", locality("bad\x1bname", *silent, code=4))
            self.assertNotIn("\x1b", locality("bad\x1bname", *silent, code=4))
            for time in ("0", "2h", "-1", "x"):
                self.assertIn("--for", locality(f"--for={time}", code=2))
            self.assertIn("--root", locality("--root", folder, code=2))
            self.assertIn("run it as root", locality("--for", "100ms", code=1, way=("setpriv", "--reuid", "65534", "--clear-groups")))
