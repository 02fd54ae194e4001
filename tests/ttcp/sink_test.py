# SPDX-License-Identifier: Apache-2.0
"""A sink as its peers, friendly and not, see it; and runs that are asked for over a connection."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import unittest

TTCP = sys.argv.pop(1)


def wait_for(condition, what, patience=60):
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {patience} s: {what}")
        time.sleep(0.02)


class Program(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def spawn(self, *options, **more):
        process = subprocess.Popen([TTCP, *options], text=True, **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more))

        def end():
            process.kill()
            process.communicate()

        self.stack.callback(end)
        return process


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def listeners(port):
    """Local addresses of listening sockets, as the kernel writes them."""
    found = set()
    for name in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:]:
            words = line.split()
            address, number = words[1].split(":")
            if words[3] == "0A" and int(number, 16) == port:
                found.add(address)
    return found


class Sinks(Program):
    def sink(self, *options, **more):
        self.port = free_port()
        process = self.spawn("--sink", "-p", str(self.port), "--idle-exit", "0", "--json", *options, **more)
        wait_for(lambda: listeners(self.port) or process.poll() is not None, "the sink listens")
        return process

    def connection(self):
        return self.stack.enter_context(socket.create_connection(("127.0.0.1", self.port)))

    def measured(self):
        done = subprocess.run([TTCP, "--target", f"127.0.0.1:{self.port}", "--bytes", "1000000", "--json"], capture_output=True, text=True,
                              check=False, timeout=60)
        return json.loads(done.stdout)["outcome"]

    def closed(self, connection):
        connection.setblocking(False)
        try:
            return connection.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    def test_it_listens_for_this_machine_only_unless_told_more(self):
        self.sink()
        self.assertEqual({"0100007F"}, listeners(self.port))
        self.sink("--listen", "*")
        self.assertTrue(listeners(self.port) <= {"0" * 32, "0" * 8}, listeners(self.port))

    def test_peers_that_ended_are_forgotten_also_where_a_parent_had_sigchld_ignored(self):
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            self.sink("--peers", "2")
        finally:
            signal.signal(signal.SIGCHLD, before)
        for _ in range(6):
            connection = self.connection()
            connection.sendall(b"x" * 1000)
            connection.shutdown(socket.SHUT_WR)
            wait_for(lambda connection=connection: self.closed(connection), "the peer is served", 10)

    def test_silent_peers_keep_no_other_out(self):
        self.sink()
        silent = [self.connection() for _ in range(5)]
        self.assertEqual("done", self.measured())
        self.assertFalse(any(map(self.closed, silent)))

    def test_when_all_places_are_taken_the_next_waits(self):
        self.sink("--peers", "2")
        silent = [self.connection() for _ in range(2)]
        waiting = self.spawn("--target", f"127.0.0.1:{self.port}", "--bytes", "1000000", "--stall", "60", "--json")
        silent[0].close()
        self.assertEqual("done", json.loads(waiting.communicate(timeout=60)[0])["outcome"])

    def test_a_peer_that_drips_is_dropped(self):
        self.sink("--stall", "1")
        dripping = self.connection()

        def is_dropped():
            with contextlib.suppress(BlockingIOError, ConnectionError):
                dripping.send(b"x")
            return self.closed(dripping)

        wait_for(is_dropped, "the peer is dropped")
        self.assertEqual("done", self.measured())

    def test_root_becomes_nobody(self):
        process = self.sink()
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        expected = 65534 if os.geteuid() == 0 else os.geteuid()
        self.assertEqual({str(expected)}, set(fields["Uid"].split()))
        self.assertEqual("1", fields["NoNewPrivs"])

    def test_an_address_is_for_sinks(self):
        self.assertEqual(2, self.spawn("-r", "--listen", "127.0.0.1").wait(60))


class Requests(Program):
    def request(self, line):
        ours, theirs = socket.socketpair()
        self.stack.enter_context(ours)
        with theirs:
            process = self.spawn("--request", stdin=theirs, stdout=theirs)
        ours.sendall(line)
        return ours, process

    def test_a_run_is_asked_for_and_reported_over_one_connection(self):
        ours, process = self.request(b'["--loopback", "--bytes", "100000", "--json"]\n')
        report = json.loads(ours.makefile().read())
        self.assertEqual(("done", 100000), (report["outcome"], report["bytes"]))
        self.assertEqual(0, process.wait(60))

    def test_a_run_ends_with_its_connection(self):
        ours, process = self.request(b'["--loopback", "--seconds", "600", "--json"]\n')
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_for(lambda: len(children.read_text(encoding="ascii").split()) == 2, "its streams run")
        streams = children.read_text(encoding="ascii").split()
        ours.close()
        self.assertNotEqual(0, process.wait(60))
        for stream in streams:
            wait_for(lambda pid=stream: not pathlib.Path(f"/proc/{pid}/exe").exists(), "its streams have ended")

    def test_what_is_no_request_is_refused(self):
        for line in (b"\n", b"--loopback\n", b'["--loopback", "--seconds", "-1"]\n', b'["--request"]\n', b"x" * 10000):
            ours, process = self.request(line)
            ours.shutdown(socket.SHUT_WR)
            self.assertEqual(2, process.wait(60), line[:40])

    def test_it_stands_alone(self):
        self.assertEqual(2, self.spawn("--request", "--loopback").wait(60))


if __name__ == "__main__":
    unittest.main()
