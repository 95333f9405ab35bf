"""One-value messages become readings: complete, each device its own, nothing lost or doubled."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.key import ApiKey
from gateway.transports.assembler import (
    GROUP_KEYS,
    LAST_S,
    OPEN_GROUPS,
    OPEN_S,
    QUEUE_ENTRIES,
    QUIET_BEFORE_LAST_S,
    QUIET_S,
    Assembler,
    Group,
)
from gateway.transports.mqtt_link import Message
from gateway.transports.topics import TopicMap
from tests.payloads import ISPINDEL_KEYS

GRAVITYMON_KEYS = ("tilt", "temperature", "temp_units", "battery", "gravity", "velocity", "interval", "RSSI")
HOME_ASSISTANT_KEYS = ("temperature", "gravity", "rssi", "tilt", "battery")
EMANOMETER_KEYS = ("temperature", "temp_units", "pressure", "co2", "interval", "RSSI")
SPUNDING_KEYS = (*EMANOMETER_KEYS, "num-openings", "open-time")

KEY = ApiKey("red's", 1, "hg_AbCdEfG", b"digest", frozenset({"ingest"}), 0)

TOPICS = TopicMap(["brewery/bpl1/+=brewpiless"])


def message(topic: str, text: str = "1", mid: int = 0, **more: bool | float | int) -> Message:
    made = Message(topic, text.encode(), 1 if mid else 0, retain=False, dup=False, mid=mid)
    return replace(made, **more)  # type: ignore[arg-type]


def feed(assembler: Assembler, one: Message, now: float = 0.0) -> list[Group]:
    place = TOPICS.place_of(one.topic)
    assert place is not None
    return assembler.add(place, one, now)


@pytest.mark.parametrize("keys", [ISPINDEL_KEYS, GRAVITYMON_KEYS])
def test_a_hydrometer_is_complete_a_moment_after_its_last_message(keys: tuple[str, ...]) -> None:
    assembler = Assembler()
    for mid, key in enumerate(keys, 12):
        assert feed(assembler, message(f"ispindel/red/{key}", key, mid, received_at=100.0 + mid)) == []
    assert assembler.next_due() == LAST_S
    (group,) = assembler.due(LAST_S)
    payload = group.payload()
    assert payload.body == json.dumps({key: key for key in keys}, separators=(",", ":")).encode()
    assert list(json.loads(payload.body)) == list(keys)
    assert (payload.driver, payload.label, payload.channel) == ("ispindel", "red", "mqtt ispindel/red")
    assert payload.delivery == ",".join(str(12 + n) for n in range(len(keys)))
    assert payload.received_at == 112.0
    assert not payload.redelivered
    assert assembler.next_due() is None


def test_lower_case_rssi_ends_a_reading_and_other_spellings_do_not() -> None:
    assembler = Assembler()
    for key, due in (("gravity", QUIET_BEFORE_LAST_S), ("Rssi", QUIET_BEFORE_LAST_S), ("rssi", LAST_S)):
        feed(assembler, message(f"ispindel/red/{key}"))
        assert assembler.next_due() == due


def test_keys_that_end_one_familys_reading_are_in_the_middle_of_anothers() -> None:
    assembler = Assembler()
    for key in HOME_ASSISTANT_KEYS:
        assert feed(assembler, message(f"gravmon/red/{key}", key)) == []
    (group,) = feed(assembler, message("gravmon/red/temperature", "next"))
    assert list(group.values) == list(HOME_ASSISTANT_KEYS)
    assert (group.payload().driver, group.payload().channel) == ("gravitymon", "mqtt gravmon/red")


@pytest.mark.parametrize("keys", [EMANOMETER_KEYS, SPUNDING_KEYS, GRAVITYMON_KEYS[::-1], HOME_ASSISTANT_KEYS])
def test_keys_of_the_same_burst_may_follow_the_last_one(keys: tuple[str, ...]) -> None:
    assembler = Assembler()
    for key in keys:
        assert feed(assembler, message(f"ispindel/eMano1/{key}", key)) == []
    (group,) = assembler.due(OPEN_S)
    assert tuple(json.loads(group.payload().body)) == keys


def test_a_message_with_several_values_is_as_many_values_and_acknowledged_once() -> None:
    assembler = Assembler()
    topic = "v1/user1/things/thing1/data/json"
    sent = [
        message(topic, '[{"channel": 1,"value": 70.0000},{"channel": 4,"value": 20.50}]'),
        message(topic, '[{"channel": 7,"value": 1.0456},{"channel": 9,"value": nan}]'),
    ]
    assert [feed(assembler, one) for one in sent] == [[], []]
    (group,) = feed(assembler, message(topic, '[{"channel": 1,"value": 69.0000}]'))
    assert group.payload().body == b'{"1":"70.0000","4":"20.50","7":"1.0456","9":"null"}'
    assert group.messages == sent
    (rest,) = assembler.due(OPEN_S)
    assert rest.payload().body == b'{"1":"69.0000"}'


@pytest.mark.parametrize("text", ["[", "[1]", "[]", "20.5", '{"channel":4}', '[{"value":1}]'])
def test_a_message_that_is_not_written_so_is_a_value_itself(text: str) -> None:
    assembler = Assembler()
    feed(assembler, message("v1/user1/things/thing1/data/json", text))
    (group,) = assembler.due(OPEN_S)
    assert json.loads(group.payload().body) == {"json": text}


def test_devices_of_one_name_in_two_families_are_two() -> None:
    assembler = Assembler()
    for root in ("ispindel", "gravmon", "brewery"):
        feed(assembler, message(f"{root}/bpl1/gravity", root))
    groups = assembler.due(OPEN_S)
    assert {group.payload().driver: json.loads(group.payload().body)["gravity"] for group in groups} == {
        "ispindel": "ispindel",
        "gravitymon": "gravmon",
        "brewpiless": "brewery",
    }


@pytest.mark.parametrize(
    ("texts", "nothing"),
    [
        (("nan",), True),
        ((" Unavailable\n", "null", "unknown", "NaN"), True),
        (("nan", "18.2"), False),
        (("offline",), False),
        (("x" * 100,), False),
    ],
)
def test_a_reading_is_empty_when_none_of_its_values_is_one(texts: tuple[str, ...], nothing: bool) -> None:
    assembler = Assembler()
    for place, text in enumerate(texts):
        feed(assembler, message(f"brewery/bpl1/{place}", text))
    (group,) = assembler.due(OPEN_S)
    assert group.is_empty() is nothing


def test_a_strangers_value_does_not_get_into_anothers_reading() -> None:
    assembler = Assembler()
    key = replace(KEY, device="red")
    for source, with_key in (("192.168.1.7", None), ("192.168.1.9", None), ("192.168.1.7", key)):
        feed(assembler, replace(message("ispindel/red/gravity", source), source=source, key=with_key))
    feed(assembler, replace(message("ispindel/red/RSSI", "-60"), source="192.168.1.7"))
    payloads = [group.payload() for group in assembler.due(OPEN_S)]
    assert [(payload.source, payload.key) for payload in payloads] == [
        ("192.168.1.7", None),
        ("192.168.1.9", None),
        ("192.168.1.7", key),
    ]
    assert json.loads(payloads[0].body) == {"gravity": "192.168.1.7", "RSSI": "-60"}


def test_dates_of_readings_that_were_closed_early_do_not_gather() -> None:
    assembler = Assembler()
    for _ in range(3 * QUEUE_ENTRIES):
        feed(assembler, message("brewery/bpl1/gravity"))
    assert len(assembler._queue) <= QUEUE_ENTRIES
    assert assembler.next_due() == QUIET_S
    assert len(assembler.due(QUIET_S)) == 1
    assert assembler.next_due() is None


def test_many_open_readings_cost_a_burst_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assembler = Assembler()
    for number in range(OPEN_GROUPS):
        feed(assembler, message(f"ispindel/{number}/tilt"), float(number))
    looked_at = 0
    due_at = Group.due_at

    def counted(group: Group) -> float:
        nonlocal looked_at
        looked_at += 1
        return due_at(group)

    monkeypatch.setattr(Group, "due_at", counted)
    for _ in range(100):
        assert assembler.due(0.0) == []
        assert assembler.next_due() is not None
    assert looked_at <= 200, "one reading for each question, not all that are open"


def test_a_key_that_comes_again_begins_the_next_reading() -> None:
    assembler = Assembler()
    feed(assembler, message("ispindel/red/tilt", "44"))
    feed(assembler, message("ispindel/red/gravity", "12"))
    (group,) = feed(assembler, message("ispindel/red/tilt", "45"))
    assert json.loads(group.payload().body) == {"tilt": "44", "gravity": "12"}
    (rest,) = assembler.due(OPEN_S)
    assert json.loads(rest.payload().body) == {"tilt": "45"}


def test_silence_ends_a_reading() -> None:
    assembler = Assembler()
    feed(assembler, message("gravmon/red/tilt"), now=10.0)
    feed(assembler, message("gravmon/red/gravity"), now=10.5)
    assert assembler.next_due() == 10.5 + QUIET_S
    assert assembler.due(10.4 + QUIET_S) == []
    (group,) = assembler.due(10.5 + QUIET_S)
    assert list(group.values) == ["tilt", "gravity"]


def test_a_weak_radio_may_pause_before_the_last_key() -> None:
    assembler = Assembler()
    for step, key in enumerate(ISPINDEL_KEYS):
        assert feed(assembler, message(f"ispindel/red/{key}"), now=step * 2.2) == []
        assert assembler.due(step * 2.2) == []
    (group,) = assembler.due(OPEN_S)
    assert tuple(group.values) == ISPINDEL_KEYS


def test_a_trickle_does_not_keep_a_reading_open() -> None:
    assembler = Assembler()
    for step in range(9):
        feed(assembler, message(f"gravmon/red/{step}"), now=step * 1.9)
    assert len(assembler.due(OPEN_S)) == 1


def test_without_packet_ids_there_is_no_delivery_id() -> None:
    assembler = Assembler()
    feed(assembler, message("ispindel/red/tilt"))
    (group,) = assembler.due(OPEN_S)
    assert group.payload().delivery is None


def test_missing_values_stay_text_and_bytes_that_are_no_text_do_no_harm() -> None:
    assembler = Assembler()
    for key, text in (("gravity", b"nan"), ("tilt", b"null"), ("battery", b"\xff3.9")):
        feed(assembler, replace(message(f"ispindel/red/{key}"), payload=text))
    (group,) = assembler.due(OPEN_S)
    assert json.loads(group.payload().body) == {"gravity": "nan", "tilt": "null", "battery": "\ufffd3.9"}


def test_what_is_sent_again_while_its_reading_is_open_does_not_split_it() -> None:
    assembler = Assembler()
    first = [
        message(f"ispindel/red/{key}", key, mid, connection=1) for mid, key in enumerate(("tilt", "b"), 1)
    ]
    again = [replace(one, dup=True, connection=2) for one in first]
    last = message("ispindel/red/RSSI", "-61", 3, connection=2)
    assert [group for one in [*first, *again, last] for group in feed(assembler, one)] == []
    (group,) = assembler.due(OPEN_S)
    assert list(group.values) == ["tilt", "b", "RSSI"]
    assert group.messages == [*first, *again, last]
    payload = group.payload()
    assert payload.redelivered
    assert payload.delivery == "1,2,3"


def test_open_readings_and_their_keys_are_bounded() -> None:
    assembler = Assembler()
    closed = [g for n in range(OPEN_GROUPS + 1) for g in feed(assembler, message(f"ispindel/{n}/tilt"))]
    assert [group.place.label for group in closed] == ["0"]
    keys = [g for n in range(GROUP_KEYS) for g in feed(assembler, message(f"ispindel/many/{n}"))]
    assert [len(group.values) for group in keys if group.place.label == "many"] == [GROUP_KEYS]


@given(st.data())
def test_any_interleaving_gives_each_device_its_own_complete_reading(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.text(alphabet="ab", max_size=3), min_size=1, max_size=5, unique=True))
    waiting = {
        name: list(data.draw(st.sampled_from([ISPINDEL_KEYS, GRAVITYMON_KEYS, EMANOMETER_KEYS])))
        for name in names
    }
    expected = {name: {key: f"{name} {key}" for key in keys} for name, keys in waiting.items()}
    assembler = Assembler()
    closed: list[Group] = []
    while waiting:
        name = data.draw(st.sampled_from(sorted(waiting)))
        key = waiting[name].pop(0)
        closed += feed(assembler, message(f"ispindel/{name}/{key}", f"{name} {key}"))
        if not waiting[name]:
            del waiting[name]
    closed += assembler.due(OPEN_S)
    assert {group.place.label: json.loads(group.payload().body) for group in closed} == expected
    assert len(closed) == len(names)
    assert assembler.next_due() is None
