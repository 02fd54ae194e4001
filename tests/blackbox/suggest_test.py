# SPDX-License-Identifier: Apache-2.0
"""affinityctl suggest: the answers of an expert for twelve recorded machines (server_worlds.py), real servers of this one, and names that are hostile."""
import fnmatch
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import re
import shutil
import signal
from unittest import mock

from house import PROGRAMS, House, affinityctl, allowed, children, run, wait_for
from nets import Net
from reloads_test import CLIENT, HAPROXY, NGINX
from server_worlds import WORLDS, Host, isolated_cpus, placed_already

GATHER = pathlib.Path(__file__).resolve().parents[2] / "tools/gather-host"
# The lines that a proposed file may have, whatever names there are.
LINE = re.compile(r"#|version: 1$|(match|affinity|nics|cpus|spread|bind|together|memory|steer|threads): ?|  - \{name: ")


def value_of(text):
    """YAML in braces, as the tool writes it, where each text has quotes: {unit: "a"}; a block of thread rules becomes a list."""
    if "\n" in text:
        text = "[" + ",".join(line.strip().removeprefix("- ") for line in text.strip().splitlines()) + "]"
    try:
        return json.loads(re.sub(r": ([a-z]+)(?=[,}])", r': "\1"', re.sub(r"([{,] ?)([a-z_]+):", r'\1"\2":', text)))
    except json.JSONDecodeError:
        return text  # a word


def rule_for(rules, thread):
    """All that the first rule says which takes a thread of this name."""
    for rule in rules:
        names = rule.get("name", "*")
        if any(fnmatch.fnmatchcase(thread, name) for name in ([names] if isinstance(names, str) else names)):
            said = {key: value for key, value in rule.items() if key != "name"}
            if "cpus" in said:
                said["cpus"] = str(said["cpus"])
            return said
    return None


class Suggest(House):
    PLAIN = True  # no daemon takes part

    def suggest(self, *words, root=None):
        return affinityctl(*(("--root", root) if root else ()), "--json", "suggest", *words).json

    def checked(self, proposal, *root):
        """The file of a proposal, which has passed the check without an error."""
        file = self.bin / proposal["file"]
        file.write_text(proposal["text"], encoding="utf-8")
        affinityctl(*root, "check", file)
        return file


class Worlds(Suggest):
    def differences(self, answer, expected, root):
        """All that the expert said otherwise."""
        proposals = {one["server"]: one for one in answer["proposals"]}
        left = {one["server"]: one["why"] for one in answer["left"]}
        found = [f"{server}: nothing should be proposed" for server in proposals if "policy" not in expected.get(server, {})]
        for server, wanted in expected.items():
            if "none" in wanted:
                found += [f"{server}: {word!r} should be why: {left.get(server)!r}" for word in wanted["none"] if word not in left.get(server, "")]
                continue
            if server not in proposals:
                found.append(f"{server}: nothing is proposed: {left.get(server)!r}")
                continue
            proposal = proposals[server]
            keys = {line["key"]: value_of(line["value"]) for line in proposal["lines"]}
            told = " ".join(line["reason"] for line in proposal["lines"]) + " ".join(proposal["advice"])
            found += [f"{server}: {key} should be {value!r}: {keys.get(key)!r}" for key, value in wanted["policy"].items() if str(keys.get(key)) != str(value)]
            found += [f"{server}: {key} should not be there: {keys[key]!r}" for key in wanted.get("absent", ()) if key in keys]
            found += [f"{server}: a reason should tell of {word!r}: {told}" for word in wanted.get("told", ()) if word not in told]
            found += [f"{server}: the rule of {thread} should be {rule}: {rule_for(keys.get('threads', []), thread)}"
                      for thread, rule in wanted.get("rules", {}).items() if rule_for(keys.get("threads", []), thread) != rule]
            if "switch" in wanted and (wanted["switch"] or "") not in " ".join(proposal["advice"]) or wanted.get("switch", "") is None and proposal["advice"]:
                found.append(f"{server}: the advice should be {wanted['switch']!r}: {proposal['advice']}")
            plan = affinityctl("--root", root, "--json", "plan", self.checked(proposal, "--root", root), code=(0, 3)).json
            if wanted.get("stays") and plan["actions"]:
                found.append(f"{server}: the plan should be empty: {plan['actions']}")
        return found

    def test_the_answers_of_an_expert(self):
        met = 0
        for build, expected in WORLDS.items():
            with self.subTest(build.__name__):
                root = self.bin / build.__name__
                build(root)
                found = self.differences(self.suggest(root=root), expected, root)
                met += not found
                self.assertEqual([], found)
        self.assertEqual((12, 12), (len(WORLDS), met))


class Cpusets(Suggest):
    """Servers that have CPUs of their own already."""

    POD = "/kubepods.slice/kubepods-podg1.slice/cri-containerd-" + 64 * "a" + ".scope"
    DOCKER = "/system.slice/docker-" + 64 * "b" + ".scope"

    def asked(self, path, cpus, threads=3, **options):
        """The answer for a server in that control group."""
        root = self.bin / f"root{len(list(self.bin.iterdir()))}"
        host = Host(root, **options)
        host.fast_nic(4)
        host.server(900, "radio", [("worker", 0.4, 1)] * threads, busy=0.4, cgroup=path, cpus=cpus)
        host.cpuset(path, cpus)
        answer = self.suggest(root=root)
        actions = [affinityctl("--root", root, "--json", "plan", self.checked(one, "--root", root), code=None).json for one in answer["proposals"]]
        return answer, [cpus for plan in actions for cpus in sorted(action["to"] for action in plan["actions"])], [plan["problems"] for plan in actions]

    def left(self, *words, **options):
        answer, _, _ = self.asked(*words, **options)
        self.assertEqual([], answer["proposals"])
        return answer["left"][0]["why"]

    def test_cpusets_that_a_manager_moves_are_left(self):
        self.assertEqual("its cpuset moves: leave it (the kubelet gave it CPUs 2-5)", self.left(self.POD, {2, 3, 4, 5}))
        self.assertEqual("its cpuset moves: leave it (docker gave it CPUs 2-5)", self.left(self.DOCKER, {2, 3, 4, 5}))
        self.assertIn("leave it", self.left(self.POD, {6, 7}, isolated={6, 7}))

    def test_several_isolated_ones_are_dealt_out(self):
        for path in (self.DOCKER, "/system.slice/radio.service"):
            answer, places, problems = self.asked(path, {6, 7}, isolated={6, 7})
            keys = {line["key"]: value_of(line["value"]) for line in answer["proposals"][0]["lines"]}
            self.assertEqual(("6-7", "cpu", "cpu"), (keys["cpus"], keys["spread"], keys["bind"]))
            self.assertNotIn("changes nothing", answer["proposals"][0]["text"])
            self.assertIn("changes masks", answer["proposals"][0]["text"])
            self.assertEqual((["6", "6", "7", "7"], [[]]), (places, problems))
        self.assertIn("one thread", self.left(self.DOCKER, {6, 7}, threads=0, isolated={6, 7}))

    def test_isolated_ones_among_others_are_left_out(self):
        answer, places, problems = self.asked("/system.slice/radio.service", {4, 5, 6, 7}, isolated={6, 7})
        self.assertIn("changes masks", answer["proposals"][0]["text"])
        self.assertEqual((["4-5"] * 4, [[]]), (places, problems))

    def test_a_proposal_that_says_so_changes_nothing(self):
        for cpus, isolated in (({2, 3}, ()), ({7}, {7}), ({0, 1, 2}, {7})):
            answer, places, problems = self.asked("/system.slice/radio.service", cpus, isolated=isolated)
            self.assertIn("changes nothing at first", answer["proposals"][0]["text"])
            self.assertEqual(([], [[]]), (places, problems))


class Neighbours(Suggest):
    """Proposals that are installed together."""

    def machine(self, **options):
        self.root = self.bin / "root"
        self.host = Host(self.root, cpus=16, **options)
        self.host.fast_nic(8)
        self.host.nginx(8, 8)
        self.host.server(1900, "haproxy", [("haproxy", 0.5, cpu) for cpu in range(1, 8)], busy=0.5, unit="haproxy.service", exe="/usr/sbin/haproxy", uid=110)
        self.host.listen(443, 8, [1900])

    def problems(self, proposals):
        files = [self.checked(one, "--root", self.root) for one in proposals]
        return affinityctl("--root", self.root, "--json", "plan", *files, code=None).json["problems"]

    def test_two_servers_at_one_nic(self):
        self.machine(nodes=2)
        proposals = self.suggest(root=self.root)["proposals"]
        self.assertEqual(["haproxy.service", "nginx.service"], [one["server"] for one in proposals])
        keys = [{line["key"]: value_of(line["value"]) for line in one["lines"]} for one in proposals]
        self.assertEqual(("full", None, "nic:eth0"), (keys[0]["affinity"], keys[1].get("affinity"), keys[1].get("near")))
        self.assertIn("policy haproxy places the queues of eth0", proposals[1]["text"])
        self.assertEqual([], self.problems(proposals))

    def test_two_servers_at_one_nic_and_one_cache(self):
        self.machine()
        proposals = self.suggest(root=self.root)["proposals"]
        keys = [{line["key"]: value_of(line["value"]) for line in one["lines"]} for one in proposals]
        self.assertEqual([("full", "core"), (None, "core")], [(one.get("affinity"), one["bind"]) for one in keys])
        self.assertIn("policy haproxy places the queues of eth0", proposals[1]["text"])
        self.assertEqual([], self.problems(proposals))


class Masters(Suggest):
    """Processes that only hold listeners for their children are no workers."""

    def asked(self, workers, children, others):
        """A master, workers that have its listener, `children` of each that have it no more, and others of the master's."""
        root = self.bin / f"root{len(list(self.bin.iterdir()))}"
        host = Host(root)
        host.fast_nic(8)
        of = {"unit": "web.service", "exe": "/usr/sbin/web"}
        host.server(900, "web", **of)
        for worker in range(workers):
            host.server(901 + worker, "web", busy=0.5, cpu=worker, ppid=900, **of)
            for child in range(children):
                host.server(1000 + 10 * worker + child, "web", busy=0.1, ppid=901 + worker, **of)
        for other in range(others):
            host.server(950 + other, "web", ppid=900, **of)
        host.listen(80, 1, [900, *range(901, 901 + workers)])
        answer = self.suggest(root=root)
        return " ".join(line["reason"] for line in answer["proposals"][0]["lines"]) + " ".join(answer["proposals"][0]["advice"])

    def test_workers_with_children_of_their_own(self):
        self.assertIn("4 workers take the connections of port 80 from one socket", self.asked(4, children=2, others=0))

    def test_one_worker_and_others_that_take_none(self):
        self.assertIn("one thread takes and serves the connections of port 80", self.asked(1, children=0, others=2))


class Databases(Suggest):
    """A process for each connection."""

    def asked(self, **options):
        root = self.bin / f"root{len(list(self.bin.iterdir()))}"
        host = Host(root, **options)
        host.fast_nic(8)
        of = {"unit": "postgresql@15-main.service", "exe": "/usr/lib/postgresql/15/bin/postgres", "uid": 111}
        host.server(900, "postgres", **of)
        for at in range(24):
            host.server(920 + at, "postgres", busy=0.2, cpu=at % 8, ppid=900, **of)
        host.listen(5432, 1, [900])
        answer = self.suggest(root=root)
        return answer, {line["key"]: line["value"] for one in answer["proposals"] for line in one["lines"]}

    def test_processes_move_only_where_bpf_can_count(self):
        self.assertEqual("tasks", self.asked()[1]["steer"])
        self.assertEqual("tasks", self.asked(release="5.11.3")[1]["steer"])
        answer, keys = self.asked(release="5.10.0-28-amd64", llcs=[range(4), range(4, 8)])
        self.assertEqual(({"version", "match", "spread"}, "llc"), (set(keys), keys["spread"]), answer)
        answer, keys = self.asked(release="5.10.0-28-amd64")
        self.assertEqual({}, keys)
        self.assertIn("share a cache", answer["left"][0]["why"])


class Recordings(Suggest):
    def test_names_of_any_bytes_stay_in_their_quotes(self):
        names = ["x\\ny: 1", '"},{a"', "/x/", "*", "a: b #c", "]", "{nginx}", "%YAML 1.1", "\\x1b[0m", "\u202eabc", "---", "!tag", "[a-", "12345", "'"]
        for name in names:
            with self.subTest(name):
                root = self.bin / f"root{names.index(name)}"
                host = Host(root)
                host.fast_nic(8)
                unit = f"{name.replace('/', '|')}.service"
                for pid, options in ((900, {"unit": unit}), (950, {"exe": f"/opt/{name}"})):
                    host.server(pid, name, [(f"{name[:9]}{at}", 0.5, at) for at in range(3)] + [("idle", 0, 3)], busy=0.5, uid=1, **options)
                    host.listen(8000 + pid, 1, [pid])
                host.put("etc/systemd/network/x.link", "IRQAffinity=\x1b\r: evil")
                host.put(f"etc/systemd/system/{unit}.d/{name.replace('/', '|')}.conf", f"CPUAffinity={name}")
                proposals = self.suggest(root=root)["proposals"]
                self.assertEqual(2, len(proposals))
                self.assertEqual(2, len({one["file"] for one in proposals}), "each has a file of its own")
                for one in proposals:
                    self.assertRegex(one["file"], r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\.yaml$")
                    self.assertEqual([], [line for line in one["text"].split("\n")[:-1] if not LINE.match(line) or not line.isprintable()])
                    self.checked(one, "--root", root)

    def test_the_text_has_files_and_all_that_is_left(self):
        root = self.bin / "root"
        placed_already(root)
        text = affinityctl("--root", root, "suggest").out
        self.assertIn("nginx.yaml", text)
        self.assertIn('match: {unit: "nginx.service"}', text)
        answer = affinityctl("--root", root, "suggest", "no-such-server", code=1)
        self.assertIn("there is no unit, process or program no-such-server", answer.err)
        self.assertEqual(["nginx.service"], [one["server"] for one in self.suggest("901", root=root)["proposals"]])
        affinityctl("--root", root, "suggest", "--write", code=2)

    def gathered(self, root, into):
        """The machine of a recording, as affinityd-gather-host records it."""
        loader = importlib.machinery.SourceFileLoader("gather", str(GATHER))
        gather = importlib.util.module_from_spec(importlib.util.spec_from_loader("gather", loader))
        loader.exec_module(gather)
        gather.ROOT = root
        with mock.patch("sys.argv", ["gather-host", f"{into}.tar.gz"]), mock.patch("sys.stderr", io.StringIO()):
            gather.main()
        into.mkdir()
        run("tar", "-xzf", f"{into}.tar.gz", "-C", into, code=0)

    def test_a_recording_of_a_machine_gives_the_same_and_has_no_secrets(self):
        for build in (placed_already, isolated_cpus):
            with self.subTest(build.__name__):
                root, copy = self.bin / build.__name__, self.bin / f"{build.__name__}-copy"
                build(root)
                (root / "etc/default").mkdir()
                (root / "etc/default/irqbalance").write_text("# --banirq=1\nIRQBALANCE_ARGS=--banirq=40 # geheim\n", encoding="ascii")
                self.gathered(root, copy)
                wanted = self.suggest(root=root)
                self.assertIn("banirq in /etc/default/irqbalance", str(wanted))
                self.assertEqual(wanted, self.suggest(root=copy))
                texts = b"".join(file.read_bytes() for file in copy.rglob("*") if file.is_file() and not file.is_symlink())
                self.assertNotIn(b"geheim", texts)


class Servers(Net):
    """Real ones, under traffic, in a network namespace of the test."""

    LONG = True

    def setUp(self):
        super().setUp()
        self.bin.chmod(0o755)
        self.interface = self.pair(queues=2)
        self.tested = self.inside({"reconcile": "1s"})

    def start(self, program, *words):
        """With its own name, at a path that no other test has."""
        shutil.copy(program, self.bin / pathlib.Path(program).name)
        server = self.spawn(*self.near.command(self.bin / pathlib.Path(program).name, *words))
        return self.listening(server)

    def listening(self, server):
        wait_for(lambda: "10.99.0.1:7001" in self.near.run("ss", "-Hltn"), "it listens")
        return server

    def load(self, *command):
        for _ in range(2):
            self.spawn(*self.far.command(*(command or ("python3", "-c", CLIENT))), stdin=-1)

    def ask(self, *words, **options):
        answer = run(*self.near.command(PROGRAMS["affinityctl"], "--runtime-dir", self.tested.folder / "run", "--json", "suggest", "--for", "1s", *words), **options)
        self.assertEqual(0, answer.code, answer.text)
        return answer.json

    def proposed(self, server, **wanted):
        """The proposal for it, which has these keys, and passes the check. A busy machine may keep a server idle for a second."""
        seen = []

        def is_so():
            seen.append(self.ask(str(server.pid)))
            for one in seen[-1]["proposals"]:
                keys = {line["key"]: value_of(line["value"]) for line in one["lines"]}
                if all(keys.get(key) == value for key, value in ({"nics": self.interface} | wanted).items()):
                    return one
            return None
        proposal = wait_for(is_so, lambda: f"it is proposed: {wanted}: {seen[-1]}")
        file = self.bin / proposal["file"]
        file.write_text(proposal["text"], encoding="utf-8")
        run(*self.near.command(PROGRAMS["affinityctl"], "check", file), code=0)
        return proposal

    def nginx(self, reuseport):
        path = self.bin / "nginx.conf"
        path.write_text(NGINX.format(folder=self.bin, reuseport=reuseport), encoding="utf-8")
        return self.start("/usr/sbin/nginx", "-p", self.bin, "-c", path)

    def test_nginx_with_reuseport_whose_proposal_is_installed(self):
        server = self.nginx(" reuseport")
        self.load()
        one = self.proposed(server, affinity="full", spread="core", bind="core", steer=None)
        self.assertEqual([], [text for text in one["advice"] if "reuseport" in text])
        said = run(*self.near.command(PROGRAMS["affinityctl"], "--runtime-dir", self.tested.folder / "run", "suggest", "--for", "1s", "--write", str(server.pid)),
                   input="\n", code=0)
        self.assertIn("nginx.yaml is not installed", said.out)
        refused = self.ask(str(server.pid), "--write", input="\n")
        self.assertEqual(["unchanged"], [each["outcome"] for each in refused["proposals"]])
        self.assertFalse((self.tested.policies / "nginx.yaml").exists())
        said = run(*self.near.command(PROGRAMS["affinityctl"], "--runtime-dir", self.tested.folder / "run", "suggest", "--for", "1s", "--write", str(server.pid)),
                   input="y\n", code=0)
        self.assertIn("nginx.yaml is saved", said.out)
        texts = (one["text"], (self.tested.policies / "nginx.yaml").read_text(encoding="utf-8"))
        self.assertEqual(*([line for line in text.splitlines() if not line.startswith("#")] for text in texts))
        wait_for(lambda: {allowed(pid) for pid in children(server.pid)} == {"0", "1"}, lambda: f"its workers are placed: {self.tested.status()}")
        local = self.near.command(PROGRAMS["affinityctl"], "--runtime-dir", self.tested.folder / "run", "--json", "locality", "nginx", "--for", "1s")
        wait_for(lambda: (run(*local).json["all"]["same"] or {"core": 0})["core"] >= 0.9, "at least 90 % of reads are local")
        self.assertEqual([(False, "policy nginx has it already")], [(each["idle"], each["why"]) for each in self.ask(str(server.pid))["left"]])

    def test_nginx_without_reuseport(self):
        server = self.nginx("")
        self.load()
        one = self.proposed(server, affinity="full", spread="core", bind=None, steer=None)
        self.assertIn('"reuseport" behind each "listen"', " ".join(one["advice"]))

    def test_haproxy_without_and_with_shards(self):
        for shards, bind in (("", None), (" shards by-thread", "core")):
            path = self.bin / "haproxy.cfg"
            path.write_text(HAPROXY.format(folder=self.bin, threads=2, shards=shards), encoding="utf-8")
            server = self.start("/usr/sbin/haproxy", "-f", path)
            self.load()
            one = self.proposed(server, affinity="full", spread="core", bind=bind, steer=None)
            self.assertEqual(not shards, "shards by-thread" in " ".join(one["advice"]))
            server.end()

    def test_redis_with_and_without_io_threads(self):
        for words, wanted in ((("--io-threads", "2", "--io-threads-do-reads", "yes"), {"steer": "flows", "spread": "core", "bind": "core"}),
                              ((), {"steer": None, "spread": None, "bind": None})):
            server = self.start("/usr/bin/redis-server", "--port", "7001", "--bind", "10.99.0.1", "--dir", self.bin, "--save", "", "--protected-mode", "no", *words)
            self.load("redis-benchmark", "-h", "10.99.0.1", "-p", "7001", "-c", "20", "-n", "100000000", "-q", "-t", "set", "-d", "2000")
            one = self.proposed(server, affinity="full", **wanted)
            rules = value_of(next(line["value"] for line in one["lines"] if line["key"] == "threads"))
            self.assertEqual(({"bind": "llc"} if words else {}, {"cpus": "housekeeping", "bind": "set"}),
                             (rule_for(rules, "redis-server"), rule_for(rules, "bio_aof")))
            server.end()

    def test_postgresql(self):
        data = self.bin / "data"
        data.mkdir()
        shutil.chown(data, "postgres")
        programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        mine = ("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups")
        run(*mine, programs / "initdb", "-D", data, "-A", "trust", "-N", code=0)
        with (data / "pg_hba.conf").open("a", encoding="ascii") as rules:
            rules.write("host all all 10.99.0.2/32 trust\n")
        server = self.spawn(*self.near.command(*mine, programs / "postgres", "-D", data, "-c", "listen_addresses=10.99.0.1", "-c", "port=7001", "-c",
                                               f"unix_socket_directories={data}", "-c", "fsync=off"))
        self.stack.callback(server.process.wait, 60)  # killed, it would leave shared memory behind
        self.stack.callback(server.process.send_signal, signal.SIGINT)
        self.listening(server)
        (self.bin / "one.sql").write_text("select 1;\n", encoding="ascii")
        self.load("pgbench", "-n", "-c", "4", "-j", "1", "-T", "600", "-f", self.bin / "one.sql", "-h", "10.99.0.1", "-p", "7001", "-U", "postgres", "postgres")
        self.proposed(server, affinity="full", steer="tasks", spread="core", bind="core")

    def test_a_server_without_work(self):
        server = self.nginx(" reuseport")
        answer = self.ask(str(server.pid))
        self.assertEqual(([], [True]), (answer["proposals"], [one["idle"] for one in answer["left"]]))
