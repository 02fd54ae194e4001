# SPDX-License-Identifier: Apache-2.0
"""affinityctl sharers on a program of known structure (sharing_threads.cpp): pairs that talk are found, none is invented, and the policy that
follows is one. Where the kernel allows no BPF, only what is said then is tested."""
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from house import PROGRAMS, House, compiled, threads, wait_for

KINDS = ("futex", "pipe", "socket", "counter")
WAKER = """import os, signal, sys, time
while True:
    os.kill(int(sys.argv[1]), signal.SIGWINCH)
    time.sleep(0.002)
"""


def sharers(*words, code=0, way=()):
    done = subprocess.run([*way, PROGRAMS["affinityctl"], "sharers", *map(str, words)], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == code, f"sharers {words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@functools.cache
def is_bpf_allowed():
    done = subprocess.run([PROGRAMS["affinityctl"], "sharers", str(os.getpid()), "--for", "100ms"], capture_output=True, text=True, check=False)
    return done.returncode == 0


def has_bpf_links(pid):
    """The kernel calls a BPF program of this process."""
    return any("bpf_link" in os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir())


def found_pairs(answer):
    """{(name, name)} of those that are called sharers."""
    names = {(thread["tid"], thread["start_time"]): thread["name"] for thread in answer["threads"]}
    return {tuple(sorted((names[pair["one"], pair["one_start_time"]], names[pair["other"], pair["other_start_time"]])))
            for pair in answer["pairs"] if pair["sharers"]}


class Sharers(House):
    PLAIN = True  # no daemon takes part
    def setUp(self):
        super().setUp()
        if not is_bpf_allowed():
            text = sharers(os.getpid(), "--for", "100ms", code=1)
            self.assertIn("sharers cannot count: ", text)
            self.assertRegex(text, "BPF|BTF")

    def start(self, *command, **options):
        return self.spawn(*command, **options).process

    def program(self, *words, pause=500):
        program = self.start(compiled("sharing_threads.cpp"), "--pause", str(pause), *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual("ready\n", program.stdout.readline())
        return program

    def watch(self, program, *words, time="1s"):
        if not is_bpf_allowed():
            return None
        return json.loads(sharers(program.pid, "--for", time, "--json", *words))

    def checked(self, policy):
        """The answer of `check` to the policy."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="ascii") as file:
            file.write(policy)
            file.flush()
            done = subprocess.run([PROGRAMS["affinityctl"], "check", "--json", file.name], capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, policy + done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_known_pairs_are_found(self):
        answer = self.watch(self.program(*KINDS, "event", "tcp"))
        if answer is None:
            return
        self.assertEqual({(f"{kind}-a", f"{kind}-b") for kind in (*KINDS, "event", "tcp")}, found_pairs(answer))
        self.assertEqual(6, len(answer["groups"]))
        self.assertEqual(0, answer["lost"])
        self.checked(answer["policy"])
        for kind in (*KINDS, "event", "tcp"):
            self.assertIn(f'name: ["{kind}-a", "{kind}-b"]', answer["policy"])

    def test_none_is_invented(self):
        answer = self.watch(self.program("independent"))
        if answer is None:
            return
        self.assertEqual(set(), found_pairs(answer))
        self.assertEqual([], answer["groups"])
        self.assertIsNone(answer["policy"])
        woken = {thread["name"]: thread["woken_by_interrupts"] for thread in answer["threads"]}
        self.assertGreater(woken["asleep-0"], 20)
        self.assertGreater(woken["timer-0"], 20)
        self.assertGreater(woken["timer-1"], 20)

    def test_wakeups_by_others_are_nobody_of_ours(self):
        program = self.program("independent")
        self.start(sys.executable, "-c", WAKER, str(program.pid))
        answer = self.watch(program)
        if answer is not None:
            self.assertEqual(set(), found_pairs(answer))

    def test_namesakes_are_told_apart_by_their_place(self):
        answer = self.watch(self.program("--alike", *KINDS))
        if answer is None:
            return
        self.assertEqual(4, len(answer["groups"]))
        indexes = sorted(group["index"] for group in answer["groups"])
        self.assertEqual([[1, 2], [3, 4], [5, 6], [7, 8]], indexes)
        self.assertIn("{index: 1-2, spread: any, bind: ", answer["policy"])
        self.assertTrue(any("index" in remark for remark in answer["remarks"]))
        self.checked(answer["policy"])

    def test_threads_that_come_and_go(self):
        program = self.program("pipe", "comers")
        answer = self.watch(program)
        if answer is None:
            return
        self.assertIn(("pipe-a", "pipe-b"), found_pairs(answer))
        ended = [thread for thread in answer["threads"] if thread["index"] is None]
        self.assertGreater(len(ended), 10)
        self.assertIn("comer-a", {thread["name"] for thread in ended})
        if answer["policy"]:
            self.checked(answer["policy"])

    def test_a_program_that_ends(self):
        if not is_bpf_allowed():
            return
        program = self.program("futex")
        counting = self.start(PROGRAMS["affinityctl"], "sharers", str(program.pid), "--for", "80s", "--json", stdout=subprocess.PIPE)
        wait_for(lambda: has_bpf_links(counting.pid), "it counts")
        time.sleep(1)
        program.terminate()
        answer = json.loads(counting.communicate(timeout=60)[0])
        self.assertTrue(answer["ended"])
        self.assertEqual({("futex-a", "futex-b")}, found_pairs(answer))
        self.assertIn("has ended", " ".join(answer["remarks"]))

    def test_a_script_that_executes_the_program_itself(self):
        """The policy means the program, and not every shell."""
        if not is_bpf_allowed():
            return
        script = self.start("sh", "-c", 'read -r go; exec "$@"', "sh", compiled("sharing_threads.cpp"), "--pause", "500", "futex", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       text=True)
        counting = self.start(PROGRAMS["affinityctl"], "sharers", str(script.pid), "--for", "80s", "--json", stdout=subprocess.PIPE)
        wait_for(lambda: has_bpf_links(counting.pid), "it counts")
        script.stdin.write("go\n")
        script.stdin.flush()
        self.assertEqual("ready\n", script.stdout.readline())
        time.sleep(1)
        counting.send_signal(2)
        answer = json.loads(counting.communicate(timeout=60)[0])
        self.assertEqual("sharing_threads", answer["name"])
        self.assertIn("called sh when the watch began and is called sharing_threads now", " ".join(answer["remarks"]))
        if answer["unit"] is None:
            self.assertIn('match: {comm: "sharing_threads"}', answer["policy"])

    def test_another_process_space(self):
        """For a program in one, the host's numbers count; from inside, they are not known."""
        inner = self.start("unshare", "--pid", "--fork", "--kill-child", compiled("sharing_threads.cpp"), "--pause", "500", *KINDS, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                      text=True)
        self.assertEqual("ready\n", inner.stdout.readline())
        children = pathlib.Path(f"/proc/{inner.pid}/task/{inner.pid}/children").read_text(encoding="ascii").split()
        if is_bpf_allowed():
            answer = json.loads(sharers(children[0], "--for", "1s", "--json"))
            self.assertEqual({(f"{kind}-a", f"{kind}-b") for kind in KINDS}, found_pairs(answer))
        inside = sharers(1, "--for", "100ms", code=1, way=("unshare", "--pid", "--fork", "--mount-proc"))
        self.assertIn("PID namespace" if is_bpf_allowed() else "cannot count", inside)

    def test_two_thousand_threads(self):
        program = self.program("crowd:2000", pause=200000)
        answer = self.watch(program, time="3s")
        if answer is None:
            return
        self.assertEqual(0, answer["lost"])
        self.assertEqual(2001, len(answer["threads"]))
        self.assertGreater(len(found_pairs(answer)), 900)

    def test_an_interrupt_ends_it_early(self):
        program = self.program("futex")
        if not is_bpf_allowed():
            return
        watching = self.start(PROGRAMS["affinityctl"], "sharers", str(program.pid), "--for", "1h", "--json", stdout=subprocess.PIPE, text=True)
        wait_for(lambda: "sigtimedwait" in pathlib.Path(f"/proc/{watching.pid}/wchan").read_text(encoding="ascii"), "it watches")
        time.sleep(0.5)
        watching.send_signal(2)
        answer = json.loads(watching.communicate(timeout=30)[0])
        self.assertEqual(0, watching.returncode)
        self.assertEqual({("futex-a", "futex-b")}, found_pairs(answer))

    def test_a_thread_id_means_its_process(self):
        program = self.program("futex")
        answer = self.watch(program, time="300ms")
        if answer is not None:
            other = json.loads(sharers(threads(program.pid)[-1], "--for", "300ms", "--json"))
            self.assertEqual(program.pid, other["pid"])
            self.assertEqual({thread["tid"] for thread in answer["threads"]}, {thread["tid"] for thread in other["threads"]})

    def test_what_is_refused(self):
        self.assertIn("there is no process 4194304", sharers(4194304, code=1))
        sharers("nginx", code=2)
        sharers(code=2)
        self.assertIn("--for", sharers(os.getpid(), "--for", "2d", code=2))
        self.assertIn("--for", sharers(os.getpid(), "--for", "50ms", code=2))
        sharers(os.getpid(), "--json", "--svg", "-", code=2)
        sharers(os.getpid(), "--root", "/tmp", code=2)
        self.assertIn("run it as root", sharers(os.getpid(), code=1, way=("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")))

    def test_without_the_capabilities_it_says_so(self):
        text = sharers(os.getpid(), "--for", "100ms", code=1, way=("setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin"))
        self.assertIn("sharers cannot count: the kernel does not allow BPF here", text)

    def test_table_and_picture(self):
        program = self.program(*KINDS)
        if not is_bpf_allowed():
            return
        with tempfile.TemporaryDirectory(prefix="affinityd-sharers-") as folder:
            picture = pathlib.Path(folder) / "wakes.svg"
            text = sharers(program.pid, "--for", "500ms", "--svg", str(picture))
            self.assertIn("futex-a (", text)
            self.assertIn("As a policy\n# affinityctl sharers: ", text)
            self.assertTrue(picture.read_text(encoding="utf-8").startswith("<svg"))
        alone = sharers(program.pid, "--for", "300ms", "--svg", "-")
        self.assertTrue(alone.startswith("<svg") and alone.endswith("</svg>\n"))
