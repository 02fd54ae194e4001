# SPDX-License-Identifier: Apache-2.0
"""Each shipped example and each recipe of the manuals does what it promises, on a machine of one cache group and on one of two nodes: 16 CPUs and a
NIC of eight queues. The server runs there as it does everywhere, with master, workers and threads in the background."""
import fnmatch
import pathlib
import re

from house import affinityctl, cpus
from recorded import Planned
from server_worlds import Host

TREE = pathlib.Path(__file__).resolve().parents[2]
QUEUES = range(40, 48)
BIOS = ("bio_close_file", "bio_aof", "bio_lazy_free", "jemalloc_bg_thd")
FULL = re.compile("^affinity: full", re.MULTILINE)


def texts():
    """{"policies/nginx.yaml": text}: of the examples, and of the recipes."""
    found = {f"policies/{file.name}": file.read_text(encoding="utf-8") for file in (TREE / "policies").glob("*.yaml")}
    for page in ("affinityd.policy.5", "affinityd-servers.7"):
        source = (TREE / "docs" / page).read_text(encoding="utf-8")
        for name, text in re.findall(r'^\.\\" example: (\S+)\n\.PP\n\.nf\n\.RS\n(.*?)\.RE', source, re.MULTILINE | re.DOTALL):
            found[f"{page}/{name}"] = text.replace("\\-", "-").replace("\\e", "\\")
    return found


def nginx(host):
    host.nginx(8, 8)


def haproxy(host):
    of = {"unit": "haproxy.service", "exe": "/usr/sbin/haproxy"}
    host.server(900, "haproxy", **of)
    host.server(910, "haproxy", [("haproxy", 0.5, 0)] * 7, ppid=900, **of)
    host.listen(443, 8, [910])


def postgresql(host):
    of = {"unit": "postgresql@15-main.service", "exe": "/usr/lib/postgresql/15/bin/postgres", "uid": 111}
    host.server(900, "postgres", **of)
    for at in range(12):
        host.server(901 + at, "postgres", ppid=900, **of)
    host.listen(5432, 1, [900])


def redis(host, more=()):
    host.server(900, "redis-server", [(name, 0, 0) for name in (*BIOS, *more)], unit="redis-server.service", exe="/usr/bin/redis-check-rdb", uid=112)
    host.listen(6379, 1, [900])


def redis_io(host):
    redis(host, ("io_thd_1", "io_thd_2", "io_thd_3"))


def memcached(host):
    threads = [("mc-worker", 0.3, 0)] * 8 + [(f"mc-{name}", 0, 0) for name in ("lrucrawler", "lrumaint", "slabmaint", "assocmaint")]
    host.server(900, "memcached", threads, unit="memcached.service", uid=113)
    host.listen(11211, 1, [900])


def jvm(host):
    names = ["java", "GC Thread#0", "G1 Main Marker", "G1 Conc#0", "VM Thread", "G1 Conc#1"]  # as it makes them
    names += [f"GC Thread#{at}" for at in range(1, 8)] + ["http-nio-8080-e"] * 10
    host.server(900, "java", [(name, 0, 0) for name in names], unit="tomcat10.service", exe="/usr/lib/jvm/java-17-openjdk-amd64/bin/java", uid=114)
    host.listen(8080, 1, [900])


def envoy(host):
    threads = [("dog:main_thread", 0, 0), ("dog:workers_gua", 0, 0), ("AccessLogFlush", 0, 0), ("GrpcGoogClient", 0, 0)] * 2
    host.server(900, "envoy", [(f"wrk:worker_{at}", 0, 0) for at in range(8)] + threads, unit="envoy.service", uid=115)
    host.listen(10000, 8, [900])


def trafficserver(host):
    threads = [(f"[ET_NET {at}]", 0, 0) for at in range(8)] + [(f"[ET_AIO {at}:21]", 0, 0) for at in range(8)] + [("[LOG_FLUSH]", 0, 0)]
    host.server(900, "[TS_MAIN]", threads, unit="trafficserver.service", exe="/usr/bin/traffic_server", uid=116)
    host.listen(8080, 8, [900])


def unbound(host):
    host.server(900, "unbound", [("unbound", 0, 0)] * 7, unit="unbound.service", uid=117)


def qemu(host):
    for pid in (900, 950):
        threads = [(f"CPU {cpu}/KVM", 0, 0) for cpu in range(4)] + [("IO iothread1", 0, 0), ("worker", 0, 0)]
        host.server(pid, "qemu-system-x86", threads, cgroup=f"/machine.slice/machine-qemu\\x2d{pid}.scope", exe="/usr/bin/qemu-system-x86_64", uid=200)


def batch(host):
    host.server(900, "job", unit="batch.service")


def pipeline(host):
    host.server(900, "pipeline", [("feed", 0, 0), ("strategy", 0, 0), ("logger", 0, 0)], exe="/opt/trade/bin/pipeline", uid=201)


def dpdk(host):
    host.server(900, "testpmd", [(f"lcore-worker-{at}", 0, 0) for at in (1, 2, 3)], uid=202)


def pool(host):
    host.server(900, "pool", [("pool", 0, 0)] * 4, unit="pool.service")


def web(host):
    host.server(900, "web", uid=33)


# Recipe, by its name -> its server, and the names of threads that it sends elsewhere, or leaves alone.
SERVERS = {"nginx": (nginx, []), "haproxy": (haproxy, []), "postgresql": (postgresql, []), "postgresql-short": (postgresql, []), "redis": (redis, BIOS),
           "redis-io": (redis_io, BIOS), "memcached": (memcached, ["mc-[!w]*"]), "jvm": (jvm, []),
           "envoy": (envoy, ["envoy", "dog*", "Acc*", "Grpc*"]), "trafficserver": (trafficserver, ["[[]TS*", "[[]ET_AIO*", "[[]LOG*"]),
           "unbound": (unbound, []), "qemu": (qemu, []), "router": (None, []), "batch": (batch, []), "pipeline": (pipeline, ["pipeline", "logger"]),
           "nic": (None, []), "dpdk": (dpdk, ["testpmd"]), "pool": (pool, []), "web": (web, []), "zz-housekeeping": (batch, [])}


class Promises(Planned):
    """All recipes of a kind, on both machines."""

    IS_FULL = False  # those of affinity: full

    def each(self):
        tried = 0
        for name, text in texts().items():
            stem = pathlib.Path(name).stem
            if bool(FULL.search(text)) != self.IS_FULL:
                continue
            for nodes in (1, 2):
                tried += 1
                with self.subTest(name, nodes=nodes):
                    self.kept(name.replace("/", "-"), text, nodes, *SERVERS[stem])
        return tried

    def kept(self, name, text, nodes, server, aside):
        root = self.bin / f"{name}{nodes}"
        host = Host(root, cpus=16, nodes=nodes)
        host.put("etc/passwd", "\n".join(f"{user}:x:{uid}:{uid}::/:/bin/false" for user, uid in
                                         {"www-data": 33, "postgres": 111, "libvirt-qemu": 200, "trade": 201, "dpdk": 202}.items()))
        nic = "enp65s0f0" if "enp65s0f" in text else "eth0"
        host.nic(nic, [f"{nic}-TxRx-{queue}" for queue in range(8)], driver="ixgbe")
        if server is not None:
            server(host)
        file = self.bin / name
        # A recording does not tell which NIC serves a process.
        file.write_text(re.sub(r"^nics: auto.*\n", "", text, flags=re.MULTILINE) + ("nics: eth0\n" if self.IS_FULL else ""), encoding="utf-8")
        self.assertNotIn("no process is matched", affinityctl("--root", root, "check", file).text)
        actions = affinityctl("--root", root, "--json", "plan", file, code=None).json["actions"]
        self.hold(actions, root, aside, 8 if nodes == 2 and "cpus: node:0" in text else 16)

    def hold(self, actions, root, aside, cores):
        places = {action["tid"]: cpus(action["to"]) for action in actions if action["kind"] == "task"}
        names = {int(file.parent.name): file.read_text(encoding="utf-8").strip() for file in root.glob("proc/*/task/*/comm")}
        bound = {tid: min(place) for tid, place in places.items() if len(place) == 1}
        for kind in {re.sub("[0-9]", "", names[tid]) for tid in bound} | {""}:
            kin = [core for tid, core in bound.items() if kind in ("", re.sub("[0-9]", "", names[tid]))]
            self.assertEqual(min(len(kin), cores), len(set(kin)), f"{kind or 'tasks'}: two on one core, while another has none: {places}")
        queues = {action["irq"]: cpus(action["to"]) for action in actions if action["kind"] == "irq"}
        handed = {cpu for action in actions if action.get("queue", "").startswith("rx-") for cpu in cpus(action["to"] if action["to"] != "-" else "")}
        readers = {tid: places.get(tid, set(range(16))) for tid, name in names.items() if not any(fnmatch.fnmatchcase(name, one) for one in aside)}
        self.queues_hold(queues, handed, list(readers.values()))

    def queues_hold(self, queues, handed, readers):
        raise NotImplementedError


class Recipes(Promises):
    """Recipes that place tasks or interrupts alone."""

    def test_each_keeps_what_it_promises(self):
        self.assertGreaterEqual(self.each(), 26)

    def queues_hold(self, queues, handed, readers):
        if queues:  # all queues have a core each
            self.assertEqual((8, 8), (len(queues), len(set().union(*queues.values()))), queues)


class FullRecipes(Promises):
    """Recipes that place both: the lane rule."""

    IS_FULL = True

    def test_each_keeps_what_it_promises(self):
        self.assertGreaterEqual(self.each(), 30)

    def queues_hold(self, queues, handed, readers):
        self.assertEqual(list(QUEUES), sorted(queues), "each queue is placed")
        self.assertEqual({1}, {len(place) for place in queues.values()}, queues)
        served = set().union(*readers)
        used = [min(place) for place in queues.values()]
        self.assertLessEqual(set(used), served, "queues on cores without a reader")
        # Readers that have a core each and others that have a whole group, as redis with io-threads has, share the queues.
        is_mixed = len({len(place) == 1 for place in readers}) > 1
        self.assertGreaterEqual(len(set(used)), min(8, len(readers) if is_mixed else len(served)), f"cores that take queues: {queues}")
        self.assertGreater(len(set(used)), 1)
        self.assertLessEqual(handed, served, "packets are handed to cores without a reader")
        if len(readers) <= 8:
            self.assertEqual(set(), handed, "there are queues enough")
        narrow = [min(place) for place in readers if len(place) == 1]
        if len(narrow) == len(readers):
            counts = [used.count(core) for core in narrow]
            self.assertLessEqual(max(counts) - min(counts), 1, f"readers have {counts} queues")
