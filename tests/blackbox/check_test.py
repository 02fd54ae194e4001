# SPDX-License-Identifier: Apache-2.0
"""affinityctl check on a recorded machine: what of a file fits nothing there."""
from house import House, affinityctl
from recorded import Planned, Recorded
from server_worlds import Host


class Notes(Planned):
    """check tells of names that nothing has."""

    def setUp(self):
        super().setUp()
        self.host = Host(self.bin / "root")
        self.host.fast_nic(2)
        of = {"unit": "postgresql@15-main.service", "exe": "/usr/lib/postgresql/15/bin/postgres"}
        self.host.process(900, "postgres", **of)
        for pid, title in ((901, "checkpointer"), (902, "walwriter")):
            self.host.process(pid, "postgres", ppid=900, cmdline=[f"postgres: 15/main: {title} "], **of)
        self.host.process(950, "redis-server", unit="redis-server.service", threads={951: "bio_aof"})

    def notes(self, text):
        """[(line, message, hint)]"""
        file = self.bin / "p.yaml"
        file.write_text(text, encoding="utf-8")
        found = affinityctl("--root", self.host.root, "--json", "check", file).json["diagnostics"]
        return [(one["line"], one["message"], one["hint"]) for one in found if one["severity"] == "note"]

    def test_a_title_is_no_thread(self):
        rule = 'version: 1\nmatch: {unit: "postgresql@*.service"}\nspread: llc\nthreads:\n  - {name: "%s", cpus: "0"}\n'
        for title in ("postgres: walwriter*", "postgres:*walwriter*", "postgres: walwriter"):
            found = [one for one in self.notes(rule % title) if "no thread of its processes is named" in one[1]]
            self.assertEqual([5], [line for line, _, _ in found], title)
            self.assertIn("title of pid 902", found[0][2])
            self.assertIn('match: {cmdline: "postgres:*walwriter*"}', found[0][2])
        affinityctl("--root", self.host.root, "check", self.bin / "p.yaml")
        self.assertEqual([], [one for one in self.notes(rule % "postgres") if "no thread" in one[1]])

    def test_a_thread_that_is_not_there(self):
        rule = 'version: 1\nmatch: {unit: redis-server.service}\nbind: set\nthreads:\n  - {name: %s, cpus: "0"}\n'
        found = [one for one in self.notes(rule % '"io_thd_*"') if "no thread" in one[1]]
        self.assertEqual([(5, "no thread of its processes is named 'io_thd_*' now", "they are named bio_aof, redis-server")], found)
        self.assertEqual([], [one for one in self.notes(rule % '["bio_*", jemalloc_bg_thd]') if "no thread" in one[1]])

    def test_interrupts_that_are_not_there(self):
        found = [one for one in self.notes('version: 1\naffinity: irq\nirqs: ["41", eth0-TxRx-7, ttyS0, "eth0-TxRx-*"]\n') if "'irqs'" in one[1]]
        self.assertEqual([("'irqs': no interrupt here has the handler '41'", "numbers change from boot to boot: interrupt 41 has the handler 'eth0-TxRx-1'"),
                          ("'irqs': no interrupt here has the handler 'eth0-TxRx-7'", "did you mean 'eth0-TxRx-0'?"),
                          ("'irqs': no interrupt here has the handler 'ttyS0'", "affinityctl irqs lists the handlers")], [one[1:] for one in found])


class Files(House):
    """On a machine of two CPUs without processes."""

    GOOD = 'version: 1\nmatch: {comm: redis-server, user: redis}\naffinity: process\ncpus: "1"\nbind: set\n'
    UNSAFE = "\x1b[2J\u202e\u009b"

    def setUp(self):
        super().setUp()
        self.root = Recorded(self.bin / "root", cpus=2).root

    def check(self, *words, **options):
        return affinityctl("--root", self.root, "check", *words, **options)

    def file(self, name, text):
        path = self.bin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return path

    def test_each_finding(self):
        some = "version: 1\nmatch: {comm: redis-server}\n"
        for keys, code, said in (
                ('cpus: "1"', 0, ":2:1: note: any user can start a process that meets these conditions (add 'user', or a 'unit' that root starts)"),
                ("affinity: full", 0, ":2:1: warning: any user can start"), ("cpus: 1-2", 3, ":3:7: error: CPU 2 does not exist on this machine (it has 0-1)"),
                ('cpus: "1"\nexclusive: true', 0, "note: 'exclusive' is no fence"), ("cpus: all\nbind: set", 0, "note: it restricts nothing on this machine"),
                ('cpu: "1"', 3, ":3:1: error: unknown key 'cpu' (did you mean 'cpus'?)\n    cpu: \"1\"\n    ^^^\n")):
            with self.subTest(keys):
                self.assertIn(said, self.check(self.file("redis.yaml", f"{some}{keys}\n"), code=code).out)
        self.assertEqual("0 errors, 0 warnings, 0 notes; 1 policy without errors\n", self.check(self.file("redis.yaml", self.GOOD)).out)
        warned = self.file("redis.yaml", "match: {comm: redis-server, user: redis}\n")
        self.check(warned)
        self.check("--strict", warned, code=3)
        found = self.check("--json", self.file("redis.yaml", some + "bind: wide\n"), code=3).json
        self.assertEqual((False, 1), (found["ok"], found["errors"]))
        self.assertEqual((3, 7), next((one["line"], one["column"]) for one in found["diagnostics"] if one["severity"] == "error"))

    def test_folders_override_and_files_that_are_named_do_not(self):
        vendor = self.file("vendor/redis.yaml", self.GOOD)
        mask = self.file("etc/redis.yaml", "")
        self.assertIn(f"{mask}: masks ", self.check(vendor.parent, mask.parent).out)
        one, other = (self.file(f"{folder}/redis.yaml", self.GOOD) for folder in "ab")
        self.assertIn(f"{other}:1:1: error: a policy of this name is in {one} too", self.check(one, other, code=3).out)

    def test_nothing_that_a_terminal_acts_upon_is_printed(self):
        folder = self.file(f"vendor/redis{self.UNSAFE}\udcff/redis.yaml", self.GOOD).parent
        self.file(f"etc/{self.UNSAFE}\udcff.yaml", self.GOOD)
        self.file("etc/redis.yaml", "")
        line = self.file("line.yaml", f"version: 1\nmatch: {{comm: a{self.UNSAFE}\udcff}}\n")
        for words in ((folder, self.bin / "etc"), (line,)):
            said = self.check(*words, code=None, errors="surrogateescape").text
            self.assertIn("\\x1b[2J\\u202e\\u009b\\xff", said)
            self.assertEqual(set(), {*self.UNSAFE[:1], *self.UNSAFE[-2:], "\udcff"} & set(said))
