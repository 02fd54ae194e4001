#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`isolate: true` on two of eight CPUs under load of network, disk, timers and forks: nothing that can be moved is there, and however it ends,
each interrupt, task, map and mask of the kernel is as before."""
import contextlib
import json
import os
import pathlib
import re
import time

import machine
import traffic
from daemon import install, status
from harness import main, run, start_daemon, test, wait_for
from witness import visitors

PAIR, WATCHED = {6, 7}, 60
POLICY = 'version: 1\nmatch: {unit: quiet.service}\ncpus: "6-7"\nspread: cpu\nbind: cpu\nsettle: 0\nisolate: true\n'
QUIET = "import os, time\nos.fork()\nwhile True:\n    time.sleep(0.01)\n"
LOAD = """import os, subprocess, time
while True:
    with open("/var/tmp/load", "wb") as file:
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())
    subprocess.run(["/bin/true"])
    for _ in range(20):
        time.sleep(0.002)
"""
# The parent on CPU 0 moves the memory of its child, which spins on CPU 5, from one node to the other and back.
MIGRATE = """import ctypes, mmap, os, time
memory = mmap.mmap(-1, 64 * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
child = os.fork()
os.sched_setaffinity(0, {0 if child else 5})
while not child:
    for page in range(64):
        memory[page * 4096] = 1
pages = (ctypes.c_void_p * 64)(*range(first, first + 64 * 4096, 4096))
for turn in range(1 << 30):
    ctypes.CDLL(None).syscall(279, child, ctypes.c_ulong(64), pages, (ctypes.c_int * 64)(*[turn % 2] * 64), (ctypes.c_int * 64)(), 2)
    time.sleep(0.01)
"""
# As a guest with four virtual CPUs.
GUEST = """import ctypes, threading, time
def virtual_cpu(number):
    ctypes.CDLL(None).prctl(15, f"CPU {number}/KVM".encode(), 0, 0, 0)
    time.sleep(1e6)
for number in range(4):
    threading.Thread(target=virtual_cpu, args=(number,)).start()
"""
KERNEL = {"new interrupts": "/proc/irq/default_smp_affinity", "unbound work": "/sys/devices/virtual/workqueue/cpumask"}
FIXED = 0x04000000  # PF_NO_SETAFFINITY
before = {}


def snapshot():
    found = machine.interrupt_masks() | machine.task_masks() | {name: machine.read(path) for name, path in KERNEL.items()}
    for nic in ("ens1", "ens2"):
        found |= machine.steering(nic)
    return found


def changed():
    now = snapshot()
    return {name: (mask, now[name]) for name, mask in before.items() if name in now and now[name] != mask}


def assert_as_before(when):
    def cpuset():
        slice_ = pathlib.Path("/sys/fs/cgroup/system.slice")
        files = [slice_ / "cgroup.subtree_control", slice_ / "quiet.service/cpuset.cpus"]
        return {path.name: machine.read(path) for path in files if path.exists()} | {"AllowedCPUs": run("systemctl", "show", "-P", "AllowedCPUs", "quiet")}
    wait_for(lambda: not changed(), lambda: f"{when}: before and after: {changed()}; {cpuset()}", 60)


def tasks():
    """{tid: (name, flags, ticks, last CPU, mask, process)}"""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*/task/[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            name, fields = re.match(r"\d+ \((.*)\) (.*)", machine.read(folder / "stat"), re.DOTALL).groups()
            fields = fields.split()
            mask = re.search(r"^Cpus_allowed_list:\s*(\S*)", machine.read(folder / "status"), re.MULTILINE)[1]
            found[int(folder.name)] = (name, int(fields[6]), int(fields[11]) + int(fields[12]), int(fields[36]), machine.cpus(mask), int(folder.parts[2]))
    return found


def is_unified():
    return pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()


def quiet_pids():
    hierarchy = "" if is_unified() else "/systemd"
    return {int(pid) for pid in pathlib.Path(f"/sys/fs/cgroup{hierarchy}/system.slice/quiet.service/cgroup.procs").read_text(encoding="utf-8").split()}


def is_used(irq):
    return any(path.is_dir() for path in (machine.IRQS / str(irq)).glob("*"))


def is_movable(irq):
    """False where a newer kernel says so; older ones refuse the write."""
    return bool((machine.IRQS / str(irq) / "smp_affinity_list").stat().st_mode & 0o200)


def masks_on_pair():
    """All that can be moved, and may be on the pair."""
    pids = quiet_pids()
    wrong = [f"{name} ({tid}) {sorted(mask)}" for tid, (name, flags, _, _, mask, pid) in tasks().items()
             if mask & PAIR and not mask <= PAIR and not flags & FIXED and pid not in pids and not name.startswith("irq/")]
    stuck = {queue.get("irq") for queue in status()["queues"] if queue["state"] == "immovable"}
    wrong += [f"IRQ {number} {machine.read(f'/proc/irq/{number}/smp_affinity_list')}" for number in machine.counters()
              if number not in stuck and is_used(number) and (machine.requested if is_movable(number) else machine.effective)(number) & PAIR]
    wrong += [name for name, path in KERNEL.items() if int(machine.read(path).replace(",", ""), 16) >> min(PAIR)]
    return wrong


def await_isolation():
    wait_for(lambda: not masks_on_pair(), lambda: f"nothing may be on the pair: {masks_on_pair()}")
    wait_for(lambda: sorted(map(sorted, map(machine.allowed, quiet_pids()))) == [[6], [7]], "the program has the pair")


def write_policy():
    (traffic.POLICIES / "quiet.yaml").write_text(POLICY, encoding="utf-8")


@test()
def a_quiet_program_and_loads():
    install()
    traffic.wire_up([1, 2])
    traffic.write_units()
    traffic.start([1])
    pathlib.Path("/tmp/load.py").write_text(LOAD, encoding="utf-8")
    pathlib.Path("/tmp/quiet.py").write_text(QUIET, encoding="utf-8")
    for path in ("ens1/queues/rx-0/rps_cpus", "ens1/queues/rx-1/rps_cpus"):
        (machine.NETS / path).write_text("c0" if "rx-1" in path else "f0", encoding="utf-8")
    for name in ("load", "quiet"):
        run("systemd-run", f"--unit={name}.service", "/usr/bin/python3", f"/tmp/{name}.py")
    wait_for(lambda: len(quiet_pids()) == 2 and all(traffic.receivers([1]).values()), "all run")
    time.sleep(3)
    before.update(snapshot())
    assert status()["journal"] == 0


def intruders(cpus, is_it, what):
    """The first source that is it, and what could not be seen."""
    seen = []

    def look():
        seen.append(json.loads(run("affinityctl", "intruders", cpus, "--for", "2s", "--json")))
        return next(filter(is_it, seen[-1]["sources"]), None)
    return wait_for(look, lambda: f"{what}: {seen[-1]}"), seen[-1]["notes"]


@test()
def intruders_are_named():
    softirqs = {"SCHED", "NET_RX", "TIMER", "RCU"}
    intruders("0-7", lambda one: softirqs.discard(one["source"]) or not softirqs, "softirqs")
    irq, _ = intruders("0-7", lambda one: one["kind"] == "irq" and "ens1" in one["source"], "the interrupt of a NIC")
    worker, _ = intruders("0-7", lambda one: one["kind"] == "kthread" and "kworker" in one["source"] and ": " in one["source"], "work of the kernel")
    return f"{irq['source']}, {worker['source']}"


@test()
def migration_of_pages_has_a_sender_where_the_kernel_tells():
    pathlib.Path("/tmp/migrate.py").write_text(MIGRATE, encoding="utf-8")
    run("systemd-run", "--unit=migrate.service", "/usr/bin/python3", "/tmp/migrate.py")
    pid = int(run("systemctl", "show", "-P", "MainPID", "migrate.service"))
    if os.uname().release.startswith("6.1."):
        call, notes = intruders("5", lambda one: one["kind"] == "ipi" and one["count"] > 20, "calls")
        assert call["from"] is None and any("ipi_send_cpu" in note for note in notes), (call, notes)
    else:
        call, _ = intruders("5", lambda one: "flush_tlb_func" in one["source"] and one["pid"] == pid, "the migration")
        assert call["from_cpus"] == "0" and str(pid) in call["from"], call
    run("systemctl", "stop", "migrate.service")
    return f"{call['source']}, {call['count']} times, from {call['from']}"


def siblings(cpu):
    return machine.cpus(machine.read(machine.CPUS / f"cpu{cpu}/topology/thread_siblings_list"))


@test()
def the_load_of_a_sibling_is_told():
    others = siblings(5) - {5}
    if others:
        run("systemd-run", "--unit=sibling.service", "taskset", "-c", str(min(others)), "/usr/bin/python3", "-c", "while True: pass")

    def look():
        answer = json.loads(run("affinityctl", "intruders", "5", "--for", "2s", "--json"))
        cpu = answer["per_cpu"][0]
        if not others:
            return cpu["siblings"] == "" and cpu["siblings_busy"] is None
        return cpu["siblings_busy"] > 0.5 and any("shares its core" in note for note in answer["notes"])
    wait_for(look, "the sibling is busy, or there is none")
    if others:
        run("systemctl", "stop", "sibling.service")
    return f"{len(others)} siblings"


@test()
def virtual_cpus_of_a_guest_sit_on_siblings():
    pathlib.Path("/tmp/guest.py").write_text(GUEST, encoding="utf-8")
    (traffic.POLICIES / "guest.yaml").write_text('version: 1\nmatch: {unit: guest.service}\ntogether: node\nnear: room\nsettle: 0\nthreads:\n'
                                                 '  - {name: "CPU */KVM", spread: core, smt: pair}\n', encoding="utf-8")
    run("systemd-run", "--unit=guest.service", "/usr/bin/python3", "/tmp/guest.py")
    pid = run("systemctl", "show", "-P", "MainPID", "guest.service").strip()

    def places():
        found = {}
        for folder in pathlib.Path(f"/proc/{pid}/task").iterdir():
            name = re.fullmatch(r"CPU (\d)/KVM", machine.read(folder / "comm"))
            if name:
                found[int(name[1])] = machine.cpus(re.search(r"^Cpus_allowed_list:\s*(\S*)", machine.read(folder / "status"), re.MULTILINE)[1])
        return found

    def are_paired():
        found = places()
        if sorted(found) != [0, 1, 2, 3] or any(len(cpus) != 1 for cpus in found.values()) or len(set.union(*found.values())) != 4:
            return False
        return len(siblings(0)) < 2 or all(found[first] | found[first + 1] == siblings(min(found[first])) for first in (0, 2))
    wait_for(are_paired, lambda: f"where they are: {places()}")
    told = places()
    (traffic.POLICIES / "guest.yaml").unlink()
    run("systemctl", "stop", "guest.service")
    return told


@test()
def nothing_that_can_be_moved_is_on_the_pair_under_load():
    write_policy()
    await_isolation()
    time.sleep(5)  # an interrupt without remapping moves when it fires the next time
    counts, ran = machine.counters(), tasks()
    ran_there, came_there = visitors(PAIR, WATCHED)
    now, pids = machine.counters(), quiet_pids()
    stuck = {queue.get("irq") for queue in status()["queues"] if queue["state"] == "immovable"}
    came = {irq: sum(now[irq][cpu] - counts[irq][cpu] for cpu in PAIR) for irq in counts if irq in now and irq not in stuck}
    elsewhere = sum(now[irq][cpu] - counts[irq][cpu] for irq in counts if irq in now for cpu in machine.online() - PAIR)
    assert not any(came.values()), {irq: count for irq, count in came.items() if count}
    assert elsewhere > WATCHED, f"hardly any load: {elsewhere}"
    foreign = [f"{name} ({tid}) {sorted(mask)} on CPU {cpu}" for tid, (name, _, ticks, cpu, mask, pid) in tasks().items()
               if cpu in PAIR and tid in ran and ticks > ran[tid][2] and len(mask) > 1 and pid not in pids]
    assert not foreign, foreign
    own = {tid for tid, (_, flags, *_, pid) in tasks().items() if flags & FIXED or pid in pids} | {0}
    foreign = {tid: seen for tid, seen in ran_there.items() if tid not in own or seen[0].startswith("kworker/u")}
    assert not foreign, f"seen by bpftrace: {foreign}"
    assert not set(came_there) - stuck, f"seen by bpftrace: {came_there}"
    return f"{elsewhere} interrupts of devices on the other CPUs in {WATCHED} s, none on the pair; immovable: {sorted(filter(None, stuck)) or 'none'}; {len(ran_there)} tasks ran there"


@test()
def a_cpuset_of_the_unit_holds_it_or_the_daemon_says_why_not():
    def fence():
        explained = json.loads(run("affinityctl", "explain", str(min(quiet_pids())), "--json"))
        return explained["means"]["state"] if explained.get("means") else ""
    (traffic.POLICIES / "quiet.yaml").write_text(POLICY + "means: cpuset\n", encoding="utf-8")
    wanted = "in place" if is_unified() else "cpusets of units need the unified cgroup hierarchy"
    wait_for(lambda: fence() == wanted, lambda: f"the cpuset: {fence()}")
    await_isolation()
    write_policy()
    wait_for(lambda: not fence(), lambda: f"still a cpuset: {fence()}")
    await_isolation()
    return wanted


@test()
def what_another_program_resets_is_set_again():
    for path in KERNEL.values():
        pathlib.Path(path).write_text("ff", encoding="utf-8")
    moved = next(queue["irq"] for queue in status()["queues"] if queue["kind"] == "irq" and "original" in queue)
    (machine.IRQS / str(moved) / "smp_affinity_list").write_text("0-7", encoding="utf-8")
    wait_for(lambda: not machine.requested(moved) & PAIR, "the interrupt is put right without a pass that was asked for", 30)
    run("affinityctl", "apply")
    await_isolation()


@test(900)
def all_is_as_before_after_each_end():
    run("systemctl", "stop", "affinityd", patience=80)
    assert_as_before("stopped")
    start_daemon()
    await_isolation()
    first = run("systemctl", "show", "-P", "MainPID", "affinityd")
    run("systemctl", "kill", "-s", "KILL", "affinityd")
    wait_for(lambda: run("systemctl", "show", "-P", "ActiveState", "affinityd").strip() == "active" and
             run("systemctl", "show", "-P", "MainPID", "affinityd") != first, "it is started again")
    await_isolation()
    run("systemctl", "stop", "affinityd", patience=80)
    assert_as_before("killed, started, stopped")
    start_daemon()
    await_isolation()
    run("affinityctl", "release", "quiet")
    assert_as_before("released")
    run("affinityctl", "apply")
    await_isolation()
    (traffic.POLICIES / "quiet.yaml").unlink()
    assert_as_before("the policy was removed")
    wait_for(lambda: status()["journal"] == 0, lambda: f"the journal has {status()['journal']}")


if __name__ == "__main__":
    main()
