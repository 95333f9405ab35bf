"""Make text of a BeerXML document's bytes, and XML of text that is nearly XML; report each repair.

Recipe programs write HTML entities, bare ampersands and control characters, and name one encoding while they
use another. Only text that cannot be XML is repaired, so nothing valid changes.
"""

import re
from collections.abc import Iterator
from html.entities import name2codepoint

from gateway.errors import InvalidInput

BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)
"""First bytes that decide the encoding, whatever the declaration is."""

WESTERN = "windows-1252"
"""Superset of ISO-8859-1 in all that text uses; its five unused bytes are read as ISO-8859-1 has them."""

ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "utf-8",
    "ascii": "utf-8",
    "iso-8859-1": WESTERN,
    "latin1": WESTERN,
    "latin-1": WESTERN,
    "windows-1252": WESTERN,
    "cp1252": WESTERN,
    "iso-8859-2": "iso-8859-2",
    "iso-8859-15": "iso-8859-15",
    "windows-1250": "windows-1250",
}
"""Encodings by their names in lower case. A document that names another is read as if it named none."""

DECLARATION_BYTES = 256
"""The first bytes, in which a declaration is searched for."""

FORBIDDEN = "\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff"
"""Characters that XML 1.0 cannot hold, as a class of a regular expression."""

PIECES = 100_000
"""The most pieces of text between places to mend: no recipe needs so many, and they take time."""

_LEFT_OUT = "characters that XML forbids are left out"
_FORBIDDEN = re.compile(f"[{FORBIDDEN}]")
_CARRIAGE_RETURN = re.compile("\r\n?")
_DECLARATION = re.compile(rb"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_OPENING = re.compile(r"\s*<\?xml\s[^>]*?\?>")
_SUSPECTS = re.compile(
    r"<!\[CDATA\[(?:.*?\]\]>|.*)|<!--(?:.*?-->|.*)|<\?(?:.*?\?>|.*)|<!DOCTYPE"
    r"|&(?:#(?:x[0-9a-fA-F]{1,6}|[0-9]{1,7});|[A-Za-z][A-Za-z0-9]{1,31};)?|<(?![^\W\d]|[/!?:])",
    re.DOTALL,
)
"""Sections that hold plain text, and everything with `&` or `<` that may be no markup."""

_XML_ENTITIES = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"}


def clean(text: str) -> str:
    """Return text that XML can hold, line ends as LF; leave out other characters."""
    if "\r" in text:
        text = _CARRIAGE_RETURN.sub("\n", text)
    return _FORBIDDEN.sub("", text)


def decoded(document: bytes) -> tuple[str, list[str]]:
    """Return the document's text without mark and declaration, and the repairs on the way."""
    encoding = next((name for mark, name in BYTE_ORDER_MARKS if document.startswith(mark)), None)
    changes: list[str] = []
    if encoding is None:
        declared = _DECLARATION.match(document[:DECLARATION_BYTES])
        encoding = ENCODINGS.get(declared[1].decode("ascii").lower(), "utf-8") if declared else "utf-8"
    try:
        text = document.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding.startswith("utf-16"):
            raise InvalidInput("the document is not readable as UTF-16") from error
        if encoding != WESTERN:
            changes.append(f"Document: not all of it is {encoding}; read as {WESTERN}")
        try:
            text = document.decode(WESTERN)
        except UnicodeDecodeError:
            text = document.decode("iso-8859-1")
    opening = _OPENING.match(text)
    if opening is None:
        return text, changes
    return "\n" * opening[0].count("\n") + text[opening.end() :], changes


def mended(text: str) -> tuple[str, list[str]]:
    """Mend everything in the text that can only be meant as text; line numbers stay the same."""
    found: dict[str, str] = {}
    cleaned = _FORBIDDEN.sub("", text)
    if cleaned != text:
        found[_LEFT_OUT] = f"Document: {_LEFT_OUT}"
        text = cleaned
    pieces: list[str] = []
    for piece, start, what in _pieces(text):
        pieces.append(piece)
        if what and what not in found:
            line = text.count("\n", 0, start) + 1
            found[what] = f"Document, from line {line} on: {what}"
        if len(pieces) > PIECES:
            raise InvalidInput("not readable as XML: too much in it is neither text nor markup")
    return "".join(pieces), list(found.values())


def _pieces(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield the text in pieces, each with its beginning and its repair."""
    end = 0
    for match in _SUSPECTS.finditer(text):
        piece, what = _mend(match[0])
        if what:
            yield text[end : match.start()], end, ""
            yield piece, match.start(), what
            end = match.end()
    yield text[end:], end, ""


def _mend(piece: str) -> tuple[str, str]:
    if piece.startswith("<!DOCTYPE"):
        raise InvalidInput("a document type declaration is not allowed")
    if piece.startswith("<?xml") and piece[5:6].isspace():
        return "\n" * piece.count("\n"), "further XML declarations are left out"
    if piece == "<":
        return "&lt;", "a < that begins no element is text"
    if piece == "&":
        return "&amp;", "an & that begins no entity is text"
    if piece.startswith("&#"):
        code = int(piece[3:-1], 16) if piece[2] == "x" else int(piece[2:-1])
        allowed = code <= 0x10FFFF and not _FORBIDDEN.match(chr(code))
        return (piece, "") if allowed else ("", _LEFT_OUT)
    if piece.startswith("&") and piece not in _XML_ENTITIES:
        if piece[1:-1] in name2codepoint:
            return chr(name2codepoint[piece[1:-1]]), "HTML entities are written as characters"
        return "&amp;" + piece[1:], "an & that begins no entity is text"
    return piece, ""
