"""Exports of a store, and that an import takes them back bit for bit."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.clock import SystemClock
from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import SPEC_MEMBERS, Reading
from gateway.formats.readings import BODY_BYTES, Media
from gateway.formats.readings.csv_layout import CELL_CHARACTERS
from gateway.formats.readings.export import HEADER_LINE, exported
from gateway.services.build import Services, build_services
from gateway.store.queries import ReadingsQuery
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.cases import examples
from tests.pure.formats.test_export import READINGS, reading
from tests.system.store.conftest import in_session

MEDIA: tuple[Media, ...] = ("json", "csv")


class Gateway:
    """A store with one brew session, and the services on it."""

    def __init__(self, services: Services, session: BrewSession) -> None:
        self.parts = services
        self.session = session

    async def hold(self, readings: list[Reading]) -> bytes:
        """Have exactly these readings; what the read endpoint then gives."""
        await self.parts.store.readings.import_readings(self.session, readings, reset=True)
        return await self.given()

    async def given(self) -> bytes:
        return await in_session(self.parts.store, self.session)

    async def export(self, media: Media) -> bytes:
        chunks = self.parts.store.readings.json_chunks(ReadingsQuery(self.session))
        return b"".join([piece async for piece in exported(chunks, media)])

    async def take(self, body: bytes, media: Media, *, reset: bool) -> bytes:
        """What the read endpoint gives after this import."""
        await self.parts.importing.run(self.session, body, media, "", reset)
        return await self.given()


async def gateway_in(directory: Path, *, sessions: int) -> Gateway:
    store = SqliteStore(directory)
    await store.open()
    services = build_services(store, directory, SystemClock())
    await services.access.start()
    for _ in range(sessions):
        session = await store.sessions.add(brew())
    return Gateway(services, session)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Gateway]:
    gateway = await gateway_in(tmp_path / "here", sessions=1)
    yield gateway
    await gateway.parts.store.close()


@pytest.fixture
async def elsewhere(tmp_path: Path) -> AsyncIterator[Gateway]:
    """Where the session has another number."""
    gateway = await gateway_in(tmp_path / "elsewhere", sessions=2)
    yield gateway
    await gateway.parts.store.close()


@settings(max_examples=examples(1.5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(readings=st.lists(READINGS, max_size=4, unique_by=lambda reading: reading.oid))
@pytest.mark.parametrize("media", MEDIA)
async def test_what_is_exported_comes_back_bit_for_bit(
    here: Gateway, elsewhere: Gateway, media: Media, readings: list[Reading]
) -> None:
    before = await here.hold(readings)
    file = await here.export(media)
    assert await here.take(file, media, reset=True) == before
    assert await here.take(file, media, reset=False) == before
    other = before.replace(b',"brewevent_id":1,', b',"brewevent_id":2,')
    assert await elsewhere.take(file, media, reset=True) == other


async def test_csv_as_documented(here: Gateway) -> None:
    await here.hold(
        [
            reading(comment='say "hi",\r\nthen', name="=cmd", ip="192.0.2.10"),
            reading("69a7fb98c0ffee0000000002", temp="-1.50", source="", extra='{"ph":4.40,"angle":""}'),
        ]
    )
    assert (await here.export("csv")).decode() == (
        "_id,login_id,api_key,brewevent_id,recipe_id,ip,name,gravity,gravity_unit,temp,temp_unit,"
        "comment,beer,interval,created_at,source,_extra\r\n"
        "69a7fb98c0ffee0000000001,1,,1,0,192.0.2.10,'=cmd,1.0410,G,66.5,F,"
        '"say ""hi"",\r\nthen",Porter,46085.5,2026-03-04T09:30:00+00:00,tilt,\r\n'
        "69a7fb98c0ffee0000000002,1,,1,0,,GREEN,1.0410,G,-1.50,F,"
        ',Porter,46085.5,2026-03-04T09:30:00+00:00,\',"{""ph"":4.40,""angle"":""""}"\r\n'
    )


async def test_json_is_an_array_with_a_reading_a_line(here: Gateway) -> None:
    given = await here.hold([reading(name='{"_id":{"$oid":"'), reading("69a7fb98c0ffee0000000002")])
    file = await here.export("json")
    lines = file.splitlines()
    assert (lines[0], lines[-1], len(lines)) == (b"[", b"]", 4)
    assert b"".join(lines[1:-1]) == given
    assert [list(item) for item in json.loads(file)] == [list(SPEC_MEMBERS)] * 2


async def test_a_session_without_readings_exports_and_imports_nothing(here: Gateway) -> None:
    assert json.loads(await here.export("json")) == []
    assert await here.export("csv") == HEADER_LINE
    for media in MEDIA:
        assert await here.take(await here.export(media), media, reset=True) == b""


async def test_many_readings_come_in_pieces_and_are_counted(here: Gateway) -> None:
    before = await here.hold([reading(f"{n:024x}", extra=f'{{"ph":{n}.10}}') for n in range(700)])
    chunks = [chunk async for chunk in here.parts.store.readings.json_chunks(ReadingsQuery(here.session))]
    assert len(chunks) > 1
    assert sum(chunk.count(b'{"_id":') for chunk in chunks) == 700
    for media in MEDIA:
        assert await here.take(await here.export(media), media, reset=True) == before


async def test_a_device_that_sent_no_value_comes_back(here: Gateway) -> None:
    before = await here.hold([reading(gravity="", temp="", comment="")])
    for media in MEDIA:
        assert await here.take(await here.export(media), media, reset=True) == before


async def test_a_comment_may_be_as_long_as_a_body(here: Gateway) -> None:
    before = await here.hold([reading(comment="long\n" * 200_000)])
    for media in MEDIA:
        assert await here.take(await here.export(media), media, reset=True) == before
    assert CELL_CHARACTERS == BODY_BYTES
