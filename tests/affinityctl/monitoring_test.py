# SPDX-License-Identifier: Apache-2.0
"""The text of metrics, the alert rules and the dashboard: by promtool, and by the names that there are."""
import json
import os
import pathlib
import re
import subprocess
import unittest

METRICS = pathlib.Path(__file__).resolve().parent / "metrics.prom"  # which metrics_test.cpp compares with the program
MONITORING = pathlib.Path(os.environ["AFFINITYD_SOURCE"]) / "docs/monitoring"
DASHBOARD = json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))


def promtool(*words, text=None):
    done = subprocess.run(["promtool", *map(str, words)], input=text, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def names(text):
    return set(re.findall(r"\baffinityd_[a-z_]+\b", text))


class Monitoring(unittest.TestCase):
    def test_promtool_has_no_complaints_about_the_metrics(self):
        self.assertEqual((0, ""), promtool("check", "metrics", text=METRICS.read_text(encoding="utf-8")))

    def test_the_alert_rules(self):
        code, told = promtool("check", "rules", MONITORING / "affinityd.rules.yaml")
        self.assertEqual((0, True), (code, "6 rules found" in told), told)
        code, told = promtool("test", "rules", MONITORING / "affinityd.rules.test.yaml")
        self.assertEqual(0, code, told)

    def test_rules_and_dashboard_name_metrics_that_there_are(self):
        known = names(METRICS.read_text(encoding="utf-8"))
        for path in sorted(MONITORING.iterdir()):
            with self.subTest(path.name):
                self.assertTrue(names(path.read_text(encoding="utf-8")))
                self.assertEqual(set(), names(path.read_text(encoding="utf-8")) - known)
        shown = names((MONITORING / "grafana.json").read_text(encoding="utf-8"))
        unseen = known - shown - {"affinityd_event_to_pinned_seconds" + end for end in ("", "_count", "_sum")}
        self.assertEqual({"affinityd_build_info", "affinityd_dry_run", "affinityd_left_out", "affinityd_passes_total", "affinityd_policy_processes",
                          "affinityd_measurement_timestamp_seconds"} | {f"affinityd_nic_queues_{state}" for state in ("refused", "drifting", "contended", "immovable")},
                         unseen, "all else is on the dashboard")

    def test_the_dashboard_is_one(self):
        """Grafana needs this of its schema 38: unique numbers of panels, no two at one place, and data sources that can be chosen."""
        self.assertEqual((38, "affinityd"), (DASHBOARD["schemaVersion"], DASHBOARD["title"]))
        panels = DASHBOARD["panels"]
        self.assertEqual(len(panels), len({panel["id"] for panel in panels}))
        taken = set()
        for panel in panels:
            with self.subTest(panel["title"]):
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                self.assertLessEqual(place["x"] + place["w"], 24)
                self.assertEqual(set(), cells & taken)
                taken |= cells
                if panel["type"] == "row":
                    continue
                self.assertIn(panel["type"], ("stat", "timeseries", "heatmap"))
                self.assertEqual({"type": "prometheus", "uid": "${datasource}"}, panel["datasource"])
                self.assertEqual(len(panel["targets"]), len({target["refId"] for target in panel["targets"]}))
                self.assertTrue(panel["targets"] and panel["fieldConfig"]["defaults"]["unit"])
        self.assertEqual(["datasource", "instance", "policy"], [one["name"] for one in DASHBOARD["templating"]["list"]])


if __name__ == "__main__":
    unittest.main()
