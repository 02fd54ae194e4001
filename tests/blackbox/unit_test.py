# SPDX-License-Identifier: Apache-2.0
"""The installed units under systemd, in a container of this machine's own files: what a package does, what an administrator types, and that
the units' walls stop nothing that is needed. Process events do not reach a container: passes find new programs, and control groups."""
import json
import os
import pathlib
import signal
import subprocess
import xml.dom.minidom

from house import BUILD, House, allowed, children, cpus, document, group, policy, run, wait_for

TARGET = "[Unit]\nRequires=basic.target dbus.service\nAfter=basic.target dbus.service\nAllowIsolate=yes\n"
# The machine's files below a layer in memory, with the installation in it; then systemd as the first process.
BOOT = """set -e
case $(stat -f -c %T /sys/fs/cgroup) in tmpfs|cgroup2fs) ;; *) mount -t cgroup2 none /sys/fs/cgroup ;; esac
for group in {groups}; do echo $$ >$group/cgroup.procs; done
mount -t tmpfs none {layer}
mkdir {layer}/upper {layer}/work {layer}/root
mount -t overlay -o lowerdir={lower},upperdir={layer}/upper,workdir={layer}/work none {layer}/root
cp {target} {layer}/root/etc/systemd/system/contract.target
cp -a {install}/. {layer}/root/
exec systemd-nspawn --quiet --register=no --keep-unit --private-network --link-journal=no --console=pipe --directory={layer}/root --boot -- --unit=contract.target
"""
LOWER = os.environ.get("AFFINITYD_CONTAINER", "/")
POLICIES, SETTINGS = "/etc/affinityd/policies.d", "/etc/affinityd/affinityd.yaml"
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


class Container(House):
    PLAIN = True  # the units' walls keep sanitizers from working
    LONG = True

    def setUp(self):
        super().setUp()
        groups = [folder for folder in (group(self.stack, f"affinityd-{self.mark}", "systemd"), group(self.stack, f"affinityd-{self.mark}")) if folder]
        self.stack.callback(self.remove_below, groups)
        for name in ("layer", "install"):
            (self.bin / name).mkdir()
        (self.bin / "target").write_text(TARGET, encoding="utf-8")
        self.lay(self.bin / "install")
        script = BOOT.format(lower=LOWER, groups=" ".join(map(str, groups)), layer=self.bin / "layer", target=self.bin / "target", install=self.bin / "install")
        nspawn = self.spawn("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "sh", "-c", script, stdout=open(self.bin / "log", "wb"), stderr=subprocess.STDOUT)
        self.first = wait_for(lambda: [child for child in children(nspawn.pid) if os.readlink(f"/proc/{child}/exe").endswith("/systemd")], self.said)[0]
        self.stack.callback(os.kill, self.first, signal.SIGKILL)  # it outlives nspawn
        wait_for(lambda: self.inside("systemctl", "is-active", "contract.target", code=None).out.strip() == "active", self.said)
        self.begin()

    def lay(self, folder):
        """Puts files there that the container has from the start."""
        run("meson", "install", "-C", BUILD, "--destdir", folder, "--no-rebuild", "--quiet", code=0)

    def begin(self):
        self.inside("systemctl", "start", "affinityd")

    def said(self):
        return "the container is up: " + (self.bin / "log").read_text(encoding="utf-8", errors="replace")[-2000:]

    @staticmethod
    def remove_below(folders):
        for top in folders:
            for folder, _, _ in os.walk(top, topdown=False):
                if pathlib.Path(folder) != top:
                    wait_for(lambda folder=folder: not os.path.exists(folder) or not pathlib.Path(folder, "cgroup.procs").read_text(encoding="ascii"), "groups are empty")
                    os.rmdir(folder)

    def inside(self, *words, code=0, text=None):
        """A command inside."""
        return run("nsenter", "-t", self.first, "-a", *words, code=code, input=text)

    def ask(self, *words):
        return self.inside("affinityctl", *words, "--json", code=(0, 3)).json

    def put(self, path, keys):
        self.inside("tee", path, text=keys if isinstance(keys, str) else document(**keys))

    def shown(self, name, unit="affinityd"):
        return self.inside("systemctl", "show", "-P", name, unit).out.strip()

    def transient(self, name, *options):
        """A service that sleeps; its main process, as the machine numbers it."""
        self.inside("systemd-run", "--quiet", f"--unit={name}", *options, "sleep", "600")
        number = wait_for(lambda: self.shown("MainPID", name), "it runs")
        for pid in (int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()):
            try:
                status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
                if f"NSpid:\t{pid}\t{number}\n" in status and os.readlink(f"/proc/{pid}/ns/pid") == os.readlink(f"/proc/{self.first}/ns/pid"):
                    return pid
            except OSError:
                continue
        raise AssertionError(f"{name} has no process {number}")


class Unit(Container):
    def test_its_file_is_right_and_as_closed_as_promised(self):
        self.assertEqual("", self.inside("systemd-analyze", "verify", "--man=no", "affinityd.service").err)
        for unit, most in (("affinityd.service", 2.3), ("affinity-measure@.service", 1.5), ("affinity-ttcp@.service", 1.5),
                           ("affinity-exporter.service", 1.2), ("affinity-textfile.service", 1.8)):
            told = self.inside("systemd-analyze", "security", "--offline=true", "--no-pager", f"/lib/systemd/system/{unit}").out
            self.assertLessEqual(float(told.rsplit(": ", 1)[1].split()[0]), most, unit)

    def test_start_reload_kill_and_stop(self):
        self.assertEqual("active", self.shown("ActiveState"))
        wait_for(lambda: "0 policies" in self.shown("StatusText"), "the Status line")
        sleeper = self.transient("sleeper")
        self.put(f"{POLICIES}/sleeper.yaml", policy(match={"unit": "sleeper.service"}, cpus="0", bind="set", settle=0))
        self.inside("systemctl", "reload", "affinityd")
        self.expect(sleeper, "0")
        self.put(f"{POLICIES}/sleeper.yaml", "version: 1\nmatch: {comm: [}\n")
        self.inside("systemctl", "reload", "affinityd", code=1)
        self.at(sleeper, "0")
        wait_for(lambda: "sleeper.yaml:2" in self.shown("StatusText"), "the Status line has the fault")
        first = self.shown("MainPID")
        self.inside("kill", "-9", first)
        wait_for(lambda: self.shown("ActiveState") == "active" and self.shown("MainPID") not in ("0", first), "it is started again")
        self.expect(sleeper, "0")
        self.inside("systemctl", "stop", "affinityd")
        self.assertEqual(("success", "0"), (self.shown("Result"), self.shown("ExecMainStatus")))
        self.at(sleeper, self.everywhere)

    def test_a_restart_leaves_masks_in_place_and_a_stop_puts_them_back(self):
        sleeper = self.transient("sleeper")
        self.put(f"{POLICIES}/sleeper.yaml", policy(match={"unit": "sleeper.service"}, cpus="0", bind="set", settle=0))
        # Between the end of one daemon and the start of the next.
        look = f"[Service]\nExecStopPost=+/bin/cp /proc/{self.shown('MainPID', 'sleeper')}/status /run/between\n"
        self.inside("mkdir", "-p", "/etc/systemd/system/affinityd.service.d")
        self.put("/etc/systemd/system/affinityd.service.d/look.conf", look)
        self.inside("systemctl", "daemon-reload")
        self.inside("affinityctl", "reload")
        self.expect(sleeper, "0")
        for verb, between in (("restart", "0"), ("try-restart", "0"), ("stop", self.everywhere)):
            with self.subTest(verb):
                self.inside("systemctl", verb, "affinityd")
                line = next(line for line in self.inside("cat", "/run/between").out.splitlines() if line.startswith("Cpus_allowed_list:"))
                self.assertEqual(cpus(between), cpus(line.split()[1]))
        self.at(sleeper, self.everywhere)

    def test_a_service_is_placed_when_it_starts_and_when_it_is_restarted(self):
        self.put(f"{POLICIES}/late.yaml", policy(match={"unit": "late.service"}, cpus="1", bind="set", settle=0))
        self.inside("affinityctl", "reload")
        for _ in range(2):
            late = self.transient("late")
            self.expect(late, "1")
            self.inside("systemctl", "stop", "late")

    def test_a_container_is_not_steered_and_the_status_says_why(self):
        self.transient("sleeper")
        self.put(f"{POLICIES}/sleeper.yaml", policy(match={"unit": "sleeper.service"}, affinity="full", steer="accept", nics=["lo"]))
        self.inside("affinityctl", "reload")
        wait_for(lambda: any("PID namespace of its own (a container)" in problem["message"] for problem in self.ask("status")["problems"]),
                 lambda: f"that is said: {self.ask('status')['problems']}")

    def test_all_may_read_over_the_bus_and_root_alone_may_change(self):
        self.assertEqual([], json.loads(self.inside(*NOBODY, "affinityctl", "status", "--json", code=(0, 3)).out)["policies"])
        for verb in ("apply", "release", "reload"):
            self.assertNotEqual(0, self.inside(*NOBODY, "affinityctl", verb, code=None).code, verb)
            self.inside("affinityctl", verb)
        call = ("busctl", "call", "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "RequestName", "su", "org.affinityd", "0")
        self.inside("systemctl", "stop", "affinityd")
        self.assertIn("denied", self.inside(*NOBODY, *call, code=None).text.lower())

    def test_every_verb(self):
        sleeper = self.transient("sleeper")
        self.put(f"{POLICIES}/sleeper.yaml", policy(match={"unit": "sleeper.service"}, cpus="0", bind="set", settle=0))
        self.inside("affinityctl", "reload")
        self.expect(sleeper, "0")
        number = self.shown("MainPID", "sleeper")
        for words in (("status",), ("watch", "--once"), ("plan",), ("plan", "--cpus"), ("explain", number), ("explain", "sleeper.service"), ("policies",),
                      ("policies", "show", "sleeper"), ("topology",), ("cpus", "all"), ("nics",), ("irqs",), ("history",)):
            with self.subTest(" ".join(words)):
                self.assertIsNotNone(self.ask(*words))
        for words in (("check",), ("explain", "lo"), ("release", "sleeper"), ("apply",)):
            with self.subTest(" ".join(words)):
                self.inside("affinityctl", *words)
        self.assertEqual(cpus("0"), cpus(allowed(sleeper)))
        self.assertEqual("svg", xml.dom.minidom.parseString(self.inside("affinityctl", "topology", "--svg", "-").out).documentElement.tagName)
        self.inside("affinityctl", "measure")
        self.put(SETTINGS, {"version": 1, "measure": {"interval": "1s", "duration": "1s", "idle_only": False}})
        self.inside("systemctl", "restart", "affinityd")
        wait_for(lambda: len(self.ask("history", "--kind", "ttcp")["records"]) >= 2, "it measures by itself")
        self.assertEqual({"done"}, {record["outcome"] for record in self.ask("history", "--kind", "ttcp")["records"]})
        self.inside("systemctl", "start", "affinity-ttcp.socket")
        self.assertEqual("done", json.loads(self.inside("affinity-ttcp", "--target", "127.0.0.1:5001", "--bytes", "10000000", "--json").out)["outcome"])
        told = self.inside("journalctl", "-u", "affinityd", "-u", "affinity-measure@*", "-u", "affinity-ttcp@*", "--no-pager", "-o", "cat").out
        for word in ("SIGSYS", "status=31", "core-dump", "Operation not permitted", "Address family not supported"):
            self.assertNotIn(word, told)
