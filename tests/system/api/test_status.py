"""`/manage/status` and `/metrics`: counts that add up; and keys that do not fit, which are soon too many."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.domain.key import ALL_SCOPES
from gateway.errors import StoreUnavailable
from gateway.http import streaming
from gateway.manage import status
from gateway.services.wrong_keys import WRONG_KEY_BURST
from tests.system.api.everything import Running, fill, running

NEIGHBOUR = "127.0.0.2"
"""An address of this machine that does not count as loopback."""

TILT = {"color": "Red", "SG": "1.040", "Temp": "68"}

Json = dict[str, Any]


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


async def status_of(service: Running) -> Json:
    """The status; everything in it that must add up does."""
    answer = await service.ask("GET", "/manage/status")
    assert answer.status == 200, answer.body
    page: Json = json.loads(answer.body)
    since, totals = page["since_start"], page["totals"]
    outcomes = ("stored", "duplicates", "thinned", "quarantined", "waiting", "refused", "not_stored")
    assert since["accepted"] == sum(since[name] for name in outcomes)
    assert totals["stored"] == sum(totals[name] for name in totals if name != "stored")
    for target in page["targets"]:
        ended = ("forwarded", "refused", "pending", "not_sent")
        assert target["readings"] == sum(target[name] for name in ended)
    return page


async def metrics_of(service: Running) -> dict[str, float]:
    answer = await service.ask("GET", "/metrics")
    assert answer.status == 200
    return {
        sample.name + "".join(f"|{value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def spindle(number: int, temperature: float = 20.0) -> str:
    return json.dumps(
        {"name": f"s{number}", "ID": number, "angle": 40, "temperature": temperature, "gravity": 12.5}
    )


async def mixed_load(service: Running) -> None:
    """Twelve readings of four devices, three of which come twice; garbage; a bridge that is too eager."""
    for step in range(3):
        for number in range(4):
            assert (await service.ask("POST", "/ingest", "", data=spindle(number, 20 + step))).status == 200
    for number in range(3):
        await service.ask("POST", "/ingest", "", data=spindle(number, 22))
    for garbage in (b"\xff\x00", b"{", b'{"hello": "world"}', b"[1, 2"):
        assert (await service.ask("POST", "/ingest", "", data=garbage)).status == 200
    for sg in ("1.040", "1.041", "1.042"):
        await service.ask("POST", "/ingest/tilt", "", data=TILT | {"SG": sg})


async def test_a_mixed_load_adds_up_to_the_last_reading(service: Running) -> None:
    await mixed_load(service)
    page = await status_of(service)
    since = page["since_start"]
    assert (since["received"], since["accepted"]) == (22, 22)
    assert (since["stored"] + since["thinned"], since["duplicates"], since["quarantined"]) == (15, 3, 4)
    assert page["totals"]["stored"] == page["totals"]["unassigned"] == since["stored"]
    assert page["quarantine"]["items"] == 4


async def test_what_the_store_cannot_take_is_counted_as_such(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.ask("POST", "/ingest", "", data=spindle(1))

    async def refuse(*_: object) -> None:
        raise StoreUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(service.services.store, "take", refuse)
        patch.setattr(service.services.store.quarantine, "add", refuse)
        for body in (spindle(1, 21), spindle(2), "garbage"):
            assert (await service.ask("POST", "/ingest", "", data=body)).status == 503
    since = (await status_of(service))["since_start"]
    assert (since["accepted"], since["stored"], since["not_stored"]) == (4, 1, 3)


async def test_the_status_has_what_a_dashboard_needs(service: Running) -> None:
    await fill(service.services, "owner", "MARK")
    service.services.stats.parts["mqtt"] = "connected"
    service.services.stats.parts["upstream https://a.example"] = "waits to try again: timeout"
    service.services.stats.targets["https://a.example"] = True
    page = await status_of(service)
    assert page["parts"]["mqtt"] == "connected"
    assert page["targets"][0]["state"] == "waits to try again: timeout"
    assert page["totals"]["kept_here"] == 1
    assert page["sqlite"]["version"].count(".") == 2
    assert page["sqlite"]["wal_reset_bug"] is (page["sqlite"]["words"] != "ok")
    assert 0 < page["disk"]["free_bytes"] < page["disk"]["disk_bytes"]
    assert service.key not in str(page)


async def test_counting_that_takes_long_is_not_done_for_every_look(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "REST_FACTOR", 1e9)
    before = await status_of(service)
    await service.ask("POST", "/ingest", "", data=spindle(1))
    after = await status_of(service)
    assert after["totals"] == before["totals"]
    assert after["since_start"]["stored"] == 1


async def test_metrics_say_the_same_as_the_status(service: Running) -> None:
    await mixed_load(service)
    service.services.stats.targets["https://a.example"] = True
    service.services.stats.say("mqtt", "waiting for the store", well=False)
    service.services.stats.say("tcp", "listening on x")
    service.services.stats.mqtt.messages[1] = 3
    service.services.stats.mqtt.refused["crowd"] += 2
    page, metrics = await status_of(service), await metrics_of(service)
    assert (page["mqtt"]["messages"], page["mqtt"]["refused"]) == ([0, 3, 0], {"crowd": 2})
    assert metrics["hydrometer_gateway_mqtt_messages_total|1"] == 3
    assert metrics["hydrometer_gateway_mqtt_refused_total|crowd"] == 2
    for name, value in page["since_start"].items():
        assert metrics[f"hydrometer_gateway_{name}_total"] == value, name
    assert metrics["hydrometer_gateway_readings"] == page["totals"]["stored"]
    assert metrics["hydrometer_gateway_readings_by_state|unassigned"] == page["totals"]["unassigned"]
    assert metrics["hydrometer_gateway_target_readings|pending|https://a.example"] == 0
    assert metrics["hydrometer_gateway_part_ok|mqtt"] == 0
    assert metrics["hydrometer_gateway_part_ok|tcp"] == 1
    assert page["in_trouble"] == ["mqtt"]
    assert metrics["hydrometer_gateway_quarantine_items"] == 4


@pytest.mark.parametrize(
    ("path", "allowed"), [("/metrics", 200), ("/manage/status", 401), ("/v1/recipes", 401)]
)
async def test_prometheus_may_send_the_key_its_own_way(service: Running, path: str, allowed: int) -> None:
    reading = await service.services.access.add("prometheus", frozenset({"read"}))
    for key, status_code in ((reading, allowed), ("hg_wrong", 401)):
        headers = {"Authorization": f"Bearer {key}"}
        assert (await service.ask("GET", path, "", headers=headers)).status == status_code


async def test_other_accounts_see_none_of_it(service: Running) -> None:
    await service.services.access.add_account("other")
    key = await service.services.access.add("theirs", ALL_SCOPES, "other")
    assert (await service.ask("GET", "/manage/status", key)).status == 403
    answer = await service.ask("GET", "/metrics", key)
    assert (answer.status, answer.body) == (200, b"")


async def ask_from(service: Running, address: str, key: str) -> tuple[int, int | None]:
    """Status and seconds to wait, for a request from this address."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0))
    async with (
        aiohttp.ClientSession(connector=connector) as http,
        http.get(service.client.make_url("/v1/recipes"), headers={"X-API-KEY": key}) as answer,
    ):
        wait = answer.headers.get("Retry-After")
        return answer.status, None if wait is None else int(wait)


async def test_wrong_keys_are_soon_too_many_and_the_right_one_always_passes(
    service: Running, caplog: pytest.LogCaptureFixture
) -> None:
    burst = int(WRONG_KEY_BURST)
    answers = [await ask_from(service, NEIGHBOUR, f"hg_{n}") for n in range(burst + 5)]
    assert answers[:burst] == [(401, None)] * burst
    for code, wait in answers[burst:]:
        assert code == 429
        assert wait is not None
        assert 1 <= wait <= 6
    assert (await ask_from(service, NEIGHBOUR, service.key))[0] == 200
    assert (await ask_from(service, NEIGHBOUR, ""))[0] == 429
    assert (await ask_from(service, "127.0.0.3", "hg_1"))[0] == 401
    assert service.services.stats.wrong_keys == burst + 7
    assert [record.getMessage() for record in caplog.records] == [
        f"keys: {address} sent a key that does not fit" for address in (NEIGHBOUR, "127.0.0.3")
    ]
    assert "hg_" not in caplog.text


async def test_wrong_keys_from_this_machine_are_bounded_and_its_right_key_always_passes(
    service: Running,
) -> None:
    codes = [
        (await service.ask("GET", "/v1/recipes", "hg_no")).status for _ in range(int(WRONG_KEY_BURST) + 5)
    ]
    assert codes == [401] * int(WRONG_KEY_BURST) + [429] * 5
    assert (await service.ask("GET", "/v1/recipes", service.key)).status == 200


async def test_long_answers_of_one_source_take_turns(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, most = 0, 0
    whole = streaming._streamed

    async def counted(*arguments: Any) -> Any:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        try:
            return await whole(*arguments)
        finally:
            under_way -= 1

    monkeypatch.setattr(streaming, "_streamed", counted)
    mine = await fill(service.services, "owner", "MARK")
    path = mine.path("/v1/fermentation/{brew_session_id}")
    answers = await asyncio.gather(*(service.ask("GET", path) for _ in range(8)))
    assert {answer.status for answer in answers} == {200}
    assert most == streaming.READS_PER_SOURCE


async def test_mqtt_topics_that_came_to_nothing(service: Running) -> None:
    assert (await status_of(service))["unread_topics"] == {"messages": {}, "others": 0}
    service.services.stats.unread.count("attic/wort")
    assert (await status_of(service))["unread_topics"] == {"messages": {"attic/wort": 1}, "others": 0}
