# SPDX-License-Identifier: Apache-2.0
"""libaffinity as a file, and without a daemon or with one that misbehaves: it does nothing, and not for long."""
import ctypes
import errno
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

LIBRARY = pathlib.Path(os.environ["AFFINITY_LIBRARY"])
HEADER = pathlib.Path(os.environ["AFFINITY_HEADER"])
PATIENCE = 0.4  # of libaffinity(3)
ROOM = 5.0      # for a busy machine
AFFINITY = ctypes.CDLL(str(LIBRARY), use_errno=True)


def reply_of(magic=0x6a666641, status=1, flags=0, policy=b"", slot=b""):
    """As of join_wire.h."""
    return struct.pack("=IiI208s32s4x", magic, status, flags, policy, slot)


NONSENSE = {
    "short": b"x", "without a start": b"x" * 256, "long": b"x" * 10_000, "cut": reply_of(policy=b"p")[:255],
    "of another protocol": reply_of(magic=0x6a666642, flags=3, policy=b"p", slot=b"s"),
    "more than done": reply_of(status=2, policy=b"p"), "no errno value": reply_of(status=-4096), "least": reply_of(status=-2**31),
    "a policy without an end": reply_of(policy=b"p" * 208), "a slot without an end": reply_of(slot=b"s" * 32),
}


def readelf(*options):
    return subprocess.run(["readelf", "--wide", *options, LIBRARY], capture_output=True, text=True, check=True).stdout


class File(unittest.TestCase):
    def test_it_needs_nothing_but_libc(self):
        needed = re.findall(r"NEEDED.*\[(.*)\]", readelf("--dynamic"))
        self.assertEqual(["libc.so.6"], [name for name in needed if not name.startswith("ld-linux")])
        self.assertEqual(["libaffinity.so.0"], re.findall(r"SONAME.*\[(.*)\]", readelf("--dynamic")))

    def test_it_has_the_names_of_its_version_and_no_others(self):
        names = re.findall(r"(?:GLOBAL|WEAK) +DEFAULT +\d+ (\S+)", readelf("--dyn-syms"))
        self.assertEqual({f"affinity_{name}@@LIBAFFINITY_1.0" for name in ("join", "leave", "serve_fd", "where")}, set(names))

    def test_the_header_is_c_and_cpp(self):
        for language in ("c", "c++"):
            done = subprocess.run(["cc", "-x", language, "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                                   "-std=" + ("c99" if language == "c" else "c++11"), "-"],
                                  input=f'#include "{HEADER}"\nint join(void) {{ return affinity_join("io"); }}\n', text=True, check=False,
                                  capture_output=True)
            self.assertEqual(0, done.returncode, done.stderr)


class Alone(unittest.TestCase):
    def setUp(self):
        time.sleep(0.02)  # what was refused in another test is over
        folder = tempfile.TemporaryDirectory(prefix="affinityd-library-")
        self.addCleanup(folder.cleanup)
        self.path = folder.name + "/join"
        os.environ["AFFINITY_SOCKET"] = self.path
        self.addCleanup(os.environ.pop, "AFFINITY_SOCKET")
        self.assertEqual(signal.SIG_IGN, signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        self.addCleanup(signal.signal, signal.SIGPIPE, signal.SIG_IGN)

    def all_say(self, status):
        place = ctypes.create_string_buffer(508)
        ctypes.set_errno(4711)
        begun = time.monotonic()
        self.assertEqual(status, AFFINITY.affinity_join(b"io"))
        self.assertEqual(status, AFFINITY.affinity_leave())
        self.assertEqual(status, AFFINITY.affinity_where(place, len(place)))
        self.assertLess(time.monotonic() - begun, 3 * PATIENCE + ROOM)
        self.assertEqual(4711, ctypes.get_errno())
        self.assertIn(struct.unpack_from("i", place)[0], range(os.cpu_count()))
        self.assertNotEqual(b"\0", place.raw[252:253], "its CPUs are known all the same")

    def serve(self, behave, backlog=8):
        """A daemon that does with each connection what `behave` says."""
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(server.close)
        server.bind(self.path)
        server.listen(backlog)
        kept = []
        self.addCleanup(lambda: [one.close() for one in kept])

        def work():
            while True:
                try:
                    one = server.accept()[0]
                except OSError:
                    return
                kept.append(one)
                behave(one)

        if behave:
            threading.Thread(target=work, daemon=True).start()
        return server

    def test_no_daemon(self):
        self.all_say(0)

    def test_a_socket_of_a_daemon_that_was_killed(self):
        self.serve(None).close()
        self.all_say(0)

    def test_something_else_in_its_place(self):
        pathlib.Path(self.path).write_text("no socket", encoding="utf-8")
        self.all_say(0)
        os.environ["AFFINITY_SOCKET"] = "/" + "x" * 200
        self.all_say(0)

    def test_a_daemon_that_says_nothing(self):
        self.serve(lambda one: None)
        self.all_say(-errno.ETIMEDOUT)

    def test_a_daemon_that_takes_no_peer_in(self):
        self.serve(None, backlog=0)
        waiting = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(waiting.close)
        waiting.connect(self.path)
        self.all_say(-errno.EAGAIN)

    def test_after_a_refusal_the_daemon_is_left_alone_for_a_moment(self):
        asked = []
        self.serve(lambda one: (asked.append(one), one.send(reply_of(status=-errno.EAGAIN))))
        begun = time.monotonic()
        for _ in range(100):
            self.assertEqual(-errno.EAGAIN, AFFINITY.affinity_join(b"io"))
        self.assertLess(len(asked), 2 + (time.monotonic() - begun) / 0.009)
        before = len(asked)
        time.sleep(0.05)
        self.assertEqual(-errno.EAGAIN, AFFINITY.affinity_leave())
        self.assertEqual(before + 1, len(asked))

    def test_a_daemon_that_closes(self):
        closed = []
        self.serve(lambda one: (closed.append(one), one.close()))
        begun = time.monotonic()
        for _ in range(100):
            self.assertEqual(AFFINITY.affinity_join(b"io"), -errno.EAGAIN)
        self.assertLess(len(closed), 2 + (time.monotonic() - begun) / 0.009)

    def test_a_daemon_that_talks_nonsense(self):
        for name, reply in NONSENSE.items():
            with self.subTest(name):
                server = self.serve(lambda one, reply=reply: one.send(reply))
                self.assertEqual(-errno.EPROTO, AFFINITY.affinity_join(b"io"))
                self.assertEqual(-errno.EPROTO, AFFINITY.affinity_leave())
                place = ctypes.create_string_buffer(b"\xff" * 700, 700)
                self.assertEqual(-errno.EPROTO, AFFINITY.affinity_where(place, 600))
                self.assertEqual(bytes(600), place.raw[:600], "nothing of it is believed")
                self.assertEqual(b"\xff" * 100, place.raw[600:])
                server.shutdown(socket.SHUT_RDWR)
                os.unlink(self.path)

    def test_texts_as_long_as_there_is_room(self):
        self.serve(lambda one: one.send(reply_of(flags=3, policy=b"p" * 207, slot=b"s" * 31)))
        place = ctypes.create_string_buffer(508)
        self.assertEqual(1, AFFINITY.affinity_where(place, len(place)))
        self.assertEqual((1, 1), struct.unpack_from("ii", place, 4))
        self.assertEqual(b"p" * 207 + b"\0" + b"s" * 31 + b"\0", place.raw[12:252])

    def test_a_later_daemon_may_know_other_errors_and_flags(self):
        self.serve(lambda one: one.send(reply_of(status=-errno.EXFULL, flags=1 << 31)))
        self.all_say(-errno.EXFULL)

    def test_a_smaller_and_a_larger_place(self):
        for size in (4, 12, 507, 600):
            place = ctypes.create_string_buffer(b"\xff" * 700, 700)
            self.assertEqual(0, AFFINITY.affinity_where(place, size))
            self.assertEqual(b"\xff" * (700 - size), place.raw[size:])
            if size > 508:
                self.assertEqual(bytes(size - 508), place.raw[508:size])
        self.assertEqual(-errno.EINVAL, AFFINITY.affinity_where(None, 508))

    def test_arguments_that_make_no_sense(self):
        for slot in (None, b"", b"a b", b"arrivals", b"x" * 32, b"x" * 100_000):
            self.assertEqual(-errno.EINVAL, AFFINITY.affinity_join(slot))
        self.assertEqual(-errno.EBADF, AFFINITY.affinity_serve_fd(-1))
        with socket.socket() as fresh:
            self.assertEqual(-errno.ENODATA, AFFINITY.affinity_serve_fd(fresh.fileno()))

    def test_nothing_is_left_open(self):
        def answer(one):
            one.send(b"x")
            one.close()

        self.serve(answer)
        before = len(os.listdir("/proc/self/fd"))
        results = []

        def ask():
            for _ in range(50):
                results.append(AFFINITY.affinity_join(b"io"))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(200, len(results))
        self.assertLessEqual(set(results), {0, -errno.EPROTO, -errno.EAGAIN, -errno.ETIMEDOUT})
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before + 1, "one may be about to be closed by the server")


if __name__ == "__main__":
    unittest.main(verbosity=2)
