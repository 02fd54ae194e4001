# SPDX-License-Identifier: Apache-2.0
"""The words of the house are true: no file of others is written to, a verdict stands on figures, and a screen and its JSON say the same."""
import json
import os
import pathlib
import sys

from house import PROGRAMS, House, affinityctl, allowed, document, group, policy, run, set_mask, wait_for
from machines import OnMachine
from nets import Net
from recorded import Recorded

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from schema import faults  # noqa: E402


class Pictures(House):
    def draw(self, path, code):
        return run("timeout", "20", PROGRAMS["affinityctl"], "topology", "--svg", path, code=code)

    def test_only_a_regular_file_is_replaced(self):
        precious, link, pipe, picture = (self.bin / name for name in ("precious", "link.svg", "pipe.svg", "a.svg"))
        precious.write_text("precious", encoding="ascii")
        link.symlink_to(precious)
        os.mkfifo(pipe)
        other = self.bin / "other-name"
        picture.write_text("old", encoding="ascii")
        os.link(picture, other)
        for path in (link, pipe):
            with self.subTest(path.name):
                self.assertIn("not a regular file", self.draw(path, 1).text)
        self.assertEqual("precious", precious.read_text(encoding="ascii"))
        self.draw(picture, 0)
        self.assertIn("</svg>", picture.read_text(encoding="utf-8"))
        self.assertEqual("old", other.read_text(encoding="ascii"), "a new file takes the name")


class Check(House):
    def test_a_file_is_read_whatever_its_name(self):
        for name in ("web.yaml", "web.yaml.dpkg-new", "draft", "-"):
            for keys, code in ((policy("web", cpus="0"), 0), (policy("web", cpuz="0"), 3)):
                with self.subTest(name, code=code):
                    file = self.bin / name
                    file.write_text(document(**keys), encoding="utf-8")
                    words = f'"$0" check - < "{file}"' if name == "-" else f'"$0" check "{file}"'
                    said = run("sh", "-c", words, PROGRAMS["affinityctl"], code=code).out
                    self.assertIn("1 policy without errors" if code == 0 else "unknown key", said)

    def test_a_units_own_cpus_that_the_policy_replaces(self):
        name = f"{self.name('unit')}.service"
        folder, web = group(self.stack, name, "systemd"), self.program("web")
        (folder / "cgroup.procs").write_text(str(web.pid), encoding="ascii")
        unit = pathlib.Path("/run/systemd/system") / name
        made = [parent for parent in (unit.parent.parent, unit.parent) if not parent.exists()]
        unit.parent.mkdir(parents=True, exist_ok=True)
        for parent in made:
            self.stack.callback(parent.rmdir)
        self.stack.callback(unit.unlink)
        unit.write_text("[Service]\nCPUAffinity=0\n", encoding="ascii")
        file = self.bin / "web.yaml"
        for prior, told in (({}, True), ({"prior": "keep"}, False)):
            file.write_text(document(**policy(match={"unit": name}, cpus="1", **prior)), encoding="utf-8")
            self.assertEqual(told, f"{name} has CPUs of its own (CPUAffinity=0), which this policy replaces" in affinityctl("check", file).out)


class PlanOfAFile(House):
    def plan(self, cpus, code):
        file = self.bin / "claim.yaml"
        file.write_text(document(**policy(self.name("none"), cpus=cpus, exclusive="always") | {"version": 1}), encoding="utf-8")
        return affinityctl("--json", "plan", file, code=code).json, affinityctl("check", file, code=None).text

    def test_it_has_the_errors_of_check(self):
        plan, checked = self.plan(self.everywhere, 3)
        self.assertEqual(["'exclusive' on every online CPU leaves none to all other programs"], [one["message"] for one in plan["problems"]])
        self.assertIn(plan["problems"][0]["message"], checked)

    def test_it_tells_what_is_kept_off(self):
        program = self.program("bystander")
        plan, _ = self.plan("1", 0)
        self.assertEqual(["kept off CPU 1: exclusive of claim"], [one["reason"] for one in plan["actions"] if one.get("pid") == program.pid])


class DryRun(Net):
    """A dry run says what would be, and what is."""

    def test_a_dry_run_shows_threads_and_queues_as_they_would_be_and_changes_none(self):
        web, nic = self.program("web"), self.pair(0, queues=2)
        before = self.maps(nic)
        daemon = self.daemon({"reconcile": "1h"}, ["--dry-run"], self.near.command(), web=policy("web", cpus="1", bind="set", settle=0),
                             nic={"version": 1, "affinity": "irq", "nics": [nic]})
        wait_for(lambda: daemon.status()["last_pass_at"], "the first pass is over")
        status = daemon.status()
        thread = status["processes"][0]["threads"][0]
        self.assertEqual(("would change", self.everywhere, "1"), tuple(thread[key] for key in ("state", "present", "wanted")))
        self.assertEqual([(0, 1)], [(one["threads_in_place"], one["threads_wanted"]) for one in status["policies"] if one["name"] == "web"])
        self.assertLessEqual({"would change"}, {queue["state"] for queue in status["queues"]})
        self.assertLessEqual({problem["kind"] for problem in status["problems"]}, {"events"}, "of this namespace")
        said = daemon.ctl("status", code=None).out.splitlines()[0]
        self.assertNotIn("in place", said)
        self.assertRegex(said, "DRY RUN: nothing is changed; .*1 thread.* would be")
        self.assertLessEqual({web.pid} | {queue["queue"] for queue in status["queues"] if queue["state"] == "would change"}, {action.get("tid") or action["queue"] for action in daemon.plan()})
        self.assertIn("web: 1 thread would be placed", daemon.ctl("apply").out)
        self.assertEqual((before, self.everywhere), (self.maps(nic), allowed(web.pid)))
        set_mask(web.pid, "1")
        self.assertEqual("in place", daemon.status()["processes"][0]["threads"][0]["state"], "by itself")


class Health(House):
    """`health` and `problems` of the JSON, the headline and the exit status are one value."""

    def test_each_state(self):
        web = self.program("web")
        daemon = self.daemon({"reconcile": "1h"}, web=policy("web", cpus="1", bind="set", settle=0))
        self.expect(web, "1")
        rows = (("ok", None, None, lambda: None, lambda: None),
                ("settling", "settling", "drift", lambda: set_mask(web.pid, "0"), lambda: daemon.ctl("apply")),
                ("attention", "attention", "file", lambda: daemon.write("bad", "version: 1\nmatch: {comm: x}\ncpuz: 1\n"), lambda: daemon.remove("bad")))
        heads = {"ok": "all is in place", "settling": "needs no attention", "attention": "NEEDS ATTENTION"}
        for health, severity, kind, make, mend in rows:
            with self.subTest(health):
                wait_for(lambda: daemon.status()["health"] == "ok", daemon.status)
                daemon.calm()
                make()
                wait_for(lambda: daemon.status()["health"] == health, daemon.status)
                code = 3 if health == "attention" else 0
                problems = daemon.ctl("status", "--json", code=code).json["problems"]
                self.assertEqual([(severity, kind)] if kind else [], [(one["severity"], one["kind"]) for one in problems])
                said = daemon.ctl("status", code=code).out
                self.assertIn(heads[health], said.splitlines()[0])
                for one in problems:
                    self.assertIn(one["message"].split()[0], said)
                daemon.ctl("status", "--quiet", code=code)
                mend()


class OneVerdict(OnMachine):
    """The daemon judges, once: a reader of the bus, status, metrics and doctor say the same."""

    def test_the_bus_status_and_metrics_agree(self):
        web = self.program("web")
        daemon = self.daemon({"reconcile": "1h"}, web=policy("web", cpus="1", bind="set", settle=0))
        self.expect(web, "1")
        daemon.calm()
        seen = set()
        for change, name in ((lambda: None, ""), (lambda: set_mask(web.pid, "0"), "drift/web"), (lambda: daemon.write("bad", "version: 1\nmatch: {comm: x}\ncpuz: 1\n"), "file/bad"),
                             (lambda: daemon.ctl("acknowledge", "file/bad"), "file/bad")):
            change()
            wait_for(lambda name=name: name in [""] + [problem["name"] for problem in daemon.status()["problems"]], daemon.status)
            # A pass may come between two questions.
            said = wait_for(lambda: (lambda before, status, metrics, after: before == after and (before, status, metrics))
                            (self.bus(daemon), daemon.status(), daemon.ctl("metrics").out, self.bus(daemon)), "answers of one moment")
            (health, problems), status, metrics = said
            self.assertEqual((health, problems), (status["health"], status["problems"]))
            self.assertIn(f'affinityd_health{{health="{health}"}} 1', metrics)
            for problem in problems:
                self.assertIn(f'affinityd_problems{{kind="{problem["kind"]}",severity="{problem["severity"]}"}} 1', metrics)
            seen |= {health} | {problem["severity"] for problem in problems}
        self.assertLessEqual({"ok", "attention", "acknowledged"}, seen)

    def bus(self, daemon):
        status = json.loads(daemon.call("GetStatus")[2])
        return status["health"], status["problems"]

    def agree(self, daemon, kind):
        """Each finding of the kind is in status and in doctor, with the same words and gravity."""
        def told():
            status = daemon.status()
            return [one for one in status["problems"] + status["notes"] if one["kind"] == kind]
        found = wait_for(told, lambda: f"a finding {kind}: {daemon.status()['problems']}")
        doctor = daemon.ctl("doctor", "--json", code=None).json["findings"]
        ours = {(finding["sentence"].rpartition(": ")[2], finding["mend"], finding["severity"]) for finding in doctor if finding["id"] == kind}
        self.assertEqual({(one["message"].rpartition(": ")[2], one["hint"], "note" if one["severity"] == "note" else "warning") for one in found}, ours)
        needs = any(one["severity"] == "attention" for one in found)
        self.assertLessEqual(needs, daemon.ctl("doctor", code=(0, 3)).code == 3 == daemon.ctl("status", code=(0, 3)).code)

    def test_doctor_and_status_tell_of_cpus_of_a_unit(self):
        self.program("web", first_mask="0")
        self.agree(self.daemon(web=policy("web", cpus="1", bind="set")), "own-cpus")

    def test_doctor_and_status_tell_of_missing_process_events(self):
        self.agree(self.daemon(None, (), ("unshare", "-n"), web=policy("web", cpus="1")), "events")

    def test_doctor_and_status_tell_that_nothing_can_be_steered(self):
        words = ("setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin")
        self.agree(self.daemon(None, (), words, web=policy("web", affinity="full", nics="auto")), "steering")

    def test_doctor_and_status_tell_of_read_only_queues(self):
        self.nic()
        self.MORE = "mount -o remount,bind,ro /proc/irq && "
        self.agree(self.acting(nic={"version": 1, "affinity": "irq", "nics": ["eth0"]}), "refused")

    def test_doctor_and_status_tell_of_rps_that_no_policy_asks_for(self):
        self.nic(queues=4)
        self.machine.put("sys/class/net/eth0/queues/rx-1/rps_cpus", "f")
        self.agree(self.acting(), "rps-left")


class Fences(House):
    def test_check_and_status_tell_why_no_cpuset_holds_a_program(self):
        self.program("web")
        for made, words, hint in ((":", "unified cgroup hierarchy", "systemd.unified_cgroup_hierarchy=1"),
                                  ("touch /sys/fs/cgroup/cgroup.controllers", "in no unit", "service of systemd")):
            with self.subTest(words):
                script = f'mount --make-rprivate / && mount -t tmpfs none /sys/fs/cgroup && {made} && exec "$@"'
                daemon = self.daemon(None, (), ("unshare", "--mount", "--cgroup", "sh", "-c", script, "sh"), web=policy("web", cpus="1", means="cpuset"))
                problem = wait_for(lambda: next((one for one in daemon.status()["problems"] if one["kind"] == "unit"), None), daemon.status)
                self.assertIn(words, problem["message"])
                self.assertIn(hint, problem["hint"])
                told = daemon.ctl("check", "--json", daemon.policies).json["diagnostics"]
                self.assertIn((problem["message"], problem["hint"]), [(one["message"], one["hint"]) for one in told])
                daemon.stop()


class Models(House):
    def test_auto_is_one_word(self):
        daemon = self.daemon(web=policy("web", affinity="auto", cpus="1"))
        for verb in ("status", "policies"):
            self.assertRegex(daemon.ctl(verb, *("--policies", daemon.policies) * (verb == "policies")).out, r"(?m)^web( +0)? +auto +[-0] ")


class ExitStatuses(House):
    """0: as it should be; 1: not done; 2: wrong usage; 3: findings; 4: no daemon. (answers_test.py has those without a daemon.)"""

    def test_with_a_daemon(self):
        good, bad = (self.bin / name for name in ("good.yaml", "bad.yaml"))
        good.write_text(document(**policy(self.name("other"))), encoding="utf-8")
        bad.write_text("version: 1\nmatch: {comm: x}\ncpuz: 1\n", encoding="utf-8")
        daemon = self.daemon(web=policy("web", cpus="1"))
        wait_for(lambda: daemon.status()["health"] == "ok", daemon.status)
        rows = [(0, ("status",)), (0, ("status", "web")), (0, ("plan",)), (0, ("plan", good)), (3, ("plan", bad)), (1, ("status", "no-such")),
                (1, ("explain", "no-such")), (0, ("explain", "web")), (0, ("apply",)), (0, ("release",)), (0, ("reload",)), (1, ("release", "no-such"))]
        for code, words in rows:
            with self.subTest(" ".join(map(str, words))):
                daemon.ctl(*words, code=code)
        daemon.write("bad", bad.read_text(encoding="utf-8"))
        wait_for(lambda: daemon.status()["health"] == "attention", daemon.status)
        for code, words in [(3, ("status",)), (3, ("status", "--json")), (3, ("status", "-q")), (0, ("status", "web")), (0, ("plan",)), (1, ("reload",)),
                            (0, ("apply",)), (0, ("explain", "web"))]:
            with self.subTest("with a faulty file: " + " ".join(words)):
                daemon.ctl(*words, code=code)


class Plans(Net):
    def test_problems_are_in_the_exit_status(self):
        keys = {"version": 1, "affinity": "irq", "nics": [self.pair(0, queues=2)]}
        daemon = self.inside(one=keys)
        daemon.ctl("plan", code=0)
        daemon.write("two", keys)
        wait_for(lambda: len(daemon.status()["policies"]) == 2, "both are in force")
        for words in (("plan",), ("plan", "--json"), ("plan", "--cpus")):
            daemon.ctl(*words, code=3)
        daemon.ctl("status", "two", code=3)


class Rights(House):
    """A right that the daemon lacks is one problem with a count, and no flood of the log."""

    def without(self, *rights):
        return ("setpriv", "--bounding-set", ",".join(f"-{right}" for right in rights))

    def test_without_the_right_to_move_tasks_of_others_there_is_one_problem(self):
        path = self.copy_of("/bin/sleep", "web")
        path.parent.chmod(0o755)
        for _ in range(40):
            self.spawn("setpriv", "--reuid", "65534", "--clear-groups", path, "600")
        daemon = self.daemon(None, (), self.without("sys_nice"), web=policy("web", cpus="1", bind="set", settle=0))
        wait_for(lambda: any("40 of the changes" in message for message in daemon.problems()), daemon.problems)
        for _ in range(3):
            daemon.ctl("apply", code=1)
        problems = daemon.status()["problems"]
        self.assertEqual(["rights"], [problem["kind"] for problem in problems])
        self.assertEqual(1, daemon.text().count("could not be moved"), daemon.text())
        said = daemon.ctl("status", code=3).out
        self.assertEqual(1, said.count("  * "))
        self.assertIn("CAP_SYS_NICE", said)

    def test_without_the_right_to_process_events_there_is_one_problem(self):
        daemon = self.daemon(None, (), ("unshare", "-n"), web=policy("web", cpus="1"))
        daemon.passes(3)
        events = [problem for problem in daemon.status()["problems"] if problem["kind"] == "events"]
        self.assertEqual(1, len(events))
        self.assertEqual(1, daemon.text().count("process events"), daemon.text())

    def test_without_the_right_to_bpf_there_is_one_problem(self):
        daemon = self.daemon(None, (), self.without("bpf", "perfmon", "sys_admin"), web=policy("web", affinity="full", nics="auto"))
        steering = wait_for(lambda: [problem for problem in daemon.status()["problems"] if problem["kind"] == "steering"], "it is told")
        daemon.passes(3)
        self.assertEqual(1, len(steering))
        self.assertIn("not permitted", steering[0]["message"])
        self.assertLessEqual(daemon.text().count("steered"), 1, daemon.text())


class Warnings(House):
    """Errors come first, and a warning is told once, not with each reload."""

    def test_errors_first(self):
        file = self.bin / "web.yaml"
        file.write_text("version: 1\nmatch: {comm: x}\naffinity: irq\nnics: [no-such-nic]\ncpus: \"4000\"\n", encoding="utf-8")
        found = affinityctl("check", "--json", file, code=3).json["diagnostics"]
        self.assertEqual("error", found[0]["severity"])
        self.assertIn("warning", [one["severity"] for one in found])

    def test_only_new_ones_with_a_reload(self):
        nic = {"version": 1, "affinity": "irq", "nics": ["no-such-nic"]}
        daemon = self.daemon(nic=nic)
        warning = "no interface here is named"
        self.assertEqual(1, daemon.text().count(warning), daemon.text())
        self.assertIn("no interface here is named like its nics", daemon.ctl("status").out)
        for _ in range(2):
            self.assertNotIn(warning, daemon.ctl("reload").text)
        daemon.write("other", nic | {"nics": ["neither-this"]})
        daemon.ctl("reload")
        said = daemon.ctl("reload").text
        self.assertNotIn(warning, said)
        self.assertEqual(1, daemon.text().count("no-such-nic' "), daemon.text())


class NotRecorded(House):
    """A recording that lacks something is no machine that lacks it."""

    def setUp(self):
        super().setUp()
        self.machine = Recorded(self.bin / "root", cpus=4)
        self.machine.process(900, "server")
        self.irqs = self.machine.nic("eth0", ["eth0-TxRx-0"], driver="ixgbe")
        self.files = [self.bin / "web.yaml", self.bin / "nic.yaml"]
        self.files[0].write_text(document(**policy(match={"exe": "/usr/bin/server"}, cpus="1", bind="set")), encoding="utf-8")
        self.files[1].write_text(document(version=1, affinity="irq", nics=["eth0"]), encoding="utf-8")

    def say(self, *words):
        return affinityctl("--root", self.machine.root, *words, code=None).text

    def test_each_thing_that_is_missing_is_said_and_nothing_is_planned_for_it(self):
        self.assertNotIn("not recorded", self.say("plan", *self.files))
        root = self.machine.root
        rows = (("the program of a process", lambda: (root / "proc/900/exe").unlink(), "exe of 1 process is not recorded"),
                ("the mask of an interrupt", lambda: [file.unlink() for file in (root / f"proc/irq/{self.irqs[0]}").glob("smp_*")],
                 "not recorded, and nothing is planned for them: 1 mask of interrupts (proc/irq)"),
                ("all processes", lambda: run("rm", "-r", root / "proc/900", code=0), "not recorded, and nothing is planned for them: processes (proc/PID)"),
                ("all interrupts", lambda: run("rm", "-r", root / "proc/interrupts", root / "proc/irq", code=0), "not recorded, and nothing is planned for them: interrupts (proc/interrupts)"))
        for name, take, said in rows:
            with self.subTest(name):
                take()
                text = self.say("plan", *self.files)
                self.assertIn(said, text)
                self.assertNotIn("everything is where it should be", text)
            if name == "the program of a process":
                self.assertIn("policy web: not known, exe is not recorded", self.say("explain", "900", *(f"--policies={file}" for file in self.files)))


class Schemas(Net):
    """VERB --json-schema describes what VERB --json prints. (tests/affinityctl has recorded machines.)"""

    def test_answers_of_the_daemon(self):
        web = self.program("web")
        nic = self.pair(0, queues=2)
        daemon = self.daemon({"reconcile": "1h"}, (), self.near.command(), web=policy("web", cpus="1", bind="set"),
                             nic={"version": 1, "affinity": "irq", "nics": [nic]}, full=policy("other", affinity="full", nics="auto"),
                             bad="version: 1\ncpuz: 1\n")
        self.expect(web, "1")
        for words in (("status",), ("status", "web"), ("status", nic), ("plan",), ("plan", "--cpus"), ("explain", "web"), ("explain", web.pid),
                      ("explain", nic), ("watch", "--interval", "100ms"), ("history",), ("nics",), ("policies",), ("apply",), ("release", "web"),
                      ("reload",)):
            with self.subTest(words):
                schema = daemon.ctl(words[0], "--json-schema").json
                self.assertEqual([], list(faults(daemon.ctl(*words, "--json", code=(0, 1, 3)).json, schema))[:10])

    def test_a_name_of_several_processes_lists_them(self):
        first, second = self.program("web"), self.program("web")
        daemon = self.daemon(one=policy("web", cpus="1"))
        self.expect(first, "1")
        self.expect(second, "1")
        name = self.name("web")
        found = daemon.explain(name)["candidates"]
        self.assertEqual(sorted((one.pid, "one") for one in (first, second)), [(one["pid"], one["policy"]) for one in found])
        self.assertIn(str(first.pid), daemon.ctl("explain", name).out)
