import asyncio
import json
from collections.abc import AsyncIterator
from datetime import date

import aiohttp
import pytest
from aiohttp import web

from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.errors import ConfigError
from gateway.forward.client import DETAIL_CHARS
from gateway.forward.kinds import ReadBackFailed, SessionPaused
from gateway.forward.kinds import service as import_target
from gateway.forward.kinds.service import ImportTarget
from gateway.forward.readback import Attempt
from gateway.network import sends_key_in_the_clear
from tests.clock import FakeClock
from tests.cloud import (
    KEY,
    Behaviour,
    ScriptedCloud,
    Visit,
    accept_then_hang,
    accept_then_reset,
    hang,
    html_200,
    redirect,
    reset_before,
    running,
    status,
    wrong_count,
)
from tests.system.forward.bench import row_of
from tests.system.sample_devices.servers import Heard, serving

DAY = date(2026, 2, 1)
BATCH = Batch("t", 1, 77, seqs=(1, 2), rows=(json.dumps(row_of(1)), json.dumps(row_of(2))))


@pytest.fixture
async def cloud() -> AsyncIterator[ScriptedCloud]:
    async with running(ScriptedCloud()) as cloud:
        yield cloud


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as client:
        yield client


@pytest.fixture
def target(client: aiohttp.ClientSession, cloud: ScriptedCloud) -> ImportTarget:
    return ImportTarget(client, cloud.url + "/", KEY, FakeClock(), deadline_s=0.3)


async def test_the_request_is_what_the_specification_asks(cloud: ScriptedCloud, target: ImportTarget) -> None:
    assert target.name == cloud.url
    assert await target.send(BATCH) == Outcome(DeliveryResult.ACCEPTED)
    seen = cloud.imports[0]
    assert (seen.path, dict(seen.query), seen.readings) == ("/v1/fermentation/77/import", {}, 2)
    assert seen.headers["X-API-KEY"] == KEY
    assert seen.headers["Content-Type"] == "application/json"
    assert seen.headers["Accept-Encoding"] == "identity"
    assert int(seen.headers["Content-Length"]) == len(",".join(BATCH.rows)) + 2
    assert list(seen.rows) == [json.loads(row) for row in BATCH.rows]


CERTAIN: list[tuple[Behaviour, DeliveryResult]] = [
    *((status(code), DeliveryResult.REFUSED) for code in (400, 413, 422, 402, 418, 499)),
    *((status(code), DeliveryResult.PAUSED) for code in (405, 410, 415)),
    *((status(code), DeliveryResult.KEPT) for code in (408, 425, 429)),
    *((status(code), DeliveryResult.PAUSED) for code in (401, 403, 404, 300, 301, 304, 308)),
    *((status(code), DeliveryResult.AMBIGUOUS) for code in (500, 502, 503, 504, 599, 600, 999)),
]
UNCERTAIN: list[Behaviour] = [
    accept_then_reset,
    reset_before,
    hang,
    accept_then_hang,
    html_200(),
    html_200(keep=True),
    wrong_count(1),
    wrong_count(3),
    wrong_count(0),
    status(200, body='{"message":"success","imported":{"count":2'),
    status(200, body='{"message":"success","imported":{"count":true}}'),
    status(200, body='{"message":"success","imported":{"count":2.0}}'),
    status(200, body='{"message":"success","imported":2}'),
    status(200, body='{"message":"failure","imported":{"count":2}}'),
    status(200, body='["message"]'),
    status(200, body="[" * 200_000),
    status(200, body=b"\xff\xfe\x00"),
    status(200, body=" " * (import_target.ANSWER_BYTES + 1)),
    status(200, body=b"no gzip", headers={"Content-Encoding": "gzip"}),
    status(204, body=""),
    status(200, body="null", headers={"Content-Type": "nonsense"}),
]


@pytest.mark.parametrize(("behaviour", "verdict"), CERTAIN)
async def test_every_status_has_its_ending(
    cloud: ScriptedCloud, target: ImportTarget, behaviour: Behaviour, verdict: DeliveryResult
) -> None:
    cloud.script.append(behaviour)
    outcome = await target.send(BATCH)
    assert outcome.verdict is verdict
    assert "HTTP " in outcome.reason
    assert KEY not in outcome.reason


@pytest.mark.parametrize("behaviour", UNCERTAIN)
async def test_whatever_is_no_receipt_is_ambiguous(
    cloud: ScriptedCloud, target: ImportTarget, behaviour: Behaviour
) -> None:
    cloud.script.append(behaviour)
    outcome = await target.send(BATCH)
    assert outcome.verdict is DeliveryResult.AMBIGUOUS
    assert outcome.reason


@pytest.mark.parametrize("code", [200, 201, 202])
async def test_a_receipt_in_full_is_a_success(cloud: ScriptedCloud, target: ImportTarget, code: int) -> None:
    cloud.script.append(status(code, body='{"message":"success","imported":{"count":2}}'))
    assert (await target.send(BATCH)).verdict is DeliveryResult.ACCEPTED


async def test_a_lone_reading_that_is_not_counted_is_refused(
    cloud: ScriptedCloud, target: ImportTarget
) -> None:
    cloud.script.append(wrong_count(0, keep=0))
    outcome = await target.send(Batch("t", 1, 77, seqs=(1,), rows=BATCH.rows[:1]))
    assert outcome == Outcome(DeliveryResult.REFUSED, "HTTP 200 says 0 of 1 imported")


@pytest.mark.parametrize("code", [408, 425, 429, 503])
async def test_retry_after_is_passed_on(cloud: ScriptedCloud, target: ImportTarget, code: int) -> None:
    cloud.script.append(status(code, headers={"Retry-After": "77"}))
    assert (await target.send(BATCH)).retry_after_s == 77.0


async def test_404_is_about_one_session_and_401_about_the_target(
    cloud: ScriptedCloud, target: ImportTarget
) -> None:
    cloud.unknown.add(77)
    outcome = await target.send(BATCH)
    assert isinstance(outcome, SessionPaused)
    assert outcome.reason == "HTTP 404: no records found"
    cloud.key = "another"
    outcome = await target.send(BATCH)
    assert outcome == Outcome(DeliveryResult.PAUSED, "HTTP 401: invalid api key")


async def test_a_target_that_repeats_our_key_is_not_quoted(
    cloud: ScriptedCloud, target: ImportTarget
) -> None:
    cloud.script.append(status(401, body=json.dumps({"detail": f"bad key {KEY}\nsays\x1b[31m " + "x" * 999})))
    reason = (await target.send(BATCH)).reason
    assert KEY not in reason
    assert reason.isprintable()
    assert len(reason) <= DETAIL_CHARS


async def test_nobody_listening_means_kept(client: aiohttp.ClientSession) -> None:
    async with running(ScriptedCloud()) as gone:
        url = gone.url
    outcome = await ImportTarget(client, url, KEY, FakeClock()).send(BATCH)
    assert outcome.verdict is DeliveryResult.KEPT


@pytest.mark.parametrize("url", ["http://nowhere.invalid", "https://{}", "ftp://x", "http://", "http://[::1"])
async def test_no_name_no_tls_no_url_means_kept(
    client: aiohttp.ClientSession, cloud: ScriptedCloud, url: str
) -> None:
    base_url = url.format(cloud.url.removeprefix("http://"))
    outcome = await ImportTarget(client, base_url, KEY, FakeClock(), deadline_s=5).send(BATCH)
    assert outcome.verdict is DeliveryResult.KEPT
    assert cloud.requests == []


async def test_a_handshake_that_hangs_means_kept(client: aiohttp.ClientSession) -> None:
    async def never_answer(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard.add(await reader.read(1))
        await reader.read()

    async with serving(never_answer) as heard:
        url = heard.url.replace("http:", "https:")
        outcome = await ImportTarget(client, url, KEY, FakeClock(), deadline_s=0.2).send(BATCH)
    assert outcome == Outcome(DeliveryResult.KEPT, "no answer in time")


async def begin_to_answer(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The first byte of an answer comes, the rest never."""
    await heard.add(await reader.readuntil(b"]"))
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{")
    await reader.read()


async def test_a_slow_answer_meets_the_one_deadline(client: aiohttp.ClientSession) -> None:
    async with serving(begin_to_answer) as heard:
        started = asyncio.get_running_loop().time()
        outcome = await ImportTarget(client, heard.url, KEY, FakeClock(), deadline_s=0.2).send(BATCH)
        assert asyncio.get_running_loop().time() - started < 2
    assert outcome.verdict is DeliveryResult.AMBIGUOUS


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_no_key_goes_there(
    cloud: ScriptedCloud, target: ImportTarget, code: int
) -> None:
    async with running(ScriptedCloud()) as elsewhere:
        cloud.script.append(redirect(f"{elsewhere.url}/v1/fermentation/77/import", code))
        cloud.reads.append(redirect(f"{elsewhere.url}/v1/fermentation/77", code))
        outcome = await target.send(BATCH)
        with pytest.raises(ReadBackFailed) as failure:
            await target.readings(77, (DAY, DAY))
        assert elsewhere.requests == []
    assert outcome.verdict is failure.value.outcome.verdict is DeliveryResult.PAUSED
    assert f"127.0.0.1:{elsewhere.port}" in outcome.reason


async def test_a_redirect_that_names_nobody(cloud: ScriptedCloud, target: ImportTarget) -> None:
    for location in ("/login", "http://[", "https://user:secret@far.example/x"):
        cloud.script.append(redirect(location))
        outcome = await target.send(BATCH)
        assert outcome.verdict is DeliveryResult.PAUSED
        assert "secret" not in outcome.reason


async def test_read_back_asks_for_the_days_and_gives_the_readings(
    cloud: ScriptedCloud, target: ImportTarget
) -> None:
    await target.send(BATCH)
    found = await target.readings(77, (date(2026, 1, 31), DAY))
    assert [reading["comment"] for reading in found] == ["no. 1", "no. 2"]
    days = {"from": "2026-01-31", "to": "2026-02-01"}
    assert cloud.read_backs[0].query == {**days, "skip": "0", "limit": "1000"}
    assert cloud.read_backs[0].headers["X-API-KEY"] == KEY


async def test_read_back_of_a_session_without_records_is_empty(
    cloud: ScriptedCloud, target: ImportTarget
) -> None:
    cloud.unknown.add(77)
    assert await target.readings(77, (DAY, DAY)) == []


@pytest.mark.parametrize(
    ("behaviour", "verdict"),
    [
        (status(401), DeliveryResult.PAUSED),
        (status(403), DeliveryResult.PAUSED),
        (status(404), DeliveryResult.PAUSED),
        (status(429, headers={"Retry-After": "9"}), DeliveryResult.AMBIGUOUS),
        (status(400), DeliveryResult.AMBIGUOUS),
        (status(500), DeliveryResult.AMBIGUOUS),
        (html_200(), DeliveryResult.AMBIGUOUS),
        (status(200, body='{"message":"success","readings":{}}'), DeliveryResult.AMBIGUOUS),
        (status(200, body='{"message":"success","readings":['), DeliveryResult.AMBIGUOUS),
        (status(206, body='{"message":"success","readings":[]}'), DeliveryResult.AMBIGUOUS),
        (hang, DeliveryResult.AMBIGUOUS),
        (reset_before, DeliveryResult.AMBIGUOUS),
    ],
)
async def test_a_read_back_that_cannot_be_trusted_fails(
    cloud: ScriptedCloud, target: ImportTarget, behaviour: Behaviour, verdict: DeliveryResult
) -> None:
    cloud.reads.extend([behaviour] * 2)  # aiohttp repeats a GET once when a kept connection breaks
    with pytest.raises(ReadBackFailed) as failure:
        await target.readings(77, (DAY, DAY))
    assert failure.value.outcome.verdict is verdict


async def test_members_of_a_read_back_that_are_no_readings_are_dropped(
    cloud: ScriptedCloud, target: ImportTarget
) -> None:
    cloud.reads.append(status(200, body='{"message":"success","readings":[1,null,{"name":"x"}]}'))
    assert await target.readings(77, (DAY, DAY)) == [{"name": "x"}]


async def test_a_read_back_has_a_cap(
    cloud: ScriptedCloud, target: ImportTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a page of one reading is short enough."""
    monkeypatch.setattr(import_target, "READ_BACK_BYTES", 1000)
    too_long = json.dumps({"message": "success", "readings": [], "x": "y" * 1000})
    cloud.reads.extend([status(200, body=too_long)] * 4)
    with pytest.raises(ReadBackFailed, match="more than 1000 bytes"):
        await target.readings(77, (DAY, DAY))
    assert [seen.query["limit"] for seen in cloud.read_backs] == ["1000", "100", "10", "1"]


def hold(cloud: ScriptedCloud, number: int) -> None:
    cloud.commit(77, [row_of(place) for place in range(number)])


async def test_a_read_back_of_any_size_comes_in_pages(
    cloud: ScriptedCloud, target: ImportTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_target, "READ_BACK_BYTES", 30_000)
    monkeypatch.setattr(import_target, "PAGE_READINGS", 200)
    hold(cloud, 195)
    found = await target.readings(77, (date(2026, 1, 30), DAY))
    assert [reading["comment"] for reading in found] == [f"no. {place}" for place in range(195)]
    asked = [(seen.query["skip"], seen.query["limit"]) for seen in cloud.read_backs]
    assert asked == [("0", "200"), *((str(skip), "20") for skip in range(0, 200, 20))]


async def test_what_is_of_no_concern_is_not_kept(cloud: ScriptedCloud, target: ImportTarget) -> None:
    hold(cloud, 50)
    attempt = Attempt([json.dumps(row_of(7)), json.dumps(row_of(9, oid="f" * 24))])
    found = await target.readings(77, attempt.days, attempt.concerns)
    assert [reading["comment"] for reading in found] == ["no. 7", "no. 9"]


@pytest.mark.parametrize(("cap", "asked"), [(None, 2), (40, 4), (20, 6)])
async def test_a_service_that_pages_in_its_own_way_is_read_to_its_end(
    cloud: ScriptedCloud,
    target: ImportTarget,
    monkeypatch: pytest.MonkeyPatch,
    cap: int | None,
    asked: int,
) -> None:
    """It knows no `skip`, or gives fewer at once than it was asked for."""
    monkeypatch.setattr(import_target, "PAGE_READINGS", 100)

    async def give(visit: Visit) -> web.StreamResponse:
        skip = 0 if cap is None else int(visit.request.query["skip"])
        rows = visit.cloud.kept(77)[skip : skip + (cap or 100)]
        return web.json_response({"message": "success", "readings": rows})

    hold(cloud, 100)
    cloud.reads.extend([give] * 10)
    assert len(await target.readings(77, (DAY, DAY))) == 100
    assert len(cloud.read_backs) == asked


async def test_requests_keep_to_their_number_a_minute(
    client: aiohttp.ClientSession, cloud: ScriptedCloud
) -> None:
    clock = FakeClock()
    target = ImportTarget(client, cloud.url, KEY, clock, per_minute=3)
    started, times = clock.monotonic(), []
    for _ in range(8):
        turn = asyncio.create_task(target.wait_for_slot())
        await clock.run_until(turn.done)
        times.append(clock.monotonic() - started)
        clock.advance(1.0)
    assert times == [0, 1, 2, 60, 61, 62, 120, 121]


async def test_a_key_that_is_replaced_works_at_once(
    client: aiohttp.ClientSession, cloud: ScriptedCloud
) -> None:
    keys = iter(["old", KEY])
    target = ImportTarget(client, cloud.url, lambda: next(keys), FakeClock())
    assert (await target.send(BATCH)).verdict is DeliveryResult.PAUSED
    assert (await target.send(BATCH)).verdict is DeliveryResult.ACCEPTED


async def test_a_key_that_cannot_be_read_pauses(client: aiohttp.ClientSession, cloud: ScriptedCloud) -> None:
    def gone() -> str:
        raise ConfigError("key file x: no such file")

    target = ImportTarget(client, cloud.url, gone, FakeClock())
    assert await target.send(BATCH) == Outcome(DeliveryResult.PAUSED, "key file x: no such file")
    with pytest.raises(ReadBackFailed, match="no such file"):
        await target.readings(77, (DAY, DAY))
    assert cloud.requests == []


async def test_a_body_of_several_megabytes_goes_through(
    client: aiohttp.ClientSession, cloud: ScriptedCloud
) -> None:
    rows = tuple(json.dumps({**row_of(number), "beer": "x" * 30_000}) for number in range(100))
    big = Batch("t", 1, 77, seqs=tuple(range(100)), rows=rows)
    target = ImportTarget(client, cloud.url, KEY, FakeClock())
    assert (await target.send(big)).verdict is DeliveryResult.ACCEPTED


@pytest.mark.parametrize(
    ("base_url", "exposed"),
    [
        ("http://brew.example.com", True),
        ("https://brew.example.com", False),
        ("http://localhost:8080", False),
        ("http://pi.local", False),
        ("http://nas.lan:81/x", False),
        ("http://127.0.0.1", False),
        ("http://192.168.1.4", False),
        ("http://[::1]:80", False),
        ("http://203.0.113.9", True),
        ("http://notlocalhost", True),
    ],
)
def test_a_key_over_plain_http(base_url: str, exposed: bool) -> None:
    assert sends_key_in_the_clear(base_url) is exposed
