#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel 6.1 on an interrupt controller without remapping: a new affinity takes effect at the next interrupt, and once cpusets are in use
the kernel resets task masks whenever a CPU goes offline or online."""
import machine
import traffic
from daemon import await_order, install, plug_in_cpu, status, traffic_at_home
from harness import main, run, test, wait_for

BOTH = (1, 2)


@test()
def receivers_and_interrupts_get_the_same_cpu():
    install()
    traffic.wire_up(BOTH)
    traffic.write_units()
    traffic.start(BOTH)
    wait_for(lambda: all(traffic.receivers(BOTH).values()), "both receivers run")
    traffic.write_policies(BOTH)
    # While an interrupt does not arrive, its effective CPU stays the same.
    await_order(BOTH, machine.requested)


@test()
def what_takes_effect_later_takes_effect():
    traffic_at_home(BOTH, late=1)


@test()
def an_interrupt_that_waits_for_its_first_packet_is_no_problem():
    run("systemctl", "stop", "sender@1", "sender@2")
    irqs = list(machine.data_irqs("ens1"))
    # An interrupt that arrives by chance takes its new affinity at once: try again.
    for cpu in (0, 1) * 4:
        traffic.write_policies([1], f'cpus: "{cpu}"')
        wait_for(lambda: all(machine.requested(irq) == {cpu} for irq in irqs), "the interrupts are to be elsewhere")
        waiting = [irq for irq in irqs if machine.effective(irq) != {cpu}]
        if waiting:
            break
    assert waiting, "none of them waits: nothing is tested"
    run("affinityctl", "apply")
    told = status()
    assert not told["problems"] and not [queue for queue in told["queues"] if queue["wanted"] != queue["present"]], told
    traffic.write_policies([1])
    traffic.start(BOTH)
    await_order(BOTH, machine.requested)


@test()
def a_cpu_that_is_plugged_in_joins_its_node():
    (traffic.POLICIES / "sleep.yaml").write_text('version: 1\nmatch: {comm: sleep}\ncpus: "node:1"\nbind: set\n', encoding="utf-8")
    run("systemd-run", "--unit=sleeper", "sleep", "10000")
    pid = int(run("systemctl", "show", "-P", "MainPID", "sleeper"))
    wait_for(lambda: machine.allowed(pid) == {2}, lambda: f"{machine.allowed(pid)}")
    assert plug_in_cpu() == 3
    wait_for(lambda: machine.allowed(pid) == {2, 3}, lambda: f"{machine.allowed(pid)}")
    await_order(BOTH, machine.requested)


@test()
def masks_that_the_kernel_forgets_with_a_cpu_are_set_again():
    homes = {number: machine.allowed(pid) for number, pid in traffic.receivers(BOTH).items()}
    gone = next(cpu for cpu in machine.online() - {0} if {cpu} not in homes.values())
    run("systemctl", "set-property", "--runtime", "system.slice", "AllowedCPUs=0-3")
    switch = machine.CPUS / f"cpu{gone}/online"
    for state in "01":
        switch.write_text(state, encoding="utf-8")
        await_order(BOTH, machine.requested)
    traffic_at_home(BOTH, late=1)


import cpusets  # noqa: E402,F401  more tests, after these
import wakes  # noqa: E402,F401  more tests, after these

if __name__ == "__main__":
    main()
