"""The reader of pages: GETs on one connection, read to the end, compressed as a browser has them.

`python -m tests.benchmarks.page_load PORT COOKIE SECONDS COUNT PATH...` goes around the paths, for so many
seconds or so many times, whichever is longer, and prints one line of JSON.
"""

import http.client
import json
import sys
import time

HOST = "127.0.0.1"

ANSWER_S = 60.0


def main() -> None:
    """Read as told, print."""
    port, cookie, seconds, count = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    paths = sys.argv[5:]
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_S)
    headers = {"Cookie": cookie, "Accept": "text/html", "Accept-Encoding": "gzip", "Accept-Language": "en"}
    end, sizes = time.perf_counter() + seconds, [0]
    times: list[float] = []
    while len(times) < count or time.perf_counter() < end:
        path = paths[len(times) % len(paths)]
        began = time.perf_counter()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        times.append(time.perf_counter() - began)
        sizes.append(len(body))
        if answer.status != 200:
            raise SystemExit(f"page_load: {path}: {answer.status} {body[:200]!r}")
    print(json.dumps({"seconds": times, "bytes": max(sizes)}))


if __name__ == "__main__":
    main()
