# SPDX-License-Identifier: Apache-2.0
"""`affinityctl try` and `keep`: a policy is tried for a while, and goes back by itself whatever ends meanwhile."""
import fcntl
import json
import os
import random
import select
import signal
import socket
import subprocess
import termios
import threading
import time

from house import EVERYWHERE, PROGRAMS, House, allowed, cpus, document, group, measured, policy, read, report, run, wait_for
from machines import OnMachine

SHORTEST = 10  # seconds; without the policy and with it in turn, two seconds each
LATEST = 20  # after the end, all is back; with the start of affinityctl


class Trials(House):
    APART = LONG = True  # each lasts ten seconds

    def setUp(self):
        super().setUp()
        self.tested = self.daemon()

    def file(self, name="web", **keys):
        """A policy file beside those of the daemon."""
        path = self.bin / f"{name}.yaml"
        path.write_text(document(**self.own(policy(name, bind="set", settle=0, **keys))), encoding="utf-8")
        return path

    @staticmethod
    def seconds_of(program):
        user, system = read(f"/proc/{program.pid}/stat").rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def start(self, path, *words, length=SHORTEST):
        end = time.monotonic() + length
        self.tested.ctl("try", path, "--for", f"{length}s", "--no-block", *words)
        return end

    def trials(self):
        return {trial["policy"]: trial for trial in self.tested.status()["trials"]}

    def files(self):
        folder = self.tested.folder / "run/trials"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def is_back_by(self, end, program, mask=EVERYWHERE):
        """The trial lasts until its end, and the task has its own mask soon after it."""
        wait_for(lambda: not self.files(), "no file is left")
        self.assertGreater(time.monotonic(), end - 1, "it went back too early")
        wait_for(lambda: cpus(allowed(program.pid)) == cpus(mask), f"{program.pid} has {mask} again")
        self.assertLess(time.monotonic(), end + LATEST, "it went back too late")

    def test_a_name_is_the_admins_own_file_before_the_shipped_example(self):
        tried, programs = {}, {name: self.program(name) for name in ("web", "other")}
        self.tested.write("web", document(**self.own(policy("web", cpus="0", bind="set", settle=0))))
        self.expect(programs["web"], "0")
        for name in programs:
            example = document(**self.own(policy(name, cpus="1", bind="set", settle=0)))
            script = f'mount -t tmpfs none /usr/share && mkdir -p /usr/share/affinityd/examples && cat >/usr/share/affinityd/examples/{name}.yaml && exec "$@"'
            words = ["unshare", "--mount", "sh", "-c", script, "sh", PROGRAMS["affinityctl"], "--runtime-dir", self.tested.folder / "run"]
            self.assertIn("'actions': []" if name == "web" else "'to': '1'", str(run(*words, "plan", name, "--json", input=example, code=0).json))
            run(*words, "try", name, "--for", "10s", "--no-block", input=example, code=0)
            tried[name] = (self.tested.folder / f"run/trials/{name}.yaml").read_text(encoding="utf-8")
        self.assertIn('cpus: "0"', tried["web"])
        self.assertIn('cpus: "1"', tried["other"])

    def test_what_is_kept_too_late_for_its_trial_is_installed_and_said_so(self):
        web, late = self.program("web"), self.bin / "late"
        self.start(self.file(cpus="0"), length=600)
        late.mkdir()
        door = self.stack.enter_context(socket.socket(socket.AF_UNIX))
        door.bind(str(late / "control"))
        door.listen()

        def pass_on(caller):
            """To the daemon; its trial ends before it hears that it is kept."""
            with caller, socket.socket(socket.AF_UNIX) as daemon:
                daemon.connect(str(self.tested.folder / "run/control"))
                while ready := select.select([caller, daemon], [], [])[0]:
                    for one in ready:
                        said = one.recv(65536)
                        if not said:
                            return
                        if b"EndTrial" in said:
                            self.tested.ctl("try", "web", "--back")
                        (daemon if one is caller else caller).sendall(said)

        def serve():
            while True:
                try:
                    pass_on(door.accept()[0])
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        said = run(PROGRAMS["affinityctl"], "--runtime-dir", late, "keep", "web", code=0).out
        self.assertIn("web.yaml is written", said)
        self.assertIn("had ended by then", said)
        self.expect(web, "0")

    def test_history_keeps_the_verdict_with_figures(self):
        web, other = self.program("web"), self.program("other")
        for thread in ("one", "two"):
            web.busy(web.thread(thread))
        other.busy(other.thread("busy"))
        if folder := group(self.stack, f"affinityd-{self.mark}"):  # in which others run, too
            for program in (web, other):
                self.stack.callback(program.end)
                (folder / "cgroup.procs").write_text(str(program.pid), encoding="ascii")
        began, used = time.monotonic(), self.seconds_of(web)
        answer = self.tested.ctl("try", self.file(cpus="0"), "--for", "20s", "--json", code=(0, 3)).json
        used = (self.seconds_of(web) - used) / (time.monotonic() - began)
        self.assertNotEqual("better", answer["verdict"], answer)  # two busy threads on one CPU wait longer
        self.assertTrue(answer["sentence"].startswith(answer["verdict"]), answer)
        figures = {figure["name"]: figure for figure in answer["figures"]}
        waiting = figures["waiting for a CPU, per second"]
        self.assertTrue(waiting["before"] and waiting["after"]["estimate"] > 100, waiting)
        taken = figures["CPU time per second"]
        counted = (taken["before"]["estimate"] + taken["after"]["estimate"]) / 2
        report(f"CPU time per second of a program in a group of another's, too: {counted:.2f} s, by the kernel {used:.2f} s")
        self.assertLess(abs(counted - used), 0.3 * used)
        records = self.tested.ctl("history", "--kind", "trial", "--json").json["records"]
        self.assertEqual([("web", f"went back; {answer['sentence']}")], [(record["path"], record["reason"]) for record in records])
        self.assertIn(answer["sentence"], self.tested.text())

    def test_it_goes_back_by_itself(self):
        web = self.program("web")
        end = self.start(self.file(cpus="0"))
        self.at(web, EVERYWHERE)
        trial = self.trials()["web"]
        self.assertEqual((SHORTEST, None), (trial["seconds"], trial["replaces"]))
        self.assertTrue(0 < trial["seconds_left"] <= SHORTEST, trial)
        self.assertIn("affinityctl try web --back", self.tested.ctl("status").out)
        self.expect(web, "0")
        self.assertGreater(self.tested.explain(web.pid)["trial_seconds_left"], 0)
        self.assertIn("is on trial", self.tested.ctl("explain", web.pid).out)
        self.is_back_by(end, web)
        self.assertEqual({}, self.trials())
        self.assertIn("the trial of policy web is over: went back", self.tested.text())

    def test_it_goes_back_to_the_policy_of_its_name(self):
        self.tested.write("web", policy("web", cpus="1", bind="set", settle=0))
        web = self.program("web")
        self.expect(web, "1")
        # A kept mask would outlive the trial.
        end = self.start(self.file(cpus="0", on_stop="keep"))
        self.assertEqual(str(self.tested.policies / "web.yaml"), self.trials()["web"]["replaces"])
        self.expect(web, "0")
        self.is_back_by(end, web, "1")
        self.assertEqual(str(self.tested.policies / "web.yaml"), self.tested.policy("web")["file"])

    def test_back_ends_it_now(self):
        web = self.program("web")
        for keys in ({"cpus": "0"}, {"cpus": "0", "on_stop": "keep"}):
            self.start(self.file(**keys), length=60)
            self.expect(web, "0")
            self.tested.ctl("try", "web", "--back")
            self.at(web, EVERYWHERE)
            self.assertEqual([], self.files())
        self.tested.ctl("try", "web", "--back", code=1)

    def test_the_client_shows_it_until_its_end(self):
        web = self.program("web")
        path, begin = self.file(cpus="0"), time.monotonic()
        answer = self.tested.ctl("try", path, "--for", "10s", "--json")
        self.assertLess(abs(time.monotonic() - begin - SHORTEST), LATEST)
        self.assertEqual(("web", "went back", 0), tuple(answer.json[key] for key in ("policy", "outcome", "seconds_left")))
        self.assertIn("s left", answer.err)
        self.expect(web, EVERYWHERE)

    def test_it_goes_back_when_the_client_is_killed_or_interrupted(self):
        tried, gone = {}, {}
        for name, number, outcome in (("one", signal.SIGKILL, None), ("two", signal.SIGINT, "on trial"), ("three", signal.SIGHUP, "on trial")):
            program, path, end = self.program(name), self.file(name, cpus="0"), time.monotonic() + SHORTEST
            client = subprocess.Popen([PROGRAMS["affinityctl"], "--json", "--runtime-dir", self.tested.folder / "run", "try", path, "--for", "10s"],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            tried[name] = program, end
            while "s left" not in client.stderr.readline():
                self.assertIsNone(client.poll())
            client.send_signal(number)
            out = client.communicate(timeout=60)[0]
            if outcome and time.monotonic() < end:  # else a busy machine came here too late
                self.assertEqual((outcome, 0), (json.loads(out)["outcome"], client.returncode))
        for program, end in tried.values():
            if time.monotonic() < end - 5:  # as above
                self.expect(program, "0")

        def are_back():
            files = self.files()
            gone.update({name: time.monotonic() for name in tried if name not in gone and f"{name}.yaml" not in files})
            return len(gone) == len(tried)
        wait_for(are_back, "no file is left")
        for name, (program, end) in tried.items():
            self.assertTrue(end - 1 < gone[name] < end + LATEST, f"{name} went back {gone[name] - end:.1f} s after its end")
            self.expect(program, EVERYWHERE)

    def test_it_goes_back_when_the_daemon_was_killed(self):
        web = self.program("web")
        self.tested.write("web", policy("web", cpus="1", bind="set", settle=0))
        self.expect(web, "1")
        self.start(self.file(cpus="0"), length=600)  # its programs are watched as they are for the first part of that
        self.tested.kill()
        self.tested.start()
        self.stays(web, "1")
        self.tested.ctl("try", "web", "--back")
        self.tested.remove("web")
        self.expect(web, EVERYWHERE)
        for asleep in (1, SHORTEST):  # started again while it goes on, and after its end
            with self.subTest(asleep=asleep):
                end = self.start(self.file(cpus="0"))
                self.expect(web, "0")
                self.tested.kill()
                time.sleep(asleep)
                self.at(web, "0")
                self.tested.start()
                if asleep < SHORTEST:
                    self.is_back_by(end, web)
                else:
                    self.at(web, EVERYWHERE)
                    self.assertIn("ended while no daemon ran", self.tested.text())
                    self.assertEqual(([], {}), (self.files(), self.trials()))

    def test_a_boot_ends_it(self):
        """The times of its file are later than those since the boot, where a boot came between."""
        web = self.program("web")
        self.start(self.file(cpus="0"), length=60)
        self.expect(web, "0")
        self.tested.kill()
        path = self.tested.folder / "run/trials/web.yaml"
        head, _, text = path.read_text(encoding="utf-8").partition("\n")
        word, *times, own = head.split()
        path.write_text(" ".join([word, *(str(int(time) + 10**9) for time in times), own, "\n"]) + text, encoding="utf-8")
        for name, junk in (("junk", "no head\n"), ("cut", word), ("huge", f"{word} 1 {10**17} 0 \n" + text), ("back", f"{word} 3 2 0 \n" + text)):
            (path.parent / f"{name}.yaml").write_text(junk, encoding="utf-8")
        self.tested.start()
        self.at(web, EVERYWHERE)
        self.assertEqual(([], {}), (self.files(), self.trials()))

    def test_others_files_do_not_count(self):
        web = self.program("web")
        folder = self.tested.folder / "run/trials"
        self.tested.kill()
        now = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        (folder / "web.yaml").write_text(f"#affinityd-trial-2 {now - 3000} {now + 60000} 0 \n" + self.file(cpus="0").read_text(encoding="utf-8"), encoding="utf-8")
        self.tested.start()
        self.assertIn("policies on trial do not count", self.tested.text())
        self.stays(web, EVERYWHERE)

    def test_a_release_ends_it(self):
        self.tested.write("web", policy("web", cpus="1", bind="set", settle=0))
        web = self.program("web")
        self.expect(web, "1")
        for words in (("web",), ()):
            for is_placed in (False, True):
                with self.subTest(words=words, is_placed=is_placed):
                    self.start(self.file(cpus="0"), length=20)
                    if is_placed:
                        self.expect(web, "0")
                    self.tested.ctl("release", *words)
                    self.expect(web, EVERYWHERE)
                    self.assertEqual(({}, []), (self.trials(), self.files()))
                    self.tested.write("other", policy("other", cpus="1"))  # another policy is saved
                    wait_for(lambda: len(self.tested.status()["policies"]) == 2, "it counts")
                    self.stays(web, EVERYWHERE, 1 if is_placed else 4)  # it would be placed after four seconds
                    self.tested.remove("other")
                    self.tested.ctl("apply")
                    self.expect(web, "1")

    def test_what_is_not_in_force_is_not_judged(self):
        """Files that others can write to are refused, so the policy never comes into force."""
        web = self.program("web")
        self.start(self.file(cpus="0"), length=60)
        self.tested.policies.chmod(0o777)
        time.sleep(12)
        self.at(web, EVERYWHERE)
        self.assertIn("rounds without the policy and 0 with it", self.trials()["web"]["sentence"])
        self.tested.policies.chmod(0o755)
        self.tested.ctl("reload")
        self.expect(web, "0")

    def test_a_stop_ends_it(self):
        web = self.program("web")
        self.start(self.file(cpus="0"), length=60)
        self.expect(web, "0")
        self.tested.stop()
        self.at(web, EVERYWHERE)
        self.assertEqual([], self.files())

    def test_a_file_with_errors_changes_nothing(self):
        self.tested.write("all", policy("web", cpus="1", bind="set", settle=0))
        web = self.program("web")
        self.expect(web, "1")
        bad = self.file(cpus="0")
        bad.write_text(bad.read_text(encoding="utf-8") + "cpuz: 1\n", encoding="utf-8")
        answer = self.tested.ctl("try", bad, code=3)
        self.assertIn(f"{bad}:", answer.err)
        # Without the look of affinityctl, the daemon says the same in one line.
        fault = self.order("web", bad.read_text(encoding="utf-8"), "60")
        self.assertRegex(fault, r"^/\S+/web\.yaml:\d+:\d+: [^\n]*cpuz[^\n]*$")
        good = self.file(cpus="0").read_text(encoding="utf-8")
        for name, text, seconds, why in (("web", good, "9", "10 s to 24 h"), ("web", good, "86401", "10 s to 24 h"), ("web", good, "-1", "number"),
                                         ("../web", good, "60", "name"), ("a\nb", good, "60", "name"), ("", good, "60", "name"),
                                         ("web", "", "60", "no policy"), ("web", "[" * 10000, "60", ":"), ("web", "x" * (1 << 20) + "x", "60", "1 MiB")):
            self.assertIn(why, self.order(name, text, seconds), name)
        self.assertEqual(({}, []), (self.trials(), self.files()))
        self.at(web, "1")
        for name in ("nosuch", self.bin / "nosuch.yaml"):
            self.tested.ctl("try", name, code=1)

    def order(self, *words):
        """The fault of a call of Try."""
        is_error, _, text = self.tested.call("Try", *words)
        self.assertTrue(is_error, text)
        return text

    def test_one_at_a_time_and_policy(self):
        self.start(self.file(cpus="0"), length=60)
        self.assertIn("on trial already", self.tested.ctl("try", self.bin / "web.yaml", "--no-block", code=1).err)
        for number in range(7):
            self.start(self.file(f"web{number}", cpus="0"), length=60)
        self.assertIn("8 policies are on trial", self.tested.ctl("try", self.file("last"), "--no-block", code=1).err)
        self.assertEqual(8, len(self.trials()))

    def test_a_released_policy_is_not_tried(self):
        self.tested.write("web", policy("web", cpus="1", bind="set"))
        wait_for(lambda: self.tested.status()["policies"], "the policy counts")
        self.tested.ctl("release", "web")
        self.assertIn("released by hand", self.tested.ctl("try", self.file(cpus="0"), code=1).err)

    def test_keep_installs_it_without_a_gap(self):
        self.tested.write("web", policy("web", cpus="1", bind="set", settle=0))
        web = self.program("web")
        self.expect(web, "1")
        path, own = self.file(cpus="0"), self.tested.policies / "web.yaml"
        self.start(path, length=600)
        self.expect(web, "0")
        seen, is_over = set(), threading.Event()

        def look():
            while not is_over.is_set():
                seen.add(allowed(web.pid))
                time.sleep(0.001)
        looking = threading.Thread(target=look)
        looking.start()
        try:
            self.tested.ctl("keep")
            self.assertEqual(path.read_bytes(), own.read_bytes())
            self.assertEqual({}, self.trials())
            time.sleep(5)
        finally:
            is_over.set()
            looking.join()
        self.assertEqual({"0"}, seen)
        self.assertEqual(str(own), self.tested.policy("web")["file"])
        self.tested.ctl("keep", code=1)

    def test_keep_does_not_write_over_a_newer_file(self):
        self.tested.write("web", policy("web", cpus="1", bind="set", settle=0))
        path, own = self.file(cpus="0"), self.tested.policies / "web.yaml"
        self.start(path, length=60)
        own.write_text(own.read_text(encoding="utf-8") + "# theirs\n", encoding="utf-8")
        self.assertIn("--force", self.tested.ctl("keep", "web", code=1).err)
        self.assertIn("# theirs", own.read_text(encoding="utf-8"))
        self.assertIn("web", self.trials())
        self.tested.ctl("keep", "web", "--force")
        self.assertEqual(path.read_bytes(), own.read_bytes())

    def test_its_text_is_no_last_good_version(self):
        """A file that gets errors meanwhile leaves its own last version in force, and not the one that was tried."""
        self.tested.write("web", policy("web", cpus="1", bind="set", settle=0))
        web = self.program("web")
        self.expect(web, "1")
        self.start(self.file(cpus="0"), length=60)
        self.tested.ctl("reload")
        (self.tested.policies / "web.yaml").write_text("version: 1\ncpuz: 1\n", encoding="utf-8")
        self.tested.ctl("try", "web", "--back")
        self.at(web, "1")
        self.tested.kill()
        self.tested.start()
        self.at(web, "1")

    def test_what_is_only_checked_is_no_last_good_version(self):
        """A text is refused while a file is new and does not count yet."""
        self.tested.write("web", policy("web", cpus="1", bind="set", settle=0))
        copy = self.tested.folder / "state/last-good/web.yaml"
        wait_for(lambda: copy.exists(), "it is in force")
        in_force = copy.read_text(encoding="utf-8")
        self.tested.write("web", policy("web", cpus="0", bind="set", settle=0))
        self.order("other", "version: 1\ncpuz: 1\n", "60")
        after = copy.read_text(encoding="utf-8")
        self.assertTrue(after == in_force or self.tested.text().count("reloading") > 1, "the new text is kept before it is in force")

    def test_keep_says_where_the_daemon_cannot_read_what_it_wrote(self):
        web = self.program("web")
        self.start(self.file(cpus="0"), length=60)
        self.expect(web, "0")
        self.tested.policies.chmod(0o777)  # no policies are read from there
        said = self.tested.ctl("keep", "web", code=1).text
        self.assertIn("web.yaml is written, but the daemon does not read it: ", said)
        self.assertNotIn("had ended by then", said)
        self.tested.policies.chmod(0o755)
        self.tested.ctl("apply")
        self.expect(web, "0")

    def test_a_policy_without_effect_is_compared_with_the_one_that_it_replaces(self):
        web = self.program("web")
        self.tested.write("web", document(**self.own(policy("web", cpus="0", bind="set", settle=0))))
        self.expect(web, "0")
        self.start(self.file(affinity="none"), length=60)
        wait_for(lambda: self.trials()["web"]["seconds_until_placed"] == 0, "it has its turn")
        wait_for(lambda: self.trials()["web"]["seconds_until_placed"] > 0, "its turn ends", patience=50)

    def test_a_reload_that_fails_at_the_end_leaves_nothing_behind(self):
        web = self.program("web")
        end = self.start(self.file(cpus="0"))
        self.expect(web, "0")
        self.tested.policies.chmod(0o777)  # no policies are read from there
        self.is_back_by(end, web)
        self.tested.policies.chmod(0o755)
        self.tested.ctl("reload")
        self.assertEqual([], self.tested.status()["policies"])


class Interrupts(OnMachine):
    def test_interrupts_and_steering_go_back(self):
        irqs = self.nic("eth0", 3)
        self.set_irq(irqs[0], "1,3")
        self.before[irqs[0]] = {1, 3}
        maps = [self.machine.root / f"sys/class/net/eth0/queues/tx-{queue}/xps_cpus" for queue in range(3)]
        before = [one.read_text(encoding="ascii") for one in maps]
        daemon = self.acting()
        path = self.bin / "nic.yaml"
        path.write_text(document(version=1, affinity="irq", nics=["eth0"]), encoding="utf-8")
        daemon.ctl("try", path, "--for", "10s", "--no-block")
        self.originals()
        self.apart(irqs)
        self.originals()
        wait_for(lambda: [int(one.read_text(encoding="ascii"), 16) for one in maps] == [int(one, 16) for one in before], "each map is as before")


class Chaos(House):
    LONG = True
    PLAIN = True  # its minutes are those of the clock; the other trials run with sanitizers
    TRIALS = int(os.environ.get("AFFINITYD_TRIALS", "3"))

    def test_whatever_is_killed_it_goes_back(self):
        """The client, its terminal or the daemon is killed at any moment of a trial, and the daemon is started again two seconds later, as systemd does it.
        AFFINITYD_TRIALS: how many trials."""
        seed = random.randrange(10**6)
        dice = random.Random(seed)
        slowest, killed = 0.0, {"client": 0, "daemon": 0, "terminal": 0}
        affinityd = self.daemon(web=policy("web", cpus="1", bind="set", settle=0))
        path = self.bin / "web.yaml"
        path.write_text(document(**self.own(policy("web", cpus="0", bind="set", settle=0))), encoding="utf-8")
        web, other = self.program("web"), self.program("other", first_mask="1")
        self.expect(web, "1")
        for number in range(self.TRIALS):
            near, far = os.openpty()
            client = subprocess.Popen([PROGRAMS["affinityctl"], "--runtime-dir", affinityd.folder / "run", "try", path, "--for", "10s"], stdin=far, stdout=far,
                                      stderr=far, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
            os.close(far)
            end = time.monotonic() + SHORTEST
            time.sleep(dice.random() * (SHORTEST + 1))
            victim = dice.choice(("client", "daemon", "daemon", "terminal"))
            killed[victim] += 1
            if victim == "client":
                client.kill()
            elif victim == "terminal":  # as when ssh(1) ends
                os.close(near)
            else:
                affinityd.kill()
                time.sleep(2)
                affinityd.start()
            time.sleep(max(0.0, end - time.monotonic()))
            taken = measured(lambda: cpus(allowed(web.pid)) == {1}, f"trial {number} of seed {seed} went back after {victim} was killed")
            slowest = max(slowest, taken)
            self.assertLess(taken, LATEST, f"trial {number} of seed {seed}: {victim}")
            wait_for(lambda: not list((affinityd.folder / "run").glob("trials/*")), "no file is left")
            self.at(other, "1")
            client.kill()
            client.wait()
            if victim != "terminal":
                os.close(near)
        affinityd.stop()
        self.at(web, EVERYWHERE)
        self.at(other, "1")
        report(f"{self.TRIALS} trials, {killed} killed: each went back, at most {slowest:.2f} s after its end")
