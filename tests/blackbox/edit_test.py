# SPDX-License-Identifier: Apache-2.0
"""`affinityctl edit` and `cat`, and the completions of three shells."""
import os
import pathlib
import signal
import subprocess

from house import PROGRAMS, Answer, House, affinityctl, document, policy, read, report, run, wait_for

COMPLETION = pathlib.Path(__file__).resolve().parents[2] / "tools/completion"


class Edit(House):
    """The editor is a script: each line of `edits` is the shell command of one run, with the file as $1."""

    def setUp(self):
        super().setUp()
        self.tested = self.daemon(web=policy("web", cpus="0", bind="set", settle=0))
        self.file = self.tested.policies / "web.yaml"
        self.before = self.file.read_text(encoding="utf-8")
        self.copies = self.bin / "copies"
        self.copies.mkdir()

    def edit(self, *edits, answers="", name="web", code=0):
        return run(*self.words(*edits, name=name), code=code, input=answers, env=self.environment)

    def words(self, *edits, name="web"):
        editor = self.bin / "editor"
        lines = "\n".join(f"{number}) {edit};;" for number, edit in enumerate(edits))
        editor.write_text(f'#!/bin/sh\nn=$(cat {self.bin}/runs 2>/dev/null || echo 0)\necho $((n + 1)) >{self.bin}/runs\ncase $n in\n{lines}\nesac\n', encoding="utf-8")
        editor.chmod(0o755)
        (self.bin / "runs").unlink(missing_ok=True)
        self.environment = os.environ | {"VISUAL": "", "SUDO_EDITOR": "", "EDITOR": str(editor), "TMPDIR": str(self.copies)}
        return [PROGRAMS["affinityctl"], "--runtime-dir", self.tested.folder / "run", "--json", "edit", name]

    def kept(self, answer):
        """The text of the copy that is kept; the policy is as it was."""
        self.assertEqual(("kept", str(self.file)), (answer.json["outcome"], answer.json["file"]))
        self.assertEqual(self.before, self.file.read_text(encoding="utf-8"))
        copy = pathlib.Path(answer.json["copy"])
        self.assertEqual(0o700, copy.parent.stat().st_mode & 0o777)
        return copy.read_text(encoding="utf-8")

    def test_a_good_edit_is_shown_and_saved(self):
        web = self.program("web")
        self.expect(web, "0")
        answer = self.edit("""sed -i 's/^cpus: .*/cpus: "1"/' "$1" """, answers="s\n")
        self.assertEqual("saved", answer.json["outcome"])
        self.assertIn("web", answer.err, "the plan")
        self.expect(web, "1")
        self.assertEqual([], list(self.copies.iterdir()))

    def test_a_bad_edit_is_never_lost_and_never_installed(self):
        bad, good = "echo 'cpuz: 1' >>\"$1\"", "sed -i /cpuz/d \"$1\"; echo 'description: better' >>\"$1\""
        rows = (((bad,), "k\n", 3, "cpuz"), ((bad,), "", 3, "cpuz"), ((bad, bad), "e\nk\n", 3, "cpuz"), ((bad, good), "e\nk\n", 1, "better"),
                ((good,), "", 1, "better"), ((f"{bad}; exit 1",), "", 1, "cpuz"))
        for edits, answers, code, text in rows:
            with self.subTest(edits, answers=answers):
                self.assertIn(text, self.kept(self.edit(*edits, answers=answers, code=code)))
        self.assertLess(self.edit(good, answers="y\n" * 99, code=1).err.count("apart:"), 9, "it asks no one for ever")
        self.assertEqual("saved", self.edit(bad, good, answers="e\ns\n").json["outcome"])
        self.assertIn("better", self.file.read_text(encoding="utf-8"))

    def test_a_change_by_another_program_is_not_overwritten(self):
        answer = self.edit(f"echo 'description: mine' >>\"$1\"; echo '# theirs' >>{self.file}", answers="s\n", code=1)
        self.assertIn("# theirs", self.file.read_text(encoding="utf-8"))
        self.assertIn("description: mine", pathlib.Path(answer.json["copy"]).read_text(encoding="utf-8"))

    def test_an_interrupt_at_the_question_tells_where_the_edit_is(self):
        words = self.words("echo '# mine' >>\"$1\"")
        editing = self.spawn(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment).process
        said = b""
        while b"apart:" not in said:
            said += os.read(editing.stderr.fileno(), 4096)
        def is_over():  # the question may have been printed a moment before it is asked: as a person would, press again
            editing.send_signal(signal.SIGINT)
            return editing.poll() is not None
        wait_for(is_over, "it ends at ^C")
        answer = Answer(subprocess.CompletedProcess(words, editing.returncode, editing.stdout.read(), ""))
        self.assertEqual(1, answer.code)
        self.assertIn("# mine", self.kept(answer))

    def test_the_file_keeps_its_mode_and_owner(self):
        os.chown(self.file, 0, 65534)
        self.file.chmod(0o640)
        self.assertEqual("saved", self.edit("echo '# mine' >>\"$1\"", answers="s\n").json["outcome"])
        found = self.file.stat()
        self.assertEqual((0o640, 0, 65534), (found.st_mode & 0o777, found.st_uid, found.st_gid))

    def test_a_file_that_masks_a_policy(self):
        (self.tested.policies / "null.yaml").symlink_to("/dev/null")
        (self.tested.policies / "empty.yaml").touch()
        for name in ("null", "empty"):
            with self.subTest(name):
                file = self.tested.policies / f"{name}.yaml"
                self.assertEqual(f"# {file}: it switches the policy off\n", self.tested.ctl("cat", name).out)
                self.assertIn(f"{file} switches the policy off: remove it first", self.edit("true", name=name, code=1).json["message"])

    def test_a_folder_of_another_user_holds_no_copy(self):
        os.chown(self.copies, 65534, 65534)
        self.assertIn("belongs to user 65534", self.edit("echo '# mine' >>\"$1\"", answers="s\n", code=1).json["message"])
        self.assertEqual([], list(self.copies.iterdir()))

    def test_an_edit_without_a_change_keeps_no_copy(self):
        self.assertEqual("unchanged", self.edit("true").json["outcome"])
        self.assertEqual([], list(self.copies.iterdir()))

    def test_a_new_policy_begins_with_its_keys(self):
        self.assertEqual("saved", self.edit("grep -q 'comm: fresh' \"$1\" && echo 'cpus: 0' >>\"$1\"", answers="s\n", name="fresh").json["outcome"])
        wait_for(lambda: "fresh" in {one["name"] for one in self.tested.status()["policies"]}, "the policy counts")
        for name in ("../web", ".web", "a/b"):
            self.edit("true", name=name, code=2)

    def test_cat(self):
        self.assertEqual(f"# {self.file}\n{self.before}", self.tested.ctl("cat", "web").out)
        self.assertEqual([{"name": "web", "file": str(self.file), "text": self.before}], self.tested.ctl("cat", "web", "--json").json)
        self.tested.ctl("cat", "none", code=1)
        self.assertIn("recorded machine", self.tested.ctl("--root", self.bin, "cat", "web", code=2).err)


class Completions(House):
    def setUp(self):
        super().setUp()
        self.web = self.program("web")
        self.tested = self.daemon(alpha=policy("web", cpus="0", bind="set", settle=0), alps=policy("none"), beta=policy("none"))
        self.expect(self.web, "0")
        (self.bin / "affinityctl").write_text(f'#!/bin/sh\nexec {PROGRAMS["affinityctl"]} "$@"\n', encoding="utf-8")
        (self.bin / "affinityctl").chmod(0o755)
        self.environment = os.environ | {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.bin)}

    def shell(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=True, env=self.environment, cwd=self.bin)
        self.assertEqual("", done.stderr)
        return [line for line in done.stdout.splitlines() if line]

    def bash(self, line):
        script = f'source {COMPLETION}/affinityctl; COMP_LINE=$1 COMP_POINT=${{#1}}; _affinityctl; printf "%s\\n" "${{COMPREPLY[@]}}"'
        return self.shell("bash", "-c", script, "bash", line)

    def zsh(self, line):
        script = f'compadd() {{ print -l -- $found }}; _files() {{}}; words=(${{(@s: :)1}}); CURRENT=$#words; source {COMPLETION}/_affinityctl'
        return self.shell("zsh", "-f", "-c", script, "zsh", line)

    def fish(self, line):
        return [found.split("\t")[0] for found in self.shell("fish", "-N", "-c", f"source {COMPLETION}/affinityctl.fish; complete -C '{line}'")]

    def test_three_shells_say_the_same(self):
        told = f"--runtime-dir {self.tested.folder / 'run'}"
        rows = {"affinityctl pol": ["policies"], "affinityctl policies sh": ["show"], "affinityctl --root plan topo": ["topology"],
                "affinityctl check --st": ["--strict"], "affinityctl status --ru": ["--runtime-dir"], "affinityctl history --kind mod": ["models"],
                f"affinityctl {told} policies show al": ["alpha", "alps"], f"affinityctl {told} edit al": ["alpha", "alps"],
                f"affinityctl {told} status {str(self.web.pid)[:-1]}": [str(self.web.pid)], "affinityctl nics l": ["lo"],
                f"affinityctl sharers {self.web.pid}": [str(self.web.pid)], "affinityctl cpus housek": ["housekeeping"]}
        for line, wanted in rows.items():
            for shell in (self.bash, self.zsh, self.fish):
                with self.subTest(line, shell=shell.__name__):
                    found = shell(line)
                    self.assertTrue(set(wanted) <= set(found) if str(self.web.pid) in wanted else wanted == found, found)

    def test_names_that_a_shell_would_run_are_left_out(self):
        for name in ("eth0", "e$(id>w)", "e`id`", "e;id"):
            folder = self.bin / "recording/sys/class/net" / name
            folder.mkdir(parents=True)
            (folder / "ifindex").write_text("2\n", encoding="ascii")
            (folder / "mtu").write_text("1500\n", encoding="ascii")
        (self.bin / "recording/proc").mkdir()
        self.assertEqual(["eth0"], self.bash(f"affinityctl --root {self.bin}/recording nics e"))

    def test_words_of_cpu_sets(self):
        self.assertLessEqual({"node:0", "socket:0", "llc:0", "nic:lo", "smt"}, {line.split("\t")[0] for line in affinityctl("--complete", "cpus", "").out.splitlines()})
        self.assertEqual(["smt|node:0"], [line.split("\t")[0] for line in affinityctl("--complete", "cpus", "smt|node:0").out.splitlines()])

    def test_descriptions(self):
        lines = dict(line.split("\t") for line in affinityctl("--complete", "--runtime-dir", self.tested.folder / "run", "explain", "").out.splitlines())
        self.assertEqual((self.name("web"), "policy"), (lines[str(self.web.pid)], lines["alpha"]))

    def test_names_cost_the_daemon_nothing_that_grows_with_threads(self):
        for _ in range(2000):
            self.web.thread()
        wait_for(lambda: self.tested.policy("alpha")["threads"] > 2000, "its threads are under policy")
        self.tested.calm()

        def cost(ask):
            """The daemon's time for ten of these, in ms."""
            begun = int(read(f"/proc/{self.tested.process.pid}/schedstat").split()[0])
            for _ in range(10):
                ask()
            return (int(read(f"/proc/{self.tested.process.pid}/schedstat").split()[0]) - begun) / 1e6

        names = cost(lambda: affinityctl("--complete", "--runtime-dir", self.tested.folder / "run", "status", ""))
        status = cost(self.tested.status)
        report(f"daemon's time for ten completions with 2,000 threads: {names:.1f} ms; for ten status: {status:.1f} ms")
        self.assertLess(names, status / 5)

    def test_a_file_is_left_to_the_shell(self):
        file = self.bin / "some.yaml"
        file.write_text(document(version=1), encoding="utf-8")
        self.assertEqual([], self.bash("affinityctl --root "))
        self.assertEqual([], self.bash("affinityctl check so"))
        self.assertEqual(["some.yaml"], self.fish("affinityctl check so"))
