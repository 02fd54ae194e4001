# SPDX-License-Identifier: Apache-2.0
"""`affinityctl -H HOST`, over a real sshd on the loopback interface with keys of the test."""
import os
import pathlib
import shutil
import socket

from house import PROGRAMS, House, measured, policy, report, run, wait_for
from metrics_test import BUS

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
# Stands for ssh to a host that never answers, and never stops talking.
DRIP = 'case "$*" in *drip*) while printf .; do sleep 0.2; done;; esac'


class Hosts(House):
    """`one` and `two` are this machine with the daemon of the test, nothing listens on `gone`, `dead` never says a word, and
    `drip` says one now and then, for ever."""

    LONG = True

    def setUp(self):
        super().setUp()
        self.web = self.program("web")
        (self.bin / "bus.conf").write_text(BUS.format(socket=self.bin / "bus"), encoding="utf-8")
        self.spawn("dbus-daemon", f"--config-file={self.bin}/bus.conf", "--nofork", "--nopidfile")
        wait_for((self.bin / "bus").exists, "the bus listens")
        self.tested = self.daemon(namespace=("env", f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={self.bin}/bus"), web=policy("web", cpus="0", bind="set", settle=0))
        wait_for(lambda: "on the system bus as org.affinityd" in self.tested.text(), "the daemon is on the bus")
        self.expect(self.web, "0")
        there, here = self.bin / "there", self.bin / "here"
        for folder, name, text in ((there, "systemd-stdio-bridge", f'exec /usr/bin/systemd-stdio-bridge -p unix:path={self.bin}/bus'),
                                   (there, "affinityctl", f'exec {PROGRAMS["affinityctl"]} --runtime-dir {self.tested.folder / "run"} "$@"'),
                                   (here, "ssh", f'{DRIP}\nexec /usr/bin/ssh -F {self.bin / "ssh_config"} "$@"')):
            folder.mkdir(exist_ok=True)
            (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            (folder / name).chmod(0o755)
        for key in ("host_key", "key"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.bin / key, code=0)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        dead = self.stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        (self.bin / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self.bin}/host_key\nAuthorizedKeysFile {self.bin}/key.pub\nPidFile none\nStrictModes no\n"
            f"UsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv PATH={there}:/usr/bin:/bin\n", encoding="utf-8")
        (self.bin / "ssh_config").write_text(
            "BatchMode yes\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\nIdentitiesOnly yes\n"
            f"IdentityFile {self.bin}/key\nHostName 127.0.0.1\nMatch originalhost gone\nPort 1\nMatch originalhost dead\nPort {dead.getsockname()[1]}\nMatch all\nPort {port}\n", encoding="utf-8")
        if not pathlib.Path("/run/sshd").exists():
            pathlib.Path("/run/sshd").mkdir(mode=0o755)
            self.stack.callback(os.rmdir, "/run/sshd")
        self.spawn(SSHD, "-D", "-e", "-f", self.bin / "sshd_config")

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_for(answers, "sshd listens")

    def ctl(self, *words, code=0, **options):
        return run(PROGRAMS["affinityctl"], *words, code=code, env=os.environ | {"PATH": f"{self.bin}/here:{os.environ['PATH']}"}, **options)

    def test_each_verb_answers_as_there(self):
        pid = self.tested.status()["pid"]
        self.assertEqual(pid, self.ctl("-H", "root@one", "status", "--json").json["pid"])
        self.assertEqual(pid, self.ctl("status", "--json", "--host=one").json["pid"])
        self.assertIn("policy web: matches", self.ctl("-Hone", "explain", self.web.pid).out)
        self.assertEqual([], self.ctl("-H", "one", "plan", "--json").json["actions"])
        self.assertIn("affinityd_up 1\n", self.ctl("-H", "one", "metrics").out)
        self.assertEqual([], self.ctl("-H", "one", "history", "--json").json["records"])
        self.tested.write("bad", "version: 1\ncpuz: 1\n")
        wait_for(lambda: self.tested.status()["problems"], "a problem")
        self.ctl("-H", "one", "status", "-q", code=3)
        self.ctl("-H", "gone", "status", code=1)
        self.assertIn("web", self.ctl("-H", "one", "status", "web").out)

    def test_other_users_are_told_that_names_are_not_shown_to_them(self):
        self.bin.chmod(0o755)
        words = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env", f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={self.bin}/bus", PROGRAMS["affinityctl"],
                 "--runtime-dir", self.tested.folder / "run", "explain")
        # Neither wants it: nothing below any holds, and what is below not does.
        for name, match in (("either", {"any": [{"comm": "x"}, {"comm": "y"}]}), ("neither", {"not": {"user": "root"}})):
            self.tested.write(name, policy(match={"comm": self.name("web")} | match, priority=5))
        wait_for(lambda: len(self.tested.status()["policies"]) == 3, "they are in force")
        for pid, count in ((self.web.pid, 4), (os.getpid(), 5)):
            with self.subTest(pid):
                said = run(*words, pid, code=0).out
                self.assertEqual(count, said.count("not shown to other users"), said)
                self.assertNotRegex(said, '""|[(]-|: -')

    def test_no_word_is_a_command(self):
        trace = self.bin / "trace"
        for word in (f"$(touch {trace})", f"'; touch {trace}; '", f"`touch {trace}`"):
            self.ctl("-H", "one", "explain", word, code=1)
        for host in (f"-oProxyCommand=touch {trace}", f"u@-oProxyCommand=touch${{IFS}}{trace}", f"$(touch {trace})", f"a;touch {trace}"):
            self.assertIn("no name of a host", self.ctl(f"--host={host}", "status", code=2).err)
        self.assertIn("no name of a host", self.ctl("-H", "", "status", code=2).err)
        self.assertFalse(trace.exists())

    def test_a_verb_that_needs_files_or_changes_something_names_the_command_that_does_it(self):
        page = self.bin / "page.html"
        for words in (("report", page), ("check", "-"), ("doctor",), ("reload",), ("apply",), ("release",), ("measure",), ("edit", "web"), ("status", "web.service"),
                      ("plan", "-"), ("plan", "--cpus")):
            with self.subTest(words):
                self.assertIn(f"ssh one affinityctl {words[0]}", self.ctl("-H", "one", *words, code=2).err)
        self.assertFalse(page.exists(), "no page that another machine wrote")
        self.ctl("-H", "one", "-H", "two", "plan", code=2)
        self.assertIn("neither a PID", self.ctl("-H", "one", "explain", self.name("web"), code=1).err, "no name of a process here")

    def test_a_host_that_drips_holds_up_no_other(self):
        took = measured(lambda: self.ctl("-H", "drip", "-H", "one", "-H", "dead", "status", code=1).out.count("no answer by ssh") == 2, "both are given up")
        report(f"status of a host beside one that drips and one that is silent: {took:.1f} s")
        self.assertLess(took, 25)

    def test_several_hosts_side_by_side(self):
        answer = self.ctl("-H", "one", "-H", "gone", "-H", "two", "status", code=1)
        rows = {line.split()[0]: line.split() for line in answer.out.splitlines() if line.split()}
        status = self.tested.status()
        for host in ("one", "two"):
            self.assertEqual([host, "ok", status["version"], "1", "1", "1/1", "0/0", "0", "0"], rows[host])
        self.assertIn("gone: no answer", answer.out)
        self.assertIn("dead: no answer", self.ctl("-H", "dead", "-H", "one", "status", code=1).out)
        found = self.ctl("-H", "one", "-H", "gone", "status", "--json", code=1).json
        self.assertEqual((status["pid"], False), (found["one"]["pid"], found["gone"]["ok"]))
        self.tested.write("bad", "version: 1\ncpuz: 1\n")
        wait_for(lambda: self.tested.status()["problems"], "a problem")
        said = self.ctl("-H", "one", "-H", "two", "status", code=3).out
        for host in ("one", "two"):
            self.assertRegex(said, f"{host}: policy bad, .*'match' is missing")
