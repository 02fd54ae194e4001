# SPDX-License-Identifier: Apache-2.0
"""A run of a machine: boots it, follows the script's output, keeps the time, cleans up."""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

TIMED_OUT, NO_STATUS, QEMU_FAILED = 124, 125, 126
# Seconds of CPU time and of time: five times what it takes, and twenty times what it takes on an idle machine.
BOOT_CPU_LIMIT, BOOT_LIMIT = 250, 900
BOOTS = 3
SOURCE = pathlib.Path(__file__).resolve().parents[3]
INSIDE = SOURCE / "tests/vm/inside"
# Programs of the build beside the installed ones; the guest finds them in /host.
PROGRAMS = ("vm/vm-sources", "bench/flood", "bench/exec_latency", "bench/pin-probe", "blackbox/sharing-threads")
# Begins the names of all that this process makes: two suites at once never touch each other's.
PREFIX = f"affinityd-vm-{os.getpid()}-"


def _read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _cpu_seconds(pid):
    """CPU time of a process, which tells a slow boot on a busy computer from one that hangs; proc_pid_stat(5)."""
    words = _read(pathlib.Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK") if len(words) > 12 else 0


class Run:
    """A machine in a folder, from start to removal. `words` returns the command for a folder; the guest sees `folder`/share as /host."""

    def __init__(self, words, console=False):
        self.words, self.console = words, console
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX))
        self.share = self.folder / "share"
        self.process = None
        self.output = ""
        self.boots = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._kill()
        shutil.rmtree(self.folder)

    def _kill(self):
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()

    def prepare(self, script, build, arguments=(), nics=()):
        """Lays out what the guest finds in /host: the script, what it imports, and the build, installed as a packager would. AFFINITYD_PACKAGES
        names a folder of packages for upgrade.py."""
        self.share.mkdir()
        shutil.copytree(INSIDE, self.share / "inside", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(script, self.share / "inside" / "script")
        (self.share / "inside" / "script").chmod(0o755)
        shutil.copy(SOURCE / "tools" / "gather-host", self.share)
        (self.share / "run").write_text(f"#!/bin/sh\ncd inside\nexec ./script {shlex.join(arguments)}\n", encoding="utf-8")
        (self.share / "run").chmod(0o755)
        (self.share / "nics").write_text("\n".join(nics), encoding="utf-8")
        if packages := os.environ.get("AFFINITYD_PACKAGES"):
            shutil.copytree(packages, self.share / "packages")
        if build is not None:
            done = subprocess.run(["meson", "install", "-C", build, "--destdir", self.share / "install", "--no-rebuild", "--quiet", "--strip"],
                                  capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise SystemExit(f"vm: {build} cannot be installed: {(done.stdout + done.stderr).strip()}")
            for program in PROGRAMS:
                shutil.copy(pathlib.Path(build) / "tests" / program, self.share)
        if self.console:
            (self.share / "console").touch()

    def _start(self):
        for name in ("console", "qmp"):
            (self.folder / name).unlink(missing_ok=True)
        with (self.folder / "log").open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.words(self.folder), stdin=None if self.console else subprocess.DEVNULL,
                                            stdout=None if self.console else log, stderr=log)

    def _relay(self):
        """Prints what the script has printed since the last call."""
        text = _read(self.share / "output")
        if not self.console:
            sys.stdout.write(text[len(self.output):])
            sys.stdout.flush()
        self.output = text

    def _came_up(self):
        """Waits for the script to start. Returns what is wrong with this boot, or ""."""
        started = time.monotonic()
        while not (self.share / "uptime.1").exists():
            if self.process.poll() is not None:
                return f"it ended with {self.process.returncode}"
            if "vm: boot again" in _read(self.folder / "console"):
                return "a CPU came up without a timer"
            if time.monotonic() - started > BOOT_LIMIT or _cpu_seconds(self.process.pid) > BOOT_CPU_LIMIT:
                return "the script did not start in time"
            time.sleep(0.1)
        self.boots.append(time.monotonic() - started)
        return ""

    def _tail(self, lines=40):
        """The end of the console, which shows a hang."""
        text = _read(self.folder / "console").replace("\r", "").splitlines()[-lines:]
        return "\n".join(["vm: the end of the console:", *("    " + line for line in text), _read(self.folder / "log")])

    def _fail(self, code, reason):
        self._kill()
        self._relay()
        print(f"vm: {reason}\n{self._tail()}", flush=True)
        return code

    def _start_until_up(self):
        """Boots until the script has started. Returns what was wrong with the last boot, or ""."""
        for attempt in range(1, BOOTS + 1):
            self._start()
            fault = self._came_up()
            if not fault or attempt == BOOTS:
                return fault
            self._kill()
            print(f"vm: boot {attempt}: {fault}; once more", flush=True)
            time.sleep(attempt)  # until this computer has the resources that it lacked

    def boot(self, limit):
        """The script's exit status, or TIMED_OUT, NO_STATUS, QEMU_FAILED. `limit`: seconds from the script's start."""
        fault = self._start_until_up()
        if fault:
            return self._fail(QEMU_FAILED, f"no boot in {BOOTS}: {fault}")
        end = time.monotonic() + limit
        while self.process.poll() is None:
            self._relay()
            if "vm: boot again" in _read(self.folder / "console"):
                return self._fail(NO_STATUS, "a CPU came up without a timer after a reboot")
            if time.monotonic() > end and not self.console:
                return self._fail(TIMED_OUT, f"the script took longer than {limit:.0f} s")
            time.sleep(0.2)
        self._relay()
        status = _read(self.share / "status").strip()
        return int(status) if status else self._fail(NO_STATUS, "the machine ended before its script")

    @property
    def journal(self):
        return _read(self.share / "journal")

