#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""affinity-ttcp against iperf3 over loopback: throughput, and the CPU cost of a byte at both ends together. One connection, the same buffer
size and time, alternating rounds (A B B A ...), medians. Needs Debian's iperf3."""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

LEAST_RATE, MOST_COST = 0.95, 1.0


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def listens(port):
    """From the kernel's table: a connection would count as a stream."""
    with open("/proc/net/tcp", encoding="ascii") as tcp, open("/proc/net/tcp6", encoding="ascii") as tcp6:
        ends = [line.split()[1:4:2] for line in (*tcp, *tcp6)]
    return any(local.endswith(f":{port:04X}") and state == "0A" for local, state in ends)


class Process:
    """A program's output, and the CPU time that it and its children used."""

    def __init__(self, command, cpu):
        prepare = (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=prepare)

    def finish(self):
        text = self.process.stdout.read()
        self.process.stdout.close()
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            raise SystemExit(f"{' '.join(self.process.args)}: ended with {self.process.returncode}: {text.decode()[:500]}")
        return json.loads(text), used.ru_utime + used.ru_stime

    def end(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()


def one_run(sink, source, port, cpus):
    """The sink's report, and the CPU seconds of both."""
    receiver = Process(sink, cpus[1])
    transmitter = None
    try:
        end = time.monotonic() + 10
        while not listens(port):
            if time.monotonic() > end:
                raise SystemExit(f"{sink[0]} does not listen")
            time.sleep(0.02)
        transmitter = Process(source, cpus[0])
        _, sent = transmitter.finish()
        report, received = receiver.finish()
        return report, sent + received
    finally:
        receiver.end()
        if transmitter:
            transmitter.end()


def run_ttcp(options):
    port = free_port()
    common = [options.ttcp, "-s", "--json", "-l", str(options.length), "-p", str(port)]
    report, cpu = one_run([*common, "-r", "127.0.0.1"], [*common, "-t", "--seconds", str(options.seconds), "127.0.0.1"], port, options.cpus)
    return report["bits_per_second"], cpu / report["bytes"]


def run_iperf(options):
    port = free_port()
    common = ["iperf3", "-J", "-p", str(port)]
    report, cpu = one_run([*common, "-s", "-1", "-B", "127.0.0.1"],
                          [*common, "-c", "127.0.0.1", "-t", str(options.seconds), "-l", str(options.length)], port, options.cpus)
    total = report["end"]["sum_received"]
    return total["bits_per_second"], cpu / total["bytes"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ttcp", help="the program affinity-ttcp")
    parser.add_argument("--rounds", type=int, default=10, help="of each")
    parser.add_argument("--seconds", type=int, default=2, help="of each round")
    parser.add_argument("--length", type=int, default=131072, help="bytes of one read or write")
    parser.add_argument("--cpus", help="TRANSMITTER,RECEIVER: one CPU for each end of both programs; default: wherever they run")
    options = parser.parse_args()
    options.cpus = [int(cpu) for cpu in options.cpus.split(",")] if options.cpus else [None, None]
    return options


def main():
    options = parse()
    found = {run_ttcp: [], run_iperf: []}
    for number in range(options.rounds):
        for run in (run_ttcp, run_iperf) if number % 2 == 0 else (run_iperf, run_ttcp):
            found[run].append(run(options))
    rate, cost = ({run: statistics.median(sample[column] for sample in samples) for run, samples in found.items()} for column in (0, 1))
    for name, run in (("affinity-ttcp", run_ttcp), ("iperf3", run_iperf)):
        spread = [sample[0] / 1e9 for sample in found[run]]
        print(f"{name:<14} {rate[run] / 1e9:8.2f} Gbit/s ({min(spread):.2f} to {max(spread):.2f})  {cost[run] * 1e9:.4f} CPU s/GB")
    good_rate, good_cost = rate[run_ttcp] / rate[run_iperf], cost[run_ttcp] / cost[run_iperf]
    print(f"throughput  ratio {good_rate:.3f}  at least {LEAST_RATE:.2f}  {'ok' if good_rate >= LEAST_RATE else 'MISSED'}")
    print(f"CPU a byte  ratio {good_cost:.3f}  at most  {MOST_COST:.2f}  {'ok' if good_cost <= MOST_COST else 'MISSED'}")
    return good_rate < LEAST_RATE or good_cost > MOST_COST


if __name__ == "__main__":
    sys.exit(main())
