"""The listener with a bridge that a test fills by hand: what becomes a payload, what is only acknowledged."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import cast

import pytest

from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.errors import QuotaFull, ShareUsedUp, StoreUnavailable
from gateway.stats import Stats
from gateway.store.protocol import Store
from gateway.transports import mqtt
from gateway.transports.mqtt import MqttIngest
from gateway.transports.mqtt_link import Message
from gateway.transports.paho_bridge import Bridge
from gateway.transports.topics import TopicMap
from tests.cases import each
from tests.payloads import ispindel_mqtt
from tests.system.transports.conftest import FakeIntake, wait_for

CHOSEN = ("brewery/bpl1/+=brewpiless", "brewery/bpl1=brewpiless", "beer/SG/=vat 1:gravity")


class FakeBridge:
    """Hands over what `put` was given; notes acknowledgements as they are asked for."""

    def __init__(self) -> None:
        self.state = "connected"
        self.is_receiving = True
        self.on_state = None
        self.copies = True
        self.can_refuse, self.store_refuses = True, False
        self.refused: list[Message] = []
        self.acknowledged: list[Message] = []
        self._batches: asyncio.Queue[list[Message]] = asyncio.Queue()

    def put(self, *messages: Message) -> None:
        self._batches.put_nowait(list(messages))

    async def next_batch(self, timeout_s: float | None = None) -> list[Message]:
        try:
            return await asyncio.wait_for(self._batches.get(), timeout_s)
        except TimeoutError:
            return []

    def ack(self, messages: list[Message]) -> None:
        self.acknowledged += messages

    def refuse(self, messages: list[Message]) -> bool:
        self.refused += messages
        return self.can_refuse

    def note_store(self, *, refuses: bool) -> None:
        self.store_refuses = refuses


class FakeReadings:
    """Stored readings of one device."""

    def __init__(self) -> None:
        self.deliveries: dict[str, list[tuple[bytes, str]]] = {}
        self.asked: list[str] = []
        self.readings = self

    async def latest_deliveries(self, device_key: str) -> list[tuple[bytes, str]]:
        self.asked.append(device_key)
        return self.deliveries.get(device_key, [])


class Parts:
    """A listener and all that it talks to."""

    def __init__(self, *, is_ordinary: bool) -> None:
        self.bridge, self.store, self.stats = FakeBridge(), FakeReadings(), Stats()
        self.intake = FakeIntake(is_ordinary=is_ordinary)
        self.listener = MqttIngest(
            cast(Bridge, self.bridge),
            TopicMap(CHOSEN),
            self.intake,
            cast(Store, self.store),
            self.stats,
            SystemClock(),
        )


@pytest.fixture(params=[True, False], ids=["ordinary", "in steps"])
async def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Parts]:
    monkeypatch.setattr(mqtt, "RETRY_FIRST_S", 0.01)
    parts = Parts(is_ordinary=request.param)
    task = asyncio.create_task(parts.listener.run())
    yield parts
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def message(topic: str, text: str = "{}", mid: int = 1, *, dup: bool = False) -> Message:
    return Message(topic, text.encode(), 1 if mid else 0, False, dup, mid, received_at=100.0 + mid)


def fragments(name: str = "red", *, dup: bool = False) -> list[Message]:
    return [message(topic, text, mid, dup=dup) for mid, (topic, text) in enumerate(ispindel_mqtt(name), 12)]


async def test_one_json_per_message(parts: Parts) -> None:
    one = message("hydrometer/red", '{"gravity": 1.05}', 7)
    parts.bridge.put(one)
    await wait_for(lambda: parts.bridge.acknowledged)
    assert parts.intake.stored == [
        Payload(b'{"gravity": 1.05}', 107.0, "mqtt hydrometer/red", driver=None, label="red", delivery="7")
    ]


async def test_quality_of_service_0_has_no_delivery_id(parts: Parts) -> None:
    parts.bridge.put(message("hydrometer/red", mid=0))
    await wait_for(lambda: parts.intake.stored)
    assert parts.intake.stored[0].delivery is None


async def test_nothing_is_acknowledged_before_the_intake_returns(parts: Parts) -> None:
    parts.intake.open.clear()
    messages = [*fragments(), message("hydrometer/blue", mid=30)]
    parts.bridge.put(*messages)
    await wait_for(lambda: len(parts.intake.payloads) == 2)
    assert parts.bridge.acknowledged == []
    parts.intake.open.set()
    await wait_for(lambda: len(parts.bridge.acknowledged) == len(messages))
    assert {one.mid for one in parts.bridge.acknowledged} == {one.mid for one in messages}


async def test_values_wait_unacknowledged_until_their_reading_is_complete(parts: Parts) -> None:
    *first, last = fragments()
    parts.bridge.put(*first)
    parts.bridge.put(message("hydrometer/blue", mid=30))
    await wait_for(lambda: parts.bridge.acknowledged)
    assert [one.mid for one in parts.bridge.acknowledged] == [30]
    parts.bridge.put(last)
    await wait_for(lambda: len(parts.bridge.acknowledged) == 8)


async def test_silence_completes_a_reading(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.transports.assembler.QUIET_BEFORE_LAST_S", 0.05)
    parts.bridge.put(*fragments()[:-1])
    await wait_for(lambda: parts.intake.stored)
    assert "RSSI" not in json.loads(parts.intake.stored[0].body)


@pytest.mark.parametrize(
    "odd",
    [
        message("hydrometer/red", "unavailable"),
        message("beer/SG/", "nan", 0),
        replace(message("brewery/bpl1/gravity", "1.05"), retain=True),
        replace(message("ispindel/red/gravity", "12"), retain=True),
        message("hydrometer/red", ""),
        message("ispindel/red/gravity", ""),
        message("", "{}"),
        message("homeassistant/sensor/x/config", "{}"),
    ],
)
async def test_what_carries_no_new_reading_is_acknowledged_and_that_is_all(
    parts: Parts, odd: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.transports.assembler.QUIET_S", 0.05)
    parts.bridge.put(odd)
    await wait_for(lambda: parts.bridge.acknowledged)
    assert parts.intake.payloads == []


async def test_a_retained_reading_is_marked_and_the_intake_decides(parts: Parts) -> None:
    parts.bridge.put(replace(message("brewery/bpl1", '{"beerTemp":18.4}'), retain=True))
    parts.bridge.put(message("brewery/bpl1", '{"beerTemp":18.5}'))
    await wait_for(lambda: len(parts.bridge.acknowledged) == 2)
    assert [(p.driver, p.label, p.retained) for p in parts.intake.stored] == [
        ("brewpiless", "bpl1", True),
        ("brewpiless", "bpl1", False),
    ]


async def test_a_copy_for_a_second_subscription_is_acknowledged_and_that_is_all(parts: Parts) -> None:
    pairs = [(one, replace(one, mid=one.mid + 50)) for one in [message("hydrometer/red"), *fragments()]]
    parts.bridge.put(*(one for pair in pairs for one in pair))
    await wait_for(lambda: len(parts.bridge.acknowledged) == 16)
    assert [payload.delivery for payload in parts.intake.stored] == ["1", "12,13,14,15,16,17,18"]
    assert parts.listener._assembler.next_due() is None


@pytest.mark.parametrize(
    "again",
    [
        replace(message("ispindel/red/tilt", "44"), received_at=101.0 + mqtt.COPY_S),
        replace(message("ispindel/red/tilt", "45")),
        replace(message("ispindel/red/tilt", "44"), connection=1),
    ],
)
async def test_what_only_looks_like_a_copy_begins_the_next_reading(parts: Parts, again: Message) -> None:
    parts.bridge.put(message("ispindel/red/tilt", "44"), again, message("ispindel/red/RSSI", "-61"))
    await wait_for(lambda: len(parts.intake.stored) == 2)


async def test_a_value_that_the_user_named_joins_its_devices_reading(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.transports.assembler.QUIET_S", 0.05)
    parts.bridge.put(message("beer/SG/", "1.045", 0))
    await wait_for(lambda: parts.intake.stored)
    payload = parts.intake.stored[0]
    assert (payload.driver, payload.label, payload.body) == ("esphome", "vat 1", b'{":gravity":"1.045"}')


@each("refusal, can_refuse", [(QuotaFull, True), (ShareUsedUp, True), (QuotaFull, False)])
async def test_what_there_is_no_room_for_is_refused_at_once_or_waits(
    refusal: type[StoreUnavailable], can_refuse: bool, parts: Parts
) -> None:
    parts.bridge.can_refuse = can_refuse
    parts.bridge.refused, parts.bridge.acknowledged = [], []
    parts.intake.refusal, parts.intake.refusals = refusal, 1
    sent = message("hydrometer/red", f"{refusal} {can_refuse}")  # a copy would be left out
    parts.bridge.put(sent)
    await wait_for(lambda: parts.bridge.refused == [sent])
    if not can_refuse:
        await wait_for(lambda: parts.bridge.acknowledged == [sent])
    assert parts.bridge.store_refuses is False


async def test_a_share_that_is_used_up_does_not_hold_up_the_other_devices_of_a_broker(
    parts: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    parts.bridge.can_refuse = False
    parts.intake.refusal, parts.intake.refusals = ShareUsedUp, 1
    invented, honest = message("hydrometer/x"), message("hydrometer/red", '{"a":1}', mid=2)
    parts.bridge.put(invented)
    await wait_for(lambda: parts.bridge.acknowledged == [invented])
    parts.bridge.put(honest)
    await wait_for(lambda: parts.bridge.acknowledged == [invented, honest])
    assert [payload.body for payload in parts.intake.stored] == [b'{"a":1}']
    assert "1 of the broker's readings are dropped" in caplog.text


async def test_what_the_store_refuses_is_tried_again_and_acknowledged_then(
    parts: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    parts.intake.refusals = 5
    words: set[tuple[str, bool]] = set()
    parts.bridge.put(message("hydrometer/red", '{"a":1}', 1), message("hydrometer/red", '{"a":2}', 2))

    def acknowledged() -> bool:
        words.add((parts.stats.parts["mqtt"], "mqtt" in parts.stats.in_trouble))
        return bool(parts.bridge.acknowledged)

    await wait_for(acknowledged)
    assert words >= {("waiting for the store; messages are not acknowledged", True)}
    await wait_for(lambda: parts.stats.parts["mqtt"] == "connected")
    assert parts.stats.in_trouble == set()
    assert sorted(payload.body for payload in parts.intake.stored) == [b'{"a":1}', b'{"a":2}']
    assert all(payload.redelivered for payload in parts.intake.stored)
    assert {one.mid for one in parts.bridge.acknowledged} == {1, 2}
    assert len([record for record in caplog.records if "takes nothing" in record.getMessage()]) == 1


async def test_a_payload_that_breaks_the_intake_does_not_come_for_ever(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: Payload) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(parts.intake, "take_in_steps", broken)
    parts.intake.is_ordinary = False  # `take_now` has no such result
    parts.bridge.put(message("hydrometer/red"))
    await wait_for(lambda: parts.bridge.acknowledged)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("missing", range(7))
async def test_values_whose_reading_is_stored_are_dropped_when_sent_again(parts: Parts, missing: int) -> None:
    parts.bridge.put(*fragments())
    await wait_for(lambda: len(parts.bridge.acknowledged) == 7)
    stored = parts.intake.stored[0]
    assert stored.delivery == "12,13,14,15,16,17,18"
    parts.store.deliveries["ispindel:red"] = [(stored.body, stored.delivery)]
    parts.bridge.put(*fragments(dup=True)[missing:])
    await wait_for(lambda: len(parts.bridge.acknowledged) == 14 - missing)
    assert len(parts.intake.stored) == 1
    assert parts.store.asked == ["ispindel:red"]


async def test_stored_values_are_known_again_in_every_family(parts: Parts) -> None:
    again = [
        message("brewery/bpl1/gravity", "1.05", 7, dup=True),
        message("gravmon/red/rssi", "-61", 8, dup=True),
        message("beer/SG/", "1.05", 9, dup=True),
    ]
    parts.store.deliveries |= {
        "brewpiless:bpl1": [(b'{"gravity":"1.05"}', "7")],
        "gravitymon:red": [(b'{"rssi":"-61"}', "8")],
        "esphome:vat 1": [(b'{":gravity":"1.05"}', "9")],
    }
    parts.bridge.put(*again)
    await wait_for(lambda: len(parts.bridge.acknowledged) == 3)
    assert parts.intake.payloads == []
    assert parts.listener._assembler.next_due() is None


async def test_values_sent_again_whose_reading_is_not_stored_make_it(parts: Parts) -> None:
    parts.store.deliveries["ispindel:red"] = [
        (b'{"tilt":"44.2","RSSI":"-61"}', "2,3"),
        (b'{"angle":1}', "12"),
        (b"[]", "12"),
        (b"no json", "12"),
        (b'{"tilt":"44.2"}', "twelve"),
    ]
    parts.bridge.put(*fragments(dup=True))
    await wait_for(lambda: len(parts.bridge.acknowledged) == 7)
    (payload,) = parts.intake.stored
    assert payload.redelivered
    assert len(json.loads(payload.body)) == 7


async def test_new_messages_cost_no_look_into_the_store(parts: Parts) -> None:
    parts.bridge.put(*fragments(), message("hydrometer/red", dup=True))
    await wait_for(lambda: len(parts.bridge.acknowledged) == 8)
    assert parts.store.asked == []
