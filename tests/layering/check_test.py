#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of the layering check finds its fault in a small bad tree; a good tree has none."""
import contextlib
import io
import pathlib
import tempfile
import unittest

import check

BODY = "".join(f"    use({n});\n" for n in range(79))

# Fault -> (files, the complaint's beginning, a part of its text).
FAULTS = {
    "an include of a higher room": ({"daemon/base/a.hpp": '#include "host/root.hpp"\n'}, "daemon/base/a.hpp:1:", "runs up"),
    "an include of a room of equal rank": ({"daemon/policy/a.cpp": '#include "topology/topology.hpp"\n'}, "daemon/policy/a.cpp:1:", "runs sideways"),
    "an indented include": ({"daemon/planner/a.cpp": '#  include "core/daemon.hpp"\n'}, "daemon/planner/a.cpp:1:", "runs up"),
    "machine below the planner": ({"daemon/machine/a.cpp": '#include "planner/plan.hpp"\n'}, "daemon/machine/a.cpp:1:", "runs up"),
    "state below the enforcer": ({"daemon/state/a.cpp": '#include "enforcer/executor.hpp"\n'}, "daemon/state/a.cpp:1:", "carried out"),
    "a behaviour above status": ({"daemon/status/a.cpp": '#include "behaviours/list.hpp"\n'}, "daemon/status/a.cpp:1:", "runs up"),
    "status below core": ({"daemon/status/a.cpp": '#include "core/daemon.hpp"\n'}, "daemon/status/a.cpp:1:", "runs up"),
    "a room without a rank": ({"daemon/attic/a.cpp": '#include "base/error.hpp"\n'}, "daemon/attic/a.cpp:1:", "has no rank"),
    "a library outside of its file": ({"daemon/netdev/a.cpp": "#include <yaml-cpp/yaml.h>\n"}, "daemon/netdev/a.cpp:1:", "only for policy/tree.cpp"),
    "a kernel path outside of host": ({"daemon/irq/a.cpp": 'auto t = read("/proc/interrupts");\n'}, "daemon/irq/a.cpp:1:", "names a kernel tree"),
    "a kernel path in tools": ({"tools/affinityctl/a.cpp": 'auto t = read("/sys");\n'}, "tools/affinityctl/a.cpp:1:", "names a kernel tree"),
    "a kernel path after a comment sign in a literal": ({"daemon/irq/a.cpp": 'use("//"), use("/sys/x");\n'}, "daemon/irq/a.cpp:1:", "kernel tree"),
    "a kernel header in base": ({"daemon/base/a.cpp": "#include <sys/stat.h>\n"}, "daemon/base/a.cpp:1:", "kernel headers"),
    "a library in base": ({"daemon/base/a.cpp": "#include <fmt/format.h>\n"}, "daemon/base/a.cpp:1:", "libraries"),
    "host knows a NIC": ({"daemon/host/a.cpp": 'read("class/net");\n'}, "daemon/host/a.cpp:1:", "what a policy"),
    "policy knows the machine": ({"daemon/policy/a.cpp": '#include "machine/machine.hpp"\n'}, "daemon/policy/a.cpp:1:", "runs up"),
    "policy reads a clock": ({"daemon/policy/a.cpp": "auto t = std::chrono::steady_clock::now();\n"}, "daemon/policy/a.cpp:1:", "the clock"),
    "policy knows the bus": ({"daemon/policy/a.cpp": "#include <systemd/sd-bus.h>\n"}, "daemon/policy/a.cpp:1:", "the bus"),
    "planner reads files": ({"daemon/planner/a.cpp": '#include "host/file.hpp"\n'}, "daemon/planner/a.cpp:1:", "must not know files"),
    "planner opens sockets": ({"daemon/planner/a.cpp": "#include <sys/socket.h>\n"}, "daemon/planner/a.cpp:1:", "sockets"),
    "planner knows the time": ({"daemon/planner/a.cpp": "auto t = system_clock::now();\n"}, "daemon/planner/a.cpp:1:", "time of day"),
    "planner logs": ({"daemon/planner/a.cpp": "#include <iostream>\n"}, "daemon/planner/a.cpp:1:", "logging"),
    "planner knows the enforcer": ({"daemon/planner/a.cpp": '#include "enforcer/real.hpp"\n'}, "daemon/planner/a.cpp:1:", "runs up"),
    "enforcer knows why": ({"daemon/enforcer/a.cpp": '#include "planner/matcher.hpp"\n'}, "daemon/enforcer/a.cpp:1:", "why an action"),
    "state carries out": ({"daemon/state/a.cpp": "sched_setaffinity(0, 0, nullptr);\n"}, "daemon/state/a.cpp:1:", "carried out"),
    "measure knows the planner": ({"daemon/measure/a.cpp": '#include "planner/plan.hpp"\n'}, "daemon/measure/a.cpp:1:", "policies, planner"),
    "core includes a behaviour": ({"daemon/core/a.cpp": '#include "behaviours/joins/a.hpp"\n', "daemon/behaviours/joins/a.hpp": ""},
                                  "daemon/core/a.cpp:1:", "must not know behaviours"),
    "core has a file for one": ({"daemon/core/a.cpp": '#include "core/joins.hpp"\n', "daemon/behaviours/joins/a.hpp": ""},
                                "daemon/core/a.cpp:1:", "must not know behaviours"),
    "a behaviour includes another": ({"daemon/behaviours/trials/a.cpp": '#include "behaviours/joins/a.hpp"\n', "daemon/behaviours/joins/a.hpp": ""},
                                     "daemon/behaviours/trials/a.cpp:1:", "do not know each other"),
    "planner names the class of one": ({"daemon/planner/a.hpp": "class Joins;\n", "daemon/behaviours/joins/a.hpp": ""},
                                       "daemon/planner/a.hpp:1:", "must not know behaviours"),
    "core knows the loop": ({"daemon/core/a.hpp": "struct sd_event;\n"}, "daemon/core/a.hpp:1:", "the event loop"),
    "core knows the bus": ({"daemon/core/a.cpp": "#include <systemd/sd-bus.h>\n"}, "daemon/core/a.cpp:1:", "the bus"),
    "core knows argv": ({"daemon/core/a.cpp": "int f(char** argv);\n"}, "daemon/core/a.cpp:1:", "argv"),
    "core knows JSON": ({"daemon/core/a.hpp": "#include <nlohmann/json_fwd.hpp>\n"}, "daemon/core/a.hpp:1:", "JSON"),
    "status reads files": ({"daemon/status/a.cpp": "#include <fstream>\n"}, "daemon/status/a.cpp:1:", "files of the host"),
    "control reads files": ({"daemon/control/a.cpp": '#include "host/file.hpp"\n'}, "daemon/control/a.cpp:1:", "files of the host"),
    "affinityctl knows core": ({"tools/affinityctl/verbs/a.cpp": '#include "core/shared.hpp"\n'}, "tools/affinityctl/verbs/a.cpp:1:", "core, load, enforcer"),
    "a survey reads files": ({"tools/affinityctl/survey/a.cpp": '#include "host/root.hpp"\n'}, "tools/affinityctl/survey/a.cpp:1:", "must not know files"),
    "a large survey": ({"tools/affinityctl/survey/a.cpp": BODY * 22}, "tools/affinityctl/survey:1:", "1738 lines, more than"),
    "ttcp knows policies": ({"tools/affinity-ttcp/a.cpp": '#include "policy/policy.hpp"\n'}, "tools/affinity-ttcp/a.cpp:1:", "policies"),
    "a room below core logs": ({"daemon/state/a.cpp": 'void f() { std::cerr << 1; }\n'}, "daemon/state/a.cpp:1:", "must not log"),
    "a cycle of rooms": ({"daemon/x.hpp": '#include "y/b.hpp"\n', "daemon/y/b.hpp": '#include "z/c.hpp"\n', "daemon/z/c.hpp": '#include "y/d.hpp"\n',
                          "daemon/y/d.hpp": "\n"}, "daemon/y:", "a cycle of folders: daemon/y daemon/z"),
    "a cycle of folders in tools": ({"tools/t/verbs/a.hpp": '#include "present/b.hpp"\n', "tools/t/present/b.hpp": '#include "../verbs/c.hpp"\n',
                                     "tools/t/present/c.hpp": '#include "verbs/c.hpp"\n', "tools/t/verbs/c.hpp": "\n"}, "tools/t/present:", "cycle of folders"),
    "a header of one user": ({"daemon/irq/a.hpp": "\n", "daemon/irq/b.cpp": '#include "irq/a.hpp"\n'}, "daemon/irq/a.hpp:1:", "only daemon/irq/b.cpp includes"),
    "many callbacks": ({"daemon/irq/a.hpp": "struct S {\n" + "".join(f"    std::function<void(int)> f{n};\n" for n in range(3)) + "};\n"},
                       "daemon/irq/a.hpp:1:", "S has 3 std::function members"),
    "many files": ({f"daemon/irq/a{n}.cpp": BODY for n in range(41)}, "daemon/irq:1:", "41 files"),
    "many lines": ({"daemon/irq/a.cpp": BODY * 100}, "daemon/irq:1:", "7900 lines"),
    "small files": ({f"daemon/{'irq' if n % 2 else 'netdev'}/a{n}.cpp": "\n" for n in range(41)}, "daemon:1:", "the median file has 1 lines"),
    "a hop without a file": ({"daemon/irq/a.cpp": "\n", "docs/ARCHITECTURE.md": "| 1 | `irq/b.cpp: f` |\n"}, "docs/ARCHITECTURE.md:1:", "no f in daemon/irq/b"),
    "a hop without its function": ({"daemon/irq/a.cpp": "int g;\n", "docs/ARCHITECTURE.md": "| 1 | `irq/a.cpp: S::f` |\n"}, "docs/ARCHITECTURE.md:1:", "no S::f"),
    "a long way": ({"daemon/core/a.cpp": '#include "planner/b.hpp"\nvoid f() {\n    g();\n}\n', "daemon/planner/b.hpp": "void g();\n", "daemon/planner/c.hpp": "void h();\n",
                    "daemon/planner/b.cpp": f"void g() {{\n    h();\n{BODY * 32}}}\n", "daemon/planner/c.cpp": f"void h() {{\n{BODY * 31}}}\n",
                    "docs/ARCHITECTURE.md": "**A way.**\n| 1 | `core/a.cpp: f` |\n"}, "docs/ARCHITECTURE.md:1:", "A way. 2534 lines"),
    "a comment that names no actor": ({"daemon/irq/a.cpp": "int a; ///< bytes. It grows\n"}, "daemon/irq/a.cpp:1:", "its actor: It grows"),
    "the second line of a comment": ({"daemon/irq/a.c": "/* A task.\n * One more. */\n"}, "daemon/irq/a.c:2:", "its actor: One more. */"),
    "a comment of Python": ({"daemon/irq/a.c": "\n", "tests/a.py": 'x = 1  # Of a task\n'}, "tests/a.py:1:", "its actor: Of a task"),
    "a docstring": ({"daemon/irq/a.c": "\n", "tests/a.py": 'def f():\n    """A task.\n    Those go."""\n'}, "tests/a.py:3:", "its actor: Those go."),
    "a cycle of files": ({"daemon/irq/a.hpp": '#include "irq/b.hpp"\n', "daemon/irq/b.hpp": '#include "a.hpp"\n'}, "daemon/irq/a.hpp:", "cycle of files"),
}
GOOD = {
    "daemon/host/a.cpp": 'int fd = open("/proc/self/fd");\n#include "base/error.hpp"\n',
    "daemon/planner/b.cpp": '#include "policy/policy.hpp"\n#include <vector>\n// see "/sys/class/net", steady_clock\n/* std::cerr\n"/proc/x" */\n',
    "daemon/policy/tree.cpp": "#include <yaml-cpp/yaml.h>\n",
    "daemon/policy/hint.cpp": 'auto t = "steady_clock";\nconst long big = 1\'000\'000; // "/proc/x"\n',
    "daemon/policy/words.cpp": 'auto t = "It is. // One"; // a cost of one; "That" is quoted, Item is none\n',
    "tests/words.py": 'X = """It is.\n# One"""\nprint("Who?")  # only "Its" and `What`\n',
    "daemon/main.cpp": '#include "core/daemon.hpp"\n#include "events/loop.hpp"\n',
    "tools/affinityctl/verbs/d.cpp": '#include "present/d.hpp"\n',
    "tools/affinityctl/present/d.hpp": "\n",
}


WARNINGS = {
    "a long function": ({"daemon/irq/a.cpp": f"void f() {{\n{BODY}}}\n"}, "daemon/irq/a.cpp:1: f has 81 lines"),
}


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            code = check.main([folder])
        return code, output.getvalue()


class Layering(unittest.TestCase):
    def test_each_fault_is_found(self):
        for fault, (files, begin, part) in FAULTS.items():
            with self.subTest(fault):
                code, output = run(files)
                self.assertEqual(1, code, output)
                self.assertTrue(any(line.startswith(begin) and part in line for line in output.splitlines()), output)

    def test_a_good_tree_has_no_complaints(self):
        code, output = run(GOOD)
        self.assertEqual(0, code, output)

    def test_warnings_fail_nothing(self):
        for warning, (files, text) in WARNINGS.items():
            with self.subTest(warning):
                code, output = run(files)
                self.assertEqual(0, code, output)
                self.assertIn(f"warning: {text}", output)

    def test_an_empty_tree_fails(self):
        self.assertEqual(1, run({})[0])


if __name__ == "__main__":
    unittest.main()
