#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two nodes with a NIC of eight queues each: queues go where readers are, and follow them, whatever cpusets, reloads and names become."""
import contextlib
import itertools
import pathlib
import random
import re
import subprocess
import time

import machine
import traffic
from daemon import install, status
from harness import ROOM, broken_for, main, run, test, wait_for
from traffic import POLICIES

NICS = ("ens1", "ens2")
NIC, ADDRESS = "ens1", "10.77.1.1"
READERS = ("/usr/bin/python3", "-S", "/host/inside/readers.py")
REWRITES = 60
# Seconds. The first is what the daemon is to need, the second what fails: an emulated CPU may stand still for a while.
SOON, LATE = 1.0, 5.0
FULL = "version: 1\nmatch: {{{match}}}\naffinity: full\nnics: {nics}\nspread: core\nbind: core\n{more}"


# The machine.

def group(unit):
    return pathlib.Path("/sys/fs/cgroup" + run("systemctl", "show", "-P", "ControlGroup", unit).strip())


def processes(unit_group):
    return [int(pid) for pid in machine.read(unit_group / "cgroup.procs").split()]


def task_mask(pid, tid):
    return frozenset(machine.cpus(re.search(r"^Cpus_allowed_list:\s*(\S*)", machine.read(f"/proc/{pid}/task/{tid}/status"), re.MULTILINE)[1]))


def name_of(pid, tid):
    return machine.read(f"/proc/{pid}/task/{tid}/comm")


def parent(pid):
    return int(machine.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[1])


def workers(unit_group):
    """Masks of the processes that others of the group have started; those of all their threads. A worker that has ended meanwhile is none."""
    found = {}
    pids = processes(unit_group)
    for pid in pids:
        with contextlib.suppress(OSError):
            if parent(pid) in pids:
                found |= {tid: task_mask(pid, tid) for tid in machine.threads(pid)}
    return found


def queues(nic):
    """{interrupt: CPUs} of the queues."""
    return {irq: frozenset(machine.effective(irq)) for irq in IRQS[nic]}


def are_apart(masks, allowed):
    """Each task has a core of one thread, and none shares it while another one that they may use has no task."""
    count = {cpu: sum(mask == {cpu} for mask in masks) for cpu in allowed}
    return all(len(mask) == 1 for mask in masks) and (max(count.values()) <= 1 or min(count.values()) > 0)


IRQS = {}


@contextlib.contextmanager
def policy(name, text):
    file = POLICIES / f"{name}.yaml"
    file.write_text(text, encoding="utf-8")
    try:
        run("affinityctl", "check", str(file))
        yield file
    finally:
        file.unlink(missing_ok=True)


@contextlib.contextmanager
def unit(name, *command, more=()):
    run("systemd-run", f"--unit={name}", *more, *READERS, *map(str, command))
    try:
        yield group(name)
    finally:
        run("systemctl", "stop", name)
        run("systemctl", "reset-failed", code=(0, 1))


def figures(name, seconds):
    ordered = sorted(seconds)
    late = sum(each > SOON for each in ordered)
    return f"{name} median {ordered[len(ordered) // 2]:.2f} s, longest {ordered[-1]:.2f} s, {late} of {len(ordered)} later than {SOON:.0f} s"


@test()
def two_nics_of_eight_queues():
    traffic.wire_up((1, 2))
    install()
    for nic in NICS:
        IRQS[nic] = sorted(machine.data_irqs(nic))
    assert [len(IRQS[nic]) for nic in NICS] == [8, 8], IRQS
    assert [machine.node_cpus(nic) for nic in NICS] == [set(range(4)), set(range(4, 8))], [machine.node_cpus(nic) for nic in NICS]


# Cpusets that are written anew, as the kubelet does.

CHANCE = random.Random(56)


def seconds_until(conditions, begun, patience=LATE):
    """{name: seconds until it first held, and patience where it did not}; ends when all hold."""
    took = {}
    while (now := time.monotonic() - begun) < patience and len(took) < len(conditions):
        for name, condition in conditions.items():
            if name not in took and condition():
                took[name] = time.monotonic() - begun
        time.sleep(0.03)
    return {name: took.get(name, patience) for name in conditions}


def rewrite(groups):
    """Writes {group: CPUs}."""
    for each, cpus in groups.items():
        (each / "cpuset.cpus").write_text(",".join(map(str, sorted(cpus))), encoding="ascii")


def rewritten(sets, conditions_of, told):
    """Writes one of the cpusets after the other, and returns what was measured; fails if a condition did not hold in time."""
    took, wrong = {}, []
    for number, cpusets in enumerate(sets):
        conditions = conditions_of(cpusets)
        begun = time.monotonic()
        rewrite(cpusets)
        for name, seconds in seconds_until(conditions, begun).items():
            took.setdefault(name, []).append(seconds)
            if seconds >= LATE:
                wrong.append(f"rewrite {number} to {[sorted(cpus) for cpus in cpusets.values()]}: {name}: {told(cpusets)}")
    text = "measured: " + "; ".join(figures(name, seconds) for name, seconds in took.items())
    assert not wrong, f"{text}\n{len(wrong)} not so within {LATE:.0f} s:\n" + "\n".join(wrong[:4])
    assert max(took["tasks"]) <= 0.5 + SOON, text
    return text


def some_cpus(least, most):
    """CPUs of both nodes, or of one of them."""
    pool = CHANCE.choice([range(8), range(8), range(4), range(4, 8)])
    return set(CHANCE.sample(pool, CHANCE.randint(least, min(most, len(pool)))))


@test(limit=1500)
def the_queues_follow_a_pod_whose_cpuset_is_written_anew():
    with unit("pod", "serve", 3, ADDRESS, 8080, more=["-p", "AllowedCPUs=0-7"]) as pod, policy("pod", FULL.format(match="unit: pod.service", nics="auto", more="")):
        def conditions(cpusets):
            cpus = cpusets[pod]
            return {"tasks": lambda: all(mask <= cpus for mask in workers(pod).values()),
                    "interrupts": lambda: all(each <= cpus for each in queues(NIC).values()),
                    "queues at readers": lambda: all(any(each <= mask for mask in workers(pod).values()) for each in queues(NIC).values()),
                    "apart": lambda: len(workers(pod)) == 3 and are_apart(workers(pod).values(), cpus)}

        wait_for(lambda: all(seconds < LATE for seconds in seconds_until(conditions({pod: set(range(8))}), time.monotonic()).values()),
                 lambda: f"{workers(pod)}, {queues(NIC)}", 60)
        return rewritten(({pod: some_cpus(1, 6)} for _ in range(REWRITES)), conditions, lambda _: f"{workers(pod)}, {queues(NIC)}")


@test(limit=1500)
def programs_that_share_the_rest_stay_apart_and_each_in_its_cpuset():
    with contextlib.ExitStack() as stack:
        shared_pool = ["-p", "AllowedCPUs=0-7", "--slice=kubepods.slice"]
        pod, *others = (stack.enter_context(unit(f"pod{number}", "serve", 2, ADDRESS, 8080 + number, more=shared_pool)) for number in range(4))
        stack.enter_context(policy("pods", FULL.format(match="unit: kubepods.slice", nics="auto", more="")))

        def masks():
            return {each: list(workers(each).values()) for each in (pod, *others)}

        def of_shared(now):
            return [mask for each in others for mask in now[each]]

        def conditions(cpusets):
            own, rest = cpusets[pod], cpusets[others[0]]

            def are_inside(now):
                return all(mask <= cpusets[each] for each in now for mask in now[each])

            def all_apart(now):
                return are_apart(now[pod], own) and are_apart(of_shared(now), rest)

            def at_readers(now):
                return all(any(each <= mask for masks in now.values() for mask in masks) for each in queues(NIC).values())

            return {"tasks": lambda: are_inside(masks()), "queues at readers": lambda: at_readers(masks()), "apart": lambda: all_apart(masks())}

        def sets():
            for _ in range(REWRITES):
                own = some_cpus(1, 4)
                yield {each: own if each == pod else set(range(8)) - own for each in (pod, *others)}

        return rewritten(sets(), conditions, lambda _: f"{ {each.name: [sorted(mask) for mask in found] for each, found in masks().items()} }, {queues(NIC)}")


# Readers of two NICs.

def threads_of(unit_group, nic):
    """Masks of the readers of a NIC."""
    return [task_mask(pid, tid) for pid in processes(unit_group) for tid in machine.threads(pid) if name_of(pid, tid).endswith("-" + nic)]


def rps(nic):
    """{CPUs that packets are handed on to}, of all queues."""
    found = set()
    for path in (machine.NETS / nic / "queues").glob("rx-*/rps_cpus"):
        mask = int(machine.read(path).replace(",", ""), 16)
        found |= {cpu for cpu in range(64) if mask >> cpu & 1}
    return found


def faults_of_two(unit_group, each_on_its_node):
    faults = [f"a reader of {nic} is on {sorted(mask)}" for nic in NICS for mask in threads_of(unit_group, nic) if len(mask) > 1]
    for nic in NICS:
        node = machine.node_cpus(nic)
        own = threads_of(unit_group, nic)
        readers = own if each_on_its_node else [mask for one in NICS for mask in threads_of(unit_group, one)]
        seats = frozenset().union(*readers)
        if each_on_its_node:
            faults += [f"a reader of {nic} is on {sorted(mask)}" for mask in own if not mask <= node]
        faults += [f"{nic}: IRQ {irq} is on {sorted(cpus)}, where no reader is" for irq, cpus in queues(nic).items() if not cpus <= seats]
        faults += [f"{nic}: RPS hands on to {sorted(rps(nic))}"] if not rps(nic) <= seats & node else []
        if each_on_its_node and not are_apart(own, node):
            faults.append(f"{nic}: readers are stacked: {sorted(map(sorted, own))}")
    return faults


def channels(count):
    for nic in NICS:
        run("ethtool", "-L", nic, "combined", str(count), code=(0, 1, 80))
        wait_for(lambda nic=nic: len(machine.data_irqs(nic)) == (8 if count == 8 else 4) or len(machine.data_irqs(nic)) == count,
                 lambda nic=nic: machine.data_irqs(nic))
        IRQS[nic] = sorted(irq for irq, label in machine.data_irqs(nic).items() if "-tx-" not in label)


def two_nics(verb, threads, each_on_its_node=True):
    """Few and many readers, few and many queues."""
    names = NICS if verb == "name" else [f"{nic}=10.77.{number}.1" for number, nic in enumerate(NICS, 1)]
    told, failed = [], False
    try:
        for count, channel in itertools.product((3, 9), (8, 2)):
            channels(channel)
            with unit("suricata", verb, count, *names) as its, \
                    policy("suricata", FULL.format(match="unit: suricata.service", nics="[ens1, ens2]", more=threads)):
                begun = time.monotonic()
                try:
                    wait_for(lambda: not faults_of_two(its, each_on_its_node), lambda: faults_of_two(its, each_on_its_node), 20)
                    took = time.monotonic() - begun
                    time.sleep(3)
                    assert not faults_of_two(its, each_on_its_node), f"right after {took:.1f} s, but later {faults_of_two(its, each_on_its_node)}"
                    told.append(f"{count} readers, {channel} queues a NIC: {took:.1f} s")
                except AssertionError as error:
                    told.append(f"{count} readers, {channel} queues a NIC: {error}")
                    failed = True
    finally:
        channels(8)
    assert not failed, "\n".join(told)
    return "measured: " + ", ".join(told)


@test(limit=600)
def readers_named_after_their_nics_are_on_their_nodes():
    rules = "".join(f'  - {{name: "W#*-{nic}", nics: [{nic}]}}\n' for nic in NICS)
    return two_nics("name", f"threads:\n{rules}  - {{name: \"*\", leave: true}}\n")


@test(limit=600)
def readers_that_listen_at_a_nic_are_on_its_node():
    return two_nics("listen", 'threads:\n  - {name: "W#*"}\n  - {name: "*", leave: true}\n')


@test(limit=600)
def readers_of_either_nic_share_its_queues():
    return two_nics("name", 'threads:\n  - {name: "W#*"}\n  - {name: "*", leave: true}\n', each_on_its_node=False)


# Reloads.

NGINX = f"""user www-data;
worker_processes {{}};
pid /run/nginx.pid;
events {{{{ }}}}
http {{{{ access_log off; keepalive_timeout 1h; server {{{{ listen {ADDRESS}:8080 reuseport; location / {{{{ return 200 "ok"; }}}} }}}} }}}}
"""
HAPROXY = f"""global
    nbthread {{}}
defaults
    mode http
    timeout client 1h
    timeout connect 10s
    timeout server 10s
frontend one
    bind {ADDRESS}:8080 shards by-thread
    http-request return status 200 content-type text/plain string ok
"""
EXAMPLES = pathlib.Path("/usr/share/affinityd/examples")


@contextlib.contextmanager
def clients(count=8):
    with subprocess.Popen(["ip", "netns", "exec", "peer1", *READERS, "ask", str(count), ADDRESS, "8080"]) as process:
        try:
            yield
        finally:
            process.kill()


def faults_of_server(unit_group, count):
    """Each queue is with a worker, each worker on a core of its own, and has its share of the queues."""
    found, now = workers(unit_group), queues(NIC)
    if len(found) != count:
        return [f"{len(found)} workers"]
    shares = [sum(cpus <= mask for cpus in now.values()) for mask in found.values()]
    faults = [f"IRQ {irq} is on {sorted(cpus)}" for irq, cpus in now.items() if not any(cpus <= mask for mask in found.values())]
    faults += [f"workers have {shares} queues"] if max(shares) - min(shares) > 1 else []
    faults += [f"workers are on {sorted(map(sorted, found.values()))}"] if len(set(found.values())) < count else []
    return faults


def reloads(name, count, text, with_clients=True):
    """Seconds after each reload until all is right and stays so."""
    its = group(name)
    took, wrong = [], []
    with policy("server", text), clients() if with_clients else contextlib.nullcontext():
        wait_for(lambda: not faults_of_server(its, count), lambda: f"before: {faults_of_server(its, count)}, {workers(its)}, {queues(NIC)}", 30)
        for number in range(5):
            old = set(workers(its))
            try:
                took.append(broken_for(lambda: run("systemctl", "reload", name),
                                       lambda: not old & set(workers(its)) and not faults_of_server(its, count), 5))
            except AssertionError as error:
                wrong.append(f"{count} workers, reload {number}: {error}: {faults_of_server(its, count)}, {workers(its)}, {queues(NIC)}")
                break
    assert not wrong, "\n".join(wrong + ([figures(name, took)] if took else []))
    assert max(took) <= LATE + SOON, figures(name, took)
    return figures(f"{count} workers", took)


@contextlib.contextmanager
def server(name, file, text, count):
    pathlib.Path(file).write_text(text.format(count), encoding="utf-8")
    run("systemctl", "restart", name, patience=300)
    wait_for(lambda: len(workers(group(name))) == count, lambda: workers(group(name)))
    try:
        yield
    finally:
        run("systemctl", "stop", name)


def all_reloads(name, file, configuration, text, with_clients=True):
    """With half as many workers as cores, and with as many."""
    told = []
    for count in (4, 8):
        with server(name, file, configuration, count):
            told.append(reloads(name, count, text, with_clients))
    return "measured: " + "; ".join(told)


def reloads_of_nginx(text, with_clients=True):
    return all_reloads("nginx", "/etc/nginx/nginx.conf", NGINX, text, with_clients)


WORKERS_ALONE = FULL.format(match="unit: nginx.service, user: www-data", nics="auto", more="")


@test(limit=900)
def no_queue_is_without_a_worker_after_a_reload_of_nginx():
    return reloads_of_nginx(WORKERS_ALONE, with_clients=False)


@test(limit=900)
def nor_after_one_with_clients():
    return reloads_of_nginx(WORKERS_ALONE)


@test(limit=900)
def nor_with_the_shipped_policy_which_covers_the_master():
    return reloads_of_nginx((EXAMPLES / "nginx.yaml").read_text(encoding="utf-8"))


@test(limit=900)
def nor_after_a_reload_of_haproxy():
    return all_reloads("haproxy", "/etc/haproxy/haproxy.cfg", HAPROXY, (EXAMPLES / "haproxy.yaml").read_text(encoding="utf-8"))


# Another name.

def rename(old, new):
    run("ip", "link", "set", old, "name", new)


@test(limit=600)
def an_interface_that_is_renamed_while_up_keeps_its_interrupts_and_its_policy():
    irqs = IRQS[NIC]
    now = lambda: {irq: machine.requested(irq) for irq in irqs}

    def unchanged():
        """The masks, if the undo of the test before changes none of them any more."""
        values = now()
        time.sleep(3)
        return values if values == now() else None

    before = wait_for(unchanged, now)
    with unit("renamed", "serve", 4, ADDRESS, 8080) as its, policy("renamed", FULL.format(match="unit: renamed.service", nics="auto", more="")) as file:
        def is_right():
            return all(any(machine.effective(irq) <= mask for mask in workers(its).values()) for irq in irqs)

        wait_for(is_right, lambda: f"{workers(its)}, {queues(NIC)}")
        placed = queues(NIC)
        try:
            rename(NIC, "lan0")
            end = time.monotonic() + 8
            while time.monotonic() < end:
                assert queues(NIC) == placed, f"{placed} became {queues(NIC)} {8 - (end - time.monotonic()):.1f} s after the rename"
                time.sleep(0.02)
            told = [queue for queue in status()["queues"] if queue["kind"] == "irq"]
            assert {queue["nic"] for queue in told} == {"lan0"} and len(told) == 8, told
            there = machine.IRQS / str(irqs[0]) / "smp_affinity_list"
            seconds = broken_for(lambda: there.write_text("7", encoding="ascii"), lambda: queues(NIC) == placed)
            assert seconds < ROOM, seconds
            file.unlink()
            wait_for(lambda: now() == before, lambda: f"before {before}, now {now()}")
        finally:
            run("ip", "link", "property", "del", "dev", "lan0", "altname", NIC, code=(0, 2))  # udev may have added it
            rename("lan0", NIC)
    return f"measured: put right after {seconds:.2f} s"


@test()
def nothing_went_wrong_by_the_daemons_own_account():
    errors = run("journalctl", "-u", "affinityd", "-p", "err", "-q", "--no-pager", "-o", "cat")
    assert not errors, errors


if __name__ == "__main__":
    main()
