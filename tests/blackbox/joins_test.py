# SPDX-License-Identifier: Apache-2.0
"""Programs that place their own threads with libaffinity: one in C, one in Python, by other users, in another pid namespace; and those who
may not."""
import contextlib
import errno
import json
import os
import pathlib
import random
import socket
import subprocess
import sys

from house import PROGRAMS, House, Program, allowed, policy, wait_for

PROGRAM = pathlib.Path(__file__).with_name("join_program.py")
NOBODY = 65534
SLOTS = {"settle": 0, "allow_join": ["io", "worker", "own", "arrivals"],
         "threads": [{"slot": "io", "cpus": "0", "bind": "cpu"}, {"slot": "worker", "cpus": "1", "bind": "cpu"},
                     {"slot": "own", "cpus": "0-1", "spread": "cpu", "bind": "cpu"}, {"slot": "shut", "cpus": "0", "bind": "cpu"},
                     {"cpus": "0-1", "bind": "set"}]}


class Joiner(Program):
    """join_program.py, and what it answers."""

    def __init__(self, stack, name, path, before=(), user=0):
        super().__init__(stack, [*before, sys.executable, PROGRAM, name, PROGRAMS["libaffinity"], user], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True, env=os.environ | {"AFFINITY_SOCKET": str(path)})

    def ask(self, thread, *words):
        self.process.stdin.write(" ".join((str(thread), *map(str, words))) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def join(self, thread, slot):
        return self.ask(thread, "join", slot)["status"]

    def mask(self, thread):
        return allowed(self.process.pid, self.ask(thread, "here")["tid"])


class Joins(House):
    def served_by(self, **policies):
        daemon = self.daemon({"reconcile": "1h"}, start=False, **policies)
        daemon.folder.chmod(0o755)
        return daemon.start()

    def start(self, **options):
        self.served = self.served_by(server=policy(match={"cmdline": f"*{self.mark}-joins*"}, **SLOTS))
        self.socket = self.served.folder / "run" / "join"
        return Joiner(self.stack, f"{self.mark}-joins", self.socket, **options)

    def test_a_thread_has_its_place_when_the_call_returns_and_keeps_it(self):
        program = self.start()
        self.assertEqual(1, program.join(1, "io"))
        self.assertEqual("0", program.mask(1))
        self.assertEqual(1, program.join(2, "worker"))
        self.assertEqual(["0-1", "0", "1"], [program.mask(thread) for thread in (0, 1, 2)])
        where = program.ask(1, "where")
        self.assertEqual((1, 0, 1, 0, "server", "io", "0"),
                         tuple(where[key] for key in ("status", "cpu", "joined", "serves", "policy", "slot", "cpus")))
        self.served.ctl("apply")
        self.served.ctl("reload")
        self.assertEqual(["0-1", "0", "1"], [program.mask(thread) for thread in (0, 1, 2)])
        explained = self.served.explain(program.pid)
        tid = program.ask(1, "here")["tid"]
        self.assertEqual(["it joined the slot io"], [thread["joined"] for thread in explained["threads"] if thread["tid"] == tid])
        self.assertIn("it joined the slot worker", self.served.ctl("explain", program.pid).out)
        self.assertIn("policy server: 2 threads have joined (arrivals 0, io 1, own 0, worker 1)",
                      " ".join(self.served.ctl("status").out.split()))
        self.assertEqual(1, program.ask(1, "leave")["status"])
        self.assertEqual("0-1", program.mask(1))

    def test_it_ends_with_the_daemon_and_the_library_joins_again(self):
        program = self.start()
        self.assertEqual([1, 1], [program.join(1, "io"), program.join(2, "worker")])
        self.served.stop()
        self.assertEqual(["0-1", "0-1"], [program.mask(thread) for thread in (1, 2)])
        self.assertEqual(0, program.join(2, "io"), "no daemon")
        self.served.start()
        # A busy machine may give the command line later than in the first pass.
        wait_for(lambda: program.ask(1, "where")["joined"], "it has joined again")
        self.assertEqual(["0", "0-1"], [program.mask(thread) for thread in (1, 2)])
        self.served.kill()
        self.served.start()
        wait_for(lambda: program.ask(1, "where")["joined"], "it has joined again")
        self.assertEqual("0", program.mask(1))
        self.assertEqual(1, program.ask(1, "leave")["status"])
        self.assertEqual(("0-1", 0), (program.mask(1), program.ask(1, "where")["joined"]))

    def test_a_thread_that_may_not_join_is_refused_and_stays_where_it_is(self):
        program = self.start()
        for slot in ("shut", "nowhere"):
            self.assertEqual(-errno.EACCES, program.join(1, slot), slot)
        for slot in ("arrivals", "a/b", "a" * 32, "ä"):
            self.assertEqual(-errno.EINVAL, program.join(1, slot), slot)
        self.assertEqual("0-1", program.mask(1))
        code = f"import ctypes, sys; print(ctypes.CDLL('{PROGRAMS['libaffinity']}').affinity_join(b'io'), flush=True); sys.stdin.read()"
        stranger = self.spawn(sys.executable, "-c", code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=os.environ | {"AFFINITY_SOCKET": str(self.socket)})
        before = allowed(stranger.pid)
        self.assertEqual(-errno.ESRCH, int(stranger.process.stdout.readline()))
        self.assertEqual(before, allowed(stranger.pid))
        self.served.ctl("release", "server")
        # The command line may be late on a busy machine; until then no policy wants it.
        wait_for(lambda: program.join(1, "io") == -errno.ECANCELED, "the release is told")

    def test_programs_of_other_users_and_their_children_may_join(self):
        program = self.start(user=NOBODY)
        self.assertEqual(1, program.join(0, "io"))
        self.assertEqual("0", program.mask(0))
        self.assertEqual(0, program.ask(1, "child", "worker")["status"])

    def test_a_program_in_c(self):
        daemon = self.served_by(pool=policy(match={"exe": str(PROGRAMS["pool"])}, allow_join=["io", "worker"],
                                            threads=[{"slot": "io", "cpus": "0", "bind": "cpu"}, {"slot": "worker", "cpus": "1", "bind": "cpu"}]))
        for path, lines in ((daemon.folder / "run" / "join", ["io      CPUs 0, on CPU 0, policy pool"] * 2 +
                             ["worker  CPUs 1, on CPU 1, policy pool"] * 2), (daemon.folder / "none", None)):
            done = subprocess.run([PROGRAMS["pool"]], env=os.environ | {"AFFINITY_SOCKET": str(path)}, capture_output=True, text=True, check=True,
                                  user=NOBODY, group=NOBODY, timeout=60)
            if lines:
                self.assertEqual(lines, sorted(done.stdout.splitlines()), done.stderr)
            else:
                self.assertEqual(4, done.stdout.count("policy none"), done.stdout + done.stderr)

    def test_threads_of_another_pid_namespace_join_by_their_own_numbers(self):
        program = self.start(before=("unshare", "--pid", "--fork", "--mount-proc"))
        tid = program.ask(1, "where")["tid"]
        self.assertLess(tid, 100, "its own numbers")
        self.assertEqual(1, program.join(1, "io"))
        self.assertEqual(1, program.join(0, "worker"))
        inside = int(pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text(encoding="utf-8"))
        masks = {int(thread.name): allowed(inside, int(thread.name)) for thread in pathlib.Path(f"/proc/{inside}/task").iterdir()}
        self.assertEqual("1", masks.pop(inside))
        self.assertEqual(["0"], list(masks.values()))

    def test_a_thread_serves_where_its_packets_arrive(self):
        program = self.start()
        self.assertEqual(1, program.join(1, "own"))
        self.assertEqual(-errno.ENOTSOCK, program.ask(1, "serve_fd", 0)["status"])
        self.assertEqual(-errno.EBADF, program.ask(1, "serve_fd", 999)["status"])
        mine = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, mine)
        with socket.create_server(("127.0.0.1", 0)) as server:
            for cpu in (0, 1, 0):
                os.sched_setaffinity(0, {cpu})
                program.process.stdin.write(f"1 serve {server.getsockname()[1]}\n")
                program.process.stdin.flush()
                with server.accept()[0] as connection:
                    connection.sendall(b"x")
                    said = json.loads(program.process.stdout.readline())
                self.assertEqual(1, said["status"])
                self.assertEqual(str(said["arrived"]), program.mask(1))
        self.assertEqual((1, 1, "own"), tuple(program.ask(1, "where")[key] for key in ("joined", "serves", "slot")))

    def test_hostile_messages_hold_up_nobody(self):
        program = self.start()
        chance = random.Random(0)
        kept = []
        for turn in range(3000):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.settimeout(10)
            one.connect(str(self.socket))
            if turn % 3:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    one.send(chance.randbytes(chance.choice((0, 1, 63, 64, 65, 4096))))
            self.addCleanup(one.close)
            kept.append(one)
            if turn % 7 == 0:
                most = chance.randrange(1, 200)
                while len(kept) > most:
                    kept.pop(0).close()
        wait_for(lambda: len(os.listdir(f"/proc/{self.served.process.pid}/fd")) < 300, "connections are closed")
        wait_for(lambda: program.join(1, "io") == 1, "who means it is served")
        self.assertEqual("0", program.mask(1))
        self.assertIsNone(self.served.process.poll())
