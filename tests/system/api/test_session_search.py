"""Endpoint 8 of the specification: searching for brew sessions, as api-decisions section 13 has it."""

import asyncio
from itertools import permutations
from typing import Any

import pytest

from tests.cases import each
from tests.system.api.conftest import Service
from tests.system.api.library import Brewery, Query, opened, porter, unix
from tests.system.api.test_brewsessions import assert_entry


@pytest.fixture
async def brewery(service: Service) -> Brewery:
    return await opened(service)


async def search(brewery: Brewery, query: Query = "") -> tuple[int, list[dict[str, Any]]]:
    """Count and entries of an answer that has the shape of the specification."""
    answer = await brewery.get("brewsessions", query)
    assert list(answer) == ["message", "count", "brewsessions"]
    assert answer["message"] == "success"
    assert type(answer["count"]) is str
    assert answer["count"] == str(int(answer["count"]))
    return int(answer["count"]), answer["brewsessions"]


async def codes(brewery: Brewery, query: Query = "") -> list[str]:
    """Batch codes of all that match, in order."""
    count, entries = await search(brewery, query)
    assert count == len(entries)
    return [entry["batchcode"] for entry in entries]


async def fill(brewery: Brewery, number: int) -> list[str]:
    rows = [await brewery.row(batchcode=f"N{n:04d}", created_at=n) for n in range(number)]
    return [str(session.id) for session in rows]


@pytest.fixture
async def many(brewery: Brewery) -> int:
    return len(await asyncio.gather(*(brewery.row(created_at=n) for n in range(1005))))


async def test_an_empty_brewery(brewery: Brewery) -> None:
    for query in ("", "keyword=HP001", "keyword=h", f"id={brewery.service.session.id}"):
        expected = {"message": "success", "count": "0", "brewsessions": []}
        assert await brewery.get("brewsessions", query) == expected


async def test_entries_have_no_statistics_and_no_recipe(brewery: Brewery) -> None:
    session = await brewery.session(await brewery.recipe(porter()), notes="x")
    await brewery.session()
    await brewery.take(session, [{"gravity": 1.05, "temp": 20}])
    _, entries = await search(brewery, "sort=created_at:1")
    for entry in entries:
        assert_entry(entry)
    single = (await brewery.get(f"brewsessions/{session.id}"))["brewsessions"][0]
    assert entries[0] == {name: single[name] for name in entries[0]}
    assert [entry["recipe_title"] for entry in entries] == ["Harbour Porter", ""]


@each(
    "query, expected",
    [
        ("", 20),
        ("limit=7", 7),
        ("limit=100", 100),
        ("limit=999", 999),
        ("limit=1000", 1000),
        ("limit=1001", 1000),
        ("limit=999999999999999", 1000),
        ("limit=0", 0),
        ("offset=1000", 5),
        ("offset=1005", 0),
        ("offset=999999999999999", 0),
        ("offset=1003&limit=1", 1),
    ],
)
async def test_pages_are_clamped_and_the_count_is_of_all(
    many: int, brewery: Brewery, query: str, expected: int
) -> None:
    count, entries = await search(brewery, query)
    assert (count, len(entries)) == (many, expected)


async def test_a_walker_meets_each_session_once(brewery: Brewery) -> None:
    ids = await fill(brewery, 45)
    for page in (10, 20, 100):
        walked = []
        for offset in range(0, 60, page):
            _, entries = await search(brewery, f"limit={page}&offset={offset}")
            walked += [entry["id"] for entry in entries]
        assert walked == ids[::-1]


NAMED = {
    "b": ("bb001", "2026-03-02 00:00:00", "2026-03-05 00:00:00"),
    "a": ("AA001", "2026-03-01 00:00:00", "2026-03-06 00:00:00"),
    "c": ("CC001", "2026-03-03 00:00:00", "2026-03-04 00:00:00"),
    "u": ("Ä001", "2026-03-04 00:00:00", "2026-03-03 00:00:00"),
}


@pytest.fixture
async def named(brewery: Brewery) -> None:
    for code, created_at, updated_at in NAMED.values():
        await brewery.row(batchcode=code, created_at=unix(created_at), updated_at=unix(updated_at))


@pytest.mark.usefixtures("named")
@each(
    "sort, expected",
    [
        ("", "ucba"),
        ("sort=", "ucba"),
        ("sort=created_at:1", "abcu"),
        ("sort=created_at:-1", "ucba"),
        ("sort=created_at:0", "ucba"),
        ("sort=created_at:2", "ucba"),
        ("sort=created_at:desc", "ucba"),
        ("sort=created_at", "abcu"),
        ("sort=created_at:", "abcu"),
        ("sort=updated_at:1", "ucba"),
        ("sort=updated_at:-1", "abcu"),
        ("sort=batchcode:1", "abcu"),
        ("sort=batchcode:-1", "ucba"),
        ("sort=batchcode", "abcu"),
    ],
)
async def test_sort(brewery: Brewery, sort: str, expected: str) -> None:
    assert await codes(brewery, sort) == [NAMED[letter][0] for letter in expected]


@pytest.mark.parametrize("field", ["created_at", "updated_at", "batchcode"])
async def test_ties_go_by_id_in_the_same_direction(brewery: Brewery, field: str) -> None:
    ids = [str((await brewery.row(batchcode=code)).id) for code in ("HP001", "hp001", "Hp001")]
    for direction, expected in ((":1", ids), (":-1", ids[::-1]), (":0", ids[::-1]), ("", ids)):
        _, entries = await search(brewery, f"sort={field}{direction}")
        assert [entry["id"] for entry in entries] == expected


async def test_id_combines_with_the_others(brewery: Brewery) -> None:
    first, second = await brewery.row(batchcode="A1"), await brewery.row(batchcode="A2")
    assert await codes(brewery, f"id={second.id}") == ["A2"]
    assert await codes(brewery, f"id={second.id}&keyword=a1") == []
    assert await codes(brewery, f"id={brewery.service.session.id}") == []
    assert await codes(brewery, "id=") == ["A2", "A1"]
    assert await search(brewery, f"id={first.id}&limit=0") == (1, [])


@pytest.fixture
async def somebody(brewery: Brewery) -> None:
    await brewery.row()


@pytest.mark.usefixtures("somebody")
@each("wanted", ["x", "-1", "1.0", "0", "1,2", "null", "9" * 15, "9" * 40, "%D9%A1", "%20"])
async def test_an_id_that_is_no_session_s_finds_nothing(brewery: Brewery, wanted: str) -> None:
    assert await codes(brewery, f"id={wanted}") == []


async def test_deleted_sessions_are_nowhere(brewery: Brewery) -> None:
    gone = await brewery.row(batchcode="GONE")
    await brewery.row(batchcode="HERE")
    await brewery.service.services.brewsessions.delete_session(gone)
    for query in ("", "keyword=gone", f"id={gone.id}", "sort=batchcode:1", "limit=1000"):
        assert "GONE" not in await codes(brewery, query)


async def test_group(brewery: Brewery) -> None:
    await brewery.row(batchcode="MINE")
    await brewery.row(batchcode="CLUB", group_id="12")
    assert await codes(brewery, "group_id=12") == ["CLUB"]
    for other in ("1", "012", "x", "0", "%20"):
        assert await codes(brewery, f"group_id={other}") == []
    assert await codes(brewery, "group_id=") == ["CLUB", "MINE"]


async def test_brewer_author_id_is_the_login_of_the_owner(brewery: Brewery) -> None:
    await brewery.row(batchcode="MINE")
    _, (entry,) = await search(brewery, f"brewer_author_id={brewery.account_id}")
    assert entry["loginid"] == str(brewery.account_id)
    for other in ("1", f"0{brewery.account_id}", f"{brewery.account_id}.0", "x", "9" * 40):
        assert await codes(brewery, f"brewer_author_id={other}") == []
    assert await codes(brewery, "brewer_author_id=") == ["MINE"]


async def test_folder(brewery: Brewery) -> None:
    library = brewery.service.services.library
    folder = await library.add_folder(brewery.account_id, "brewsession", "Winter")
    await brewery.row(batchcode="UNFILED")
    await brewery.row(batchcode="FILED", folder_id=folder.id)
    _, (entry,) = await search(brewery, f"folder_id={folder.id}")
    assert (entry["batchcode"], entry["folder_id"], entry["folder_name"]) == (
        "FILED",
        str(folder.id),
        "Winter",
    )
    for other in (folder.id + 1, 0, "9" * 15):
        assert await codes(brewery, f"folder_id={other}") == []
    assert await codes(brewery, "folder_id=") == ["FILED", "UNFILED"]
    await library.delete_folder(folder)
    assert await codes(brewery, f"folder_id={folder.id}") == []
    assert await codes(brewery) == ["FILED", "UNFILED"]


DAYS = ["2026-03-03 23:59:59", "2026-03-04 00:00:00", "2026-03-04 23:59:59", "2026-03-05 00:00:00"]


@pytest.fixture
async def dated(brewery: Brewery, field: str) -> None:
    for place, time in enumerate(DAYS):
        row = {"created_at": unix("2026-07-01 00:00:00"), "updated_at": unix("2026-07-01 00:00:00")}
        await brewery.row(batchcode=str(place), **{**row, f"{field}_at": unix(time)})


@pytest.mark.usefixtures("dated")
@pytest.mark.parametrize("field", ["created", "updated"])
@each(
    "first, last, expected",
    [
        ("2026-03-04", "", "123"),
        ("", "2026-03-04", "012"),
        ("2026-03-04", "2026-03-04", "12"),
        ("2026-03-05", "2026-03-04", ""),
        ("0001-01-01", "9999-12-31", "0123"),
    ],
)
async def test_days_are_inclusive_and_utc(
    brewery: Brewery, field: str, first: str, last: str, expected: str
) -> None:
    ends = {f"{field}_from": first, f"{field}_to": last}
    query = {name: day for name, day in ends.items() if day}
    assert "".join(sorted(await codes(brewery, query))) == expected


TEXTS = {
    "porter": {"batchcode": "HP001", "phase": "Primary Fermentation"},
    "odd": {"batchcode": "İ_100% 🍺", "phase": "Straße Ä 'n' \"q\" *"},
    "blank": {"batchcode": "B7", "phase": ""},
    "notes": {"batchcode": "N1", "phase": "Planning", "notes": "HP001 smells of primary"},
}


@pytest.fixture
async def texts(brewery: Brewery) -> dict[str, str]:
    """The names of the texts by the ids of their brew sessions."""
    return {str((await brewery.row(**said)).id): name for name, said in TEXTS.items()}


@each(
    "keyword, expected",
    [
        ("hp001", "porter"),
        ("P0", "porter"),
        ("PRIMARY", "porter"),
        ("y f", "porter"),
        ("planning", "notes"),
        ("smells", ""),
        ("001p", ""),
        ("001 p", ""),
        ("001\x1fp", ""),
        ("hp001primary", ""),
        ("%", "odd"),
        ("_", "odd"),
        ("00%", "odd"),
        ("h%1", ""),
        ("HP00_", ""),
        ("'", "odd"),
        ('"Q"', "odd"),
        ("*", "odd"),
        ("🍺", "odd"),
        ("ä", "odd"),
        ("STRASSE", "odd"),
        ("ß", "odd"),
        ("i\u0307", "odd"),
        ("İ", "odd"),
        ("B7", "blank"),
        ("7", "blank"),
        ("n", "porter odd notes"),
        ("x" * 5000, ""),
    ],
)
async def test_keyword(brewery: Brewery, texts: dict[str, str], keyword: str, expected: str) -> None:
    _, entries = await search(brewery, {"keyword": keyword})
    assert {texts[entry["id"]] for entry in entries} == set(expected.split())


async def test_recipes_are_not_searched(brewery: Brewery) -> None:
    await brewery.session(await brewery.recipe(porter()), batchcode="B1")
    assert await codes(brewery, "keyword=porter") == []
    assert await codes(brewery, "keyword=") == ["B1"]


async def combined(brewery: Brewery) -> dict[str, str]:
    """One session that all the filters fit; as many that one filter each does not fit; the filters."""
    folder = await brewery.service.services.library.add_folder(brewery.account_id, "brewsession", "Winter")
    old, new, at = unix("2026-01-01 00:00:00"), unix("2026-05-01 00:00:00"), unix("2026-03-01 12:00:00")
    fitting: dict[str, Any] = {
        "folder_id": folder.id, "group_id": "12", "created_at": at, "updated_at": at, "phase": "All Gone",
    }  # fmt: skip
    wanted = await brewery.row(batchcode="Wanted", **fitting)
    misfits: list[dict[str, Any]] = [
        {"folder_id": None}, {"group_id": "13"}, {"created_at": old}, {"created_at": new},
        {"updated_at": old}, {"updated_at": new}, {"phase": "Planning"}, {"account_id": 1},
    ]  # fmt: skip
    for misfit in misfits:
        await brewery.row(**{"batchcode": "Unwanted", **fitting, **misfit})
    return {
        "id": str(wanted.id), "group_id": "12", "brewer_author_id": str(brewery.account_id),
        "folder_id": str(folder.id), "keyword": "all gone", "updated_from": "2026-03-01",
        "updated_to": "2026-03-01", "created_from": "2026-03-01", "created_to": "2026-03-01",
    }  # fmt: skip


async def test_all_filters_must_hold(brewery: Brewery) -> None:
    filters = await combined(brewery)
    assert await codes(brewery, filters) == ["Wanted"]
    del filters["id"]
    more = {"sort": "batchcode:1", "limit": "5", "offset": "0"}
    assert await codes(brewery, {**filters, **more}) == ["Wanted"]
    found = {
        name: len(await codes(brewery, {other: value for other, value in filters.items() if other != name}))
        for name in filters
    }
    assert found == {name: 1 if name == "brewer_author_id" else 2 for name in filters}


async def test_filters_hold_in_pairs_in_any_order(brewery: Brewery) -> None:
    filters = await combined(brewery)
    del filters["id"]
    for one, two in permutations(filters.items(), 2):
        count, _ = await search(brewery, [one, two])
        singles = [await search(brewery, [one]), await search(brewery, [two])]
        assert 1 <= count <= min(single for single, _ in singles)
        assert await search(brewery, [two, one]) == await search(brewery, [one, two])


async def test_count_does_not_depend_on_the_page(brewery: Brewery) -> None:
    await fill(brewery, 25)
    for query in ("limit=0", "limit=3", "offset=24", "offset=99", "limit=3&offset=23"):
        assert (await search(brewery, f"keyword=n001&{query}"))[0] == 10


@each("name", ["limit", "offset"])
@each("value", ["-1", "x", "1.5", "%20", "1e3", "0x1", "%D9%A1", "%2B1", "true"])
async def test_paging_takes_whole_numbers_only(brewery: Brewery, name: str, value: str) -> None:
    expected = (400, "failure", f"{name} must be a whole number, 0 or more")
    assert await brewery.refusal("brewsessions", f"{name}={value}") == expected


@each("name", ["updated_from", "updated_to", "created_from", "created_to"])
@each("value", ["x", "2026-3-4", "20260304", "2026-02-30", "2026-03-04T00:00:00", "0000-01-01"])
async def test_days_are_strict(brewery: Brewery, name: str, value: str) -> None:
    status, message, detail = await brewery.refusal("brewsessions", f"{name}={value}")
    assert (status, message) == (400, "failure")
    assert detail.startswith(f"{name} ")


@each("value", ["x", "id:1", "title:1", ":1", "Batchcode:1", "batchcode%20:1", "1", "%20", "phase"])
async def test_sort_knows_three_fields(brewery: Brewery, value: str) -> None:
    expected = (400, "failure", "sort must be one of created_at, updated_at, batchcode, then :1 or :-1")
    assert await brewery.refusal("brewsessions", f"sort={value}") == expected


@each("value", ["x", "-1", "1.5", "%20", "null"])
async def test_a_folder_is_a_number(brewery: Brewery, value: str) -> None:
    assert (await brewery.refusal("brewsessions", f"folder_id={value}"))[:2] == (400, "failure")


async def test_unknown_parameters_are_ignored_and_of_repeated_ones_the_first_counts(brewery: Brewery) -> None:
    await fill(brewery, 3)
    whole = await brewery.get("brewsessions")
    unknown = "page=1&unknown=x&Limit=1&skip=2&from=x&snapshots=x&ingredients=x&author=x"
    assert await brewery.get("brewsessions", unknown) == whole
    expected = await brewery.get("brewsessions", "limit=1")
    assert await brewery.get("brewsessions", "limit=1&limit=x&limit=3") == expected


async def test_head_has_the_headers_and_no_body(brewery: Brewery) -> None:
    await brewery.session()
    got, head = await brewery.ask("brewsessions"), await brewery.ask("brewsessions", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["Content-Length"] == got.headers["Content-Length"]


@each("path", ["brewsessions/", "brewsession", "BrewSessions", "brewsessions/1/log"])
async def test_there_is_no_other_path(brewery: Brewery, path: str) -> None:
    assert await brewery.refusal(path) == (404, "not-found", "no records found")
