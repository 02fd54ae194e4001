# SPDX-License-Identifier: Apache-2.0
"""Where affinityctl writes to: pictures into whatever the user names, full and closed outputs, and what it goes on after under nohup."""
import os
import pathlib
import pty
import signal
import subprocess
import tempfile
import time
import unittest

AFFINITYCTL = os.environ["AFFINITYCTL"]
CPUS = sorted(os.sched_getaffinity(0))
PAIR = ["--cpus", f"{CPUS[0]},{CPUS[-1]}"]
TABLE = ",,,\n20,,,\n90,91,,\n92,90,21,\n"
LATENCY = ["measure", "latency", "--from"]


class Outputs(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="affinityd-outputs-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.table = self.folder / "table.csv"
        self.table.write_text(TABLE, encoding="ascii")

    def run_verb(self, *arguments, code=0, way=(), **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        done = subprocess.run([*way, AFFINITYCTL, "--runtime-dir", self.folder, *map(str, arguments)], text=True, timeout=60, check=False, **options)
        self.assertEqual(code, done.returncode, f"{done.stdout}{done.stderr}")
        return done

    def in_shell(self, script, *arguments):
        """The shell's `"$@"` is affinityctl with these arguments."""
        return self.run_verb(*arguments, code=0, way=["bash", "-c", script, "-"])

    def draw(self, path, code=0, **options):
        return self.run_verb(*LATENCY, self.table, "--svg", path, code=code, **options)

    def assert_drawn(self, path):
        self.assertTrue(path.read_text(encoding="utf-8").startswith("<svg "), path)


class Pictures(Outputs):
    def test_standard_output_by_another_name(self):
        link = self.folder / "stdout"  # as /dev/stdout, which is not at the mercy of this test
        link.symlink_to("/proc/self/fd/1")
        with open(self.folder / "both", "w", encoding="utf-8") as output:
            self.draw(link, stdout=output)
        text = (self.folder / "both").read_text(encoding="utf-8")
        self.assertRegex(text, "(?s)^[A-Z].*within groups of level 1.*<svg .*</svg>\\s*$")
        with open(self.folder / "both", "w", encoding="utf-8") as output:
            done = self.run_verb("--json", *LATENCY, self.table, "--svg", link, code=2, stdout=output)
        self.assertIn("both write to standard output", done.stderr)

    def test_what_cannot_be_written_is_told_before_measuring(self):
        for verb in (["measure", "latency", *PAIR], ["measure", "smt"], ["measure", "cache"], ["measure", "sharing"], ["measure", "models"],
                     ["locality"], ["sharers", os.getpid()], ["history"]):
            picture = self.folder / "no/such/a.svg"
            done = self.run_verb(*verb, "--svg", picture, code=1)
            self.assertEqual(("", f"affinityctl: {picture}: cannot write: No such file or directory\n"), (done.stdout, done.stderr), verb)
        self.assertIn("not a regular file", self.draw(self.folder, code=1).stderr)

    def test_history_draws_alone_on_standard_output(self):
        self.run_verb("measure", "latency", *PAIR, "--samples", "4", "--round-trips", "50", "--state-dir", self.folder)
        history = ["history", "--state-dir", self.folder, "--svg"]
        shown = self.run_verb(*history, "-").stdout
        self.assertTrue(shown.startswith("<svg "), shown)
        self.assertTrue(shown.endswith("</svg>\n"), shown)
        self.assertIn("none is among these measurements", shown)
        self.assertIn("both write to standard output", self.run_verb("--json", *history, "-", code=2).stderr)
        self.assertIn(" latency ", self.run_verb(*history, self.folder / "a.svg").stdout)
        self.assert_drawn(self.folder / "a.svg")

    def test_a_damaged_history_is_told_of(self):
        (pathlib.Path(self.folder) / "history.db").write_bytes(b"not a database, " * 1000)
        done = self.run_verb("measure", "latency", *PAIR, "--samples", "4", "--round-trips", "50", "--state-dir", self.folder)
        self.assertIn("could not be used", done.stderr)
        self.assertIn("history.db.corrupt-", done.stderr)


class Refused(Outputs):
    """Output that is not taken."""

    def verbs(self):
        yield ["cpus", "all"]  # short: it is written at the end
        yield ["topology"]
        yield ["topology", "--json"]
        yield ["--help"]
        yield [*LATENCY, self.table, "--svg", "-"]  # longer than a buffer

    def test_a_full_disk_is_a_failure(self):
        for verb in self.verbs():
            with open("/dev/full", "w", encoding="ascii") as full:
                self.assertEqual("affinityctl: cannot write: No space left on device\n", self.run_verb(*verb, code=1, stdout=full).stderr, verb)
        with open("/dev/full", "w", encoding="ascii") as full:
            self.run_verb(*LATENCY, "/nowhere", code=1, stderr=full)

    def test_a_closed_output_is_one_too(self):
        for verb in self.verbs():
            done = self.in_shell('"$@" >&-; [ $? = 1 ]', *verb)
            self.assertEqual("affinityctl: cannot write: Bad file descriptor\n", done.stderr, verb)

    def test_no_file_takes_the_place_of_a_closed_output(self):
        picture = self.folder / "a.svg"
        self.in_shell(f'"$@" --svg {picture} >&-; [ $? = 1 ]', *LATENCY, self.table)
        self.assertTrue(picture.read_text(encoding="utf-8").endswith("</svg>\n"))

    def test_a_reader_that_has_gone_is_none(self):
        for verb in self.verbs():
            for way in ('"$@" | true', "trap '' PIPE; \"$@\" | true"):
                self.assertEqual("", self.in_shell(way, *verb).stderr, verb)


class Ignored(Outputs):
    """Signals that it was started to ignore, as nohup(1) has it."""

    def started(self, *arguments, stderr=subprocess.PIPE, **options):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        child = subprocess.Popen([AFFINITYCTL, *map(str, arguments)], stdout=subprocess.PIPE, stderr=stderr, text=True, **options)
        signal.signal(signal.SIGHUP, before)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        return child

    def hang_up(self, child):
        """Until it ends, since the first may come before it has begun."""
        while child.poll() is None:
            child.send_signal(signal.SIGHUP)
            time.sleep(0.02)
        return child.communicate()

    def test_an_experiment_goes_on(self):
        child = self.started("measure", "latency", *PAIR, "--samples", "20", "--round-trips", "2000", "--state-dir", self.folder)
        shown, said = self.hang_up(child)
        self.assertEqual(0, child.returncode, said)
        self.assertIn("Latency between 2 CPUs", shown)

    def test_a_terminal_that_goes_ends_no_experiment(self):
        terminal, theirs = pty.openpty()
        child = self.started("measure", "sharing", *PAIR, "--rounds", "10", "--additions", "500000", "--state-dir", self.folder, stderr=theirs,
                             env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        shown = b""
        while b"\033[K" not in shown:  # the progress bar, which comes after a fifth of a second
            shown += os.read(terminal, 4096)
        os.close(terminal)
        self.assertIn("false sharing", child.communicate(timeout=60)[0])
        self.assertEqual(0, child.returncode)

    @unittest.skipUnless(os.geteuid() == 0, "locality needs root")
    def test_a_watch_goes_on(self):
        since = time.monotonic()
        child = self.started("locality", "--for", "1s")
        self.hang_up(child)
        self.assertEqual(0, child.returncode)
        self.assertGreater(time.monotonic() - since, 1)


class Words(Outputs):
    def test_sharers_takes_decimal_numbers(self):
        for word in ("abc", "1.5", "0x1", "0", "1e3", "99999999999", "12abc", ""):
            done = self.run_verb("sharers", word, code=2)
            self.assertEqual(f"affinityctl: {word}: expected a process or thread id\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
