# SPDX-License-Identifier: Apache-2.0
"""Twelve machines with servers on them, and for each the answer of an expert, which was written down before `affinityctl suggest` was."""
from recorded import Recorded, bits, numbers

BORN, UPTIME = 1000, 1_000_000  # clock ticks
ASIDE = {"cpus": "housekeeping", "bind": "set"}
CORE = {"spread": "core", "bind": "core"}


class Host(Recorded):
    """A machine that has run for 10,000 s, and whose programs have used CPU time since."""

    def __init__(self, root, **options):
        super().__init__(root, **options)
        self.sockets = []
        self.put("proc/stat", f"cpu {len(self.all) * UPTIME // 4} 0 0 {len(self.all) * UPTIME * 3 // 4} 0 0 0 0 0 0")

    def fast_nic(self, queues, node=0):
        self.nic("eth0", [f"eth0-TxRx-{queue}" for queue in range(queues)], driver="ixgbe", node=node)

    def server(self, pid, name, threads=(), busy=0.0, cpu=0, **options):
        """A process whose threads are (name, busy, last CPU); `busy`: the part of one CPU that each has used since."""
        tids = {pid + 1 + at: thread for at, thread in enumerate(threads)}
        self.process(pid, name, threads={tid: thread[0] for tid, thread in tids.items()}, **options)
        for tid, (_, used, last) in {pid: (name, busy, cpu), **tids}.items():
            for file in [f"proc/{pid}/task/{tid}/stat"] + ([f"proc/{pid}/stat"] if tid == pid else []):
                text = (self.root / file).read_text(encoding="utf-8").strip()
                text = text.replace(" 10 10 0 0 20 ", f" {round(used * (UPTIME - BORN))} 0 0 0 20 ").replace(" 17 0 0 ", f" 17 {last} 0 ")
                self.put(file, text)
        (self.root / f"proc/{pid}/fd").mkdir(exist_ok=True)

    def listen(self, port, sockets, pids, address="00000000"):
        """So many TCP sockets at one address, which all of these processes have open."""
        for _ in range(sockets):
            inode = 5000 + len(self.sockets)
            self.sockets.append(f"{len(self.sockets):4}: {address}:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 "
                                "0000000000000000 100 0 0 10 0")
            for pid in pids:
                (self.root / f"proc/{pid}/fd/{inode}").symlink_to(f"socket:[{inode}]")
        self.put("proc/net/tcp", "\n".join(["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode", *self.sockets]))

    def nginx(self, workers, sockets, busy=0.4, cpus=None):
        """A master and its workers, one after the other on the CPUs that they may use."""
        places = sorted(self.all if cpus is None else cpus)
        self.server(900, "nginx", unit="nginx.service", exe="/usr/sbin/nginx", cpus=cpus)
        for worker in range(workers):
            self.server(901 + worker, "nginx", busy=busy, cpu=places[worker % len(places)], unit="nginx.service", exe="/usr/sbin/nginx", ppid=900, uid=33,
                        cpus=cpus)
        self.listen(80, sockets, range(900, 901 + workers))


def nginx_with_reuseport(root):
    host = Host(root)
    host.fast_nic(8)
    host.nginx(8, 8)


def nginx_without_reuseport(root):
    host = Host(root)
    host.fast_nic(8)
    host.nginx(8, 1)


def haproxy(root):
    host = Host(root)
    host.fast_nic(8)
    of = {"unit": "haproxy.service", "exe": "/usr/sbin/haproxy"}
    host.server(900, "haproxy", **of)
    host.server(910, "haproxy", [("haproxy", 0.5, cpu) for cpu in range(1, 8)], busy=0.5, ppid=900, uid=110, **of)
    host.listen(443, 1, [900, 910])


def postgresql(root):
    """A postmaster, which alone listens; what works for all; and a process for each connection."""
    host = Host(root)
    host.fast_nic(8)
    of = {"unit": "postgresql@15-main.service", "exe": "/usr/lib/postgresql/15/bin/postgres", "uid": 111}
    host.server(900, "postgres", **of)
    for at in range(5):
        host.server(901 + at, "postgres", busy=0.01, ppid=900, **of)
    for at in range(24):
        host.server(920 + at, "postgres", busy=0.2, cpu=at % 8, ppid=900, **of)
    host.listen(5432, 1, [900])


def redis_with_io_threads(root):
    host = Host(root)
    host.fast_nic(8)
    threads = [("bio_close_file", 0, 0), ("bio_aof", 0.002, 1), ("bio_lazy_free", 0, 2), ("jemalloc_bg_thd", 0.001, 3),
               ("io_thd_1", 0.5, 4), ("io_thd_2", 0.5, 5), ("io_thd_3", 0.5, 6)]
    host.server(900, "redis-server", threads, busy=0.8, unit="redis-server.service", exe="/usr/bin/redis-check-rdb", uid=112)
    host.listen(6379, 1, [900])


def memcached(root):
    host = Host(root)
    host.fast_nic(8)
    threads = [("mc-worker", 0.3, cpu) for cpu in range(8)] + [(f"mc-{name}", 0.001, 0) for name in ("lrucrawler", "lrumaint", "slabmaint", "assocmaint")]
    host.server(900, "memcached", threads, busy=0.001, unit="memcached.service", uid=113)
    host.listen(11211, 1, [900])


def jvm(root):
    host = Host(root, cpus=16)
    host.fast_nic(8)
    threads = [("java", 0.1, 0), ("VM Thread", 0.05, 1), ("C2 CompilerThre", 0.2, 2), ("C1 CompilerThre", 0.1, 3), ("G1 Main Marker", 0.01, 3), ("G1 Conc#0", 0.1, 4),
               ("G1 Conc#1", 0.1, 5)]
    threads += [(f"GC Thread#{at}", 0.2, at) for at in range(8)] + [("http-nio-8080-e", 0.3, at) for at in range(10)]
    host.server(900, "java", threads, unit="tomcat10.service", exe="/usr/lib/jvm/java-17-openjdk-amd64/bin/java", uid=114)
    host.listen(8080, 1, [900])


def guests(root):
    """Two virtual machines of libvirt, on a machine of two nodes. Their scopes have other names at each start."""
    host = Host(root, cpus=16, nodes=2)
    host.fast_nic(8)
    for guest, pid in ((1, 900), (2, 950)):
        threads = [(f"CPU {cpu}/KVM", 0.7, (3 * cpu + 5 * guest) % 16) for cpu in range(4)] + [("IO iothread1", 0.02, 1), ("worker", 0, 2)]
        host.server(pid, "qemu-system-x86", threads, busy=0.1, cgroup=f"/machine.slice/machine-qemu\\x2d{guest}\\x2dguest{guest}.scope",
                    exe="/usr/bin/qemu-system-x86_64", uid=64055)


def idle(root):
    host = Host(root)
    host.fast_nic(8)
    host.nginx(8, 8, busy=0.001)
    for pid, name in ((300, "cron"), (301, "sshd"), (302, "dbus-daemon")):
        host.server(pid, name, busy=0.002, unit=f"{name}.service")


def placed_already(root):
    """A drop-in has given nginx its CPUs; a .link file and a script place the interrupts."""
    host = Host(root)
    host.fast_nic(8)
    host.nginx(4, 4, cpus=range(4))
    host.put("etc/systemd/system/nginx.service.d/cpus.conf", "[Service]\nNice=-5\nCPUAffinity=0-3")
    host.put("etc/systemd/network/10-eth0.link", "[Match]\nOriginalName=eth0\n\n[Link]\nNamePolicy=keep\nIRQAffinityPolicy=spread\nIRQAffinity=0-3")
    host.put("etc/rc.local", "#!/bin/sh\n/usr/local/sbin/set_irq_affinity.sh 0-3 eth0")
    for irq in range(40, 48):
        host.put(f"proc/irq/{irq}/smp_affinity_list", irq % 4)
        host.put(f"proc/irq/{irq}/smp_affinity", bits({irq % 4}))


def isolated_cpus(root):
    """Two CPUs are set apart for a program of trading, which is on one of them. nginx has the others."""
    host = Host(root, isolated={6, 7}, cmdline="quiet isolcpus=6-7 nohz_full=6-7")
    host.put("sys/devices/system/cpu/nohz_full", numbers({6, 7}))
    host.fast_nic(6)
    host.nginx(6, 6, cpus=range(6))
    host.server(990, "feed", busy=1.0, cpu=7, unit="feed.service", exe="/opt/feed/feed", uid=1001, cpus={7})
    host.put("etc/systemd/system/feed.service", "[Service]\nExecStart=taskset -c 7 /opt/feed/feed --key geheim")


def two_nodes(root):
    """The NIC is on node 1; the workers are on both, and their memory is on node 0."""
    host = Host(root, cpus=16, nodes=2)
    host.fast_nic(8, node=1)
    host.nginx(8, 8)
    for pid in range(901, 909):
        host.put(f"proc/{pid}/numa_maps", "7f00 default anon=50000 N0=45000 N1=5000 kernelpagesize_kB=4")


NGINX = {"match": {"unit": "nginx.service"}, "affinity": "full", "nics": "eth0", "spread": "core"}
# "policy": keys that must have these values; "absent": keys that must not be there; "rules": thread -> all that the rule says which takes it, or None;
# "switch": a word of the advice for the server's own settings, None: there is no advice; "told": words that must stand in reasons or advice;
# "stays": the plan of it is empty; "none": words of the reason why there is no policy.
WORLDS = {
    nginx_with_reuseport: {"nginx.service": {"policy": NGINX | {"bind": "core"}, "absent": ("steer", "cpus", "together", "threads"), "switch": None,
                                             "told": ("8 workers", "8 queues")}},
    nginx_without_reuseport: {"nginx.service": {"policy": NGINX, "absent": ("bind", "steer", "cpus", "threads"), "switch": "reuseport"}},
    haproxy: {"haproxy.service": {"policy": {"match": {"unit": "haproxy.service"}, "affinity": "full", "spread": "core"}, "absent": ("bind", "steer"),
                                  "switch": "shards by-thread", "told": ("8 threads",)}},
    postgresql: {"postgresql@15-main.service": {"policy": {"match": {"unit": "postgresql@15-main.service"}, "affinity": "full", "steer": "tasks"} | CORE,
                                                "absent": ("cpus", "threads"), "switch": None}},
    redis_with_io_threads: {"redis-server.service": {
        "policy": {"match": {"unit": "redis-server.service"}, "affinity": "full", "steer": "flows"} | CORE, "switch": None,
        "rules": {"redis-server": {"bind": "llc"}, "io_thd_2": {}, "bio_aof": ASIDE, "bio_lazy_free": ASIDE, "jemalloc_bg_thd": ASIDE}}},
    memcached: {"memcached.service": {"policy": {"match": {"unit": "memcached.service"}, "affinity": "full", "steer": "flows"} | CORE, "switch": None,
                                      "rules": {"mc-worker": {}, "mc-lrumaint": ASIDE, "mc-slabmaint": ASIDE}}},
    jvm: {"tomcat10.service": {"policy": {"match": {"unit": "tomcat10.service"}, "bind": "set"}, "absent": ("spread", "steer", "cpus", "nics"), "switch": None,
                               "rules": {"GC Thread#3": CORE, "G1 Conc#1": CORE, "http-nio-8080-e": None, "java": None, "C2 CompilerThre": None}}},
    guests: {"qemu-system-x86_64": {"policy": {"match": {"exe": "/usr/bin/qemu-system-x86_64", "user": "64055"}, "together": "node", "memory": "follow"},
                                    "absent": ("cpus", "nics", "steer"), "switch": None, "rules": {"CPU 3/KVM": CORE, "qemu-system-x86": None, "worker": None}}},
    idle: {"nginx.service": {"none": ("0.8 % of one CPU",)}},
    placed_already: {"nginx.service": {"policy": {"match": {"unit": "nginx.service"}, "cpus": "0-3", "bind": "set"}, "absent": ("spread", "nics", "steer"), "stays": True,
                                       "told": ("CPUAffinity=0-3", "nginx.service.d/cpus.conf", "IRQAffinity=0-3", "10-eth0.link", "set_irq_affinity", "rc.local")}},
    isolated_cpus: {"nginx.service": {"policy": NGINX | {"bind": "core", "cpus": "housekeeping"}, "absent": ("steer",), "told": ("6-7",)},
                    "feed.service": {"policy": {"match": {"unit": "feed.service"}, "cpus": "7"}, "absent": ("nics", "spread", "steer"), "stays": True,
                                     "told": ("taskset -c 7",)}},
    two_nodes: {"nginx.service": {"policy": NGINX | {"bind": "core", "cpus": "nic", "memory": "follow"}, "absent": ("steer",), "told": ("node 1",)}},
}
