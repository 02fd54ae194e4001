#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`isolate: true` on two of eight CPUs under load of network, disk, timers and forks: nothing that can be moved is there, and however it ends,
each interrupt, task, map and mask of the kernel is as before."""
import contextlib
import pathlib
import re
import time

import machine
import traffic
from daemon import install, status
from harness import main, run, start_daemon, test, wait_for

PAIR, WATCHED = {6, 7}, 30
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
    wait_for(lambda: not changed(), lambda: f"{when}: before and after: {changed()}", 60)


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


def quiet_pids():
    return {int(pid) for pid in pathlib.Path("/sys/fs/cgroup/system.slice/quiet.service/cgroup.procs").read_text(encoding="utf-8").split()}


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


@test()
def nothing_that_can_be_moved_is_on_the_pair_under_load():
    write_policy()
    await_isolation()
    time.sleep(5)  # an interrupt without remapping moves when it fires the next time
    counts, ran = machine.counters(), tasks()
    time.sleep(WATCHED)
    now, pids = machine.counters(), quiet_pids()
    stuck = {queue.get("irq") for queue in status()["queues"] if queue["state"] == "immovable"}
    came = {irq: sum(now[irq][cpu] - counts[irq][cpu] for cpu in PAIR) for irq in counts if irq in now and irq not in stuck}
    elsewhere = sum(now[irq][cpu] - counts[irq][cpu] for irq in counts if irq in now for cpu in machine.online() - PAIR)
    assert not any(came.values()), {irq: count for irq, count in came.items() if count}
    assert elsewhere > WATCHED, f"hardly any load: {elsewhere}"
    foreign = [f"{name} ({tid}) {sorted(mask)} on CPU {cpu}" for tid, (name, _, ticks, cpu, mask, pid) in tasks().items()
               if cpu in PAIR and tid in ran and ticks > ran[tid][2] and len(mask) > 1 and pid not in pids]
    assert not foreign, foreign
    return f"{elsewhere} interrupts of devices on the other CPUs in {WATCHED} s, none on the pair; immovable: {sorted(filter(None, stuck)) or 'none'}"


@test()
def what_another_program_resets_is_set_again():
    for path in KERNEL.values():
        pathlib.Path(path).write_text("ff", encoding="utf-8")
    moved = next(queue["irq"] for queue in status()["queues"] if queue["kind"] == "irq" and "original" in queue)
    (machine.IRQS / str(moved) / "smp_affinity_list").write_text("0-7", encoding="utf-8")
    wait_for(lambda: not machine.requested(moved) & PAIR, "the interrupt is put right without a pass that was asked for", 30)
    run("affinityctl", "apply")
    await_isolation()


@test()
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
