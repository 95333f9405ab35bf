"""A BeerXML document as a tree of nodes, read so that no document can take much time or memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser, ParseError

from gateway.domain.recipe import DOCUMENT_BYTES
from gateway.errors import InvalidInput, TooLarge
from gateway.formats.beerxml import text as beerxml_text

DEPTH = 64
"""The most levels of elements; BeerXML itself needs eight."""

ELEMENTS = 250_000
"""The most elements of one document: a thousand recipes of 250."""

ATTRIBUTES = 64
DOCUMENT_ATTRIBUTES = 250_000
"""The most attributes of one element, and of one document; BeerXML itself has none."""

ATTRIBUTE_CHARACTERS = 64 * 1024
"""The most characters of an attribute's value."""

TAG_BYTES = 256 * 1024
"""The most bytes of one tag or comment. The parser does not come back before the end of either."""

PIECE_CHARACTERS = 64 * 1024
"""Characters that the parser gets in one go."""

NAME_SHOWN = 40
"""The most characters of an element's name in a message."""

_WRAPPER = "documents"
"""The root around a document with several roots or none."""


@dataclass(slots=True)
class Node:
    """An element, by its name without namespace; `parts` are its text and its elements in their order."""

    name: str
    attributes: bool = False
    parts: list[Union[str, "Node"]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the node's own text, line ends as LF."""
        return beerxml_text.clean("".join(part for part in self.parts if isinstance(part, str)))

    @property
    def children(self) -> list["Node"]:
        """Return the node's elements."""
        return [part for part in self.parts if isinstance(part, Node)]

    @property
    def key(self) -> str:
        """Return the node's name as BeerXML would write it."""
        return self.name.upper()

    def full_text(self) -> str:
        """Return the node's text with that of all elements in it."""
        texts = (part if isinstance(part, str) else part.full_text() for part in self.parts)
        return beerxml_text.clean("".join(texts))


class _Builder:
    """Builds nodes from the parser's events, within the limits above; `above` nodes are over its roots.

    A RECIPE that is a root counts as one level deeper, because it will be written inside RECIPES.
    """

    def __init__(self, above: int) -> None:
        self.top = Node("")
        self._above = above
        self._missing = 0
        self._open = [self.top]
        self._count = 0
        self._attributes = 0

    @property
    def open_name(self) -> str:
        return self._open[-1].name

    @property
    def open_count(self) -> int:
        return len(self._open) - 1

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._count += 1
        if self._count > ELEMENTS:
            raise TooLarge(f"the document has more than {ELEMENTS} elements")
        if attributes:
            self._check(attributes)
        node = Node(tag.rpartition("}")[2], bool(attributes))
        level = len(self._open) - self._above + 1
        if level == 1:
            self._missing = int(node.key == "RECIPE")
        if level + self._missing > DEPTH:
            raise TooLarge(f"more than {DEPTH} elements are nested in one another")
        self._open[-1].parts.append(node)
        self._open.append(node)

    def _check(self, attributes: Mapping[str, str]) -> None:
        self._attributes += len(attributes)
        if len(attributes) > ATTRIBUTES:
            raise InvalidInput(f"an element has more than {ATTRIBUTES} attributes")
        if self._attributes > DOCUMENT_ATTRIBUTES:
            raise InvalidInput(f"the document has more than {DOCUMENT_ATTRIBUTES} attributes")
        if any(len(value) > ATTRIBUTE_CHARACTERS for value in attributes.values()):
            raise InvalidInput(f"an attribute has more than {ATTRIBUTE_CHARACTERS} characters")

    def data(self, text: str) -> None:
        self._open[-1].parts.append(text)

    def end(self, tag: str) -> None:
        self._open.pop()

    def close(self) -> Node:
        return self.top


def parse(document: bytes) -> tuple[Node, list[str]]:
    """Return a node above the document's roots, and the repairs that made it readable."""
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


def _feed(parser: Any, text: str) -> None:
    """Give the parser a text, piece by piece.

    The parser reads a whole tag before it reports the tag, and lets no other thread run meanwhile: seven
    megabytes of attributes would stop the event loop for a second, although this is another thread.
    """
    size = 0
    for first in range(0, len(text), PIECE_CHARACTERS):
        piece = text[first : first + PIECE_CHARACTERS]
        parser.feed(piece)
        size += len(piece.encode())
        if size - parser.parser.CurrentByteIndex > TAG_BYTES:
            raise InvalidInput(f"a tag or comment is longer than {TAG_BYTES} bytes")


def _parsed(text: str) -> Node:
    """Parse a document with one root, as XML requires."""
    builder = _Builder(above=1)
    parser = _parser(builder)
    try:
        _feed(parser, text)
        parser.close()
    except DefusedXmlException as error:
        raise InvalidInput("a document type declaration is not allowed") from error
    return builder.top


def _wrapped(text: str) -> Node:
    """Parse a document with any number of roots."""
    builder = _Builder(above=2)
    parser = _parser(builder)
    try:
        _feed(parser, f"<{_WRAPPER}>{text}")
        if builder.open_count > 1:
            raise InvalidInput(f"the document ends within {builder.open_name[:NAME_SHOWN]}")
        parser.feed(f"</{_WRAPPER}>")
        parser.close()
    except DefusedXmlException as error:
        raise InvalidInput("a document type declaration is not allowed") from error
    return builder.top.children[0]
