"""Connections that are read to the last byte, even if the device resets them after sending.

A device that closes with an answer unread resets its connection. Bytes that came before the reset and are not
yet read would be lost with asyncio's transport.
"""

import asyncio
import os
import socket

IDLE_S, PROBE_S, PROBES = 60, 20, 3
"""TCP keep-alive, in seconds and probes: it finds clients that have vanished without a word."""


class SocketRest:
    """A second descriptor of a transport's socket, for the bytes that arrived before the transport ended."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._socket = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))

    def read_into(self, buffer: memoryview) -> int:
        """Read bytes that are there; return how many. 0 means that no more can come."""
        try:
            return self._socket.recv_into(buffer)
        except OSError:  # nothing is there, or the reset that ended the connection
            return 0

    def close(self) -> None:
        """Close the descriptor."""
        self._socket.close()


def keep_alive(transport: asyncio.Transport) -> None:
    """Switch TCP keep-alive on."""
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", IDLE_S), ("TCP_KEEPINTVL", PROBE_S), ("TCP_KEEPCNT", PROBES)):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
