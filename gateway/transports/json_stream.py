"""Finds JSON objects in a stream without framing: complete if their brackets are closed, or broken off."""

import re

BLANKS = 64
"""Blanks in a row that may stand in front of a bracket, for indented JSON."""

_PADDING = b" \t\r\n\x00\xef\xbb\xbf"
_OPENING = re.compile(rb"[{\[]")
_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\n]|\\.', re.DOTALL)


class JsonSplitter:
    """Cuts a stream into JSON objects and the bytes between them. Brackets are counted outside strings.

    A line feed inside a string, or an object where none may stand, ends an object that was broken off.
    """

    def __init__(self) -> None:
        self._text = bytearray()
        self._seen = 0
        self._depth = 0
        self._in_string = False

    def __len__(self) -> int:
        """Return the number of bytes that are not a complete object yet."""
        return len(self._text)

    def feed(self, data: bytes) -> list[bytes]:
        """Add data. Return the pieces that are complete now."""
        self._text += data
        found = []
        while cut := self._cut():
            found.append(bytes(self._text[:cut]))
            del self._text[:cut]
            self._seen -= cut
        if not self._depth and not self._text.strip(_PADDING):
            self.flush()
        return [piece for piece in found if piece.strip(_PADDING)]

    def flush(self) -> list[bytes]:
        """Return the bytes that will not become complete, and forget them."""
        text = bytes(self._text)
        self._text.clear()
        self._seen = self._depth = 0
        self._in_string = False
        return [text] if text.strip(_PADDING) else []

    def _cut(self) -> int:
        """Return where the first piece ends, 0 if it is not complete."""
        while True:
            pattern = _INSIDE if self._in_string else _OUTSIDE if self._depth else _OPENING
            match = pattern.search(self._text, self._seen)
            if match is None:
                half_escaped = self._in_string and self._text.endswith(b"\\")
                self._seen = len(self._text) - half_escaped
                return 0
            self._seen = match.end()
            if cut := self._step(match[0], match.start(), match.end()):
                return cut

    def _step(self, mark: bytes, start: int, end: int) -> int:
        if self._in_string:
            self._in_string = mark not in {b'"', b"\n"}
            self._depth *= mark != b"\n"
            return end if mark == b"\n" else 0
        if mark == b'"':
            self._in_string = True
        elif mark in b"}]":
            self._depth -= 1
            return 0 if self._depth else end
        elif not self._depth:
            self._depth = 1
            return start
        elif mark == b"{" and self._text[max(0, start - BLANKS) : start].rstrip()[-1:] not in b":,[":
            # Inside another, an object begins only behind `:`, `,` or `[`, so the other one was broken off.
            self._depth = 1
            return start
        else:
            self._depth += 1
        return 0
