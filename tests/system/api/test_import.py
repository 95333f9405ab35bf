"""Endpoint 2 of the specification, and api-decisions section 3."""

import gzip
import json
import random
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.api import fermentation
from gateway.domain.reading import EXTRA_MEMBERS
from gateway.formats import readings as formats
from gateway.network import written_address
from gateway.services import importing
from tests.cases import examples
from tests.system.api.conftest import Service, assert_specified

NOT_FOUND = {"message": "not-found", "detail": "no records found"}
OID = "69a7fb98c0ffee0000000001"
CSV = "text/csv"

DOCUMENTED = {
    "name": "Cellar probe",
    "temp": 18.5,
    "temp_unit": "C",
    "gravity": 10.2,
    "gravity_unit": "P",
    "ph": 4.4,
    "comment": "",
    "beer": "Harbour Porter",
    "created_at": "2026-03-04T09:45:00+00:00",
}


async def test_documented_json_example(service: Service) -> None:
    assert await service.take([DOCUMENTED], query="?reset=true") == 1
    (reading,) = await service.readings()
    assert_specified(reading, "ph")
    assert reading["ph"] == 4.4
    assert (reading["gravity"], reading["gravity_unit"], reading["temp"]) == ("10.2", "P", "18.5")
    assert (reading["ip"], reading["source"]) == ("127.0.0.1", "import")
    assert reading["interval"] == "46085.40625"
    assert reading["_id"]["$oid"].startswith("69a7ff1c")


async def test_documented_csv_example(service: Service) -> None:
    body = (
        "name,temp,temp_unit,gravity,gravity_unit,comment,beer,created_at\n"
        'GREEN,66.5,F,1.041,G,,"Harbour Porter",2026-03-04T09:30:00+00:00\n'
    )
    assert await service.take(body, media=CSV) == 1
    (reading,) = await service.readings()
    assert_specified(reading)
    assert reading["beer"] == "Harbour Porter"
    assert reading["interval"] == "46085.39583333333"


async def test_documented_error(service: Service) -> None:
    body = "gravity,comment\n1,a\n2,b\nx,c\n"
    told = (400, {"message": "failure", "detail": "row 3: gravity is not a number"})
    assert await service.send(body, media=CSV) == told
    assert await service.send([{"temp": 1}, {"temp": 1}, {"gravity": "x"}]) == told


async def test_one_object_is_an_array_of_one_and_nothing_is_nothing(service: Service) -> None:
    assert await service.take(DOCUMENTED) == 1
    assert await service.take([]) == 0
    assert len(await service.readings()) == 1


async def test_what_real_clients_send(service: Service) -> None:
    blank = dict.fromkeys(("ph", "battery", "RSSI", "angle"), "")
    await service.take([{"temp": " 65.41 ", "gravity": "", "gravity_unit": "P", "temp_unit": "F", **blank,
                         "created_at": "2019-04-12 17:00:03"}], query="?reset=True")  # fmt: skip
    await service.take({"name": "x", "temp": 20, "gravity": 1.05, "ambient": 18.25})
    first, second = await service.readings()
    assert_specified(first, *blank)
    assert (first["temp"], first["gravity"], first["created_at"]) == (
        "65.41",
        "",
        "2019-04-12T17:00:03+00:00",
    )
    assert_specified(second, "ambient")
    assert second["created_at"] == "2026-03-04T09:30:00+00:00"


async def test_extras_come_out_only_where_they_came_in(service: Service) -> None:
    extras = {name: place for place, name in enumerate(EXTRA_MEMBERS)}
    await service.take([{"temp": 1, **extras, "other": 1}, {"temp": 2}])
    first, second = await service.readings()
    assert_specified(first, *EXTRA_MEMBERS)
    assert {name: first[name] for name in EXTRA_MEMBERS} == extras
    assert_specified(second)


async def test_the_context_overrules_what_items_say(service: Service) -> None:
    await service.take([{"temp": 1, "brewevent_id": 9, "recipe_id": 9, "login_id": 9, "api_key": "secret"}])
    (reading,) = await service.readings()
    assert (reading["brewevent_id"], reading["recipe_id"], reading["login_id"]) == (service.session.id, 0, 1)
    assert reading["api_key"] == ""


async def test_import_again_is_idempotent(service: Service) -> None:
    await service.take([{"temp": n} for n in range(5)])
    export = await service.readings()
    assert await service.take(export) == 5
    assert await service.readings() == export
    export[0]["comment"] = "corrected"
    assert await service.take(export[:1]) == 1
    assert await service.readings() == export


async def test_id_of_another_session_is_given_anew(service: Service) -> None:
    other = await service.session_of(service.access.owner_id)
    await service.take([{"_id": {"$oid": OID}, "temp": 1}])
    path = f"/v1/fermentation/{other.id}"
    status, _ = await service.send([{"_id": {"$oid": OID}, "temp": 2}], path=path)
    assert status == 200
    (moved,) = await service.readings(path=path)
    assert moved["_id"]["$oid"] != OID
    assert moved["_id"]["$oid"].startswith("69a7fb98")
    assert (await service.readings())[0]["temp"] == "1"


async def test_same_id_twice_in_one_body_keeps_the_last(service: Service) -> None:
    assert await service.take([{"_id": OID, "temp": 1}, {"_id": OID, "temp": 2}]) == 2
    (reading,) = await service.readings()
    assert reading["temp"] == "2"


@pytest.mark.parametrize("word", ["true", "True", "TRUE", "1", "yes"])
async def test_reset_replaces_everything_in_this_session_only(service: Service, word: str) -> None:
    other = await service.session_of(service.access.owner_id)
    path = f"/v1/fermentation/{other.id}"
    await service.send([{"temp": 9}], path=path)
    await service.take([{"temp": 1}, {"temp": 2}])
    await service.take([{"temp": 3}], query=f"?reset={word}")
    assert [reading["temp"] for reading in await service.readings()] == ["3"]
    assert len(await service.readings(path=path)) == 1


@pytest.mark.parametrize("query", ["", "?reset=", "?reset=false", "?reset=No", "?reset=0", "?unknown=1"])
async def test_without_reset_readings_are_added(service: Service, query: str) -> None:
    await service.take([{"temp": 1}])
    await service.take([{"temp": 2}], query=query)
    assert len(await service.readings()) == 2


async def test_other_words_for_reset_are_refused(service: Service) -> None:
    status, answer = await service.send([], query="?reset=maybe")
    assert (status, answer) == (400, {"message": "failure", "detail": "reset must be true or false"})


@pytest.mark.parametrize(("body", "media"), [("[]", "application/json"), ("gravity\n", CSV)])
async def test_reset_with_nothing_empties(service: Service, body: str, media: str) -> None:
    await service.take([{"temp": 1}])
    assert await service.take(body, media=media, query="?reset=true") == 0
    assert await service.readings() == []


@pytest.mark.parametrize(
    ("body", "media"),
    [
        ('[{"temp":1},{"temp":"x"}]', "application/json"),
        ('[{"temp":1},', "application/json"),
        ("temp\n1\nx\n", CSV),
    ],
)
async def test_a_bad_row_changes_nothing_even_with_reset(service: Service, body: str, media: str) -> None:
    await service.take([{"temp": 1}])
    before = await service.readings()
    bell = service.notices.listen()
    status, answer = await service.send(body, media=media, query="?reset=true")
    assert (status, answer["message"]) == (400, "failure")
    assert answer["detail"].startswith("row 2: ")
    assert await service.readings() == before
    assert service.stats.imported == 1
    assert not bell.is_set()


async def test_success_is_counted_and_made_known(service: Service) -> None:
    bell = service.notices.listen()
    await service.take([{"temp": 1}, {"temp": 2}])
    assert service.stats.imported == 2
    assert bell.is_set()


async def test_import_leaves_the_session_as_it_was(service: Service) -> None:
    await service.take([DOCUMENTED], query="?reset=1")
    assert await service.store.sessions.get(service.session.id) == service.session


@pytest.mark.parametrize("path", ["/v1/fermentation/2", "/v1/fermentation/x", "/v1/fermentation/-1"])
async def test_unknown_session_is_404_whatever_the_rest(service: Service, path: str) -> None:
    assert await service.send(b"x", media="image/png", path=path, query="?reset=maybe") == (404, NOT_FOUND)


@pytest.mark.parametrize(
    "media",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json; charset=us-ascii; x=y",
    ],
)
async def test_content_types_of_json(service: Service, media: str) -> None:
    assert await service.take('\ufeff[{"temp":1,"name":"Kölsch"}]'.encode(), media=media) == 1
    assert (await service.readings())[0]["name"] == "Kölsch"


@pytest.mark.parametrize("charset", ["iso-8859-1", "ISO-8859-15", "windows-1252"])
async def test_other_charsets(service: Service, charset: str) -> None:
    body = "temp,name\n1,Kölsch\n".encode(charset)
    await service.take(body, media=f"text/csv; charset={charset}")
    assert (await service.readings())[0]["name"] == "Kölsch"


async def test_bytes_that_the_charset_does_not_have(service: Service) -> None:
    for media in ("text/csv; charset=windows-1252", "text/csv"):
        status, answer = await service.send(b"comment\nx\x81\n", media=media)
        assert (status, answer["message"]) == (400, "failure")


@pytest.mark.parametrize(
    "media",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/xml",
        "nonsense",
        "application/json; charset=klingon",
        "text/csv; charset=utf-16",
        "text/csv; charset=zlib",
    ],
)
async def test_other_types_and_charsets_are_415(service: Service, media: str) -> None:
    status, answer = await service.send(b"[]", media=media)
    assert (status, answer["message"], set(answer)) == (415, "failure", {"message", "detail"})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[]", 200),
        (b' \r\n[{"temp":1}]', 200),
        (b'\xef\xbb\xbf{"temp":1}', 200),
        (b"", 415),
        (b"temp\n1\n", 415),
        (b"7", 415),
    ],
)
async def test_without_content_type_the_body_decides(service: Service, body: bytes, status: int) -> None:
    skip: dict[str, Any] = {"skip_auto_headers": ["Content-Type"], "headers": service.headers, "data": body}
    async with service.client.post(f"{service.path}/import", **skip) as answer:
        assert answer.status == status


async def test_compressed_bodies_are_415(service: Service) -> None:
    for coding in ("gzip", "deflate", "br"):
        headers = {**service.headers, "Content-Type": "application/json", "Content-Encoding": coding}
        body = gzip.compress(b'[{"temp":1}]')
        async with service.client.post(f"{service.path}/import", headers=headers, data=body) as answer:
            assert answer.status == 415
    assert await service.readings() == []


async def pieces(count: int) -> AsyncIterator[bytes]:
    yield b"["
    for _ in range(count):
        yield b" " * 1024
    yield b"]"


async def test_too_large_by_length_and_in_chunks(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fermentation, "BODY_BYTES", 8 * 1024)
    await service.take([{"temp": 1}])
    for data, status in [
        (b"[" + b" " * 8190 + b"]", 200),
        (b"[" + b" " * 8191 + b"]", 413),
        (pieces(7), 200),
        (pieces(8), 413),
    ]:
        headers = {**service.headers, "Content-Type": "application/json"}
        url = f"{service.path}/import"
        async with service.client.post(url, headers=headers, data=data) as answer:
            assert answer.status == status
            assert (await answer.json())["message"] == ("success" if status == 200 else "failure")
    assert len(await service.readings()) == 1


async def test_too_many_rows_is_413_and_changes_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "ROWS", 2)
    for body, media in ((json.dumps([{"temp": 1}] * 3), "application/json"), ("temp\n1\n2\n3\n", CSV)):
        status, answer = await service.send(body, media=media, query="?reset=true")
        assert (status, answer["message"]) == (413, "failure")
    assert await service.readings() == []


@pytest.mark.parametrize(
    "body",
    [
        b'[{"gravity":NaN}]',
        b'[{"gravity":1e999}]',
        b"[" * 200000,
        b'[{"temp":1,"name":"\\ud800"}]',
        b"\xff\xfe[\x00]\x00",
        b'[{"temp":1,"name":"\\u0000"}]',
        b'[{"temp":"1\\"}","x":1}]',
        b"",
        b"null",
    ],
)
async def test_hostile_json_is_400(service: Service, body: bytes) -> None:
    status, answer = await service.send(body)
    assert (status, answer["message"], type(answer["detail"])) == (400, "failure", str)


async def test_large_bodies_are_parsed_beside_the_loop(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "THREAD_BYTES", 10)
    assert await service.take([{"temp": n} for n in range(300)]) == 300
    status, _ = await service.send('[{"temp":"not a number"}]')
    assert status == 400


async def test_a_store_that_cannot_write_is_503(service: Service) -> None:
    await service.store.readings._database.writer.run(lambda c: c.execute("PRAGMA query_only = ON") and None)
    status, answer = await service.send([{"temp": 1}])
    assert (status, answer["message"]) == (503, "failure")
    assert service.stats.imported == 0


async def test_csv_export_of_what_we_hold_comes_back_the_same(service: Service) -> None:
    await service.take([{**DOCUMENTED, "name": 'a "b", c\nd', "comment": "'s =1+1", "_id": OID}])
    (before,) = await service.readings()
    flat = {**before, "_id": before["_id"]["$oid"]}
    cells = ['"' + str(value).replace('"', '""') + '"' for value in flat.values()]
    random.Random(1).shuffle(order := list(range(len(cells))))  # noqa: S311
    header = ",".join(list(flat)[place].upper() for place in order)
    body = f"{header}\r\n{','.join(cells[place] for place in order)}\r\n"
    assert await service.take(body, media=CSV, query="?reset=true") == 1
    (after,) = await service.readings()
    assert after == {**before, "ph": "4.4"}


async def test_device_csv(service: Service) -> None:
    await service.take(
        "Timepoint,SG,Temp,Color,Beer,Comment\n46085.39583333333,1.041,66.5,GREEN,Porter,\n", media=CSV
    )
    (reading,) = await service.readings()
    assert_specified(reading)
    assert (reading["gravity"], reading["gravity_unit"], reading["temp_unit"]) == ("1.041", "G", "F")
    assert (reading["created_at"], reading["name"]) == ("2026-03-04T09:30:00+00:00", "GREEN")


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
NUMERALS = st.from_regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
READINGS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "_id": st.binary(min_size=12, max_size=12).map(lambda oid: {"$oid": oid.hex()}),
        "ip": st.ip_addresses().map(str).map(written_address),
        "name": TEXT,
        "gravity": NUMERALS,
        "gravity_unit": st.sampled_from("GP"),
        "temp": NUMERALS | st.just(""),
        "temp_unit": st.sampled_from("CF"),
        "comment": TEXT,
        "beer": TEXT,
        "interval": NUMERALS,
        "created_at": st.datetimes(
            min_value=datetime(1970, 1, 1),  # noqa: DTZ001 - hypothesis wants it so
        ).map(lambda at: f"{at.isoformat(timespec='seconds')}+00:00"),
        "source": TEXT,
    },
    optional={
        name: TEXT | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        for name in EXTRA_MEMBERS
    },
)


@settings(max_examples=examples(0.4), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sent=st.lists(READINGS, max_size=4, unique_by=lambda item: item["_id"]["$oid"]), ascii_only=st.booleans()
)
async def test_what_is_imported_reads_back_the_same(
    service: Service, sent: list[dict[str, Any]], ascii_only: bool
) -> None:
    await service.take(json.dumps(sent, ensure_ascii=ascii_only), query="?reset=true")
    context = {"login_id": 1, "api_key": "", "brewevent_id": service.session.id, "recipe_id": 0}
    expected = [{**item, **context} for item in sent]
    expected.sort(key=lambda item: (item["created_at"], item["_id"]["$oid"]))
    received = await service.readings()
    assert received == expected
    for reading in received:
        assert_specified(reading, *[name for name in EXTRA_MEMBERS if name in reading])
