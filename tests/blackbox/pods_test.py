# SPDX-License-Identifier: Apache-2.0
"""A daemon with the rights of contrib/container: /proc/irq is read-only, another tree has the machine's, capabilities are those of the unit, and the
policies are a ConfigMap."""
import json
import os
import urllib.request

from house import House, allowed, group, policy, run, wait_for
from machines import OnMachine
from metrics_test import EXPORTER, free_port

RIGHTS = "sys_nice,+sys_ptrace,+dac_read_search,+net_admin,+bpf,+perfmon"


class Pods(OnMachine):
    def make_machine(self):
        super().make_machine()
        (self.machine.root / "host").mkdir()
        self.MORE = (f"mount --rbind /proc {self.machine.root}/host && mount -o remount,bind,ro /proc/irq && "
                     f"set -- setpriv --no-new-privs --bounding-set=-all,+{RIGHTS} \"$@\" &&")

    def test_interrupts_and_tasks_of_others_are_placed_and_put_back(self):
        irqs = self.nic(queues=3)
        daemon = self.acting(arguments=("--proc", self.machine.root / "host"), nic={"version": 1, "affinity": "irq", "nics": ["eth0"]},
                             web=policy("web", cpus="0", bind="set", settle=0))
        self.apart(irqs)
        web = self.program("web", namespace=("setpriv", "--reuid=nobody", "--clear-groups"))
        self.expect(web, "0")
        self.assertEqual([], daemon.problems())
        daemon.stop()
        self.originals()
        self.expect(web, self.everywhere)

    def test_a_read_only_tree_is_told(self):
        self.nic()
        daemon = self.acting(nic={"version": 1, "affinity": "irq", "nics": ["eth0"]})
        wait_for(lambda: "--proc" in daemon.ctl("status", code=None).out, lambda: f"the hint: {daemon.ctl('status', code=None).out}")
        self.originals()


class Rights(House):
    def told(self, without, **policies):
        daemon = self.daemon(namespace=("setpriv", f"--bounding-set=-{without}"), **policies)
        return [problem for problem in daemon.status()["problems"] if problem["subject"] == "rights"]

    def test_those_that_a_policy_needs_and_the_daemon_lacks_are_told(self):
        for without in ("sys_ptrace", "dac_read_search"):
            [problem] = self.told(without, web=policy(match={"any": [{"exe": "/usr/bin/web"}, {"comm": "web"}]}, bind="set"))
            self.assertIn("CAP_SYS_PTRACE", problem["hint"])
        self.assertEqual([], self.told("sys_ptrace", web=policy(match={"comm": "web"}, bind="set")))
        self.assertEqual([], self.told("kill", web=policy(match={"exe": "/usr/bin/web"}, bind="set")))


class ConfigMaps(House):
    """The kubelet's folders: everybody may write to the one that is mounted, and a link in it is switched."""

    def test_a_switch_is_one_reload(self):
        daemon = self.daemon({"reconcile": "1h"}, arguments=("--trust-policies",), start=False)
        daemon.policies.chmod(0o777)
        for version, cpu in (("..1", "0"), ("..2", "1")):
            (daemon.policies / version).mkdir()
            daemon.write("web", self.own(policy("web", cpus=cpu, bind="set", settle=0)))
            (daemon.policies / "web.yaml").rename(daemon.policies / version / "web.yaml")
        (daemon.policies / "..data").symlink_to("..1")
        (daemon.policies / "web.yaml").symlink_to("..data/web.yaml")
        daemon.start()
        web = self.program("web")
        self.expect(web, "0")
        daemon.calm()  # a pass that is under way looks at the files, too
        loads = daemon.text().count("reloaded: ")
        (daemon.policies / "..data_tmp").symlink_to("..2")
        (daemon.policies / "..data_tmp").rename(daemon.policies / "..data")
        self.expect(web, "1")
        daemon.calm()
        self.assertEqual(loads + 1, daemon.text().count("reloaded: "))

    def test_without_the_option_the_folder_is_refused(self):
        daemon = self.daemon(start=False, web=policy("web"))
        daemon.policies.chmod(0o777)
        daemon.start(is_ready=False)
        self.assertEqual(78, daemon.process.wait(timeout=60))
        self.assertIn("any user can write to it", daemon.text())


class Names(House):
    """Pods by name, as their runtime wrote it down; here in a folder that only the daemon sees as /run."""

    def test_a_pod_and_its_namespace_match_processes_of_its_containers(self):
        container = f"{os.getpid():064x}"
        scope = group(self.stack, f"kubepods.{self.mark}") / f"cri-containerd-{container}.scope"
        scope.mkdir()
        self.stack.callback(scope.rmdir)
        folder = self.bin / "run" / "containerd/io.containerd.runtime.v2.task/k8s.io" / container
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({"annotations": {
            "io.kubernetes.cri.sandbox-name": "web-7f9", "io.kubernetes.cri.sandbox-namespace": "shop"}}), encoding="ascii")
        web, other = self.program("web"), self.program("web")
        (scope / "cgroup.procs").write_text(str(web.pid), encoding="ascii")
        hidden = ("unshare", "--mount", "sh", "-c", f'mount --bind {self.bin / "run"} /run && exec "$@"', "sh")
        shop = {"web": policy(match={"pod": "web-*", "namespace": "shop"}, cpus="0", bind="set", settle=0)}
        daemon = self.daemon(namespace=hidden, **shop)
        self.expect(web, "0")
        self.assertEqual((self.everywhere, []), (allowed(other.pid), daemon.problems()))
        daemon.write("web", policy(match={"namespace": "test"}, cpus="0", bind="set", settle=0))
        self.expect(web, self.everywhere)
        verdict = daemon.explain(web.pid)["considered"][0]
        self.assertEqual(("namespace", "test", "shop"), tuple(verdict[key] for key in ("field", "wanted", "found")))
        daemon.stop()
        [problem] = self.daemon(namespace=hidden[:3] + ("-c", 'mount -t tmpfs none /run && exec "$@"', "sh"), **shop).status()["problems"]
        self.assertEqual(("web", "pods"), (problem["policy"], problem["subject"]))


class Exported(House):
    def test_an_exporter_without_systemd_bus_and_capabilities_listens_itself(self):
        daemon = self.daemon(web=policy("web", bind="set"))
        for address in ("127.0.0.1", "[::1]"):
            place = f"{address}:{free_port()}"
            self.spawn("setpriv", "--bounding-set=-all", EXPORTER, "--runtime-dir", daemon.folder / "run", "--listen", place)

            def metrics(place=place):
                try:
                    with urllib.request.urlopen(f"http://{place}/metrics", timeout=60) as answer:
                        return answer.read().decode()
                except OSError:
                    return ""
            wait_for(lambda metrics=metrics: "affinityd_up 1" in metrics(), "it is scraped")

    def test_a_place_where_it_cannot_listen_is_told(self):
        for place, said in (("9073", "no ADDRESS:PORT"), ("localhost:9073", "no ADDRESS:PORT"), ("192.0.2.1:9073", "Cannot assign requested address")):
            done = run(EXPORTER, "--listen", place)
            self.assertEqual((2, True), (done.code, said in done.text), done.text)
