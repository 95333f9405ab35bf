"""Mend a device's request that aiohttp's parser would refuse or misread. The API's requests stay as sent.

Mistakes of firmware, and their sources: a target without a leading slash (universam1/iSpindel
`pio/lib/Sender/Sender.cpp` sends the setting `uri` as it is), blanks and other bytes in a target
(mp-se/gravitymon `src/push_templates.cpp`: the GET template is not encoded), a Content-Length that counts
characters (micropython/micropython-lib `python-ecosys/requests/requests/__init__.py`), header lines that a
person has typed into a device (mp-se/espframework `src/basepush.cpp`).

A mended request is the last of its connection, so nothing that follows it can pass for a request.
"""

import codecs
import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

OURS = frozenset({b"v1", b"manage", b"docs", b"openapi.json", b"healthz", b"metrics", b"dashboard"})
"""First words of the paths that no device reports to; requests to them are never mended."""

PROMETHEUS = [b"metrics", b"job"]
"""Words of the path that an iSpindel's Prometheus service reports to; an exception to `OURS`."""

HEAD_BYTES = 16 * 1024
"""Bytes of the request line and headers at most; aiohttp takes 8190 bytes a line."""

LENGTH_DIGITS = 5
BODY_BYTES = 64 * 1024
"""Bytes of a body that may be mended: as many as a device path takes."""

HEAD_WAIT_S = 5.0
"""Seconds to wait for the rest of a head; then aiohttp gets it as it is."""

WAIT_S = 10.0
"""Seconds to wait for the rest of a body; then aiohttp gets the request as it is."""

TAIL_WAIT_S = 0.2
"""Seconds to wait for bytes behind a Content-Length that may have counted characters."""

_METHODS = (b"GET ", b"POST ", b"PUT ")
_FIRST_LINE = re.compile(rb"(GET|POST|PUT) ([^\r\n]*) (HTTP/1\.[01])\r\n")
_HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+)([ \t]*):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_FRAMING = re.compile(rb"content-length|transfer-encoding|\n", re.IGNORECASE)
_ABSOLUTE = re.compile(rb"\A[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
_UNSAFE = re.compile(rb'[^!-"$-~]')
_NEXT_REQUEST = re.compile(rb"[A-Z]+(?: |\Z)")
_HEAD_END = b"\r\n\r\n"
_ONCE = frozenset({b"host", b"content-type", b"user-agent"})
_REWRITTEN = frozenset({b"connection", b"keep-alive", b"content-length"})


@dataclass(frozen=True, slots=True)
class Head:
    """A request's head. `length` is its Content-Length; aiohttp would refuse or misread an `odd` head."""

    method: bytes
    target: bytes
    version: bytes
    headers: dict[bytes, bytes]
    length: int
    odd: bool

    @property
    def may_count_characters(self) -> bool:
        """True if the request may come from MicroPython's `requests`, whose lengths count characters.

        That library sends no User-Agent and closes the connection; its older versions speak HTTP/1.0.
        """
        closes = (
            self.version == b"HTTP/1.0" or self.headers.get(b"connection", b"").strip().lower() == b"close"
        )
        return closes and self.length > 0 and b"user-agent" not in self.headers

    def with_body(self, body: bytes) -> bytes:
        """Return the request with this body, written as aiohttp takes it."""
        lines = [b" ".join((self.method, self.target, self.version))]
        lines += [b"%s: %s" % item for item in self.headers.items() if item[0] not in _REWRITTEN]
        lines += [b"connection: close", b"content-length: %d" % len(body)]
        return b"\r\n".join(lines) + _HEAD_END + body


def look(received: bytes, *, waited: bool = False) -> bytes | float:
    """Return the bytes for aiohttp, mended or as they are; or the seconds to wait for more bytes.

    With `waited` the wait is over: the result is bytes.
    """
    first = _FIRST_LINE.match(received)
    if first is None:
        return HEAD_WAIT_S if not waited and _may_begin(received) else received
    if _is_ours(first[2]):
        return received
    end = received.find(_HEAD_END, 0, HEAD_BYTES)
    if end < 0:
        return received if waited or len(received) > HEAD_BYTES else HEAD_WAIT_S
    head = _read_head(first, received[first.end() : end])
    if head is None:
        return received
    return _whole(head, received, received[end + len(_HEAD_END) :], waited)


def _whole(head: Head, received: bytes, body: bytes, waited: bool) -> bytes | float:
    """Return the request, mended if the head is odd or the length wrong; or the seconds to wait."""
    size = head.length
    if len(body) < size:
        return received if waited or not (head.odd or head.may_count_characters) else WAIT_S
    text = _utf8(body) if head.may_count_characters and not body[:size].isascii() else None
    if text is not None:
        if len(text) < size and not waited:
            return TAIL_WAIT_S
        size = len(text[:size].encode()) if len(text) >= size else len(body)
    elif (rest := body[size:].lstrip(b"\r\n")) and not _NEXT_REQUEST.match(rest):
        size = len(body)  # aiohttp would refuse it all: a NUL too many, or a length that is wrong or missing
    if not head.odd and size == head.length:
        return received
    return head.with_body(body[:size])


def _may_begin(received: bytes) -> bool:
    """Return whether these bytes may become the request line of a device."""
    start = received[: len(max(_METHODS, key=len))]
    of_a_method = any(method.startswith(start) or start.startswith(method) for method in _METHODS)
    return of_a_method and len(received) <= HEAD_BYTES and b"\n" not in received


def _is_ours(target: bytes) -> bool:
    """Return whether a target may lead to the API, in any spelling; a path with `..` may."""
    path = unquote_to_bytes(_ABSOLUTE.sub(b"", target.strip(b" "), count=1).partition(b"?")[0])
    words = [word for word in path.split(b"/") if word.strip(b" .") or word == b".."]
    return b".." in words or (bool(words) and words[0].strip() in OURS and words[:2] != PROMETHEUS)


def _read_head(first: re.Match[bytes], lines: bytes) -> Head | None:
    """Return the head without unreadable lines; None if the length of its body is in doubt."""
    target = _mended_target(first[2])
    odd = target != first[2]
    headers: dict[bytes, bytes] = {}
    for line in lines.split(b"\r\n") if lines else ():
        match = _HEADER.fullmatch(line)
        name = match[1].lower() if match else b""
        if match is None or name in headers:
            if _FRAMING.search(line):
                return None
            odd |= match is None or name in _ONCE
            continue
        odd |= bool(match[2])
        headers[name] = match[3]
    if first[3] == b"HTTP/1.1" and b"host" not in headers:
        odd, headers[b"host"] = True, b"gateway"
    length = _length(headers)
    return None if length is None else Head(first[1], target, first[3], headers, length, odd)


def _mended_target(raw: bytes) -> bytes:
    """Return a target with one slash in front; blanks, `#` and bytes beyond ASCII are percent-encoded."""
    target = _UNSAFE.sub(lambda byte: b"%%%02X" % byte[0][0], raw.strip(b" "))
    return target if _ABSOLUTE.match(target) else b"/" + target.lstrip(b"/")


def _length(headers: dict[bytes, bytes]) -> int | None:
    """Return the declared length of the body; None if it is no plain number, or too large to mend."""
    given = headers.get(b"content-length", b"0").strip(b" \t")
    if (
        b"transfer-encoding" in headers
        or b"expect" in headers
        or not given.isdigit()
        or len(given) > LENGTH_DIGITS
    ):
        return None
    return int(given) if int(given) <= BODY_BYTES else None


def _utf8(body: bytes) -> str | None:
    """Return the text of a body, without an unfinished last character; None if it is not UTF-8."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return None
