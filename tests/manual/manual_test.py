# SPDX-License-Identifier: Apache-2.0
"""The manual pages against the programs: they document what --help, the reader of settings and the schema of policies know."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

DOCS = pathlib.Path(os.environ["AFFINITYD_DOCS"])
JSON_MANUAL = pathlib.Path(os.environ["AFFINITYCTL_JSON_MANUAL"])  # which the build writes
PROGRAMS = {name: os.environ[variable] for name, variable in
            (("affinityd", "AFFINITYD"), ("affinityctl", "AFFINITYCTL"), ("affinity-ttcp", "AFFINITY_TTCP"))}
OPTION = re.compile(r"^ {2}(?:-\w,)?(--[a-z][a-z0-9-]*)", re.MULTILINE)


def page(name):
    """The source of a page, with plain hyphens instead of escaped ones."""
    return (DOCS / name).read_text(encoding="utf-8").replace("\\-", "-")


def sections(text, macro):
    """{heading: text below it} of a page's .SH or .SS headings."""
    found = {}
    heading = None
    for line in text.splitlines():
        if line.startswith(macro + " "):
            heading = line[len(macro):].strip().strip('"')
            found[heading] = ""
        elif line.startswith(".SH "):
            heading = None
        elif heading is not None:
            found[heading] += line + "\n"
    return found


def run_help(program, words=()):
    done = subprocess.run([PROGRAMS[program], *words, "--help"], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def options_of(text):
    return set(OPTION.findall(text))


def subcommands_of(text):
    after = text.partition("\nSubcommands:\n")[2]
    return re.findall(r"^ {2}([a-z][a-z-]*)", after, re.MULTILINE)


def names(text, option):
    """Whether the option has its own entry in the text (the line after .TP); a longer option or a mention in passing does not count."""
    return any(re.search(re.escape(option) + r"(?![a-z0-9-])", term) for term in re.findall(r"^\.TP\n(.*)$", text, re.MULTILINE))


def verbs(ask, words=()):
    """[(words, help)] of a program and all its verbs. A verb that answers as another program belongs to that one."""
    text = ask(words)
    if words and "Usage: affinityctl" not in text:
        text = ""
    found = [(words, text)]
    for word in subcommands_of(text):
        found += verbs(ask, (*words, word))
    return found


def missing_of_affinityctl(sources, ask):
    """Lacks of the pages {name: source} about affinityctl, one line for each addition. The options of the first page hold everywhere."""
    pages = {name: (sections(source, ".SH").get("OPTIONS", ""), sections(source, ".SS")) for name, source in sources.items()}
    first = next(iter(pages))
    lines = []
    for words, text in verbs(ask):
        verb = " ".join(words)
        own = [(name, heading) for name, (_, headings) in pages.items() for heading in headings if heading == verb or re.match(re.escape(verb) + r" [A-Z\[]", heading)]
        if verb and not own:
            lines.append(f"docs/{first}: the verb '{verb}' is missing: add '.SS {verb}' with what it does and its options")
            continue
        name, heading = own[0] if verb else (first, None)
        below = pages[first][0] + pages[name][0] + pages[name][1].get(heading, "")
        place = f"section '.SS {heading}'" if verb else "section OPTIONS"
        lines += [f"docs/{name}: {option} is missing in {place}" for option in sorted(options_of(text)) if not names(below, option)]
    return lines


class Manual(unittest.TestCase):
    def complain_about(self, lines):
        self.assertEqual([], lines, "\n" + "\n".join(lines))

    def test_every_verb_and_option_of_affinityctl(self):
        self.assertGreaterEqual(len(verbs(lambda words: run_help("affinityctl", words))), 12, "the verbs were not found in --help")
        self.complain_about(missing_of_affinityctl({name: page(name) for name in ("affinityctl.1", "affinityctl-measure.1")}, lambda words: run_help("affinityctl", words)))

    def test_every_option_of_the_other_programs(self):
        for program, name in (("affinityd", "affinityd.8"), ("affinity-ttcp", "affinity-ttcp.1")):
            with self.subTest(program):
                text = run_help(program)
                self.assertGreater(len(options_of(text)), 8)
                source = sections(page(name), ".SH")["OPTIONS"]
                self.complain_about([f"docs/{name}: {option} is missing in section OPTIONS" for option in sorted(options_of(text))
                                     if not names(source, option)])

    def test_every_key_of_the_policies(self):
        source = page("affinityd.policy.5")
        schema = json.loads(pathlib.Path(os.environ["AFFINITYD_SCHEMA"]).read_text(encoding="utf-8"))
        keys = set()

        def collect(node):
            if isinstance(node, dict):
                keys.update(node.get("properties", {}) if isinstance(node.get("properties"), dict) else {})
                for below in node.values():
                    collect(below)
            elif isinstance(node, list):
                for below in node:
                    collect(below)

        collect(schema)
        self.assertTrue({"version", "cpus", "comm", "index"} <= keys, "the keys were not found in the schema")
        headings = sections(source, ".SS")
        self.complain_about([f"docs/affinityd.policy.5: the key '{key}' is missing: add '.SS {key}'" for key in sorted(keys)
                             if key not in headings])

    def test_every_key_of_the_settings(self):
        source = page("affinityd.yaml.5")
        for text, section in (("nothing: 1\n", "KEYS"), ("measure: {nothing: 1}\n", "KEYS OF MEASURE")):
            with tempfile.TemporaryDirectory(prefix="affinityd-manual-") as folder:
                path = pathlib.Path(folder, "affinityd.yaml")
                path.write_text(text, encoding="utf-8")
                done = subprocess.run([PROGRAMS["affinityd"], "--config", str(path), "--runtime-dir", folder, "--state-dir", folder],
                                      capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(78, done.returncode, done.stderr)
            known = re.search(r"expected ([a-z_, ]+)\)?$", done.stderr.strip())
            self.assertIsNotNone(known, f"the keys are not in what is said: {done.stderr}")
            keys = re.split(r", | or ", known.group(1))
            self.assertGreaterEqual(len(keys), 3)
            documented = sections(source, ".SH")[section]
            self.complain_about([f"docs/affinityd.yaml.5: the key '{key}' is missing: add '.TP' and '.B {key}' in section {section}"
                                 for key in keys if f"\n.B {key}\n" not in "\n" + documented])

    def test_every_recipe_passes_check(self):
        """On a recorded machine of two sockets, where all of their CPUs are."""
        examples = re.findall(r'^\.\\" example: (\S+)\n\.PP\n\.nf\n\.RS\n(.*?)\.RE', page("affinityd.policy.5") + page("affinityd-servers.7"),
                              re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(examples), 20)
        with tempfile.TemporaryDirectory(prefix="affinityd-manual-") as folder:
            machine = pathlib.Path(folder, "machine")
            machine.mkdir()
            subprocess.run(["tar", "-xzf", DOCS.parent / "tests/machines/foong/recording.tar.gz", "-C", machine], check=True)
            for name, text in examples:
                pathlib.Path(folder, name).write_text(text, encoding="utf-8")
                done = subprocess.run([PROGRAMS["affinityctl"], "--root", str(machine), "check", str(pathlib.Path(folder, name))],
                                      capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(0, done.returncode, f"{name}: {done.stdout}{done.stderr}")
                self.assertNotIn("any user can start", done.stdout, name)

    def test_newborns_are_explained(self):
        for name in ("affinityd.8", "affinityd.policy.5"):
            self.assertRegex(page(name).replace("\n", " "), r"(?i)no policy matches get the (mask that their parent had|parent's original mask)")

    def test_the_check_itself_finds_what_is_missing(self):
        sources = {"affinityctl.1": ".SH OPTIONS\n.TP\n.B --json\n.SH VERBS\n.SS one\n.TP\n.B --first-more\n.SH END\n--first\n",
                   "affinityctl-measure.1": ".SH VERBS\n.SS \"two [PATH]\"\n.TP\n.B --second\nAs --first.\n"}
        top = "Usage: affinityctl\n\nOptions:\n  -h,--json   x\n\nSubcommands:\n  one   a\n  two   b\n  three   c\n"
        texts = {(): top, ("one",): "Usage: affinityctl one\n  --first TEXT  x\n", ("two",): "Usage: affinityctl two\n  -s,--second  x\n  --first  x\n",
                 ("three",): "Usage: affinityctl three\n"}
        self.assertEqual(["docs/affinityctl.1: --first is missing in section '.SS one'",
                          "docs/affinityctl-measure.1: --first is missing in section '.SS two [PATH]'",
                          "docs/affinityctl.1: the verb 'three' is missing: add '.SS three' with what it does and its options"],
                         missing_of_affinityctl(sources, texts.__getitem__))

    def test_the_pages_are_clean(self):
        """mandoc has no complaints. Long source lines are allowed: the blocks of affinityd.policy(5) are compared with the code as they are."""
        for path in [*sorted(DOCS.glob("*.[1-8]")), JSON_MANUAL]:
            with self.subTest(path.name):
                done = subprocess.run(["mandoc", "-Tlint", str(path)], capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual([], [line for line in done.stdout.splitlines() if "longer than 80 bytes" not in line])
                self.assertEqual("", done.stderr)

    def test_sentences_name_their_subject(self):
        """The actor of a sentence has a name: the kernel, root. No word of the two expressions below stands for it."""
        bad = re.compile(r"(?:^|(?<=[.:] ))(?:What|Who|That|Of)\b.*|\b(?:[Ss]omebody|[Ww]hoever|[Ee]verybody|[Aa]nybody)\b.*", re.MULTILINE)
        self.assertEqual(4, len(bad.findall("That is.\nIt is. Of one.\nsomebody did\nWho? Thatcher and Often whatever")))
        pronoun = re.compile(r"(?:^|(?<=[.:;?] ))(?:One|It|Those|Its)\b.*", re.MULTILINE)
        self.assertEqual(3, len(pronoun.findall("It is.\nThen? Its end.\nThose are; only one. Item")))
        pages = [*sorted(DOCS.glob("*.[1-8]")), JSON_MANUAL, DOCS / "HACKING.md", DOCS.parent / "README.md"]
        for pattern, paths in ((bad, [*pages, DOCS.parent / "CHANGELOG.md"]), (pronoun, pages)):
            self.complain_about([f"{path.name}: {found}" for path in paths
                                 for found in pattern.findall(re.sub(r"\\f[A-Z]", "", path.read_text(encoding="utf-8").replace("\\-", "-")))])

    def test_every_page_is_installed(self):
        installed = os.environ["AFFINITYD_MANUAL_PAGES"].split(":")
        self.assertEqual(sorted(path.name for path in DOCS.glob("*.[1-8]")), sorted(installed))

    def test_every_key_of_the_daemons_answers_is_documented(self):
        """The page has the keys of --json-schema; those of GetStatus, GetPlan, GetHistory and Explain are in the source that writes them."""
        text = JSON_MANUAL.read_text(encoding="utf-8")
        keys = set()
        code = (DOCS.parent / "daemon/status/json.cpp").read_text(encoding="utf-8")
        code = re.sub(r"record\.detail = dump\(.*?\);", "", code, flags=re.DOTALL)  # what the daemon keeps for itself is in no answer
        for form in (r'\{"([a-z_]+)", ', r'(?:value|back\(\))\["([a-z_]+)"\] =', r'add_member\("([a-z_]+)"'):
            keys.update(re.findall(form, code))
        self.assertGreater(len(keys), 60)
        self.complain_about([f"--json-schema lacks the key '{key}'" for key in sorted(keys - {"unwanted"})  # a state of threads
                             if not re.search(rf"^\.B {key}(\[\]|\{{\}})?$", text, re.MULTILINE)])


if __name__ == "__main__":
    unittest.main()
