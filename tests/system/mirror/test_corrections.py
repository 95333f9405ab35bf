"""What is corrected at the source is corrected here, but for what was edited here later, member by member."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.brewsession import BrewSession
from gateway.domain.calibration import Calibration
from gateway.mirror.checkpoint import FULL_AFTER_S
from gateway.mirror.counts import READINGS
from gateway.services.brewsessions import SessionChange
from tests.system.mirror.bench import (
    NOW,
    Instance,
    add_recipe,
    content,
    copy,
    counts,
    device_reports,
    iso,
    item,
    opened,
    same,
    two,
)
from tests.system.mirror.fake import Fake, row, running, session
from tests.system.mirror.test_forwarding import Pair, pair

Json = Any


async def said(at: Instance, session_id: int = 1) -> dict[str, Json]:
    """Readings by id."""
    found = (await at.get(f"/v1/fermentation/{session_id}"))["readings"]
    return {got["_id"]["$oid"]: got for got in found}


async def change(at: Instance, number: int, session_id: int = 1, **members: Json) -> str:
    """Edit a reading as an import does; its id."""
    oid: str = item(number)["_id"]["$oid"]
    await at.take(session_id, [{"_id": {"$oid": oid}, **members}])
    return oid


@asynccontextmanager
async def copied(directory: Path, readings: int = 300) -> AsyncIterator[tuple[Instance, Instance]]:
    """A session with readings, and its copy."""
    async with two(directory) as (there, here):
        await there.parts.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
        await there.take(1, [item(number) for number in range(readings)])
        await copy(here, there.source)
        yield there, here


async def both_move_on(there: Instance, here: Instance, seconds: float = 60.0) -> None:
    for at in (there, here):
        await at.clock.sleep(seconds)


async def run(here: Instance, there: Instance) -> tuple[int, ...]:
    """Readings copied, updated, unchanged, kept, failed."""
    return counts(await copy(here, there.source)).get(READINGS, (0, 0, 0, 0, 0))


CORRECTIONS = [
    {"gravity": "1.042"},
    {"gravity": "12.5", "gravity_unit": "P"},
    {"gravity": ""},
    {"temp": "19", "temp_unit": "C"},
    {"comment": "dry hopped", "name": "Red"},
    {"ph": "4.4"},
    {"created_at": iso(int(NOW) - 7 * 86_400)},
]


@pytest.mark.parametrize("members", CORRECTIONS, ids=str)
async def test_a_correction_of_the_last_day_comes_at_once(tmp_path: Path, members: Json) -> None:
    async with copied(tmp_path) as (there, here):
        await change(there, 295, **members)
        assert (await run(here, there))[:2] == (0, 1)
        await same(there, here)
        assert (await run(here, there))[:2] == (0, 0)
        assert await here.store.readings.count() == 300


async def test_an_older_one_comes_within_a_week(tmp_path: Path) -> None:
    async with copied(tmp_path) as (there, here):
        await change(there, 3, gravity="1.042")
        assert (await run(here, there))[:2] == (0, 0)
        await both_move_on(there, here, FULL_AFTER_S)
        assert (await run(here, there))[:2] == (0, 1)
        await same(there, here)


async def test_an_older_one_comes_with_a_newer_or_with_its_session(tmp_path: Path) -> None:
    async with copied(tmp_path) as (there, here):
        await change(there, 3, gravity="1.042")
        await change(there, 299, gravity="1.041")
        assert (await run(here, there))[:2] == (0, 2)
        await change(there, 4, gravity="1.039")
        await there.clock.sleep(60)
        theirs = await there.store.sessions.get(1)
        assert theirs is not None
        await there.parts.brewsessions.update_session(theirs, SessionChange(notes="corrected one"))
        assert (await run(here, there))[:2] == (0, 1)
        await same(there, here)


async def test_a_calibration_at_the_source_reaches_all_at_once(tmp_path: Path) -> None:
    async with copied(tmp_path) as (there, here):
        theirs = await there.store.sessions.get(1)
        assert theirs is not None
        await device_reports(there, theirs, 10)
        assert (await run(here, there))[0] == 10
        await calibrate(there, 1.5)
        assert (await run(here, there))[:2] == (0, 10)
        await same(there, here)
        await calibrate(there, 0.0)
        assert (await run(here, there))[:2] == (0, 10)
        await same(there, here)
        assert await here.store.readings.count() == 310


async def calibrate(at: Instance, offset: float) -> None:
    """Its iSpindel shows so much more temperature."""
    (device,) = await at.store.devices.all()
    settings = replace(device.settings, calibration=Calibration.from_dict({"temp_offset": offset}))
    await at.parts.reprocessor.configure(device, settings, lambda _: None)


async def test_each_side_changed_another_member(tmp_path: Path) -> None:
    async with copied(tmp_path) as (there, here):
        await both_move_on(there, here)
        oid = await change(here, 290, comment="ours", gravity="1.011")
        await change(there, 290, temp="60", name="theirs")
        assert (await run(here, there))[1] == 1
        found = (await said(here))[oid]
        assert (found["comment"], found["gravity"], found["temp"], found["name"]) == (
            "ours", "1.011", "60", "theirs",
        )  # fmt: skip
        await here.store.readings.take_back(await only(here), [oid], int(NOW))
        await same(there, here)


async def only(at: Instance) -> BrewSession:
    (found,) = await at.store.sessions.all()
    return found


async def test_of_one_member_the_later_change_wins(tmp_path: Path) -> None:
    async with copied(tmp_path) as (there, here):
        await both_move_on(there, here)
        oid = await change(here, 290, gravity="1.011")
        await change(there, 290, gravity="1.022")
        assert (await run(here, there))[1::2] == (0, 1)  # nobody knows which was first: ours stays
        assert (await said(here))[oid]["gravity"] == "1.011"
        assert (await run(here, there))[1::2] == (0, 0)
        await change(there, 290, gravity="1.033")  # after a run that saw ours: later
        assert (await run(here, there))[1::2] == (1, 0)
        assert (await said(here))[oid]["gravity"] == "1.033"
        await same(there, here)
        await change(here, 290, gravity="1.044")
        assert (await run(here, there))[1::2] == (0, 0)
        assert (await said(here))[oid]["gravity"] == "1.044"


async def test_an_edit_that_stays_is_taken_back_to_what_the_source_says_now(tmp_path: Path) -> None:
    async with copied(tmp_path) as (there, here):
        oid = await change(here, 290, gravity="1.011")
        await change(there, 290, gravity="1.022")
        await run(here, there)
        assert await here.store.readings.take_back(await only(here), [oid], int(NOW)) == 1
        assert (await said(here))[oid]["gravity"] == "1.022"
        await same(there, here)


async def test_what_is_edited_here_alone_stays(tmp_path: Path) -> None:
    async with copied(tmp_path) as (there, here):
        oid = await change(here, 3, gravity="1.011", created_at=iso(int(NOW) - 86_400))
        for _ in range(3):
            await both_move_on(there, here, FULL_AFTER_S)
            assert (await run(here, there))[:2] == (0, 0)
            assert (await said(here))[oid]["gravity"] == "1.011"
        assert await here.store.readings.count() == 300


@asynccontextmanager
async def calibrated(directory: Path, *, keeps_ids: bool) -> AsyncIterator[Pair]:
    """Five readings of a device of ours at the source, calibrated here after they were sent there."""
    async with pair(directory, keeps_ids) as both:
        await copy(both.here, both.there.source)
        await device_reports(both.here, await both.session(), 5)
        await both.drain()
        yield both


@pytest.mark.parametrize("keeps_ids", [True, False])
async def test_an_earlier_calibration_of_ours_is_no_correction_there(tmp_path: Path, keeps_ids: bool) -> None:
    async with calibrated(tmp_path, keeps_ids=keeps_ids) as both:
        for looked, offset in ((False, 1.5), (True, 2.5), (True, 0.0)):
            if looked:
                await copy(both.here, both.there.source)
            await calibrate(both.here, offset)
            before = (await both.both())[1]
            tally = await copy(both.here, both.there.source)
            assert (tally.counts[READINGS].copied, tally.counts[READINGS].updated) == (0, 0)
            assert (await both.both())[1] == before
        there, here = await both.both()
        assert (len(there), len(here)) == (10, 10)


@pytest.mark.parametrize("keeps_ids", [True, False])
async def test_readings_that_were_sent_calibrated_are_not_copied_back(
    tmp_path: Path, keeps_ids: bool
) -> None:
    async with pair(tmp_path, keeps_ids) as both:
        await copy(both.here, both.there.source)
        await device_reports(both.here, await both.session(), 1)
        await calibrate(both.here, 1.5)
        await device_reports(both.here, await both.session(), 5)
        await both.drain()
        await calibrate(both.here, 3.5)
        assert (await copy(both.here, both.there.source)).counts[READINGS].copied == 0
        there, here = await both.both()
        assert len(there) == len(here)


@pytest.mark.parametrize("keeps_ids", [True, False])
async def test_a_correction_there_of_what_came_from_here_is_an_edit(tmp_path: Path, keeps_ids: bool) -> None:
    async with calibrated(tmp_path, keeps_ids=keeps_ids) as both:
        await copy(both.here, both.there.source)
        row = next(got for got in (await both.both())[0] if got["source"] == "ispindel")
        both.there.before = None
        await both.there.take(1, [{"_id": row["_id"], "comment": "it was 9", "gravity": "9"}])
        tally = await copy(both.here, both.there.source)
        assert (tally.counts[READINGS].copied, tally.counts[READINGS].updated) == (0, 1)
        found = [got for got in (await both.both())[1] if got["comment"] == "it was 9"]
        assert [got["gravity"] for got in found] == ["9"]
        assert await both.here.store.outbox.backlogs(both.there.url) == []
        mine = await both.session()
        oid = found[0]["_id"]["$oid"]
        assert await both.here.store.readings.take_back(mine, [oid], int(NOW)) == 1
        assert (await said(both.here, mine.id))[oid]["gravity"] != "9"


async def test_our_edit_goes_there_and_comes_back_as_ours(tmp_path: Path) -> None:
    async with calibrated(tmp_path, keeps_ids=True) as both:
        mine = await both.session()
        await both.here.store.targets.take_options([])
        before = await said(both.here, mine.id)
        own = next(oid for oid, got in before.items() if got["source"] == "ispindel")
        for oid in (own, item(3)["_id"]["$oid"]):
            await both.here.take(mine.id, [{"_id": {"$oid": oid}, "comment": "edited"}])
        await both.drain()
        for _ in range(2):
            assert counts(await copy(both.here, both.there.source))[READINGS][:2] == (0, 0)
        found = await said(both.here, mine.id)
        assert (await said(both.there))[own]["comment"] == found[own]["comment"] == "edited"
        await both.there.take(1, [{"_id": {"$oid": own}, "comment": "and there"}])
        assert counts(await copy(both.here, both.there.source))[READINGS][:2] == (0, 1)
        assert (await said(both.here, mine.id))[own]["comment"] == "and there"


async def test_it_reaches_each_account_that_copies_it(tmp_path: Path) -> None:
    async with copied(tmp_path) as (there, here):
        account = (await here.parts.access.add_account("second")).id
        await copy(here, there.source, account)
        await change(there, 299, gravity="1.042")
        for number in (1, account):
            tally = await copy(here, there.source, number)
            assert counts(tally)[READINGS][:2] == (0, 1)
        assert await here.store.readings.count() == 600


async def test_readings_without_ids_are_known_by_time_and_name(tmp_path: Path) -> None:
    rows = [row(n, created_at=iso(int(NOW) - 9000 + n)) for n in range(10)]
    for one in rows:
        del one["_id"]
    fake = Fake(sessions=[session(1)], readings={"1": rows})
    async with running(fake), opened(tmp_path / "here") as here:
        await copy(here, fake.source)
        rows[4] |= {"gravity": "1.042"}
        assert counts(await copy(here, fake.source))[READINGS] == (0, 1, 9, 0, 0)
        assert await here.store.readings.count() == 10


async def test_a_session_and_a_recipe_are_merged_member_by_member(tmp_path: Path) -> None:
    async with copied(tmp_path, readings=2) as (there, here):
        theirs, ours = await only(there), await only(here)
        await there.clock.sleep(60)
        changes = SessionChange(phase="changed there", notes="there", details={"totalwater": "31"})
        await there.parts.brewsessions.update_session(theirs, changes)
        await here.clock.sleep(120)
        changes = SessionChange(notes="here", userdate="2026-02-02", details={"chillmethod": "ice"})
        changed = await here.parts.brewsessions.update_session(ours, changes)
        mine: dict[str, Any] = {"og": "14.7", "og_unit": "P", "ended_at": 5, "send_notes": True}
        await here.store.sessions.update(replace(changed, **mine))
        assert counts(await copy(here, there.source))["brew sessions"] == (0, 1, 0, 0, 0)
        merged = await only(here)
        assert (merged.phase, merged.notes, merged.userdate) == ("changed there", "here", "2026-02-02")
        assert {name: getattr(merged, name) for name in mine} == mine  # no service tells these
        assert (merged.details["totalwater"], merged.details["chillmethod"]) == ("31", "ice")
        await there.clock.sleep(600)
        await there.parts.brewsessions.update_session(await only(there), SessionChange(notes="there again"))
        await copy(here, there.source)
        again = await only(here)
        assert (again.notes, again.userdate, again.details["chillmethod"]) == (
            "there again",
            "2026-02-02",
            "ice",
        )


async def test_a_recipe_that_was_filed_here_is_filed_and_says_what_the_source_says(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await add_recipe(there, content("Porter"))
        await copy(here, there.source)
        folder = await here.parts.library.add_folder(1, "recipe", "Mine")
        for at in (here, there):
            await at.clock.sleep(60)
        mine, theirs = await here.store.recipes.get(1), await there.store.recipes.get(1)
        assert mine is not None
        assert theirs is not None
        await here.parts.library.file(mine, folder.id)
        await there.clock.sleep(-30)
        await there.parts.library.file(replace(theirs, content=content("Stout")), None)
        assert counts(await copy(here, there.source))["recipes"] == (0, 1, 0, 0, 0)
        merged = await here.store.recipes.get(1)
        assert merged is not None
        assert (merged.content.title, merged.folder_name) == ("Stout", "Mine")
