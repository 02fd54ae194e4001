# SPDX-License-Identifier: Apache-2.0
"""affinityctl check on a recorded machine: what of a file fits nothing there."""
from house import affinityctl
from recorded import Planned
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
