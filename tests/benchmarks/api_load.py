"""The API's client: one request again and again on a raw keep-alive socket, answers read and not parsed.

`python -m tests.benchmarks.api_load PORT KEY COUNT METHOD PATH [BODY-FILE]` prints one line of JSON: the
seconds of each, from the first byte sent to the last received.
"""

import json
import re
import socket
import sys
import time
from pathlib import Path

HOST = "127.0.0.1"

ANSWER_S = 120.0
READ_BYTES = 1 << 20

HEAD = (
    "{method} {path} HTTP/1.1\r\nHost: localhost:8080\r\nX-API-KEY: {key}\r\n"
    "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
)
OK = b"HTTP/1.1 200"

_LENGTH = re.compile(rb"\r\nContent-Length: ([0-9]+)\r\n", re.IGNORECASE)


def exchange(connection: socket.socket, request: bytes) -> float:
    """Seconds that one request takes; ends the program where the answer is no 200."""
    started = time.perf_counter()
    connection.sendall(request)
    answer = bytearray()
    while (head := answer.find(b"\r\n\r\n")) < 0:
        answer += _received(connection)
    length = _LENGTH.search(answer, 0, head + 2)
    if not answer.startswith(OK) or length is None:
        raise SystemExit(f"api_load: the answer was {bytes(answer[:300])!r}")
    missing = head + 4 + int(length[1]) - len(answer)
    while missing > 0:
        missing -= len(_received(connection))
    return time.perf_counter() - started


def _received(connection: socket.socket) -> bytes:
    data = connection.recv(READ_BYTES)
    if not data:
        raise SystemExit("api_load: the connection was closed")
    return data


def main() -> None:
    """Ask as often as told, print."""
    port, key, count, method, path = sys.argv[1:6]
    body = Path(sys.argv[6]).read_bytes() if sys.argv[6:] else b""
    request = HEAD.format(method=method, path=path, key=key, length=len(body)).encode() + body
    with socket.create_connection((HOST, int(port)), timeout=ANSWER_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seconds = [exchange(connection, request) for _ in range(int(count))]
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
