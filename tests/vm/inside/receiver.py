# SPDX-License-Identifier: Apache-2.0
"""receiver.py ADDRESS: takes what ttcp senders send to port 5001 and drops it, one process for one NIC."""
import socket
import sys

listener = socket.create_server((sys.argv[1], 5001))
buffer = bytearray(1 << 17)
while True:
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(20)
        try:
            while connection.recv_into(buffer):
                pass
        except OSError:
            pass
