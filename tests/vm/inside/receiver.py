# SPDX-License-Identifier: Apache-2.0
"""receiver.py ADDRESS: takes what ttcp senders send to port 5001 and drops it; one process and one thread, however many connections."""
import selectors
import socket
import sys

ready = selectors.DefaultSelector()
listener = socket.create_server((sys.argv[1], 5001))
ready.register(listener, selectors.EVENT_READ)
buffer = bytearray(1 << 17)
while True:
    for key, _ in ready.select():
        if key.fileobj is listener:
            connection, _ = listener.accept()
            connection.setblocking(False)
            ready.register(connection, selectors.EVENT_READ)
            continue
        try:
            left = key.fileobj.recv_into(buffer)
        except BlockingIOError:
            continue
        except OSError:
            left = 0
        if not left:
            ready.unregister(key.fileobj)
            key.fileobj.close()
