"""What is imported again is stored and forwarded once; what says something else is an edit."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.domain.payload import Payload
from gateway.domain.target import Target
from gateway.errors import InvalidInput, NotFound
from gateway.formats.readings import Media
from gateway.services.upkeep import Retention
from gateway.store.sqlite.imports import derived_id
from tests.brew import brew
from tests.cloud import Visit, accept, accept_then_reset, reset_before, status
from tests.system.forward.bench import UPSTREAM
from tests.system.forward.editing import CALLER, SPINDLE, Editing, editing

FIVE = ("1.05", "1.048", "1.044", "1.03", "1.02")
EDITED = "edited here, not there"


@pytest.fixture(params=[True, False], ids=["keeps ids", "new ids"])
async def both(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Editing]:
    async with editing(tmp_path, keeps_ids=request.param) as made:
        await made.send(*FIVE)
        await made.bench.drain()
        assert made.gravities() == list(FIVE)
        yield made


@pytest.fixture
async def keeps(tmp_path: Path) -> AsyncIterator[Editing]:
    async with editing(tmp_path, keeps_ids=True) as made:
        await made.send(*FIVE)
        await made.bench.drain()
        yield made


@pytest.fixture
async def renumbers(tmp_path: Path) -> AsyncIterator[Editing]:
    async with editing(tmp_path, keeps_ids=False) as made:
        await made.send(*FIVE)
        await made.bench.drain()
        yield made


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("media", ["json", "csv"])
async def test_an_export_that_comes_back_changes_nothing(both: Editing, media: Media, reset: bool) -> None:
    """5 here, 5 there, 5 still their device's, and calibration reaches all."""
    before, lines = await both.readings(), await both.lines()
    for _ in range(2):
        assert await both.take(await both.export(media), media, reset=reset) == 5
        assert await both.bench.waiting() == 0
        await both.bench.drain()
    assert await both.readings() == before
    assert await both.lines() == lines
    assert len(both.there()) == 5
    assert {line["device_id"] for line in lines} == {"7"}
    [device] = await both.services.store.devices.summaries()
    assert device.readings == 5
    await both.calibrate(-0.002)
    assert [reading["gravity"] for reading in await both.readings()] == [
        "1.0480", "1.0460", "1.0420", "1.0280", "1.0180",
    ]  # fmt: skip


async def test_an_export_of_before_a_calibration_leaves_it_in_force(both: Editing) -> None:
    file = await both.export()
    await both.calibrate(-0.002)
    calibrated = await both.readings()
    await both.take(file)
    await both.take(file, reset=True)
    assert await both.readings() == calibrated
    assert {line["original"] for line in await both.lines()} == {None}


async def test_numbers_that_a_spreadsheet_spells_otherwise_are_the_same(both: Editing) -> None:
    items = await both.readings()
    await both.take([{**item, "gravity": float(item["gravity"]), "temp": "20.00"} for item in items])
    assert await both.readings() == items


async def test_an_edit_keeps_the_reading_and_goes_out_under_its_id(keeps: Editing) -> None:
    before = (await keeps.lines())[2]
    [item] = (await keeps.readings())[2:3]
    await keeps.take([{**item, "gravity": "1.045", "comment": "by hand"}])
    assert (await keeps.states())[2] == EDITED
    await keeps.bench.drain()
    assert await keeps.states() == ["forwarded"] * 5
    assert keeps.gravities() == ["1.05", "1.048", "1.045", "1.03", "1.02"]
    assert keeps.there()[2]["comment"] == "by hand"
    after = (await keeps.lines())[2]
    assert after["original"] == {
        "gravity": "1.044", "gravity_unit": "G", "shown_gravity": None, "sg": 1.044, "comment": "",
    }  # fmt: skip
    same = {"gravity", "comment", "original"}
    assert {k: v for k, v in after.items() if k not in same} == {
        k: v for k, v in before.items() if k not in same
    }
    assert keeps.bench.stats.forwarded == 5


async def test_an_edit_is_not_sent_where_it_would_be_one_more(renumbers: Editing) -> None:
    [item] = (await renumbers.readings())[2:3]
    await renumbers.take([{**item, "gravity": "1.045"}])
    await renumbers.bench.drain()
    assert renumbers.gravities() == list(FIVE)
    assert await renumbers.states() == ["forwarded", "forwarded", EDITED, "forwarded", "forwarded"]
    [reason] = await renumbers.reasons()
    assert "targets resend upstream --since" in reason
    [counts] = await renumbers.services.store.deliveries.counts()
    assert (counts.forwarded, counts.edited, counts.pending) == (4, 1, 0)
    # On purpose it goes out, once, and only it.
    await renumbers.services.targets.resend("upstream", 0, None)
    await renumbers.bench.drain()
    assert sorted(renumbers.gravities()) == sorted([*FIVE, "1.045"])
    assert await renumbers.states() == ["forwarded"] * 5
    await renumbers.services.targets.resend("upstream", 0, None)
    await renumbers.bench.drain()
    assert len(renumbers.there()) == 6


async def test_what_was_calibrated_since_is_not_missing_there(renumbers: Editing) -> None:
    """One edited reading is sent on purpose, and the calibrated ones around it are not doubled."""
    await renumbers.calibrate(-0.002)
    [item] = (await renumbers.readings())[2:3]
    await renumbers.take([{**item, "gravity": "1.045"}])
    await renumbers.bench.drain()
    await renumbers.services.targets.resend("upstream", 0, None)
    await renumbers.bench.drain()
    assert sorted(renumbers.gravities()) == sorted([*FIVE, "1.045"])


async def test_an_edit_is_taken_back(both: Editing) -> None:
    before, items = await both.lines(), await both.readings()
    changed = [{**item, "gravity": "1.1", "temp": 21, "name": "Blue", "ph": 4.4} for item in items[:2]]
    await both.take(changed)
    await both.bench.drain()
    [first, *_] = await both.lines()
    assert (first["gravity"], first["temp"], first["name"]) == ("1.1", "21", "Blue")
    assert await both.services.importing.take_back(both.session, [items[0]["_id"]["$oid"]]) == 1
    assert await both.services.importing.take_back(both.session, []) == 1
    assert await both.services.importing.take_back(both.session, []) == 0
    assert await both.lines() == [{**line, "delivery": after["delivery"]} for line, after in
                                  zip(before, await both.lines(), strict=True)]  # fmt: skip
    await both.bench.drain()
    assert both.gravities() == list(FIVE)
    assert await both.states() == ["forwarded"] * 5
    with pytest.raises(NotFound, match="has no reading"):
        await both.services.importing.take_back(both.session, ["0" * 24])


async def test_calibration_goes_under_an_edit_and_is_there_when_that_is_taken_back(both: Editing) -> None:
    [item, *_] = await both.readings()
    await both.take([{**item, "gravity": "1.06"}])
    await both.calibrate(-0.002)
    assert [reading["gravity"] for reading in await both.readings()][:2] == ["1.06", "1.0460"]
    await both.services.importing.take_back(both.session, [])
    assert [reading["gravity"] for reading in await both.readings()][:2] == ["1.0480", "1.0460"]


async def test_what_an_item_leaves_out_stays_and_with_reset_goes(both: Editing) -> None:
    [first, second, *_] = await both.readings()
    await both.take([{**first, "comment": "hop", "ph": 4.4}])
    await both.take([{"_id": first["_id"], "gravity": "1.051"}])
    assert (await both.readings())[0] == {**first, "comment": "hop", "gravity": "1.051", "ph": 4.4}
    await both.take([{"_id": first["_id"], "comment": ""}])
    assert (await both.readings())[0]["comment"] == ""
    await both.take([{"_id": second["_id"], "gravity": "1.047"}], reset=True)
    [left] = await both.readings()
    assert (left["_id"], left["gravity"], left["name"], left["temp"]) == (second["_id"], "1.047", "", "")
    [line] = await both.lines()
    assert line["device_id"] == "7"


async def test_a_blank_cell_leaves_and_an_apostrophe_empties(both: Editing) -> None:
    [first, *_] = await both.readings()
    oid = first["_id"]["$oid"]
    await both.take(f"_id,gravity,comment\n{oid},,hop\n".encode(), "csv")
    assert (await both.readings())[0] == {**first, "comment": "hop"}
    await both.take(f"_id,gravity,comment\n{oid},',\n".encode(), "csv")
    assert (await both.readings())[0] == {**first, "comment": "hop", "gravity": ""}


async def test_reset_deletes_what_does_not_come_again(both: Editing) -> None:
    items = await both.readings()
    lines = await both.lines()
    new = {"gravity": "1.01", "created_at": "2030-01-01T00:00:00Z"}
    await both.take([*items[1:3], new], reset=True)
    assert [r["gravity"] for r in await both.readings()] == ["1.048", "1.044", "1.01"]
    assert (await both.lines())[:2] == lines[1:3]
    await both.bench.drain()
    assert sorted(both.gravities()) == sorted([*FIVE, "1.01"])


async def test_reset_leaves_what_a_later_part_of_the_file_has(both: Editing) -> None:
    items, lines = await both.readings(), await both.lines()
    later = [item["_id"]["$oid"] for item in items[2:4]]
    first = json.dumps(items[:2]).encode()
    await both.services.importing.run(both.session, first, "json", CALLER, True, later)
    assert await both.lines() == lines[:4]


async def test_a_body_with_one_bad_row_edits_nothing(both: Editing) -> None:
    before, [item, *_] = await both.lines(), await both.readings()
    with pytest.raises(InvalidInput, match="row 2"):
        await both.take([{**item, "gravity": "1.1"}, {"gravity": "x"}], reset=True)
    assert await both.lines() == before


async def test_retention_keeps_an_edit_that_is_not_there(renumbers: Editing) -> None:
    [item] = (await renumbers.readings())[2:3]
    await renumbers.take([{**item, "gravity": "1.045"}])
    await renumbers.bench.drain()
    await renumbers.services.brewsessions.release("Red")
    renumbers.bench.clock.advance(90 * 86_400)
    gone = await Retention(renumbers.services.store, 30).run_once(renumbers.bench.clock.now())
    assert gone == 4
    assert [reading["gravity"] for reading in await renumbers.readings()] == ["1.045"]


async def test_an_import_into_another_session_is_idempotent(both: Editing) -> None:
    other = await both.services.store.sessions.add(brew(batchcode="HP002", upstream_id=88))
    file = await both.export()
    for reset in (False, False, True):
        await both.take(file, reset=reset, session=other)
        await both.bench.drain()
        copies = await both.readings(other)
        assert [copy["gravity"] for copy in copies] == list(FIVE)
        assert {copy["_id"]["$oid"] for copy in copies}.isdisjoint(
            item["_id"]["$oid"] for item in json.loads(file)
        )
        assert len(both.there(88)) == 5
    assert await both.readings() == json.loads(file)
    edited = [{**item, "comment": "copied"} for item in json.loads(file)]
    await both.take(edited, session=other)
    assert {copy["comment"] for copy in await both.readings(other)} == {"copied"}


KINDS = ("same", "edited", "new", "without", "malformed", "copied", "restored")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("media", ["json", "csv"])
async def test_the_contract_of_an_import(tmp_path: Path, media: Media, reset: bool, kind: str) -> None:
    """By what is known of an item's `_id`: which reading it is afterwards, whose, and how often there."""
    async with editing(tmp_path, keeps_ids=False) as made:
        await made.send(*FIVE[:2])
        await made.bench.drain()
        [first, second] = await made.readings()
        oid = first["_id"]["$oid"]
        target = made.session
        if kind in {"copied", "restored"}:
            target = await made.services.store.sessions.add(brew(batchcode="HP002", upstream_id=88))
            if kind == "restored":
                await made.services.brewsessions.delete_session(made.session)
        told = {"new": "69a7fb98c0ffee0000000001", "malformed": "69a7"}.get(kind, oid)
        item = {**first, "_id": {"$oid": told}, "gravity": "1.06" if kind == "edited" else first["gravity"]}
        if kind == "without":
            del item["_id"]
        row = {name: str(value) for name, value in {**item, "_id": told}.items()}
        if kind == "without":
            row["_id"] = ""
        csv = ",".join(row) + "\n" + ",".join(row.values()) + "\n"
        body = json.dumps([item]).encode() if media == "json" else csv.encode()
        for _ in range(2):
            assert await made.take(body, media, reset=reset, session=target) == 1
        await made.bench.drain()
        found = {reading["_id"]["$oid"]: reading for reading in await made.readings(target)}
        known = kind in {"same", "edited", "restored"}
        assert (oid in found) == (known or (target is made.session and not reset))
        assert (second["_id"]["$oid"] in found) == (target is made.session and not reset)
        news = (
            0 if known else 1 if kind in {"new", "copied"} or reset else 2
        )  # without an id it is new each time
        assert len(found.keys() - {oid, second["_id"]["$oid"]}) == news
        assert (told in found) == (known or kind == "new" or (told == oid and oid in found))
        if kind == "edited":
            assert found[oid]["gravity"] == "1.06"
        made.session = target
        assert {line["device_id"] for line in await made.lines() if line["_id"]["$oid"] == oid} <= {"7"}
        assert len(made.there()) + len(made.there(88)) == 2 + news + (kind == "restored")


async def test_a_session_restored_from_its_export_has_its_readings_back(both: Editing) -> None:
    """Under the same number there, too, nothing is twice."""
    file, lines = await both.export(), await both.lines()
    await both.services.brewsessions.delete_session(both.session)
    other = await both.services.store.sessions.add(brew(batchcode="HP001", upstream_id=UPSTREAM))
    await both.take(file, session=other)
    await both.bench.drain()
    restored = await both.readings(other)
    assert restored == [{**item, "brewevent_id": other.id} for item in json.loads(file)]
    assert len(both.there()) == 5
    both.session = other
    assert [line["device_id"] for line in await both.lines()] == [line["device_id"] for line in lines]
    assert await both.states() == ["forwarded"] * 5


async def test_ids_of_an_account_are_free_for_that_account_only(both: Editing) -> None:
    file = await both.export()
    await both.services.brewsessions.delete_session(both.session)
    anna = await both.services.access.add_account("anna")
    hers = await both.services.store.sessions.add(brew(account_id=anna.id, upstream_id=None))
    await both.take(file, session=hers)
    theirs = {item["_id"]["$oid"] for item in json.loads(file)}
    assert theirs.isdisjoint(item["_id"]["$oid"] for item in await both.readings(hers))


@pytest.mark.parametrize("trouble", [reset_before, accept_then_reset, status(503), status(400)])
async def test_a_correction_survives_trouble_there(keeps: Editing, trouble: Any) -> None:
    items = await keeps.readings()
    await keeps.take([{**item, "gravity": "1.1"} for item in items])
    keeps.bench.cloud.script.append(trouble)
    await keeps.bench.drain()
    assert keeps.gravities() == ["1.1"] * 5
    assert await keeps.states() == ["forwarded"] * 5


@pytest.mark.parametrize("trouble", [reset_before, accept_then_reset])
async def test_an_edit_while_an_attempt_is_open_is_nowhere_twice(tmp_path: Path, trouble: Any) -> None:
    for keeps_ids in (True, False):
        async with editing(tmp_path / str(keeps_ids), keeps_ids=keeps_ids) as made:
            await made.send(*FIVE)
            made.bench.cloud.script.append(trouble)
            await made.bench.step()
            [item, *_] = await made.readings()
            await made.take([{**item, "gravity": "1.06"}])
            await made.bench.drain()
            there = made.gravities()
            assert len(there) == 5
            assert there[1:] == list(FIVE[1:])
            reached = keeps_ids or trouble is reset_before
            assert there[0] == ("1.06" if reached else "1.05")
            assert (await made.states())[0] == ("forwarded" if reached else EDITED)


@pytest.mark.parametrize("keeps_ids", [True, False])
async def test_an_edit_while_the_request_is_under_way_is_not_taken_for_sent(
    tmp_path: Path, keeps_ids: bool
) -> None:
    """Once while the reading goes out, and again while its correction does."""
    async with editing(tmp_path, keeps_ids=keeps_ids) as made:
        gravities = iter(("1.06", "1.07"))

        async def edited_meanwhile(visit: Visit) -> web.StreamResponse:
            [item, *_] = await made.readings()
            await made.take([{**item, "gravity": next(gravities)}])
            return await accept(visit)

        await made.send(*FIVE)
        made.bench.cloud.script.append(edited_meanwhile)
        if keeps_ids:
            made.bench.cloud.script.append(edited_meanwhile)
        await made.bench.drain()
        assert made.gravities()[1:] == list(FIVE[1:])
        assert made.gravities()[0] == ("1.07" if keeps_ids else "1.05")
        assert (await made.states())[0] == ("forwarded" if keeps_ids else EDITED)


async def test_what_was_edited_before_it_went_goes_as_it_is(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=False) as made:
        await made.send(*FIVE)
        [item, *_] = await made.readings()
        await made.take([{**item, "gravity": "1.06"}])
        await made.bench.drain()
        assert made.gravities() == ["1.06", *FIVE[1:]]
        assert await made.states() == ["forwarded"] * 5


async def test_an_empty_reading_that_is_filled_in_goes_out(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=False) as made:
        await made.send("1.05")
        [item] = await made.readings()
        await made.take([{**item, "gravity": "", "temp": ""}])
        await made.bench.drain()
        assert made.there() == []
        await made.take([{**item, "gravity": "1.049"}])
        await made.bench.drain()
        assert made.gravities() == ["1.049"]


async def test_a_reading_edited_twice_is_there_as_it_was_last(keeps: Editing) -> None:
    [item, *_] = await keeps.readings()
    for gravity in ("1.06", "1.07"):
        await keeps.take([{**item, "gravity": gravity}])
    await keeps.bench.drain()
    await keeps.take([{**item, "gravity": "1.08", "created_at": "2026-01-01T00:00:00Z"}])
    await keeps.bench.drain()
    assert "1.08" in keeps.gravities()
    assert len(keeps.there()) == 5
    [line] = [line for line in await keeps.lines() if line["original"]]
    assert line["original"]["gravity"] == "1.05"


async def test_every_target_hears_of_an_edit_in_its_own_way(keeps: Editing) -> None:
    """A target that is added later gets the reading as it is now, once."""
    await keeps.services.store.targets.add(Target("club", "https://club.example", "/key"))
    await keeps.services.store.targets.map(keeps.session.id, "https://club.example", 500)
    [item, *_] = await keeps.readings()
    await keeps.take([{**item, "gravity": "1.06"}])
    [first, *_] = await keeps.services.store.deliveries.of_readings(
        keeps.session.id, state=None, limit=1, skip=0
    )
    assert first.states == {"upstream": EDITED, "club": "pending"}
    batch = await keeps.services.store.outbox.begin("https://club.example", keeps.session.id, 10)
    assert batch is not None
    assert not batch.corrects
    assert json.loads(batch.rows[0])["gravity"] == "1.06"


async def test_a_reading_in_no_session_is_put_into_the_one_that_it_is_imported_into(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=False) as made:
        await made.send("1.05")
        await made.services.brewsessions.release("Red")
        made.bench.clock.advance(900)
        body = json.dumps({**SPINDLE, "gravity": 1.04}).encode()
        await made.services.intake.take(Payload(body, made.bench.clock.now(), "http /ingest"))
        found = made.services.store.readings.json_lines(last=1, device_id=None, session_id=None)
        [line] = [json.loads(text) async for text in found]
        assert line["brewevent_id"] is None
        await made.take([line])
        await made.bench.drain()
        assert made.gravities() == ["1.05", "1.04"]
        assert await made.services.store.readings.count() == 2
        assert {line["device_id"] for line in await made.lines()} == {"7"}


def test_the_copy_of_a_reading_has_one_id() -> None:
    oid = bytes.fromhex("69a7fb98c0ffee0000000001")
    assert derived_id(oid, 2) == derived_id(oid, 2)
    assert derived_id(oid, 2) != derived_id(oid, 3)
    assert derived_id(oid, 2)[:4] == oid[:4]
