#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a condition that comes true after a program was started is seen: arguments that it writes, a child writes, a user that it becomes, a
port on which it listens, each 100 times after a moment by chance. The regular pass is an hour away. Needs root and two CPUs or more.

    tests/bench/late.py build [--times 100] [--longest 0.3] [--seed 1]
"""
import argparse
import contextlib
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "integration/late_program.py"
POLICIES = {"title": "cmdline: \"late: checkpointer*\"", "user": "cmdline: \"*{name}*\", user: nobody", "listen": "listen: {port}"}
PATIENCE = 30


def allowed(pid):
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Cpus_allowed_list"):
                return line.split()[1]
    return None


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def latencies(what, moments, name, port):
    """Seconds from the moment when it comes true, for programs that run one after the other."""
    found = []
    for moment in moments:
        with subprocess.Popen([sys.executable, PROGRAM, what, str(moment), str(port), name], stdout=subprocess.PIPE, text=True) as program:
            at, pid = program.stdout.readline().split()
            while allowed(pid) != "1" and time.monotonic() < float(at) + PATIENCE:
                time.sleep(0.005)
            found.append(time.monotonic() - float(at))
            program.kill()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--longest", type=float, default=0.3, help="seconds from the start to the moment, at most")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="affinityd-late-") as folder, contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder)
        name, port = f"{folder.name}-" + "x" * 40, free_port()
        (folder / "policies").mkdir()
        for file, match in POLICIES.items():
            text = f"version: 1\nmatch: {{{match.format(name=name, port=port)}}}\ncpus: \"1\"\nbind: set\n"
            (folder / f"policies/{file}.yaml").write_text(text, encoding="utf-8")
        (folder / "affinityd.yaml").write_text("version: 1\nreconcile: 1h\n", encoding="utf-8")
        daemon = subprocess.Popen([options.build / "daemon/affinityd", "--config", folder / "affinityd.yaml", "--policies", folder / "policies",
                                   "--runtime-dir", folder / "run", "--state-dir", folder / "state"], stderr=subprocess.DEVNULL)
        stack.callback(lambda: (daemon.terminate(), daemon.wait()))
        time.sleep(2)
        for what in ("title", "child", "user", "listen"):
            times = sorted(latencies(what, [chance.uniform(0, options.longest) for _ in range(options.times)], name, port))
            within = [sum(time <= limit for time in times) for limit in (0.3, 6)]
            print(f"{what}: median {times[len(times) // 2]:.3f} s, worst {times[-1]:.3f} s; {within[0]} within 0.3 s and {within[1]} within 6 s "
                  f"of {len(times)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
