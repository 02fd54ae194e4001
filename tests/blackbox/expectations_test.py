# SPDX-License-Identifier: Apache-2.0
"""affinityctl test: policies on recorded machines, with the CPUs that cases expect."""
import pathlib
import re
import shutil
import tarfile

from house import House, affinityctl, document, policy
from recorded import Recorded

SOURCES = pathlib.Path(__file__).resolve().parents[2]
POLICY = policy(match={"unit": "web.service"}, bind="set", cpus="2-3", threads=[{"name": "io*", "cpus": "4"}])


class Cases(House):
    """On a machine of eight CPUs and two nodes, with a policy for web.service."""

    def setUp(self):
        super().setUp()
        self.machine = Recorded(self.bin / "root", cpus=8, nodes=2)
        self.keys = {"version": 1, "root": "root", "policies": "web.yaml", "processes": [{"comm": "web", "unit": "web.service", "threads": {"io": 2}}]}
        self.put("web.yaml", document(**POLICY))

    def put(self, name, text):
        (self.bin / name).write_text(text, encoding="utf-8")
        return self.bin / name

    def run_test(self, *words, code=0):
        return affinityctl("test", *words, code=code)

    def differences(self, *expected, **keys):
        """(subject, expected, found, count) of one case."""
        file = self.put("cases.yaml", document(**self.keys, tests=[{"name": "one", "expect": expected} | keys]))
        answer = affinityctl("--json", "test", file, code=None)
        [case] = answer.json["cases"]
        self.assertEqual((case["ok"], 0 if case["ok"] else 1), (answer.json["ok"], answer.code))
        return [(one["subject"], one["expected"], one["found"], one["count"]) for one in case["differences"]]

    def test_tasks_get_what_is_expected(self):
        self.assertEqual([], self.differences({"process": "web", "thread": "web", "policy": "web", "cpus": "2-3"},
                                              {"process": "web", "cpus": ["2-3", "4", "4"]}, {"process": "w*", "within": "node:0 | 4"},
                                              {"process": "/^web$/", "thread": "io", "cpus": "4"}))

    def test_differences_are_told_and_those_alike_are_counted(self):
        self.assertEqual([("web io", "CPUs 5", "CPUs 4", 2)], self.differences({"process": "web", "thread": "io", "cpus": "5"}))
        self.assertEqual([("web", "policy none", "policy web", 1)], self.differences({"process": "web", "thread": "web", "policy": "none"}))
        self.assertEqual([("web io", "within 0-3", "CPUs 4", 2)], self.differences({"process": "web", "within": "node:0"}))
        self.assertEqual([("tasks", "2", "3", 1)], self.differences({"process": "web", "cpus": ["0", "1"]}))
        self.assertEqual([("tasks", "one or more", "none", 1)], self.differences({"process": "wep", "cpus": "0"}))
        self.assertEqual([("9", "CPUs", "CPU 9 does not exist on this machine", 1)], self.differences({"process": "web", "cpus": "9"}))
        file = self.put("cases.yaml", document(**self.keys) + "tests:\n- name: good\n- name: bad\n  expect:\n  - {process: web, cpus: all}\n")
        self.assertEqual(f"ok    good\nFAIL  bad\n  {file}:9:5: web: CPUs 2-3, expected CPUs 0-7\n  {file}:9:5: web io: CPUs 4, expected CPUs 0-7 (2 of these)\n"
                         "1 of 2 cases not as expected\n", self.run_test(file, code=1).out)

    def test_each_condition_of_a_policy_is_met_by_a_process_that_has_it(self):
        self.keys["processes"] = [{"comm": "web", "unit": "web.service", "exe": "/usr/sbin/web", "cmdline": "web --fast", "user": "www", "group": "33",
                                   "listen": [80, 443]}, {"comm": "pod", "cgroup": "/kubepods.slice/pod7", "cpuset": "6-7",
                                    "pod": "web-1", "namespace": "shop"}]
        for match in ({"unit": "web.service"}, {"comm": "web"}, {"exe": "/usr/sbin/web"}, {"cmdline": "*--fast"}, {"user": "www"}, {"group": "33"},
                      {"listen": 443}):
            self.put("web.yaml", document(**policy(match=match, bind="set", cpus="1")))
            self.assertEqual([], self.differences({"process": "web", "policy": "web", "cpus": "1"}, {"process": "pod", "policy": "none", "cpus": "6-7"}), match)
        for match in ({"namespace": "shop"}, {"pod": "web-*"}, {"container": "crio:*"}, {"cgroup": "/kubepods.slice/*"}):
            self.put("web.yaml", document(**policy(match=match, bind="set")))
            self.assertEqual([], self.differences({"process": "pod", "policy": "web", "cpus": "6-7"}), match)
        self.assertEqual([("web", "policy web", "policy none; policy web wants cgroup /kubepods.slice/*, found /system.slice/web.service", 1)],
                         self.differences({"process": "web", "policy": "web"}))

    def test_a_process_is_roots_unless_it_has_another_user(self):
        self.keys["processes"] = [{"comm": "web"}, {"comm": "other", "user": "www", "group": "www"}]
        self.put("web.yaml", document(**policy(match={"user": "root", "group": "root"}, bind="set", cpus="1")))
        self.assertEqual([], self.differences({"process": "web", "policy": "web"}, {"process": "other", "policy": "none"}))

    def test_interrupts_and_the_lanes_of_auto(self):
        self.machine.nic("eth0", [f"eth0-TxRx-{queue}" for queue in range(4)], driver="ixgbe")
        self.keys["processes"] = [{"comm": "web", "unit": "web.service", "count": 4, "nics": "eth0"}]
        self.put("web.yaml", document(**policy(match={"unit": "web.service"}, affinity="full", spread="core", bind="core")))
        self.assertEqual([], self.differences({"process": "web", "cpus": ["0", "1", "2", "3"]}, {"nic": "eth0", "cpus": ["0", "1", "2", "3"]},
                                              {"nic": "eth0", "queue": 2, "cpus": "2"}, {"irq": "eth0-*-3", "policy": "web", "cpus": "3"}))
        self.assertEqual([("eth0-TxRx-1", "CPUs 0", "CPUs 1", 1)], self.differences({"nic": "eth0", "queue": 1, "cpus": "0"}))
        self.assertEqual([("interrupts that a policy places", "one or more", "none", 1)], self.differences({"nic": "eth1", "cpus": "0"}))

    def test_tasks_that_a_policy_keeps_off_its_cpus(self):
        self.put("web.yaml", document(**POLICY | {"exclusive": True}))
        self.keys["processes"].append({"comm": "cron"})
        self.assertEqual([], self.differences({"process": "cron", "policy": "none", "cpus": "all - 2-3"}))

    def test_interrupts_that_a_policy_keeps_off_its_cpus_have_the_rest_of_their_own(self):
        self.put("web.yaml", document(**POLICY | {"isolate": True}))
        for label, cpus in (("wide", range(8)), ("narrow", {0, 1, 2})):
            self.machine.irq(label, cpus=set(cpus))
        self.assertEqual([], self.differences({"irq": "wide", "cpus": "all - 2-3"}, {"irq": "narrow", "cpus": "0-1"}))

    def test_problems_are_differences_unless_they_are_expected(self):
        self.put("web.yaml", document(**policy(match={"unit": "web.service"}, together="core")))
        self.keys["processes"][0]["threads"] = {"io": 15}
        [(subject, expected, found, _)] = self.differences()
        self.assertEqual(("policy web", "no problem"), (subject, expected))
        self.assertIn("less than a quarter", found)
        self.assertEqual([], self.differences(problems="less than a quarter*"))
        self.assertEqual([("problems", "no queue*", "none", 1)], self.differences(problems=["less than a quarter*", "no queue*"]))

    def test_without_processes_those_that_were_recorded_count_and_each_test_may_have_its_own_world(self):
        self.machine.process(900, "web", unit="web.service")
        del self.keys["processes"]
        self.assertEqual([], self.differences({"process": "web", "cpus": "2-3"}))
        other = Recorded(self.bin / "other", cpus=4)
        other.process(900, "web", unit="web.service")
        self.put("other.yaml", document(**policy(match={"comm": "web"}, cpus="1", bind="set")))
        self.assertEqual([], self.differences({"process": "web", "cpus": "1", "policy": "other"}, root="other", policies=["other.yaml"]))
        self.put("web.yaml", document(**policy(match={"comm": "web"}, cpus="all", bind="set")))
        file = self.put("cases.yaml", document(**self.keys, tests=[{"name": "one", "expect": [{"process": "web", "cpus": "0-3"}]}]))
        self.run_test(file, code=1)
        self.run_test("--root", other.root, file)

    def test_faults_of_a_file_have_their_place(self):
        good = document(**self.keys)
        for text, place, said in (
                ("tests: [{name: a, expect: [{process: web, cpu: 1}]}]", "5:43", "unknown key 'cpu' (did you mean 'cpus'?)"),
                ("tests: [{name: a, expect: [{process: web}]}]", "5:28", "an expectation has 'cpus' or 'within', or a 'policy', or both"),
                ("tests: [{name: a, expect: [{process: web, nic: eth0, cpus: all}]}]", "5:28", "an expectation is about a 'process', a 'nic' or an 'irq'"),
                ("tests: [{name: a, expect: [{process: web, cpus: nod:0}]}]", "5:49", "'cpus': "),
                ("tests: [{name: a, expect: [{process: '/(/', cpus: all}]}]", "5:38", ""),
                ("tests: [{expect: []}]", "5:9", "'name' is missing"),
                ("tests: [a]", "5:9", "an element of 'tests' must be a map"),
                ("tests: {a: b}", "5:8", "'tests' must be a list of maps"),
                ("tests: [{name: a, processes: [{comm: a, threads: {b: 0}}]}]", "5:54", "'threads' must be a number from 1 to 65535"),
                ("tests: [{name: a, processes: [{unit: a}]}]", "5:31", "a process has a name"),
                ("tests: [{name: a, processes: [{comm: a, cpuset: b}]}]", "5:31", "a process has a name, 'comm', and its 'cpuset' is a list"),
                ("tests: [{name: a, processes: [{comm: a, cgroup: /a/../../../x}]}]", "5:31", "'cgroup' is a path like /kubepods.slice/web"),
                ("tests: [{name: a, processes: [{comm: a, exe: ''}]}]", "5:31", "'exe' is an absolute path"),
                ("tests: [{name: a, expect: [{process: web, cpus: []}]}]", "5:28", "'cpus' is empty"),
                ("tests: [{name: a, processes: [{comm: a, unit: ../../x}]}]", "5:31", "'cgroup' is a path like /kubepods.slice/web"),
                ("tests: [{name: a, processes: [{comm: a, count: 65535, threads: {b: 65535}}]}]", "5:9", "a test has at most 10000 threads"),
                ("tests: []", "1:1", "the file has no tests"), ("tests: [", "5:8", "this is not YAML")):
            with self.subTest(text):
                file = self.put("cases.yaml", f"{good}{text}\n")
                told = self.run_test(file, code=3).text
                self.assertIn(f"{file}:{place}: error: {said}", told)
        outside = self.bin / "outside"
        self.run_test(self.put("cases.yaml", f"{good}tests: [{{name: a, processes: [{{comm: '{'../' * 9}{outside}'}}]}}]\n"))
        self.assertFalse(outside.exists())
        self.put("web.yaml", "version: 1\nmatch: {comm: web}\ncpu: 1\n")
        self.assertIn("web.yaml:3:1: error: unknown key 'cpu'", self.run_test(self.put("cases.yaml", good + "tests: [{name: a}]\n"), code=3).text)
        self.assertIn("no recorded machine", self.run_test("--root", self.bin, file, code=2).text)
        self.assertIn("there is no such file", self.run_test(self.bin / "none.yaml", code=1).text)

    def test_the_example_of_the_manual(self):
        page = (SOURCES / "docs/affinityctl.1").read_text(encoding="utf-8").replace("\\-", "-")
        text = re.search(r'^\.\\" example: web1-cases\.yaml\n\.PP\n\.nf\n\.RS\n(.*?)\.RE', page, re.MULTILINE | re.DOTALL)[1]
        with tarfile.open(SOURCES / "tests/machines/foong/recording.tar.gz") as tar:
            tar.extractall(self.bin / "web1", filter="tar") if hasattr(tarfile, "tar_filter") else tar.extractall(self.bin / "web1")
        shutil.copy(SOURCES / "policies/nginx.yaml", self.bin)
        file = self.put("web1-cases.yaml", text)
        self.put("backup.yaml", document(**policy(match={"unit": "backup.service"}, cpus="node:1", bind="set")))
        self.run_test(file)
        self.put("backup.yaml", document(**policy(match={"unit": "backup.service"}, cpus="2-3", bind="set")))
        told = self.run_test(file, code=1).out.replace(str(file), file.name)
        [shown] = re.findall(r"^\$ affinityctl test web1-cases\.yaml\n(.*?)\.fi", page, re.MULTILINE | re.DOTALL)
        self.assertEqual(shown, told)
