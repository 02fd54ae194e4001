# SPDX-License-Identifier: Apache-2.0
"""affinityctl suggest: the answers of an expert for twelve recorded machines (server_worlds.py), real servers of this one, and names that are hostile."""
import fnmatch
import json
import re

from house import House, affinityctl
from server_worlds import WORLDS


def value_of(text):
    """YAML in braces, as the tool writes it, where each text has quotes: {unit: "a"}; a block of thread rules becomes a list."""
    if "\n" in text:
        text = "[" + ",".join(line.strip().removeprefix("- ") for line in text.strip().splitlines()) + "]"
    try:
        return json.loads(re.sub(r": ([a-z]+)(?=[,}])", r': "\1"', re.sub(r"([{,] ?)([a-z_]+):", r'\1"\2":', text)))
    except json.JSONDecodeError:
        return text  # a word


def rule_for(rules, thread):
    """All that the first rule says which takes a thread of this name."""
    for rule in rules:
        names = rule.get("name", "*")
        if any(fnmatch.fnmatchcase(thread, name) for name in ([names] if isinstance(names, str) else names)):
            said = {key: value for key, value in rule.items() if key != "name"}
            if "cpus" in said:
                said["cpus"] = str(said["cpus"])
            return said
    return None


class Suggest(House):
    PLAIN = True  # no daemon takes part

    def suggest(self, *words, root=None):
        return affinityctl(*(("--root", root) if root else ()), "--json", "suggest", *words).json

    def checked(self, proposal, *root):
        """The file of a proposal, which has passed the check without an error."""
        file = self.bin / proposal["file"]
        file.write_text(proposal["text"], encoding="utf-8")
        affinityctl(*root, "check", file)
        return file


class Worlds(Suggest):
    def differences(self, answer, expected, root):
        """All that the expert said otherwise."""
        proposals = {one["server"]: one for one in answer["proposals"]}
        left = {one["server"]: one["why"] for one in answer["left"]}
        found = [f"{server}: nothing should be proposed" for server in proposals if "policy" not in expected.get(server, {})]
        for server, wanted in expected.items():
            if "none" in wanted:
                found += [f"{server}: {word!r} should be why: {left.get(server)!r}" for word in wanted["none"] if word not in left.get(server, "")]
                continue
            if server not in proposals:
                found.append(f"{server}: nothing is proposed: {left.get(server)!r}")
                continue
            proposal = proposals[server]
            keys = {line["key"]: value_of(line["value"]) for line in proposal["lines"]}
            told = " ".join(line["reason"] for line in proposal["lines"]) + " ".join(proposal["advice"])
            found += [f"{server}: {key} should be {value!r}: {keys.get(key)!r}" for key, value in wanted["policy"].items() if str(keys.get(key)) != str(value)]
            found += [f"{server}: {key} should not be there: {keys[key]!r}" for key in wanted.get("absent", ()) if key in keys]
            found += [f"{server}: a reason should tell of {word!r}: {told}" for word in wanted.get("told", ()) if word not in told]
            found += [f"{server}: the rule of {thread} should be {rule}: {rule_for(keys.get('threads', []), thread)}"
                      for thread, rule in wanted.get("rules", {}).items() if rule_for(keys.get("threads", []), thread) != rule]
            if "switch" in wanted and (wanted["switch"] or "") not in " ".join(proposal["advice"]) or wanted.get("switch", "") is None and proposal["advice"]:
                found.append(f"{server}: the advice should be {wanted['switch']!r}: {proposal['advice']}")
            plan = affinityctl("--root", root, "--json", "plan", self.checked(proposal, "--root", root), code=(0, 3)).json
            if wanted.get("stays") and plan["actions"]:
                found.append(f"{server}: the plan should be empty: {plan['actions']}")
        return found

    def test_the_answers_of_an_expert(self):
        met = 0
        for build, expected in WORLDS.items():
            with self.subTest(build.__name__):
                root = self.bin / build.__name__
                build(root)
                found = self.differences(self.suggest(root=root), expected, root)
                met += not found
                self.assertEqual([], found)
        self.assertEqual((12, 12), (len(WORLDS), met))
