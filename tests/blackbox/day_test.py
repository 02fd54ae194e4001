# SPDX-License-Identifier: Apache-2.0
"""The work of a day in little time: servers are started, reloaded, backed up, deployed anew, their logs are rotated, and the daemon is upgraded,
all under load. AFFINITYD_DAY is its length in minutes, else two rounds."""
import os
import pathlib
import shutil
import signal
import statistics
import time

from house import allowed, policy, python, read, report, run, wait_for
from reloads_test import HAPROXY, NGINX, Reloads

MINUTES = float(os.environ.get("AFFINITYD_DAY", "0"))
PATIENCE = 180
JAVA = """import com.sun.net.httpserver.HttpServer;
public class NAME { public static void main(String[] words) throws Exception {
    var server = HttpServer.create(new java.net.InetSocketAddress("10.99.0.1", 7005), 64);
    server.setExecutor(java.util.concurrent.Executors.newFixedThreadPool(2));
    server.createContext("/", one -> { byte[] text = new byte[512]; one.sendResponseHeaders(200, text.length); one.getResponseBody().write(text); one.close(); });
    server.start(); } }
"""
# A hundred requests a second, each by another connection and from another CPU than the one before, until its input ends; then how many each port answered.
LOAD = """import collections, os, select, socket, sys
cpus, answered, at = sorted(os.sched_getaffinity(0)), collections.Counter(), 0
while not select.select([sys.stdin], [], [], 0.01)[0]:
    at += 1
    port = sys.argv[1 + at % (len(sys.argv) - 1)]
    os.sched_setaffinity(0, {cpus[at // (len(sys.argv) - 1) % len(cpus)]})
    try:
        with socket.create_connection(("10.99.1.1" if port == "7002" else "10.99.0.1", int(port)), 2) as one:
            one.settimeout(2)
            one.sendall(b"SET key value\\r\\n" if port == "7003" else b"GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
            answered[port] += one.recv(4096)[:5] in (b"HTTP/", b"+OK\\r\\n")
    except OSError:
        pass
print(*(answered[port] for port in sys.argv[1:]))
"""


class Day(Reloads):
    ALONE = True
    PLAIN = True  # a sanitized daemon keeps what it has freed
    LONGEST = 800 + 60 * MINUTES

    def setUp(self):
        super().setUp()
        self.bin.chmod(0o755)
        self.title, self.running, self.memory = self.name("pg"), {}, []
        self.programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        self.mine = ("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups")
        self.ports = {"nginx": 7001, "haproxy": 7002, "redis": 7003, "postgres": 7004} | ({"java": 7005} if shutil.which("javac") else {})
        self.prepare()

    def prepare(self):
        self.data = self.bin / "data"
        self.data.mkdir()
        shutil.chown(self.data, "postgres")
        run(*self.mine, self.programs / "initdb", "-D", self.data, "-A", "trust", "-N", code=0)
        with (self.data / "pg_hba.conf").open("a", encoding="ascii") as rules:
            rules.write("host all all 10.99.0.0/24 trust\n")
        if "java" in self.ports:
            self.java = "J" + self.mark
            (self.bin / f"{self.java}.java").write_text(JAVA.replace("NAME", self.java), encoding="ascii")
            run("javac", "-d", self.bin, self.bin / f"{self.java}.java", code=0)

    def policies(self):
        """As those in policies/ of the project; nginx and HAProxy have a NIC each, and the others none."""
        core = {"affinity": "full", "spread": "core", "bind": "core"}
        bios = {"name": ["bio_*", "jemalloc_bg_thd"], "cpus": "housekeeping", "bind": "set"}
        found = {"nginx": policy("nginx", nics=self.nics[:1], **core), "haproxy": policy("haproxy", nics=self.nics[1:], **core),
                 "redis": policy("redis", bind="llc", threads=[bios]),
                 "postgres": policy(match={"cmdline": f"*{self.title}*"}, spread="llc", bind="llc")}
        if "java" in self.ports:
            found["java"] = policy(match={"cmdline": f"*{self.java}*"}, bind="set", threads=[{"name": "GC Thread#*", "spread": "core", "bind": "core"}])
        return found

    def command(self, name):
        if name == "nginx":
            text = NGINX.format(folder=self.bin, reuseport=" reuseport").replace("access_log off", f"access_log {self.bin}/access.log")
            (self.bin / "nginx.conf").write_text(text.replace("hello", f"deployed-{time.time()}"), encoding="ascii")
            return self.copy_of("/usr/sbin/nginx", name), "-p", self.bin, "-c", self.bin / "nginx.conf"
        if name == "haproxy":
            text = HAPROXY.format(folder=self.bin, threads=2, shards=" shards by-thread").replace("10.99.0.1:7001", "10.99.1.1:7002")
            (self.bin / "haproxy.cfg").write_text(text.replace("hello", f"deployed-{time.time()}"), encoding="ascii")
            return self.copy_of("/usr/sbin/haproxy", name), "-W", "-f", self.bin / "haproxy.cfg"
        if name == "redis":
            return (self.copy_of("/usr/bin/redis-server", name), "--bind", "10.99.0.1", "--port", "7003", "--dir", self.bin, "--logfile", self.bin / "redis.log",
                    "--save", "", "--protected-mode", "no")
        if name == "postgres":
            options = {"listen_addresses": "10.99.0.1", "port": "7004", "unix_socket_directories": self.data, "cluster_name": self.title, "fsync": "off", "logging_collector": "on"}
            return (*self.mine, self.programs / "postgres", "-D", self.data, *(word for key, value in options.items() for word in ("-c", f"{key}={value}")))
        return "java", "-Xmx64m", "-cp", self.bin, self.java

    def listens(self, name):
        return f":{self.ports[name]} " in self.near.run("ss", "-Hltn")

    def launch(self, name):
        self.running[name] = server = self.spawn(*self.near.command(*self.command(name)))
        if name == "postgres":  # killed, it would leave shared memory behind
            self.stack.callback(server.process.wait, PATIENCE)
            self.stack.callback(server.process.send_signal, signal.SIGINT)
        wait_for(lambda: self.listens(name), f"{name} listens", PATIENCE)

    def halt(self, name):
        server = self.running.pop(name)
        server.process.send_signal(signal.SIGINT if name == "postgres" else signal.SIGTERM)
        server.process.wait(PATIENCE)
        wait_for(lambda: not self.listens(name), f"{name} has ended", PATIENCE)

    # The steps of a day.

    def reload(self):
        for name, number in (("nginx", signal.SIGHUP), ("haproxy", signal.SIGUSR2), ("postgres", signal.SIGHUP)):
            self.running[name].process.send_signal(number)
        self.redis("CONFIG", "SET", "maxclients", "1000")
        self.tested.ctl("reload")

    def rotate_logs(self):
        for log in ("access.log", "error.log", "redis.log"):
            (self.bin / log).rename(self.bin / f"{log}.1")
        self.running["nginx"].process.send_signal(signal.SIGUSR1)  # it opens them anew
        self.running["postgres"].process.send_signal(signal.SIGUSR1)
        wait_for((self.bin / "access.log").exists, "nginx has a new log", PATIENCE)

    def back_up(self):
        self.redis("BGSAVE")
        self.far.run(self.programs / "pg_dump", "-h", "10.99.0.1", "-p", "7004", "-U", "postgres", "-f", self.bin / "dump", "postgres")
        wait_for(lambda: "rdb_bgsave_in_progress:0" in self.redis("INFO", "persistence"), "redis has saved", PATIENCE)

    def query(self):
        self.far.run(self.programs / "pgbench", "-h", "10.99.0.1", "-p", "7004", "-U", "postgres", "-n", "-S", "-c", "2", "-R", "100", "-T", "1", "postgres")

    def make_fault(self):
        """`status` tells what is wrong, and nothing more once it is mended."""
        self.tested.write("bad", "version: 1\nmatch: {comm: x}\ncpuz: 1\n")
        wait_for(lambda: self.told() == ["file/bad"], lambda: f"the faulty file is told: {self.told()}", PATIENCE)
        self.tested.remove("bad")

    def deploy(self):
        for name in self.ports:
            self.halt(name)
            program = self.bin / self.name(name)
            if program.exists():
                shutil.copy(program, self.bin / "new")
                (self.bin / "new").rename(program)
            self.launch(name)

    def upgrade(self):
        time.sleep(3)  # a program settles for two seconds after its start
        before = self.places()
        self.tested.kill()
        self.tested.start()
        self.assertEqual(before, self.places(), "no worker was let go")

    def redis(self, *words):
        return self.far.run("redis-cli", "-h", "10.99.0.1", "-p", "7003", *words)

    # Judgement.

    def places(self):
        """The CPUs of the workers that have a core each."""
        workers = {"nginx": self.nginx_workers, "haproxy": self.haproxy_workers}
        return {name: sorted(allowed(*worker) for worker in its(self.running[name])) for name, its in workers.items()}

    def told(self):
        return [problem["name"] for problem in self.tested.status()["problems"] if problem["severity"] != "acknowledged"]

    def faults(self):
        """All that is not as an expert would have it now."""
        status, places = self.tested.status(), self.places()
        found = [(problem["name"], problem["message"]) for problem in status["problems"] if problem["severity"] != "acknowledged"]
        found += [("crowded", status["balance"]["text"])] if status["balance"] else []
        # Readers have a core each. Without a NIC of their own, those that do little may share one after others were busy there.
        found += [("stacked", name, cpus) for name, cpus in places.items() if cpus != ["0", "1"]]
        found += [("astray", one["name"], one["threads_in_place"], one["threads_wanted"]) for one in status["policies"]
                  if one["threads_in_place"] != one["threads_wanted"] or not one["processes"]]
        return found

    def take(self, step):
        begun = time.monotonic()
        step()
        wait_for(lambda: not self.faults(), lambda: f"all is right after {step.__name__}: {self.faults()}", PATIENCE)
        self.longest[step.__name__] = max(self.longest.get(step.__name__, 0), time.monotonic() - begun)
        self.memory.append(int(next(line for line in read(f"/proc/{self.tested.process.pid}/status").splitlines() if line.startswith("VmRSS")).split()[1]))

    def test_a_day_in_little_time(self):
        self.nics = [self.pair(number, queues=2) for number in range(2)]
        self.longest = {}
        self.tested = self.inside({"reconcile": "1s"}, **self.policies())
        wait_for(lambda: "events/process_events" in self.told(), lambda: f"this namespace has no process events: {self.told()}")
        self.tested.ctl("acknowledge", "events/process_events", "--for", "1d")
        for name in self.ports:
            self.launch(name)
        self.far.run(self.programs / "pgbench", "-h", "10.99.0.1", "-p", "7004", "-U", "postgres", "-i", "-q", "postgres")
        load = self.spawn(*self.far.command(*python(LOAD, *(str(port) for name, port in self.ports.items() if name != "postgres"))), stdin=-1, stdout=-1, text=True)
        self.take(self.upgrade)
        self.memory.clear()
        end, rounds = time.monotonic() + 60 * MINUTES, 0
        while rounds < 2 or time.monotonic() < end:
            rounds += 1
            for step in (self.reload, self.rotate_logs, self.query, self.back_up, self.make_fault, self.deploy):
                self.take(step)
        half = len(self.memory) // 2
        growth = statistics.median(self.memory[half:]) / statistics.median(self.memory[:half])
        self.take(self.upgrade)
        answered = list(map(int, load.process.communicate("\n", timeout=60)[0].split()))
        report(f"{rounds} rounds of a day: {sum(answered)} requests were answered, the daemon has {max(self.memory)} KiB, {100 * (growth - 1):+.1f} % in the second half; "
               "all was right again after at most " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.longest.items()))
        if MINUTES > 0:  # else the first half is the start
            self.assertLess(growth, 1.15, self.memory)
        self.assertTrue(all(answered), answered)
