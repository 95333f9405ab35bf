"""How the service is asked: paced, one at a time, again after what passes, never after what does not."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gateway.forward.client import USER_AGENT
from gateway.mirror import client as client_module
from gateway.mirror.client import TRIES, MirrorStopped, NotThere, RemoteService, RemoteUnreadable
from tests.system.mirror.bench import NOW, LeapClock
from tests.system.mirror.fake import KEY, Behaviour, Fake, cut, recipe, refuse, running, status

PATH = "/v1/recipes"


class Asked:
    """A fake and a reader of it."""

    def __init__(self, fake: Fake, session: aiohttp.ClientSession) -> None:
        self.fake = fake
        self.session = session
        self.clock = LeapClock()
        self.service = self.reader()

    def reader(self, **options: Any) -> RemoteService:
        options = {"rate": 1e6, "draw": lambda: 1.0, **options}
        return RemoteService(self.session, self.fake.url, KEY, self.clock, **options)

    @property
    def waits(self) -> list[float]:
        """Sleeps that are no pacing."""
        return [nap for nap in self.clock.naps if nap > 0.01]

    async def succeeds_after(self, *script: Behaviour) -> None:
        """These answers are got over."""
        self.fake.script += script
        document = await self.service.json(PATH)
        assert [str(record["id"]) for record in document["recipes"]] == ["1"]
        assert len(self.fake.requests) == len(script) + 1


@pytest.fixture
async def asked() -> AsyncIterator[Asked]:
    async with running(Fake(recipes=[recipe(1)])) as fake, aiohttp.ClientSession() as session:
        yield Asked(fake, session)


async def test_it_says_who_asks_and_sends_the_key(asked: Asked) -> None:
    await asked.service.json(PATH, {"limit": "5"})
    (request,) = asked.fake.requests
    assert request.path_qs == f"{PATH}?limit=5"
    assert request.headers["X-API-KEY"] == KEY
    assert request.headers["User-Agent"] == USER_AGENT
    assert request.headers["Accept-Encoding"] == "identity"


async def test_numbers_keep_their_digits(asked: Asked) -> None:
    asked.fake.recipes[0]["og"] = 1.0
    body = b'{"message":"success","og":1.0500,"big":' + b"9" * 5000 + b"}"
    asked.fake.always[PATH] = status(200, body)
    document = await asked.service.json(PATH)
    assert (document["og"], len(document["big"])) == ("1.0500", 5000)


async def test_requests_are_spaced_by_the_rate(asked: Asked) -> None:
    service = asked.reader(rate=2.0)
    for _ in range(4):
        await service.json(PATH)
    assert asked.clock.naps == pytest.approx([0.5, 0.5, 0.5])


async def test_a_pause_is_not_saved_up_for_a_burst(asked: Asked) -> None:
    service = asked.reader(rate=2.0)
    await service.json(PATH)
    await asked.clock.sleep(60)
    for _ in range(3):
        await service.json(PATH)
    assert asked.clock.naps[1:] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("code", [500, 502, 503, 504, 429, 408, 425])
async def test_what_passes_is_asked_again(asked: Asked, code: int) -> None:
    await asked.succeeds_after(status(code), status(code))
    assert asked.waits == [1.0, 2.0]


async def test_cut_garbage_and_foreign_answers_are_asked_again(asked: Asked) -> None:
    login_page = status(200, b"<html>Log in</html>")
    await asked.succeeds_after(cut, login_page, status(200, b'{"message":"failure"}'), refuse)


@pytest.mark.parametrize(
    "body",
    [b"", b"[1]", b"null", b'{"a":NaN}', b"[" * 100_000, b"\xff\xfe\xfa", b'{"message":"nope"}'],
)
async def test_a_body_that_is_no_success_is_unreadable_in_the_end(asked: Asked, body: bytes) -> None:
    asked.fake.always[PATH] = status(200, body)
    with pytest.raises(RemoteUnreadable):
        await asked.service.json(PATH)
    assert len(asked.fake.requests) == TRIES


@pytest.mark.parametrize("code", [429, 503])
async def test_retry_after_in_seconds_is_obeyed(asked: Asked, code: int) -> None:
    await asked.succeeds_after(status(code, Retry_After="120"))
    assert asked.waits == [120.0]


async def test_retry_after_as_a_date_is_obeyed_and_bounded(asked: Asked) -> None:
    assert NOW == 1_772_700_000
    await asked.succeeds_after(
        status(503, Retry_After="Thu, 05 Mar 2026 08:45:00 GMT"),
        status(503, Retry_After="Fri, 31 Dec 2100 23:59:59 GMT"),
    )
    assert asked.waits == pytest.approx([300.0, 3600.0], abs=1)


async def test_retry_after_never_shortens_our_own_wait(asked: Asked) -> None:
    await asked.succeeds_after(*[status(429, Retry_After="0")] * 4)
    assert asked.waits == [1.0, 2.0, 4.0, 8.0]


async def test_who_keeps_asking_for_fewer_requests_gets_none(asked: Asked) -> None:
    asked.fake.always[PATH] = status(429, Retry_After="5")
    with pytest.raises(MirrorStopped, match=r"asks for fewer requests .*try a lower --rate"):
        await asked.service.json(PATH)
    assert len(asked.fake.requests) == TRIES


@pytest.mark.parametrize("code", [401, 403])
async def test_a_refused_key_stops_everything_at_once(asked: Asked, code: int) -> None:
    asked.fake.always[PATH] = status(code, f'{{"message":"x","detail":"no {KEY}"}}'.encode())
    with pytest.raises(MirrorStopped, match="refuses the key") as stopped:
        await asked.service.json(PATH)
    assert KEY not in str(stopped.value)
    assert len(asked.fake.requests) == 1


@pytest.mark.parametrize("code", [301, 302, 307, 308])
async def test_a_redirect_is_named_and_not_followed(asked: Asked, code: int) -> None:
    asked.fake.always[PATH] = status(code, Location=f"http://{KEY}@far.example/v1/recipes?key={KEY}")
    with pytest.raises(MirrorStopped, match=r"redirects to far\.example, which is not followed"):
        await asked.service.json(PATH)
    assert len(asked.fake.requests) == 1


async def test_what_is_not_there_is_asked_once(asked: Asked) -> None:
    with pytest.raises(NotThere):
        await asked.service.json("/v1/recipes/9")
    assert len(asked.fake.requests) == 1


@pytest.mark.parametrize("code", [400, 405, 413, 415, 422, 204, 206])
async def test_what_no_repetition_mends_is_asked_once(asked: Asked, code: int) -> None:
    asked.fake.always[PATH] = status(code, b"" if code == 204 else b"{}")
    with pytest.raises(RemoteUnreadable):
        await asked.service.json(PATH)
    assert len(asked.fake.requests) == 1


async def test_a_body_beyond_its_limit_is_not_read_on_and_not_asked_again(asked: Asked) -> None:
    asked.fake.always[PATH] = status(200, b" " * 5000)
    with pytest.raises(RemoteUnreadable, match="more than 4000 bytes"):
        await asked.service.document(PATH, None, "*/*", 4000)
    assert len(asked.fake.requests) == 1


async def test_compressed_answers_are_not_read(asked: Asked) -> None:
    asked.fake.always[PATH] = status(200, b"\x1f\x8b", Content_Encoding="gzip")
    session = aiohttp.ClientSession(auto_decompress=False)
    async with session:
        service = RemoteService(session, asked.fake.url, KEY, asked.clock, rate=1e6)
        with pytest.raises(RemoteUnreadable, match="compressed"):
            await service.json(PATH)


async def test_a_hanging_service_is_given_up_by_the_deadline(asked: Asked) -> None:
    async def hang(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    asked.fake.script += [hang]
    document = await asked.reader(deadline_s=0.1).json(PATH)
    assert len(document["recipes"]) == 1


async def test_a_service_that_is_gone_stops_everything(asked: Asked) -> None:
    asked.fake.always[PATH] = refuse
    for _ in range(client_module.SILENCES - 1):
        with pytest.raises(RemoteUnreadable):
            await asked.service.json(PATH)
    with pytest.raises(MirrorStopped, match="does not answer"):
        await asked.service.json(PATH)


async def test_silences_count_only_in_a_row(asked: Asked) -> None:
    asked.fake.always["/v1/silent"] = refuse
    for _ in range(2 * client_module.SILENCES):
        with pytest.raises(RemoteUnreadable):
            await asked.service.json("/v1/silent")
        await asked.service.json(PATH)


async def test_cookies_are_never_sent_back(asked: Asked) -> None:
    asked.fake.always[PATH] = status(200, b'{"message":"success"}', Set_Cookie="a=b")
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        service = RemoteService(session, asked.fake.url, KEY, asked.clock, rate=1e6)
        for _ in range(2):
            await service.json(PATH)
    assert all("Cookie" not in request.headers for request in asked.fake.requests)
