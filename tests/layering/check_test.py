#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layering check must find every fault of a bad tree, and none in a good one."""
import pathlib
import subprocess
import sys
import tempfile

BAD = {
    "base/a.hpp": ('#include "host/root.hpp"\n', "runs up"),
    "policy/b.cpp": ('#include "topology/topology.hpp"\n', "runs sideways"),
    "planner/c.cpp": ('#  include "app/manager.hpp"\n', "runs up"),
    "irq/d.cpp": ('auto text = read("/proc/interrupts");\n', "kernel tree"),
    "netdev/e.cpp": ("#include <yaml-cpp/yaml.h>\n", "is for policy/tree.cpp only"),
    "enforcer/f.cpp": ("int x;\n" * 601, "601 lines"),
    "attic/g.cpp": ('#include "base/error.hpp"\n', "has no rank"),
    "planner/h.cpp": ("#include <systemd/sd-bus.h>\n", "is for control, enforcer/unit_cpus.cpp only"),
}
GOOD = {
    "host/a.cpp": 'int fd = open("/proc/self/fd");\n#include "base/error.hpp"\n',
    "planner/b.cpp": '#include "policy/policy.hpp"\n#include <vector>\n// see "/sys/class/net"\n',
    "policy/tree.cpp": "#include <yaml-cpp/yaml.h>\n",
    "main.cpp": '#include "app/manager.hpp"\n#include "events/loop.hpp"\n',
}


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        script = pathlib.Path(__file__).with_name("check.py")
        done = subprocess.run([sys.executable, str(script), folder], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


def main():
    failures = []
    for name, (text, expected) in BAD.items():
        code, output = run({name: text})
        if code != 1 or not any(line.startswith(name) and expected in line for line in output.splitlines()):
            failures.append(f"{name}: expected '{expected}', got {code}:\n{output}")
    code, output = run(GOOD)
    if code != 0:
        failures.append(f"the good tree is blamed:\n{output}")
    if run({})[0] != 1:
        failures.append("an empty tree passes")
    print("\n".join(failures) or "every fault was found")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
