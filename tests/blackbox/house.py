# SPDX-License-Identifier: Apache-2.0
"""The frame of the contract suite: a built daemon with folders of its own, programs with names of their own, and readers that ask the
kernel. Scenarios know the daemon, `affinityctl --json` and /proc only, so they run with any build:

    class Births(House):
        def test_a_program_started_later_is_placed(self):
            self.daemon(web=policy("web", cpus="0", bind="set"))
            web = self.program("web")
            self.expect(web, "0")

A test's programs have names that no other test has: "web" in `policy(...)` and `self.program(...)` of one test becomes one such name.
A class that says ALONE = True runs after the parallel ones, by itself (it measures, or loads the machine). A class that says OWN_PIDS = True
runs in a pid namespace of its own (its policies concern every process); process events do not reach it. PLAIN = True: never with a daemon of
another build (`--daemon`). LONG = True: it begins first. APART = True: its tests run side by side, as those of other classes do.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ.get("AFFINITYD_TESTED", "build")).resolve()
PROGRAMS = {"affinityd": pathlib.Path(os.environ.get("AFFINITYD_DAEMON", BUILD / "daemon/affinityd")), "affinityctl": BUILD / "tools/affinityctl/affinityctl",
            "ttcp": BUILD / "tools/affinity-ttcp/affinity-ttcp", "libaffinity": BUILD / "tools/libaffinity/libaffinity.so",
            "pool": BUILD / "tools/libaffinity/affinity-pool"}
# A test waits for milliseconds; sanitized builds on a busy machine need this much room.
PATIENCE = 60.0
# In memory, like /run: the tests are not about slow disks.
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
EVERYWHERE = ",".join(map(str, sorted(os.sched_getaffinity(0))))


def wait_for(condition, what, patience=PATIENCE):
    """Polls until the condition holds and returns its value; otherwise fails and names what was awaited: a text, or a function that says
    what is so instead. A process that ends while the condition looks at it is no failure: it looks again."""
    end = time.monotonic() + patience
    while True:
        gone = None
        try:
            value = condition()
        except (FileNotFoundError, ProcessLookupError) as error:
            value, gone = None, error
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {patience} s: {what() if callable(what) else what}") from gone
        time.sleep(0.01)


def measured(condition, what):
    """Seconds until the condition holds."""
    begin = time.monotonic()
    wait_for(condition, what)
    return time.monotonic() - begin


def report(text):
    """A line among the results of the suite."""
    print(f"measured: {text}", flush=True)


def cpus(text):
    """ "0-2,5" as a set."""
    return {cpu for part in str(text).split(",") if part for first, _, last in [part.partition("-")] for cpu in range(int(first), int(last or first) + 1)}


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8", errors="replace").strip()


def allowed(pid, tid=None):
    """Cpus_allowed_list of a task, from the kernel."""
    for line in read(f"/proc/{pid}/task/{tid or pid}/status").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return line.split()[1]
    raise AssertionError(f"the status of {pid}/{tid} does not say")


def comm(pid, tid=None):
    with contextlib.suppress(OSError):
        return read(f"/proc/{pid}/task/{tid or pid}/comm")
    return ""


def threads(pid):
    return sorted(int(entry.name) for entry in pathlib.Path(f"/proc/{pid}/task").iterdir())


def children(pid):
    found = []
    for tid in threads(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            found += map(int, read(f"/proc/{pid}/task/{tid}/children").split())
    return found


def masks(pid):
    """{thread name: mask} of a process."""
    return {comm(pid, tid): allowed(pid, tid) for tid in threads(pid)}


def set_mask(tid, wanted):
    """As another program would."""
    os.sched_setaffinity(tid, cpus(wanted))


def document(**keys):
    """Keys and values as a YAML document, one key a line."""
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items())


def policy(comm=None, **keys):
    """A policy for programs of that name (House makes it unique), or with a `match` of its own."""
    return {"version": 1} | ({"match": {"comm": comm}} if comm is not None else {}) | keys


AUTHENTICATED = b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"


def bus_call(serial, method, *words):
    """A call of the daemon as the bytes of a message; its words are texts."""
    def text(value):
        return struct.pack("<I", len(value)) + value + b"\0"
    body, fields = b"", b""
    for word in words:
        body += bytes(-len(body) % 4) + text(word.encode())
    signature = [(8, b"g", b"s" * len(words))] if words else []
    for code, kind, value in ((1, b"o", b"/org/affinityd"), (2, b"s", b"org.affinityd.Manager1"), (3, b"s", method.encode()), *signature):
        fields += bytes(-len(fields) % 8) + bytes([code, 1]) + kind + b"\0" + (bytes([len(value)]) + value + b"\0" if kind == b"g" else text(value))
    return b"l\1\0\1" + struct.pack("<III", len(body), serial, len(fields)) + fields + bytes(-len(fields) % 8) + body


class Answer:
    """The output of a program that ended."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def text(self):
        return self.out + self.err

    @property
    def json(self):
        return json.loads(self.out)


def run(*words, code=None, **options):
    """Runs a program to its end. `code`: the exit status, or those, that it must have."""
    done = subprocess.run([str(word) for word in words], **({"capture_output": True, "text": True, "timeout": 120, "check": False} | options))
    if code is not None and done.returncode not in (code if isinstance(code, tuple) else (code,)):
        raise AssertionError(f"{' '.join(map(str, words))}: {done.returncode} instead of {code}\n{done.stdout}{done.stderr}")
    return Answer(done)


def affinityctl(*words, code=0, **options):
    """affinityctl without a daemon of the test."""
    return run(PROGRAMS["affinityctl"], *words, code=code, **options)


class Program:
    """A running process of the test, which its end kills. As a number it is its pid."""

    def __init__(self, stack, command, **options):
        silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        self.process = subprocess.Popen([str(word) for word in command], **(silent | options))
        self.pid = self.process.pid
        stack.callback(self.end)

    def end(self):
        """Ends it and its children: a server's workers outlive a master that is killed."""
        if self.process.poll() is None:
            workers = children(self.pid)
            self.process.kill()
            for pid in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Puppet(Program):
    """A process that does as it is told: see puppet.c. Each call returns a number."""

    def __init__(self, stack, path, namespace=()):
        super().__init__(stack, [*namespace, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.born = []
        stack.callback(self.end_born)
        stack.callback(self.end)

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer.isdigit(), f"{words}: {answer or 'it ended'}"
        return int(answer)

    def thread(self, name="thread"):
        return self.tell("thread", name)

    def fork(self):
        self.born.append(self.tell("fork"))
        return self.born[-1]

    def spawn(self, *command):
        self.born.append(self.tell("spawn", *command))
        return self.born[-1]

    def rename(self, name, tid=0):
        return self.tell("rename", tid, name)

    def mask(self, wanted, tid=0):
        return self.tell("mask", tid, ",".join(map(str, sorted(cpus(wanted)))))

    def cpus(self):
        """How many it may use, as programs count them when they start."""
        return self.tell("cpus")

    def busy(self, tid, spins=True):
        return self.tell("busy", tid, int(spins))

    def exec(self, *command):
        return self.tell("exec", *command)

    def end_born(self):
        for pid in self.born:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Daemon:
    """affinityd with folders of its own. The test's end ends it and removes them."""

    def __init__(self, stack, policies, settings=None, arguments=(), namespace=()):
        """`policies`: {name: keys or text}; `settings`: keys of affinityd.yaml; `namespace`: the words that begin its command."""
        self.stack, self.folder = stack, pathlib.Path(tempfile.mkdtemp(prefix="affinityd-test-", dir=SCRATCH))
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.policies = self.folder / "policies"
        self.policies.mkdir()
        self.arguments, self.namespace, self.process = list(arguments), list(namespace), None
        self.log = self.folder / "log"
        self.settings(**(settings or {}))
        for name, content in policies.items():
            self.write(name, content)
        stack.callback(self.end)

    def settings(self, **keys):
        (self.folder / "affinityd.yaml").write_text(document(version=1, **keys), encoding="utf-8")

    def write(self, name, content):
        """A policy file, made at once, so that the folder's watch never sees half of it."""
        new = self.folder / "new"
        new.write_text(content if isinstance(content, str) else document(**content), encoding="utf-8")
        new.rename(self.policies / f"{name}.yaml")

    def remove(self, name):
        (self.policies / f"{name}.yaml").unlink()

    def command(self):
        return [str(word) for word in (*self.namespace, PROGRAMS["affinityd"], "--foreground", "--config", self.folder / "affinityd.yaml",
                                       "--policies", self.policies, "--runtime-dir", self.folder / "run", "--state-dir",
                                       self.folder / "state", *self.arguments)]

    def start(self, is_ready=True):
        """`is_ready`: waits for that."""
        self.before = self.readies()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stderr=log, stdin=subprocess.DEVNULL)
        return self.await_ready() if is_ready else self

    def await_ready(self):
        wait_for(lambda: self.readies() > self.before or self.process.poll() is not None, lambda: f"the daemon is ready: {self.text()}")
        assert self.process.poll() is None, f"the daemon ended: {self.text()}"
        return self

    def text(self):
        """The log of the daemon."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def readies(self):
        return sum(line.endswith(" ready") for line in self.text().splitlines())

    def ctl(self, *words, code=0):
        """affinityctl with this daemon. `code`: the exit status, or those, that it must end with; None: any."""
        answer = run(*self.namespace, PROGRAMS["affinityctl"], "--runtime-dir", self.folder / "run", *words)
        if code is not None and answer.code not in (code if isinstance(code, tuple) else (code,)):
            over = self.process.poll() if self.process else None
            raise AssertionError(f"affinityctl {words}: {answer.code} instead of {code}\n{answer.text}"
                                 + ("" if over is None else f"the daemon ended with {over}: {self.text()}"))
        return answer

    def connect(self, sent=b""):
        """A connection to the private socket, which the test's end closes."""
        made = socket.socket(socket.AF_UNIX)
        self.stack.callback(made.close)
        made.settimeout(60)
        made.connect(str(self.folder / "run/control"))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            made.sendall(sent)
        return made

    def call(self, method, *words):
        """The answer to a call over the private socket: whether it is an error, the head of its message, and its text."""
        with self.connect(AUTHENTICATED + bus_call(1, method, *words)) as made:
            answer = b""
            while got := made.recv(65536):
                answer += got
                reply = answer.partition(b"OK ")[2].partition(b"\r\n")[2]
                if len(reply) < 16:
                    continue
                length, _, head = struct.unpack_from("<III", reply, 4)
                begin = 16 + head + -head % 8
                if len(reply) >= begin + length:
                    return reply[1] == 3, reply[16:begin], reply[begin + 4:begin + length - 1].decode()
        raise AssertionError(f"{method}: it does not answer")

    def status(self):
        return self.ctl("status", "--json", code=(0, 3)).json  # 3: something needs attention

    def plan(self, *files):
        """The actions of the next pass."""
        return self.ctl("plan", "--json", *files, code=(0, 3)).json["actions"]

    def policy(self, name):
        return next(policy for policy in self.status()["policies"] if policy["name"] == name)

    def problems(self):
        return [problem["message"] for problem in self.status()["problems"]]

    def explain(self, subject):
        return self.ctl("explain", "--json", subject).json

    def passes(self, count=1):
        """Until that many more whole passes are over; asks for them."""
        for _ in range(count):
            begun = self.status()["reconciles"]
            self.ctl("apply")
            wait_for(lambda: (lambda now: now["reconciles"] > begun and not now["reconciling"])(self.status()), "a full pass")

    def later(self, count=2):
        """Until that many more passes are over, which come by themselves (needs `reconcile: 1s`)."""
        begun = self.status()["reconciles"]
        wait_for(lambda: self.status()["reconciles"] > begun + count, f"{count} passes are over")

    def calm(self):
        """Until no pass has begun for longer than the two seconds within which others follow the first: they would put right what a
        test displaces."""
        seen = None

        def is_calm():
            nonlocal seen
            status = self.status()
            now = (status["reconciles"], status["reconciling"])
            if seen is None or seen[0] != now:
                seen = (now, time.monotonic())
            return not now[1] and time.monotonic() - seen[1] > 2.5

        wait_for(is_calm, "passes are over")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE)
        self.process = None
        assert code == 0, f"exit code {code}: {self.text()}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def end(self):
        if self.process is None:
            return
        code = self.process.poll()
        if code is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=30)
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
                raise AssertionError("the daemon did not end within 30 s")
            code = self.process.returncode
        assert code >= 0 or -code in (signal.SIGKILL, signal.SIGTERM), f"the daemon ended with {code}: {self.text()}"


class House(unittest.TestCase):
    """A test with daemons and programs, which end with it."""

    maxDiff = None
    numbers = iter(range(10**6))

    def setUp(self):
        self.fresh()

    def fresh(self):
        """Ends all that was made so far and begins with new names: for the next row of a table."""
        if hasattr(self, "stack"):
            self.stack.close()
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.everywhere = allowed(os.getpid())
        self.mark = f"{os.getpid() % 36**4:x}{next(self.numbers)}"  # unique to this test, and short
        self.bin = pathlib.Path(tempfile.mkdtemp(prefix="affinityd-programs-", dir=SCRATCH))
        self.stack.callback(shutil.rmtree, self.bin, ignore_errors=True)

    def name(self, stem):
        """A program's name that no other test has."""
        return f"{stem[:14 - len(self.mark)]}.{self.mark}"

    def policy(self, stem, **keys):
        """A policy for the test's programs of that name."""
        return policy(self.name(stem), **keys)

    def daemon(self, settings=None, arguments=(), namespace=(), start=True, **policies):
        """A running daemon with these policies (keys, or text). A policy's `match: {comm: web}` made by policy("web") means self.program("web")."""
        made = Daemon(self.stack, {}, settings, arguments, namespace)
        write = made.write
        made.write = lambda name, content: write(name, content if isinstance(content, str) else self.own(content))
        for name, content in policies.items():
            made.write(name, content)
        return made.start() if start else made

    def own(self, keys):
        """The policy with the test's own names of programs."""
        match = dict(keys.get("match", {}))
        if isinstance(match.get("comm"), str) and self.mark not in match["comm"]:
            match["comm"] = self.name(match["comm"])
        elif isinstance(match.get("comm"), list):
            match["comm"] = [one if self.mark in one else self.name(one) for one in match["comm"]]
        return keys | ({"match": match} if match else {})

    def copy_of(self, original, stem):
        """A program under a name of the test."""
        path = self.bin / self.name(stem)
        if not path.exists():
            shutil.copy(original, path)
        return path

    def program(self, stem, *command, first_mask=None, namespace=()):
        """A puppet of that name; with a command, that command by a copy of its program (`self.program("sleeper", "/bin/sleep", "600")`).
        `first_mask`: the CPUs it begins with."""
        words = [*(["taskset", "-c", first_mask] if first_mask else []), *namespace]
        if command:
            made = Program(self.stack, [*words, self.copy_of(command[0], stem), *command[1:]])
        else:
            made = Puppet(self.stack, self.copy_of(compiled("puppet.c"), stem), words)
        wait_for(lambda: comm(made.pid) == self.name(stem), f"{stem} runs")
        return made

    def spawn(self, *command, **options):
        return Program(self.stack, command, **options)

    def expect(self, task, wanted, tid=None):
        """The kernel says that the task (a program, a pid; a thread of it) has these CPUs, now or within a while."""
        pid = getattr(task, "pid", task)
        wait_for(lambda: cpus(allowed(pid, tid)) == cpus(wanted), lambda: f"{comm(pid, tid)} ({pid}) has {wanted}: it has {allowed(pid, tid)}")

    def expect_threads(self, task, wanted):
        """{thread name: CPUs} of all threads of a process, or one text for all."""
        pid = getattr(task, "pid", task)

        def so():
            now = masks(pid)
            asked = dict.fromkeys(now, wanted) if isinstance(wanted, str) else wanted
            return now.keys() == asked.keys() and all(cpus(now[name]) == cpus(asked[name]) for name in now)
        wait_for(so, lambda: f"threads of {pid} have {wanted}: they have {masks(pid)}")

    def stays(self, task, wanted, seconds=1.0, tid=None):
        """The task has these CPUs, now and for a while."""
        pid, end = getattr(task, "pid", task), time.monotonic() + seconds
        while time.monotonic() < end:
            self.assertEqual(cpus(wanted), cpus(allowed(pid, tid)), f"{comm(pid, tid)} ({pid})")
            time.sleep(0.05)

    def at(self, task, wanted, tid=None):
        """The task has these CPUs at this moment."""
        pid = getattr(task, "pid", task)
        self.assertEqual(cpus(wanted), cpus(allowed(pid, tid)), f"{comm(pid, tid)} ({pid})")


def ip(*words):
    return run("ip", *words, code=0).out


class Namespace:
    """A network namespace of the test; a program started by its command() also has the /sys of that namespace."""

    def __init__(self, stack, name):
        self.name = name
        ip("netns", "add", name)
        stack.callback(run, "ip", "netns", "del", name)

    def ip(self, *words):
        return ip("-n", self.name, *words)

    def command(self, *words):
        return ["ip", "netns", "exec", self.name, *words]

    def run(self, *words):
        return run(*self.command(*words), code=0).out.strip()


def remove_group(folder):
    """Removes a control group of the test, whose members have been killed but may not have exited yet."""
    wait_for(lambda: not folder.exists() or not read(folder / "cgroup.procs"), f"{folder} is empty")
    with contextlib.suppress(FileNotFoundError):
        folder.rmdir()


def group(stack, name, controller=None):
    """A new control group: its folder in the hierarchy of version 2 (or of a controller of version 1). None where there is none."""
    mounted = pathlib.Path("/sys/fs/cgroup")
    for top in [mounted / controller] if controller and (mounted / controller).exists() else [mounted, mounted / "unified"]:
        if (top / "cgroup.procs").exists() and os.access(top, os.W_OK):
            folder = top / name
            folder.mkdir()
            stack.callback(remove_group, folder)
            return folder
    return None


def compiled(source):
    """A helper program from a source of the tests, compiled when it is first needed."""
    source = pathlib.Path(__file__).parent / source
    made = pathlib.Path(os.environ.get("AFFINITYD_COMPILED", tempfile.gettempdir())) / source.stem
    with open(f"{made}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            compiler = os.environ.get("CXX", "c++") if source.suffix == ".cpp" else os.environ.get("CC", "cc")
            run(*compiler.split(), *(["-std=c++20"] if source.suffix == ".cpp" else []), "-O1", "-pthread",
                *(["-shared", "-fPIC"] if source.stem == "settable" else []), "-o", made, source, code=0)
    return made


def python(code, *words):
    """The command of a small Python program."""
    return [sys.executable, "-c", code, *words]
