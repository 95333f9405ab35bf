"""Streams of events: who sees which topics, how many streams there are, what ends them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gateway.domain.payload import Payload
from gateway.errors import StoreUnavailable
from gateway.events import TOPICS, StoredNotices, Topic
from gateway.http import event_streams
from gateway.http.event_streams import EVENT_STREAMS, EventStreams, Sight
from gateway.http.middleware import SERVICES
from tests.patience import PATIENCE_S
from tests.payloads import ispindel
from tests.system.api.everything import Filled, Running, fill, running, unused_parts
from tests.system.http.test_connections import NEIGHBOUR, SHORT_S, Bench, Client, bounds
from tests.system.transports.conftest import wait_for
from tests.system.ui.site import served

EVENTS = "/manage/events"
QUICK_S = 0.02


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams look every 20 ms, and say something as often."""
    for name in ("WATCH_S", "PACE_S", "COMMENT_S"):
        monkeypatch.setattr(event_streams, name, QUICK_S)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


@asynccontextmanager
async def stream(service: Running, key: str | None = None) -> AsyncIterator[aiohttp.ClientResponse]:
    headers = {"X-API-KEY": service.key if key is None else key}
    async with service.client.get(EVENTS, headers=headers) as answer:
        if answer.status == 200:
            assert (answer.content_type, await line(answer)) == ("text/event-stream", "retry: 5000")
            assert answer.headers["Cache-Control"] == "no-store"
        yield answer


async def line(answer: aiohttp.ClientResponse) -> str:
    """The next line that is neither blank nor a comment; an empty text at the end."""
    async with asyncio.timeout(PATIENCE_S):
        while text := (await answer.content.readline()).decode():
            if text.strip() and not text.startswith(":"):
                return text.strip()
    return ""


async def event(answer: aiohttp.ClientResponse) -> tuple[str, str]:
    return (await line(answer)).removeprefix("event: "), (await line(answer)).removeprefix("data: ")


async def report(service: Running, number: int, gravity: str) -> None:
    body = ispindel(number, name=f"device{number}", gravity=gravity).encode()
    await service.services.intake.take(Payload(body, time.time(), "http /ingest"))


@pytest.mark.parametrize(("between", "kind"), [(True, "everything"), (False, "quarantine")])
async def test_a_page_hears_what_changed_before_its_stream_began(
    tmp_path: Path, quick: None, between: bool, kind: str
) -> None:
    async with served(tmp_path) as browser:
        path = (await browser.get("/devices")).page.one("span", class_="live").attributes["data-events"]
        if between:
            browser.services.notices.notify("device", device=1)
        async with browser.client.get(path, headers=browser.headers) as answer:
            assert await line(answer) == "retry: 5000"
            browser.services.notices.notify("quarantine")
            assert (await event(answer))[0] == kind


async def test_an_account_gets_events_of_its_own_brews(service: Running, quick: None) -> None:
    services = service.services
    await services.access.add_account("other")
    mine, other = await fill(services, "owner", "MARK"), await fill(services, "other", "OTHER")
    device, brew = mine.ids["device_id"], int(mine.ids["brew_session_id"])
    theirs = int(other.ids["brew_session_id"])
    async with stream(service) as owner, stream(service, other.key) as guest:
        await services.brewsessions.assign(device, brew, None)
        assert await event(owner) == ("brew", f'{{"brew":{brew}}}')
        assert await event(owner) == ("device", f'{{"brew":{brew},"device":{device}}}')
        await report(service, 1, "12.1")
        assert await event(owner) == ("reading", f'{{"brew":{brew},"device":{device}}}')
        await services.intake.take(Payload(b"?", time.time(), "http /ingest"))
        assert await event(owner) == ("quarantine", "{}")
        services.stats.say("mqtt", "broker gone", well=False)
        assert await event(owner) == ("gateway", "{}")
        session = await services.store.sessions.get(theirs)
        assert session is not None
        await services.importing.run(session, b'[{"gravity": 1.05}]', "json", "", False)
        assert await event(guest) == ("reading", f'{{"brew":{theirs}}}'), "and nothing before"
        assert await event(owner) == ("reading", "{}"), (
            "a page of all readings changes, but no brew of the owner"
        )
        await services.brewsessions.assign(device, theirs, None)
        assert {await event(guest), await event(guest)} == {
            ("brew", f'{{"brew":{theirs}}}'),
            ("device", f'{{"brew":{theirs},"device":{device}}}'),
        }
        services.notices.notify()
        assert await event(guest) == ("everything", "{}")


async def test_many_changes_are_few_events(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "PACE_S", SHORT_S)
    notices = service.services.notices
    async with stream(service) as answer:
        for _ in range(500):
            notices.publish("sending")
        assert await event(answer) == ("sending", "{}")
        for _ in range(500):
            notices.publish("sending")
        for number in range(TOPICS + 1):
            notices.publish("sending", brew=number)
        assert await event(answer) == ("everything", "{}")
        notices.publish("quarantine")
        assert await event(answer) == ("quarantine", "{}")


async def test_a_stream_ends_with_its_key(service: Running, quick: None) -> None:
    reads = await service.services.access.add("reads", frozenset({"read"}))
    async with stream(service, reads) as answer:
        await service.services.access.revoke("reads")
        assert await line(answer) == ""
    for key, status in (("", 401), (await service.services.access.add("in", frozenset({"ingest"})), 401)):
        async with stream(service, key) as answer:
            assert answer.status == status
    assert (await service.ask("HEAD", EVENTS)).status == 200


async def test_a_stream_says_something_while_nothing_happens(service: Running, quick: None) -> None:
    async with stream(service) as answer, asyncio.timeout(PATIENCE_S):
        assert [await answer.content.readline() for _ in range(3)] == [b"\n", b":\n", b"\n"]


async def test_an_address_has_few_streams_and_gets_them_back(
    service: Running, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "PER_SOURCE", 2)
    for limit in ("PER_SOURCE", "STREAMS"):
        monkeypatch.setattr(event_streams, limit, 2)
        async with stream(service), stream(service), stream(service) as third:
            assert (third.status, third.headers["Retry-After"]) == (429, "5")
        async with stream(service) as again, stream(service) as other:
            assert (again.status, other.status) == (200, 200)
        monkeypatch.setattr(event_streams, "PER_SOURCE", 99)


async def test_a_store_that_does_not_answer_makes_an_event_of_the_gateway(
    service: Running, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> Any:
        raise StoreUnavailable("gone")

    async with stream(service) as answer:
        monkeypatch.setattr(service.services.store.devices, "all", away)
        service.services.notices.publish("reading", device=1)
        assert await event(answer) == ("gateway", "{}")


async def test_a_tv_sees_its_brews_alone(service: Running) -> None:
    mine: Filled = await fill(service.services, "owner", "MARK")
    brew, device = int(mine.ids["brew_session_id"]), int(mine.ids["device_id"])
    await service.services.brewsessions.assign(str(device), brew, None)
    topics = [
        Topic("reading", device=device),
        Topic("quarantine"),
        Topic("brew", brew=brew + 1),
        Topic("gateway"),
    ]
    store = service.services.store
    assert await Sight(store, 1, brews=lambda: {brew}).of(topics) == [Topic("reading", brew, device)]
    assert await Sight(store, 1, brews=lambda: {brew + 1}).of(topics) == []
    assert await Sight(store, 2).of(topics) == []


async def test_the_page_has_the_same_stream_until_its_login_ends(tmp_path: Path, quick: None) -> None:
    async with served(tmp_path) as page:
        async with page.client.get("/ui/events", headers=page.headers) as answer:
            assert await line(answer) == "retry: 5000"
            page.services.notices.publish("quarantine")
            assert await event(answer) == ("quarantine", "{}")
            (login,) = page.services.logins.all(1)
            await page.services.logins.log_out(login.id)
            assert await line(answer) == ""
        async with page.client.get("/ui/events", headers=page.headers, allow_redirects=False) as answer:
            assert answer.status == 303


def test_a_listener_keeps_a_bounded_set() -> None:
    notices = StoredNotices()
    bell = notices.listen()
    with notices.follow() as listener:
        for number in range(10 * TOPICS):
            notices.notify("reading", device=number % 2)
        assert listener.take() == [Topic("reading", device=0), Topic("reading", device=1)]
        for number in range(TOPICS):
            notices.publish("reading", device=number)
        assert len(listener.take()) == TOPICS
        for number in range(10 * TOPICS):
            notices.publish("reading", device=number)
        assert listener.take() == [Topic("everything")]
        assert listener.take() == []
    bell.clear()
    notices.publish("sending")
    assert not bell.is_set(), "what was sent on is no news for those who send it on"
    assert listener.take() == []


class NewsBench(Bench):
    """A bench whose requests to /hold are streams of events."""

    async def start(self) -> None:
        self.services = unused_parts()
        await super().start()

    async def _hold(self, request: web.Request) -> web.StreamResponse:
        return await request.app[EVENT_STREAMS].send(request, Sight(self.services.store, 1))

    def made(self, app: web.Application) -> None:
        app[SERVICES] = self.services
        app[EVENT_STREAMS] = EventStreams()
        app.on_shutdown.append(app[EVENT_STREAMS].end)


@pytest.fixture
async def bench(quick: None) -> AsyncIterator[NewsBench]:
    bench = NewsBench(bounds(connections=3, answer_s=SHORT_S, body_s=SHORT_S, idle_s=SHORT_S))
    await bench.start()
    yield bench
    await bench.stop()


async def begun(bench: NewsBench, address: str = NEIGHBOUR) -> Client:
    client = await bench.connect(address)
    client.writer.write(b"GET /hold/1 HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        await client.reader.readuntil(b"retry: 5000")
    return client


async def test_a_stream_has_no_deadline_but_makes_room_first(bench: NewsBench) -> None:
    first = await begun(bench)
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(20):
            await first.reader.readuntil(b":\n\n")
    assert bench.stats.connections_cut == 0
    silent = await bench.connect()
    await begun(bench)
    await wait_for(lambda: bench.stats.connections == 3)
    await begun(bench, "127.0.0.3")
    assert (await first.end()).strip(b":\r\n0123456789abcdef") == b""
    assert bench.stats.connections_cut == 1
    silent.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await silent.status() == 200, "whoever may yet send a reading stays"


async def test_all_streams_end_when_the_gateway_stops(bench: NewsBench) -> None:
    clients = [await begun(bench), await begun(bench, "127.0.0.3")]
    ending = asyncio.create_task(bench.runner.cleanup())
    for client in clients:
        assert b"0\r\n\r\n" in await client.end(), "an orderly end, not one by the deadline"
    await ending
