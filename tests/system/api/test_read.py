"""Endpoint 1 of the specification, and api-decisions sections 1 and 2."""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest

from gateway.api import fermentation
from gateway.errors import StoreUnavailable
from gateway.http import streaming
from gateway.store.queries import ReadingsQuery
from gateway.store.sqlite import readings
from gateway.store.sqlite.engine.database import READERS
from tests.cases import each
from tests.keys import allow_wrong_keys
from tests.system.api.conftest import Service, assert_specified, wait_for

UNAUTHORIZED = {"message": "unauthorized", "detail": "invalid api key"}
NOT_FOUND = {"message": "not-found", "detail": "no records found"}

EXAMPLE = {
    "_id": {"$oid": "69a7fb98c0ffee0000000001"},
    "login_id": 1,
    "api_key": "",
    "brewevent_id": 1,
    "recipe_id": 0,
    "ip": "192.0.2.10",
    "name": "GREEN",
    "gravity": "1.0420000000000011",
    "gravity_unit": "G",
    "temp": "66.5",
    "temp_unit": "F",
    "comment": "",
    "beer": "Harbour Porter",
    "interval": "46085.39583333333",
    "created_at": "2026-03-04T09:30:00+00:00",
    "source": "meter",
}

TIMES = [
    "2026-03-03T23:59:59+00:00",
    "2026-03-04T00:00:00+00:00",
    "2026-03-04T23:59:59+00:00",
    "2026-03-05T00:00:00+00:00",
]


def names(readings: list[dict[str, Any]]) -> list[str]:
    return [reading["name"] for reading in readings]


async def some(service: Service) -> None:
    await service.take([{"temp": 1, "name": str(place), "created_at": at} for place, at in enumerate(TIMES)])


async def test_a_reading_has_the_members_of_the_specification(service: Service) -> None:
    await service.take([EXAMPLE])
    (reading,) = await service.readings()
    assert_specified(reading)
    assert reading == EXAMPLE


async def test_the_example_of_the_decisions_byte_by_byte(service: Service) -> None:
    await service.take([EXAMPLE])
    async with service.client.get(service.path, headers=service.headers) as answer:
        body = await answer.read()
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["Content-Length"] == str(len(body))
    compact = json.dumps({"message": "success", "readings": [EXAMPLE]}, separators=(",", ":"))
    assert body == compact.encode()


async def test_known_session_without_readings_is_an_empty_answer(service: Service) -> None:
    assert await service.readings() == []


@each("accept", [None, "application/json", "*/*", "text/plain"])
async def test_never_406(service: Service, accept: str | None) -> None:
    headers = {**service.headers, **({"Accept": accept} if accept else {})}
    async with service.client.get(service.path, headers=headers) as answer:
        assert (answer.status, answer.content_type) == (200, "application/json")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "0123"),
        ("?skip=0", "0123"),
        ("?skip=1", "123"),
        ("?limit=2", "01"),
        ("?skip=1&limit=2", "12"),
        ("?skip=3&limit=2", "3"),
        ("?skip=4", ""),
        ("?limit=0", ""),
        ("?limit=999999999999999", "0123"),
        ("?page=1&unknown=x", "0123"),
        ("?from=2026-03-04", "123"),
        ("?to=2026-03-04", "012"),
        ("?from=2026-03-04&to=2026-03-04", "12"),
        ("?from=2026-03-04&to=2026-03-04&skip=1&limit=1", "2"),
        ("?from=2026-03-05&to=2026-03-04", ""),
        ("?from=0001-01-01&to=9999-12-31", "0123"),
    ],
)
async def test_filter_then_skip_then_limit(service: Service, query: str, expected: str) -> None:
    await some(service)
    assert "".join(names(await service.readings(query))) == expected


@each("name", ["skip", "limit"])
@each("value", ["-1", "x", "1.5", "%20", "1e3", "0x1", "%D9%A1", "9" * 40, "%2B1"])
async def test_paging_takes_whole_numbers_only(service: Service, name: str, value: str) -> None:
    status, answer = await service.get(f"?{name}={value}")
    assert status == 400
    assert answer == {"message": "failure", "detail": f"{name} must be a whole number, 0 or more"}


@each("name", ["from", "to"])
@each(
    "value",
    [
        "x",
        "2026-3-4",
        "20260304",
        "2026-W10-3",
        "2026-02-30",
        "2026-03-04T00:00:00",
        "0000-01-01",
        "2026-03-04%20",
        "%D9%A2026-03-04",
    ],
)
async def test_days_are_strict(service: Service, name: str, value: str) -> None:
    status, answer = await service.get(f"?{name}={value}")
    assert (status, answer["message"], set(answer)) == (400, "failure", {"message", "detail"})
    assert answer["detail"].startswith(f"{name} ")


async def test_order_is_by_time_then_id(service: Service) -> None:
    ids = [f"69a7fb98c0ffee00000000{n:02d}" for n in range(4)]
    late, early = "2026-03-04T09:30:01Z", "2026-03-04T09:30:00Z"
    sent = [(ids[3], early), (ids[0], late), (ids[1], early), (ids[2], early)]
    await service.take([{"_id": oid, "temp": 1, "created_at": at} for oid, at in sent])
    assert [r["_id"]["$oid"] for r in await service.readings()] == [ids[1], ids[2], ids[3], ids[0]]


@each(
    "query, expected",
    [
        ("sort=created_at:-1", "3210"),
        ("sort=created_at:1", "0123"),
        ("sort=created_at:+1", "0123"),
        ("sort=created_at", "0123"),
        ("sort=", "0123"),
        ("sort=created_at:-1&limit=1", "3"),
        ("sort=created_at:-1&skip=1&limit=2", "21"),
        ("sort=created_at:-1&from=2026-03-04&to=2026-03-04", "21"),
        ("sort=created_at:-1&to=2026-03-04&limit=1", "2"),
        ("sort=created_at:-1&skip=4", ""),
    ],
)
async def test_the_newest_readings_first(service: Service, query: str, expected: str) -> None:
    await service.take(
        [{"_id": f"{n:024x}", "temp": 1, "name": str(n), "created_at": at} for n, at in enumerate(TIMES)]
    )
    assert "".join(names(await service.readings(f"?{query}"))) == expected


async def test_newest_first_is_the_other_order_turned_around(service: Service) -> None:
    await service.take([{"temp": n, "created_at": TIMES[n % 4]} for n in range(40)])
    newest, oldest = await service.readings("?sort=created_at:-1"), await service.readings()
    assert newest == oldest[::-1]
    assert len(newest) == 40


@each("wrong", ["created_at:0", "created_at:-2", "created_at:desc", "created_at:", "temp:1", "-1", "_id:1"])
async def test_a_wrong_order_is_400(service: Service, wrong: str) -> None:
    assert await service.get(f"?sort={wrong}") == (
        400,
        {"message": "failure", "detail": "sort must be created_at:1 or created_at:-1"},
    )


async def test_both_orders_of_readings_are_those_of_an_index(service: Service) -> None:
    for sql in (readings.IN_SESSION, readings.NEWEST_IN_SESSION):
        where = sql.replace(readings.WHERE, "session_id = :brewevent_id AND created_at >= :first")
        values = dict.fromkeys(("login_id", "brewevent_id", "recipe_id", "limit", "skip", "first"), 1)
        async with service.store._database.reader() as reader:
            plan = await reader.run(lambda c: c.execute(f"EXPLAIN QUERY PLAN {where}", values).fetchall())  # noqa: B023
        (step,) = [row[3] for row in plan]  # a second step would sort
        assert "USING INDEX readings_by_session (session_id=? AND created_at>?)" in step


async def test_pages_are_never_short(service: Service) -> None:
    await service.take([{"temp": n} for n in range(1000)])
    pages = [await service.readings(f"?skip={skip}&limit=300") for skip in range(0, 1200, 300)]
    assert [len(page) for page in pages] == [300, 300, 300, 100]
    assert sum(pages, []) == await service.readings()  # noqa: RUF017


@each("key", [None, "", " ", "wrong", "hg_wrong", "ü"])
@each("path", ["/v1/fermentation/1", "/v1/fermentation/x", "/v1/fermentation/1?skip=x", "/v1/no", "/v1"])
async def test_the_key_comes_before_everything(service: Service, path: str, key: str | None) -> None:
    allow_wrong_keys(service.access)
    headers = {} if key is None else {"X-API-KEY": key}
    async with service.client.get(path, headers=headers) as answer:
        assert (answer.status, await answer.json()) == (401, UNAUTHORIZED)
    async with service.client.post(f"{path}/import", headers=headers, data=b"x") as answer:
        assert (answer.status, await answer.json()) == (401, UNAUTHORIZED)
    async with service.client.delete(path, headers=headers) as answer:
        assert (answer.status, await answer.json()) == (401, UNAUTHORIZED)


async def test_a_key_for_something_else_is_no_key(service: Service) -> None:
    reader = await service.access.add("reader", frozenset({"read"}))
    sender = await service.access.add("sender", frozenset({"ingest"}))
    for key, method, url, status in [
        (reader, "GET", service.path, 200),
        (reader, "POST", f"{service.path}/import", 401),
        (sender, "POST", f"{service.path}/import", 200),
        (sender, "GET", service.path, 401),
    ]:
        how: dict[str, Any] = {"headers": {"X-API-KEY": key}, "json": [] if method == "POST" else None}
        async with service.client.request(method, url, **how) as answer:
            assert answer.status == status
            assert status == 200 or await answer.json() == UNAUTHORIZED


async def test_a_revoked_key_is_no_key(service: Service) -> None:
    await service.access.revoke("test")
    assert await service.get() == (401, UNAUTHORIZED)


@each("header", ["X-API-KEY", "X-API-Key", "x-api-key"])
async def test_key_in_any_case_of_the_header_and_with_blanks_around_it(service: Service, header: str) -> None:
    async with service.client.get(service.path, headers={header: f"  {service.key}\t"}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/v1/fermentation/2",
        "/v1/fermentation/0",
        "/v1/fermentation/-1",
        "/v1/fermentation/x",
        "/v1/fermentation/1.0",
        "/v1/fermentation/0x1",
        "/v1/fermentation/" + "9" * 30,
        "/v1/fermentation/%D9%A1",
        "/v1/fermentation/%20",
        "/v1/fermentation",
        "/v1/fermentation/",
        "/v1/fermentation/1/",
        "/v1/fermentation/1/x",
        "/v2/fermentation/1",
        "/v1/Fermentation/1",
        "/v1/fermentation/1%00",
        "/v1/fermentation/1%2F..",
        "/v201309/fermentation/1",
    ],
)
async def test_what_is_not_there_is_404(service: Service, path: str) -> None:
    assert await service.get(path=path) == (404, NOT_FOUND)


async def test_sessions_of_another_account_are_not_there(service: Service) -> None:
    await service.store.keys.owner(1)
    await add_account(service, 2)
    other = await service.session_of(2)
    path = f"/v1/fermentation/{other.id}"
    assert await service.get(path=path) == (404, NOT_FOUND)
    assert await service.send([], path=path, query="?reset=true") == (404, NOT_FOUND)


async def add_account(service: Service, account_id: int) -> None:
    # No part of the product makes a second account yet; the rule must hold on the day one does.
    await service.store._writer.run(
        lambda c: c.execute("INSERT INTO accounts VALUES (?, 'second', 1)", (account_id,)) and None
    )


async def test_other_methods_are_405(service: Service) -> None:
    for method, path, allow in [
        ("POST", service.path, {"GET", "HEAD"}),
        ("DELETE", service.path, {"GET", "HEAD"}),
        ("GET", f"{service.path}/import", {"POST"}),
        ("PUT", f"{service.path}/import", {"POST"}),
    ]:
        async with service.client.request(method, path, headers=service.headers) as answer:
            assert answer.status == 405
            assert set(answer.headers["Allow"].split(",")) == allow
            body = await answer.json()
            assert set(body) == {"message", "detail"}
            assert body["message"] == "failure"


async def test_head_has_headers_and_no_body(service: Service) -> None:
    await service.take([{"temp": n} for n in range(600)])
    for query, has_length in (("?limit=1", True), ("", False)):
        async with service.client.head(service.path + query, headers=service.headers) as answer:
            assert (answer.status, answer.content_type) == (200, "application/json")
            assert ("Content-Length" in answer.headers) is has_length
            assert await answer.read() == b""
    assert len(await service.readings()) == 600  # the connection is still good


async def test_streamed_answer_equals_what_was_imported(service: Service) -> None:
    times = [
        f"2026-{1 + n // 1000:02d}-{1 + n % 1000 // 40:02d}T{n % 24:02d}:00:00+00:00" for n in range(5000)
    ]
    sent: list[dict[str, Any]] = [
        {**EXAMPLE, "_id": {"$oid": f"{n:024x}"}, "gravity": f"1.{n:05d}", "created_at": at}
        for n, at in enumerate(times)
    ]
    assert await service.take(sent) == 5000
    async with service.client.get(service.path, headers=service.headers) as answer:
        assert answer.headers.get("Transfer-Encoding") == "chunked"
        received = (await answer.json())["readings"]
    assert received == sorted(sent, key=lambda item: (item["created_at"], item["_id"]["$oid"]))


async def broken_chunks(query: ReadingsQuery) -> AsyncGenerator[bytes, None]:
    yield b"{}" * streaming.WHOLE_BYTES
    raise StoreUnavailable("the disk is gone")


async def test_fault_before_the_headers_is_503(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def chunks(query: ReadingsQuery) -> AsyncGenerator[bytes, None]:
        yield b"{}"
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(service.store.readings, "json_chunks", chunks)
    async with service.client.get(service.path, headers=service.headers) as answer:
        assert answer.status == 503
        assert answer.headers["Retry-After"] == "5"
        assert await answer.json() == {"message": "failure", "detail": "the disk is gone"}


async def test_bug_before_the_headers_is_500(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service.store.readings, "json_chunks", lambda query: wrong())
    assert await service.get() == (500, {"message": "failure", "detail": "internal error"})
    assert caplog.records[-1].exc_info is not None


async def wrong() -> AsyncGenerator[bytes, None]:
    raise ZeroDivisionError
    yield b""


async def test_deadline_before_the_headers_is_503(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "ANSWER_S", 0)
    status, answer = await service.get()
    assert (status, answer["detail"]) == (503, "reading took too long")


async def test_fault_after_the_headers_cuts_the_connection(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service.store.readings, "json_chunks", broken_chunks)
    with pytest.raises(aiohttp.ClientError):
        await service.get()
    assert [record.levelno for record in caplog.records if record.name == streaming.__name__] == [
        logging.WARNING
    ]
    assert (await service.client.get("/healthz")).status == 200


async def test_slow_readers_are_cut_and_give_their_places_back(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):  # more than the buffers of both ends hold
        await service.take([{"comment": "x" * 9000} for _ in range(1000)])
    monkeypatch.setattr(streaming, "ANSWER_S", 0.5)
    request = f"GET {service.path} HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: {service.key}\r\n\r\n".encode()
    sockets = [await lazy_reader(service, request) for _ in range(READERS)]
    await wait_for(lambda: sum("cut short" in line for line in caplog.messages) == READERS)
    monkeypatch.setattr(streaming, "ANSWER_S", 60)
    assert len(await service.readings("?limit=10")) == 10
    for sock in sockets:
        received = await everything(sock)
        assert received.startswith(b"HTTP/1.1 200 OK")
        assert fermentation.CLOSING not in received


async def lazy_reader(service: Service, request: bytes) -> socket.socket:
    """A connection that asks and then reads nothing."""
    loop = asyncio.get_running_loop()
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await loop.sock_connect(sock, ("127.0.0.1", service.client.port))
    await loop.sock_sendall(sock, request)
    return sock


async def everything(sock: socket.socket) -> bytes:
    """What arrived until the other side broke off."""
    received = bytearray()
    with sock, contextlib.suppress(ConnectionError):
        while piece := await asyncio.get_running_loop().sock_recv(sock, 65536):
            received += piece
    return bytes(received)
