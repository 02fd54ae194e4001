#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading and printing recorded machines, whole processes: affinityctl against lscpu and lstopo on the same folders, in turn.
Prints for each the sum over the machines of the quickest of several rounds, and the ratios. The quickest, because whatever
else runs on this computer can only add; each program is given the same chances.

    tests/bench/topology.py build/tools/affinityctl/affinityctl ../shared/data/topologies [--rounds 7]
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def run(command, environment):
    """(wall seconds, CPU seconds, exit code) of a whole process."""
    to_nothing = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=to_nothing)
    _, status, usage = os.wait4(pid, 0)
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, os.waitstatus_to_exitcode(status)


def complete(folder):
    """lscpu ends with an error where a recording lacks these files: all programs read the same stand-ins. True if so."""
    cpus = pathlib.Path(folder, "sys/devices/system/cpu")
    cpuinfo = pathlib.Path(folder, "proc/cpuinfo")
    missing = [path for path in (cpus / "online", cpus / "possible", cpus / "present", cpuinfo) if not path.exists()]
    numbers = sorted(int(path.name[3:]) for path in cpus.glob("cpu[0-9]*") if (path / "topology").is_dir())
    for path in missing:
        if path != cpuinfo:
            path.write_text(",".join(map(str, numbers)) + "\n", encoding="ascii")
    if cpuinfo in missing:
        cpuinfo.parent.mkdir(exist_ok=True)
        # Without a model lscpu knows no core, and reads nothing about it.
        cpuinfo.write_text("".join(f"processor\t: {number}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 1\nmodel name\t: CPU\nstepping\t: 1\n\n"
                                   for number in numbers), encoding="ascii")
    return bool(missing)


def programs(affinityctl, folder):
    """name -> (command, environment)"""
    plain = {**os.environ, "LC_ALL": "C"}
    result = {"affinityctl topology --json": ([affinityctl, "topology", "--root", folder, "--json"], plain)}
    if lscpu := shutil.which("lscpu"):
        result["lscpu --sysroot -J"] = ([lscpu, "--sysroot", folder, "-J"], plain)
    if lstopo := shutil.which("lstopo-no-graphics") or shutil.which("lstopo"):
        result["lstopo --of xml"] = ([lstopo, "--of", "xml"], {**plain, "HWLOC_FSROOT": folder})
    return result


def measure(affinityctl, folder, rounds):
    """name -> [quickest wall time, quickest CPU time, exit code]. The programs take turns, so that a disturbance affects all."""
    best = {}
    for _ in range(rounds):
        for name, (command, environment) in programs(affinityctl, folder).items():
            wall, cpu, code = run(command, environment)
            old = best.setdefault(name, [wall, cpu, code])
            best[name] = [min(old[0], wall), min(old[1], cpu), code]
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affinityctl")
    parser.add_argument("corpus", nargs="?", default=os.environ.get("AFFINITYD_TOPOLOGIES"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--all", action="store_true", help="one line for each machine too")
    options = parser.parse_args()
    archives = sorted(pathlib.Path(options.corpus or ".").glob("*/root.tar.gz"))
    if not archives:
        sys.exit(f"no recorded machines in {options.corpus}")
    totals, failures, ratios = {}, {}, {}
    stand_ins = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as scratch:
        for archive in archives:
            folder = os.path.join(scratch, archive.parent.name)
            os.mkdir(folder)
            subprocess.run(["tar", "-xzf", archive, "-C", folder, "--no-same-owner"], check=True)
            stand_ins += complete(folder)
            best = measure(os.path.abspath(options.affinityctl), folder, options.rounds)
            shutil.rmtree(folder)
            ours = next(iter(best.values()))
            if options.all:
                print(f"{archive.parent.name:32}" + "".join(f"  {name.split()[0]} {value[0] * 1000:7.2f} ms" for name, value in best.items()))
            for name, (wall, cpu, code) in best.items():
                total = totals.setdefault(name, [0.0, 0.0])
                total[0] += wall
                total[1] += cpu
                ratios.setdefault(name, []).append(ours[0] / wall)
                if code != 0:
                    failures.setdefault(name, []).append(archive.parent.name)
    print(f"{len(archives)} machines ({stand_ins} with stand-ins for cpuinfo or the lists of CPUs), quickest of {options.rounds} rounds each")
    ours = next(iter(totals.values()))
    for name, (wall, cpu) in totals.items():
        print(f"{name:28} {wall * 1000:8.1f} ms wall  {cpu * 1000:8.1f} ms CPU   ours/this: {ours[0] / wall:5.3f} wall, "
              f"{ours[1] / max(cpu, 1e-9):5.3f} CPU, median machine {statistics.median(ratios[name]):5.3f}")
    for name, machines in failures.items():
        print(f"{name} ended with an error on: {', '.join(machines)}")


if __name__ == "__main__":
    main()
