"""Alarms in the store and in the service: one transaction for state, event and messages; settings."""

import time
from typing import Any

import pytest

from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import Alarm, AlarmEvent
from gateway.errors import InvalidInput, NotFound
from gateway.services.alarms import AlarmService, AlarmSetting, snooze_until
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from gateway.store.protocols.alarms import AlarmChange
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock

NOW = 1_772_616_600


def alarm(**members: Any) -> Alarm:
    made: dict[str, Any] = {
        "id": 0, "account_id": None, "rule": "stuck", "scope": "brew", "subject": "1", "state": "firing",
        "since": NOW - 60, "fired_at": NOW, "evidence": {"sg": 1.03}, "text": "It is stuck.",
    }  # fmt: skip
    return Alarm(**made | members)


def fired(one: Alarm, *, late: bool = False) -> AlarmChange:
    return AlarmChange(one, AlarmEvent(0, one.id, NOW, "fired", one.text, late), tells=not late)


async def add_channel(
    services: Services, name: str, account_id: int | None = None, *, paused: bool = False
) -> None:
    """Put a row in by hand: what reads and writes channels is another part."""
    store = services.store
    assert isinstance(store, SqliteStore)
    row = name, account_id, "ntfy", "{}", None, paused
    await store.alarms._writer.run(
        lambda c: c.execute("INSERT INTO channels VALUES (?, ?, ?, ?, ?, ?)", row) and None
    )


async def rows(services: Services, sql: str) -> list[Any]:
    store = services.store
    assert isinstance(store, SqliteStore)
    return await store.alarms._rows(sql)


MESSAGES = "SELECT event_id, channel, state, next_at FROM messages ORDER BY event_id, channel"


async def test_state_event_and_messages_are_one_transaction(services: Services) -> None:
    await add_channel(services, "phone")
    await add_channel(services, "paused", paused=True)
    await add_channel(services, "guest", account_id=2)
    alarms = services.alarms
    await alarms.start()
    (written,) = await alarms.apply(lambda _: [fired(alarm())])
    assert alarms.firing() == [written]
    assert [one for one, _ in await alarms.history()] == [written]
    assert await rows(services, MESSAGES) == [(1, "phone", "waiting", None)]
    with pytest.raises(Exception, match="UNIQUE"):  # a second open alarm of the same rule and subject
        await alarms.apply(lambda _: [fired(alarm(subject="2")), fired(alarm())])
    assert alarms.firing() == [written], "nothing of it is in memory"
    assert len(await alarms.history()) == 1, "nothing of it is stored"
    assert len(await rows(services, MESSAGES)) == 1


async def test_an_alarm_of_an_account_reaches_its_channels_and_the_owners(services: Services) -> None:
    for name, account_id in (("phone", None), ("guest", 2), ("other", 3)):
        await add_channel(services, name, account_id)
    await services.alarms.apply(lambda _: [fired(alarm(account_id=2))])
    assert [row[1] for row in await rows(services, MESSAGES)] == ["guest", "phone"]
    await services.alarms.apply(
        lambda _: [fired(alarm(scope="target", subject="channel phone", rule="sending"))]
    )
    assert [row[:2] for row in await rows(services, MESSAGES)] == [(1, "guest"), (1, "phone")]
    # A target of the same name is another thing: its failure is told of there.
    await services.alarms.apply(lambda _: [fired(alarm(scope="target", subject="phone", rule="sending"))])
    assert [row[:2] for row in await rows(services, MESSAGES)][2:] == [(3, "phone")]


async def test_who_sees_what(services: Services) -> None:
    alarms = services.alarms
    keeper = alarm(rule="keeper", scope="gateway", subject="disk")
    own = alarm(account_id=2)
    await alarms.apply(lambda _: [fired(own), fired(keeper)])
    assert [one.rule for one in alarms.firing()] == ["keeper", "stuck"], "the worst first"
    assert [one.rule for one in alarms.firing(1)] == ["keeper", "stuck"]
    assert [one.rule for one in alarms.firing(2)] == ["stuck"]
    assert [one.rule for one in alarms.firing(3)] == []
    assert [one.rule for one, _ in await alarms.history(2)] == ["stuck"]
    assert [one.rule for one, _ in await alarms.history(1)] == ["keeper", "stuck"]
    assert [one.rule for one, _ in await alarms.history(scope="brew", subject="1")] == ["stuck"]
    with pytest.raises(NotFound):
        await alarms.acknowledge(2, "key:guest", 2)


async def test_acknowledge_and_snooze(services: Services, clock: FakeClock) -> None:
    alarms = services.alarms
    (one,) = await alarms.apply(lambda _: [fired(alarm())])
    after = await alarms.acknowledge(one.id, "cli:uid 1000")
    assert (after.state, after.acked_at, after.acked_by) == ("acknowledged", NOW, "cli:uid 1000")
    assert await alarms.acknowledge(one.id, "another") == after
    after = await alarms.snooze(one.id, NOW + 3600, "page:phone")
    assert (after.state, after.snoozed_until) == ("snoozed", NOW + 3600)
    assert alarms.firing() == [after]
    assert [event.kind for _, event in await alarms.history()] == ["snoozed", "acknowledged", "fired"]
    for wrong in (NOW, NOW + 365 * 86_400):
        with pytest.raises(InvalidInput):
            await alarms.snooze(one.id, wrong, "page:phone")
    again = AlarmService(services.store, services.notices, clock)
    await again.start()
    assert again.firing() == [after], "after a start"


async def test_what_never_fired_leaves_nothing(services: Services) -> None:
    alarms = services.alarms
    (one,) = await alarms.apply(lambda _: [AlarmChange(alarm(state="pending", fired_at=None))])
    assert alarms.firing() == []
    assert alarms.open == [one]
    with pytest.raises(NotFound):
        await alarms.acknowledge(one.id, "key:a")
    await alarms.apply(lambda _: [AlarmChange(alarm(id=one.id, state="ok", fired_at=None, cleared_at=NOW))])
    assert alarms.open == []
    assert await rows(services, "SELECT id FROM alarms") == []


async def test_the_message_of_an_end_is_taken_back_where_the_trouble_comes_again(services: Services) -> None:
    await add_channel(services, "phone")
    alarms = services.alarms
    (one,) = await alarms.apply(lambda _: [fired(alarm())])
    ended = alarm(id=one.id, state="ok", cleared_at=NOW)
    event = AlarmEvent(0, one.id, NOW, "cleared", "It goes on.")
    await alarms.apply(lambda _: [AlarmChange(ended, event, tells=True, not_before=NOW + 1800)])
    assert alarms.open == []
    assert await alarms.recent() == [ended]
    assert await rows(services, MESSAGES) == [
        (1, "phone", "waiting", None),
        (2, "phone", "waiting", NOW + 1800),
    ]
    await alarms.apply(lambda _: [AlarmChange(alarm(id=one.id, times=2))])
    assert await rows(services, MESSAGES) == [(1, "phone", "waiting", None), (2, "phone", "merged", None)]


async def test_settings_the_narrowest_wins(services: Services, clock: FakeClock) -> None:
    alarms = services.alarms
    assert alarms.setting_of("temperature", brew=1, device=2) == {}
    await alarms.set("temperature", {"hi": "22"})
    await alarms.set("temperature", {"lo": 10, "hi": 20}, "brew", "1")
    await alarms.set("", {"off": True}, "device", "2")
    assert alarms.setting_of("temperature", brew=1) == {"lo": 10, "hi": 20}
    assert alarms.setting_of("temperature", brew=3) == {"hi": 22}
    assert alarms.setting_of("temperature", brew=1, device=2) is None
    again = AlarmService(services.store, services.notices, clock)
    await again.start()
    assert again.settings() == alarms.settings() == [
        AlarmSetting("all", "", "temperature", {"hi": 22}),
        AlarmSetting("brew", "1", "temperature", {"lo": 10, "hi": 20}),
        AlarmSetting("device", "2", "", {"off": True}),
    ]  # fmt: skip
    await alarms.set("", {"off": True})
    assert alarms.setting_of("temperature", brew=1) is None, "the switch for everything"
    await alarms.set("", None)
    await alarms.set("temperature", None, "brew", "1")
    assert alarms.setting_of("temperature", brew=1) == {"hi": 22}
    rows_of_audit = await services.store.audit.page(limit=10)
    assert [(row.verb, row.object, row.detail) for row in rows_of_audit][-3:] == [
        ("set", "alarm:all", "all: off=True"),
        ("set", "alarm:all", "all: default"),
        ("set", "alarm:temperature", "brew 1: default"),
    ]


@pytest.mark.parametrize(
    ("rule", "setting", "scope", "subject", "words"),
    [
        ("stcuk", {"off": True}, "all", "", "did you mean 'stuck'"),
        ("stuck", {"off": True}, "target", "a", "stuck can be set for all or brew"),
        ("keeper", {"off": True}, "brew", "1", "keeper can be set for all,"),
        ("stuck", {"off": True}, "brew", "", "needs it"),
        ("stuck", {"off": True}, "all", "1", "no subject"),
        ("stuck", {"off": True}, "brew", "x", "no id"),
        ("stuck", {"off": "yes"}, "all", "", "true or false"),
        ("stuck", {"hours": 3}, "all", "", "stuck has no limits"),
        ("stuck", {}, "all", "", "nothing is set"),
        ("temperature", {"lo": 20, "hi": 20}, "all", "", "below"),
        ("temperature", {"hi": "warm"}, "all", "", "number from -10 to 60"),
        ("temperature", {"hi": float("nan")}, "all", "", "number"),
        ("temperature", {"hi": True}, "all", "", "number"),
        ("temperature", {"high": 20}, "all", "", "temperature has lo, hi"),
        ("reached", {"text": "dry hops"}, "brew", "1", "needs sg"),
        ("reached", {"text": "a\nb", "day": 1}, "brew", "1", "a line"),
        ("", {"hi": 20}, "all", "", "every rule has no limits"),
    ],
)
async def test_a_wrong_setting_is_named(
    services: Services, rule: str, setting: dict[str, Any], scope: Any, subject: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        await services.alarms.set(rule, setting, scope, subject)
    assert services.alarms.settings() == []


async def test_old_events_go_and_open_alarms_stay(services: Services) -> None:
    await add_channel(services, "phone")
    alarms = services.alarms
    (one,) = await alarms.apply(lambda _: [fired(alarm())])
    for place in range(5):
        ended = alarm(subject=f"{place + 2}", state="ok", cleared_at=NOW)
        await alarms.apply(lambda _, ended=ended: [fired(ended)])  # type: ignore[misc]
    assert await services.store.alarms.prune(NOW - 1, keep=10) == 0
    assert await services.store.alarms.prune(NOW - 1, keep=2) == 4
    assert [event.id for _, event in await alarms.history()] == [6, 5]
    assert await rows(services, "SELECT count(*) FROM alarms") == [(3,)], "the open one, and two with events"
    assert await rows(services, "SELECT count(*) FROM messages") == [(2,)]
    assert await services.store.alarms.prune(NOW + 1, keep=2) == 2
    assert alarms.firing() == [one]


async def test_what_was_told_of_a_brew_is_known_as_long_as_it_goes_on(services: Services) -> None:
    session = await services.brewsessions.add_session(OWNER_ID, SessionChange(batchcode="M1"))
    ended = alarm(rule="reached", subject=str(session.id), state="ok", cleared_at=NOW)
    await services.alarms.apply(lambda _: [fired(ended)])
    store = services.store.alarms
    assert await store.prune(NOW + 1, keep=10) == 1
    assert [one.rule for one in await store.told("brew", str(session.id), 10)] == ["reached"]
    await services.brewsessions.update_session(session, SessionChange(ended=True))
    await services.alarms.apply(lambda _: [fired(alarm(subject="9", state="ok", cleared_at=NOW))])
    assert await store.prune(NOW + 1, keep=10) == 1
    assert await store.told("brew", str(session.id), 10) == []


async def test_rows_of_a_damaged_file_stop_no_other_alarm(services: Services) -> None:
    odd = [alarm(rule="smoke"), alarm(subject="x"), alarm(scope="device", rule="silent", subject="")]
    store = services.store
    assert isinstance(store, SqliteStore)
    for one in [*odd, alarm(subject="7")]:
        await store.alarms.change([fired(one)])
    for scope, subject, rule in (("brew", "x", "stuck"), ("all", "", "smoke"), ("all", "", "stuck")):
        await store.alarms.set(scope, subject, rule, {"off": True})
    await services.alarms.start()
    assert [(one.scope, one.rule) for one in services.alarms.settings()] == [("all", "stuck")]
    assert [one.subject for one in services.alarms.firing()] == ["7"]
    assert [one.subject for one, _ in await services.alarms.history()] == ["7"]


async def test_the_instance_has_one_name(services: Services) -> None:
    name = await services.store.alarms.instance()
    assert len(name) == 8
    assert int(name, 16) >= 0
    assert await services.store.alarms.instance() == name


def test_times_of_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert snooze_until("1h", NOW) == NOW + 3600
        assert snooze_until("8h", NOW) == NOW + 8 * 3600
        assert snooze_until("tomorrow", NOW) == 1_772_694_000  # 2026-03-05T08:00+01:00
        assert snooze_until("2026-03-05T08:00", NOW) == 1_772_694_000
        assert snooze_until("2026-03-05T08:00Z", NOW) == 1_772_697_600
        with pytest.raises(InvalidInput, match="no time of quiet"):
            snooze_until("later", NOW)
    finally:
        monkeypatch.undo()
        time.tzset()
