# SPDX-License-Identifier: Apache-2.0
"""`affinityctl metrics` and the exporter: the figures of status, as a real Prometheus has scraped them, for AFFINITYD_SCRAPED_SECONDS (default 3)."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import time
import urllib.error
import urllib.parse
import urllib.request

from house import BUILD, House, measured, policy, report, run, wait_for
from nets import Net

EXPORTER = BUILD / "tools/affinity-exporter/affinity-exporter"
MONITORING = pathlib.Path(__file__).resolve().parents[2] / "docs/monitoring"
SECONDS = float(os.environ.get("AFFINITYD_SCRAPED_SECONDS", "3"))
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><listen>unix:path={socket}</listen><auth>EXTERNAL</auth><policy context="default">
<allow send_destination="*" eavesdrop="false"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/></policy></busconfig>
"""
CONFIG = """global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: affinityd
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""
# Other figures of the same are counted from the list of threads or queues.
THREADS = {"refused": "refused", "contended": "fought over", "immovable": "immovable"}
QUEUES = THREADS | {"drifting": "not in place"}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def queues_of(status, key):
    """{name: [states of the parts of one queue]}"""
    found = {}
    for part in status["queues"]:
        if (part["nic"] or part["kind"] == "irq") and part["state"] not in ("decided by another policy", "released"):
            queue = part.get("queue_number", f"irq {part.get('irq')}")
            found.setdefault(part[key], {}).setdefault((part["nic"], queue), []).append(part["state"])
    return {name: [next((state for state in states if state != "in place"), "in place") for states in queues.values()] for name, queues in found.items()}


def series_of(status):
    """The series that a status stands for: {(name, label's value...): value}."""
    found = {("up",): 1, ("build_info", status["version"]): 1, ("left_out",): 0, ("dry_run",): int(status["dry_run"]),
             ("passes_total",): status["reconciles"], ("last_pass_seconds",): status["last_pass_seconds"], ("events_total",): status["fast_path"],
             ("events_lost_total",): status["events_lost"], ("files_with_errors",): len(status["load"]["faults"]) + bool(status["load"]["refused"])}
    found |= {("health", one): int(status["health"] == one) for one in ("ok", "settling", "attention")}
    for problem in status["problems"]:
        found["problems", problem["kind"], problem["severity"]] = found.get(("problems", problem["kind"], problem["severity"]), 0) + 1
    times = status["event_to_pinned"]
    found |= {("event_to_pinned_seconds_count",): times["count"], ("event_to_pinned_seconds_sum",): times["seconds"]}
    for bucket in times["buckets"]:
        bound = bucket["up_to_seconds"]
        found["event_to_pinned_seconds_bucket", "+Inf" if bound is None else f"{bound}"] = bucket["count"]
    for one in status["policies"]:
        name = one["name"]
        states = [thread["state"] for process in status["processes"] if process["policy"] == name for thread in process["threads"]]
        found |= {("policy_processes", name): one["processes"], ("policy_threads_wanted", name): one["threads_wanted"],
                  ("policy_threads_in_place", name): one["threads_in_place"], ("policy_threads_drifting", name): one["threads_drifted"],
                  ("policy_put_right_total", name): one["drift_put_right"]}
        found |= {(f"policy_threads_{figure}", name): states.count(state) for figure, state in THREADS.items()}
        if one.get("local", {}).get("samples", 0) >= 20:
            found |= {("policy_local_ratio", name): one["local"]["same"]["core"], ("policy_local_ratio_by_chance", name): one["local"]["chance"]["core"]}
        if "accepts" in one:
            found |= {("policy_worker_accepts_min", name): one["accepts"]["least"], ("policy_worker_accepts_max", name): one["accepts"]["most"]}
        found |= {(f"policy_interruptions_{figure}", name): count for figure, count in one.get("interruptions", {}).items()}
        for cost in status["costs"]:
            if cost["policy"] == name and cost["cpu_seconds_per_gb"] is not None:
                found["policy_cpu_seconds_per_gigabyte", name] = cost["cpu_seconds_per_gb"]
    nics = queues_of(status, "nic")
    for scope, by_name in (("policy", dict.fromkeys((one["name"] for one in status["policies"]), []) | queues_of(status, "policy")), ("nic", nics)):
        for name, states in by_name.items():
            found |= {(f"{scope}_queues_wanted", name): len(states), (f"{scope}_queues_in_place", name): states.count("in place")}
            found |= {(f"{scope}_queues_{figure}", name): states.count(state) for figure, state in QUEUES.items()}
    for name in nics:
        masks = [part["present"] for part in status["queues"] if part["nic"] == name and part["kind"] == "irq"]
        found["nic_interrupt_cpus", name] = len({cpu for mask in masks for cpu in mask.split(",") if cpu})
    return found


def labels_of(metric):
    return tuple(value for key, value in sorted(metric.items()) if key not in ("__name__", "instance", "job"))


class Scraped:
    """An exporter as systemd starts it, by an unprivileged user, and a Prometheus."""

    def begin(self, daemon_of):
        """`daemon_of`: makes the daemon, whose command begins with these words."""
        (self.bin / "bus.conf").write_text(BUS.format(socket=self.bin / "bus"), encoding="utf-8")
        self.bin.chmod(0o755)
        self.spawn("dbus-daemon", f"--config-file={self.bin}/bus.conf", "--nofork", "--nopidfile")
        wait_for((self.bin / "bus").exists, "the bus listens")
        address = f"DBUS_SYSTEM_BUS_ADDRESS=unix:path={self.bin}/bus"
        self.running = daemon_of(("env", address))
        wait_for(lambda: "on the system bus as org.affinityd" in self.running.text(), "the daemon is on the bus")
        self.running.folder.chmod(0o755)
        exporter = shutil.copy(EXPORTER, self.bin)
        self.port = free_port()
        self.exporter = self.spawn("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--bounding-set=-all", "systemd-socket-activate",
                                   "-l", f"127.0.0.1:{self.port}", "-E", address, exporter, "--runtime-dir", self.running.folder / "run")
        wait_for(lambda: self.get("/metrics") is not None, "the exporter answers")

    def get(self, path, port=None, timeout=60, **headers):
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{port or self.port}{path}", headers=headers)
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def prometheus(self):
        self.api = free_port()
        (self.bin / "prometheus.yml").write_text(CONFIG.format(port=self.port, rules=MONITORING / "affinityd.rules.yaml"), encoding="utf-8")
        self.spawn("prometheus", f"--config.file={self.bin}/prometheus.yml", f"--storage.tsdb.path={self.bin}/tsdb", f"--web.listen-address=127.0.0.1:{self.api}",
                   cwd=self.bin)
        wait_for(lambda: self.query("affinityd_up"), "Prometheus has scraped the exporter")

    def query(self, expression):
        answer = self.get("/api/v1/query?" + urllib.parse.urlencode({"query": expression}), port=self.api)
        if answer is None:
            return []
        answer = json.loads(answer)
        self.assertEqual("success", answer["status"], answer)
        return answer["data"]["result"]

    def scraped(self):
        return {(one["metric"]["__name__"].removeprefix("affinityd_"), *labels_of(one["metric"])): float(one["value"][1])
                for one in self.query('{__name__=~"affinityd_.*"}')}

    def differing(self, before):
        """Series that are neither those of the status before, nor of one now, nor between them."""
        scraped, now = self.scraped(), series_of(self.running.status())
        wrong = [key for key in before.keys() & now.keys() & scraped.keys()
                 if not min(before[key], now[key]) - 1e-9 <= scraped[key] <= max(before[key], now[key]) + 1e-9]
        return wrong + [f"only here: {key}" for key in (before.keys() & now.keys()) - scraped.keys()] + \
            [f"only there: {key}" for key in scraped.keys() - (before.keys() | now.keys())]

    def compare(self):
        end, rounds = time.monotonic() + SECONDS, 0
        while rounds < 2 or time.monotonic() < end:
            before = series_of(self.running.status())
            wait_for(lambda before=before: not self.differing(before), lambda before=before: f"all are equal: {self.differing(before)}")
            rounds += 1
            time.sleep(0.5)
        return before


class Exporter(Scraped, House):
    def test_an_unprivileged_one_is_scraped_by_prometheus_and_says_when_the_daemon_is_gone(self):
        self.begin(lambda way: self.daemon({"reconcile": "1h"}, namespace=way, web=self.policy("web", cpus="1", bind="set", settle=0)))
        web = self.program("web")
        self.expect(web, "1")
        self.assertTrue(self.get("/metrics", Accept="application/openmetrics-text; version=1.0.0").endswith("# EOF\n"))
        self.assertEqual((None, None), (self.get("/"), self.get("/metrics/x")))
        self.prometheus()
        series = self.compare()
        self.assertEqual((1, 1), (series["policy_threads_in_place", "web"], series["policy_processes", "web"]))
        self.assertLess(0, series["event_to_pinned_seconds_count",])
        self.running.write("bad", "version: 1\ncpuz: 1\n")
        wait_for(lambda: self.scraped()[("files_with_errors",)] == 1, "the fault is scraped")
        rules = json.loads(self.get("/api/v1/rules", port=self.api))["data"]["groups"][0]["rules"]
        self.assertEqual((6, {"ok"}), (len(rules), {rule["health"] for rule in rules}))
        self.running.stop()
        wait_for(lambda: self.scraped() == {("up",): 0}, "the exporter says that the daemon is gone")
        self.assertEqual(1, len(wait_for(lambda: self.query('ALERTS{alertname="AffinityGone"}'), "the alert is pending")))

    def test_slow_requests_of_many_addresses_keep_no_other_out_and_end(self):
        self.begin(lambda way: self.daemon(namespace=way))
        slow, began = [], time.monotonic()
        for number in range(100):
            slow.append(self.stack.enter_context(socket.create_connection(("127.0.0.1", self.port), timeout=5, source_address=(f"127.0.1.{number + 1}", 0))))
            slow[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")

        def is_open(one):
            """Sends a little more of the header."""
            try:
                one.setblocking(False)
                one.send(b"X")
                return one.recv(1) != b""
            except BlockingIOError:
                return True
            except OSError:
                return False

        wait_for(lambda: sum(map(is_open, slow)) <= 32, "older ones are closed")
        took = measured(lambda: "affinityd_up 1" in (self.get("/metrics", timeout=5) or ""), "it answers others")
        report(f"an answer beside 100 slow requests: {1000 * took:.0f} ms")
        wait_for(lambda: not any(map(is_open, slow)), "all are closed", patience=20)
        self.assertLess(time.monotonic() - began, 20)


class Interfaces(Scraped, Net):
    def test_queues_are_scraped_and_the_dashboards_queries_have_answers(self):
        nic = self.pair(queues=2)
        self.server()
        self.begin(lambda way: self.inside(namespace=self.near.command(*way), web=policy("server", affinity="full", nics=[nic], settle=0)))
        self.client()
        self.running.passes()
        wait_for(lambda: self.running.policy("web")["processes"] == 1 and self.running.status()["queues"], "the server and its queues are under policy")
        self.prometheus()
        series = self.compare()
        self.assertEqual((2, 2), (series["policy_queues_wanted", "web"], series["nic_queues_wanted", nic]))
        names = {key[0] for key in series}
        for panel in json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))["panels"]:
            for target in panel.get("targets", ()):
                expression = target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$policy", ".*")
                with self.subTest(panel["title"], expression=expression):
                    found = self.query(expression)
                    if set(re.findall(r"affinityd_([a-z_]+)", expression)) <= names and "rate(" not in expression and "increase(" not in expression:
                        self.assertTrue(found)


class Text(House):
    def test_the_textfile_is_written_in_one_step_also_without_a_daemon(self):
        file = self.bin / "affinityd.prom"
        daemon = self.daemon({"reconcile": "1h"}, web=self.policy("web", cpus="0"))
        self.assertEqual("", daemon.ctl("metrics", "--textfile", file).out)
        self.assertIn('affinityd_policy_threads_wanted{policy="web"} 0\n', file.read_text(encoding="utf-8"))
        self.assertEqual("", run("promtool", "check", "metrics", stdin=open(file, "rb"), code=0).text)
        self.assertTrue(daemon.ctl("metrics").out.endswith("# EOF\n"))
        self.assertIn("affinityd_up", [one["name"] for one in daemon.ctl("metrics", "--json").json])
        before = file.stat().st_ino
        daemon.stop()
        daemon.ctl("metrics", code=4)
        daemon.ctl("metrics", "--textfile", file, code=4)
        self.assertIn("affinityd_up 0\n", file.read_text(encoding="utf-8"))
        self.assertNotEqual(before, file.stat().st_ino, "the reader of the old one has it whole")
        (self.bin / "link").symlink_to(file)
        self.assertIn("link", daemon.ctl("metrics", "--textfile", self.bin / "link", code=1).err)
        daemon.start()
        daemon.ctl("metrics", "--textfile", file)
        daemon.process.send_signal(signal.SIGSTOP)
        daemon.ctl("metrics", "--textfile", file, code=1)
        daemon.process.send_signal(signal.SIGCONT)
        self.assertIn("affinityd_up 0\n", file.read_text(encoding="utf-8"), "it answers nothing")

    def test_a_file_of_the_users_beside_it_stays(self):
        daemon = self.daemon()
        for words in (("metrics", "--textfile"), ("report",), ("topology", "--svg")):
            with self.subTest(words):
                file, own = self.bin / f"{words[0]}.out", self.bin / f"{words[0]}.out.new"
                own.write_text("the user's", encoding="utf-8")
                daemon.ctl(*words, file)
                self.assertEqual("the user's", own.read_text(encoding="utf-8"))
                self.assertEqual({file, own}, set(self.bin.glob(f"{words[0]}*")))
