"""Exports, and that an import takes them back bit for bit."""

import csv
import io
import json
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.clock import SystemClock
from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import EXTRA_MEMBERS, SPEC_MEMBERS, Reading
from gateway.errors import InvalidInput
from gateway.formats.readings import BODY_BYTES, ImportContext, Media, parse_csv
from gateway.formats.readings.csv_layout import CELL_CHARACTERS, HEADER, guarded, unguarded
from gateway.formats.readings.export import HEADER_LINE, exported, line_of
from gateway.formats.readings.rows import LAST_SECOND
from gateway.services.build import Services, build_services
from gateway.store.queries import ReadingsQuery
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.system.store.conftest import in_session

MEDIA: tuple[Media, ...] = ("json", "csv")
CONTEXT = ImportContext(1_772_616_600.0, "")
FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")
TEXT_COLUMNS = ("name", "comment", "beer", "interval", "source")


def reading(oid: str = "69a7fb98c0ffee0000000001", **members: object) -> Reading:
    plain = Reading(
        oid=oid, created_at=1_772_616_600, received_at=0, name="GREEN", gravity="1.0410", gravity_unit="G",
        temp="66.5", temp_unit="F", comment="", beer="Porter", interval="46085.5", source="tilt", ip="",
        sg=None, celsius=None,
    )  # fmt: skip
    for name, value in members.items():
        setattr(plain, name, value)
    return plain


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


ODD = st.text(alphabet="'=+-@\t\r\n\"\\, ;a\u00a0\u2028\ufeff\x01é\U0001f37a", max_size=6)
TEXT = ODD | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
NUMERALS = st.from_regex(
    r"[+-]?([0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9})([eE][+-]?[0-9]{1,2})?", fullmatch=True
)
LITERALS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
EXTRAS = st.dictionaries(
    st.sampled_from(EXTRA_MEMBERS),
    LITERALS
    | TEXT.map(lambda text: json.dumps(text, ensure_ascii=False))
    | st.sampled_from(["true", "false", "null"]),
    min_size=1,
).map(lambda said: ",".join(f'"{name}":{said[name]}' for name in EXTRA_MEMBERS if name in said))

READINGS = st.builds(
    Reading,
    oid=st.binary(min_size=12, max_size=12).map(bytes.hex),
    created_at=st.integers(0, LAST_SECOND),
    received_at=st.just(0),
    name=TEXT,
    gravity=NUMERALS | st.just(""),
    gravity_unit=st.sampled_from("GP"),
    temp=NUMERALS | st.just(""),
    temp_unit=st.sampled_from("CF"),
    comment=TEXT,
    beer=TEXT,
    interval=TEXT.filter(lambda text: bool(text) and not text.isspace()),
    source=TEXT,
    ip=st.just("") | st.ip_addresses().map(str),
    sg=st.none(),
    celsius=st.none(),
    facts=st.none(),
    flags=st.none(),
    extra=st.none() | EXTRAS.map(lambda said: f"{{{said}}}"),
)
"""Whatever the store may hold: no import leaves an interval blank, nor does any device."""


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@settings(max_examples=150)
@given(reading=READINGS)
def test_the_line_of_a_reading_says_all_that_it_holds(reading: Reading) -> None:
    (again,) = parse_csv(HEADER_LINE + line_of(reading), CONTEXT)
    again.received_at, again.sg, again.celsius = 0, None, None
    assert again == reading


@settings(max_examples=150)
@given(reading=READINGS)
def test_no_text_that_we_write_is_a_formula_to_a_spreadsheet(reading: Reading) -> None:
    _, cells = csv.reader(io.StringIO((HEADER_LINE + line_of(reading)).decode(), newline=""))
    texts = [cells[HEADER.index(name)] for name in TEXT_COLUMNS]
    assert not [text for text in texts if text.startswith(FORMULA_BEGINNINGS)]


def test_guarding_is_undone_exactly_and_only_where_it_must_be() -> None:
    for length in range(1, 5):
        for characters in product("'=-\t\r\n a", repeat=length):
            text = "".join(characters)
            cell = guarded(text)
            assert unguarded(cell) == text
            assert cell in {text, "'" + text}
    assert [guarded(text) for text in ("", "Porter", "O'Hara", "'n", "a=1", " =1")] == [
        *("", "Porter", "O'Hara", "'n", "a=1", " =1"),
    ]
    assert [guarded(text) for text in ("=1", "'", "''-1", "@x")] == ["'=1", "''", "'''-1", "'@x"]


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


def extra_in(cell: str, header: str = "_extra", more: str = "") -> str | None:
    quoted = cell.replace('"', '""')
    (found,) = parse_csv(f'temp,{header}\n1,"{quoted}"{more}\n'.encode(), CONTEXT)
    return found.extra


def test_the_extra_column_keeps_types_and_digits() -> None:
    assert extra_in('{"og":" 1","ph":4.40,"bpm":1E2,"heat_state":true,"psi":null}') == (
        '{"ph":4.40,"bpm":1E2,"psi":null,"heat_state":true,"og":" 1"}'
    )
    assert extra_in('{"ph":4.40,"gravity":7,"unknown":[]}', "_EXTRA") == '{"ph":4.40}'
    assert extra_in('{"unknown":1}') is None
    assert extra_in('{"ph":4.40,"bpm":1}', "_extra,ph", ",5") == '{"ph":"5","bpm":1}'


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("x", "_extra is not a JSON object: the body is neither a JSON array nor a JSON object"),
        ("[]", "_extra is not a JSON object"),
        ('[{"ph":1},{"ph":2}]', "_extra is not a JSON object"),
        ('{"ph":1,"ph":2}', "_extra is not a JSON object: A member comes twice in one object."),
        ('{"ph":NaN}', "_extra is not a JSON object: NaN is not JSON"),
        ('{"ph":"\\ud800"}', "_extra is not a JSON object: half a surrogate pair is no text"),
        ('{"ph":[1]}', "ph is neither text nor a number"),
        ('{"ph":1e999}', "ph is not a number"),
    ],
)
def test_what_is_wrong_with_the_extra_column_is_said_with_the_row(cell: str, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        extra_in(cell)
    assert str(refused.value) == f"row 1: {told}"
