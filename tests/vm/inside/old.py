#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel 6.1 on an interrupt controller without remapping: a new affinity takes effect with the next interrupt, and masks of tasks
are forgotten with every CPU that goes or comes once cpusets are in use."""
import machine
import traffic
from daemon import await_order, install, status, traffic_at_home
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
    # Of an interrupt that does not come the effective CPU stays what it was.
    await_order(BOTH, machine.requested)


@test()
def what_takes_effect_later_takes_effect():
    traffic_at_home(BOTH)


@test()
def an_interrupt_that_waits_for_its_first_packet_is_no_problem():
    waiting = [irq for number in BOTH for irq in machine.data_irqs(f"ens{number}") if machine.effective(irq) != machine.requested(irq)]
    assert waiting, "all interrupts have come: nothing is tested"
    told = status()
    assert not told["problems"] and not told.get("refused"), told


@test()
def masks_that_the_kernel_forgets_with_a_cpu_are_set_again():
    homes = {number: machine.allowed(pid) for number, pid in traffic.receivers(BOTH).items()}
    gone = next(cpu for cpu in machine.online() - {0} if {cpu} not in homes.values())
    run("systemctl", "set-property", "--runtime", "system.slice", "AllowedCPUs=0-3")
    switch = machine.CPUS / f"cpu{gone}/online"
    for state in "01":
        switch.write_text(state, encoding="utf-8")
        await_order(BOTH, machine.requested)
    traffic_at_home(BOTH)


if __name__ == "__main__":
    main()
