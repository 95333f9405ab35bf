"""ETag and 304 for the readings of a brew session: no write leaves the tag of other readings as it was."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway.store.queries import ReadingsQuery
from gateway.store.sqlite.store import SqliteStore
from tests.cases import each
from tests.program.program import ispindel
from tests.system.api.conftest import Service
from tests.system.api.everything import BODIES, QUERIES, Running, fill, running
from tests.system.api.test_audit import CHANGING, LAST, prepare
from tests.system.api.test_gzip import get, many
from tests.system.store.changes import note_changes, take_noted


async def tag_of(service: Service, query: str = "", accepted: str | None = None) -> str:
    status, headers, _ = await get(service, query, accepted)
    assert status == 200
    return headers["ETag"]


async def test_who_has_the_readings_gets_a_304(service: Service) -> None:
    await many(service)
    plain, packed = await tag_of(service), await tag_of(service, accepted="gzip")
    assert plain != packed
    assert not plain.startswith("W/")
    rows: list[tuple[str, str | None, str | None]] = [
        (plain, None, plain),
        (f"W/{plain}", None, plain),
        ("*", None, plain),
        (f'"other", W/"more" , {plain}', None, plain),
        (packed, "gzip", packed),
        (plain, "gzip", plain),  # of a page that is too small to compress
        (f"{plain}, {packed}", "gzip", plain),
        ("*", "gzip", packed),
        ('"other"', None, None),
        (plain.strip('"'), None, None),
        (f'"x{plain[1:]}', None, None),
        ("nonsense", None, None),
        ("", None, None),
    ]
    wrong = []
    for method in ("GET", "HEAD"):
        for query in ("", "?limit=2&skip=1&from=2020-01-01"):
            for sent, accepted, expected in rows:
                status, headers, body = await get(service, query, accepted, method, **{"If-None-Match": sent})
                if expected is None:
                    right = status == 200
                else:
                    right = (status, body, headers["ETag"]) == (304, b"", expected)
                    right &= headers.get("Content-Type") is None
                right &= headers["Cache-Control"] == "private, no-cache"
                right &= headers["Vary"] == "Accept-Encoding"
                if not right:
                    wrong.append((method, query, sent, accepted, status, headers))
    assert wrong == []


@each("query, status", [("?limit=x", 400), ("?sort=x", 400), ("/nothing", 404), ("0", 404)])
async def test_mistakes_come_before_a_304(service: Service, query: str, status: int) -> None:
    assert (await get(service, query, None, **{"If-None-Match": "*"}))[0] == status
    allowed = service.headers | {"X-API-KEY": "hg_unknown", "If-None-Match": "*"}
    async with service.client.get(service.path + query, headers=allowed) as answer:
        assert answer.status == 401


async def test_readings_that_change_while_they_are_asked_for_get_the_old_tag(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tag from before the change costs a request; its own tag with readings from before would hide it."""
    await many(service)
    chunks = service.store.readings.json_chunks

    async def late(query: ReadingsQuery) -> AsyncGenerator[bytes, None]:
        await service.take([{"gravity": 1.011, "name": "meanwhile"}])
        async for chunk in chunks(query):
            yield chunk

    before = await tag_of(service)
    monkeypatch.setattr(service.store.readings, "json_chunks", late)
    status, headers, body = await get(service, "", None)
    assert b"meanwhile" in body
    assert (status, headers["ETag"]) == (200, before)
    monkeypatch.undo()
    again, _, body = await get(service, "", None, **{"If-None-Match": before})
    assert again == 200
    assert b"meanwhile" in body


State = dict[str, tuple[int, str, bytes]]


async def readings_of_all(here: Running, ids: set[str]) -> State:
    """Status, ETag and body of each brew session's readings."""
    found = {}
    for session in sorted(ids):
        answer = await here.ask("GET", f"/v1/fermentation/{session}", headers={"Accept-Encoding": "identity"})
        found[session] = answer.status, answer.headers.get("ETag", ""), answer.body
    return found


def hidden(before: State, after: State) -> list[str]:
    """Brew sessions whose readings differ though their tag does not."""
    return [s for s in before if before[s][0] == after[s][0] == 200 and before[s][1] == after[s][1] != ""
            and before[s][2] != after[s][2]]  # fmt: skip


async def test_each_endpoint_that_changes_readings_changes_their_tag(tmp_path: Path) -> None:
    """By two witnesses: the bodies before and after, and triggers that note what a write has touched."""
    wrong, changing = [], set()
    async with running(tmp_path) as here:
        store = here.services.store
        assert isinstance(store, SqliteStore)
        filled = await fill(here.services, "owner", "owner-mark")
        ids = {filled.ids["brew_session_id"], filled.ids["deleted_session_id"]}
        device = f"/manage/devices/{filled.ids['device_id']}/brewsession"
        join = {"brew_session_id": int(filled.ids["brew_session_id"]), "since": "2020-01-01T00:00:00Z"}
        assert (await here.ask("PUT", device, json=join)).status == 200
        await note_changes(store)
        for method, template in sorted(CHANGING, key=lambda route: (route[0] == "DELETE", route[1] in LAST)):
            await prepare(here, filled, template)
            before = await readings_of_all(here, ids)
            await take_noted(store)
            path = filled.path(template) + QUERIES.get((method, template), "").format_map(filled.ids)
            answer = await here.ask(method, path, **BODIES.get((method, template), {}))
            after, touched = await readings_of_all(here, ids), await take_noted(store)
            if any(before[session][2] != after[session][2] for session in ids):
                changing.add(template)
            missed = [s for s in map(str, touched) if before.get(s, "") and before[s][1] == after[s][1] != ""]
            if hidden(before, after) or missed:
                wrong.append((method, template, answer.status, missed))
    assert wrong == []
    assert changing >= {
        "/v1/fermentation/{brew_session_id}/import",
        "/manage/brewsessions/{brew_session_id}/readings",
        "/manage/brewsessions/{brew_session_id}/readings/take-back",
        "/manage/devices/{device_id}/calibration",
        "/manage/brewsessions/{brew_session_id}/undelete",
        "/manage/brewsessions/{brew_session_id}",
    }


async def test_a_reading_changes_the_tag_of_its_brew_session_only(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        filled = await fill(here.services, "owner", "owner-mark")
        session = filled.ids["brew_session_id"]
        device = f"/manage/devices/{filled.ids['device_id']}/brewsession"
        assert (await here.ask("PUT", device, json={"brew_session_id": int(session)})).status == 200
        first = await readings_of_all(here, {session})
        report = ispindel(filled.account_id, name=f"device{filled.account_id}", gravity="1.031")
        assert (await here.ask("POST", "/ingest/ispindel", data=report.encode())).status == 200
        second = await readings_of_all(here, {session})
        assert json.loads(second[session][2])["readings"][-1]["gravity"] == "1.031"
        assert first[session][1] != second[session][1]
        stranger = ispindel(filled.account_id + 100, name=f"device{filled.account_id + 100}", gravity="1.032")
        assert (await here.ask("POST", "/ingest/ispindel", data=stranger.encode())).status == 200
        assert await readings_of_all(here, {session}) == second


@each("media", ["json", "csv"])
async def test_a_file_of_all_readings_has_the_same_tag(service: Service, media: str) -> None:
    await service.take([{"gravity": 1.05}])
    url = f"/manage/brewsessions/{service.session.id}/readings?format={media}"
    async with service.client.get(url, headers=service.headers) as answer:
        tag = answer.headers["ETag"]
    headers = service.headers | {"If-None-Match": tag}
    async with service.client.get(url, headers=headers) as answer:
        assert (answer.status, await answer.read()) == (304, b"")
    await service.take([{"gravity": 1.04}])
    async with service.client.get(url, headers=headers) as answer:
        assert answer.status == 200
        assert b"1.04" in await answer.read()
