#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each part of full affinity gains for nginx (two workers, `reuseport`) or HAProxy (two threads, `shards by-thread`) behind a veth pair with two queues whose packets two kernel
threads take in (threaded NAPI): requests per second and the share of reads on the CPU where the packet arrived, for all combinations of
"interrupts placed" (the two threads on a CPU each), "workers pinned" and "listeners steered", set by this program itself, and for the
daemon's models. All in turn, round after round; ratios are against "none" of the same round, with the geometric mean and its 95 %
confidence interval. Needs root, two CPUs, Debian's nginx-light or haproxy, wrk and iproute2; with bpftrace also the share of local reads.

    tests/bench/steer.py build [--server haproxy] [--rounds 30] [--seconds 2] [--only none full full+steer]
"""
import argparse
import contextlib
import itertools
import math
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent
PARTS = ("interrupts", "workers", "listeners")
EPOLL_WAITS = ("232", "281")  # epoll_wait(2) and epoll_pwait(2) of x86-64
# Of t with 9, 19, 29, 39 and more degrees of freedom; Student.
STUDENT = ((9, 2.262), (19, 2.093), (29, 2.045), (39, 2.023), (math.inf, 1.96))
HAPROXY = """global
    nbthread 2
    maxconn 2000
defaults
    mode http
    timeout client 1h
    timeout connect 10s
    timeout server 10s
frontend one
    bind 10.98.0.1:8080 shards by-thread
    http-request return status 200 content-type text/plain string ok
"""
WITNESS = """tracepoint:tcp:tcp_rcv_space_adjust /comm == "COMM"/ {
    $sk = (struct sock *)args->skaddr;
    if ($sk->__sk_common.skc_incoming_cpu == (int32)cpu) { @local = count(); } else { @remote = count(); } }
"""


def imports(build):
    """The integration tests' nginx and namespaces; they find the programs by their environment."""
    for name, path in (("AFFINITYD", "daemon/affinityd"), ("AFFINITYCTL", "tools/affinityctl/affinityctl"),
                       ("AFFINITYD_WORKLOAD", "tools/demo-workload/demo-workload")):
        os.environ[name] = str(build.resolve() / path)
    sys.path.insert(0, str(BENCH.parent / "integration"))


def variants():
    """Name, what this program sets itself, what the daemon's policy says."""
    for chosen in itertools.product((False, True), repeat=3):
        parts = [name for name, is_chosen in zip(PARTS, chosen, strict=True) if is_chosen]
        yield "+".join(parts) or "none", parts, None
    yield "full", [], "affinity: full\nsteer: none\nbind: core\n"
    yield "full+steer", [], "affinity: full\nsteer: auto\nbind: core\n"
    yield "full+steer, wide", [], "affinity: full\nsteer: auto\nbind: set\n"


class Bed:
    """The server (nginx), its interface, and what is set by hand."""

    def __init__(self, case, folder):
        self.case = case
        self.everywhere = os.sched_getaffinity(0)
        self.start(folder)

    def start(self, folder):
        self.master = self.case.nginx(folder)

    def own_listeners(self):
        """(ordinal of the worker, its pid or thread id, its own listener's socket)"""
        import steered
        for index, pid in enumerate(sorted(self.case.workers(self.master))):
            watched = steered.polled(pid)
            for number, one in steered.sockets(pid).items():
                with one:
                    if number in watched and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        yield index, pid, one

    def wait_until_told(self, is_steered):
        """Until the daemon has told the listeners their CPUs, and has become idle."""
        from daemon import wait_for
        if is_steered:
            import steered
            wait_for(lambda: all(one.getsockopt(socket.SOL_SOCKET, steered.SO_INCOMING_CPU) >= 0 for _, _, one in self.own_listeners()),
                     "the listeners are steered")
        time.sleep(1.5)

    def set(self, parts):
        import namespaces
        import steered
        for index, thread in enumerate(namespaces.napi_threads(self.case.nic)):
            os.sched_setaffinity(thread, {index} if "interrupts" in parts else self.everywhere)
        for index, pid, one in self.own_listeners():
            os.sched_setaffinity(pid, {index} if "workers" in parts else self.everywhere)
            one.setsockopt(socket.SOL_SOCKET, steered.SO_INCOMING_CPU, index if "listeners" in parts else -1)


class HaproxyBed(Bed):
    """The workers are threads of one process, each with an epoll of its own."""

    def start(self, folder):
        from daemon import spawn, wait_for
        program = folder / self.case.comm
        shutil.copy("/usr/sbin/haproxy", program)
        folder.chmod(0o755)
        (folder / "haproxy.cfg").write_text(HAPROXY, encoding="utf-8")
        server = spawn(self.case.stack, *self.case.near.command(str(program), "-db", "-f", str(folder / "haproxy.cfg")))
        self.case.stack.callback(server.wait)
        self.case.stack.callback(server.kill)
        self.master = server.pid
        wait_for(lambda: len(list(self.watched())) == 2, "both threads wait for connections")
        self.mine = dict(self.watched())  # while no request keeps a thread from waiting

    def watched(self):
        """(thread id, descriptor of the listener that its epoll watches)"""
        import steered
        process = pathlib.Path("/proc") / str(self.master)
        listeners = set(steered.incoming_cpus(self.master, True))
        for task in sorted((process / "task").iterdir(), key=lambda path: int(path.name)):
            number, first, *_ = [*(task / "syscall").read_text(encoding="ascii").split(), "", ""]
            if number not in EPOLL_WAITS:
                continue
            text = (process / "fdinfo" / str(int(first, 16))).read_text(encoding="ascii")
            for descriptor in map(int, re.findall(r"^tfd:\s*(\d+)", text, re.MULTILINE)):
                if descriptor in listeners:
                    yield int(task.name), descriptor

    def own_listeners(self):
        import steered
        found = steered.sockets(self.master)
        with contextlib.ExitStack() as stack:
            for one in found.values():
                stack.enter_context(one)
            for index, (thread, descriptor) in enumerate(self.mine.items()):
                yield index, thread, found[descriptor]


@contextlib.contextmanager
def witness(comm):
    """Counts reads until its end; afterwards its value has the share of local ones."""
    share = []
    program = WITNESS.replace("COMM", comm)
    # bpftrace looks for tracepoints in tracefs, which is not mounted everywhere.
    here = pathlib.Path("/sys/kernel/tracing/events").exists()
    way = [] if here else ["unshare", "--mount", "sh", "-c", 'mount -t tracefs nodev /sys/kernel/tracing && exec "$@"', "sh"]
    try:
        process = subprocess.Popen([*way, "bpftrace", "-e", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except FileNotFoundError:
        yield share
        return
    time.sleep(1.5)  # until it is attached
    try:
        yield share
    finally:
        process.send_signal(signal.SIGINT)
        text = process.communicate(timeout=30)[0]
        counts = {name: int(count) for name, count in re.findall(r"@(local|remote): (\d+)", text)}
        if sum(counts.values()):
            share.append(counts.get("local", 0) / sum(counts.values()))


def requests(case, seconds):
    """A second, by wrk with 128 connections."""
    text = case.far.run("wrk", "-t2", "-c128", f"-d{seconds}s", "http://10.98.0.1:8080/")
    return float(re.search(r"Requests/sec:\s*([\d.]+)", text)[1])


def measure(bed, parts, policy, options):
    case = bed.case
    with contextlib.ExitStack() as stack:
        if policy is None:
            bed.set(parts)
        else:
            bed.set([])
            daemon = case.daemon("auto")
            daemon.write("server.yaml", f"version: 1\nmatch: {{comm: {case.comm}}}\nnics: [{case.nic}]\nsettle: 0s\nspread: core\n{policy}")
            daemon.settings().write_text("version: 1\n", encoding="utf-8")  # intervals as shipped
            daemon.start()
            stack.callback(daemon.stop)
            bed.wait_until_told("steer: auto" in policy)
        if options.witness:
            with witness(case.comm) as share:
                rate = requests(case, options.seconds)
            return rate, share[0] if share else None
        return requests(case, options.seconds), None


def interval(ratios):
    """Geometric mean and its 95 % confidence interval."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(mean), math.nan, math.nan
    t = next(value for degrees, value in STUDENT if len(logs) - 1 <= degrees)
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def report(rates, shares):
    for name, values in rates.items():
        mean, low, high = interval([value / base for value, base in zip(values, rates["none"], strict=True)])
        local = f"; reads on the CPU of arrival: {statistics.fmean(shares[name]):.1%}" if shares[name] else ""
        print(f"{name}: {statistics.median(values):.0f} requests/s; against none {mean:.3f} ({low:.3f} to {high:.3f}){local}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--server", choices=("nginx", "haproxy"), default="nginx")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seconds", type=int, default=2, help="of each measurement")
    parser.add_argument("--only", nargs="+", help="variants; none is always there")
    options = parser.parse_args()
    imports(options.build)
    import steered
    case = steered.Steered()
    case.setUp()
    try:
        chosen = [one for one in variants() if not options.only or one[0] in (*options.only, "none")]
        with tempfile.TemporaryDirectory(prefix="affinityd-steer-") as folder:
            bed = (HaproxyBed if options.server == "haproxy" else Bed)(case, pathlib.Path(folder))
            rates, shares = ({name: [] for name, _, _ in chosen} for _ in range(2))
            for number in range(options.rounds):
                options.witness = number % 5 == 0  # it costs something
                for name, parts, policy in chosen:
                    rate, share = measure(bed, parts, policy, options)
                    rates[name].append(rate)
                    if share is not None:
                        shares[name].append(share)
            report(rates, shares)
    finally:
        case.doCleanups()
    return 0


if __name__ == "__main__":
    sys.exit(main())
