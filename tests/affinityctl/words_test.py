# SPDX-License-Identifier: Apache-2.0
"""How affinityctl takes names and words that are not quite right, and where it writes colour."""
import fcntl
import os
import pathlib
import pty
import re
import sqlite3
import struct
import subprocess
import tempfile
import termios
import unittest

AFFINITYCTL = os.environ["AFFINITYCTL"]
SOURCE = pathlib.Path(os.environ["AFFINITYD_SOURCE"])
CPU = "sys/devices/system/cpu/"


class Words(unittest.TestCase):
    """On a recorded machine of two CPUs without caches, with two interfaces."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="affinityd-words-")
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        for name in ("online", "present", "possible"):
            self.put(CPU + name, "0-1")
        for cpu in (0, 1):
            (self.root / f"{CPU}cpu{cpu}/topology").mkdir(parents=True)
        self.put("proc/interrupts", "           CPU0 CPU1")
        for number, name in enumerate(("east0", "east1", "west0")):
            place = f"devices/pci0000:00/0000:00:0{number}.0"
            self.put(f"sys/{place}/numa_node", 0)
            self.put(f"sys/{place}/net/{name}/ifindex", number + 2)
            self.put(f"sys/{place}/net/{name}/queues/rx-0/rps_cpus", "0")
            links = self.root / "sys/class/net"
            links.mkdir(parents=True, exist_ok=True)
            (links / name).symlink_to(f"../../{place}/net/{name}")
            (self.root / f"sys/{place}/net/{name}/device").symlink_to("../..")

    def put(self, path, value):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n", encoding="utf-8")

    def run_verb(self, *arguments, recorded=True, code=0):
        root = ["--root", str(self.root)] if recorded else []
        done = subprocess.run([AFFINITYCTL, "--runtime-dir", str(self.root), *root, *arguments], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_a_mistyped_verb_is_guessed(self):
        self.assertIn("there is no verb 'stauts' (did you mean 'status'?)", self.run_verb("stauts", code=2))
        self.assertIn("did you mean 'explain'?", self.run_verb("explian", "1", code=2))
        self.assertIn("affinityctl --help", self.run_verb("zzzzzz", code=2))

    def test_a_wrong_option_names_the_whole_verb(self):
        self.assertIn("(see affinityctl measure cache --help)", self.run_verb("measure", "cache", "--bogus", recorded=False, code=2))
        self.assertIn("(see affinityctl policies show --help)", self.run_verb("policies", "show", code=2))

    def test_help_fits_a_terminal(self):
        def check(*verbs):
            lines = self.run_verb(*verbs, "--help", recorded=False).splitlines()
            self.assertLessEqual(len(lines), 24 if verbs else 30, verbs)  # of 28 verbs
            self.assertLessEqual(max(map(len, lines)), 80, verbs)
            below = lines[lines.index("Subcommands:") + 1:] if "Subcommands:" in lines else []
            for verb in [line.split()[0] for line in below if re.match("  [a-z]", line)]:
                if verb != "ttcp":  # another program answers
                    check(*verbs, verb)

        check()

    def test_no_number_is_no_time(self):
        for verb in (["measure", "models", "--seconds"], ["measure", "cache", "--quanta"], ["watch", "--interval"], ["nics", "--interval"],
                     ["irqs", "--interval"]):
            for number in ("nan", "-nan", "NAN(1)", "inf"):
                said = self.run_verb(*verb[:-1], f"{verb[-1]}={number}", recorded=False, code=2)
                self.assertIn(verb[-1], said)

    def test_what_says_nothing_is_refused(self):
        for option in ("--sizes", "--length"):
            self.assertIn(option, self.run_verb("measure", "models", "--direction", "answer", option, "128", recorded=False, code=2))
        for option in ("--priority", "--no-history"):
            self.assertIn("excludes", self.run_verb("measure", "latency", "--from", "-", option, recorded=False, code=2))
        history = ["history", "--state-dir", str(self.root), "--svg", "-"]
        self.assertIn("--kind ttcp", self.run_verb(*history, "--kind", "latency", recorded=False, code=2))

    def test_an_empty_name_is_not_all(self):
        for verb in ("locality", "status"):
            self.assertIn("SUBJECT: expected a value, and this is empty", self.run_verb(verb, "", recorded=False, code=2))

    def test_cpus_of_an_interface(self):
        self.assertIn("write nic:east0", self.run_verb("cpus", "east0", code=2))
        self.assertIn("write nic:west0", self.run_verb("cpus", "all - west0", code=2))
        self.assertNotIn("write nic:", self.run_verb("cpus", "east", code=2))

    def test_nics_take_a_glob(self):
        text = self.run_verb("nics", "e*")
        self.assertEqual([True, True, False], [name in text for name in ("east0", "east1", "west0")])
        self.assertIn("there is no interface x*", self.run_verb("nics", "x*", code=1))

    def test_the_expressions_of_the_readme_hold_anywhere(self):
        found = re.findall(r"`affinityctl cpus '([^']+)'`", (SOURCE / "README.md").read_text(encoding="utf-8"))
        self.assertTrue(found)
        for expression in found:
            self.assertRegex(self.run_verb("cpus", expression), r"^[0-9,-]+\n$")

    def on_a_terminal(self, *words, terminal="xterm", columns=80):
        outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("4H", 100, columns, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": terminal}
        process = subprocess.Popen([AFFINITYCTL, "--root", str(self.root), *words], stdout=inner, env=environment)
        os.close(inner)
        text = b""
        while True:
            try:
                part = os.read(outer, 4096)
            except OSError:
                break
            if not part:
                break
            text += part
        os.close(outer)
        self.assertEqual(0, process.wait(timeout=60))
        return text.decode()

    def colored(self, terminal):
        return "\033[" in self.on_a_terminal("nics", "east0", terminal=terminal)

    def test_no_column_of_a_table_is_lost(self):
        """Without a terminal a table is whole, on a narrow one it is folded."""
        self.put("proc/interrupts", "           CPU0       CPU1\n 24:        15         16   PCI-MSI  0-edge      the-label-of-a-line")
        piped = subprocess.run([AFFINITYCTL, "--root", str(self.root), "irqs"], env=os.environ | {"COLUMNS": "40"}, capture_output=True, text=True,
                               timeout=60, check=True).stdout
        narrow = self.on_a_terminal("irqs", columns=40, terminal="dumb")
        self.assertEqual(2, len(piped.splitlines()), piped)
        self.assertLessEqual(max(map(len, narrow.splitlines())), 40, narrow)
        for word in ("IRQ", "LABEL", "COUNT", "the-label-of-a-line", "cpu0 15"):
            self.assertIn(word, piped)
            self.assertIn(word, narrow)

    def test_a_dumb_terminal_gets_no_colour(self):
        self.assertTrue(self.colored("xterm"))
        self.assertFalse(self.colored("dumb"))

    def test_history_is_read_without_a_daemon(self):
        self.assertIn("there is no measurement history", self.run_verb("history", "--state-dir", str(self.root), recorded=False, code=1))
        self.assertIn("no daemon answers", self.run_verb("history", recorded=False, code=4))
        self.make_history()
        text = self.run_verb("history", "--state-dir", str(self.root), recorded=False)
        self.assertRegex(text, r"ttcp +done +loopback")
        for rows in ("-1", "0", "1001"):
            self.assertIn("--count", self.run_verb("history", "-n", rows, "--state-dir", str(self.root), recorded=False, code=2))

    def make_history(self):
        """As the daemon makes it, by its own schema."""
        code = (SOURCE / "daemon/state/history.cpp").read_text(encoding="utf-8")
        schema = re.search(r'schema = R"\((.*?)\)"', code, re.DOTALL).group(1)
        database = sqlite3.connect(self.root / "history.db")
        database.executescript(f"{schema} PRAGMA application_id={0x61666664}; PRAGMA user_version=1;"
                               "INSERT INTO measurement(time, kind, outcome, reason, path, model, policies, seconds, bytes, bits_per_second,"
                               " cpu_seconds, detail) VALUES(1700000000, 'ttcp', 'done', '', 'loopback', 'none', '', 1, 1000, 8000, 1, '{}');")
        database.close()


if __name__ == "__main__":
    unittest.main()
