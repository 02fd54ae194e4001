# SPDX-License-Identifier: Apache-2.0
"""Where packets arrive and where they are read, counted by bpftrace and not by a program of this project."""
import re
import subprocess
import time

# The kernel notes in a socket on which CPU its last packet was taken in.
PROGRAM = """
tracepoint:tcp:tcp_rcv_space_adjust /comm == "%s"/ {
    $sk = (struct sock *)args->skaddr;
    if ($sk->__sk_common.skc_incoming_cpu == (int32)cpu) { @local = count(); } else { @remote = count(); }
}
interval:s:1 { print(@local); print(@remote); printf("so far\\n"); }
"""
ENOUGH = 2000  # reads
LONGEST = 120  # seconds


def local_share(comm, enough=ENOUGH):
    """Of what threads of this name read, the share that arrived on the CPU where it was read."""
    with subprocess.Popen(["bpftrace", "-e", PROGRAM % comm[:15]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        counts, said, end = {}, [], None
        for line in process.stdout:
            if found := re.match(r"@(local|remote): (\d+)", line):
                counts[found[1]] = int(found[2])
            else:
                said.append(line)
            end = end or time.monotonic() + LONGEST
            if sum(counts.values()) >= enough or time.monotonic() > end:
                break
        process.kill()
    reads = sum(counts.values())
    assert reads >= enough, f"of {comm} only {reads} reads were seen: {''.join(said[:5])}"
    return counts.get("local", 0) / reads
