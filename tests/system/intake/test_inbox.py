"""The inbox: readings wait as they came, durably, until the owner says yes or no."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway import drivers
from gateway.domain.inbox import REFUSED_S, WaitingName, WaitReason
from gateway.domain.key import ApiKey, digest
from gateway.domain.payload import Payload
from gateway.domain.progress import no_progress
from gateway.errors import InvalidInput, NotFound, ShareUsedUp, StoreUnavailable
from gateway.intake.replay import Replay
from gateway.services.build import Services
from gateway.store.records import BootTime
from gateway.store.sqlite import inbox as sqlite_inbox
from tests.cases import each
from tests.clock import FakeClock
from tests.payloads import ispindel

ARRIVAL = 1_772_616_600
"""2026-03-04T09:30:00Z, where the clock stands."""

SOURCE = "192.168.1.37"
INTERVAL_S = 900


@pytest.fixture
def asking(services: Services) -> Services:
    services.intake.inbox.asks = True
    return services


async def take(services: Services, body: str, at: float = ARRIVAL, **details: Any) -> None:
    values: dict[str, Any] = {"source": SOURCE, **details}
    await services.intake.take(Payload(body.encode(), at, "http /ingest", **values))


async def lines(services: Services) -> list[dict[str, Any]]:
    found = services.store.readings.json_lines(last=1000, device_id=None, session_id=None)
    return [json.loads(line) async for line in found]


async def waiting(services: Services) -> list[WaitingName]:
    return await services.store.inbox.names()


async def accept(services: Services, key: str) -> int:
    numbers = [name.id for name in await waiting(services) if name.device_key == key]
    return (await services.acceptance.accept(numbers)).stored


def tilts(*colors: str, sg: str = "1.045") -> str:
    return json.dumps([{"SG": sg, "Temp": "68", "Color": color} for color in colors])


def key_for(device: str, name: str = "a key") -> ApiKey:
    return ApiKey(name, 1, "hg_", digest(device), frozenset({"ingest"}), 0, device=device)


async def bind_key(services: Services, device: str) -> ApiKey:
    key = key_for(device)
    services.access._keys = [*services.access._keys, key]
    return key


async def test_a_reading_of_an_unknown_device_waits_and_is_no_reading(asking: Services) -> None:
    await take(asking, ispindel(1))
    (name,) = await waiting(asking)
    assert (name.device_key, name.name, name.source, name.reason, name.readings) == (
        "ispindel:1",
        "spindle1",
        SOURCE,
        WaitReason.NEW,
        1,
    )
    assert await lines(asking) == []
    assert await asking.store.devices.all() == []
    assert (asking.stats.accepted, asking.stats.waiting, asking.stats.stored) == (1, 1, 0)


async def test_what_is_accepted_is_stored_in_order_each_as_of_its_arrival(
    asking: Services, clock: FakeClock
) -> None:
    # The first reading teaches the unit, as it would have done without the inbox.
    for place, gravity in enumerate(("12.5", "12.25", "1.0495", "1.0493", "1.0490")):
        await take(asking, ispindel(1, gravity=gravity), ARRIVAL + place * INTERVAL_S + 0.123)
    clock.advance(86_400)
    assert await accept(asking, "ispindel:1") == 5
    waited = await lines(asking)
    assert [line["created_at"][11:19] for line in waited] == [
        *("09:30:00", "09:45:00", "10:00:00", "10:15:00", "10:30:00")
    ]
    assert await waiting(asking) == []
    asking.intake.inbox.asks = False
    for place, gravity in enumerate(("12.5", "12.25", "1.0495", "1.0493", "1.0490")):
        body = ispindel(2, name="spindle1", gravity=gravity)
        await take(asking, body, ARRIVAL + place * INTERVAL_S + 0.123)
    own = {"_id", "device_id", "delivery"}
    both = [{name: value for name, value in line.items() if name not in own} for line in await lines(asking)]
    assert both[0::2] == both[1::2]
    first, second = await asking.store.devices.all()
    assert (first.gravity_unit, first.inferred) == (second.gravity_unit, second.inferred)


async def test_the_device_reports_as_any_other_once_it_is_accepted(asking: Services) -> None:
    await take(asking, ispindel(1))
    await accept(asking, "ispindel:1")
    await take(asking, ispindel(1, gravity="12.4"), ARRIVAL + INTERVAL_S)
    assert len(await lines(asking)) == 2
    assert await waiting(asking) == []


async def test_a_device_that_was_known_before_the_switch_stays_accepted(services: Services) -> None:
    await take(services, ispindel(1))
    services.intake.inbox.asks = True
    await take(services, ispindel(1, gravity="12.4"), ARRIVAL + INTERVAL_S)
    assert (len(await lines(services)), await waiting(services)) == (2, [])


async def test_of_a_list_the_known_are_stored_and_the_unknown_wait(services: Services) -> None:
    await take(services, tilts("RED"))
    services.intake.inbox.asks = True
    await take(services, tilts("BLUE", "RED", "PINK", sg="1.044"), ARRIVAL + INTERVAL_S)
    assert [line["gravity"] for line in await lines(services)] == ["1.045", "1.044"]
    names = await waiting(services)
    assert [name.device_key for name in names] == ["tilt:BLUE", "tilt:PINK"]
    assert await accept(services, "tilt:PINK") == 1
    assert [name.device_key for name in await waiting(services)] == ["tilt:BLUE"]
    assert sorted(line["device_id"] for line in await lines(services)) == ["PINK", "RED", "RED"]


async def test_a_payload_is_kept_as_it_came(asking: Services) -> None:
    details: dict[str, Any] = {
        "query": "a=b", "label": "cellar", "hint": "ispindel", "driver": None, "delivery": "7",
        "redelivered": True, "retained": False, "chosen": True, "token": "t0ken", "source": "fd00::1:2",
    }  # fmt: skip
    body = ispindel(1).encode()
    sent = Payload(body, ARRIVAL + 0.123, "mqtt cellar", key=key_for("", "phone"), **details)
    await asking.intake.take(sent)
    (name,) = await waiting(asking)
    assert name.source == "fd00::/64"
    (kept,) = await asking.store.inbox.page([name.id], (0, 0), 10)
    assert kept.key_name == "phone"
    for member in ("body", "channel", *details):
        assert getattr(kept.payload, member) == getattr(sent, member), member
    assert int(kept.payload.received_at * 1000) == int(sent.received_at * 1000)


async def test_a_key_of_ours_is_never_kept(asking: Services) -> None:
    await take(asking, ispindel(1), token="hg_secret")
    [name] = await waiting(asking)
    [kept] = await asking.store.inbox.page([name.id], (0, 0), 10)
    assert kept.payload.token == ""


async def test_duplicates_stay_duplicates(asking: Services) -> None:
    await take(asking, ispindel(1))
    await take(asking, ispindel(1), ARRIVAL + 1)
    assert (asking.stats.waiting, asking.stats.duplicates) == (1, 1)
    assert await accept(asking, "ispindel:1") == 1
    await take(asking, ispindel(1), ARRIVAL + 2)
    assert (len(await lines(asking)), asking.stats.duplicates) == (1, 2)


async def test_a_message_that_the_broker_sends_again_much_later_is_one_reading(asking: Services) -> None:
    await take(asking, ispindel(1), delivery="5")
    await take(asking, ispindel(1), ARRIVAL + 7_200, delivery="5", redelivered=True)
    assert await accept(asking, "ispindel:1") == 1


async def test_of_a_bridge_that_pushes_every_few_seconds_one_reading_a_minute_waits(asking: Services) -> None:
    for second in range(0, 120, 5):
        red = {"color": "Red", "smoothed_gravity": f"1.0{40 + second % 10}", "smoothed_temp": "68"}
        body = json.dumps({"tiltbridge_junior": "1", "tilts": [red]})
        await take(asking, body, ARRIVAL + second, driver="tiltbridge_junior")
    assert (asking.stats.waiting, asking.stats.thinned) == (2, 22)
    [name] = await waiting(asking)
    assert await accept(asking, name.device_key) == 2


@pytest.mark.parametrize("place", range(3))
async def test_a_process_that_ends_while_accepting_stores_each_reading_once(
    asking: Services, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    for number in range(3):
        await take(asking, ispindel(1, gravity=f"12.{number}"), ARRIVAL + number * INTERVAL_S)
    [name] = await waiting(asking)
    store, taken = asking.intake.store_report, 0

    async def ends(*arguments: Any, **more: Any) -> None:
        nonlocal taken
        await store(*arguments, **more)
        taken += 1
        if taken > place:
            raise asyncio.CancelledError

    async def nothing(_: Sequence[int]) -> None:
        pass

    with monkeypatch.context() as patch:
        patch.setattr(asking.intake, "store_report", ends)
        patch.setattr(asking.store.inbox, "remove", nothing)
        with pytest.raises(asyncio.CancelledError):
            await asking.acceptance.accept([name.id])
    await asking.acceptance.resume()
    assert [line["gravity"] for line in await lines(asking)] == ["12.0", "12.1", "12.2"]
    assert await waiting(asking) == []


async def test_what_arrives_while_a_device_is_accepted_stays_behind(
    asking: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        await take(asking, ispindel(1, gravity=f"12.{number}"), ARRIVAL + number * INTERVAL_S)
    [name] = await waiting(asking)
    store, order = asking.intake.store_report, []

    async def meanwhile(payload: Payload, *arguments: Any, **more: Any) -> None:
        order.append(payload.received_at)
        await store(payload, *arguments, **more)
        if len(order) == 1:
            await take(asking, ispindel(1, gravity="12.9"), ARRIVAL + 9 * INTERVAL_S)
            await take(asking, ispindel(1, gravity="12.8"), ARRIVAL + 8 * INTERVAL_S, source="192.168.1.38")

    monkeypatch.setattr(asking.intake, "store_report", meanwhile)
    assert (await asking.acceptance.accept([name.id])).stored == 5
    assert order == sorted(order)
    assert [line["gravity"] for line in await lines(asking)] == ["12.0", "12.1", "12.2", "12.8", "12.9"]
    assert await waiting(asking) == []


async def test_a_refused_name_is_counted_and_not_kept_for_thirty_days(
    asking: Services, clock: FakeClock
) -> None:
    await take(asking, ispindel(1))
    [name] = await waiting(asking)
    assert await asking.intake.inbox.refuse([name.id]) == 1
    for at in (ARRIVAL + INTERVAL_S, ARRIVAL + 2 * INTERVAL_S):
        await take(asking, ispindel(1), at, source="192.168.1.99")
    assert (asking.stats.refused, await waiting(asking), await lines(asking)) == (2, [], [])
    asking.intake.inbox.asks = False
    await take(asking, ispindel(1), ARRIVAL + 3 * INTERVAL_S)
    assert (asking.stats.refused, await lines(asking)) == (3, [])
    clock.advance(REFUSED_S)
    await take(asking, ispindel(1), ARRIVAL + REFUSED_S)
    assert len(await lines(asking)) == 1


async def test_a_refusal_is_remembered_over_a_restart_and_can_be_taken_back(asking: Services) -> None:
    await take(asking, ispindel(1))
    [name] = await waiting(asking)
    await asking.intake.inbox.refuse([name.id])
    asking.intake.inbox._refused.clear()
    await asking.intake.start()
    await take(asking, ispindel(1), ARRIVAL + INTERVAL_S)
    assert await waiting(asking) == []
    [refused] = await asking.store.inbox.refused()
    assert await asking.intake.inbox.allow(refused.id)
    assert not await asking.intake.inbox.allow(refused.id)
    await take(asking, ispindel(1), ARRIVAL + 2 * INTERVAL_S)
    assert len(await waiting(asking)) == 1


BOUNDS = (
    ("INBOX_NAMES", 2, [1, 2], 3, "192.168.1.40"),
    ("INBOX_NAMES_OF_SOURCE", 2, [1, 2], 3, SOURCE),
    ("INBOX_READINGS", 2, [1, 1], 1, SOURCE),
    ("INBOX_BYTES", 2_500, [1], 1, SOURCE),
)
"""A bound, its value, the devices that fit, a device that does not, and its source."""


@each("name, value, fit, beyond, source", BOUNDS)
async def test_what_does_not_fit_gets_no_yes_and_the_others_stay(
    asking: Services, name: str, value: int, fit: list[int], beyond: int, source: str
) -> None:
    before = {entry.id for entry in await waiting(asking)}
    await asking.intake.inbox.refuse(sorted(before))
    for refused in await asking.store.inbox.refused():
        await asking.intake.inbox.allow(refused.id)
    at = ARRIVAL + 10 * INTERVAL_S * len(asking.stats.parts)
    asking.stats.parts[name] = ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_inbox, name, value)
        for place, number in enumerate(fit):
            await take(asking, ispindel(number), at + place * INTERVAL_S)
        not_stored = asking.stats.not_stored
        for _ in range(2):
            with pytest.raises(ShareUsedUp):
                await take(asking, ispindel(beyond), at + 5 * INTERVAL_S, source=source)
        assert asking.stats.not_stored == not_stored + 2
    assert sum(entry.readings for entry in await waiting(asking)) == len(fit)
    await take(asking, ispindel(beyond), at + 5 * INTERVAL_S, source=source)
    assert sum(entry.readings for entry in await waiting(asking)) == len(fit) + 1


async def test_a_full_inbox_keeps_no_known_device_out(services: Services, monkeypatch: Any) -> None:
    await take(services, tilts("RED"))
    services.intake.inbox.asks = True
    monkeypatch.setattr(sqlite_inbox, "INBOX_NAMES", 1)
    with pytest.raises(ShareUsedUp):
        await take(services, tilts("RED", "BLUE", "PINK", sg="1.044"), ARRIVAL + INTERVAL_S)
    assert [line["gravity"] for line in await lines(services)] == ["1.045", "1.044"]
    assert [name.device_key for name in await waiting(services)] == ["tilt:BLUE"]


async def test_a_reading_that_the_disk_did_not_take_may_come_again_at_once(
    asking: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> list[WaitingName]:
        raise StoreUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(asking.store.inbox, "add", fails)
        with pytest.raises(StoreUnavailable):
            await take(asking, ispindel(1))
    await take(asking, ispindel(1))
    assert (asking.stats.not_stored, asking.stats.waiting) == (1, 1)


async def test_two_yeses_at_once_store_each_reading_once(asking: Services) -> None:
    for number in range(3):
        await take(asking, ispindel(1, gravity=f"12.{number}"), ARRIVAL + number * INTERVAL_S)
    numbers = [name.id for name in await waiting(asking)]
    both = await asyncio.gather(asking.acceptance.accept(numbers), asking.acceptance.accept(numbers))
    assert sorted(done.stored for done in both) == [0, 3]
    assert len(await lines(asking)) == 3


async def test_a_yes_that_another_yes_overtakes_stores_nothing(
    asking: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    await take(asking, ispindel(1))
    numbers = [name.id for name in await waiting(asking)]
    accept = asking.store.inbox.accept

    async def overtaken(name_ids: Sequence[int]) -> None:
        monkeypatch.undo()
        assert (await asking.acceptance.accept(name_ids)).stored == 1
        await accept(name_ids)

    monkeypatch.setattr(asking.store.inbox, "accept", overtaken)
    assert (await asking.acceptance.accept(numbers)).stored == 0
    assert len(await lines(asking)) == 1


async def test_names_that_are_not_there_are_refused(asking: Services) -> None:
    await take(asking, tilts("RED", "BLUE"))
    numbers = [name.id for name in await waiting(asking)]
    with pytest.raises(NotFound):
        await asking.acceptance.accept([999])
    with pytest.raises(InvalidInput, match="several devices"):
        await asking.acceptance.accept(numbers)
    with pytest.raises(NotFound):
        await asking.intake.inbox.refuse([numbers[0], 999])
    assert len(await waiting(asking)) == 2


async def test_a_device_with_its_own_key_reports_with_it_only(services: Services) -> None:
    await take(services, ispindel(1))
    own = await bind_key(services, "spindle1")
    at = ARRIVAL + INTERVAL_S
    await take(services, ispindel(1, gravity="12.1"), at)
    await take(services, ispindel(1, gravity="12.2"), at + 1, key=key_for("", "for all"))
    await take(services, ispindel(1, gravity="12.3"), at + 2, key=own)
    # Neither under another name with the device's id, nor under another id with its name.
    await take(services, ispindel(1, name="other", gravity="12.4"), at + 3)
    await take(services, ispindel(9, name="spindle1", gravity="12.5"), at + 4)
    assert [line["gravity"] for line in await lines(services)] == ["12.5", "12.3"]
    found = {(name.device_key, name.reason, name.readings) for name in await waiting(services)}
    assert found == {
        ("ispindel:1", WaitReason.WITHOUT_KEY, 3),
        ("ispindel:9", WaitReason.WITHOUT_KEY, 1),
    }
    assert await accept(services, "ispindel:1") == 3
    assert len(await lines(services)) == 5
    await take(services, ispindel(1, gravity="12.6"), at + INTERVAL_S)
    assert ("ispindel:1", 1) in {(name.device_key, name.readings) for name in await waiting(services)}


async def test_a_device_that_is_renamed_keeps_its_key(services: Services) -> None:
    await take(services, ispindel(1))
    own = await bind_key(services, "spindle1")
    for place in (1, 2):
        at = ARRIVAL + place * INTERVAL_S
        await take(services, ispindel(1, name="renamed", gravity=f"12.{place}"), at, key=own)
    await take(services, ispindel(1, name="renamed", gravity="12.9"), ARRIVAL + 3 * INTERVAL_S)
    (device,) = await services.store.devices.all()
    await services.reprocessor.configure(device, replace(device.settings, temp_unit="F"), lambda _: None)
    (device,) = await services.store.devices.all()
    assert device.name == "spindle1"
    assert [line["name"] for line in await lines(services)] == ["spindle1", "renamed", "renamed"]
    assert [name.reason for name in await waiting(services)] == [WaitReason.WITHOUT_KEY]


async def test_a_key_of_one_device_reports_for_no_other(services: Services) -> None:
    await take(services, ispindel(2))
    key = await bind_key(services, "spindle1")
    await take(services, ispindel(2, gravity="12.1"), ARRIVAL + INTERVAL_S, key=key)
    await take(services, ispindel(3), ARRIVAL + INTERVAL_S, key=key)
    assert len(await lines(services)) == 1
    reasons = {(name.device_key, name.reason) for name in await waiting(services)}
    assert reasons == {("ispindel:2", WaitReason.OTHER_KEY), ("ispindel:3", WaitReason.OTHER_KEY)}


async def test_a_new_device_with_its_own_key_need_not_wait(asking: Services) -> None:
    await take(asking, ispindel(1), key=await bind_key(asking, "spindle1"))
    assert (len(await lines(asking)), await waiting(asking)) == (1, [])


async def bind(services: Services, source: str) -> None:
    (device,) = await services.store.devices.all()
    settings = replace(device.settings, source=source)
    await services.reprocessor.configure(device, settings, lambda _: None)


ADDRESSES = (
    ("192.168.1.37", "192.168.1.37", True),
    ("192.168.1.37", "192.168.1.99", False),
    ("192.168.1.37", "", False),
    ("fd00::1:2:3:4", "fd00::1:9:9:9", True),
    ("fd00:0:0:1::2", "fd00:0:0:2::2", False),
    ("", "192.168.1.99", True),
)
"""The address that a device is bound to, the address of a reading, and whether the reading is stored."""


async def test_a_device_that_is_bound_to_an_address_reports_from_there_only(services: Services) -> None:
    await take(services, ispindel(1))
    stored, waited = 1, 0
    for place, (bound, source, is_stored) in enumerate(ADDRESSES, 1):
        await bind(services, bound)
        await take(services, ispindel(1), ARRIVAL + place * INTERVAL_S, source=source)
        stored, waited = stored + is_stored, waited + (not is_stored)
        found = (len(await lines(services)), sum(name.readings for name in await waiting(services)))
        assert found == (stored, waited), (bound, source)
    assert {name.reason for name in await waiting(services)} == {WaitReason.OTHER_ADDRESS}
    (device,) = await services.store.devices.all()
    assert not device.reprocessing
    assert await accept(services, "ispindel:1") == waited


async def test_refusing_a_stranger_keeps_the_device_itself(services: Services) -> None:
    await take(services, ispindel(1))
    await bind(services, SOURCE)
    await take(services, ispindel(1, gravity="12.1"), ARRIVAL + INTERVAL_S, source="192.168.1.99")
    [name] = await waiting(services)
    await services.intake.inbox.refuse([name.id])
    for place, source in enumerate(("192.168.1.99", SOURCE, "192.168.1.98"), 2):
        await take(services, ispindel(1, gravity="12.2"), ARRIVAL + place * INTERVAL_S, source=source)
    assert (services.stats.refused, len(await lines(services))) == (1, 2)
    assert [name.source for name in await waiting(services)] == ["192.168.1.98"]


async def test_quarantine_is_no_way_round_the_inbox(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.delitem(drivers.BY_NAME, "ispindel")
        await take(services, ispindel(1))
    services.intake.inbox.asks = True
    run = Replay(services.store, services.intake, services.notices)
    assert (await run.run(no_progress)).understood == 1
    assert [name.device_key for name in await waiting(services)] == ["ispindel:1"]
    assert await accept(services, "ispindel:1") == 1
    assert (await lines(services))[0]["created_at"][11:19] == "09:30:00"


async def test_what_came_while_the_clock_was_in_doubt_is_accepted_once_it_is_known(
    asking: Services,
) -> None:
    boot = await asking.store.retiming.boot("a boot")
    body = ispindel(1).encode()
    name = WaitingName("ispindel:1", SOURCE, WaitReason.NEW, "ispindel", "1", "spindle1", 1)
    payload = Payload(body, 1_000_000.0, "http /ingest", source=SOURCE)
    assert await asking.store.inbox.add(payload, [name], BootTime(boot.id, 5_000)) == []
    [waits] = await waiting(asking)
    done = await asking.acceptance.accept([waits.id])
    assert (done.stored, done.left) == (0, 1)
    assert "clock" in next(iter(done.reasons))
    await asking.retiming.settle(boot.id, ARRIVAL * 1000)
    await asking.acceptance.resume()
    assert (await lines(asking))[0]["created_at"][11:19] == "09:30:05"
