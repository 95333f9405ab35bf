"""JSON objects out of a stream that has no framing: complete where the brackets are closed, or broken off."""

import re

BLANKS = 64
"""Of these may stand in a row in front of a bracket, for indented JSON."""

_PADDING = b" \t\r\n\x00\xef\xbb\xbf"
_OPENING = re.compile(rb"[{\[]")
_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\n]|\\.', re.DOTALL)


class Objects:
    """Cuts a stream into JSON objects and what stands between them; brackets are counted outside strings.

    A line feed inside a string, or an object where none may stand, ends one that was broken off.
    """

    def __init__(self) -> None:
        self._text = bytearray()
        self._seen = 0
        self._depth = 0
        self._in_string = False

    def __len__(self) -> int:
        """Bytes of what is not complete."""
        return len(self._text)

    def feed(self, data: bytes) -> list[bytes]:
        """What is complete now."""
        self._text += data
        found = []
        while cut := self._cut():
            found.append(bytes(self._text[:cut]))
            del self._text[:cut]
            self._seen -= cut
        if not self._depth and not self._text.strip(_PADDING):
            self.rest()
        return [piece for piece in found if piece.strip(_PADDING)]

    def rest(self) -> list[bytes]:
        """What is not complete and will not be."""
        text = bytes(self._text)
        self._text.clear()
        self._seen = self._depth = 0
        self._in_string = False
        return [text] if text.strip(_PADDING) else []

    def _cut(self) -> int:
        """Where the first piece ends, 0 where it is not complete."""
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

    def _step(self, what: bytes, start: int, end: int) -> int:
        if self._in_string:
            self._in_string = what not in {b'"', b"\n"}
            self._depth *= what != b"\n"
            return end if what == b"\n" else 0
        if what == b'"':
            self._in_string = True
        elif what in b"}]":
            self._depth -= 1
            return 0 if self._depth else end
        elif not self._depth or (what == b"{" and self._before(start) not in b":,["):
            self._depth = 1
            return start
        else:
            self._depth += 1
        return 0

    def _before(self, place: int) -> bytes:
        """The last byte in front of it that is not blank; nothing where all those near it are."""
        return bytes(self._text[max(0, place - BLANKS) : place]).rstrip()[-1:]
