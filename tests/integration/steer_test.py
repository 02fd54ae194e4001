# SPDX-License-Identifier: Apache-2.0
"""steer: accept, with Debian's nginx on a veth pair of two queues, and servers of our own that do what nginx does not."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from daemon import allowed, spawn, wait_for
from namespaces import napi_threads
from steered import Steered, incoming_cpus, sockets

# A server of two processes that tells its own listeners CPUs.
OWN_CPUS = """import os, select, socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
def listener(cpu):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    one.bind(("10.98.0.1", 8080))
    one.setsockopt(socket.SOL_SOCKET, 49, cpu)
    one.listen()
    return one
listeners = [listener(cpu) for cpu in (1, 0)]
mine = listeners[0] if os.fork() else listeners[1]
poll = select.epoll()
poll.register(mine, select.EPOLLIN)
while True:
    poll.poll()
    mine.accept()
"""
# A server that shares the address of others, and takes no connections.
BESIDE = """import select, socket
one = socket.socket()
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
one.bind(("10.98.0.1", 8080))
one.listen(64)
poll = select.epoll()
print("listens", flush=True)
poll.poll()
"""
# A server with a process for each connection, as PostgreSQL and sshd are.
FORKING = """import os, signal, socket, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
open("/proc/self/comm", "w").write(sys.argv[1])
listener = socket.create_server(("10.98.0.1", 8080), backlog=128)
while True:
    one, _ = listener.accept()
    if os.fork() == 0:
        listener.close()
        while one.recv(4096):
            one.sendall(b"HTTP/1.1 200 OK\\r\\n")
        os._exit(0)
    one.close()
"""


class Steer(Steered):
    def test_how_local_reads_are_is_sampled(self):
        """Where connections are spread by chance, and where listeners are steered: as the kernel says of the sockets themselves."""
        for steer, least, most in (("none", 0.2, 0.8), ("accept", 0.95, 1)):
            with self.subTest(steer=steer):
                daemon = self.daemon(steer)
                master = self.nginx(daemon.folder)
                daemon.start()
                if steer == "accept":
                    self.wait_until_steered(master)
                else:
                    wait_for(lambda: sorted(allowed(pid) for pid in self.workers(master)) == ["0", "1"], "workers are placed")
                with self.client(60) as ask:
                    local = self.sampled(daemon, ask)
                    truth = self.share_that_is_right(master, 60)
                print(f"measured: {steer}: {local['same']['core']:.0%} of {local['samples']} samples on the same core, {truth:.0%} of the sockets", file=sys.stderr)
                self.assertTrue(least <= local["same"]["core"] <= most, local)
                self.assertAlmostEqual(truth, local["same"]["core"], delta=0.1)
                self.assertAlmostEqual(0.5, local["chance"]["core"], delta=0.15)
                self.assertIn("% by chance", daemon.control("explain", str(self.workers(master)[0])))
                sources = {source for pid in self.workers(master)
                           for place in json.loads(daemon.control("explain", "--json", str(pid)))["arrivals"] for source in place["sources"]}
                self.assertTrue(any(self.nic in source for source in sources), sources)
                self.assertRegex(daemon.control("status"), r"LOCAL")
                self.assertRegex(daemon.control("status", "server"), r"% of its packets are read on the core where they arrive")
                daemon.stop()
                os.kill(master, signal.SIGTERM)
                wait_for(lambda: not pathlib.Path(f"/proc/{master}").exists() or allowed(master) is None or
                         pathlib.Path(f"/proc/{master}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] == "Z", "nginx has ended")

    def test_nothing_is_sampled_where_nobody_wants_it(self):
        daemon = self.daemon("accept")
        with daemon.settings().open("a", encoding="utf-8") as settings:
            settings.write("sampled_connections: 0\n")
        master = self.nginx(daemon.folder)
        daemon.start()
        self.wait_until_steered(master)
        with self.client() as ask:
            for _ in range(6):
                ask()
                time.sleep(1)
        self.assertNotIn("local", daemon.status()["policies"][0])

    def test_connections_go_to_the_worker_where_they_arrive(self):
        daemon = self.daemon("accept")
        master = self.nginx(daemon.folder)
        self.assertEqual([-1, -1], self.told(master))
        daemon.start()
        self.wait_until_steered(master)
        share = self.arrivals(master)
        print(f"measured: {share:.0%} of the connections arrive at their worker's CPU", file=sys.stderr)
        self.assertGreaterEqual(share, 0.95)
        (policy,) = daemon.status()["policies"]
        self.assertEqual({"listeners": 2, "left": []}, policy["steer"])
        (explained,) = [json.loads(daemon.control("explain", "--json", str(pid))) for pid in self.workers(master)[:1]]
        self.assertEqual([8080], [one["port"] for one in explained["listeners"]])
        # Another generation of workers gets the same listeners.
        before = self.workers(master)
        os.kill(master, signal.SIGHUP)
        wait_for(lambda: len(self.workers(master)) == 2 and not set(self.workers(master)) & set(before), "there are new workers")
        self.wait_until_steered(master)
        self.assertGreaterEqual(self.arrivals(master), 0.95)
        daemon.stop()
        self.assertEqual([-1, -1], self.told(master))
        self.assertEqual({allowed(os.getpid())}, {allowed(pid) for pid in self.workers(master) + napi_threads(self.nic)})

    def forking(self):
        """Starts the server; a function that lists (CPUs that it may use, CPU where its packets arrive) of each child."""
        server = spawn(self.stack, *self.near.command(sys.executable, "-c", FORKING, self.comm))
        wait_for(lambda: incoming_cpus(server.pid, True), "it listens")

        def children():
            text = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text(encoding="ascii")
            return [(allowed(int(pid)), cpu) for pid in text.split() for cpu in incoming_cpus(int(pid), False).values()]

        return server.pid, children

    def test_processes_of_one_connection_each_go_where_its_packets_arrive(self):
        """And without steering they are dealt out: half of them are elsewhere."""
        daemon = self.daemon("none")
        _, children = self.forking()
        daemon.start()
        with self.client() as ask:
            ask()
            wait_for(lambda: len(children()) == 40 and {mask for mask, _ in children()} <= {"0", "1"}, "they are placed")
            ask()

            def share():
                found = children()
                self.assertEqual(40, len(found))
                return sum(mask == str(cpu) for mask, cpu in found) / len(found)

            # The next pass gives the interface, and the processes that have come, a lane more.
            wait_for(lambda: (ask(), 0.2 <= share() <= 0.8)[1], "they are dealt out")
            dealt = share()
            daemon.write("server.yaml", self.policy("tasks"))

            def are_there():
                ask()
                time.sleep(0.2)
                return share() >= 0.9

            wait_for(are_there, "they follow their packets", patience=60)
            print(f"measured: {dealt:.0%} of the processes are where their packets arrive, with steer: tasks {share():.0%}", file=sys.stderr)
            wait_for(lambda: (ask(), "of 40 tasks are on the lane where their packets arrive" in daemon.control("status"))[1], "status says so")
            there = share()
            for _ in range(10):  # and there they stay
                ask()
                time.sleep(0.3)
            self.assertGreaterEqual(share(), there - 0.05)
            daemon.stop()
            self.assertEqual({allowed(os.getpid())}, {mask for mask, _ in children()})

    def test_what_was_told_is_taken_back_when_the_policy_says_so(self):
        daemon = self.daemon("accept")
        master = self.nginx(daemon.folder)
        daemon.start()
        self.wait_until_steered(master)
        daemon.write("server.yaml", self.policy("none"))
        wait_for(lambda: self.told(master) == [-1, -1], "steer: none gives the former value back")
        daemon.write("server.yaml", self.policy("accept"))
        self.wait_until_steered(master)
        daemon.control("release", "server")
        wait_for(lambda: self.told(master) == [-1, -1], "a release gives it back")
        daemon.control("apply")
        self.wait_until_steered(master)
        (daemon.policies / "server.yaml").unlink()
        wait_for(lambda: self.told(master) == [-1, -1], "without the policy it is given back")

    def test_a_worker_that_is_let_go_stays_so_and_with_it_the_others(self):
        """It would get no connections beside a listener that is told the CPU where they arrive."""
        daemon = self.daemon("accept")
        master = self.nginx(daemon.folder)
        daemon.start()
        self.wait_until_steered(master)
        worker = self.workers(master)[0]
        daemon.control("release", str(worker))
        wait_for(lambda: self.told(master) == [-1, -1], "neither is told a CPU", patience=90)
        time.sleep(3)  # a pass, and another look
        self.assertEqual([-1, -1], self.told(master))
        self.assertNotIn("SO_REUSEPORT", daemon.control("explain", str(worker)))
        self.assertIn("would get few connections", daemon.control("explain", str(self.workers(master)[1])))
        daemon.control("apply")
        self.wait_until_steered(master)

    def test_a_server_without_policy_on_the_same_address_is_not_starved(self):
        beside = subprocess.Popen(self.near.command(sys.executable, "-c", BESIDE), stdout=subprocess.PIPE, text=True)
        self.stack.callback(beside.stdout.close)
        self.stack.callback(beside.wait)
        self.stack.callback(beside.kill)
        self.assertEqual("listens", beside.stdout.readline().strip())
        daemon = self.daemon("accept")
        master = self.nginx(daemon.folder)
        daemon.start()
        wait_for(lambda: "would get few connections" in str(daemon.status()["policies"][0].get("steer")), "status says why nobody is steered")
        self.assertEqual([-1, -1], self.told(master))
        beside.kill()
        beside.wait()
        self.wait_until_steered(master)

    def test_after_a_kill_a_later_daemon_takes_it_back_though_the_workers_are_others(self):
        daemon = self.daemon("accept")
        master = self.nginx(daemon.folder)
        daemon.start()
        self.wait_until_steered(master)
        before = self.workers(master)
        daemon.process.kill()
        daemon.process.wait()
        os.kill(master, signal.SIGHUP)
        wait_for(lambda: len(self.workers(master)) == 2 and not set(self.workers(master)) & set(before), "there are new workers")
        self.assertEqual([0, 1], self.told(master), "nobody has taken it back yet")
        (daemon.policies / "server.yaml").unlink()
        daemon.start()
        wait_for(lambda: self.told(master) == [-1, -1], "the next daemon takes it back")

    def test_a_later_daemon_gives_workers_the_lanes_that_they_had(self):
        daemon = self.daemon("accept")
        master = self.nginx(daemon.folder)
        daemon.start()
        self.wait_until_steered(master)
        ended = min(self.workers(master))
        os.kill(ended, signal.SIGKILL)  # the next one has its listener, but not its place in the order of pids
        wait_for(lambda: len(set(self.workers(master)) - {ended}) == 2, "there is another worker")
        self.wait_until_steered(master)
        lanes = {pid: allowed(pid) for pid in self.workers(master)}
        for end in (daemon.stop, daemon.stop, daemon.kill):
            end()
            daemon.start()
            self.wait_until_steered(master)
            time.sleep(3)  # also after the next pass
            self.assertEqual(lanes, {pid: allowed(pid) for pid in self.workers(master)}, end.__name__)

    def test_a_listener_that_all_workers_share_is_left_alone(self):
        daemon = self.daemon("accept")
        master = self.nginx(daemon.folder, reuseport="")
        daemon.start()
        wait_for(lambda: daemon.status()["policies"][0].get("steer"), "its listeners were read")
        steer = daemon.status()["policies"][0]["steer"]
        self.assertEqual(0, steer["listeners"])
        self.assertIn("SO_REUSEPORT", steer["left"][0]["why"])
        self.assertEqual({-1}, set(self.told(master)))

    def test_what_the_program_told_itself_is_left_alone(self):
        daemon = self.daemon("accept")
        server = spawn(self.stack, *self.near.command(sys.executable, "-c", OWN_CPUS, self.comm))
        self.stack.callback(lambda: [os.kill(int(pid), signal.SIGKILL) for pid in pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text(encoding="ascii").split()])
        wait_for(lambda: sorted(incoming_cpus(server.pid, True).values()) == [0, 1], "it has told its listeners CPUs")
        before = incoming_cpus(server.pid, True)
        daemon.start()
        wait_for(lambda: daemon.status()["policies"][0].get("steer", {}).get("left"), "its listeners were read")
        self.assertEqual("somebody else has told it a CPU", daemon.status()["policies"][0]["steer"]["left"][0]["why"])
        time.sleep(1)
        self.assertEqual(before, incoming_cpus(server.pid, True))
        daemon.stop()
        self.assertEqual(before, incoming_cpus(server.pid, True))

    def test_what_the_program_tells_its_listeners_later_is_left_alone(self):
        daemon, pids = self.two_workers("tell")
        daemon.start()
        wait_for(lambda: sorted(self.told_of(pids)) == [0, 1], "they are steered")
        swapped = [1 - cpu for cpu in self.told_of(pids)]
        for pid in pids:
            os.kill(pid, signal.SIGUSR1)
        wait_for(lambda: "somebody else has told it a CPU" in str(daemon.status()["policies"][0].get("steer")), "status says so")
        self.assertEqual(swapped, self.told_of(pids))
        daemon.stop()
        self.assertEqual(swapped, self.told_of(pids))

    def test_what_is_open_under_another_descriptor_is_found_by_a_later_daemon(self):
        """As HAProxy's new worker has the listeners of the old one."""
        daemon, pids = self.two_workers("move")
        daemon.start()
        wait_for(lambda: sorted(self.told_of(pids)) == [0, 1], "they are steered")
        daemon.process.kill()
        daemon.process.wait()
        for pid in pids:
            os.kill(pid, signal.SIGUSR1)
        wait_for(lambda: all(77 in incoming_cpus(pid, True) for pid in pids), "they have moved")
        self.assertEqual([0, 1], sorted(self.told_of(pids)))
        (daemon.policies / "server.yaml").unlink()
        daemon.start()
        wait_for(lambda: self.told_of(pids) == [-1, -1], "the next daemon takes it back")

    def test_beside_a_worker_that_is_not_seen_to_take_connections_nobody_is_steered(self):
        daemon, pids = self.two_workers("select")
        daemon.start()
        wait_for(lambda: "select and io_uring are not seen" in str(daemon.status()["policies"][0].get("steer")), "status says why")
        self.assertEqual([-1, -1], self.told_of(pids))

    def test_a_worker_that_somebody_moved_has_no_lane_under_yield(self):
        daemon = self.daemon("accept")
        daemon.write("server.yaml", self.policy("accept") + "drift: yield\n")
        master = self.nginx(daemon.folder)
        daemon.start()
        self.wait_until_steered(master)
        worker = next(pid for pid in self.workers(master) if os.sched_getaffinity(pid) == {0})
        self.assertNotIn("has moved its worker", str(daemon.status()["policies"][0].get("steer")))
        os.sched_setaffinity(worker, {1})
        wait_for(lambda: "has moved its worker" in str(daemon.status()["policies"][0].get("steer")), "status says so")
        self.assertEqual({1}, os.sched_getaffinity(worker))


if __name__ == "__main__":
    unittest.main()
