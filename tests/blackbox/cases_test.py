# SPDX-License-Identifier: Apache-2.0
"""Machines from public reports. Each lies in shared/data/cases (AFFINITYD_TEST_DATA names its parent folder) with what a user expects of it;
without that folder there is no test here. The two cases that are scripts are machines.Named and drift."""
import os
import pathlib
import tarfile

from house import affinityctl
from recorded import Planned

CASES = pathlib.Path(os.environ.get("AFFINITYD_TEST_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared/data")) / "cases"

# Case -> ({interrupt: CPUs that plan gives it}, {interface: [CPUs of tx-0, tx-1, ...]}, words of its problems).
PLANS = {
    "atlantic-one-label-for-all": ({150: "0", 151: "1", 152: "2", 153: "3", 154: "0", 155: "1", 156: "2"}, {"enp4s0": ["0", "1", "2", "3"]}, []),
    "labels-cxgb4-queues-left-out": ({42: "0", 43: "1", 44: "2", 45: "3"}, {"enp65s0f4": ["0", "1", "2", "3"]}, []),
    "labels-hinic-all-on-one-cpu": ({42: "0", 43: "1", 44: "2", 45: "3", 46: "0", 47: "1", 48: "2", 49: "3"}, {"enp65s0": ["0", "1", "2", "3"]}, []),
    "labels-hnae-tx-left-out": ({100 + line: str(line // 2) for line in range(32)}, {"enahisic2i0": [str(cpu) for cpu in range(16)]}, []),
    "labels-ionic-all-on-one-cpu": ({41: "0", 42: "1", 43: "2", 44: "3"}, {"enp65s0": ["0", "1", "2", "3"]}, []),
    "mlx5-sub-function": ({41: "0", 42: "1", 43: "2", 44: "3", 46: "4", 47: "5", 48: "6"},
                          {"enp65s0f0np0": ["0", "1", "2", "3"], "enp65s0f0s88": ["4", "5", "6"]}, ["enp65s0f0s88", "sub-function"]),
    "no-interrupt-known-am65-cpsw": ({40: "0", 41: "0", 42: "1", 43: "2"}, {"eth0": ["0,3", "1", "2", "0,3", "1", "2", "0,3", "1"]}, []),
    "no-interrupt-known-ravb": ({13: "0", 14: "1", 15: "0", 16: "1"}, {"eth0": ["0", "1"]}, []),
    "one-queue-router-no-rps": ({96: "4"}, {"eth0": ["4-7"]}, []),
    "plan-without-handler-folders": ({41: "0", 42: "1", 43: "2", 44: "3"}, {"ens3": ["0", "1", "2", "3"]}, []),
}

# Case -> (CPU set -> the CPUs, or a part of the error's hint).
SETS = {
    "cpu-lists-of-other-tools": {"0,2,4": "0,2,4", "0 1 2": "0-2", "0-15:1/2": "write each CPU", "2-N": "write the last CPU's number",
                                 "ccd:1": "write llc:1", "numa:0": "write node:0", "0x3": "write CPU numbers"},
    "cpus-minus-what-is-not-there": {"all - 64-255": "0-31"},
    "isolated-partition-unknown": {"isolated": "2-3", "housekeeping": "0-1"},
    "low-power-cores-have-no-kind": {"kind:performance": "0-11", "kind:efficiency": "12-19", "kind:lowpower": "20-21"},
    "one-queue-router-no-rps": {"kind:performance": "4-7"},
}

# Case -> words of the warnings that doctor gives of it.
DOCTOR = {
    "doctor-misses-interrupts-on-a-pods-cpus": [
        "4 interrupts come to CPUs 2-5, which only a pod of kubelet's CPU manager has (cpuset of kubepods-podg1): IRQ 42 (eth0-Tx-Rx-2)",
        "kubelet.service, containerd.service"],
    "doctor-silent-all-queues-on-cpu-0": ["all 8 queues of ens192 fire on CPU 0 of 46 (at least 250,000,000 interrupts each)"],
    "suggest-isolated-changes-everything": [
        "IRQ 30 (eth0)", "7 threads of docker:0b06980bee2d share isolated CPU 1 of 1-2: the kernel balances no load over isolated CPUs"],
}


class Cases(Planned):
    def unpacked(self, name):
        root = self.bin / name
        with tarfile.open(CASES / name / "root.tar.gz") as archive:
            archive.extractall(root, filter="tar")  # its links to programs are absolute
        return root / "root" if (root / "root").is_dir() else root

    def actions(self, root, *files):
        answer = affinityctl("--root", root, "--json", "plan", *files, code=None).json
        self.assertEqual([], answer["problems"])
        return answer["actions"]

    def each_has_its_expected_plan(self):
        for name, (irqs, maps, words) in PLANS.items():
            with self.subTest(name):
                [file] = (CASES / name).glob("p*.yaml")
                found = self.plan(self.unpacked(name), file)
                self.assertEqual((irqs, maps), found[:2])
                self.assertEqual(bool(words), bool(found[2]), found[2])
                self.assertTrue(all(word in found[2][0] for word in words), found[2])

    def each_has_its_expected_cpu_sets(self):
        for name, sets in SETS.items():
            root = self.unpacked(name)
            for given, expected in sets.items():
                with self.subTest(name, given=given):
                    answer = affinityctl("--root", root, "cpus", given, code=None)
                    self.assertIn(expected, answer.text)
                    self.assertEqual(0 if expected[0] in "0123456789" else 2, answer.code)

    def each_has_its_warnings_of_doctor_and_none_once_they_are_mended(self):
        for name, expected in DOCTOR.items():
            with self.subTest(name):
                root, folder = self.unpacked(name), self.bin / f"{name}.d"
                folder.mkdir()

                def warnings(root=root, folder=folder):
                    found = affinityctl("--root", root, "--json", "doctor", folder, code=(0, 3)).json["findings"]
                    return [(one["sentence"], one["mend"]) for one in found if one["severity"] == "warning"]
                found = warnings()
                self.assertEqual(len(expected), len(found), found)
                for words, (sentence, _) in zip(expected, found):
                    self.assertIn(words, sentence)
                for at, (_, mend) in enumerate(found):
                    (folder / f"{at}.yaml").write_text(mend.removeprefix("a policy: "), encoding="utf-8")
                self.assertEqual([], warnings())

    def several_isolated_cpus_are_dealt_out_by_the_proposal(self):
        root = self.unpacked("suggest-isolated-changes-everything")
        proposals = affinityctl("--root", root, "--json", "suggest").json["proposals"]
        self.assertEqual(["ubersdr"], [one["server"] for one in proposals])
        self.assertNotIn("changes nothing", proposals[0]["text"])
        file = self.bin / "ubersdr.yaml"
        file.write_text(proposals[0]["text"], encoding="utf-8")
        self.assertEqual(["1"] * 4 + ["2"] * 3, sorted(action["to"] for action in self.actions(root, file)))

    def a_partition_made_at_run_time_is_left_alone(self):
        root = self.unpacked("isolated-partition-unknown")
        for file in ("irq.yaml", "nginx.yaml"):
            self.assertLessEqual({action["to"] for action in self.actions(root, CASES / root.name / file)}, {"0", "1", "0-1"})

    def one_queue_is_spread_over_the_cores_of_a_router(self):
        root = self.unpacked("one-queue-router-no-rps")
        self.assertIn("4-7", [action["to"] for action in self.actions(root, CASES / root.name / "policy.yaml") if action.get("queue") == "rx-0"])

    def a_thread_away_from_its_interrupts_is_noted(self):
        root = self.unpacked("policy-full-thread-elsewhere")
        for file, noted in (("wrong.yaml", True), ("right.yaml", False)):
            said = affinityctl("--root", root, "check", CASES / root.name / file).text
            self.assertEqual(noted, "these threads are not where the interrupts go" in said, said)
        self.assertEqual({"4"}, {action["to"] for action in self.actions(root, CASES / root.name / "right.yaml")
                                 if action["kind"] != "task" or action["comm"] == "ethercrab-txrx"})

    def a_serial_line_is_served_where_its_program_runs(self):
        root = self.unpacked("serial-and-other-interrupts")
        klipper = self.bin / "klipper.yaml"
        klipper.write_text((CASES / root.name / "klipper.yaml").read_text(encoding="utf-8") + 'irqs: ["ttyS0"]\n', encoding="utf-8")
        irqs, _, problems = self.plan(root, klipper, CASES / root.name / "eth0.yaml")
        self.assertEqual(({21: "3", 33: "0"}, []), (irqs, problems))

    if CASES.is_dir():
        test_each_has_its_expected_plan = each_has_its_expected_plan
        test_each_has_its_expected_cpu_sets = each_has_its_expected_cpu_sets
        test_each_has_its_warnings_of_doctor = each_has_its_warnings_of_doctor_and_none_once_they_are_mended
        test_several_isolated_cpus_are_dealt_out = several_isolated_cpus_are_dealt_out_by_the_proposal
        test_a_partition_made_at_run_time_is_left_alone = a_partition_made_at_run_time_is_left_alone
        test_one_queue_is_spread_over_the_cores_of_a_router = one_queue_is_spread_over_the_cores_of_a_router
        test_a_thread_away_from_its_interrupts_is_noted = a_thread_away_from_its_interrupts_is_noted
        test_a_serial_line_is_served_where_its_program_runs = a_serial_line_is_served_where_its_program_runs
