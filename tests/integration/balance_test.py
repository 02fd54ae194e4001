# SPDX-License-Identifier: Apache-2.0
"""Several policies on one machine: each does not take the same first CPU."""
import contextlib
import os
import subprocess
import sys
import unittest

from daemon import Daemon, allowed, spawn, wait_for

# Takes a name, and counts for so many seconds.
BUSY = """import sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
sys.stdin.readline()
end, count = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < end:
    for _ in range(1000):
        count += 1
print(count)
"""


def policy(name, more="spread: cpu\nbind: cpu\n"):
    return f"version: 1\nmatch: {{comm: {name}}}\n{more}"


def busy(stack, name, seconds):
    return spawn(stack, sys.executable, "-c", BUSY, name, str(seconds), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def counted(programs):
    """What they count together, all at the same time."""
    for program in programs:
        program.stdin.write("go\n")
        program.stdin.flush()
    return sum(int(program.stdout.readline()) for program in programs)


class Balance(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def test_two_busy_programs_under_two_policies_have_a_cpu_each(self):
        Daemon(self.stack, {f"{name}.yaml": policy(name) for name in ("busy-a", "busy-b")}).start()
        apart = [busy(self.stack, name, 3) for name in ("busy-a", "busy-b")]
        wait_for(lambda: {allowed(program.pid) for program in apart} == {"0", "1"}, "each has a CPU of its own")
        both = counted(apart)
        together = [busy(self.stack, "unnamed", 3) for _ in range(2)]
        for program in together:
            os.sched_setaffinity(program.pid, {0})
        one = counted(together)
        print(f"measured: two programs under two policies count {both / one:.2f} times as far as on one CPU")

    def test_programs_that_were_there_before_the_daemon_get_a_cpu_each(self):
        programs = [busy(self.stack, name, 60) for name in ("busy-a", "busy-b", "busy-c", "busy-d")]
        everywhere = allowed(os.getpid())
        wait_for(lambda: all(allowed(program.pid) == everywhere for program in programs), "all have begun")
        texts = {f"{name}.yaml": policy(name, "cpus: \"0,1\"\nspread: cpu\nbind: cpu\n") for name in ("busy-a", "busy-b", "busy-c", "busy-d")}
        daemon = Daemon(self.stack, texts).start()
        wait_for(lambda: sorted(allowed(program.pid) for program in programs) == ["0", "0", "1", "1"], "two are on each CPU")
        daemon.stop()
        self.assertEqual({everywhere}, {allowed(program.pid) for program in programs})


if __name__ == "__main__":
    unittest.main()
