# SPDX-License-Identifier: Apache-2.0
"""Whatever a manual, the README or an example tells the reader to run as `affinityctl ...` exists in this program."""
import os
import pathlib
import re
import subprocess
import unittest

AFFINITYCTL = os.environ["AFFINITYCTL"]
SOURCE = pathlib.Path(os.environ["AFFINITYD_SOURCE"])
WORD = r"[a-z][a-z0-9-]*"


def subcommands(*verbs):
    """The verbs that --help lists; none for a word that is not a verb."""
    done = subprocess.run([AFFINITYCTL, *verbs, "--help"], capture_output=True, text=True, check=False)
    _, found, below = done.stdout.partition("\nSubcommands:\n")
    return set(re.findall(rf"^  ({WORD}) ", below, re.MULTILINE)) if found and done.returncode == 0 else set()


def documents():
    yield SOURCE / "README.md"
    for folder in ("docs", "policies", "systemd"):
        for path in sorted((SOURCE / folder).iterdir()):
            if path.is_file() and path.suffix not in (".cpp", ".py") and path.name != "meson.build":
                yield path


def plain(path):
    """The text without roff markup."""
    text = path.read_text(encoding="utf-8").replace("\\-", "-")
    text = re.sub(r'^\.(?:SS|SH|BR|RB|B|I|IR|BI)\b', "", text, flags=re.MULTILINE)
    return re.sub(r'\\f[A-Z]|"', "", text)


def commands(text):
    """The words after `affinityctl` on its line that may be a verb with a subcommand: (verb, next word or "")."""
    for found in re.finditer(rf"\baffinityctl ({WORD})(?: ({WORD}))?(?=[^\w/-]|$)", text, re.MULTILINE):
        yield found.group(1), found.group(2) or ""


class Documented(unittest.TestCase):
    def test_commands_are_found_in_each_kind_of_text(self):
        self.assertEqual([("measure", "models")], list(commands("`affinityctl measure models` puts")))
        self.assertEqual([("status", "")], list(commands("see affinityctl status.")))

    def test_what_is_documented_exists(self):
        verbs = subcommands()
        self.assertIn("measure", verbs)
        nested = {verb: subcommands(verb) for verb in verbs}
        self.assertLessEqual({"ttcp", "models", "latency"}, nested["measure"])
        checked = 0
        for path in documents():
            for verb, word in commands(plain(path)):
                if path.name.startswith("affinityctl") and verb not in verbs:
                    continue  # its own prose: "affinityctl speaks to"
                checked += 1
                self.assertIn(verb, verbs, f"{path.name}: affinityctl {verb}")
                if word and nested[verb]:
                    self.assertIn(word, nested[verb], f"{path.name}: affinityctl {verb} {word}")
        self.assertGreater(checked, 20)

    def test_the_recorder_that_is_documented_is_installed(self):
        installed = re.findall(r"rename: '(affinityd-[a-z-]+)'", (SOURCE / "tools/meson.build").read_text(encoding="utf-8"))
        named = {name for path in documents() for name in re.findall(r"\baffinityd-gather-[a-z]+\b", plain(path))}
        self.assertEqual({"affinityd-gather-host"}, named)
        self.assertLessEqual(named, set(installed))


if __name__ == "__main__":
    unittest.main()
