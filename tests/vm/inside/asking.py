#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of a server that answers a short request with a short text: some connections are kept, each is asked again and again in turn, and
new ones come, ask once, and go. Says "all connected" once, and at its end (SIGTERM) how many answers came and how many connections failed.

    asking.py ADDRESS PORT REQUEST KEPT NEW_PER_SECOND REQUESTS_PER_SECOND
"""
import resource
import select
import signal
import socket
import sys
import time

TURN = 0.05  # seconds between two looks at the clock
AT_ONCE = 50  # connections that may wait to be established


class Clients:
    def __init__(self, address, port, request):
        self.where, self.request = (address, port), request
        self.poll = select.epoll()
        self.peers = {}  # by descriptor
        self.fresh, self.opening = set(), set()
        self.answers = self.failed = 0

    def open(self, is_fresh):
        peer = socket.socket()
        peer.setblocking(False)
        peer.connect_ex(self.where)
        number = peer.fileno()
        self.peers[number] = peer
        self.opening.add(number)
        if is_fresh:
            self.fresh.add(number)
        self.poll.register(number, select.EPOLLIN | select.EPOLLOUT)

    def close(self, number):
        self.poll.unregister(number)
        self.peers.pop(number).close()
        self.fresh.discard(number)
        self.opening.discard(number)

    def ask(self, number):
        try:
            self.peers[number].send(self.request)
        except BlockingIOError:
            pass  # the server has not read what it was asked before
        except OSError:
            self.fail(number)

    def fail(self, number):
        self.failed += 1
        self.close(number)

    def handle(self, number, what):
        if what & (select.EPOLLERR | select.EPOLLHUP):
            self.fail(number)
        elif number in self.opening:
            self.opening.discard(number)
            self.poll.modify(number, select.EPOLLIN)
            self.ask(number)
        elif what & select.EPOLLIN:
            self.answer(number)

    def answer(self, number):
        try:
            text = self.peers[number].recv(4096)
        except OSError:
            text = b""
        if not text:
            self.fail(number)
            return
        self.answers += 1
        if number in self.fresh:
            self.close(number)

    def turn(self):
        for number, what in self.poll.poll(TURN, 500):
            self.handle(number, what)


def due(since, rate, done):
    return max(0, int((time.monotonic() - since) * rate) - done)


def main():
    address, port, request, kept, new_rate, rate = sys.argv[1:]
    clients = Clients(address, int(port), request.encode().decode("unicode_escape").encode())
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(f"{clients.answers} answers, {clients.failed} failed", flush=True)))
    while len(clients.peers) < int(kept) or clients.opening:
        while len(clients.peers) < int(kept) and len(clients.opening) < AT_ONCE:
            clients.open(False)
        clients.turn()
    print("all connected", flush=True)
    since, opened, asked, turns = time.monotonic(), 0, 0, []
    while True:
        for _ in range(min(AT_ONCE - len(clients.opening), due(since, float(new_rate), opened))):
            clients.open(True)
            opened += 1
        for _ in range(min(500, due(since, float(rate), asked))):
            asked += 1
            turns = turns or [number for number in clients.peers if number not in clients.fresh]
            if turns and (number := turns.pop()) in clients.peers:
                clients.ask(number)
        clients.turn()


if __name__ == "__main__":
    main()
