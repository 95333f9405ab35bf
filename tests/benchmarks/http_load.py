"""The HTTP client: raw keep-alive sockets, one request at a time on each, as many as fit or at a fixed rate.

`python -m tests.benchmarks.http_load --port PORT ...` prints one line of JSON.
"""

import argparse
import json
import selectors
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass

from tests.benchmarks import payloads

HOST = "127.0.0.1"

ENDLESS = sys.maxsize

LIMIT_S = 200.0
"""A run that counts requests is given up after this."""

ANSWER_S = 10.0
"""How long the last answers may take."""

OK = b"HTTP/1.1 200"
ANSWER_BYTES = 65_536


@dataclass
class Connection:
    """A socket, since when its answer is awaited, and what came of it."""

    socket: socket.socket
    since: float = 0.0
    answer: bytes = b""


class Client:
    """Several connections that post readings, driven by one loop."""

    def __init__(self, port: int, connections: int, devices: int, first: int, rate: float) -> None:
        self._devices = devices
        self._number = first
        self._interval_s = 1 / rate if rate else 0.0
        # At a rate the pause to the next request matters, and epoll knows milliseconds only.
        self._selector = selectors.SelectSelector() if rate else selectors.DefaultSelector()
        self._idle: deque[Connection] = deque()
        self._waiting = 0
        self._was_busy = False
        self.sent = 0
        self.latencies: list[float] = []
        for _ in range(connections):
            connection = Connection(socket.create_connection((HOST, port)))
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
            self._idle.append(connection)

    def run(self, seconds: float, requests: int, warm_up_s: float) -> tuple[float, float]:
        """Post until either is reached; seconds and processor seconds that were measured."""
        started, cpu = time.perf_counter(), time.process_time()
        warm_at = started + warm_up_s
        end = warm_at + seconds
        due, warming = started, warm_up_s > 0
        while self.sent < requests and (now := time.perf_counter()) < end:
            if warming and now >= warm_at:
                warming = False
                self.latencies.clear()
                started, cpu = now, time.process_time()
            due = self._send_due(due, now, requests)
            pause = due - now if self._idle else end - now
            self._receive(max(0.0, min(pause, end - now)))
        if requests != ENDLESS:
            self.drain()
        return time.perf_counter() - started, time.process_time() - cpu

    def _send_due(self, due: float, now: float, requests: int) -> float:
        """Send what is due on the connections that are free; when the next one is."""
        while self._idle and due <= now and self.sent < requests:
            # Where every connection was busy when it came due, that wait is the server's and counts.
            self._send(self._idle.popleft(), due if self._interval_s and self._was_busy else now)
            due = due + self._interval_s if self._interval_s else now
        self._was_busy = not self._idle
        return due

    def _send(self, connection: Connection, since: float) -> None:
        connection.since = since
        connection.socket.sendall(payloads.http_request(self._number, self._devices))
        self._number += 1
        self.sent += 1
        self._waiting += 1

    def _receive(self, timeout_s: float) -> None:
        for key, _ in self._selector.select(timeout_s):
            connection: Connection = key.data
            data = connection.socket.recv(ANSWER_BYTES)
            connection.answer += data
            if not connection.answer.startswith(OK) or not data:
                raise SystemExit(f"http_load: the answer was {connection.answer[:200]!r}")
            if not connection.answer.endswith(b"}"):
                continue
            connection.answer = b""
            self.latencies.append(time.perf_counter() - connection.since)
            self._waiting -= 1
            self._idle.append(connection)

    def drain(self) -> None:
        """Wait for the answers that are under way."""
        deadline = time.perf_counter() + ANSWER_S
        while self._waiting and time.perf_counter() < deadline:
            self._receive(ANSWER_S)
        if self._waiting:
            raise SystemExit(f"http_load: {self._waiting} requests were not answered")


def percentile(ordered: list[float], share: float) -> float:
    """The value that this share of an ordered list does not exceed."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def main() -> None:
    """Read the options, run, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--devices", type=int, default=payloads.DEVICES)
    parser.add_argument("--seconds", type=float, default=LIMIT_S)
    parser.add_argument("--warm-up", type=float, default=0.0)
    parser.add_argument("--requests", type=int, default=ENDLESS)
    parser.add_argument("--rate", type=float, default=0.0)
    options = parser.parse_args()
    client = Client(options.port, options.connections, options.devices, options.first, options.rate)
    seconds, cpu = client.run(options.seconds, options.requests, options.warm_up)
    latencies = sorted(client.latencies)
    client.drain()
    result = {
        "count": len(latencies),
        "seconds": seconds,
        "per_second": len(latencies) / seconds,
        "p50_ms": percentile(latencies, 0.5) * 1000,
        "p99_ms": percentile(latencies, 0.99) * 1000,
        "cpu_share": cpu / seconds,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
