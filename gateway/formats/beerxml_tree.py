"""A BeerXML document as a tree of nodes, read so that no document can take much time or memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser, ParseError

from gateway.errors import InvalidInput, TooLarge
from gateway.formats import beerxml_text

DOCUMENT_BYTES = 10 * 1024 * 1024
"""Size of a document at most."""

DEPTH = 64
"""Levels of elements at most; BeerXML itself needs eight."""

ELEMENTS = 250_000
"""Elements of one document at most: a thousand recipes of 250."""

_WRAPPER = "documents"
"""Root that is put round a document with several roots or none."""


@dataclass(slots=True)
class Node:
    """One element, by its name without namespace; `texts` are its own, before, between and after children."""

    name: str
    attributes: bool = False
    texts: list[str] = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its own text, line ends as LF."""
        return beerxml_text.clean("".join(self.texts))

    @property
    def key(self) -> str:
        """Its name as BeerXML would write it."""
        return self.name.upper()

    def full_text(self) -> str:
        """Its text with that of all elements in it; the order of texts among children is kept per element."""
        return " ".join(filter(None, (self.text.strip(), *(child.full_text() for child in self.children))))


class _Builder:
    """What the parser tells of a document, held to `DEPTH` and `ELEMENTS`."""

    def __init__(self) -> None:
        self.top = Node("")
        self._open = [self.top]
        self._count = 0

    @property
    def open_name(self) -> str:
        return self._open[-1].name

    @property
    def open_count(self) -> int:
        return len(self._open) - 1

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._count += 1
        if len(self._open) > DEPTH + 1:
            raise TooLarge(f"more than {DEPTH} elements are nested in one another")
        if self._count > ELEMENTS:
            raise TooLarge(f"the document has more than {ELEMENTS} elements")
        node = Node(tag.rpartition("}")[2], bool(attributes))
        self._open[-1].children.append(node)
        self._open.append(node)

    def data(self, text: str) -> None:
        self._open[-1].texts.append(text)

    def end(self, tag: str) -> None:
        self._open.pop()

    def close(self) -> Node:
        return self.top


def parse(document: bytes) -> tuple[Node, list[str]]:
    """A node above the document's roots, and what had to be mended before it could be read."""
    if len(document) > DOCUMENT_BYTES:
        raise TooLarge(f"the document is larger than {DOCUMENT_BYTES} bytes")
    text, changes = beerxml_text.decoded(document)
    if not text or text.isspace():
        raise InvalidInput("the document is empty")
    try:
        return _parsed(text), changes
    except ParseError:
        text, mended = beerxml_text.mended(text)
    try:
        return _wrapped(text), changes + mended
    except ParseError as error:
        line = error.position[0]
        raise InvalidInput(f"not readable as XML, line {line}: {str(error).partition(':')[0]}") from error


def _parser(builder: _Builder) -> Any:
    return DefusedXMLParser(target=builder, forbid_dtd=True)


def _parsed(text: str) -> Node:
    """A document as XML wants it: one root."""
    builder = _Builder()
    parser = _parser(builder)
    try:
        parser.feed(text)
        parser.close()
    except DefusedXmlException as error:
        raise InvalidInput("a document type declaration is not taken") from error
    return builder.top


def _wrapped(text: str) -> Node:
    """A document with any number of roots."""
    builder = _Builder()
    parser = _parser(builder)
    try:
        parser.feed(f"<{_WRAPPER}>{text}")
        if builder.open_count > 1:
            raise InvalidInput(f"the document ends within {builder.open_name}")
        parser.feed(f"</{_WRAPPER}>")
        parser.close()
    except DefusedXmlException as error:
        raise InvalidInput("a document type declaration is not taken") from error
    return builder.top.children[0]
