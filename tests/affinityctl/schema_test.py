# SPDX-License-Identifier: Apache-2.0
"""VERB --json-schema describes the output of VERB --json, here on recorded machines; tests/blackbox has the verbs that ask a daemon."""
import functools
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "support"))
from schema import faults  # noqa: E402

AFFINITYCTL = os.environ["AFFINITYCTL"]
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Schema(unittest.TestCase):
    def ask(self, *words, code=0):
        done = subprocess.run([AFFINITYCTL, *map(str, words)], capture_output=True, text=True, timeout=60, check=False)
        self.assertIn(done.returncode, code if isinstance(code, tuple) else (code,), done.stdout + done.stderr)
        return json.loads(done.stdout)

    @functools.cache
    def schema(self, verb):
        return self.ask(*verb.split(), "--json-schema")

    def check(self, verb, *words, code=0):
        self.assertEqual([], list(faults(self.ask("--json", *words, code=code), self.schema(verb)))[:10], words)

    def test_recorded_machines(self):
        for name in ("small", "foong"):
            with tempfile.TemporaryDirectory(prefix="affinityd-schema-", dir=SCRATCH) as folder:
                with tarfile.open(TESTS / "machines" / name / "recording.tar.gz") as tar:
                    tar.extractall(folder, filter="tar") if hasattr(tarfile, "tar_filter") else tar.extractall(folder)
                machine, policies = ("--root", folder), TESTS / "machines" / name / "policies"
                nics = os.listdir(pathlib.Path(folder, "sys/class/net"))
                pids = [entry for entry in os.listdir(pathlib.Path(folder, "proc")) if entry.isdigit()]
                for verb, words in (("topology", ()), ("nics", ()), ("irqs", ()), ("cpus", ("all",)), ("check", (policies,)), ("plan", (policies,)),
                                    ("plan", ("--cpus", policies)), ("policies", ("--policies", policies)), ("doctor", (policies,)), ("suggest", ())):
                    with self.subTest(name, verb=verb, words=words):
                        self.check(verb, *machine, verb, *words, code=(0, 3))
                for subject in [*nics, *pids, *(path.stem for path in policies.glob("*.yaml"))]:
                    with self.subTest(name, subject=subject):
                        self.check("explain", *machine, "explain", "--policies", policies, subject)
                for path in policies.glob("*.yaml"):
                    self.check("policies show", *machine, "policies", "--policies", policies, "show", path.stem)

    def test_failures_are_json_too(self):
        for words, code in ((("cpus", "llc:4000"), 1), (("cpus", "nonsense"), 2)):
            self.check("cpus", *words, code=code)
        for words, code in ((("status",), 4), (("plan", "--root", "/nonexistent"), 1), (("explain", "--root", "/", "--latency", "x", "1"), 2),
                            (("no-such-verb",), 2), (("sharers", "x"), 2), (("measure", "cache", "--cpus", "nonsense"), 2),
                            (("measure", "smt", "--cpus", "99999"), 1), (("measure", "latency", "--from", "/nonexistent"), 1)):
            with self.subTest(words):
                answer = self.ask("--json", "--runtime-dir", "/nonexistent", *words, code=code)
                self.assertEqual((False, str), (answer["ok"], type(answer["message"])))

    def test_each_field_has_a_line_of_help(self):
        def lines(schema, place):
            for key, value in schema.get("properties", {}).items():
                yield f"{place}.{key}", value["description"]
                yield from lines(value.get("items", value), f"{place}.{key}")

        for verb in ("status", "watch", "plan", "explain", "check", "suggest", "policies", "policies show", "topology", "cpus", "nics", "irqs", "reload", "apply",
                     "release", "try", "keep", "history", "locality", "sharers", "intruders", "metrics", "measure", "measure models", "measure latency", "measure sharing", "measure smt",
                     "measure cache"):
            schema = self.schema(verb)
            found = list(lines(schema.get("items", schema), verb))
            self.assertTrue(found)
            self.assertEqual([], [place for place, text in found if not text])


if __name__ == "__main__":
    unittest.main()
