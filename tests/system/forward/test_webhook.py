"""Webhooks as targets, against a scripted receiver; the requests of the presets against golden ones."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import InvalidInput
from gateway.forward.kinds.values import values_of
from gateway.forward.kinds.webhook import checked, presets, request_of
from gateway.outward.signing import signed_headers
from gateway.services.mapped_targets import NewMapped
from tests.receivers import Receiver, Reply
from tests.system.forward.mapped import Mapped, forwarding, mapped

URL = "webhook:hook"
KEY = "T0KEN"

ROW = json.dumps(
    {
        "id": "6977f0c000000000000003e9", "at": 1_769_900_000, "device": "ispindel:7", "device_id": 3,
        "name": "Keg \"1\"", "session": 5, "batchcode": "HP1", "sg": 1.0412, "temp_c": 19.5,
        "facts": {"battery": 3.98, "rssi": -67, "angle": 40.5}, "flags": [], "comment": "",
    }
)  # fmt: skip
"""A reading as the store gives it."""

SPINDLE = {
    "name": 'Keg "1"', "ID": "ispindel:7", "token": KEY, "interval": 900, "temperature": 19.5,
    "temp_units": "C", "gravity": 1.0412, "angle": 40.5, "battery": 3.98, "RSSI": -67.0,
}  # fmt: skip

MS = 1_769_900_000_000

GOLDEN: dict[str, tuple[str, dict[str, str], Any]] = {
    "brewspy": ("https://brew-spy.com/api/ispindel", {}, SPINDLE),
    "meadtools": ("https://meadtools.com/api/hydrometer", {}, SPINDLE),
    "bricks": (
        "https://brewbricks.com/api/iot/v1",
        {"User-Agent": "iSpindel"},
        {
            "apikey": KEY, "type": "ispindel", "brand": "hydrometer-gateway", "version": "1",
            "chipid": "c6f2bb5f1d7e8a39", "s_number_wort_0": 10.262, "s_number_temp_0": 19.5,
            "s_number_voltage_0": 3.98, "s_number_wifi_0": -67.0, "s_number_tilt_0": 40.5,
        },
    ),
    "ubidots": (
        "https://industrial.api.ubidots.com/api/v1.6/devices/ispindel-7",
        {"X-Auth-Token": KEY},
        {
            name: {"value": value, "timestamp": MS}
            for name, value in zip(
                ("gravity", "temperature", "battery", "angle", "rssi"), (1.0412, 19.5, 3.98, 40.5, -67.0),
                strict=True,
            )
        },
    ),
}  # fmt: skip


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver().listening() as server:
        yield server


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Mapped]:
    async with mapped(tmp_path) as made:
        yield made


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_the_request_of_a_preset(name: str) -> None:
    url, headers, body = GOLDEN[name]
    options = checked({"preset": name})
    asked = request_of(options, options["url"], KEY, [values_of(ROW)], 1_770_000_000)
    found = json.loads(asked.body)
    if name == "bricks":
        assert len(found["chipid"]) == 16
        body = {**body, "chipid": found["chipid"], "s_number_wort_0": found["s_number_wort_0"]}
        assert found["s_number_wort_0"] == pytest.approx(10.27, abs=0.02)
    assert (asked.url, found) == (url, body)
    assert asked.headers == {"Content-Type": "application/json", **headers}


def test_thingspeak_takes_a_form_with_the_time() -> None:
    options = checked({"preset": "thingspeak"})
    asked = request_of(options, options["url"], KEY, [values_of(ROW)], 1_770_000_000)
    assert asked.url == "https://api.thingspeak.com/update"
    assert asked.headers == {"Content-Type": "application/x-www-form-urlencoded"}
    assert asked.body.decode() == (
        "api_key=T0KEN&created_at=2026-01-31T22%3A53%3A20Z&field1=1.0412&field2=19.5&field3=40.5"
        "&field4=3.98&field5=-67.0"
    )


def test_every_preset_has_a_golden_request() -> None:
    assert {*GOLDEN, "thingspeak"} == set(presets())


def test_what_is_not_known_is_left_out() -> None:
    row = json.dumps({**json.loads(ROW), "temp_c": None, "facts": {}})
    for name in ("brewspy", "ubidots"):
        options = checked({"preset": name})
        found = json.loads(request_of(options, options["url"], KEY, [values_of(row)], 0).body)
        assert not {"temperature", "angle", "battery", "RSSI", "rssi"} & found.keys()
        assert "gravity" in found


async def test_each_reading_is_signed_and_in_order(made: Mapped, receiver: Receiver) -> None:
    await made.add("hook", "webhook", receiver.url + "/in", key="s3cret")
    await made.map("hook")
    await made.send("Red", 1.050, 1.049, 1.048)
    receiver.script = [Reply(cut=True), Reply(429, headers={"Retry-After": "5"}), Reply(503)]
    async with forwarding(made):
        await made.settled(URL, 3)
    taken = receiver.requests[3:]
    assert [request.json["sg"] for request in taken] == [1.050, 1.049, 1.048]
    assert len({request.headers["webhook-id"] for request in receiver.requests[:4]}) == 1
    assert len({request.headers["webhook-id"] for request in taken}) == 3
    for request in taken:
        assert request.path == "/in"
        assert request.headers["webhook-id"] == request.json["id"]
        at = int(request.headers["webhook-timestamp"])
        expected = signed_headers(request.json["id"], at, request.body, "s3cret")
        assert request.headers["webhook-signature"] == expected["webhook-signature"]


async def test_an_array_of_readings_has_one_id(made: Mapped, receiver: Receiver) -> None:
    await made.add("hook", "webhook", receiver.url, batch=True)
    await made.map("hook")
    await made.send("Red", 1.050, 1.049, 1.048)
    receiver.script = [Reply(cut=True)]
    async with forwarding(made):
        await made.settled(URL, 3)
    first, second, *_ = receiver.requests
    assert [each["sg"] for each in first.json] == [1.050, 1.049, 1.048]
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


async def test_a_template_and_a_least_time_between_two(made: Mapped, receiver: Receiver) -> None:
    await made.add(
        "hook", "webhook", receiver.url, body='{"v": {{sg}}, "who": "{{name}}"}', min_interval_s=10
    )
    await made.map("hook")
    await made.send('Re"d', 1.050, 1.049)
    came: list[float] = []
    receiver.reply = lambda _: came.append(made.clock.monotonic()) or Reply()  # type: ignore[func-returns-value]
    async with forwarding(made):
        await made.settled(URL, 2)
    assert [request.json for request in receiver.requests] == [
        {"v": 1.05, "who": 'Re"d'}, {"v": 1.049, "who": 'Re"d'}
    ]  # fmt: skip
    assert came[1] - came[0] >= 10


async def test_the_latest_only_and_what_is_passed_over(made: Mapped, receiver: Receiver) -> None:
    await made.add("hook", "webhook", receiver.url, latest=True, min_interval_s=900)
    await made.map("hook")
    await made.send("Red", 1.050, 1.049, 1.048)
    async with forwarding(made):
        await made.until(lambda: len(receiver.requests) == 1)

        async def counted() -> bool:
            totals = await made.totals(URL)
            return (totals.forwarded, totals.superseded, totals.pending) == (1, 2, 0)

        await made.until(counted)
    assert receiver.requests[0].json["sg"] == 1.048
    totals = await made.totals(URL)
    assert totals.readings == 3


async def test_no_earlier_readings_are_promised_where_the_latest_is_shown(made: Mapped) -> None:
    await made.send("Red", 1.050)
    await made.add("hook", "webhook", "http://127.0.0.1:9", latest=True)
    with pytest.raises(InvalidInput, match="latest reading of each device only"):
        await made.map("hook", since=0)
    with pytest.raises(InvalidInput, match="latest reading of each device only"):
        await made.services.mapped.resend("hook", 0, None)
    await made.map("hook")
    assert (await made.totals(URL)).readings == 0


async def test_an_address_that_is_a_secret_is_shown_nowhere(made: Mapped, receiver: Receiver) -> None:
    secret = receiver.url + "/stream?id=S3CRET"
    target = await made.services.mapped.add(NewMapped("hook", "webhook", secret, private_url=True))
    assert target.address == receiver.url + "/stream?..."
    assert "S3CRET" not in target.settings
    receiver.script = [Reply(403, b"no S3CRET here")]
    await made.map("hook")
    await made.send("Red", 1.05)
    async with forwarding(made):
        await made.until(lambda: made.state("hook").startswith("is paused"))
    assert "S3CRET" not in made.state("hook")
    file = made.folder / "data" / "target-keys" / "hook~url.key"
    assert file.stat().st_mode & 0o777 == 0o600
    await made.services.targets.remove("hook")
    assert not file.exists()


async def test_a_path_that_may_be_a_secret_is_not_shown_beside_a_query(
    made: Mapped, receiver: Receiver
) -> None:
    address = f"{receiver.url}/hooks/S3CRET-t0ken?wait=true"
    target = await made.services.mapped.add(NewMapped("hook", "webhook", address, private_url=True))
    assert target.address == f"{receiver.url}/..."
    assert "S3CRET" not in target.settings


async def test_our_own_port_is_refused(made: Mapped, receiver: Receiver) -> None:
    from gateway.forward.kinds.table import Surroundings

    made.services.targets.around = Surroundings(lambda: {receiver.port})
    await made.add("hook", "webhook", receiver.url)
    [finding, _] = await made.services.targets.test("hook")
    assert not finding.ok
    assert "one of this gateway" in finding.words


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"preset": "brewsby"}, "did you mean|there is no preset"),
        ({"preset": "brewspy", "latest": False}, "newest reading only"),
        ({"preset": "thingspeak", "min_interval_s": 1}, "--min-interval is 16 s"),
        ({"batch": True, "latest": True}, "--batch"),
        ({"body": "{{nonsense}}"}, "no {{nonsense}}"),
        ({"body": "{"}, "not JSON"),
        ({"content_type": "text/plain"}, "without a template"),
    ],
)
async def test_wrong_settings_are_named(made: Mapped, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        await made.add("hook", "webhook", "http://127.0.0.1:9", **options)
    assert await made.services.store.targets.all() == []


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "http://u:p@x", "http://169.254.169.254/", "http://x/{{name}}"]
)
async def test_wrong_addresses_are_refused(made: Mapped, url: str) -> None:
    with pytest.raises(InvalidInput):
        await made.add("hook", "webhook", url, key="k")
    assert not (made.folder / "data" / "target-keys" / "hook.key").exists()
