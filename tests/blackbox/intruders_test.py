# SPDX-License-Identifier: Apache-2.0
"""affinityctl intruders on a program that spins on one CPU (intruder.c): each thing that interrupts it is named, with its sender, once it is
there, and not before. Where the kernel allows no BPF, counters tell less."""
import functools
import json
import os
import pathlib
import sys
import tarfile

from house import PROGRAMS, House, affinityctl, compiled, policy, python, read, run, wait_for

CPUS = sorted(os.sched_getaffinity(0))
CPU, OTHER = CPUS[-1], CPUS[0]
GATHER = pathlib.Path(__file__).resolve().parents[2] / "tools/gather-host"
NO_BPF = ("setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin")
DATAGRAMS = """import os, socket, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taker.bind(("127.0.0.1", 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for _ in range(20):
        sender.sendto(b"x", taker.getsockname())
        taker.recv(1)
    time.sleep(0.005)
"""


def intruders(*words, way=(), code=0, time="500ms"):
    return run(*way, PROGRAMS["affinityctl"], "intruders", *words, "--for", time, "--json", code=code).json


@functools.cache
def is_bpf_allowed():
    return intruders(CPU, time="100ms")["method"] == "tracepoints"


def sources(answer, kind):
    return [source for source in answer["sources"] if source["kind"] == kind]


class Intruders(House):
    PLAIN = True  # no daemon takes part in most

    def begin(self, kind, stem="quiet"):
        """In a session of its own, which the scheduler gives as much of the CPU as each of another test."""
        return self.spawn(self.copy_of(compiled("intruder.c"), stem), kind, CPU, OTHER, start_new_session=True)

    def sees(self, condition, *words, **options):
        """Watches until the answer is so: on a busy machine not everything happens in each second, and programs of other tests run longer there."""
        return wait_for(lambda: (lambda answer: answer if condition(answer) else None)(intruders(*(words or (CPU,)), **options)), "it is seen", patience=240)

    def test_a_foreign_thread_is_named_and_the_program_is_none(self):
        program, foreign = self.begin("spin"), self.begin("blink", "foreign")
        wanted, at_home = f"{self.name('foreign')} {foreign.pid}", f"{self.name('quiet')} {program.pid}"
        # Another test may run longer there for a while.
        answer = self.sees(lambda seen: wanted in [source["source"] for source in sources(seen, "thread")] and seen["per_cpu"][0]["program"] == at_home)
        source = next(source for source in sources(answer, "thread") if source["source"] == wanted)
        self.assertEqual((foreign.pid, str(CPU)), (source["pid"], source["cpus"]))
        self.assertNotIn(program.pid, [source["pid"] for source in sources(answer, "thread")])
        self.assertGreater(answer["per_cpu"][0]["thread"], 0)
        self.assertGreater(source["total_us"], 0)
        if is_bpf_allowed():
            self.assertGreaterEqual(source["total_us"], source["longest_us"])
            self.assertLess(answer["per_cpu"][0]["available"], 1)
            kinds = ("nmi", "irq", "softirq", "timer", "ipi", "thread")
            self.assertEqual(sum(answer["per_cpu"][0][kind] for kind in kinds), sum(answer["per_cpu"][0]["lengths"]), answer["per_cpu"])
            self.assertLessEqual(answer["per_cpu"][0]["noise_us"], answer["seconds"] * 1e6)

    def test_none_is_invented(self):
        program = self.begin("spin")
        answer = self.sees(lambda seen: seen["per_cpu"][0]["program"] == f"{self.name('quiet')} {program.pid}")
        self.assertNotIn(program.pid, [source["pid"] for source in answer["sources"] if source["kind"] in ("thread", "ipi") or source["source"] == "posix_timer_fn"])
        self.assertNotIn(f".{self.mark}", "".join(source["source"] for source in answer["sources"]))
        self.assertTrue(all(source["count"] > 0 and source["mend"] for source in answer["sources"]), answer["sources"])

    def test_a_timer_has_an_owner(self):
        program = self.begin("timer")
        if is_bpf_allowed():
            answer = self.sees(lambda seen: any(source["pid"] == program.pid and source["source"] == "posix_timer_fn" for source in sources(seen, "timer")))
            self.assertIn(f"{self.name('quiet')} {program.pid}", [source["from"] for source in sources(answer, "timer")])
        else:
            self.sees(lambda seen: sources(seen, "timer"))

    def sender(self, kind, function):
        program = self.begin(kind)

        def is_named(answer):
            return any(source["pid"] == program.pid and function in source["source"] for source in sources(answer, "ipi"))
        if not is_bpf_allowed():
            self.sees(lambda seen: sources(seen, "ipi"))
            return
        source = next(source for source in sources(self.sees(is_named), "ipi") if source["pid"] == program.pid)
        self.assertEqual((f"{self.name('quiet')} {program.pid}", str(OTHER)), (source["from"], source["from_cpus"]))

    def test_membarrier_has_a_sender(self):
        self.sender("membarrier", "ipi_mb")

    def test_munmap_has_a_sender(self):
        self.sender("munmap", "flush_tlb_func")

    def test_an_event_of_perf_has_a_sender(self):
        self.sender("perf", "remote_function")

    def test_rcu_has_a_sender(self):
        self.begin("rcu")
        if is_bpf_allowed():
            answer = self.sees(lambda seen: any("rcu_exp_handler" in source["source"] and source["from"] for source in sources(seen, "ipi")))
            call = next(source for source in sources(answer, "ipi") if "rcu_exp_handler" in source["source"])
            self.assertRegex(call["from"], "^(rcu|kworker)")
        else:
            self.sees(lambda seen: sources(seen, "ipi"))

    def counts(self):
        """{row of /proc/interrupts or /proc/softirqs: count of CPU}"""
        found = {}
        for table in ("interrupts", "softirqs"):
            head, *rows = read(f"/proc/{table}").splitlines()
            column = head.split().index(f"CPU{CPU}")
            found |= {words[0].rstrip(":"): int(words[1 + column]) for words in map(str.split, rows) if len(words) > 1 + column and words[1 + column].isdigit()}
        return found

    def test_no_more_is_told_than_the_kernel_counted(self):
        self.begin("spin")
        before = self.counts()
        answer = intruders(CPU, time="3s")
        now = self.counts()
        told = {}
        for source in answer["sources"]:
            kind = source["kind"]
            row = {"irq": source["source"].split()[0], "softirq": source["source"], "tick": "LOC", "timer": "LOC", "ipi": "IPI", "nmi": "NMI"}.get(kind)
            if row is not None:
                told[row] = told.get(row, 0) + source["count"]
        came = {row: count - before.get(row, 0) for row, count in now.items()}
        came["IPI"] = sum(came.get(row, 0) for row in ("RES", "CAL", "TLB", "IWI") + tuple(row for row in now if row.startswith("IPI")))
        self.assertTrue(told)
        self.assertEqual({}, {row: (count, came.get(row)) for row, count in told.items() if count > came.get(row, 0)})

    def test_softirqs_by_their_vector(self):
        self.begin("spin")
        self.spawn(*python(DATAGRAMS, CPU))
        self.sees(lambda seen: any(source["source"] == "NET_RX" and source["count"] > 100 for source in sources(seen, "softirq")))

    def test_without_bpf_counters_tell_how_often(self):
        self.begin("spin")
        foreign = self.begin("blink", "foreign")
        answer = self.sees(lambda seen: foreign.pid in [source["pid"] for source in sources(seen, "thread")], CPU, way=NO_BPF)
        self.assertEqual("counters", answer["method"])
        self.assertIn("Lengths, senders and reasons are not known: ", answer["notes"][0])
        self.assertEqual({None}, {source["longest_us"] for source in answer["sources"]})
        self.assertIsNone(answer["per_cpu"][0]["available"])
        self.assertTrue(sources(answer, "timer"))

    def test_two_recordings_tell_what_came_between(self):
        moments = [self.bin / name for name in ("first", "second")]
        self.begin("spin")
        foreign = self.begin("blink", "foreign")
        for moment in moments:
            wait_for(lambda: float(read(f"/proc/{foreign.pid}/schedstat").split()[0]) > 5e6, "the foreign one has run")
            run(sys.executable, GATHER, f"{moment}.tar.gz")
            with tarfile.open(f"{moment}.tar.gz") as archive:
                archive.extractall(moment, filter="tar")
        answer = affinityctl("--root", moments[1], "intruders", CPU, "--since", moments[0], "--json").json
        self.assertEqual("counters", answer["method"])
        self.assertIn("recordings have counters only", answer["notes"][0])
        self.assertIn(foreign.pid, [source["pid"] for source in sources(answer, "thread")])
        self.assertTrue(sources(answer, "timer") and sources(answer, "softirq"))
        self.assertGreater(answer["seconds"], 0)
        said = affinityctl("--root", moments[0], "intruders", CPU, "--since", moments[1], code=1).err
        self.assertIn("not of two moments of one run of the machine", said)

    def test_any_user_may_look(self):
        self.begin("spin")
        answer = intruders(CPU, way=("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"))
        self.assertEqual("counters", answer["method"])
        self.assertTrue(sources(answer, "timer"))

    def test_the_limit_decides_about_the_exit_status(self):
        self.begin("spin")
        self.begin("blink", "foreign")
        if is_bpf_allowed():
            wait_for(lambda: run(PROGRAMS["affinityctl"], "intruders", CPU, "--for", "1s", "--over", "100us").code == 3, "it is above the limit")
            answer = intruders(CPU, "--over", "1000s")
            self.assertEqual((False, 1e9), (answer["above"], answer["over_us"]))
        said = run(*NO_BPF, PROGRAMS["affinityctl"], "intruders", CPU, "--for", "100ms", "--over", "1ms", code=1).err
        self.assertIn("--over cannot be judged without BPF", said)

    def test_a_policy_has_its_own_processes_and_cpus(self):
        made = self.daemon(quiet=policy("quiet", cpus=str(CPU), bind="set", affinity="process"))
        program, foreign = self.begin("spin"), self.begin("blink", "foreign")
        at_home = f"{self.name('quiet')} {program.pid}"
        wait_for(lambda: any(process["pid"] == program.pid for process in made.status()["processes"]), "it is under the policy")
        answer = wait_for(lambda: (lambda seen: seen if foreign.pid in [source["pid"] for source in seen["sources"]] and seen["per_cpu"][0]["program"] == at_home else None)(
            made.ctl("intruders", "quiet", "--for", "1s", "--json").json), "the foreign one is seen")
        self.assertEqual(("policy quiet", str(CPU)), (answer["subject"], answer["cpus"]))
        self.assertNotIn(program.pid, [source["pid"] for source in sources(answer, "thread")])

    def test_processes_that_come_under_the_policy_meanwhile_are_at_home(self):
        made = self.daemon(quiet=policy("quiet", cpus=str(CPU), bind="set", affinity="process"))
        watching = self.spawn(PROGRAMS["affinityctl"], "--runtime-dir", made.folder / "run", "intruders", "quiet", "--for", "1h", "--json", stdout=-1).process
        wait_for(lambda: "sigtimedwait" in read(f"/proc/{watching.pid}/wchan"), "it watches")
        program, foreign = self.begin("spin"), self.begin("blink", "foreign")
        wait_for(lambda: any(process["pid"] == program.pid for process in made.status()["processes"]), "it is under the policy")
        wait_for(lambda: float(read(f"/proc/{foreign.pid}/schedstat").split()[0]) > 5e6, "the foreign one has run")
        watching.send_signal(2)
        found = [source["pid"] for source in sources(json.loads(watching.communicate(timeout=60)[0]), "thread")]
        self.assertIn(foreign.pid, found)
        self.assertNotIn(program.pid, found)

    def test_an_interrupt_ends_it_early(self):
        watching = self.spawn(PROGRAMS["affinityctl"], "intruders", CPU, "--for", "1h", stdout=-1, text=True).process
        wait_for(lambda: "sigtimedwait" in read(f"/proc/{watching.pid}/wchan"), "it watches")
        watching.send_signal(2)
        self.assertIn(f"of CPUs {CPU}: ", watching.communicate(timeout=60)[0])
        self.assertEqual(0, watching.returncode)

    def test_what_is_refused(self):
        def said(*words, code):
            return affinityctl("intruders", *words, code=code).err
        self.assertIn("nosuch is no policy of a running daemon, no unit and no CPUs", said("nosuch", code=1))
        self.assertIn("no process is in a unit no-such.service", said("no-such.service", code=1))
        for limit in ("20", "0us", "x", "-1ms"):
            self.assertIn("--over", said(str(CPU), f"--over={limit}", code=2))
        self.assertIn("--for", said(str(CPU), "--for", "50ms", code=2))
        said(str(CPU), "--root", "/tmp", code=2)
        said("", code=2)


class Claimed(House):
    OWN_PIDS = True

    def test_without_a_word_the_cpus_of_exclusive_policies_are_watched(self):
        if not read("/sys/devices/system/cpu/isolated"):
            self.assertIn("no CPU is isolated, and no policy is exclusive", affinityctl("intruders", "--runtime-dir", "/nonexistent", code=1).err)
        program = self.program("quiet")
        made = self.daemon(quiet=policy("quiet", cpus=str(CPU), bind="set", exclusive=True))
        self.expect(program, str(CPU))
        answer = made.ctl("intruders", "--for", "1s", "--json").json
        self.assertIn(str(CPU), answer["cpus"].split(","))
        self.assertEqual("counters", answer["method"])
        self.assertNotIn(program.pid, [source["pid"] for source in answer["sources"]])
