"""`GET /manage/brewsessions/:id/readings`: a file that the import endpoint takes back bit for bit."""

import csv
import io
import json
import logging
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest

from gateway.domain.reading import SPEC_MEMBERS
from gateway.errors import StoreUnavailable
from gateway.http import streaming
from gateway.store.queries import ReadingsQuery
from tests.system.api.conftest import Service, assert_specified

NOT_FOUND = {"message": "not-found", "detail": "no records found"}
SENT: list[dict[str, Any]] = [
    {"temp": 20, "name": "=1+1", "source": "", "comment": "a\r\nb", "ph": 4.5, "created_at": "2026-03-01"},
    {"gravity": "1.0500", "comment": "'", "angle": "", "created_at": "2026-03-02", "ip": "2001:db8::1"},
]


def path(service: Service, query: str = "") -> str:
    return f"/manage/brewsessions/{service.session.id}/readings{query}"


async def file(service: Service, query: str = "") -> bytes:
    async with service.client.get(path(service, query), headers=service.headers) as answer:
        assert answer.status == 200
        return await answer.read()


@pytest.mark.parametrize("query", ["", "?format=json"])
async def test_json_is_the_array_of_what_the_read_endpoint_gives(service: Service, query: str) -> None:
    await service.take(SENT)
    async with service.client.get(path(service, query), headers=service.headers) as answer:
        assert (answer.status, answer.content_type) == (200, "application/json")
        assert answer.headers["Content-Disposition"] == 'attachment; filename="brewsession-1.json"'
        assert "Content-Length" in answer.headers
        readings = await answer.json()
    assert readings == await service.readings()
    assert_specified(readings[0], "ph")


async def test_csv_has_the_columns_of_the_decisions_and_one_for_the_rest(service: Service) -> None:
    await service.take(SENT)
    async with service.client.get(path(service, "?format=csv"), headers=service.headers) as answer:
        assert (answer.status, answer.content_type, answer.charset) == (200, "text/csv", "utf-8")
        assert answer.headers["Content-Disposition"] == 'attachment; filename="brewsession-1.csv"'
        header, first, second = csv.reader(io.StringIO(await answer.text(), newline=""), strict=True)
    assert header == [*SPEC_MEMBERS, "_extra"]
    reading = (await service.readings())[0]
    assert dict(zip(header, first, strict=True)) == {
        **{name: str(reading[name]) for name in SPEC_MEMBERS},
        "_id": reading["_id"]["$oid"],
        "name": "'=1+1",
        "source": "'",
        "_extra": '{"ph":4.5}',
    }
    assert (second[header.index("comment")], second[-1]) == ("''", '{"angle":""}')


@pytest.mark.parametrize(("name", "media"), [("json", "application/json"), ("csv", "text/csv")])
async def test_what_is_exported_is_imported_bit_for_bit(service: Service, name: str, media: str) -> None:
    await service.take([{**SENT[number % 2], "temp": number, "ph": 4.25} for number in range(900)])
    before = await raw(service)
    for query in ("?reset=true", ""):
        assert await service.take(await file(service, f"?format={name}"), media=media, query=query) == 900
        assert await raw(service) == before


async def raw(service: Service) -> bytes:
    async with service.client.get(service.path, headers=service.headers) as answer:
        return await answer.read()


async def test_many_readings_are_streamed(service: Service) -> None:
    await service.take([{"temp": number} for number in range(5000)])
    async with service.client.get(path(service), headers=service.headers) as answer:
        assert answer.headers.get("Transfer-Encoding") == "chunked"
        assert await answer.json() == await service.readings()


async def test_nothing_is_an_empty_file(service: Service) -> None:
    assert json.loads(await file(service)) == []
    assert (await file(service, "?format=csv")).decode() == ",".join([*SPEC_MEMBERS, "_extra"]) + "\r\n"


@pytest.mark.parametrize("query", ["?format=xml", "?format=JSON"])
async def test_other_formats_are_400(service: Service, query: str) -> None:
    told: dict[str, Any] = {"message": "failure", "detail": "format must be json or csv"}
    assert await service.get(path=path(service, query)) == (400, told)


@pytest.mark.parametrize("session", ["9", "x", "-1"])
async def test_an_unknown_session_is_404(service: Service, session: str) -> None:
    assert await service.get(path=f"/manage/brewsessions/{session}/readings") == (404, NOT_FOUND)


async def test_the_session_of_another_account_is_404(service: Service) -> None:
    other = await service.access.add_account("Another")
    session = await service.session_of(other.id)
    assert await service.get(path=f"/manage/brewsessions/{session.id}/readings") == (404, NOT_FOUND)


async def test_only_admins_may(service: Service) -> None:
    key = await service.access.add("reader", frozenset({"read", "ingest"}))
    async with service.client.get(path(service), headers={"X-API-KEY": key}) as answer:
        assert answer.status == 401


async def test_head_has_headers_and_no_body(service: Service) -> None:
    await service.take([{"temp": number} for number in range(900)])
    for _ in range(2):  # the connection is still good
        async with service.client.head(path(service, "?format=csv"), headers=service.headers) as answer:
            assert (answer.status, answer.content_type, await answer.read()) == (200, "text/csv", b"")


async def test_a_fault_before_the_headers_is_503(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def chunks(query: ReadingsQuery) -> AsyncGenerator[bytes, None]:
        yield b"{}"
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(service.store.readings, "json_chunks", chunks)
    told = {"message": "failure", "detail": "the disk is gone"}
    assert await service.get(path=path(service)) == (503, told)


async def test_the_deadline_before_the_headers_is_503(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "ANSWER_S", 0)
    told = {"message": "failure", "detail": "reading took too long"}
    assert await service.get(path=path(service)) == (503, told)


async def test_a_fault_after_the_headers_cuts_the_connection(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def chunks(query: ReadingsQuery) -> AsyncGenerator[bytes, None]:
        yield b"{}" * streaming.WHOLE_BYTES
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(service.store.readings, "json_chunks", chunks)
    with pytest.raises(aiohttp.ClientError):
        await service.get(path=path(service))
    levels = [record.levelno for record in caplog.records if record.name == streaming.__name__]
    assert levels == [logging.WARNING]
    assert (await service.client.get("/healthz")).status == 200
