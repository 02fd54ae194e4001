# SPDX-License-Identifier: Apache-2.0
"""Where packets arrive and where they are read, counted by bpftrace and not by a program of this project."""
import re
import subprocess
import time

# The kernel notes in a socket on which CPU its last packet was taken in.
PROGRAM = """
tracepoint:tcp:tcp_rcv_space_adjust /comm == "%s"/ {
    $sk = (struct sock *)args->skaddr;
    @reads[$sk->__sk_common.skc_incoming_cpu, (int32)cpu] = count();
}
interval:s:1 { print(@reads); printf("so far\\n"); }
"""
# For so many seconds: tasks that ran, and interrupts of devices that came, on two CPUs.
VISITORS = """
tracepoint:sched:sched_switch /cpu == %d || cpu == %d/ { @ran[args->next_pid, args->next_comm] = count(); }
tracepoint:irq:irq_handler_entry /cpu == %d || cpu == %d/ { @came[args->irq] = count(); }
interval:s:%d { exit(); }
"""
ENOUGH = 2000  # reads
LONGEST = 120  # seconds


class Reads:
    """How often it was read, by the CPU of arrival and that of the reader."""

    def __init__(self, counts):
        self.counts = counts

    def total(self):
        return sum(self.counts.values())

    def local_share(self):
        return sum(count for (arrival, reader), count in self.counts.items() if arrival == reader) / self.total()

    def elsewhere(self):
        """Reads on another CPU, most first, with the number of all that arrived on its CPU."""
        arrived = {}
        for (arrival, _), count in self.counts.items():
            arrived[arrival] = arrived.get(arrival, 0) + count
        most = sorted(((count, *pair) for pair, count in self.counts.items() if pair[0] != pair[1]), reverse=True)
        return ", ".join(f"CPU {arrival} -> {reader}: {count} of {arrived[arrival]}" for count, arrival, reader in most[:12])


def reads(comm, enough=ENOUGH):
    """The reads of threads of this name."""
    with subprocess.Popen(["bpftrace", "-e", PROGRAM % comm[:15]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        counts, said, end = {}, [], None
        for line in process.stdout:
            if found := re.match(r"@reads\[(-?\d+), (\d+)\]: (\d+)", line):
                counts[int(found[1]), int(found[2])] = int(found[3])
            else:
                said.append(line)
            end = end or time.monotonic() + LONGEST
            if line == "so far\n" and (sum(counts.values()) >= enough or time.monotonic() > end):
                break
        process.kill()
    found = Reads(counts)
    assert found.total() >= enough, f"of {comm} only {found.total()} reads were seen: {''.join(said[:5])}"
    return found


def local_share(comm):
    """The share of the reads of threads of this name that arrived on the CPU where they were read."""
    return reads(comm).local_share()


def visitors(pair, seconds):
    """{tid: (name, number)} of the tasks that ran on two CPUs, and {number: count} of the interrupts that came."""
    done = subprocess.run(["bpftrace", "-e", VISITORS % (*sorted(pair), *sorted(pair), seconds)], capture_output=True, text=True, timeout=seconds + LONGEST, check=False)
    ran = {int(tid): (name, int(number)) for tid, name, number in re.findall(r"@ran\[(\d+), (.*)\]: (\d+)", done.stdout)}
    assert ran, done.stdout + done.stderr
    return ran, {int(irq): int(number) for irq, number in re.findall(r"@came\[(\d+)\]: (\d+)", done.stdout)}
