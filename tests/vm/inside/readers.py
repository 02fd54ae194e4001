# SPDX-License-Identifier: Apache-2.0
"""Servers that drop what they read, and clients of any.

    readers.py serve COUNT ADDRESS PORT    so many processes, each with a listener of its own
    readers.py name COUNT NIC...           one process, with so many threads W#01-NIC for each NIC, which listen to nothing
    readers.py listen COUNT NIC=ADDRESS... processes of these names, each with a listener at the NIC's address
    readers.py ask COUNT ADDRESS PORT      so many connections that ask by HTTP; one that was closed is opened anew
"""
import os
import selectors
import signal
import socket
import sys
import threading
import time

PORT = 8080
HTTP = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def listen(address, port):
    listener = socket.create_server((address, port), reuse_port=True)
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if key.fileobj is listener:
                ready.register(listener.accept()[0], selectors.EVENT_READ)
            elif not key.fileobj.recv(1 << 16):
                ready.unregister(key.fileobj)
                key.fileobj.close()


def take_name(name):
    with open("/proc/thread-self/comm", "w", encoding="ascii") as comm:
        comm.write(name)


def wait_in_thread(name):
    take_name(name)
    threading.Event().wait()


def serve(count, address, port):
    for _ in range(count):
        if os.fork() == 0:
            listen(address, int(port))
    signal.pause()


def start_threads(count, *nics):
    for nic in nics:
        for number in range(1, count + 1):
            threading.Thread(target=wait_in_thread, args=(f"W#{number:02}-{nic}",)).start()


def start_processes(count, *nics):
    for nic in nics:
        name, _, address = nic.partition("=")
        for number in range(1, count + 1):
            if os.fork() == 0:
                take_name(f"W#{number:02}-{name}")
                listen(address, PORT)
    signal.pause()


def ask(count, address, port):
    peers = [None] * count
    while True:
        for number, peer in enumerate(peers):
            try:
                if peer is None:
                    peers[number] = peer = socket.create_connection((address, int(port)), 5)
                peer.sendall(HTTP)
                if peer.recv(4096):
                    continue
            except OSError:
                pass
            if peer is not None:
                peer.close()
            peers[number] = None
        time.sleep(0.1)


VERBS = {"serve": serve, "name": start_threads, "listen": start_processes, "ask": ask}
VERBS[sys.argv[1]](int(sys.argv[2]), *sys.argv[3:])
