"""The reader: GETs of one resource on a raw socket, read to the end and not parsed.

`python -m tests.benchmarks.read_load PORT PATH KEY SECONDS` repeats it so long, at least once, and prints one
line of JSON.
"""

import json
import socket
import sys
import time

HOST = "127.0.0.1"

ANSWER_S = 60.0
READ_BYTES = 1 << 20

OK = b"HTTP/1.1 200"
ENDS = (b"]}", b"]}\r\n0\r\n\r\n")
"""Of a whole answer, plain or chunked."""


def get(port: int, path: str, key: str) -> float:
    """Seconds from connecting to the last byte."""
    request = f"GET {path} HTTP/1.1\r\nHost: localhost:8080\r\nX-API-KEY: {key}\r\nConnection: close\r\n\r\n"
    buffer = memoryview(bytearray(READ_BYTES))
    head = tail = b""
    started = time.perf_counter()
    with socket.create_connection((HOST, port), timeout=ANSWER_S) as connection:
        connection.sendall(request.encode())
        while received := connection.recv_into(buffer):
            head = head or bytes(buffer[: len(OK)])
            tail = (tail + bytes(buffer[max(0, received - 16) : received]))[-16:]
    elapsed = time.perf_counter() - started
    if head != OK or not tail.endswith(ENDS):
        raise SystemExit(f"read_load: the answer began {head!r} and ended {tail!r}")
    return elapsed


def main() -> None:
    """Read as told, print."""
    port, path, key, seconds = int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])
    end = time.perf_counter() + seconds
    times = [get(port, path, key)]
    while time.perf_counter() < end:
        times.append(get(port, path, key))
    print(json.dumps({"seconds": times}))


if __name__ == "__main__":
    main()
