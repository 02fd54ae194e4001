# SPDX-License-Identifier: Apache-2.0
"""contrib/container: what the manifests name is there, and they give the daemon the rights of its unit and no others."""
import pathlib
import re
import subprocess
import unittest

import yaml

SOURCES = pathlib.Path(__file__).resolve().parents[2]
BASE = SOURCES / "contrib/container/base"
RULES = "{extends: default, rules: {line-length: {max: 150}, document-start: disable}}"


def load(name):
    return yaml.safe_load((BASE / name).read_text(encoding="utf-8"))


def unit(key):
    """The words of a line of the daemon's unit."""
    return re.search(rf"^{key}=(.*)$", (SOURCES / "systemd/affinityd.service.in").read_text(encoding="utf-8"), re.MULTILINE)[1].split()


class Manifests(unittest.TestCase):
    def setUp(self):
        self.kustomization, self.set, self.monitor = (load(f"{name}.yaml") for name in ("kustomization", "daemonset", "podmonitor"))
        self.template = self.set["spec"]["template"]
        self.pod = self.template["spec"]
        self.daemon, self.exporter = self.pod["containers"]

    def test_yamllint_has_no_complaints(self):
        done = subprocess.run(["yamllint", "--strict", "-d", RULES, BASE], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stdout + done.stderr))

    def test_the_daemon_has_the_capabilities_of_its_unit_and_is_not_privileged(self):
        for container, added in ((self.daemon, {word.removeprefix("CAP_") for word in unit("CapabilityBoundingSet")}), (self.exporter, set())):
            rights = container["securityContext"]
            self.assertEqual((["ALL"], added), (rights["capabilities"]["drop"], set(rights["capabilities"].get("add", ()))))
            self.assertEqual((False, True), (rights["allowPrivilegeEscalation"], rights["readOnlyRootFilesystem"]))
            self.assertNotIn("privileged", rights)
        self.assertEqual((True, True), (self.pod["hostPID"], self.pod["hostNetwork"]))
        self.assertEqual(int(unit("TimeoutStopSec")[0]), self.pod["terminationGracePeriodSeconds"])

    def test_the_command_of_podman_gives_the_same(self):
        readme = (SOURCES / "contrib/container/README.md").read_text(encoding="utf-8")
        self.assertEqual(set(self.daemon["securityContext"]["capabilities"]["add"]), set(re.search(r"--cap-add (\S+)", readme)[1].split(",")))
        self.assertLessEqual({"--proc", "/host/proc"}, set(self.daemon["args"]) & set(readme.split()))

    def test_what_a_manifest_names_is_there(self):
        self.assertEqual([], [name for name in self.kustomization["resources"] if not (BASE / name).exists()])
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        self.assertEqual(set(volumes), {mount["name"] for container in self.pod["containers"] for mount in container["volumeMounts"]})
        self.assertEqual([volumes["policies"]["configMap"]["name"]], [one["name"] for one in self.kustomization["configMapGenerator"]])
        labels = self.template["metadata"]["labels"]
        self.assertEqual((labels, labels), (self.set["spec"]["selector"]["matchLabels"], self.monitor["spec"]["selector"]["matchLabels"]))
        [endpoint] = self.monitor["spec"]["podMetricsEndpoints"]
        [port] = self.exporter["ports"]
        self.assertEqual(endpoint["port"], port["name"])
        self.assertTrue(self.exporter["command"][-1].endswith(f":{port['containerPort']}"))


if __name__ == "__main__":
    unittest.main()
