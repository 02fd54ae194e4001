# SPDX-License-Identifier: Apache-2.0
"""docs/EDGE-CASES.md names the test of each case: every named test exists, and every case of interrupts has a test or a reason."""
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
TEXT = (SOURCE / "docs/EDGE-CASES.md").read_text(encoding="utf-8")
ROWS = [line for line in TEXT.split("## Interrupts")[1].splitlines() if line.startswith("| ")][2:]


def sources(name):
    """The name of a test for `meson test`: room/name, or the room alone."""
    room, _, part = name.partition("/")
    return [path for path in (SOURCE / "tests" / room).glob(f"{part or room}_test.*") if path.suffix in (".cpp", ".py")]


class EdgeCases(unittest.TestCase):
    def test_each_case_has_a_test_or_a_reason(self):
        self.assertGreater(len(ROWS), 25)
        for row in ROWS:
            case, answer = row.strip("| ").split(" | ")
            self.assertTrue(case and len(answer) > 10, row)

    def test_the_tests_are_there(self):
        texts = "\n".join(path.read_text(encoding="utf-8") for path in (SOURCE / "tests").rglob("*_test.*"))
        names = {name for name in re.findall(r"\b[A-Z][A-Za-z0-9]{14,}\b", TEXT) if len(re.findall("[A-Z]", name)) > 3 and not name.isupper()}
        self.assertGreater(len(names), 40)
        missing = [name for name in names if not re.search(rf"\b{name}\b", texts)]
        for row in ROWS:
            missing += [name for name in re.findall(r"`([a-z_]+/[a-z_0-9]+)`", row.strip("| ").split(" | ")[1]) if not sources(name)]
        self.assertEqual([], missing)


if __name__ == "__main__":
    unittest.main()
