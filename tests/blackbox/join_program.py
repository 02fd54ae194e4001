# SPDX-License-Identifier: Apache-2.0
"""A program that uses libaffinity by ctypes. usage: join_program.py NAME LIBRARY USER; lines on stdin: THREAD WORD [ARGUMENT], where thread 0 is the
main one and others are made when they are first named. Each is answered by one line of JSON, also "here", which does nothing."""
import ctypes
import json
import os
import queue
import socket
import sys
import threading


class Place(ctypes.Structure):
    _fields_ = [("cpu", ctypes.c_int), ("joined", ctypes.c_int), ("serves", ctypes.c_int), ("policy", ctypes.c_char * 208),
                ("slot", ctypes.c_char * 32), ("cpus", ctypes.c_char * 256)]


AFFINITY = ctypes.CDLL(sys.argv[2])
if int(sys.argv[3]):
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[3]))


def serve(port):
    """Connects, waits for a byte, and asks for the CPU where it arrived."""
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.recv(1)
        cpu = connection.getsockopt(socket.SOL_SOCKET, 49)  # SO_INCOMING_CPU
        return {"status": AFFINITY.affinity_serve_fd(connection.fileno()), "arrived": cpu}


def where():
    place = Place()
    status = AFFINITY.affinity_where(ctypes.byref(place), ctypes.sizeof(place))
    return {"status": status} | {name: value.decode() if isinstance(value, bytes) else value
                                 for name, value in ((name, getattr(place, name)) for name, _ in Place._fields_)}


def child_joins(slot):
    child = os.fork()
    if child == 0:
        os._exit(0 if AFFINITY.affinity_join(slot.encode()) == 1 and len(os.sched_getaffinity(0)) == 1 else 1)
    return {"status": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}


WORDS = {"join": lambda slot: {"status": AFFINITY.affinity_join(slot.encode())}, "leave": lambda: {"status": AFFINITY.affinity_leave()},
         "where": where, "serve": serve, "serve_fd": lambda number: {"status": AFFINITY.affinity_serve_fd(int(number))},
         "child": child_joins, "here": lambda: {}}


def answer(word, arguments):
    print(json.dumps(WORDS[word](*arguments) | {"tid": threading.get_native_id()}), flush=True)


def work(tasks):
    while True:
        answer(*tasks.get())


THREADS = {}
for line in sys.stdin:
    number, word, *rest = line.split()
    if number == "0":
        answer(word, rest)
        continue
    if number not in THREADS:
        THREADS[number] = queue.Queue()
        threading.Thread(target=work, args=(THREADS[number],), daemon=True).start()
    THREADS[number].put((word, rest))
