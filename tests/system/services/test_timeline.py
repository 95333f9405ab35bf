"""What happens in a brew: written down with the change, sent on where it is a reading, carried along."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.brew_event import EVENTS_MAX, BrewEvent
from gateway.domain.brewsession import NOT_YET_S, BrewSession
from gateway.domain.payload import Payload
from gateway.errors import AlreadySent, InvalidInput, NotFound, StoreUnavailable
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services, build_services
from gateway.services.timeline import EVENT_CHARACTERS, EventContent, Timeline
from gateway.store.sqlite import events as stored_events
from gateway.store.sqlite.store import SqliteStore
from tests.cases import each
from tests.clock import FakeClock
from tests.system.api.library import content, picture
from tests.system.forward.editing import Editing, editing

IP = "192.0.2.7"
HAND = EventContent("hand_reading", text="by the tap", gravity="1.024", temp="19", instrument="Hydrometer")
EDITED = "edited here, not there"


async def write(services: Services, session: BrewSession, content: EventContent) -> BrewEvent:
    return await services.timeline.add(session, content, "phone", IP)


async def kinds(services: Services, session: BrewSession) -> list[str]:
    return [event.kind for event in await services.timeline.events(session)]


async def again(services: Services, session: BrewSession) -> BrewSession:
    found = await services.store.sessions.get(session.id)
    assert found is not None
    return found


async def test_a_hand_reading_is_a_reading_of_the_brew_and_is_sent_on(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        event = await write(here.services, here.session, HAND)
        [reading] = await here.readings()
        assert reading["_id"]["$oid"] == event.oid
        assert (reading["gravity"], reading["gravity_unit"], reading["temp"]) == ("1.024", "G", "19")
        assert (reading["source"], reading["name"], reading["ip"]) == ("hand", "Hydrometer", IP)
        assert (reading["comment"], reading["beer"]) == ("by the tap", "")
        assert (event.author, event.sg, event.celsius, event.was_sent) == ("phone", 1.024, 19.0, False)
        await here.bench.drain()
        assert here.gravities() == ["1.024"]
        [event, _] = await here.services.timeline.events(here.session)
        assert event.was_sent
        milestones = await here.services.store.sessions.milestones(here.session.id)
        assert milestones.last_gravity is not None


async def test_a_correction_before_it_was_sent_replaces_the_reading(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=False) as here:
        event = await write(here.services, here.session, HAND)
        given = {"gravity": "5.9", "gravity_unit": "P", "text": "", "at": here.bench.clock.now() - 3600}
        changed = await here.services.timeline.change(here.session, event.id, given)
        assert (changed.oid, changed.text, changed.facts["gravity"]) == (event.oid, "", "5.9")
        await here.bench.drain()
        [there] = here.there()
        assert (there["gravity"], there["gravity_unit"], there["comment"]) == ("5.9", "P", "")


@pytest.mark.parametrize("keeps_ids", [True, False])
async def test_a_correction_after_it_was_sent_asks_what_to_do(tmp_path: Path, keeps_ids: bool) -> None:
    async with editing(tmp_path, keeps_ids=keeps_ids) as here:
        timeline = here.services.timeline
        event = await write(here.services, here.session, HAND)
        await here.bench.drain()
        wrong = {"gravity": "1.014"}
        with pytest.raises(AlreadySent):
            await timeline.change(here.session, event.id, wrong)
        assert [reading["gravity"] for reading in await here.readings()] == ["1.024"]

        await timeline.change(here.session, event.id, wrong, send_again=False)
        await here.bench.drain()
        assert [reading["gravity"] for reading in await here.readings()] == ["1.014"]
        assert (here.gravities(), await here.states()) == (["1.024"], [EDITED])

        changed = await timeline.change(here.session, event.id, {"gravity": "1.012"}, send_again=True)
        assert (changed.oid, await here.states()) == (event.oid, ["pending"])
        await here.bench.drain()
        assert here.gravities() == (["1.012"] if keeps_ids else ["1.024", "1.012"])
        [row] = await here.services.store.audit.page(about=f"event:{event.id}", limit=10)
        assert row.verb == "resend"


async def test_a_correction_leaves_what_it_does_not_know(tmp_path: Path) -> None:
    """An import may have made the reading: with a pH, or with a temperature beside the words of a note."""
    async with editing(tmp_path, keeps_ids=True) as here:
        oids = ("0a" * 12, "0b" * 12)
        rows = [{"_id": {"$oid": oid}, "gravity": "1.05", "temp": "20", "ph": 4.5} for oid in oids]
        await here.take([{**row, "comment": "before"} for row in rows])
        for kind, oid in zip(("hand_reading", "note"), oids, strict=True):
            event = BrewEvent(0, 1, 1, kind, "before", "phone", 1, 1, {}, oid)
            added = await here.services.store.events.add(here.session, event)
            await here.services.timeline.change(here.session, added.id, {"text": "after"})
        kept = [(row["comment"], row["gravity"], row["temp"], row["ph"]) for row in await here.readings()]
        assert kept == [("after", "1.05", "20", 4.5)] * 2


async def test_a_correction_of_words_alone_is_free_until_it_is_sent(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        event = await write(here.services, here.session, HAND)
        await here.bench.drain()
        same = await here.services.timeline.change(here.session, event.id, {"gravity": "1.024"})
        assert same.text == event.text
        assert await here.states() == ["forwarded"]


async def test_a_deleted_hand_reading_goes_here_and_stays_there(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        event = await write(here.services, here.session, HAND)
        await here.bench.drain()
        await here.services.timeline.remove(here.session, event.id)
        assert await here.readings() == []
        assert here.gravities() == ["1.024"]
        assert await kinds(here.services, here.session) == ["begun"]
        [row] = await here.services.store.audit.page(about=f"event:{event.id}", limit=10)
        assert (row.verb, row.detail) == ("delete", f"hand_reading of session 1, reading {event.oid}")
        with pytest.raises(NotFound):
            await here.services.timeline.remove(here.session, event.id)
        # The next one gets a place of its own in the queue.
        await write(here.services, here.session, replace(HAND, gravity="1.020"))
        await here.bench.drain()
        assert here.gravities() == ["1.024", "1.020"]


async def test_a_note_stays_here_unless_the_brew_sends_its_notes_on(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        services, session = here.services, here.session
        await write(services, session, EventContent("note", text="kept here"))
        session = await services.brewsessions.update_session(session, SessionChange(send_notes=True))
        sent = await write(services, session, EventContent("note", text="sent on"))
        await write(services, session, EventContent("dry_hop", text="Citra", amount="50 g"))
        await here.bench.drain()
        [there] = here.there()
        assert (there["comment"], there["gravity"], there["source"]) == ("sent on", "", "hand")
        with pytest.raises(AlreadySent):
            await services.timeline.change(session, sent.id, {"text": "better words"})
        session = await services.brewsessions.update_session(session, SessionChange(send_notes=False))
        await write(services, session, EventContent("note", text="here again"))
        await here.bench.drain()
        assert len(here.there()) == 1


async def test_a_reset_import_takes_hand_readings_along_unless_it_brings_them(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        first = await write(here.services, here.session, HAND)
        second = await write(here.services, here.session, replace(HAND, gravity="1.020"))
        kept = [item for item in await here.readings() if item["_id"]["$oid"] == second.oid]
        await here.take(kept, reset=True)
        found = await here.services.timeline.events(here.session)
        assert [event.id for event in found if event.oid] == [second.id] != [first.id]


async def test_an_edit_by_import_shows_in_the_time_line(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        event = await write(here.services, here.session, HAND)
        await here.take([{"_id": {"$oid": event.oid}, "gravity": "1.022", "comment": "read twice"}])
        found = await here.services.timeline.event(here.session, event.id)
        assert (found.facts["gravity"], found.sg, found.text) == ("1.022", 1.022, "read twice")


@each(
    "content, words",
    [
        (EventContent("note"), "a note needs a text"),
        (EventContent("note", text="x" * (EVENT_CHARACTERS + 1)), "longer than"),
        (EventContent("note", text="a\0b"), "no text"),
        (EventContent("note", text="n", gravity="1.05"), "gravity is for a hand reading only"),
        (EventContent("note", text="n", amount="50 g"), "amount is for"),
        (EventContent("dry_hop"), "say what was added"),
        (EventContent("dry_hop", amount="x" * 65), "longer than"),
        (EventContent("begun"), "kind must be one of"),
        (EventContent("hand_reading"), "needs a gravity or a temperature"),
        (EventContent("hand_reading", gravity="1050"), "none of a beer"),
        (EventContent("hand_reading", gravity="1.05", gravity_unit="X"), "gravity_unit"),
        (EventContent("hand_reading", gravity="thick"), "gravity is not a number"),
        (EventContent("hand_reading", temp="300"), "none of a brewery"),
        (EventContent("note", text="n", at=1_772_616_600 + 3600), "lies in the future"),
        (EventContent("note", text="n", at=-1), "1970"),
    ],
)
async def test_what_is_no_event_is_refused_with_its_reason(
    services: Services, content: EventContent, words: str
) -> None:
    session = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
    with pytest.raises(InvalidInput, match=words):
        await write(services, session, content)
    assert await kinds(services, session) == ["begun"]
    assert await services.store.readings.count() == 0


async def test_a_clock_in_doubt_gives_no_event_its_time(services: Services) -> None:
    session = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
    doubtful = Timeline(
        services.store, services.notices, services.stats, services.clock, lambda: "waits for the clock"
    )
    with pytest.raises(StoreUnavailable, match="waits for the clock"):
        await doubtful.add(session, EventContent("note", text="n"), "phone", IP)
    later = services.clock.now() + 86_400
    assert (await doubtful.add(session, EventContent("note", text="n", at=later), "phone", IP)).at == later


async def test_a_brew_has_a_bound_of_events(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
    assert EVENTS_MAX > 1
    monkeypatch.setattr(stored_events, "EVENTS_MAX", 1)
    with pytest.raises(InvalidInput, match="at most"):
        await write(services, session, EventContent("note", text="one too many"))
    await services.brewsessions.update_session(session, SessionChange(ended=True))
    reopened = await services.brewsessions.update_session(
        await again(services, session), SessionChange(ended=False)
    )
    assert (reopened.ended_at, await kinds(services, session)) == (None, ["begun"])


async def report(here: Editing, count: int) -> list[int]:
    """Readings of the device, a quarter of an hour apart; their times."""
    times = []
    for number in range(count):
        here.bench.clock.advance(900)
        times.append(int(here.bench.clock.now()))
        body = f'{{"name": "Red", "ID": 7, "angle": 50.0, "temperature": 20.0, "gravity": 1.04{number}}}'
        await here.services.intake.take(Payload(body.encode(), here.bench.clock.now(), "http /ingest"))
    return times


async def times_in(here: Editing, session: BrewSession) -> list[int]:
    stored = here.services.store.readings.json_lines(last=100, device_id=None, session_id=session.id)
    rows = [json.loads(line) async for line in stored]
    return [int(datetime.fromisoformat(row["created_at"]).timestamp()) for row in rows]


async def test_done_frees_the_devices_and_can_be_taken_back(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        services = here.services
        await here.send("1.05")
        done = await services.brewsessions.update_session(here.session, SessionChange(ended=True))
        assert (done.phase, done.ended_at) == ("Conditioning", int(here.bench.clock.now()))
        assert (await here.device()).session_id is None
        assert await kinds(services, done) == ["ended", "device_out", "device_in", "begun"]
        assert done == await services.brewsessions.update_session(done, SessionChange(ended=True))
        [row] = await services.store.audit.page(about=f"session:{done.id}", limit=10)
        assert (row.verb, row.detail) == ("end", "devices that left it: 1")
        missed = await report(here, 2)
        back = await services.brewsessions.update_session(done, SessionChange(ended=False))
        assert (back.phase, back.ended_at) == (here.session.phase, None)
        assert (await here.device()).session_id == here.session.id
        assert (await times_in(here, here.session))[1:] == missed
        assert await kinds(services, back) == ["device_in", "begun"]


async def test_done_taken_back_leaves_a_device_in_the_brew_that_has_it_by_now(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        services = here.services
        await here.send("1.05")
        done = await services.brewsessions.update_session(
            here.session, SessionChange(ended=True, phase="Bottled")
        )
        other = await services.brewsessions.add_session(1, SessionChange(batchcode="HP002"), device_id=1)
        back = await services.brewsessions.update_session(done, SessionChange(ended=False))
        assert back.phase == here.session.phase
        assert (await here.device()).session_id == other.id
        assert await kinds(services, back) == ["device_out", "device_in", "begun"]


async def test_who_says_not_yet_is_asked_again_after_two_days(services: Services) -> None:
    session = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
    now = services.clock.now()
    assert session.may_be_asked(now)
    await services.brewsessions.not_yet(session)
    session = await again(services, session)
    assert not session.may_be_asked(now + NOT_YET_S - 1)
    assert session.may_be_asked(now + NOT_YET_S)
    ended = await services.brewsessions.update_session(session, SessionChange(ended=True))
    assert not ended.may_be_asked(now + NOT_YET_S)


async def test_the_next_beer_gets_the_readings_since_its_moment_and_no_others(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        services = here.services
        await here.send("1.05")
        old_hand = await write(services, here.session, replace(HAND, at=here.bench.clock.now()))
        times = await report(here, 4)
        hand = await write(services, here.session, replace(HAND, at=times[3]))
        await here.bench.drain()
        made = await services.brewsessions.next_session(
            here.session, "Conditioning", SessionChange(batchcode="HP002", upstream_id=78), times[2]
        )
        await here.bench.store.close()

        store = SqliteStore(tmp_path)
        await store.open()
        here.services = services = build_services(store, tmp_path, here.bench.clock)
        here.bench.store = store
        here.bench.restart()
        await services.intake.start()
        new = await again(services, made.session)
        assert await times_in(here, new) == times[2:]
        old = await again(services, here.session)
        own = {times[0], times[1], old_hand.at, hand.at}
        assert set(await times_in(here, old)) == own
        assert (old.phase, old.ended_at) == ("Conditioning", times[2])
        assert (await here.device()).session_id == new.id
        later = await report(here, 1)
        assert await times_in(here, new) == times[2:] + later
        first = {event.kind: event.at for event in await services.timeline.events(new)}
        assert first == {"begun": times[2], "device_in": times[2]}
        last = {event.kind: event.at for event in await services.timeline.events(old)}
        assert (last["device_out"], last["ended"]) == (times[2], times[2])
        await here.bench.drain()
        assert len(here.there(78)) == 3
        await store.close()


async def test_a_new_brew_takes_a_device_with_its_readings_since(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        services = here.services
        times = await report(here, 3)
        made = await services.brewsessions.add_session(
            1, SessionChange(batchcode="HP002"), device_id=1, since=times[1]
        )
        assert await times_in(here, made) == times[1:]
        [device_in, begun] = await services.timeline.events(made)
        assert (device_in.kind, device_in.facts["readings"], begun.at) == ("device_in", 2, times[1])
        with pytest.raises(NotFound):
            await services.brewsessions.add_session(1, SessionChange(batchcode="HP003"), device_id=9)
        assert len(await services.store.sessions.all()) == 2


async def test_events_go_with_their_brew(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        services = here.services
        await here.send("1.05")
        await write(services, here.session, EventContent("note", text="n"))
        await services.brewsessions.delete_session(here.session)
        back = await services.brewsessions.undelete_session(here.session.id)
        assert await kinds(services, back) == ["device_out", "note", "device_in", "begun"]
        await services.brewsessions.delete_session(back)
        await services.brewsessions.purge_session(back.id, lambda _: None)
        assert await kinds(services, back) == []


async def test_a_device_that_is_released_forgotten_or_merged_leaves_its_brew_in_writing(
    services: Services, clock: FakeClock
) -> None:
    brews = [await services.brewsessions.add_session(1, SessionChange(batchcode=f"B{n}")) for n in range(3)]
    for number, brew in enumerate(brews, 1):
        body = f'{{"name": "D{number}", "ID": {number}, "angle": 50.0, "temperature": 20, "gravity": 1.04}}'
        await services.intake.take(Payload(body.encode(), clock.now(), "http /ingest"))
        await services.brewsessions.assign(f"D{number}", brew.id, None)
    await services.brewsessions.release("D1")
    await services.brewsessions.release("D1")
    second, third = (await services.store.devices.all())[1:]
    await services.store.devices.merge(third, second)
    assert [await kinds(services, brew) for brew in brews] == [
        ["device_out", "device_in", "begun"],
        ["device_out", "device_in", "begun"],
        ["device_in", "begun"],
    ]
    await services.forgetting.forget(third)
    assert (await kinds(services, brews[2]))[0] == "device_out"


@each(
    "given",
    [
        {"og": "1050"}, {"og": "thick"}, {"og": "1.05", "og_unit": "X"}, {"og_unit": "P"}, {"og": "1e0"},
        {"og": "90", "og_unit": "P"}, {"og": "nan"}, {"og": "-1.05"},
    ],
)  # fmt: skip
async def test_an_original_gravity_that_is_none_is_refused(services: Services, given: dict[str, Any]) -> None:
    session = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
    with pytest.raises(InvalidInput, match="og"):
        await services.brewsessions.update_session(session, SessionChange(**given))


async def test_the_original_gravity_by_hand_is_kept_as_typed_and_taken_back(services: Services) -> None:
    session = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
    set_ = await services.brewsessions.update_session(session, SessionChange(og="1.050"))
    assert (set_.og, set_.og_unit, await again(services, session)) == ("1.050", "G", set_)
    plato = await services.brewsessions.update_session(set_, SessionChange(og="12.4", og_unit="P"))
    assert (plato.og, plato.og_unit) == ("12.4", "P")
    back = await services.brewsessions.update_session(plato, SessionChange(og=""))
    assert (back.og, back.og_unit) == (None, None)


async def test_a_photo_makes_a_mark_that_goes_with_it(services: Services) -> None:
    recipe = await services.library.add(1, content())
    session = await services.brewsessions.add_session(1, SessionChange(recipe_id=recipe.id))
    photo = await services.photos.add(session.recipe_id, picture(4, 3), "glass.png", "in the glass")
    event = await services.timeline.add_photo(session, photo.uuid, photo.caption, "phone")
    assert (event.kind, event.text, event.facts) == ("photo", "in the glass", {"uuid": photo.uuid})
    changed = await services.timeline.change(session, event.id, {"text": "clear by now"})
    assert (changed.text, changed.facts) == ("clear by now", event.facts)
    await services.photos.remove(session.recipe_id, photo.uuid)
    assert await kinds(services, session) == ["begun"]
