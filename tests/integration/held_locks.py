# SPDX-License-Identifier: Apache-2.0
"""Holds the locks of TCP sockets that it has inherited, as anybody can who has them open: system calls that have taken a lock read pages that do not
come (userfaultfd(2); ip(7), IP_OPTIONS). Writes a line when it holds all, and lets them go when its input ends. usage: held_locks.py DESCRIPTOR ..."""
import ctypes
import fcntl
import mmap
import os
import platform
import struct
import sys
import threading

USERFAULTFD = {"x86_64": 323, "aarch64": 282}
UFFDIO_API, UFFDIO_REGISTER, UFFDIO_ZEROPAGE = 0xC018AA3F, 0xC020AA00, 0xC020AA04
API, MISSING, MESSAGE = 0xAA, 1, 32
IP_OPTIONS = 4


def main():
    sockets = [int(one) for one in sys.argv[1:]]
    libc = ctypes.CDLL(None, use_errno=True)
    faults = libc.syscall(USERFAULTFD[platform.machine()], os.O_CLOEXEC)
    fcntl.ioctl(faults, UFFDIO_API, struct.pack("QQQ", API, 0, 0))
    size = len(sockets) * mmap.PAGESIZE
    pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    fcntl.ioctl(faults, UFFDIO_REGISTER, struct.pack("QQQQ", address, size, MISSING, 0))
    for number, one in enumerate(sockets):
        page = ctypes.c_void_p(address + number * mmap.PAGESIZE)
        threading.Thread(target=libc.setsockopt, args=(one, 0, IP_OPTIONS, page, 4)).start()
    for _ in sockets:
        os.read(faults, MESSAGE)
    print("holds", flush=True)
    sys.stdin.read()
    fcntl.ioctl(faults, UFFDIO_ZEROPAGE, struct.pack("QQQq", address, size, 0, 0))


main()
