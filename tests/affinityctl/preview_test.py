# SPDX-License-Identifier: Apache-2.0
"""affinityctl shows policy files before a daemon reads them: policies beside a faulty file, folders that are not there."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

AFFINITYCTL = os.environ["AFFINITYCTL"]
GOOD = "version: 1\nmatch: {comm: nobody-is-so}\ncpus: \"0\"\n"
FAULTY = "version: 1\nmatch: {comm: nobody-is-so}\ncpu: \"0\"\n"


class Preview(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="affinityd-preview-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def run_verb(self, *arguments):
        return subprocess.run([AFFINITYCTL, "--runtime-dir", str(self.folder), *map(str, arguments)], capture_output=True, text=True,
                              timeout=60, check=False)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def test_a_faulty_file_does_not_hide_the_others(self):
        self.write("p/good.yaml", GOOD)
        bad = self.write("p/bad.yaml", FAULTY)
        done = self.run_verb("policies", "--policies", self.folder / "p")
        self.assertEqual(3, done.returncode, "scripts see that something is wrong")
        self.assertRegex(done.stdout, r"(?m)^good +0 +process ")
        self.assertRegex(done.stdout, r"(?m)^bad +- +FAULTY .*bad\.yaml: 1 error$")
        self.assertIn("bad.yaml:3:1: error", done.stderr)
        document = json.loads(self.run_verb("policies", "--json", "--policies", self.folder / "p").stdout)
        self.assertEqual([{"name": "bad", "file": str(bad), "errors": 1, "loaded": False}], document["faulty"])

    def test_a_good_policy_beside_a_faulty_one_is_shown(self):
        self.write("p/good.yaml", GOOD)
        self.write("p/bad.yaml", FAULTY)
        good = self.run_verb("policies", "--policies", self.folder / "p", "show", "good")
        self.assertEqual(0, good.returncode, good.stderr)
        self.assertIn("nobody-is-so", good.stdout)
        bad = self.run_verb("policies", "--policies", self.folder / "p", "show", "bad")
        self.assertEqual(3, bad.returncode)
        self.assertIn("bad.yaml:3:1: error", bad.stderr)
        missing = self.run_verb("policies", "--policies", self.folder / "p", "show", "god")
        self.assertEqual(1, missing.returncode)
        self.assertIn("did you mean 'good'?", missing.stderr)

    def test_a_folder_that_is_not_there_is_a_fault(self):
        missing = self.folder / "nosuch"
        for verb in (["policies", "--policies", missing], ["topology", "--policies", missing]):
            answer = self.run_verb(*verb)
            self.assertEqual((1, f"affinityctl: there is no folder {missing}\n"), (answer.returncode, answer.stderr), verb)

    def test_no_policies_names_the_examples(self):
        (self.folder / "empty").mkdir()
        self.assertIn("affinityd/examples", self.run_verb("policies", "--policies", self.folder / "empty").stdout)


if __name__ == "__main__":
    unittest.main()
