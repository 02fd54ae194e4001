# SPDX-License-Identifier: Apache-2.0
"""Measurements by a running daemon: each way in which one can end is recorded as that; the history; the passive cost."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import threading
import xml.dom.minidom

from house import PROGRAMS, House, children, group, policy, read, report, run, wait_for
from nets import Net


class Peer:
    """Accepts one connection, reads a little, and resets it."""

    def __init__(self, stack):
        self.socket = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.target = f"127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            connection, _ = self.socket.accept()
            connection.recv(1000)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()


def records(daemon, kind="ttcp"):
    return daemon.ctl("history", "--kind", kind, "--json").json["records"]


class Runs(House):
    PLAIN = True  # it starts affinity-ttcp of its own build
    def measured(self, **measure):
        """The record of a run that a daemon with these settings makes."""
        self.running = self.daemon({"measure": measure})
        self.running.ctl("measure", "--no-block")
        return self.outcome(self.running)

    def outcome(self, daemon, number=1):
        wait_for(lambda: len(records(daemon)) >= number, "the run is recorded")
        return records(daemon)[number - 1]

    def gone(self, pids):
        for pid in pids:
            wait_for(lambda pid=pid: not pathlib.Path(f"/proc/{pid}/exe").exists(), "nothing is left of the measurement")

    def begun(self, daemon):
        """(measuring child, its streams), which measure now."""
        daemon.ctl("measure", "--no-block")
        [child] = wait_for(lambda: children(daemon.process.pid), "the measuring child runs")
        return child, wait_for(lambda: len(children(child)) == 2 and children(child), "its streams run")

    def test_a_run_is_kept_shown_and_known_to_the_next_daemon(self):
        first = self.measured(duration="1s")
        self.assertEqual(("done", "loopback", False), (first["outcome"], first["path"], first["touches_nic_interrupts"]))
        self.assertGreater(first["bits_per_second"], 0)
        picture = self.running.folder / "history.svg"
        shown = self.running.ctl("history", "--svg", picture).out
        self.assertIn("loopback", shown)
        self.assertEqual("svg", xml.dom.minidom.parse(str(picture)).documentElement.tagName)
        last = self.running.status()["measurement"]["last"]
        self.running.stop()
        self.running.start()
        self.assertEqual((first["id"], last), (records(self.running)[0]["id"], self.running.status()["measurement"]["last"]))

    def test_a_run_ends_after_the_bytes_that_the_settings_allow(self):
        record = self.measured(duration="30s", bytes="50M")
        self.assertEqual(("done", 50_000_000), (record["outcome"], record["bytes"]))

    def test_a_peer_that_goes_away_and_one_that_is_not_there(self):
        self.assertEqual("peer_gone", self.measured(duration="20s", target=Peer(self.stack).target)["outcome"])
        self.assertEqual("unreachable", self.measured(duration="1s", target="127.0.0.1:9")["outcome"])

    def test_a_run_that_is_killed_is_recorded_so(self):
        daemon = self.daemon({"measure": {"duration": "30s"}})
        child, _ = self.begun(daemon)
        daemon.ctl("measure", code=1)  # one at a time
        os.kill(child, signal.SIGKILL)
        record = self.outcome(daemon)
        self.assertEqual(("killed", 1), (record["outcome"], len(records(daemon))))
        self.assertIn("signal 9", record["reason"])

    def test_it_has_no_rights_and_ends_with_the_daemon(self):
        daemon = self.daemon({"measure": {"duration": "30s"}})
        child, streams = self.begun(daemon)
        for pid in [child, *streams]:
            fields = dict(re.findall(r"(\w+):\t(.*)", read(f"/proc/{pid}/status")))
            self.assertEqual(({"65534"}, "1"), (set(fields["Uid"].split()), fields["NoNewPrivs"]))
            self.assertEqual(10, os.getpriority(os.PRIO_PROCESS, pid))
        daemon.kill()
        self.gone([child, *streams])

    def test_by_itself_only_while_the_machine_is_idle(self):
        for _ in range(os.cpu_count()):
            self.spawn("sh", "-c", "while :; do :; done")
        daemon = self.daemon({"measure": {"interval": "1s", "random_delay": "1s", "duration": "1s", "idle_only": True, "busy_above": "30%"}})
        record = self.outcome(daemon)
        self.assertEqual("skipped", record["outcome"])
        self.assertIn("busy", record["reason"])

    def test_by_default_once_a_day_over_loopback_which_the_status_says(self):
        daemon = self.daemon(web=policy("web", cpus="1"))
        measure = daemon.status()["measure"]
        self.assertEqual((86400, ""), (measure["interval_seconds"], measure["target"]))
        line = f"it goes over loopback, which tests no NIC; to test one, write target: HOST:5001 under measure in {daemon.folder / 'affinityd.yaml'}"
        self.assertIn(line, " ".join(daemon.ctl("status").out.split()))
        for settings in ({"target": "127.0.0.1:9"}, {"interval": 0}):
            daemon.settings(measure=settings)
            daemon.ctl("reload")
            self.assertNotIn("loopback", daemon.ctl("status").out)

    def test_a_starter_that_ignores_the_end_of_children(self):
        web = self.program("web")
        daemon = self.daemon({"measure": {"duration": "1s"}}, namespace=("sh", "-c", "trap '' CHLD; exec \"$@\"", "sh"),
                             web=policy("web", cpus="1", bind="set"))
        self.expect(web, "1")
        daemon.ctl("measure")
        daemon.stop()
        self.at(web, self.everywhere)

    def test_in_a_unit_of_its_own_where_the_service_manager_listens_for_one(self):
        daemon = self.daemon({"measure": {"duration": "30s", "bytes": "50M"}})
        listener = self.stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(daemon.folder / "run/measure"))
        listener.listen()

        def serve():
            """As affinity-measure.socket does; the unit's program."""
            connection, _ = listener.accept()
            with connection:
                return self.spawn(PROGRAMS["ttcp"], "--request", stdin=connection, stdout=connection)
        daemon.ctl("measure", "--no-block")
        serve()
        self.assertEqual(("done", 50_000_000), (self.outcome(daemon)["outcome"], records(daemon)[0]["bytes"]))
        daemon.settings(measure={"duration": "30s"})
        daemon.ctl("reload")
        for end in ("the program", "the daemon"):
            daemon.ctl("measure", "--no-block")
            program = serve()
            streams = wait_for(lambda: len(children(program.pid)) == 2 and children(program.pid), "its streams run")
            self.assertEqual([], children(daemon.process.pid))
            if end == "the program":
                program.end()
                self.assertIn("without a report", wait_for(lambda: [one for one in records(daemon) if one["outcome"] == "failed"], "it failed")[0]["reason"])
            else:
                daemon.kill()
                program.process.wait(60)
            self.gone(streams)


class Links(Net):
    PLAIN = True  # it starts affinity-ttcp of its own build
    def test_an_interface_that_is_unplugged_meanwhile(self):
        nic = self.pair()
        daemon = self.inside({"measure": {"duration": "60s", "target": "10.99.0.2:5001"}})
        self.spawn(*self.far.command(PROGRAMS["ttcp"], "--sink", "--listen", "*", "--idle-exit", "0"))
        wait_for(lambda: ":5001" in self.far.run("ss", "-Hltn"), "the far end waits for connections")
        daemon.ctl("measure", "--no-block")
        sent = f"/sys/class/net/{nic}/statistics/tx_bytes"
        wait_for(lambda: int(self.near.run("cat", sent)) > 10_000_000, "bytes are on their way")
        self.near.ip("link", "del", nic)
        wait_for(lambda: records(daemon), "the run is recorded")
        self.assertEqual("link_lost", records(daemon)[0]["outcome"])


class History(House):
    PLAIN = True  # it starts affinity-ttcp of its own build
    def test_a_damaged_one_is_set_aside(self):
        daemon = self.daemon({"measure": {"duration": "1s", "bytes": "1M"}}, start=False)
        (daemon.folder / "state").mkdir()
        (daemon.folder / "state/history.db").write_bytes(b"no database" * 1000)
        daemon.start()
        self.assertIn("history could not be used", daemon.text())
        self.assertEqual(1, len(list((daemon.folder / "state").glob("history.db.corrupt-*"))))
        daemon.ctl("measure")
        self.assertEqual("done", records(daemon)[0]["outcome"])

    def test_a_full_disk_costs_the_record_and_nothing_else(self):
        daemon = self.daemon({"measure": {"duration": "1s", "bytes": "1M"}}, start=False)
        state = daemon.folder / "state"
        state.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=256k,mode=755", "none", state, code=0)
        self.stack.callback(run, "umount", "-l", state)
        daemon.start()
        daemon.ctl("measure")
        with contextlib.suppress(OSError), open(state / "filler", "wb", buffering=0) as filler:
            while filler.write(b"x" * 4096):
                pass
        for _ in range(3):  # free space inside the file may hold one
            daemon.ctl("measure")
        self.assertIn("the measurement is not kept", daemon.text())
        (state / "filler").unlink()
        kept = len(records(daemon))
        daemon.ctl("measure")
        self.assertEqual(kept + 1, len(records(daemon)))


class Cost(House):
    """CPU time for each byte of a policy's traffic, from what the kernel counts anyway."""
    PLAIN = True  # it starts affinity-ttcp of its own build

    ALONE = True

    def test_the_cost_is_that_of_the_traffic(self):
        watched = policy(match={"comm": [self.name("ttcp"), self.name("parent")]}, affinity="none", nics=["lo"])
        daemon = self.daemon({"reconcile": "1s", "measure": {"duration": "1s"}}, watched=watched)
        shell, ttcp, told = self.bin / self.name("parent"), self.bin / self.name("ttcp"), self.bin / "report"
        shutil.copy("/bin/sh", shell)
        ttcp.symlink_to(PROGRAMS["ttcp"])
        # The kernel adds up the control group, with all that has ended in it.
        folder = group(self.stack, f"affinityd-{self.mark}")
        parent = self.spawn(shell, "-c", f"echo $$ > {folder}/cgroup.procs; until [ -e {told}.go ]; do sleep 0.1; done; '{ttcp}' --loopback --seconds 4 --json >{told}.new; mv {told}.new {told}; sleep 60")
        self.stack.callback(parent.end)
        wait_for(lambda: read(folder / "cgroup.procs"), "it lives there")
        daemon.later()  # the group counts from the first pass that sees it
        pathlib.Path(f"{told}.go").touch()
        wait_for(told.exists, "the run is over")
        active = json.loads(read(told))
        daemon.later()
        seen = wait_for(lambda: (lambda costs: costs and costs[0]["bytes"] >= active["bytes"] and costs[0])(daemon.status()["costs"]), "all bytes are seen")
        used = int(next(line for line in read(folder / "cpu.stat").splitlines() if line.startswith("usage_usec")).split()[1]) / 1e6
        ratio = seen["cpu_seconds_per_gb"] * seen["bytes"] / 1e9 / used
        report(f"passive cost {seen['cpu_seconds_per_gb']:.3f} CPU s/GB of {seen['bytes'] / 1e9:.1f} GB; {ratio:.2f} of the CPU time that was used")
        self.assertAlmostEqual(1, ratio, delta=0.15)
        daemon.write("watched", watched | {"affinity": "process"})  # the period ends, and is kept
        past = wait_for(lambda: records(daemon, "passive"), "the cost before the change is in the history")[0]
        self.assertEqual(("lo", "none", "watched"), (past["path"], past["model"], past["policies"]))
        daemon.stop()
        daemon.start()
        before = wait_for(lambda: daemon.status()["costs"] and daemon.status()["costs"][0]["before"], "the next daemon knows it")
        self.assertEqual(("none", past["bytes"]), (before["model"], before["bytes"]))
