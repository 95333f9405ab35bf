"""`alarms`: with a gateway and without one."""

from pathlib import Path

import pytest

from gateway.clock import SystemClock
from gateway.domain.alarm import Alarm, AlarmEvent
from gateway.services.build import build_services
from gateway.store.protocols.alarms import AlarmChange
from gateway.store.sqlite.store import SqliteStore
from tests.program.program import answer, command, ispindel, refusal

from .conftest import stored


async def fire(data: Path, *alarms: tuple[str, str, str, str]) -> None:
    """Let alarms fire an hour ago: rule, scope, subject and text."""
    store, clock = SqliteStore(data), SystemClock()
    await store.open()
    try:
        services, at = build_services(store, data, clock), int(clock.now()) - 3600
        await services.alarms.start()
        for rule, scope, subject, text in alarms:
            alarm = Alarm(0, None, rule, scope, subject, "firing", at, at, text=text)  # type: ignore[arg-type]
            change = AlarmChange(alarm, AlarmEvent(0, 0, at, "fired", text))
            await services.alarms.apply(lambda _, change=change: [change])  # type: ignore[misc]
    finally:
        await store.close()


@pytest.fixture
async def firing(tmp_path: Path) -> Path:
    """A data directory with a brew, a device, and three alarms that fire.

    No gateway runs, which would end them: their reasons are made up. `tests/program` has real ones.
    """
    data = tmp_path / "data"
    await stored(data, ispindel(1, name="Red", gravity="1.05"))
    await answer(data, "sessions add --batchcode HP001")
    await fire(
        data,
        ("stuck", "brew", "1", "It stands\nat 1.024."),
        ("battery", "device", "1", "3.31 V."),
        ("started", "brew", "1", "It began."),
    )
    return data


async def test_nothing_fires(data: Path) -> None:
    await answer(data, "sessions add --batchcode HP001")
    for words in ("alarms list", "alarms list --all", "alarms history"):
        finished = await command(data, words)
        assert (finished.status, [line for line in finished.lines if "ID" not in line]) == (0, []), words
    assert "no alarm 3 fires" in await refusal(data, "alarms ack 3")
    assert "no alarm 3 fires" in await refusal(data, "alarms snooze 3 8h")
    assert "no channel yet" in await refusal(data, "alarms test stuck")
    assert "no brew session 'HP009'" in await refusal(data, "alarms list --brew HP009")


async def test_what_fires_is_listed_with_exit_code_1_until_it_is_acknowledged(firing: Path) -> None:
    listed = await command(firing, "alarms list")
    assert (listed.status, listed.err) == (1, "")
    assert listed.lines[0].split() == ["ID", "STATE", "SEVERITY", "SINCE", "WHAT", "ABOUT", "WHY"]
    stuck = next(line for line in listed.lines if "stuck" in line)
    assert stuck.split()[:3] == ["1", "firing", "warning"]
    assert stuck.endswith("HP001  It stands at 1.024.")
    assert (await command(firing, "alarms list --brew HP001 --json")).status == 1
    assert [each["rule"] for each in (await command(firing, "alarms list --brew HP001 --json")).objects] == [
        "stuck",
        "started",
    ]
    assert [each["name"] for each in (await command(firing, "alarms list --device Red --json")).objects] == [
        "Red"
    ]
    done = await answer(firing, "alarms ack 1")
    assert done.err == "Alarm 1 is acknowledged: It stands at 1.024.\n"
    await answer(firing, "alarms ack 3")
    quiet = await answer(firing, "alarms snooze 2 tomorrow")
    assert quiet.err.startswith("Alarm 2 is quiet until ")
    listed = await command(firing, "alarms list")
    assert (listed.status, listed.out) == (0, "")
    assert listed.err == "3 more are acknowledged or snoozed: `alarms list --all`\n"
    assert len((await answer(firing, "alarms list --all --json")).objects) == 3
    assert "no time of quiet" in await refusal(firing, "alarms snooze 2 soon")
    assert "not both" in await refusal(firing, "alarms list --brew 1 --device Red")
    lines = (await answer(firing, "alarms history --last 2")).lines
    assert [line.split()[2] for line in lines[1:]] == ["acknowledged", "snoozed"], "the newest is last"
    assert "command line" not in "".join(lines)
    [fired, acked] = (await answer(firing, "alarms history --brew 1 --json --last 3")).objects[-3::2]
    assert (fired["kind"], acked["alarm"]["rule"]) == ("fired", "started")


async def test_limits_are_set_and_taken_back(firing: Path) -> None:
    for words, said in (
        (("alarms set temperature lo=17 hi=22",), "temperature for all: lo=17, hi=22"),
        (
            ("alarms set reached --brew HP001 attenuation=75", "text=dry hops"),
            "reached for brew HP001: attenuation=75, text=dry hops",
        ),
        (("alarms set silent --device Red --off",), "silent for device Red: off"),
        (("alarms set all --device Red --off",), "every rule for device Red: off"),
        (("alarms set not-started hours=96",), "not started for all: hours=96"),
        (("alarms set silent --device Red --default",), "silent for device Red: as usual"),
    ):
        assert (await answer(firing, *words)).err == f"{said}\n"
    for wrong, reason in (
        ("alarms set stuck", "say KEY=VALUE, --off or --default"),
        ("alarms set stuck --off --default", "say KEY=VALUE, --off or --default"),
        ("alarms set stuk --off", "did you mean 'stuck'?"),
        ("alarms set temperature lo", "is no KEY=VALUE"),
        ("alarms set temperature lo=cold", "lo is a number from"),
        ("alarms set stuck --brew 99 --off", "no brew '99'"),
        ("alarms set sending --target club --off", "no target 'club'"),
        ("alarms set silent --device Red --brew 1 --off", "say one of --brew, --device"),
    ):
        assert reason in await refusal(firing, wrong), wrong


async def test_each_rule_says_what_it_saw(firing: Path) -> None:
    lines = (await answer(firing, "alarms check")).lines
    assert lines[0].split() == ["ABOUT", "RULE", "FIRES", "SAW", "LIMIT", "WHY"]
    assert any(line.startswith("gateway") and " keeper " in line for line in lines)
    assert (await answer(firing, "alarms check --at 2026-03-01T18:30 --as-of-now")).lines
    assert "no brew session 99" in await refusal(firing, "alarms check --brew 99")
    await answer(firing, "devices assign Red HP001")
    checks = (await answer(firing, "alarms check --brew HP001 --json")).objects
    assert {check["name"] for check in checks} == {"HP001", "Red"}
    assert all(check["fires"] or check["why_not"] for check in checks)
