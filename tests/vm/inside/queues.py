#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A NIC with a queue for each of eight CPUs, and Debian's servers with as many workers: which part of the packets is read on the CPU where it
arrived, as bpftrace counts, without a policy, with the shipped one without steering, and with steering. The clients are at the other end of
the wire, in a network namespace of their own."""
import contextlib
import glob
import pathlib
import re
import subprocess
import time

import machine
from daemon import install, status
from harness import main, run, start_daemon, test, wait_for
from witness import local_share, reads

NIC, PEER, ADDRESS = "ens1", "ens2", "10.77.1.1"
WORKERS = 8
BY_CHANCE = 2 / WORKERS
ETC, EXAMPLES = pathlib.Path("/etc"), pathlib.Path("/usr/share/affinityd/examples")
NGINX = f"""worker_processes {WORKERS};
worker_rlimit_nofile 8192;
pid /run/nginx.pid;
events {{ worker_connections 2048; }}
http {{ access_log off; keepalive_timeout 1h; keepalive_requests 1000000;
        server {{ listen {ADDRESS}:8080 reuseport backlog=4096; location / {{ return 200 "ok"; }} }} }}
"""
HAPROXY = f"""global
    nbthread {WORKERS}
    maxconn 10000
defaults
    mode http
    timeout client 1h
    timeout connect 10s
    timeout server 10s
frontend one
    bind {ADDRESS}:8080 shards by-thread
    http-request return status 200 content-type text/plain string ok
"""
MEMCACHED = f"-m 64\n-p 8080\n-u memcache\n-l {ADDRESS}\n-t {WORKERS}\n-c 4096\n"
POSTGRES = f"listen_addresses = '{ADDRESS}'\nport = 8080\nmax_connections = 60\n"
SESSIONS = 40  # of PostgreSQL, a process each
PER_PROCESS = "version: 1\nmatch: {unit: postgresql@15-main.service}\naffinity: full\nnics: auto\nspread: core\nbind: core\n"
# A tap of QEMU's host sends the packets of a flow to the queue where it was last answered, and forgets that after three to four seconds.
# Clients whose ports were in use until a moment ago would arrive where another worker has answered, and later where the hash says.
FORGOTTEN = 5  # seconds
# HAProxy ends itself when it takes a thread for stuck, which one may seem to be while a busy host gives its emulated CPU no time.
ENDED_ITSELF = "is about to kill the process"
HTTP = "GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"


def in_peer(*command):
    return ["ip", "netns", "exec", "peer", *command]


@contextlib.contextmanager
def asking(request, kept, new, rate):
    """Clients that keep connections, and ask so often a second; no connection may fail."""
    time.sleep(FORGOTTEN)
    command = in_peer("/usr/bin/python3", "-S", "/host/inside/asking.py", ADDRESS, "8080", request, *map(str, (kept, new, rate)))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "all connected\n"
            yield
        finally:
            process.terminate()
            told = process.communicate(timeout=60)[0]
    assert " 0 failed" in told, told


def new_ones():
    """Clients that come, ask once and go: of them the daemon learns who takes connections from which listener."""
    return asking(HTTP, 0, 200, 0)


def steering_programs():
    """Processes that hold one which is attached to a network namespace: PID 1 keeps it while the daemon is restarted."""
    found = set()
    for path in glob.glob("/proc/[0-9]*/fdinfo/*"):
        with contextlib.suppress(OSError):
            if "link_type:\tnetns" in pathlib.Path(path).read_text(encoding="ascii"):
                found.add(int(path.split("/")[2]))
    return found


@contextlib.contextmanager
def sessions():
    """Sessions of PostgreSQL, each of which asks on and on."""
    pathlib.Path("/tmp/one.sql").write_text("select 1;\n", encoding="utf-8")
    command = in_peer("/usr/lib/postgresql/15/bin/pgbench", "-n", "-c", str(SESSIONS), "-j", "1", "-R", "200", "-T", "3600", "-f", "/tmp/one.sql",
                      "-h", ADDRESS, "-p", "8080", "-U", "postgres", "postgres")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: len(pids("postgresql@15-main")) > SESSIONS, lambda: f"{len(pids('postgresql@15-main'))} processes, {process.poll()}")
            yield
        finally:
            process.terminate()
            process.wait(timeout=60)


def spreads_by_hash():
    """igb does. A virtio NIC has the packets of a flow on the queue where it was sent last."""
    return (machine.NETS / NIC / "device/driver").resolve().name != "virtio_net"


def pids(unit):
    group = run("systemctl", "show", "-P", "ControlGroup", unit).strip()
    return [int(pid) for pid in machine.read(f"/sys/fs/cgroup{group}/cgroup.procs").split()]


def masks(unit, comm):
    """The masks of the threads of this name."""
    found = []
    for pid in pids(unit):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            for tid in machine.threads(pid):
                text = machine.read(f"/proc/{pid}/task/{tid}/status")
                if re.search(rf"^Name:\s+{comm}$", text, re.MULTILINE):
                    found.append(frozenset(machine.cpus(re.search(r"^Cpus_allowed_list:\s*(\S*)", text, re.MULTILINE)[1])))
    return found


def told():
    """The daemon's report of the policy."""
    return next((one for one in status()["policies"] if one["name"] == "server"), {})


class Server:
    """A server that runs, with clients for it."""

    def __init__(self, unit, comm, clients, first=contextlib.nullcontext):
        self.unit, self.comm, self.clients, self.first = unit, comm, clients, first
        self.reads, self.masks = {}, {}
        self.restart()

    def restart(self):
        run("systemctl", "restart", self.unit, patience=300)
        wait_for(lambda: run("ss", "-Hltn", "sport = :8080"), f"{self.unit} listens")

    def policy(self, text, steer):
        """The policy with `steer`, and when it holds."""
        text = re.sub(r"^steer:.*\n", "", text, flags=re.MULTILINE) + f"\nsteer: {steer}\n"
        (ETC / "affinityd/policies.d/server.yaml").write_text(text, encoding="utf-8")

    def await_so(self, condition):
        wait_for(lambda: self.is_bound() and condition(), lambda: f"{told()}, {masks(self.unit, self.comm)}", 300)

    def measure(self, variant, before=None, ready=None):
        """With clients that come when `before` holds, and when `ready` does; again where the server has ended itself."""
        for repeats in (2, 1, 0):
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            try:
                self.measure_once(variant, before, ready)
                return
            except AssertionError as error:
                said = run("journalctl", "-u", self.unit, "-o", "cat", "--since", since)
                if not repeats or ENDED_ITSELF not in said:
                    raise AssertionError(f"{variant}: {error}; {self.unit}: {said[-2000:]}") from error
                self.restart()

    def measure_once(self, variant, before, ready):
        if before is not None:
            with self.first():
                self.await_so(before)
        with self.clients():
            if ready is not None:
                self.await_so(ready)
            self.masks[variant] = set(masks(self.unit, self.comm))
            self.reads[variant] = reads(self.comm)

    def is_bound(self):
        return all(len(mask) == 1 for mask in masks(self.unit, self.comm))

    def compare(self, text, steer, before=lambda: True, ready=lambda: True):
        """Without a policy, with it, and steered: clients come when `before` holds, as a connection stays with who has taken it."""
        file = ETC / "affinityd/policies.d/server.yaml"
        try:
            self.measure("no policy")
            self.policy(text, "none")
            self.measure("full", ready=lambda: True)
            self.policy(text, steer)
            self.measure("steered", before, ready)
            file.unlink()
            everywhere = frozenset(machine.online())
            wait_for(lambda: set(masks(self.unit, self.comm)) == {everywhere}, lambda: f"put back: {masks(self.unit, self.comm)}")
        finally:
            file.unlink(missing_ok=True)
            run("systemctl", "stop", self.unit)
        text = ", ".join(f"{name}: {self.share(name):.1%} ({len(self.masks[name])} masks)" for name in self.reads)
        return text if self.share("steered") >= 0.95 else f"{text}; {self.reads['steered'].elsewhere()}"

    def share(self, variant):
        """The part of the reads on the CPU of arrival."""
        return self.reads[variant].local_share()


def has_own_listeners():
    """Each worker, and the daemon has seen it take connections from it."""
    return told().get("steer", {}).get("listeners") == WORKERS


def most_are_there():
    """Most of the tasks that go to where their packets arrive are there."""
    states = {one["is_there"]: one["tasks"] for one in told().get("at_arrivals", [])}
    return states.get(True, 0) >= 0.95 * SESSIONS


def wire_up():
    run("ip", "netns", "add", "peer")
    run("ip", "link", "set", PEER, "netns", "peer")
    run("ip", "-n", "peer", "address", "add", "10.77.1.2/24", "dev", PEER)
    run("ip", "-n", "peer", "link", "set", PEER, "up")
    run("ip", "address", "add", f"{ADDRESS}/24", "dev", NIC)
    run("ip", "link", "set", NIC, "up")
    wait_for(lambda: machine.read(machine.NETS / NIC / "carrier") == "1", "the link is up")
    run("ping", "-c", "1", "-w", "60", "-I", NIC, "10.77.1.2")


@test()
def a_wire_with_clients_at_its_other_end():
    install()
    wire_up()
    queues = len(list((machine.NETS / NIC / "queues").glob("rx-*")))
    assert len(machine.online()) == queues == WORKERS, f"{machine.online()}, {queues} queues"


@test(1500)
def nginx_reads_where_packets_arrive():
    (ETC / "nginx/nginx.conf").write_text(NGINX, encoding="utf-8")
    server = Server("nginx", "nginx", lambda: asking(HTTP, 2000, 200, 400), first=new_ones)
    text = server.compare((EXAMPLES / "nginx.yaml").read_text(encoding="utf-8"), "accept", before=has_own_listeners)
    assert server.share("full") <= BY_CHANCE or not spreads_by_hash(), text
    assert server.share("steered") >= 0.97, text
    return text


@test(1500)
def the_policy_suggested_for_nginx_reads_where_packets_arrive():
    """Suggested while clients come, and in force as it was printed."""
    server = Server("nginx", "nginx", new_ones, first=new_ones)
    file = ETC / "affinityd/policies.d/server.yaml"
    with server.clients():
        text = run("affinityctl", "suggest", "nginx.service", "--for", "5s")
        before = reads("nginx").local_share()
    assert "affinity: full" in text, text
    file.write_text(text, encoding="utf-8")
    try:
        run("affinityctl", "check", str(file))
        server.measure("suggested", before=has_own_listeners)
    finally:
        file.unlink()
        run("systemctl", "stop", "nginx")
    assert server.share("suggested") >= 0.9, f"{text}: {server.reads['suggested'].elsewhere()}"
    return f"{server.share('suggested'):.1%}, {before:.1%} without"


@test(1500)
def haproxy_reads_where_packets_arrive():
    (ETC / "haproxy/haproxy.cfg").write_text(HAPROXY, encoding="utf-8")
    server = Server("haproxy", "haproxy", lambda: asking(HTTP, 2000, 200, 400), first=new_ones)
    text = server.compare((EXAMPLES / "haproxy.yaml").read_text(encoding="utf-8"), "accept", before=has_own_listeners)
    assert server.share("full") <= BY_CHANCE or not spreads_by_hash(), text
    assert server.share("steered") >= 0.97, text
    return text


@test(1500)
def a_restart_of_the_daemon_leaves_steering_in_force():
    server = Server("nginx", "nginx", new_ones)
    text = re.sub(r"^steer:.*\n", "", (EXAMPLES / "nginx.yaml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    server.policy(text, "accept")
    try:
        with server.clients():
            server.await_so(has_own_listeners)
            for _ in range(3):
                start_daemon("restart")
                assert 1 in steering_programs(), steering_programs()
            seen = reads("nginx")
        wait_for(lambda: len(steering_programs()) == 2, lambda: f"PID 1 and the daemon hold it: {steering_programs()}")
        run("systemctl", "stop", "affinityd")
        assert not steering_programs(), steering_programs()
    finally:
        (ETC / "affinityd/policies.d/server.yaml").unlink()
        start_daemon()
        run("systemctl", "stop", "nginx")
    assert seen.local_share() >= 0.97, seen.elsewhere()
    return f"{seen.local_share():.1%} over three restarts"


@test(1500)
def a_cpu_that_goes_and_comes_fails_no_connection():
    """Meanwhile a worker has no lane of its own, and a queue no CPU of its own."""
    server = Server("nginx", "nginx", new_ones)
    text = re.sub(r"^steer:.*\n", "", (EXAMPLES / "nginx.yaml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    server.policy(text, "accept")
    everywhere = machine.online()
    switch = machine.CPUS / f"cpu{max(everywhere)}/online"
    try:
        with server.clients():
            server.await_so(has_own_listeners)
            switch.write_text("0", encoding="utf-8")
            wait_for(lambda: all(mask <= machine.online() for mask in masks("nginx", "nginx")), lambda: f"{masks('nginx', 'nginx')}")
            reads("nginx")
            switch.write_text("1", encoding="utf-8")
            server.await_so(lambda: len(set(masks("nginx", "nginx"))) == WORKERS and has_own_listeners())
            seen = reads("nginx")
    finally:
        switch.write_text("1", encoding="utf-8")
        (ETC / "affinityd/policies.d/server.yaml").unlink()
        run("systemctl", "stop", "nginx")
    assert seen.local_share() >= 0.97, seen.elsewhere()
    return f"{seen.local_share():.1%} after it has come"


@test(1500)
def postgresql_processes_go_to_where_packets_arrive():
    (ETC / "postgresql/15/main/conf.d/queues.conf").write_text(POSTGRES, encoding="utf-8")
    with (ETC / "postgresql/15/main/pg_hba.conf").open("a", encoding="utf-8") as rules:
        rules.write("host all all 10.77.1.2/32 trust\n")
    server = Server("postgresql@15-main", "postgres", sessions)
    text = server.compare(PER_PROCESS, "tasks", ready=most_are_there)
    assert server.share("steered") >= 0.9, text
    return text


@test(1500)
def packets_for_memcached_are_handed_on_to_its_threads():
    (ETC / "memcached.conf").write_text(MEMCACHED, encoding="utf-8")
    server = Server("memcached", "mc-worker", lambda: asking("get a\\r\\n", 400, 0, 400))
    text = server.compare((EXAMPLES / "memcached.yaml").read_text(encoding="utf-8"), "flows")
    assert server.share("full") <= BY_CHANCE or not spreads_by_hash(), text
    assert server.share("steered") >= 0.9, text
    return text


@test()
def nothing_went_wrong_by_the_daemons_own_account():
    problems = status()["problems"]
    assert not problems, problems


if __name__ == "__main__":
    main()
