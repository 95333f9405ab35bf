"""The HTTP client: raw keep-alive sockets, one request at a time on each, as many as fit or at a fixed rate.

`python -m tests.benchmarks.http_load --port PORT ...` prints one line of JSON.
"""

import argparse
import json
import select
import socket
import sys
import time
from collections import deque
from dataclasses import dataclass

from tests.benchmarks import payloads
from tests.benchmarks.processes import cpu_s, first_thread_cpu_s

HOST = "127.0.0.1"

ENDLESS = sys.maxsize

LIMIT_S = 200.0
"""A run that counts requests is given up after this."""

ANSWER_S = 60.0
"""How long the last answers may take: a busy machine may stall for 10 s, and a lost answer stays lost."""

OK = b"HTTP/1.1 200"
ANSWER_BYTES = 65_536


PREPARED_PER_S = 16_000
"""Requests made beforehand for each second: more than a bare server answers."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of time and of processor time, ours and the server's: a moment's, or between two moments."""

    seconds: float
    client: float
    server: float
    event_loop: float

    @classmethod
    def so_far(cls, watched: int) -> "Spent":
        """Counters of now; `watched` is the server's process id, 0 without any."""
        server, event_loop = (cpu_s(watched), first_thread_cpu_s(watched)) if watched else (0.0, 0.0)
        return cls(time.perf_counter(), time.process_time(), server, event_loop)

    def since(self, begun: "Spent") -> "Spent":
        """The difference."""
        return Spent(
            self.seconds - begun.seconds,
            self.client - begun.client,
            self.server - begun.server,
            self.event_loop - begun.event_loop,
        )


@dataclass
class Connection:
    """A socket, since when its answer is awaited, and what came of it."""

    socket: socket.socket
    since: float = 0.0
    answer: bytes = b""


class Client:
    """Several connections that post readings, driven by one loop."""

    def __init__(self, port: int, connections: int, devices: int, first: int, rate: float) -> None:
        self._port = port
        self._devices = devices
        self._number = first
        self._prepared: list[bytes] = []
        self._interval_s = 1 / rate if rate else 0.0
        self._wait = self._wait_by_select if rate else self._wait_by_epoll
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._idle: deque[Connection] = deque()
        self._waiting = 0
        self._was_busy = False
        self.sent = 0
        self.latencies: list[float] = []
        for _ in range(connections):
            connection = Connection(socket.create_connection((HOST, port)))
            connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._epoll.register(connection.socket, select.EPOLLIN)
            self._connections[connection.socket.fileno()] = connection
            self._idle.append(connection)

    def prepare(self, count: int) -> None:
        """Make the first requests before the clock runs: their price is not the server's."""
        numbers = range(self._number, self._number + count)
        self._prepared = [payloads.http_request(number, self._devices) for number in reversed(numbers)]

    def run(self, seconds: float, requests: int, warm_up_s: float, watched: int) -> Spent:
        """Post until either is reached; what was spent in the time that counts."""
        begun = Spent.so_far(watched)
        warm_at = begun.seconds + warm_up_s
        end = warm_at + seconds
        due, warming = begun.seconds, warm_up_s > 0
        while self.sent < requests and (now := time.perf_counter()) < end:
            if warming and now >= warm_at:
                warming = False
                self.latencies.clear()
                begun = Spent.so_far(watched)
            due = self._send_due(due, now, requests)
            pause = due - now if self._idle else end - now
            self._receive(max(0.0, min(pause, end - now)))
        if requests != ENDLESS:
            self.drain()
        return Spent.so_far(watched).since(begun)

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
        prepared = self._prepared
        request = prepared.pop() if prepared else payloads.http_request(self._number, self._devices)
        connection.socket.sendall(request)
        self._number += 1
        self.sent += 1
        self._waiting += 1

    def _wait_by_epoll(self, timeout_s: float) -> list[int]:
        return [descriptor for descriptor, _ in self._epoll.poll(timeout_s)]

    def _wait_by_select(self, timeout_s: float) -> list[int]:
        """At a rate the pause to the next request matters, and epoll knows milliseconds only."""
        return select.select(self._connections, (), (), timeout_s)[0]

    def _receive(self, timeout_s: float) -> None:
        for descriptor in self._wait(timeout_s):
            connection = self._connections[descriptor]
            data = connection.socket.recv(ANSWER_BYTES)
            answer = connection.answer + data
            if not answer.startswith(OK) or not data:
                raise SystemExit(f"http_load: the answer was {answer[:200]!r}")
            if not answer.endswith(b"}"):
                connection.answer = answer
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
            raise SystemExit(f"http_load: {self._waiting} requests to port {self._port} were not answered")


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
    parser.add_argument("--watch", type=int, default=0, help="process id of the server")
    options = parser.parse_args()
    client = Client(options.port, options.connections, options.devices, options.first, options.rate)
    if options.seconds != LIMIT_S and not options.rate:
        client.prepare(int((options.warm_up + options.seconds) * PREPARED_PER_S))
    spent = client.run(options.seconds, options.requests, options.warm_up, options.watch)
    latencies = sorted(client.latencies)
    client.drain()
    result = {
        "count": len(latencies),
        "seconds": spent.seconds,
        "per_second": len(latencies) / spent.seconds,
        "p50_ms": percentile(latencies, 0.5) * 1000,
        "p99_ms": percentile(latencies, 0.99) * 1000,
        "client_share": spent.client / spent.seconds,
        "cpu_us": spent.server / len(latencies) * 1e6,
        "event_loop_us": spent.event_loop / len(latencies) * 1e6,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
