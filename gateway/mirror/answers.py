"""What comes back from a Brewing Data Service, as far as it comes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import aiohttp

from gateway.errors import FAILURES, in_words
from gateway.formats.readings.rows import NumberLiteral


@dataclass(slots=True)
class Answer:
    """What came back; status 0 where nothing did, no body where it could not be read to its end."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    trouble: str = ""
    too_long: bool = False


async def received(response: aiohttp.ClientResponse, limit: int) -> Answer:
    """As much of an answer as `limit` bytes allow."""
    answer = Answer(response.status, {name.lower(): text for name, text in response.headers.items()})
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        response.close()  # one megabyte of gzip can hold a gigabyte
        answer.trouble = "a compressed answer, which was not asked for"
        return answer
    body = bytearray()
    try:
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > limit:
                response.close()
                answer.trouble, answer.too_long = f"an answer of more than {limit} bytes", True
                return answer
        answer.body = bytes(body)
    except FAILURES as error:  # the status stands, whatever became of the rest
        answer.trouble = f"an answer that broke off: {in_words(error)}"
    return answer


def document_of(body: bytes) -> dict[str, Any]:
    """The JSON object; `ValueError` where there is none, or where it does not say success."""
    document = json.loads(
        body, parse_float=NumberLiteral, parse_int=NumberLiteral, parse_constant=_no_constant
    )
    if not isinstance(document, dict) or document.get("message", "success") != "success":
        raise ValueError("no JSON object of a success")
    return document


def _no_constant(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")


def detail_of(body: bytes | None) -> str:
    """What an error body says."""
    try:
        document = json.loads(body or b"")
    except (ValueError, RecursionError):
        return ""
    detail = document.get("detail") if isinstance(document, dict) else None
    return detail if isinstance(detail, str) else ""
