# SPDX-License-Identifier: Apache-2.0
"""Policy files and settings: which version is in force, at the start, after a change, and after the next start; and where it is said."""
import os
import pathlib
import shutil
import signal
import socket

from house import House, affinityctl, document, policy, run, wait_for

WEB = policy("web", cpus="0", bind="set", settle=0)
MOVED = WEB | {"cpus": "1"}
BAD = "version: 1\nmatch: {comm: web}\ncpuz: \"0\"\n"
IDLE = policy("idle", cpus="0")
STRANGER = 65534
SHIPPED = pathlib.Path(__file__).resolve().parents[2] / "policies"


def faults(daemon):
    return [(os.path.basename(fault["file"]), fault["line"], bool(fault["in_force"])) for fault in daemon.status()["load"]["faults"]]


class Checks(House):
    """A file at fault is refused with its place by `check`, by the start, by a reload, and in `status`."""

    FAULTS = {
        "unknown key": ("version: 1\nmatch: {comm: a}\ncpu: \"1\"\n", ":3:1:", "cpus"),
        "CPU that does not exist": ("version: 1\nmatch: {comm: a}\ncpus: \"4000\"\n", ":3:", "4000"),
        "bad type": ("version: 1\nmatch: {comm: a}\nexclusive: maybe\n", ":3:", "true"),
        "syntax": ("version: 1\nmatch: {comm: a\n", ":", ""),
        "repeated key": ("version: 1\nmatch: {comm: a}\nmatch: {comm: b}\n", ":3:1:", "match"),
        "no match": ("version: 1\ncpus: \"0\"\n", ":", "match"),
    }

    def test_each_fault(self):
        for what, (text, place, hint) in self.FAULTS.items():
            with self.subTest(what):
                self.fresh()
                daemon = self.daemon(bad=text)
                path = str(daemon.policies / "bad.yaml")
                checked = affinityctl("check", path, code=3).text
                self.assertIn(path + place, checked)
                self.assertIn(hint, checked)
                self.assertIn(path + place, daemon.text())
                self.assertIn(path + place, daemon.ctl("reload", code=1).text)
                self.assertIn(path, daemon.ctl("status", code=None).text)
                self.assertEqual([], daemon.status()["policies"])

    def test_settings(self):
        path = self.bin / "affinityd.yaml"
        for text, code, said in (("version: 1\nreconcile: 10\n", 0, "0 errors"), ("version: 1\nreconcile: 10y\n", 3, ":2:12: error: "),
                                 ("version: 1\nrediel: 1\n", 3, ":2:1: error: ")):
            path.write_text(text, encoding="utf-8")
            self.assertIn(said, affinityctl("check", path, code=code).out)
            other = path.rename(self.bin / "source")
            self.assertIn(said, affinityctl("check", "--settings", other, code=code).out)

    def test_shipped_policies_are_good(self):
        for file in sorted(SHIPPED.glob("*.yaml")):
            with self.subTest(file.name):
                checked = affinityctl("--json", "check", file, code=None)
                self.assertEqual(0, checked.json["errors"], checked.text)
                self.assertNotIn("any user can start", checked.text)


class InForce(House):
    """Which version of a file counts."""

    def test_a_good_file_beside_a_bad_one(self):
        web = self.program("web")
        daemon = self.daemon(web=WEB, bad=BAD)
        self.expect(web, "0")
        self.assertEqual((False, [("bad.yaml", 3, False)]), (daemon.status()["load"]["ok"], faults(daemon)))
        self.assertIn("bad.yaml:3", daemon.ctl("status", code=3).out)
        daemon.write("bad", IDLE)
        wait_for(lambda: daemon.status()["load"]["ok"], "the mended file is read")
        self.assertNotIn("bad.yaml:3", daemon.ctl("status").out)

    def test_the_last_good_version_at_a_reload_and_at_the_next_start(self):
        web = self.program("web")
        daemon = self.daemon(web=WEB, idle=IDLE)
        self.expect(web, "0")
        daemon.write("web", BAD)
        said = daemon.ctl("reload", code=1).text
        self.assertIn(f"{daemon.policies / 'web.yaml'}:3:1: error: ", said)
        self.assertIn("its last good version stays in force", said)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(lambda: daemon.text().count("its last good version stays in force") >= 2, "SIGHUP was refused, too")
        self.at(web, "0")
        daemon.stop()
        self.at(web, self.everywhere)
        daemon.start()
        self.expect(web, "0")
        self.assertEqual([("web.yaml", 3, True)], faults(daemon))
        self.assertIn("last-good", daemon.ctl("explain", web.pid).out)
        daemon.write("web", MOVED)
        self.expect(web, "1")

    def test_the_last_good_version_where_none_can_be_written(self):
        """As on a full disk: a folder stands where the first copy would be."""
        web = self.program("web")
        daemon = self.daemon(web=WEB)
        self.expect(web, "0")
        for name in ("aaa", "web"):
            copy = daemon.folder / "state/last-good" / f"{name}.yaml"
            copy.unlink(missing_ok=True)
            copy.mkdir()
        daemon.write("web", MOVED)
        self.expect(web, "1")
        daemon.write("other", IDLE)
        wait_for(lambda: (daemon.folder / "state/last-good/other.yaml").is_file(), "the copy of another policy is written")
        daemon.write("web", BAD)
        wait_for(lambda: faults(daemon) == [("web.yaml", 3, True)], "the file with errors is told")
        self.stays(web, "1", 0.5)

    def test_a_last_good_version_that_is_not_what_was_written(self):
        def cut(folder):
            kept = folder / "web.yaml"
            kept.write_text(kept.read_text(encoding="utf-8").replace("bind", "cpus"), encoding="utf-8")
        for what, spoil in (("changed", cut), ("writable by others", lambda folder: os.chmod(folder, 0o777))):
            with self.subTest(what):
                self.fresh()
                web = self.program("web")
                daemon = self.daemon(web=WEB)
                self.expect(web, "0")
                daemon.stop()
                spoil(daemon.folder / "state/last-good")
                daemon.write("web", BAD)
                daemon.start()
                self.assertEqual([("web.yaml", 3, False)], faults(daemon))
                self.stays(web, self.everywhere, 0.5)

    def test_others_change_by_the_reload_that_one_file_makes_fail(self):
        web = self.program("web")
        daemon = self.daemon(web=WEB)
        self.expect(web, "0")
        daemon.write("broken", "version: 1\nmatch: {comm: [}\n")
        daemon.write("web", MOVED)
        self.assertIn("broken.yaml:2:", daemon.ctl("reload", code=1).text)
        self.expect(web, "1")
        daemon.remove("broken")
        self.assertIn("reloaded: 1 polic", daemon.ctl("reload").out)

    def test_files_that_come_change_and_go_count_by_themselves(self):
        web = self.program("web")
        daemon = self.daemon()
        for what, act, wanted in (("made", lambda: daemon.write("web", WEB), "0"), ("changed", lambda: daemon.write("web", MOVED), "1"),
                                  ("removed", lambda: daemon.remove("web"), self.everywhere),
                                  ("a link", lambda: (daemon.policies / "web.yaml").symlink_to(self.put("linked", WEB)), "0"),
                                  ("gone", lambda: daemon.remove("web"), self.everywhere)):
            with self.subTest(what):
                act()
                self.expect(web, wanted)

    def put(self, name, content):
        path = self.bin / f"{name}.yaml"
        path.write_text(document(**self.own(content)), encoding="utf-8")
        return path

    def test_a_folder_that_is_removed_and_made_again(self):
        web = self.program("web")
        daemon = self.daemon({"reconcile": "1s"}, web=WEB)
        self.expect(web, "0")
        shutil.rmtree(daemon.policies)
        daemon.later()
        daemon.policies.mkdir()
        daemon.write("web", MOVED)
        daemon.ctl("reload")
        self.expect(web, "1")

    def test_a_release_outlives_other_files_that_are_saved_but_not_its_own(self):
        web = self.program("web")
        daemon = self.daemon(web=WEB)
        self.expect(web, "0")
        daemon.ctl("release", "web")
        daemon.write("other", IDLE)
        wait_for(lambda: len(daemon.status()["policies"]) == 2, "the other one is in force")
        self.at(web, self.everywhere)
        self.assertEqual({"web": True, "other": False}, {one["name"]: one["released"] for one in daemon.status()["policies"]})
        daemon.write("web", MOVED)
        self.expect(web, "1")

    def test_a_released_policy_that_is_saved_unchanged_is_taken_up(self):
        web = self.program("web")
        daemon = self.daemon(web=WEB)
        self.expect(web, "0")
        daemon.ctl("release", "web")
        self.at(web, self.everywhere)
        daemon.write("web", WEB)
        self.expect(web, "0")

    def test_settings_are_read_again_and_ones_with_errors_change_nothing(self):
        daemon = self.daemon({"reconcile": "1h"}, web=WEB)
        daemon.settings(reconcile="1s")
        daemon.ctl("reload")
        daemon.later()
        daemon.settings(reconcile="no")
        said = daemon.ctl("reload", code=1).text
        self.assertIn("affinityd.yaml:2:", said)
        self.assertIn("the settings in force stay", said)
        daemon.later()
        self.assertIn("affinityd.yaml:2:", daemon.ctl("status", code=None).text)
        daemon.stop()
        run(*daemon.command(), code=78)


class Trust(House):
    """The daemon is root: it believes no file that others can write."""

    def test_a_policy_file_that_others_can_write_to_is_refused(self):
        web = self.program("web")
        daemon = self.daemon(start=False, web=WEB, group=IDLE, theirs=IDLE)
        os.chmod(daemon.policies / "group.yaml", 0o664)
        os.chown(daemon.policies / "theirs.yaml", STRANGER, STRANGER)
        daemon.start()
        self.expect(web, "0")
        self.assertEqual([("group.yaml", 0, False), ("theirs.yaml", 0, False)], faults(daemon))
        self.assertIn("its group can write to it: refused", daemon.text())
        self.assertIn("it belongs to user 65534, not to root: refused", daemon.text())

    def test_the_folder_of_policies_of_a_running_daemon(self):
        web = self.program("web")
        daemon = self.daemon(web=WEB)
        self.expect(web, "0")
        os.chmod(daemon.policies, 0o775)
        self.assertIn("its group can write to it", daemon.ctl("reload", code=1).text)
        self.at(web, "0")
        self.assertIn("its group can write to it", daemon.status()["load"]["refused"])

    def test_it_does_not_start_with_folders_that_others_can_write_to(self):
        cases = {"run": (0o775, 0), "state": (0o757, 0), "policies": (0o775, 0), "affinityd.yaml": (0o666, 0), ".": (0o755, STRANGER), "run/": (0o755, STRANGER)}
        for name, (mode, owner) in cases.items():
            with self.subTest(name):
                daemon = self.daemon(start=False, web=WEB)
                for folder in ("run", "state"):
                    (daemon.folder / folder).mkdir(mode=0o755)
                os.chmod(daemon.folder / name, mode)
                os.chown(daemon.folder / name, owner, owner)
                done = run(*daemon.command())
                self.assertIn(done.code, (1, 78), done.text)
                self.assertIn(str((daemon.folder / name).resolve()), done.err)


class Rights(House):
    """A daemon that something is taken from goes on with the rest, and says what helps."""

    def test_without_process_events_the_status_says_why_and_forgets_what_has_ended(self):
        web = self.program("web")
        daemon = self.daemon(namespace=("unshare", "--net", "--"), web=WEB)
        self.expect(web, "0")
        [problem] = [problem for problem in daemon.status()["problems"] if problem["subject"] == "process events"]
        self.assertIn("PrivateNetwork=", problem["hint"])
        web.end()  # no event tells it
        self.assertEqual((0, []), (daemon.policy("web")["processes"], daemon.status()["processes"]))


class ServiceManager(House):
    """The unit's Status= line (sd_notify)."""

    def test_errors_and_health(self):
        path = self.bin / "notify"
        notify = self.stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        notify.bind(str(path))
        notify.setblocking(False)
        seen = []

        def status():
            while True:
                try:
                    seen.extend(line for line in notify.recv(65536).decode().splitlines() if line.startswith("STATUS="))
                except BlockingIOError:
                    return seen[-1] if seen else ""
        daemon = self.daemon(start=False, namespace=("env", f"NOTIFY_SOCKET={path}"), web=WEB, bad=BAD)
        daemon.start()
        daemon.namespace = []
        wait_for(lambda: f"1 file has errors: {daemon.policies / 'bad.yaml'}:3:1" in status(), "the error is in the line")
        daemon.write("bad", IDLE)
        wait_for(lambda: status().startswith("STATUS=2 policies"), "the line of a healthy daemon")
