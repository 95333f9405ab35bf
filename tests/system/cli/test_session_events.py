"""`sessions note`, `measure`, `events`, `done`, and what `update` and `next` say about a brew by hand."""

from pathlib import Path

from tests.program.program import answer, ispindel, post, refusal

from .conftest import gateway


async def test_a_brew_is_written_down_by_hand(data: Path) -> None:
    await answer(data, "sessions add --batchcode HP001")
    note = ("sessions note HP001 Citra --kind dry_hop", "--amount", "50 g", "--at", "2026-03-03")
    await answer(data, *note)
    await answer(data, "sessions measure HP001 --gravity 6.1 --gravity-unit P --temp 19 --at 2026-03-04")
    lines = (await answer(data, "sessions events HP001")).lines
    assert [line.split()[0] for line in lines] == ["ID", "2", "3", "1"]
    assert lines[1].split()[3:] == ["dry", "hop", "50", "g,", "Citra", "command", "line"]
    assert lines[2].split()[3:9] == ["hand", "reading", "6.1", "°P,", "19", "°C"]
    [hop, reading, _] = (await answer(data, "sessions events HP001 --json")).objects
    assert (hop["amount"], reading["gravity"], reading["sent"]) == ("50 g", "6.1", False)
    for wrong, words in (
        ("sessions measure HP001", "needs a gravity or a temperature"),
        ("sessions measure HP001 --gravity 1050", "none of a beer"),
        ("sessions note HP001 n --kind begun", "kind must be one of"),
        ("sessions note HP009 n", "no brew session 'HP009'"),
    ):
        assert words in await refusal(data, wrong)


async def test_a_brew_ends_and_the_next_takes_its_device_over(data: Path) -> None:
    await answer(data, "sessions add --batchcode HP001")
    done = await answer(data, "sessions done HP001 --phase Bottled")
    assert done.err == "Brew session 1 (HP001) is done; its phase is Bottled.\n"
    assert any(line.startswith("done ") for line in (await answer(data, "sessions show 1")).lines)
    back = await answer(data, "sessions done HP001 --take-back")
    assert back.err == "Brew session 1 (HP001) is not done; its phase is Primary Fermentation.\n"
    await answer(data, "sessions update HP001 --og 1.062 --send-notes")
    assert "og must be a gravity" in await refusal(data, "sessions update HP001 --og thick")
    await answer(data, "sessions note HP001 racked")
    [event] = [e for e in (await answer(data, "sessions events 1 --json")).objects if e["kind"] == "note"]
    assert event["reading_id"]


async def test_the_readings_since_a_moment_go_to_the_next_beer(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        await answer(tmp_path, "sessions add --batchcode HP001")
        assert await post(http, server, ispindel(1, name="Red", gravity="1.05")) == 200
        await answer(tmp_path, "devices assign Red HP001 --since 2000-01-01")
        told = await answer(tmp_path, "sessions next HP001 --batchcode HP002 --since 2000-01-01")
        assert told.out == "2\n"
        assert [row["brewevent_id"] for row in (await answer(tmp_path, "readings --json")).objects] == [2]
