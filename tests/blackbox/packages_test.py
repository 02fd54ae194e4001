# SPDX-License-Identifier: Apache-2.0
"""The packages of tools/package, which also asks lintian and rpmlint: installed, upgraded, removed and purged in a container of this
machine's own files, or in AFFINITYD_CONTAINER. They are packed from the tested build, so that nothing is compiled twice, or come from
AFFINITYD_PACKAGES."""
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import threading
import time

from house import BUILD, document, policy, report, run, wait_for
from unit_test import POLICIES, SETTINGS, Container

# More with AFFINITYD_UPGRADES: each takes seconds.
UPGRADES = int(os.environ.get("AFFINITYD_UPGRADES", "2"))
# Without a question about settings of both sides that differ; apt has them as Dpkg::Options.
KEEP = ("--force-confdef", "--force-confold")
SOURCES = pathlib.Path(__file__).resolve().parents[2]
# Logs and the package manager's and systemd's own records, which any package changes.
RECORDS = ("/var/lib/dpkg/", "/var/log/", "/var/cache/", "/var/lib/apt/", "/run/systemd/", "/run/log/", "/run/udev/", "/var/lib/systemd/catalog/",
           "/var/lib/systemd/linger", "/etc/ld.so.cache", "/run/dbus/", "/run/user/", "/var/lib/private", "/run/lock/", "/var/lib/PackageKit/",
           "/var/tmp/systemd-private-")


def policy_text(**keys):
    return document(**policy(match={"unit": "sleeper.service"}, bind="set", settle=0, **keys))


class Packed(Container):
    @classmethod
    def setUpClass(cls):
        """Packs once for all classes of a run."""
        super().setUpClass()
        folder = pathlib.Path(os.environ["AFFINITYD_COMPILED"])
        cls.packages = pathlib.Path(os.environ.get("AFFINITYD_PACKAGES", folder / "packages"))
        with open(folder / "packages.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not cls.packages.exists():
                others = folder / "packing/others_1.0_all.deb"
                others.parent.mkdir()
                others.touch()
                run(SOURCES / "tools/package", "--built", BUILD, folder / "packing", code=0, timeout=300)
                others.unlink()  # it is still there
                (folder / "packing").rename(cls.packages)

    def lay(self, folder):
        (folder / "opt").mkdir()
        shutil.copytree(self.packages, folder / "opt/packages")

    def begin(self):
        self.inside("rm", "-f", "/usr/sbin/policy-rc.d")  # this machine's, which forbids that services start

    def install(self, *packages):
        """Without a terminal and without an answer to any question."""
        files = [f"/opt/packages/{package.name}" for name in packages for package in self.packages.glob(f"{name}_*.deb")]
        self.assertEqual(len(packages), len(files))
        self.inside("apt-get", "install", "--yes", "--no-install-recommends", *files, text="")

    def newer(self):
        """The file of a package affinityd of a later version, inside, with other settings."""
        script = """cd $(mktemp -d) && dpkg-deb --raw-extract /opt/packages/affinityd_*.deb new && sed -i 's/^Version: .*/&+later/' new/DEBIAN/control &&
            echo '# later' >>new/etc/affinityd/affinityd.yaml &&
            dpkg-deb --root-owner-group -Znone --build new /opt/later.deb"""
        self.inside("sh", "-c", script)
        return "/opt/later.deb"

    def files(self):
        """Each file and folder of the container, with its mode, size and, for links, target."""
        told = self.inside("find", "/etc", "/usr", "/var", "/run", "-xdev", "(", "-type", "d", "-printf", "%p/ %m\\n", "-o", "-printf", "%p %m %s %l\\n", ")").out
        return {line for line in told.splitlines() if not line.startswith(RECORDS)}


class Debian(Packed):
    def test_nothing_is_moved_until_there_is_a_policy(self):
        sleeper = self.transient("sleeper")
        began = time.monotonic()
        self.install("affinityd", "affinity-tools")
        self.assertEqual(("enabled", "active"), (self.shown("UnitFileState"), self.shown("ActiveState")))
        self.assertEqual(("disabled", "inactive"), (self.shown("UnitFileState", "affinity-ttcp.socket"), self.shown("ActiveState", "affinity-ttcp.socket")))
        self.assertEqual("active", self.shown("ActiveState", "affinity-measure.socket"))
        self.assertEqual([], self.ask("status")["policies"])
        self.at(sleeper, self.everywhere)
        self.inside("cp", "/usr/share/affinityd/examples/nginx.yaml", POLICIES)
        wait_for(lambda: [one["name"] for one in self.ask("status")["policies"]] == ["nginx"], "the example is in force")
        self.install("affinity-exporter")
        self.assertEqual(("disabled", "inactive"), (self.shown("UnitFileState", "affinity-exporter.socket"), self.shown("ActiveState", "affinity-exporter.socket")))
        self.inside("systemctl", "enable", "--now", "affinity-exporter.socket", text="")
        metrics = self.inside("python3", "-c", "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9073/metrics').read().decode())").out
        self.assertIn('affinityd_up 1', metrics)
        self.assertIn('policy="nginx"', metrics)
        report(f"installed by apt, with the first policy in force: {time.monotonic() - began:.1f} s")

    def test_the_rpms_have_the_same_files_and_their_programs_run(self):
        def below(folder):
            return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}

        for kind, unpack in (("deb", "dpkg-deb --extract {} ."), ("rpm", "rpm2cpio {} | cpio --quiet -idm")):
            (self.bin / kind).mkdir()
            for package in self.packages.glob(f"*.{kind}"):
                subprocess.run(["sh", "-ec", unpack.format(package)], cwd=self.bin / kind, check=True)
        deb, rpm = ({name.removesuffix(".gz").removeprefix("usr/").replace("zsh/vendor-completions/", "zsh/site-functions/") for name in below(self.bin / kind) if "/share/doc/" not in name and "/licenses/" not in name}
                    for kind in ("deb", "rpm"))
        self.assertEqual([], sorted(deb ^ rpm - {"share/affinityd/examples/pool.c"}))
        self.assertIn("affinityd", run(self.bin / "rpm/usr/sbin/affinityd", "--version", code=0).out)
        self.assertEqual(0, run(self.bin / "rpm/usr/bin/affinityctl", "topology", "--json").code)


class Upgrade(Packed):
    def test_an_upgrade_has_no_gap_and_keeps_edited_settings(self):
        self.install("affinityd")
        later, first = self.newer(), next(f"/opt/packages/{package.name}" for package in self.packages.glob("affinityd_*.deb"))
        self.put(SETTINGS, "version: 1\nreconcile: 7m\n")
        self.put(f"{POLICIES}/held.yaml", policy(match={"unit": ["held-0.service", "held-1.service", "held-2.service"]}, cpus="0", bind="set", settle=0))
        self.inside("affinityctl", "reload")
        held = [self.transient(f"held-{number}") for number in range(3)]
        for pid in held:
            self.expect(pid, "0")
        # Programs that run and programs that start.
        self.inside("systemd-run", "--quiet", "--unit=load", "sh", "-c", "while :; do :; done")
        self.inside("systemd-run", "--quiet", "--unit=births", "sh", "-c", "while :; do /bin/true; done")
        gaps, looks, over = [], [0], threading.Event()

        def witness():
            while not over.wait(0.001):
                looks[0] += 1
                gaps.extend((time.monotonic(), pid) for pid in held if os.sched_getaffinity(pid) != {0})

        watching = threading.Thread(target=witness)
        watching.start()
        try:
            for number in range(UPGRADES):
                before = self.shown("MainPID")
                self.inside("dpkg", *KEEP, "--install", later if number % 2 == 0 else first, text="")
                self.assertEqual("active", self.shown("ActiveState"))
                self.assertNotIn(self.shown("MainPID"), ("0", before))
        finally:
            over.set()
            watching.join()
        report(f"{UPGRADES} upgrades: {len(gaps)} gaps in {looks[0]} looks at {len(held)} programs")
        self.assertEqual([], gaps)
        self.assertEqual("version: 1\nreconcile: 7m\n", self.inside("cat", SETTINGS).out)
        self.assertEqual(f"{SETTINGS}.dpkg-dist\n", self.inside("find", "/etc/affinityd", "-name", "*.dpkg-*").out)
        # The last daemon still knows what was there before the first one.
        self.inside("systemctl", "stop", "affinityd")
        for pid in held:
            self.at(pid, self.everywhere)


class Rpm(Packed):
    """The scripts of the RPMs, with the package manager of others: the machine has no presets, which enable all then."""

    def rpm(self, *words):
        self.inside("rpm", "--force-debian", "--nodeps", *words)

    def test_installed_upgraded_and_removed(self):
        files = [f"/opt/packages/{package.name}" for package in self.packages.glob("*.rpm")]
        self.assertEqual(5, len(files))
        self.rpm("--install", *files)
        self.assertEqual(("enabled", "inactive"), (self.shown("UnitFileState"), self.shown("ActiveState")))
        self.assertEqual("enabled", self.shown("UnitFileState", "affinity-measure.socket"))
        self.assertEqual(["disabled"] * 2, [self.shown("UnitFileState", unit) for unit in ("affinity-ttcp.socket", "affinity-exporter.socket")])
        self.inside("systemctl", "start", "affinityd")
        for name, keys in (("held", {}), ("kept", {"on_stop": "keep"})):
            self.put(f"{POLICIES}/{name}.yaml", policy(match={"unit": f"{name}.service"}, cpus="0", bind="set", settle=0, **keys))
        self.put(SETTINGS, "version: 1\nreconcile: 7m\n")
        self.inside("affinityctl", "reload")
        programs = [self.transient(name) for name in ("held", "kept")]
        for pid in programs:
            self.expect(pid, "0")
        before = self.shown("MainPID")
        self.rpm("--upgrade", "--replacepkgs", *files)
        self.assertEqual("active", self.shown("ActiveState"))
        self.assertNotIn(self.shown("MainPID"), ("0", before))
        for pid in programs:
            self.at(pid, "0")
        self.assertEqual("version: 1\nreconcile: 7m\n", self.inside("cat", SETTINGS).out)
        self.rpm("--erase", "affinityd", "affinity-tools", "affinity-exporter", "libaffinity", "libaffinity-devel")
        for pid in programs:
            self.at(pid, self.everywhere)
        self.assertEqual("", self.inside("systemctl", "list-unit-files", "--no-legend", "affinity*", code=None).out)


class Removal(Packed):
    def test_removal_restores_everything_and_purge_leaves_nothing(self):
        before = self.files()
        packages = ("affinityd", "affinity-tools", "affinity-exporter", "libaffinity0", "libaffinity-dev")
        self.install(*packages)
        for name, keys in (("held", {}), ("kept", {"on_stop": "keep"})):
            self.put(f"{POLICIES}/{name}.yaml", policy(match={"unit": f"{name}.service"}, cpus="0", bind="set", settle=0, **keys))
        self.inside("affinityctl", "reload")
        programs = [self.transient(name) for name in ("held", "kept")]
        for pid in programs:
            self.expect(pid, "0")
        units = ("affinity-exporter.socket", "affinity-exporter.service", "affinity-textfile.timer", "affinity-ttcp.socket")
        self.inside("systemctl", "start", *units)
        self.inside("systemctl", "kill", "--signal=KILL", "affinityd")
        self.inside("systemctl", "stop", "affinityd")
        self.inside("apt-get", "remove", "--yes", *packages, text="")
        self.assertNotIn("active", [self.shown("ActiveState", unit) for unit in units])
        for pid in programs:
            self.at(pid, self.everywhere)
        self.assertIn("held.yaml", self.inside("ls", POLICIES).out)
        self.inside("apt-get", "purge", "--yes", "affinityd", "affinity-tools", "affinity-exporter", text="")  # the others leave nothing to purge
        self.inside("systemctl", "stop", "held", "kept")
        self.assertEqual([], sorted(before ^ self.files()))
        self.assertEqual("", self.inside("systemctl", "list-unit-files", "--no-legend", "affinity*", code=None).out)


class Rollout(Packed):
    """The Ansible role, whose ssh enters the container."""

    def play(self, *options, packages=(), **variables):
        """`packages`: to be installed, which takes most of the time also where they are."""
        ssh = self.bin / "ssh"
        if not ssh.exists():
            ssh.write_text(f'#!/bin/sh\nfor command; do :; done\nexec nsenter -t {self.first} -a sh -c "$command"\n', encoding="ascii")
            ssh.chmod(0o755)
            (self.bin / "play.yml").write_text("- {name: Roll out, hosts: all, gather_facts: false, roles: [affinityd]}\n", encoding="ascii")
        files = [f"/opt/packages/{package.name}" for name in packages for package in self.packages.glob(f"{name}_*.deb")]
        told = json.dumps({"affinityd_packages": files, "ansible_ssh_executable": str(ssh), "ansible_ssh_transfer_method": "piped",
                           "ansible_python_interpreter": "/usr/bin/python3"} | variables)
        return run("ansible-playbook", "--inventory", "container,", "--extra-vars", told, *options, self.bin / "play.yml", timeout=300,
                   env=os.environ | {"ANSIBLE_ROLES_PATH": str(SOURCES / "contrib/ansible"), "ANSIBLE_PIPELINING": "1", "ANSIBLE_LOCAL_TEMP": str(self.bin / "local"), "LC_ALL": "C.UTF-8"})

    def test_a_second_run_changes_nothing_and_a_bad_policy_stops_before_anything_is_copied(self):
        lint = run("ansible-lint", "--offline", "--profile", "production", ".", cwd=SOURCES / "contrib/ansible/affinityd", env=os.environ | {"LC_ALL": "C.UTF-8"})
        self.assertEqual(0, lint.code, lint.text)
        sleeper = self.transient("sleeper")
        held = {"name": "held", "content": policy_text(cpus="0")}
        fresh = self.play("--check", affinityd_policies=[held], affinityd_settings="version: 1\nreconcile: 7m\n")
        self.assertEqual(0, fresh.code, fresh.text)
        self.assertIn("not installed on this host yet", fresh.out)
        both = ("affinityd", "affinity-tools")
        first = self.play(packages=both, affinityd_policies=[held], affinityd_settings="version: 1\nreconcile: 7m\n")
        self.assertEqual(0, first.code, first.text)
        self.expect(sleeper, "0")
        again = self.play(packages=both, affinityd_policies=[held], affinityd_settings="version: 1\nreconcile: 7m\n")
        self.assertIn("changed=0 ", again.out, again.text)
        bad = self.play(affinityd_policies=[{"name": "good", "content": policy_text(cpus="1")}, {"name": "bad", "content": "version: 1\nmatch: [\n"}])
        self.assertNotEqual(0, bad.code)
        self.assertIn("this is not YAML", bad.text)
        self.assertEqual("held.yaml\n", self.inside("ls", POLICIES).out)
        settings = self.play(affinityd_settings="version: 1\nreconcile: soon\n")
        self.assertNotEqual(0, settings.code)
        self.assertIn("reconcile", settings.text)
        self.assertEqual("version: 1\nreconcile: 7m\n", self.inside("cat", SETTINGS).out)
        shown = self.play("--check", affinityd_policies=[held | {"content": policy_text(cpus="1")}])
        self.assertEqual(0, shown.code, shown.text)
        self.assertIn("sleep", shown.out)
        self.at(sleeper, "0")
        gone = self.play(affinityd_policies=[{"name": "held", "state": "absent"}])
        self.assertIn("changed=2 ", gone.out, gone.text)  # the file, and the reload
        self.expect(sleeper, self.everywhere)
