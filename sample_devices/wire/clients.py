"""Request heads of the HTTP clients that devices, bridges and clouds use, in the order they write them.

Sources: esp8266/Arduino `libraries/ESP8266HTTPClient` (devices.md 4.1), micropython/micropython-lib
`python-ecosys/requests` (4.6), and the samples of devices.md for the rest.  A device's own headers are
written as `Name: value`; nothing is encoded here, so a target or body may be as wrong as the firmware's.
"""

from collections.abc import Sequence

from sample_devices.wire.report import Address

HTTP_PORT = 80
JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"


def target(to: Address, default: str) -> str:
    """Give the request target: the one of the configured URL if there is one, else the device's own."""
    return default if to.path is None else to.path


def with_query(path: str, query: str) -> str:
    """Append a query as simple firmware does: always with `?`, also where the URL has one already."""
    return f"{path}?{query}"


def request(line: str, fields: Sequence[str], body: bytes = b"") -> bytes:
    """Join request line, header fields and body; nothing is added."""
    return "\r\n".join([line, *fields, "", ""]).encode() + body


def esp_get(to: Address, path: str, agent: str) -> bytes:
    """Make a GET of ESP8266HTTPClient or its ESP32 twin."""
    return request(f"GET {path} HTTP/1.1", _esp_fields(to, agent))


def esp_post(
    to: Address, path: str, body: bytes, own: Sequence[str], agent: str, connection: str = "keep-alive"
) -> bytes:
    """Make a POST of ESP8266HTTPClient or its ESP32 twin, the firmware's own headers before the length."""
    return request(f"POST {path} HTTP/1.1", [*_esp_fields(to, agent, connection), *own, _length(body)], body)


def python_post(
    to: Address,
    path: str,
    body: bytes,
    own: Sequence[str],
    accept: str = "*/*",
    agent: str = "python-requests/2.31.0",
) -> bytes:
    """Make a POST of Python's requests 2.31, the program's own headers before the length."""
    fields = [
        f"Host: {to.authority}",
        f"User-Agent: {agent}",
        "Accept-Encoding: gzip, deflate",
        f"Accept: {accept}",
        "Connection: keep-alive",
        *own,
        _length(body),
    ]
    return request(f"POST {path} HTTP/1.1", fields, body)


def aiohttp_post(to: Address, path: str, body: bytes) -> bytes:
    """Make a JSON POST of aiohttp 3.11 under Python 3.13, as Home Assistant has them."""
    fields = [
        f"Host: {to.authority}",
        "Accept: */*",
        "Accept-Encoding: gzip, deflate",
        "User-Agent: Python/3.13 aiohttp/3.11.0",
        JSON,
        _length(body),
    ]
    return request(f"POST {path} HTTP/1.1", fields, body)


def go_post(to: Address, path: str, body: bytes, kind: str = JSON) -> bytes:
    """Make a POST of Go's net/http, which writes the length before other headers."""
    fields = [
        f"Host: {to.authority}",
        "User-Agent: Go-http-client/1.1",
        _length(body),
        kind,
        "Accept-Encoding: gzip",
    ]
    return request(f"POST {path} HTTP/1.1", fields, body)


def micropython_old_post(to: Address, path: str, text: str, own: Sequence[str]) -> bytes:
    """Make a POST of an older version of MicroPython's requests: HTTP/1.0, the length in characters.

    Host has no port; the program's headers stand before the length.
    """
    fields = [f"Host: {_bare_host(to)}", *own, f"Content-Length: {len(text)}"]
    return request(f"POST {path} HTTP/1.0", fields, text.encode())


def microwebcli_post(to: Address, path: str, text: str) -> bytes:
    """Make a JSON POST of MicroWebCli: HTTP/1.0, Host without port, its own name last.

    Source: jczic/MicroWebCli `microWebCli.py`, which Torpedo has as `torpedo/microWebCli.py`; MicroPython's
    dictionaries keep no order, so the headers' order is our own.
    """
    body = text.encode()
    fields = [f"Host: {to.host}", JSON, _length(body), "User-Agent: MicroWebCli by JC`zic"]
    return request(f"POST {path} HTTP/1.0", fields, body)


def plain_post(to: Address, path: str, body: bytes, own: Sequence[str] = (JSON,)) -> bytes:
    """Make a POST with Host, the sender's headers and the length: all that is known of a cloud's client."""
    return request(f"POST {path} HTTP/1.1", [f"Host: {to.authority}", *own, _length(body)], body)


def raw_socket_post(to: Address, path: str, body: bytes, host: str | None = None) -> bytes:
    """Make the POST that Brew Bubbles prints line by line: Host without port, an uncounted CRLF at the end.

    Source: lbussy/brew-bubbles `src/pushhelper.cpp`.  TiltBridge 1.0.x has these lines with another `host`.
    """
    fields = [f"Host: {host or _bare_host(to)}", "Connection: close", _length(body), JSON]
    return request(f"POST {path} HTTP/1.1", fields, body + b"\r\n")


def _esp_fields(to: Address, agent: str, connection: str = "keep-alive") -> list[str]:
    return [
        f"Host: {to.authority}",
        f"User-Agent: {agent}",
        f"Connection: {connection}",
        "Accept-Encoding: identity;q=1,chunked;q=0.1,*;q=0",
    ]


def _bare_host(to: Address) -> str:
    return Address(to.host, HTTP_PORT).authority


def _length(body: bytes) -> str:
    return f"Content-Length: {len(body)}"
