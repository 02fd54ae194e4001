#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The four models over eight NICs of four drivers: interrupts and processes go where each model asks for, and all is put back."""
import json
import subprocess

import machine
from daemon import install
from harness import main, run, test, wait_for

NICS = [f"ens{number}" for number in range(1, 9)]
PAIRS = ",".join(f"{first}:{second}" for first, second in zip(NICS[::2], NICS[1::2]))
COMMAND = ("affinityctl", "--json", "measure", "models", "--no-history", "--nics", PAIRS)
# Interrupts that were pending when their line moved.
LATE = 0.02
before, report = {}, {}


def state():
    """Everything that the experiment may change."""
    found = {nic: int(machine.read(machine.NETS / nic / "flags"), 16) & 1 for nic in NICS}
    return found | {f"{nic} {label}": sorted(machine.requested(irq)) for nic in NICS for irq, label in machine.data_irqs(nic).items()}


def changed():
    after = state()
    return {name: (value, after.get(name)) for name, value in before.items() if after.get(name) != value}


def told(model):
    return next(each for each in report["models"] if each["model"] == model)


def by_nic(model):
    """{NIC: {CPU: interrupts of its queues}}"""
    nics = {irq: nic for nic in NICS for irq in machine.data_irqs(nic)}
    found = {nic: {} for nic in NICS}
    for line in told(model)["lines"]:
        counts = found[nics[line["irq"]]]
        counts[line["cpu"]] = counts.get(line["cpu"], 0) + line["count"]
    return found


@test()
def nics_are_ready_and_idle():
    install()
    for nic in NICS:
        run("ip", "link", "set", nic, "up")
    wait_for(lambda: all(machine.read(machine.NETS / nic / "carrier") == "1" for nic in NICS), "all links are up")
    before.update(state())


@test(limit=600)
def four_models_run_over_eight_nics():
    report.update(json.loads(run(*COMMAND, "--rounds", "4", "--seconds", "2", patience=190)))
    assert report["outcome"] == "done", report["reason"]
    assert report["connections"] == len(NICS)
    assert [each["model"] for each in report["models"]] == ["none", "irq", "process", "full"]
    assert all(each["bits_per_second"]["estimate"] > 0 for each in report["models"])


@test()
def interrupts_are_counted_by_second_and_nothing_is_made_up():
    for model in report["models"]:
        # On a busy host, intervals are wide.
        assert model["per_second"]["interrupts"]["estimate"] > 0 and model["per_second"]["ipis"]["estimate"] > 0, model["per_second"]
        assert model["cache_misses"]["per_bit"] is None, model["cache_misses"]
        parts = model["ghz_per_gbps_parts"]
        known = sum(parts[name]["estimate"] for name in ("processes", "softirq", "interrupts") if parts[name])
        assert abs(known - model["ghz_per_gbps"]["estimate"]) < 1e-6 * known, parts


@test(limit=600)
def a_curve_with_requests_over_nics():
    command = (*COMMAND, "--rounds", "1", "--seconds", "1", "--models", "none,full", "--direction", "transmit", "--sizes", "1K,16K", "--rr")
    curve = json.loads(run(*command, patience=190))
    assert curve["outcome"] == "done", curve["reason"]
    assert [point["direction"] for point in curve["points"]] == ["transmit", "transmit", "answer"]
    for model in curve["points"][2]["models"]:
        assert model["samples"][0]["exchanges"] > 0 and model["samples"][0]["p50_seconds"] > 0, model["samples"]
    assert not changed(), f"before and after: {changed()}"


@test()
def throughput_under_emulation_is_said_to_mean_nothing():
    assert "emulated" in report["setup"] and "mean nothing" in report["setup"], report["setup"]


@test()
def interrupts_of_a_bound_nic_come_on_its_cpu_only():
    for model in ("irq", "full"):
        for cpu, (nic, counts) in enumerate(by_nic(model).items()):
            total = sum(counts.values())
            assert total > 100, f"{model}: {nic} had {total} interrupts"
            assert total - counts.get(cpu, 0) <= LATE * total, f"{model}: {nic} should be on CPU {cpu}: {counts}"


@test()
def interrupts_of_cpus_agree_with_those_of_queues():
    for model in ("irq", "full"):
        queues = {}
        for counts in by_nic(model).values():
            for cpu, count in counts.items():
                queues[cpu] = queues.get(cpu, 0) + count
        for cpu in told(model)["cpus"]:
            assert cpu["interrupts"] >= queues.get(cpu["cpu"], 0), f"{model}: {cpu}, of queues {queues}"


@test()
def bound_processes_do_not_migrate():
    for model in ("process", "full"):
        assert told(model)["migrations_per_second"] in (0, None), told(model)["migrations_per_second"]


@test()
def everything_is_put_back():
    assert not changed(), f"before and after: {changed()}"


@test()
def an_interrupted_run_puts_back_too():
    with subprocess.Popen([*COMMAND, "--rounds", "100", "--seconds", "2"], stdout=subprocess.PIPE, text=True) as process:
        wait_for(lambda: not (machine.NETS / NICS[-1]).exists(), "the last NIC is lent")
        wait_for(lambda: machine.read(f"/proc/{process.pid}/task/{process.pid}/children"), "streams run")
        process.send_signal(2)
        text, _ = process.communicate(timeout=60)
    assert json.loads(text)["outcome"] == "killed", text
    assert not changed(), f"before and after: {changed()}"


@test()
def a_killed_one_puts_back_too():
    command = [*COMMAND, "--rounds", "100", "--seconds", "2", "--models", "full,none"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: not (machine.NETS / NICS[-1]).exists(), "the last NIC is lent")
        wait_for(lambda: machine.read(f"/proc/{process.pid}/task/{process.pid}/children"), "streams run")
        process.kill()
    wait_for(lambda: all((machine.NETS / nic).exists() for nic in NICS), "the kernel brings all NICs back")
    wait_for(lambda: not changed(), "they are as before")


if __name__ == "__main__":
    main()
