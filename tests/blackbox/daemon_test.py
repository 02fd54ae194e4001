# SPDX-License-Identifier: Apache-2.0
"""The daemon itself: start, signals, a second one, a full disk, its log, its bus. (undo_test.py: what a stop or a kill leaves.)"""
import contextlib
import fcntl
import os
import signal
import subprocess

from house import House, masks, policy, run, wait_for
from recorded import Recorded

WEB = policy("web", cpus="0", bind="set", settle=0)


class Start(House):
    def held(self, daemon):
        """Starts it, held before its first line of the log, which does not fit into the pipe; a function that lets it go on."""
        read_end, write_end = os.pipe()
        self.stack.callback(os.close, read_end)
        os.write(write_end, b"\n" * fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096))
        (daemon.folder / "run/lock").unlink(missing_ok=True)
        daemon.process = subprocess.Popen(["env", "--default-signal=HUP,INT,TERM", *daemon.command()], stderr=write_end, stdin=subprocess.DEVNULL)
        os.close(write_end)
        wait_for((daemon.folder / "run/lock").exists, "the daemon starts")

        def go():
            fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, 1 << 20)
            os.read(read_end, 4096)
        return go

    def test_a_hangup_during_the_start_does_not_end_it(self):
        web = self.program("web")
        daemon = self.daemon(start=False, web=WEB)
        go = self.held(daemon)
        daemon.process.send_signal(signal.SIGHUP)
        go()
        self.expect(web, "0")
        self.assertIsNone(daemon.process.poll())
        daemon.stop()
        self.at(web, self.everywhere)

    def test_a_termination_during_the_start_puts_back_what_one_before_had_changed(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                self.fresh()
                web = self.program("web")
                daemon = self.daemon(web=WEB)
                self.expect(web, "0")
                daemon.kill()
                go = self.held(daemon)
                daemon.process.send_signal(number)
                go()
                self.assertEqual(0, daemon.process.wait(timeout=60))
                self.at(web, self.everywhere)

    def test_a_second_one_in_the_same_place_is_refused_and_the_first_goes_on(self):
        daemon = self.daemon(web=WEB)
        self.assertIn("runs here already", run(*daemon.command(), code=4).err)
        self.assertEqual(1, len(daemon.status()["policies"]), "the first goes on")

    def test_a_recorded_machine_only_in_a_dry_run(self):
        daemon = self.daemon(start=False, arguments=["--root", "/tmp"])
        self.assertIn("--dry-run", run(*daemon.command(), code=2).err)

    def test_a_dry_run_changes_nothing(self):
        web = self.program("web")
        daemon = self.daemon(arguments=["--dry-run"], web=WEB)
        self.assertEqual([(web.pid, "0")], [(action["tid"], action["to"]) for action in daemon.plan()])
        self.stays(web, self.everywhere)


class Disks(House):
    def test_a_change_that_cannot_be_written_down_is_not_done(self):
        web, late = self.program("web"), self.program("late")
        for number in range(240):
            late.thread(f"thread-{number}")
        daemon = self.daemon(start=False, web=WEB, late=policy("late", cpus="0", bind="set"))
        place = daemon.folder / "run"
        place.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=16k,nr_inodes=16,mode=755", "none", place, code=0)
        self.stack.callback(run, "umount", "-l", place)
        late.rename(self.name("nothing"))
        daemon.start()
        self.expect(web, "0")
        with contextlib.suppress(OSError), (place / "ballast").open("wb", buffering=0) as file:
            for _ in range(1024):
                file.write(b"x" * 4096)
        late.rename(self.name("late"))
        wait_for(lambda: "nothing is changed until it can be written" in daemon.text(), "the daemon says so")
        self.assertIn(self.everywhere, masks(late.pid).values(), "what was not written down was not done")
        daemon.stop()
        for program in (web, late):
            self.expect_threads(program, self.everywhere)

    def test_a_stop_restores_all_though_the_runtime_folder_was_removed(self):
        web = self.program("web")
        daemon = self.daemon(web=WEB)
        self.expect(web, "0")
        run("rm", "-r", daemon.folder / "run", code=0)
        daemon.stop()
        self.at(web, self.everywhere)


class Logs(House):
    def test_a_reader_of_the_log_that_ends_does_not_end_the_daemon(self):
        web = self.program("web")
        daemon = self.daemon(start=False, web=WEB)
        daemon.process = subprocess.Popen(daemon.command(), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.expect(web, "0")
        daemon.process.stderr.close()
        daemon.process.send_signal(signal.SIGHUP)  # of which it writes a line
        daemon.write("web", WEB | {"cpus": "1"})
        self.expect(web, "1")
        daemon.stop()

    def test_each_first_placement_once(self):
        web = self.program("web")
        for _ in range(2):
            web.thread()
        daemon = self.daemon(web=WEB)
        self.expect_threads(web, "0")
        daemon.passes(2)
        self.assertEqual(1, daemon.text().count("policy web: 3 threads placed"), daemon.text())
        self.assertEqual(1, daemon.text().count(" placed"), daemon.text())


class Bus(House):
    """A message bus of the test's own."""

    CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><listen>unix:path={socket}</listen><auth>EXTERNAL</auth><policy context="default">
<allow send_destination="*" eavesdrop="false"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/></policy></busconfig>
"""

    def begin(self):
        bus = self.spawn("dbus-daemon", f"--config-file={self.bin}/bus.conf", "--nofork", "--nopidfile")
        wait_for((self.bin / "bus").exists, "the bus listens")
        return bus

    def ask(self):
        done = run("env", self.address, "busctl", "--system", "--json=short", "call", "org.affinityd", "/org/affinityd", "org.affinityd.Manager1", "GetStatus")
        return done.json["data"][0] if done.code == 0 else None

    def test_a_bus_that_is_restarted_twice_is_joined_again_and_the_log_says_so(self):
        (self.bin / "bus.conf").write_text(self.CONFIG.format(socket=self.bin / "bus"), encoding="utf-8")
        self.address = f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={self.bin}/bus"
        bus = self.begin()
        daemon = self.daemon(namespace=("env", self.address), web=WEB)
        for times in (1, 2):
            wait_for(self.ask, "the daemon answers on the bus")
            bus.end()
            (self.bin / "bus").unlink()
            wait_for(lambda: daemon.text().count("not on the system bus") == times, "the loss is told")
            self.assertEqual(daemon.process.pid, daemon.status()["pid"], "its own socket needs no bus")
            bus = self.begin()
            wait_for(lambda: daemon.text().count("on the system bus as org.affinityd") == times + 1, "the return is told")


class Hotplug(House):
    def test_a_cpu_that_goes_and_comes_changes_the_plan_at_once(self):
        """The kernel's event is a real one, which it repeats on request; the machine is a recorded one."""
        machine = Recorded(self.bin / "root", cpus=4)
        daemon = self.daemon({"reconcile": "1h"}, ["--root", str(machine.root), "--dry-run"], idle=policy("idle", cpus="all - 0", spread="cpu", bind="cpu"))
        for online, wanted in (("0-3", "1-3"), ("0-1,3", "1,3"), ("0-3", "1-3")):
            machine.put("sys/devices/system/cpu/online", online)
            with open("/sys/devices/system/cpu/cpu0/uevent", "w", encoding="ascii") as event:
                event.write("change")
            wait_for(lambda: daemon.policy("idle")["cpus"] == wanted, f"CPUs are {wanted}")


class Journals(House):
    """The next daemon knows what was changed, also where the file that says so is damaged. (undo_test.py has the ends themselves.)"""

    def placed(self, **keys):
        web = self.program("web")
        for _ in range(2):
            web.thread()
        daemon = self.daemon(web=WEB | keys)
        self.expect_threads(web, "0")
        return web, daemon

    def test_a_torn_line_of_the_journal_is_dropped_and_the_others_are_restored(self):
        web, daemon = self.placed()
        daemon.kill()
        with (daemon.folder / "run/undo.journal").open("ab") as file:
            file.write(b"task\t1\t2\t3\tinit\theld\t0-1\t0\t0\tdemo\t00000000\nirq\tgarb")
        daemon.start()
        daemon.stop()
        self.expect_threads(web, self.everywhere)

    def test_a_journal_that_is_a_pipe_a_folder_or_garbage_keeps_no_task_from_its_own_mask(self):
        for what, spoil in (("a pipe", lambda path: (path.unlink(), os.mkfifo(path))),
                            ("a folder", lambda path: (path.unlink(), path.mkdir())), ("garbage", lambda path: path.write_bytes(os.urandom(4096)))):
            with self.subTest(what):
                self.fresh()
                web, daemon = self.placed()
                daemon.kill()
                spoil(daemon.folder / "run/undo.journal")
                daemon.start()
                if what.startswith("a "):
                    self.assertIn("undo journal", daemon.ctl("status", code=None).text)
                daemon.stop()
                self.expect_threads(web, self.everywhere)

    def test_kept_by_one_and_restored_by_a_later_one(self):
        web, daemon = self.placed(on_stop="keep")
        daemon.stop()
        self.expect_threads(web, "0")
        daemon.write("web", WEB | {"cpus": "1"})
        daemon.start()
        self.expect_threads(web, "1")
        daemon.stop()
        self.expect_threads(web, self.everywhere)

    def test_an_orphan_born_while_no_daemon_runs_and_a_stranger_with_the_same_mask(self):
        web = self.program("web")
        daemon = self.daemon(web=WEB)
        self.expect(web, "0")
        daemon.kill()
        orphan = web.spawn("sleep", 600)
        stranger = self.spawn("taskset", "-c", "0", "sleep", 600, start_new_session=True)
        self.expect(stranger, "0")
        web.process.kill()
        web.process.wait()
        daemon.start()
        self.expect(orphan, self.everywhere)
        daemon.stop()
        self.at(orphan, self.everywhere)
        self.at(stranger, "0")
