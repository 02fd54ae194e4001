#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demonstration: places the threads of a workload and the interrupts of a NIC, shows what the kernel says, and restores all."""
import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE = 60.0
PROC = pathlib.Path("/proc")


def say(text=""):
    print(text, flush=True)


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise SystemExit(f"FAILED: not true after {PATIENCE:.0f} s: {what}")


def masks(pid):
    result = {}
    for task in sorted((PROC / str(pid) / "task").iterdir(), key=lambda path: int(path.name)):
        status = (task / "status").read_text(errors="replace").splitlines()
        allowed = next(line.split()[1] for line in status if line.startswith("Cpus_allowed_list:"))
        result[int(task.name)] = ((task / "comm").read_text(errors="replace").strip(), allowed)
    return result


def irq_mask(irq):
    return (PROC / "irq" / str(irq) / "smp_affinity_list").read_text().strip()


def show(title, pid):
    say(title)
    for tid, (name, allowed) in masks(pid).items():
        say(f"  {PROC}/{pid}/task/{tid}/status: {name:<16} Cpus_allowed_list: {allowed}")


class Demo:
    def __init__(self, build, stack):
        self.build = pathlib.Path(build)
        self.stack = stack
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="affinityd-demo-"))
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.not_done = []

    def ctl(self, *arguments):
        done = subprocess.run([self.build / "tools/affinityctl/affinityctl", "--runtime-dir", self.folder / "run", *arguments],
                              capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):  # 3: something needs attention
            raise SystemExit(f"FAILED: affinityctl {' '.join(arguments)}: {done.stderr or done.stdout}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.ctl(*arguments, "--json"))

    def child(self, *command, **options):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)

        def end():
            if process.poll() is None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=30)
            if process.poll() is None:
                process.kill()
                process.wait()

        self.stack.callback(end)
        return process

    def choose_nic(self):
        """The first interface with a data interrupt that has an affinity file, and that interrupt; (None, None) without one."""
        nics = self.json("nics")
        nics = nics.get("nics", nics) if isinstance(nics, dict) else nics
        interrupts = {line["irq"]: line for line in self.json("irqs")}
        for nic in nics:
            for queue in nic.get("vectors", nic.get("queues", [])):
                irq = queue.get("irq")
                if irq is None or interrupts.get(irq, {}).get("kind") not in ("rx", "tx", "txrx"):
                    continue
                if (PROC / "irq" / str(irq) / "smp_affinity_list").exists():
                    return nic.get("name") or nic.get("nic"), irq
        return None, None

    def policies(self, cpus, nic):
        folder = self.folder / "policies"
        folder.mkdir()
        first, last = cpus[0], cpus[-1]
        (folder / "demo.yaml").write_text(
            "version: 1\ndescription: the demonstration's workload\nmatch: {comm: demo-workload}\naffinity: process\n"
            f"cpus: \"{first}\"\nbind: set\nthreads:\n  - {{name: \"net-*\", cpus: \"{last}\", bind: cpu}}\n"
            "  - {name: \"free-*\", leave: true}\n")
        if nic:
            (folder / "demo-nic.yaml").write_text(
                f"version: 1\ndescription: interrupts of {nic} in one place\nmatch: {{comm: demo-workload-of-the-nic}}\naffinity: irq\n"
                f"nics: [{nic}]\ncpus: \"{last}\"\n")
        return folder

    def start_daemon(self, policies):
        config = self.folder / "affinityd.yaml"
        config.write_text("version: 1\nmeasure: {duration: 2s}\n")
        log = (self.folder / "log").open("w+")
        self.stack.callback(log.close)
        daemon = self.child(self.build / "daemon/affinityd", "--foreground", "--config", config, "--policies", policies,
                            "--runtime-dir", self.folder / "run", "--state-dir", self.folder / "state", stderr=log)

        def ready():
            text = (self.folder / "log").read_text(errors="replace")
            if daemon.poll() is not None:
                raise SystemExit(f"FAILED: the daemon ended:\n{text}")
            return " ready" in text

        wait_for(ready, "the daemon is ready")
        return daemon

    def check_irqs(self, nic, original):
        placed = [queue for queue in self.json("status")["queues"] if queue["kind"] == "irq"]
        moved = 0
        for queue in placed:
            now = irq_mask(queue["irq"])
            say(f"  {PROC}/irq/{queue['irq']}/smp_affinity_list ({queue['label']}): {original[queue['irq']]} -> {now}")
            moved += now == queue["wanted"]
        if moved == 0:
            self.not_done.append(f"no interrupt of {nic} could be moved: {json.dumps(self.json('status')['refused'])}")

    def measure(self):
        self.ctl("measure", "--no-block")
        answer = wait_for(lambda: self.json("status")["measurement"], "the measurement is done")
        say(f"  {answer['summary']}")
        if answer["last"]["outcome"] != "done":
            self.not_done.append(f"no measurement: {answer['summary']}")

    def run(self):
        online = sorted(int(cpu) for part in pathlib.Path("/sys/devices/system/cpu/online").read_text().strip().split(",")
                        for cpu in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1))
        if len(online) < 2:
            self.not_done.append("this machine has one CPU, so masks cannot differ")
        nic, irq = self.choose_nic()
        if nic is None:
            self.not_done.append("no NIC interrupt was placed: none here belongs to a data queue and has an affinity file")
        load = self.child(self.build / "tools/demo-workload/demo-workload", "--threads", "net-0,net-1,worker,free-1", "--seconds", "300")
        wait_for(lambda: len(masks(load.pid)) == 5, "the workload's threads run")
        time.sleep(0.2)
        before = masks(load.pid)
        show("before:", load.pid)
        original = {int(path.parent.name): path.read_text().strip() for path in PROC.glob("irq/*/smp_affinity_list")}
        daemon = self.start_daemon(self.policies(online, nic))

        wanted = {"demo-workload": str(online[0]), "worker": str(online[0]), "net-0": str(online[-1]), "net-1": str(online[-1])}
        wait_for(lambda: all(wanted.get(name, before[tid][1]) == allowed for tid, (name, allowed) in masks(load.pid).items()),
                 "each thread is where its policy says")
        show("\nunder policy (as the kernel says):", load.pid)
        if nic:
            say(f"\ninterrupts of {nic}:")
            self.check_irqs(nic, original)
        late = self.child(self.build / "tools/demo-workload/demo-workload", "--threads", "net-9", "--seconds", "300")
        wait_for(lambda: {name: allowed for name, allowed in masks(late.pid).values()} ==
                 {"demo-workload": str(online[0]), "net-9": str(online[-1])}, "a program that starts later is pinned by itself")
        show("\nstarted after the daemon:", late.pid)
        say("\nmeasuring:")
        self.measure()
        say("\n$ affinityctl status")
        say(self.ctl("status"))
        say("$ affinityctl status demo")
        say(self.ctl("status", "demo"))

        say("ending the daemon, which restores everything")
        daemon.terminate()
        if daemon.wait(timeout=60) != 0:
            raise SystemExit("FAILED: the daemon ended with an error")
        if masks(load.pid) != before:
            raise SystemExit(f"FAILED: masks are not what they were: {masks(load.pid)}")
        show("after:", load.pid)
        for number, mask in original.items():
            path = PROC / "irq" / str(number) / "smp_affinity_list"
            if path.exists() and path.read_text().strip() != mask:
                raise SystemExit(f"FAILED: interrupt {number} is at {path.read_text().strip()}, it was at {mask}")
        say("  every interrupt is where it was")
        say("\nwhat this machine could not show: " + ("nothing" if not self.not_done else ""))
        for reason in self.not_done:
            say(f"  - {reason}")


def main():
    with contextlib.ExitStack() as stack:
        Demo(sys.argv[1], stack).run()
    say("\ndone")


if __name__ == "__main__":
    main()
