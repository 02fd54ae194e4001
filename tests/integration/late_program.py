# SPDX-License-Identifier: Apache-2.0
"""A program whose title, user or port come a moment after it was started, as those of servers do. Not a test.

  late_program.py WHAT SECONDS PORT NAME

WHAT: title (it overwrites its arguments), child (a child does that, which runs no other program), user (it becomes nobody),
listen, listen6 (on loopback), many (it listens, beside 800 other descriptors), crowd (5000 UDP sockets of nobody's, each at an address of its
own), group (it moves to the control group whose folder AFFINITYD_LATE_GROUP names). NAME must be 40 bytes or longer, so that the title has room. Prints when it has done it, by time.monotonic()."""
import ctypes
import os
import pathlib
import resource
import signal
import socket
import sys
import time

TITLE = b"late: checkpointer\0"


def write_title():
    """proc_pid_stat(5): field 48 is where the arguments begin."""
    words = pathlib.Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    start, end = int(words[45]), int(words[46])
    assert end - start >= len(TITLE), "no room"
    ctypes.memmove(start, TITLE + bytes(end - start - len(TITLE)), end - start)


def make_crowd(port, count=5000):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, count + 100))
    os.setuid(65534)
    kept = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for i, one in enumerate(kept):
        one.bind((f"127.2.{i // 250}.{1 + i % 250}", port))
    return kept


def act(what, seconds, port):
    time.sleep(seconds)
    kept = None
    if what == "title":
        write_title()
    elif what == "user":
        os.setuid(65534)
    elif what == "listen":
        kept = socket.create_server(("127.0.0.1", port))
    elif what == "many":
        kept = [*(open("/dev/null", "rb") for _ in range(800)), socket.create_server(("127.0.0.1", port))]
    elif what == "group":
        (pathlib.Path(os.environ["AFFINITYD_LATE_GROUP"]) / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    elif what == "listen6":
        kept = socket.create_server(("::1", port), family=socket.AF_INET6)
    elif what == "crowd":
        kept = make_crowd(port)
    print(time.monotonic(), os.getpid(), flush=True)
    signal.pause()
    return kept


def main():
    what, seconds, port = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    if what != "child":
        act(what, seconds, port)
    elif os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        act("title", seconds, port)
    signal.pause()


if __name__ == "__main__":
    main()
