# SPDX-License-Identifier: Apache-2.0
"""Measurements by a running daemon: what it records for each way in which one can end, and the passive cost."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import unittest
import xml.dom.minidom

from daemon import Daemon, allowed, spawn, wait_for, workload

TTCP = os.environ["AFFINITY_TTCP"]
# Names of this test alone: other tests run affinity-ttcp at the same time.
WATCHED = "version: 1\nmatch: {comm: [cost-ttcp, cost-parent]}\naffinity: none\nnics: [lo]\n"


def settings(daemon, measure, reconcile="60s"):
    (daemon.folder / "affinityd.yaml").write_text(f"version: 1\nreconcile: {reconcile}\nmeasure: {measure}\n", encoding="utf-8")
    return daemon


def records(daemon, kind="ttcp"):
    return json.loads(daemon.control("history", "--kind", kind, "--json"))["records"]


def children(pid):
    return [int(word) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for word in path.read_text().split()]


class Peer:
    """Accepts one connection, then reads a little and resets it, or never reads."""

    def __init__(self, stack):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self.socket.getsockname()[1]}"
        stack.callback(self.socket.close)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            connection, _ = self.socket.accept()
            connection.recv(1000)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()


class MeasuringUnit:
    """What the service manager does for affinity-measure.socket: a program for each connection."""

    def __init__(self, stack, daemon):
        self.programs = []
        self.socket = socket.socket(socket.AF_UNIX)
        stack.callback(self.socket.close)
        self.socket.bind(str(daemon.folder / "run/measure"))
        self.socket.listen()
        self.stack = stack
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                with connection:
                    self.programs.append(spawn(self.stack, TTCP, "--request", stdin=connection, stdout=connection))


class Measurements(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def daemon(self, measure, **policies):
        return settings(Daemon(self.stack, policies), measure).start()

    def outcome(self, daemon, number=1):
        wait_for(lambda: len(records(daemon)) >= number, "the run is recorded")
        return records(daemon)[number - 1]

    def test_runs_are_kept_and_shown(self):
        daemon = self.daemon("{duration: 1s}")
        daemon.control("measure", "--no-block")
        first = self.outcome(daemon)
        self.assertEqual(("done", "loopback", False), (first["outcome"], first["path"], first["touches_nic_interrupts"]), first)
        self.assertGreater(first["bits_per_second"], 0)
        picture = daemon.folder / "history.svg"
        shown = daemon.control("history", "--svg", str(picture))
        self.assertIn("loopback", shown)
        self.assertIn("too few runs", shown)
        self.assertEqual("svg", xml.dom.minidom.parse(str(picture)).documentElement.tagName)
        daemon.stop()
        daemon.start()
        self.assertEqual(first["id"], records(daemon)[0]["id"])

    def test_who_started_the_daemon_may_ignore_the_end_of_children(self):
        load = workload(self.stack)
        policy = 'version: 1\nmatch: {comm: demo-workload}\ncpus: "1"\nbind: set\n'
        daemon = settings(Daemon(self.stack, {"demo.yaml": policy}), "{duration: 1s}")
        daemon.command = lambda command=daemon.command: ["sh", "-c", "trap '' CHLD; exec \"$@\"", "sh", *command()]
        daemon.start()
        wait_for(lambda: allowed(load.pid) == "1", "pinned")
        daemon.control("measure")
        daemon.control("measure")
        self.assertIsNone(daemon.process.poll())
        daemon.stop()
        self.assertEqual(allowed(os.getpid()), allowed(load.pid))

    def test_a_killed_run_is_recorded_as_killed(self):
        daemon = self.daemon("{duration: 30s}")
        daemon.control("measure", "--no-block")
        child = wait_for(lambda: children(daemon.process.pid), "the measuring child runs")[0]
        wait_for(lambda: children(child), "its streams run")
        daemon.control("measure", code=1)  # one at a time
        os.kill(child, signal.SIGKILL)
        record = self.outcome(daemon)
        self.assertEqual("killed", record["outcome"], record)
        self.assertIn("signal 9", record["reason"])
        self.assertEqual(1, len(records(daemon)))
        self.assertEqual("killed", daemon.status()["measurement"]["last"]["outcome"])

    def test_streams_of_a_killed_run_end_too(self):
        daemon = self.daemon("{duration: 30s}")
        daemon.control("measure", "--no-block")
        child = wait_for(lambda: children(daemon.process.pid), "the measuring child runs")[0]
        streams = wait_for(lambda: len(children(child)) == 2 and children(child), "its streams run")
        nobody = str(65534 if os.geteuid() == 0 else os.geteuid())
        for pid in [child, *streams]:  # the program lowers itself, before it measures
            fields = dict(re.findall(r"(\w+):\t(.*)", pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")))
            self.assertEqual(({nobody}, "1"), (set(fields["Uid"].split()), fields["NoNewPrivs"]))
            self.assertEqual(10, os.getpriority(os.PRIO_PROCESS, pid))
        daemon.kill()
        for pid in [child, *streams]:
            wait_for(lambda pid=pid: not pathlib.Path(f"/proc/{pid}/exe").exists(), "nothing is left of the measurement")

    def test_a_peer_that_goes_away_and_one_that_is_not_there(self):
        daemon = self.daemon(f"{{duration: 20s, target: '{Peer(self.stack).target}'}}")
        daemon.control("measure", "--no-block")
        record = self.outcome(daemon)
        self.assertEqual("peer_gone", record["outcome"], record)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        other = self.daemon(f"{{duration: 1s, target: '127.0.0.1:{port}'}}")
        other.control("measure", "--no-block")
        record = self.outcome(other)
        self.assertEqual("unreachable", record["outcome"], record)
        self.assertIn("unreachable", other.control("history"))

    def test_an_unplugged_interface_is_a_lost_link(self):
        if os.geteuid() != 0:  # cannot make a network namespace
            self.assertNotEqual(0, subprocess.run(["unshare", "-n", "true"], check=False, capture_output=True).returncode)
            return
        daemon = settings(Daemon(self.stack, {}), "{duration: 60s, target: '198.18.0.2:5001'}")
        plain = daemon.command()
        daemon.command = lambda: ["unshare", "-n", *plain]  # in a network namespace that ends with the daemon
        daemon.start()
        far = spawn(self.stack, "unshare", "-n", TTCP, "--sink", "--listen", "*", "--idle-exit", "0")
        own = os.readlink("/proc/self/ns/net")
        wait_for(lambda: os.readlink(f"/proc/{far.pid}/ns/net") != own, "the far end has its network")

        def listens():
            tables = (pathlib.Path(f"/proc/{far.pid}/net/{name}") for name in ("tcp", "tcp6"))
            return any(" 0A " in table.read_text(encoding="utf-8") for table in tables)

        wait_for(listens, "the far end waits for connections")
        inside = ("nsenter", "--net=" + f"/proc/{daemon.process.pid}/ns/net", "ip")
        outside = ("nsenter", "--net=" + f"/proc/{far.pid}/ns/net", "ip")
        for command in ((*inside, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(far.pid)),
                        (*inside, "address", "add", "198.18.0.1/24", "dev", "near"), (*inside, "link", "set", "near", "up"),
                        (*outside, "address", "add", "198.18.0.2/24", "dev", "far"), (*outside, "link", "set", "far", "up")):
            subprocess.run(command, check=True)
        sent = pathlib.Path(f"/proc/{daemon.process.pid}/net/dev")
        daemon.control("measure", "--no-block")

        def flows():
            line = next((line for line in sent.read_text(encoding="utf-8").splitlines() if line.strip().startswith("near:")), "")
            return line and int(line.split(":")[1].split()[8]) > 10_000_000

        wait_for(flows, "bytes are on their way")
        subprocess.run((*inside, "link", "delete", "near"), check=True)
        record = self.outcome(daemon)
        self.assertEqual("link_lost", record["outcome"], record)
        self.assertIn("link_lost", daemon.control("history"))

    def test_a_unit_of_its_own_measures_where_the_service_manager_listens_for_one(self):
        daemon = self.daemon("{duration: 1s, bytes: 50M}")
        unit = MeasuringUnit(self.stack, daemon)
        daemon.control("measure", "--no-block")
        self.assertEqual(("done", 50_000_000), (self.outcome(daemon)["outcome"], records(daemon)[0]["bytes"]))
        self.assertEqual(1, len(unit.programs))

    def test_a_run_in_a_unit_that_is_killed_or_whose_daemon_is_gone(self):
        daemon = self.daemon("{duration: 30s}")
        unit = MeasuringUnit(self.stack, daemon)
        daemon.control("measure", "--no-block")
        program = wait_for(lambda: unit.programs and unit.programs[0], "the unit runs")
        wait_for(lambda: children(program.pid), "its streams run")
        self.assertEqual([], children(daemon.process.pid))
        program.kill()
        record = self.outcome(daemon)
        self.assertEqual("failed", record["outcome"], record)
        self.assertIn("without a report", record["reason"])
        daemon.control("measure", "--no-block")
        program = wait_for(lambda: len(unit.programs) == 2 and unit.programs[1], "it runs again")
        streams = wait_for(lambda: len(children(program.pid)) == 2 and children(program.pid), "its streams run")
        daemon.kill()
        program.wait(60)
        for stream in streams:
            wait_for(lambda pid=stream: not pathlib.Path(f"/proc/{pid}/exe").exists(), "nothing is left of the measurement")

    def test_a_damaged_history_is_set_aside_and_measuring_goes_on(self):
        daemon = settings(Daemon(self.stack, {}), "{duration: 1s, bytes: 1M}")
        state = daemon.folder / "state"
        state.mkdir()
        (state / "history.db").write_bytes(b"no database" * 1000)
        daemon.start()
        self.assertIn("history could not be used", daemon.text())
        aside = list(state.glob("history.db.corrupt-*"))
        self.assertEqual([b"no database" * 1000], [path.read_bytes() for path in aside])
        daemon.control("measure", "--no-block")
        self.assertEqual("done", self.outcome(daemon)["outcome"])

    def test_by_itself_only_while_the_machine_is_idle(self):
        burners = [spawn(self.stack, "sh", "-c", "while :; do :; done") for _ in range(os.cpu_count())]
        daemon = self.daemon("{interval: 1s, random_delay: 1s, duration: 1s, idle_only: true, busy_above: 30%}")
        record = self.outcome(daemon)
        self.assertEqual("skipped", record["outcome"], record)
        self.assertIn("busy", record["reason"])
        for burner in burners:
            burner.kill()

    def test_bytes_bound_a_run(self):
        daemon = self.daemon("{duration: 30s, bytes: 50M}")
        daemon.control("measure", "--no-block")
        record = self.outcome(daemon)
        self.assertEqual(("done", 50_000_000), (record["outcome"], record["bytes"]), record)

    def test_a_full_disk_costs_the_record_and_nothing_else(self):
        daemon = settings(Daemon(self.stack, {}), "{duration: 1s, bytes: 1M}")
        if os.geteuid() != 0:  # cannot mount a file system to fill
            self.assertNotEqual(0, subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode)
            return
        state = daemon.folder / "state"
        state.mkdir()
        plain = daemon.command()
        # Only the daemon sees the mount, which ends with it.
        daemon.command = lambda: ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=256k,mode=755 none {state} && exec "$@"', "sh", *plain]
        daemon.start()
        inside = pathlib.Path(f"/proc/{daemon.process.pid}/root{state}")
        self.assertFalse((inside / "history.db").exists())  # begins with the first record
        daemon.control("measure", "--no-block")
        wait_for(lambda: (inside / "history.db").exists(), "the first record is kept")
        wait_for(lambda: not children(daemon.process.pid), "the run is over")
        with contextlib.suppress(OSError), open(inside / "filler", "wb", buffering=0) as filler:
            while filler.write(b"x" * 4096):
                pass
        for _ in range(3):  # free space inside the file may hold one
            daemon.control("measure", "--no-block")
            wait_for(lambda: not children(daemon.process.pid), "the run is over")
        self.assertEqual("done", daemon.status()["measurement"]["last"]["outcome"])
        self.assertIn("the measurement is not kept", daemon.text())
        (inside / "filler").unlink()
        kept = len(records(daemon))
        daemon.control("measure", "--no-block")
        self.assertEqual("done", self.outcome(daemon, kept + 1)["outcome"])

    def test_passive_cost_is_that_of_the_traffic(self):
        daemon = settings(Daemon(self.stack, {"watched.yaml": WATCHED}), "{duration: 1s}", reconcile="1s").start()
        shell = daemon.folder / "cost-parent"
        shutil.copy("/bin/sh", shell)
        ttcp = daemon.folder / "cost-ttcp"
        ttcp.symlink_to(TTCP)
        report = daemon.folder / "report"
        # A parent under the policy: when its children have ended, their CPU time is part of its own.
        parent = spawn(self.stack, str(shell), "-c", f"'{ttcp}' --loopback --seconds 4 --json >{report}.new; mv {report}.new {report}; sleep 60")
        wait_for(report.exists, "the run is over")
        active = json.loads(report.read_text(encoding="utf-8"))
        self.assertEqual("done", active["outcome"], active)

        def cost():
            costs = daemon.status()["costs"]
            return costs and costs[0]["bytes"] >= active["bytes"] and costs[0]

        passes = daemon.status()["reconciles"]
        wait_for(lambda: daemon.status()["reconciles"] >= passes + 2, "two more looks")
        seen = wait_for(cost, "all bytes are seen")
        # Its own, and of those that it has waited for: user and system each (proc_pid_stat(5), from field 14).
        fields = pathlib.Path(f"/proc/{parent.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        used = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        self.assertGreater(used, 0.9 * sum(active[end]["user_seconds"] + active[end]["system_seconds"] for end in ("transmitter", "receiver")))
        # Others may send over the loopback, too.
        ratio = seen["cpu_seconds_per_gb"] * seen["bytes"] / 1e9 / used
        print(f"passive {seen['bytes'] / 1e9:.2f} GB, {seen['cpu_seconds_per_gb']:.4f} CPU s/GB; active {active['bytes'] / 1e9:.2f} GB; CPU time {ratio:.3f}")
        self.assertAlmostEqual(1, ratio, delta=0.1)
        self.assertIn("watched", daemon.control("status"))

        daemon.write("watched.yaml", WATCHED.replace("none", "process"))  # the policy changes: the daemon closes and keeps the period
        past = wait_for(lambda: records(daemon, "passive"), "the cost before the change is in the history")[0]
        self.assertEqual(("lo", "none", "watched"), (past["path"], past["model"], past["policies"]), past)
        self.assertGreaterEqual(past["bytes"], active["bytes"])
        self.assertAlmostEqual(1, past["cpu_seconds"] / used, delta=0.1)
        before = wait_for(lambda: daemon.status()["costs"] and daemon.status()["costs"][0]["before"], "status shows the cost before")
        self.assertEqual("none", before["model"])
        daemon.stop()
        daemon.start()  # the new daemon still knows the earlier period
        before = wait_for(lambda: daemon.status()["costs"] and daemon.status()["costs"][0]["before"], "so does the next daemon's")
        self.assertEqual(("none", past["bytes"]), (before["model"], before["bytes"]))


if __name__ == "__main__":
    unittest.main()
