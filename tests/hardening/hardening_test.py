# SPDX-License-Identifier: Apache-2.0
"""The built programs have what compiler and linker offer against faults that are exploited: seen in the files, not in the options."""
import json
import os
import pathlib
import re
import subprocess
import unittest

PROGRAMS = [pathlib.Path(path) for path in os.environ["AFFINITYD_PROGRAMS"].split(":")]
# Small, and with the C++ library linked in: what it imports says nothing of how it was compiled.
FRONT = pathlib.Path(os.environ["AFFINITYD_FRONT"])
# Needs libc alone, so that it has no checks of the C++ library.
LIBRARY = pathlib.Path(os.environ["AFFINITYD_LIBRARY"])
BUILD = pathlib.Path(os.environ["AFFINITYD_BUILD_FOLDER"])
IS_FORTIFIED = os.environ["AFFINITYD_IS_FORTIFIED"] == "true"


def readelf(program, *options):
    return subprocess.run(["readelf", "--wide", *options, program], capture_output=True, text=True, check=True).stdout


def imports(program):
    return set(re.findall(r"UND (\w+)", readelf(program, "--dyn-syms")))


class Hardening(unittest.TestCase):
    def of_each(self, check, programs=(*PROGRAMS, FRONT, LIBRARY)):
        for program in programs:
            with self.subTest(program.name):
                check(program)

    @staticmethod
    def commands():
        return [entry["command"] for entry in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))]

    def test_programs_are_loaded_anywhere(self):
        self.of_each(lambda program: self.assertRegex(readelf(program, "--file-header"), r"Type: +DYN"))

    def test_what_the_linker_filled_in_cannot_be_written(self):
        def check(program):
            self.assertIn("GNU_RELRO", readelf(program, "--program-headers"))
            self.assertRegex(readelf(program, "--dynamic"), r"BIND_NOW|FLAGS_1.*NOW")

        self.of_each(check)

    def test_stacks_are_not_executed(self):
        self.of_each(lambda program: self.assertRegex(readelf(program, "--program-headers"), r"GNU_STACK[ x0-9a-f]+RW "))

    def test_no_text_is_writable(self):
        self.of_each(lambda program: self.assertNotRegex(readelf(program, "--program-headers"), r"LOAD[ x0-9a-f]+RWE"))

    def test_stacks_have_guards(self):
        self.of_each(lambda program: self.assertIn("__stack_chk_fail", imports(program)), (*PROGRAMS, LIBRARY))

    def test_indexes_of_containers_are_checked(self):
        self.of_each(lambda program: self.assertTrue([name for name in imports(program) if "__glibcxx_assert_fail" in name]), PROGRAMS)

    def test_copies_are_checked_where_the_build_is_optimized(self):
        if not IS_FORTIFIED:  # the library's checks need the optimizer, and sanitizers have their own
            for command in self.commands():
                self.assertTrue("-fsanitize=" in command or "-O0" in command or "-D_FORTIFY_SOURCE=2" in command
                                or not re.search(r" -O\w", command), command)
            return None
        return self.of_each(lambda program: self.assertTrue([name for name in imports(program) if re.fullmatch(r"__\w+_chk", name)]),
                            PROGRAMS)

    def test_big_stack_frames_are_probed(self):
        # A frame that needs no probe shows none, so this is seen in the commands.
        for command in self.commands():
            self.assertIn("-fstack-clash-protection", command)


if __name__ == "__main__":
    unittest.main()
