# SPDX-License-Identifier: Apache-2.0
"""A daemon for one test, and readers that ask the kernel instead of believing the daemon."""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

PROGRAMS = {name: os.environ[variable] for name, variable in
            (("affinityd", "AFFINITYD"), ("affinityctl", "AFFINITYCTL"), ("workload", "AFFINITYD_WORKLOAD"))}
# What a test awaits normally comes within milliseconds; sanitized builds on a busy machine need this much room.
PATIENCE = 60.0


def wait_for_our_turn():
    """Two suites at the same time would pin each other's workloads, so their integration tests take turns. The lock is on a folder that
    every machine has; it ends with this process."""
    folder = os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(folder, fcntl.LOCK_EX)


wait_for_our_turn()


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
        time.sleep(0.02)


def remove_group(folder):
    """Removes a control group that a test made."""
    end = time.monotonic() + 20
    while folder.exists():
        try:
            folder.rmdir()  # its members have been killed, but may not have exited yet
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def measured(condition, what):
    """Seconds until the condition holds. Tests print them as a line "measured: ..."."""
    begin = time.monotonic()
    wait_for(condition, what)
    return time.monotonic() - begin


def allowed(pid, tid=None):
    """Cpus_allowed_list of a task, from the kernel."""
    path = pathlib.Path(f"/proc/{pid}/task/{tid or pid}/status")
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return line.split()[1]
    raise AssertionError(f"{path} does not say")


def threads(pid):
    return sorted(int(entry.name) for entry in pathlib.Path(f"/proc/{pid}/task").iterdir())


def masks(pid):
    """{thread name: mask} of a process."""
    result = {}
    for tid in threads(pid):
        name = pathlib.Path(f"/proc/{pid}/task/{tid}/comm").read_text(encoding="utf-8", errors="replace").strip()
        result[name] = allowed(pid, tid)
    return result


class Daemon:
    """affinityd with its own folders. The test's end ends it and removes them, whatever happens."""

    def __init__(self, stack, policies, arguments=()):
        # In memory, like /run: the tests are not about slow disks.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="affinityd-test-", dir=memory))
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.policies = self.folder / "policies"
        self.policies.mkdir()
        for name, text in policies.items():
            self.write(name, text)
        self.arguments = list(arguments)
        self.process = None
        self.log = self.folder / "log"
        stack.callback(self.end)

    def write(self, name, text):
        # Atomically, so that the folder's watch never sees half a file.
        temporary = self.folder / name
        temporary.write_text(text, encoding="utf-8")
        temporary.rename(self.policies / name)

    def command(self):
        return [PROGRAMS["affinityd"], "--foreground", "--config", str(self.settings()), "--policies", str(self.policies),
                "--runtime-dir", str(self.folder / "run"), "--state-dir", str(self.folder / "state"), *self.arguments]

    def settings(self):
        path = self.folder / "affinityd.yaml"
        if not path.exists():
            path.write_text("version: 1\nmeasure: {duration: 1s}\n", encoding="utf-8")
        return path

    def start(self):
        before = self.readies()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stderr=log, stdin=subprocess.DEVNULL)
        wait_for(lambda: self.readies() > before or self.process.poll() is not None, "the daemon is ready")
        assert self.process.poll() is None, f"the daemon ended: {self.text()}"
        return self

    def text(self):
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def readies(self):
        """How often it became ready: other lines have "already"."""
        return len(re.findall(r" ready$", self.text(), re.MULTILINE))

    def control(self, *arguments, code=0):
        done = subprocess.run([PROGRAMS["affinityctl"], "--runtime-dir", str(self.folder / "run"), *arguments],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != code:
            over = self.process.poll() if self.process else None
            ended = "" if over is None else f"the daemon ended with {over}: {self.text()}"
            raise AssertionError(f"affinityctl {arguments}: {done.returncode}\n{done.stdout}{done.stderr}{ended}")
        return done.stdout + done.stderr

    def status(self):
        return json.loads(self.control("status", "--json"))

    def calm(self):
        """Waits until no pass has begun for two seconds: others follow the first, and would put right what a test displaces."""
        seen = None

        def is_calm():
            nonlocal seen
            status = self.status()
            passes = (status["reconciles"], status["reconciling"])
            if seen is None or seen[0] != passes:
                seen = (passes, time.monotonic())
            return not passes[1] and time.monotonic() - seen[1] > 2

        wait_for(is_calm, "passes are over")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self.process = None
        assert code == 0, f"exit code {code}: {self.text()}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def end(self):
        code = None if self.process is None else self.process.poll()
        by_itself = code is not None and code < 0 and -code not in (signal.SIGKILL, signal.SIGTERM)
        assert not by_itself, f"the daemon ended with {code}: {self.text()}"
        if self.process is not None and code is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=30)
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


def spawn(stack, *command, **options):
    """A child process that the test's end kills."""
    silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    process = subprocess.Popen(command, **(silent | options))

    def end():
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    stack.callback(end)
    return process


def workload(stack, *arguments):
    return spawn(stack, PROGRAMS["workload"], *arguments)
