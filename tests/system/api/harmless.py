"""A Brewing Data Service on 127.0.0.1 that has nothing: what tests let the gateway ask."""

import json
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

HARMLESS_KEY = "harmless-key"

LISTS = {
    f"/v1/{kind}": {"message": "success", "count": "0", kind: []} for kind in ("recipes", "brewsessions")
}
NOT_FOUND = {"message": "not-found", "detail": "no records found"}
UNAUTHORIZED = {"message": "unauthorized", "detail": "invalid api key"}


class Handler(BaseHTTPRequestHandler):
    """Lists nothing to a caller with the key."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        listed = next((LISTS[end] for end in LISTS if path.endswith(end)), None)
        status, answer = (404, NOT_FOUND) if listed is None else (200, listed)
        if self.headers.get("X-API-KEY") != HARMLESS_KEY:
            status, answer = 401, UNAUTHORIZED
        self._send(status, answer)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self._send(401, UNAUTHORIZED)

    def _send(self, status: int, answer: object) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@cache
def harmless() -> str:
    """Start the service in a thread, for as long as the tests run; give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
