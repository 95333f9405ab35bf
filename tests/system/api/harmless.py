"""A Brewing Data Service on 127.0.0.1 that has nothing: for requests that make the gateway ask a service."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

HARMLESS_KEY = "harmless-key"

LISTS = {f"/v1/{what}": {"message": "success", "count": "0", what: []} for what in ("recipes", "brewsessions")}
NOT_FOUND = {"message": "not-found", "detail": "no records found"}
UNAUTHORIZED = {"message": "unauthorized", "detail": "invalid api key"}


class Handler(BaseHTTPRequestHandler):
    """Lists nothing to a caller with the key."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        status, answer = (200, LISTS[path]) if path in LISTS else (404, NOT_FOUND)
        if self.headers.get("X-API-KEY") != HARMLESS_KEY:
            status, answer = 401, UNAUTHORIZED
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def harmless() -> Iterator[str]:
    """Run the service in a thread; give its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
