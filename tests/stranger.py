"""Hostile messages and half-open connections, sent from this node to the head's agent.

    python3 - OWN_ADDRESS HEAD_ADDRESS PORT RANK MESSAGES

Standard library only, as it runs on a node by itself. Prints how many messages were sent, and
over how many connections.
"""

import contextlib
import os
import random
import socket
import struct
import sys

own, head, port, rank, wanted = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
chance = random.Random(5)
GREETING = struct.Struct("!8sH32s")


def greeting(magic=b"vllmgng1", who=rank):
    return GREETING.pack(magic, who, os.urandom(32))


def messages():
    """Twenty-five messages of one hostile kind; what follows the first may go nowhere."""
    kind = chance.randrange(8)
    if kind == 0:
        return [chance.randbytes(chance.randrange(1, 300)) for _ in range(25)]
    if kind == 1:
        return [greeting(), *(chance.randbytes(32) for _ in range(24))]
    if kind == 2:
        return [greeting(who=chance.randrange(65536)), *(b"\0" * 213 for _ in range(24))]
    if kind == 3:
        return [greeting(magic=b"GET / HT"), *(b"TP/1.1\r\n\r\n" for _ in range(24))]
    if kind == 4:
        return [bytes([byte]) for byte in greeting()[:25]]
    if kind == 5:
        return [greeting(), *(greeting() for _ in range(24))]
    if kind == 6:
        return [b"\xff" * 65536 for _ in range(25)]
    return [greeting()[: chance.randrange(42)], *(b"" for _ in range(24))]


def connect():
    return socket.create_connection((head, port), 5, (own, 0))


def main():
    sent = connections = 0
    half_open = []
    while sent < wanted:
        try:
            link = connect()
        except OSError:
            continue
        connections += 1
        with contextlib.suppress(OSError):
            for message in messages():
                link.sendall(message)
                sent += 1
        how = chance.randrange(3)
        if how == 0:
            half_open.append(link)
        elif how == 1:  # a reset instead of an end
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.close()
        else:
            link.close()
        if len(half_open) > 100:
            half_open.pop(0).close()
    print(sent, connections)


main()
