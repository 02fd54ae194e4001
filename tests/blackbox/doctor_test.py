# SPDX-License-Identifier: Apache-2.0
"""affinityctl doctor: each finding is provoked on a recorded machine, and goes when the mend that it names is applied. A healthy machine has
none."""
import pathlib
import shutil
import socket
import sys

from house import House, affinityctl, children, document, policy, python, run, wait_for
from recorded import Recorded

GATHER = pathlib.Path(__file__).resolve().parents[2] / "tools/gather-host"
FULL = policy(match={"unit": "server.service"}, affinity="full", nics=["eth0"])
NEAR = policy(match={"unit": "server.service"}, cpus="0-3", bind="node")
SYSTEM = "sys/devices/system/cpu/cpu0/"
# A master and two workers, which take connections from one socket, or from one each.
SERVER = """import os, socket, sys, time
listeners = []
for one in range(int(sys.argv[2])):
    listeners.append(socket.socket())
    listeners[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listeners[-1].bind(("127.0.0.1", int(sys.argv[1])))
    listeners[-1].listen()
for worker in range(2):
    if os.fork() == 0:
        break
time.sleep(600)
"""


class Doctor(House):
    PLAIN = True  # no daemon takes part

    def machine(self, labels=4, **options):
        """A healthy one: a NIC whose queues have interrupts of known labels, and a server of a master and two workers."""
        shutil.rmtree(self.bin / "root", ignore_errors=True)
        self.host = Recorded(self.bin / "root", **options)
        labels = [f"eth0-TxRx-{queue}" for queue in range(labels)] if isinstance(labels, int) else labels
        self.host.nic("eth0", labels, driver="ixgbe")
        for queue in range(len(labels)):
            self.host.put(self.queue(queue, "tx") + "xps_cpus", f"{1 << queue:x}")
        for pid in (900, 901, 902):
            self.host.process(pid, "server", unit="server.service", ppid=1 if pid == 900 else 900, cpus=range(4))
        shutil.rmtree(self.bin / "policies", ignore_errors=True)
        (self.bin / "policies").mkdir()

    def queue(self, number, direction="rx"):
        return f"sys/devices/pci0000:00/0000:41:00.0/net/eth0/queues/{direction}-{number}/"

    def write(self, name, content):
        (self.bin / f"policies/{name}.yaml").write_text(content if isinstance(content, str) else document(**content), encoding="utf-8")

    def doctor(self, **policies):
        """{kind: finding}"""
        for name, content in policies.items():
            self.write(name, content)
        answer = affinityctl("--root", self.host.root, "--json", "doctor", self.bin / "policies", code=None)
        value = answer.json
        self.assertEqual(3 * (value["warnings"] > 0), answer.code, answer.text)
        self.assertEqual((value["warnings"], value["notes"]), tuple(sum(finding["severity"] == severity for finding in value["findings"])
                                                                     for severity in ("warning", "note")))
        found = {finding["id"]: finding for finding in value["findings"]}
        self.assertEqual(len(found), len(value["findings"]), "each once")
        return found

    def only(self, kind, *parts, **policies):
        """This alone is found, and its sentence has these parts; its mend."""
        found = self.doctor(**policies)
        self.assertEqual([kind], list(found), found)
        for part in parts:
            self.assertIn(part, found[kind]["sentence"])
        return found[kind]["mend"]

    def add_policy(self, mend):
        """A mend that is a policy."""
        self.assertTrue(mend.startswith("a policy: {"), mend)
        self.write("mend", mend.removeprefix("a policy: "))

    def add_line(self, mend, of):
        """A mend that is a line of the policy `web`, which is `of`."""
        key, value = mend.removeprefix("policy web: ").split(": ")
        self.assertTrue(mend.startswith("policy web: "), mend)
        self.write("web", of | {key: value})

    def none(self):
        self.assertEqual({}, self.doctor())


class Healthy(Doctor):
    def test_nothing_is_found(self):
        for options in ({}, {"nodes": 2}, {"isolated": {6, 7}}, {"smt": 2}, {"labels": 8}):
            for web in (FULL, NEAR):
                with self.subTest(options=options, web=web):
                    self.machine(**options)
                    self.assertEqual({}, self.doctor(web=web))
                    text = affinityctl("--root", self.host.root, "doctor", self.bin / "policies")
                    self.assertIn("nothing works against affinity here", text.out)

    def test_the_text_tells_a_finding_and_its_mend(self):
        self.machine()
        self.host.put("proc/stat", "cpu 80 0 0 0 0 0 0 20 0 0")
        answer = affinityctl("--root", self.host.root, "doctor", self.bin / "policies", code=3)
        self.assertRegex(answer.out, r"1 warning, 0 notes\n.*took 20.0 % of the CPU time")
        self.assertIn("virsh vcpupin", answer.out)


class Programs(Doctor):
    def setUp(self):
        super().setUp()
        self.machine()

    def test_irqbalance(self):
        self.host.process(812, "irqbalance")
        mend = self.only("irqbalance", "pid 812", "4 of the 4", web=FULL)
        self.assertEqual("systemctl disable --now irqbalance", mend)
        self.host.process(811, "irqbalance", uid=1000)  # a user's program of that name is none
        shutil.rmtree(self.host.root / "proc/812")
        self.none()

    def test_irqbalance_that_leaves_them_alone(self):
        self.host.process(812, "irqbalance", cmdline=["irqbalance", "--banirq=40", "-i", "41", "--banirq", "42", "--banirq=43"])
        self.assertEqual({}, self.doctor(web=FULL))

    def test_a_scheduler(self):
        self.host.put("sys/kernel/sched_ext/state", "enabled")
        self.host.put("sys/kernel/sched_ext/root/ops", "rusty")
        self.assertIn("systemctl stop", self.only("sched-ext", "rusty"))
        self.host.put("sys/kernel/sched_ext/state", "disabled")
        self.none()

    def test_a_profile_of_tuned(self):
        self.host.process(700, "tuned")
        self.host.put("etc/tuned/cpu-partitioning-variables.conf", "# isolated_cores=9\nisolated_cores = 2-3")
        self.host.put("etc/tuned/active_profile", "cpu-partitioning")
        mend = self.only("tuned", "cpu-partitioning", "isolated cores 2-3")
        self.host.put("etc/tuned/active_profile", mend.split()[-1])
        self.none()


class Interrupts(Doctor):
    def test_isolated_cpus_among_others(self):
        self.machine(isolated={2, 3})
        web = policy(match={"unit": "server.service"}, cpus="0-3")
        self.add_line(self.only("isolated-cpus", "policy web", "(2-3)", web=web), web)
        self.none()

    def test_an_interrupt_on_an_isolated_cpu(self):
        self.machine(isolated={6, 7})
        irq = self.host.irq("disk0", cpus={6}, count=4321)
        self.add_policy(self.only("irq-on-isolated", f"IRQ {irq} (disk0) came 4,321 times to CPU 6"))
        self.none()

    def test_an_interrupt_on_an_exclusive_cpu(self):
        self.machine()
        irq = self.host.irq("disk0", cpus={5}, count=17)
        web = policy(match={"unit": "server.service"}, cpus="4-5", exclusive=True)
        self.add_policy(self.only("irq-on-isolated", f"IRQ {irq} (disk0) came 17 times to CPU 5", web=web))
        self.none()

    def test_an_unknown_label(self):
        self.machine(labels=[f"q-{queue}-of-eth0" for queue in range(4)])
        mend = self.only("unknown-label", "4 interrupts of eth0", "q-0-of-eth0")
        file, _, text = mend.partition(": ")
        self.host.put(file.removeprefix("/"), text)
        self.none()

    def test_an_interrupt_that_cannot_be_moved(self):
        self.machine()
        irq = self.host.irq("disk0", chip="MSI-INTA")
        self.host.irq("disk1")
        disks = {"version": 1, "affinity": "irq", "irqs": ["disk*"]}
        self.assertIn("leave disk0 out", self.only("managed-irq", "policy disks", f"IRQ {irq} (disk0)", disks=disks))
        self.write("disks", disks | {"irqs": ["disk1"]})
        self.none()

    def test_words_that_isolated_cpus_need_on_the_command_line(self):
        self.machine()
        quiet = {"version": 1, "match": {"comm": "quiet"}, "cpus": "2-3", "isolate": True}
        mend = self.only("boot-words", "CPUs 2-3 of policy quiet (isolate: true) keep the timer tick", quiet=quiet)
        self.assertIn("nohz_full=2-3 rcu_nocbs=2-3 isolcpus=managed_irq,2-3", mend)
        self.host.put("sys/devices/system/cpu/nohz_full", "2-3")
        self.none()


class Interfaces(Doctor):
    def test_a_nic_far_from_its_server(self):
        self.machine(nodes=2)
        web = FULL | {"cpus": "4-7"}
        self.add_line(self.only("nic-far", "CPUs 4-7", "node 0", "eth0", web=web), web)
        self.none()

    def test_fewer_queues_than_workers(self):
        self.machine(labels=1)
        self.assertEqual("ethtool -L eth0 combined 2", self.only("few-queues", "1 receive queue", "2 workers", web=FULL))
        self.machine(labels=2)
        self.assertEqual({}, self.doctor(web=FULL))

    def test_packets_that_are_passed_on(self):
        self.machine(cpus=4)
        self.host.put(self.queue(1) + "rps_cpus", "f")
        self.add_policy(self.only("rps-left", "eth0", "4 receive queues for 4 CPUs", "1 of them"))
        self.none()

    def test_no_maps_of_transmit_queues(self):
        self.machine()
        for queue in range(4):
            self.host.put(self.queue(queue, "tx") + "xps_cpus", "0")
        self.add_policy(self.only("xps-unset", "eth0", "4 queues"))
        self.none()


class Queues(Doctor):
    """Where the interrupts of a device's queues come."""

    def fire(self, *cpus, first=40):
        self.host.fire({first + at: cpu for at, cpu in enumerate(cpus)})

    def test_all_queues_of_a_nic_on_one_cpu(self):
        self.machine()
        self.fire(0, 0, 0, 0)
        self.add_policy(self.only("queues-on-one-cpu", "all 4 queues of eth0 fire on CPU 0 of 8 (at least 250,000 interrupts each)"))
        self.none()
        self.machine()
        self.host.fire({40: 0, 41: 0}, count=999)  # they are not used
        self.none()

    def test_all_queues_of_a_disk_on_one_cpu(self):
        self.machine()
        disk = [self.host.irq(f"nvme0q{queue}", cpus={2}) for queue in range(5)]
        self.fire(2, 2, 2, 2, 2, first=disk[0])
        self.add_policy(self.only("queues-on-one-cpu", "all 5 queues of nvme0q* fire on CPU 2 of 8"))
        self.none()

    def test_queues_of_a_disk_that_the_kernel_has_spread(self):
        self.machine()
        disk = [self.host.irq(f"nvme0q{queue}", cpus={2 * queue, 2 * queue + 1}) for queue in range(4)]
        self.fire(0, 2, 4, 6, first=disk[0])
        self.none()

    def test_all_queues_on_the_node_that_the_nic_is_not_on(self):
        self.machine(nodes=2)
        self.fire(4, 5, 6, 7)
        self.add_policy(self.only("queues-on-one-node", "all 4 queues of eth0 fire on node 1, and it is on node 0"))
        self.none()
        self.machine(nodes=2)
        self.fire(0, 1, 2, 3)
        self.none()

    def test_more_queues_than_the_node_has_cores(self):
        self.machine(nodes=2)
        disk = [self.host.irq(f"nvme0q{queue}") for queue in range(6)]
        self.fire(0, 1, 2, 3, 0, 1, first=disk[0])
        self.add_policy(self.only("queues-on-one-node", "all 6 queues of nvme0q* fire on node 0, which has 4 cores"))
        self.none()

    def test_queues_stacked_on_one_cpu_of_several(self):
        self.machine()
        self.fire(0, 0, 0, 1)
        self.add_policy(self.only("queues-stacked", "3 queues of eth0 fire on CPU 0, and 6 cores near it, such as that of CPU 2, take none of its 4 queues"))
        self.none()
        self.machine(cpus=4)
        self.fire(3, 2, 1, 0)
        self.none()

    def test_pairs_of_queues_are_not_stacked(self):
        self.machine(labels=[f"eth0-{way}-{queue}" for queue in range(4) for way in ("rx", "tx")])
        self.fire(0, 0, 1, 1, 2, 2, 3, 3)
        self.none()

    def test_labels_that_fit_no_form_without_a_list_of_interrupts(self):
        """Half of the labels are known: the others hold the interface's name."""
        self.machine()
        self.host.nic("end0", ["end0-TxRx-0", "end0-TxRx-1", "end0:q:2", "end0:q:3"], driver="ixgbe", pci="0000:51:00.0", queues=(4, 1), msi=False)
        mend = self.only("unknown-label", "2 interrupts of end0", "end0:q:2")
        file, _, text = mend.partition(": ")
        self.host.put(file.removeprefix("/"), text)
        self.none()

    def test_maps_of_transmit_queues_come_last(self):
        self.machine()
        for queue in range(4):
            self.host.put(self.queue(queue, "tx") + "xps_cpus", "0")
        self.host.put(SYSTEM + "cpufreq/scaling_governor", "powersave")
        self.assertEqual(["powersave", "xps-unset"], list(self.doctor()))


class Containers(Doctor):
    """CPUs that a container has by its cpuset."""

    POD = "/kubepods.slice/kubepods-podg1.slice/cri-containerd-" + 64 * "a" + ".scope"
    BATCH = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podb.slice/cri-containerd-" + 64 * "b" + ".scope"

    def group(self, pid, name, path, cpus, threads=0):
        self.host.process(pid, name, cgroup=path, cpus=cpus, threads={pid + 1 + at: f"w{at}" for at in range(threads)})
        self.host.cpuset(path, cpus)

    def test_interrupts_and_services_on_a_pods_cpus(self):
        self.machine()
        for pid in (900, 901, 902):
            shutil.rmtree(self.host.root / f"proc/{pid}")
        self.host.fire({40: 2, 41: 3, 42: 6, 43: 7})
        self.host.process(700, "kubelet", unit="kubelet.service")
        self.group(1000, "app", self.POD, {2, 3})
        self.group(1100, "batch", self.BATCH, {0, 1, 4, 5, 6, 7})
        for pid, path in ((1001, self.POD), (1101, self.BATCH)):  # of the pods' namespaces
            self.host.process(pid, "pause", cgroup=path.replace("aaaa", "cccc").replace("bbbb", "dddd"))
        found = self.doctor()
        self.assertEqual(["irq-on-container", "service-on-container"], list(found))
        self.assertIn("2 interrupts come to CPUs 2-3, which only a pod of kubelet's CPU manager has (cpuset of kubepods-podg1): IRQ 40 (eth0-TxRx-0)",
                      found["irq-on-container"]["sentence"])
        self.assertIn("kubelet.service", found["service-on-container"]["sentence"])
        for number, finding in enumerate(found.values()):
            self.write(f"mend{number}", finding["mend"].removeprefix("a policy: "))
        self.none()

    def test_cpus_that_containers_share(self):
        self.machine()
        self.host.fire({40: 2, 41: 3, 42: 6, 43: 7})
        for pid, cpus in ((1000, {0, 1, 2, 3}), (1100, {2, 3}), (1200, range(8))):
            self.group(pid, "app", f"/docker/{pid:064d}", cpus)
        self.none()

    def test_threads_that_share_isolated_cpus(self):
        self.machine(isolated={6, 7})
        path = "/system.slice/docker-" + 64 * "e" + ".scope"
        self.group(1000, "radio", path, {6, 7}, threads=3)
        self.add_policy(self.only("isolated-container", "4 threads of docker:eeeeeeeeeeee share isolated CPU 6 of 6-7"))
        self.none()
        self.machine(isolated={6, 7})
        self.group(1000, "radio", path, {6, 7})  # a single thread
        self.none()


class Servers(Doctor):
    def listeners(self, inodes):
        """On port 8080, which the server's processes all have open."""
        rows = [f"{at:4}: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0000000000000000 100 0 0 10 0"
                for at, inode in enumerate(inodes)]
        self.host.put("proc/net/tcp", "\n".join(["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode", *rows]))
        for pid in (900, 901, 902):
            folder = self.host.root / f"proc/{pid}/fd"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for at, inode in enumerate(inodes):
                (folder / str(at + 3)).symlink_to(f"socket:[{inode}]")

    def test_one_socket_for_all_workers(self):
        self.machine()
        self.listeners([5000])
        self.assertIn("listen 8080 reuseport", self.only("reuseport-off", "2 workers of policy web", "port 8080", web=FULL))
        self.listeners([5000, 5001])
        self.none()

    def test_one_socket_on_this_machine(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        file = self.bin / "web.yaml"
        file.write_text(document(**policy(match={"cmdline": [f"*{self.bin}/server"]}, affinity="full", nics=["lo"])), encoding="utf-8")

        def found(*root):
            answer = affinityctl("--json", *root, "doctor", file, code=(0, 3))
            return {finding["id"]: finding["sentence"] for finding in answer.json["findings"]}.get("reuseport-off", "")

        def seen(sockets):
            """On this machine, and on what gather-host records of it."""
            server = self.spawn(*python(SERVER, port, sockets, self.bin / "server"))
            wait_for(lambda: len(children(server.pid)) == 2, "its workers are there")
            folder = self.bin / f"recording{sockets}"
            folder.mkdir()
            run(sys.executable, GATHER, "--command-lines", self.bin / "recording.tar.gz", code=0)
            run("tar", "-xzf", self.bin / "recording.tar.gz", "-C", folder, code=0)
            both = found(), found("--root", folder)
            server.end()
            return both
        told = f"2 workers of policy web take the connections of port {port} from one socket, so none can be steered"
        self.assertEqual((told, told), seen(1))
        self.assertEqual(("", ""), seen(2))

    def test_threads_on_two_nodes(self):
        self.machine(nodes=2)
        self.host.process(903, "server", unit="server.service", ppid=900, threads={904: "reader"})
        stat = self.host.root / "proc/903/task/904/stat"
        before, _, after = stat.read_text(encoding="utf-8").rpartition(" 17 0 ")
        stat.write_text(f"{before} 17 6 {after}", encoding="utf-8")
        mend = self.only("two-nodes", "policy web", "pid 903 (server)", "1 on node 0, 1 on node 1", web=NEAR)
        self.assertEqual("affinityctl apply", mend)
        for file in ("proc/903/status", "proc/903/task/903/status", "proc/903/task/904/status"):  # as a daemon sets it
            status = (self.host.root / file).read_text(encoding="utf-8")
            self.host.put(file, status.replace("Cpus_allowed_list:\t0-7", "Cpus_allowed_list:\t0-3"))
        self.none()

    def test_memory_on_the_far_node(self):
        self.machine(nodes=2)
        self.write("web", NEAR)
        lacking = affinityctl("--root", self.host.root, "--json", "doctor", self.bin / "policies").json
        self.assertEqual(["memory of processes (proc/PID/numa_maps)"], lacking["unread"])
        self.host.put("proc/902/numa_maps", "7f00 default anon=50000 N0=10000 N1=40000 kernelpagesize_kB=4\n"
                                            "7f01 default file=/lib/x.so anon=1 N1=900000 kernelpagesize_kB=4")
        self.add_line(self.only("far-memory", "pid 902 (server) runs on node 0", "156 of its 195 MiB", web=NEAR), NEAR)
        self.none()


class Measuring(Doctor):
    def setUp(self):
        super().setUp()
        self.machine()

    def test_a_low_frequency(self):
        self.host.put(SYSTEM + "cpufreq/scaling_driver", "acpi-cpufreq")
        self.host.put(SYSTEM + "cpufreq/scaling_governor", "powersave")
        mend = self.only("powersave", "1 of 1 CPUs")
        self.host.put(SYSTEM + "cpufreq/scaling_governor", mend.split()[-1])
        self.none()
        self.host.put(SYSTEM + "cpufreq/scaling_driver", "intel_pstate")  # whose powersave follows the load
        self.host.put(SYSTEM + "cpufreq/scaling_governor", "powersave")
        self.none()

    def test_deep_sleep(self):
        for at, (name, latency) in enumerate((("POLL", 0), ("C6", 290), ("C10", 680))):
            for key, value in {"name": name, "latency": latency, "usage": 77, "disable": 0}.items():
                self.host.put(f"{SYSTEM}cpuidle/state{at}/{key}", value)
        self.assertIn("cpupower idle-set -D", self.only("deep-idle", "77 times into state C10"))
        self.host.put(f"{SYSTEM}cpuidle/state2/disable", 1)
        self.none()

    def test_stolen_time(self):
        self.host.put("proc/stat", "cpu 900 0 50 20 0 0 0 30 0 0")
        self.only("steal", "3.0 %")
        self.host.put("proc/stat", "cpu 900 0 50 49 0 0 0 1 0 0")
        self.none()
