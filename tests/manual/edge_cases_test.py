# SPDX-License-Identifier: Apache-2.0
"""Every line of tests/blackbox/edge-cases.md names tests that exist."""
import pathlib
import re
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
PYTHON = r"^class {0}\((?:(?!^class ).)*?^    def {1}\("


def exists(name):
    """x.Class.test, vm/x.function, or room/x_test:Suite.Name (Class.test of Python)."""
    if unit := re.fullmatch(r"(\w+/\w+):(\w+)\.(\w+)", name):
        file, suite, test = TESTS / unit[1], unit[2], unit[3]
        cpp, pattern = file.with_suffix(".cpp"), rf"^TEST\w*\(\s*{suite},\s*{test}\)"
        return matches(cpp, pattern) if cpp.exists() else matches(file.with_suffix(".py"), PYTHON.format(suite, test))
    if guest := re.fullmatch(r"vm/(\w+)\.(\w+)", name):
        return matches(TESTS / f"vm/inside/{guest[1]}.py", rf"^def {guest[2]}\(")
    box = re.fullmatch(r"(\w+)\.(\w+)\.(test_\w+)", name)
    return bool(box) and matches(TESTS / f"blackbox/{box[1]}_test.py", PYTHON.format(box[2], box[3]))


def matches(file, pattern):
    return file.exists() and re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL) is not None


class EdgeCases(unittest.TestCase):
    def test_every_line_names_tests_that_exist(self):
        lines = [line for line in (TESTS / "blackbox/edge-cases.md").read_text(encoding="utf-8").splitlines() if re.match(r"\| (?!edge|---)", line)]
        self.assertGreater(len(lines), 50)
        self.assertEqual([], [line for line in lines if len(line.split(" | ")) != 3 or "`" not in line.split(" | ")[2]])
        self.assertEqual([], [name for line in lines for name in re.findall("`([^`]+)`", line.split(" | ")[2]) if not exists(name)])

    def test_a_test_that_is_not_there_is_noticed(self):
        for name in ("undo.Table.test_nothing", "drift.Chaos.test_one_change", "vm/undo.nothing", "base/glob_test:Glob.Nothing", "nothing"):
            self.assertFalse(exists(name), name)


if __name__ == "__main__":
    unittest.main()
