"""InfluxDB as a target, against a scripted one that overwrites by series and time."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.calibration import Calibration
from gateway.domain.device import DeviceSettings
from gateway.errors import InvalidInput
from gateway.forward.kinds.influx import Influx
from tests.influx import FakeInflux
from tests.receivers import Reply
from tests.system.forward.mapped import Mapped, forwarding, mapped

URL = "influx:grafana"
SETTINGS = {"org": "home", "bucket": "brewery"}


@pytest.fixture
async def influx() -> AsyncIterator[FakeInflux]:
    async with FakeInflux().listening() as server:
        assert isinstance(server, FakeInflux)
        yield server


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Mapped]:
    async with mapped(tmp_path) as made:
        yield made


async def test_nothing_leaves_before_it_is_mapped_and_then_only_what_comes(
    made: Mapped, influx: FakeInflux
) -> None:
    await made.send("Red", 1.050, 1.049)
    await made.add("grafana", "influx", influx.url, **SETTINGS)
    async with forwarding(made):
        await made.send("Red", 1.048)
        await made.send("Blue", 1.060)
        assert (await made.totals(URL)).readings == 0
        assert influx.requests == []
        await made.map("grafana", "device", await made.device("Red"))
        await made.send("Red", 1.047)
        await made.send("Blue", 1.059)
        await made.settled(URL, 1)
    ((series, at),) = influx.points
    assert series == "hydrometer,device=ispindel:283"
    fields = influx.points[series, at].split(",")
    assert fields == ["sg=1.047", "temp_c=20.25", "battery_v=3.98", "angle=40.5"]
    assert 0 <= made.clock.now() - at / 1_000_000 <= 120
    request = influx.requests[0]
    assert request.path == "/api/v2/write?org=home&bucket=brewery&precision=us"


async def test_history_goes_with_since_and_counts_add_up(made: Mapped, influx: FakeInflux) -> None:
    await made.send("Red", *(1.050 - step / 1000 for step in range(6)))
    await made.send("Blue", 1.060, 1.059)
    await made.add("grafana", "influx", influx.url, key="t0ken", **SETTINGS)
    influx.token = "t0ken"
    await made.map("grafana", "device", await made.device("Red"), since=0)
    async with forwarding(made):
        await made.settled(URL, 6)
        await made.map("grafana", "all")
        await made.send("Blue", 1.058)
        await made.settled(URL, 7)
    totals = await made.totals(URL)
    assert (totals.readings, totals.forwarded, totals.pending, totals.refused) == (7, 7, 0, 0)
    assert len(influx.points) == 7
    assert influx.writes == [6, 1]


async def test_a_repetition_is_the_same_point(made: Mapped, influx: FakeInflux) -> None:
    await made.add("grafana", "influx", influx.url, **SETTINGS)
    await made.map("grafana")
    await made.send("Red", 1.050, 1.049)
    keep = influx.keep
    influx.script = [Reply(cut=True), Reply(503, headers={"Retry-After": "3"}), Reply(500)]
    async with forwarding(made):
        await made.settled(URL, 2)
        assert influx.requests[0].body == influx.requests[1].body == influx.requests[2].body
        keep(influx.requests[0].body.decode().split("\n"))
        assert len(influx.points) == 2


async def test_a_line_that_is_refused_stands_alone_in_the_end(made: Mapped, influx: FakeInflux) -> None:
    influx.refuses = lambda line: "sg=1.046" in line
    await made.add("grafana", "influx", influx.url, **SETTINGS)
    await made.map("grafana")
    await made.send("Red", *(1.050 - step / 1000 for step in range(8)))
    async with forwarding(made):
        await made.settled(URL, 7)
    totals = await made.totals(URL)
    assert (totals.readings, totals.forwarded, totals.refused) == (8, 7, 1)
    assert len(influx.points) == 7
    assert len(influx.requests) <= 5
    assert await made.services.store.quarantine.count() == 1


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_what_a_person_must_mend_pauses(made: Mapped, influx: FakeInflux, status: int) -> None:
    influx.script = [Reply(status, b'{"message":"no such bucket"}')]
    await made.add("grafana", "influx", influx.url, key="s3cret-token", **SETTINGS)
    await made.map("grafana")
    await made.send("Red", 1.05)
    async with forwarding(made):
        await made.until(lambda: made.state("grafana").startswith("is paused"))
        assert f"HTTP {status}" in made.state("grafana")
        assert "s3cret" not in made.state("grafana")
        assert (await made.totals(URL)).pending == 1
        await made.until(lambda: len(influx.points) == 1, nap_s=900)


async def test_a_batch_has_so_many_points(
    made: Mapped, influx: FakeInflux, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Influx.most == 1000
    monkeypatch.setattr(Influx, "most", 20)
    await made.add("grafana", "influx", influx.url, **SETTINGS)
    await made.map("grafana")
    await made.send("Red", *(1.050 for _ in range(25)))
    async with forwarding(made):
        await made.settled(URL, 25)
    assert influx.writes == [20, 5]


async def test_recalibrated_readings_are_written_over_the_old_ones(made: Mapped, influx: FakeInflux) -> None:
    await made.add("grafana", "influx", influx.url, **SETTINGS)
    await made.map("grafana")
    await made.send("Red", 1.050, 1.049)
    async with forwarding(made):
        await made.settled(URL, 2)
        before = dict(influx.points)
        settings = DeviceSettings(calibration=replace(Calibration(), gravity_offset=0.002))
        device = next(each for each in await made.services.store.devices.all() if each.name == "Red")
        await made.services.reprocessor.configure(device, settings, lambda _: None)
        assert await made.services.mapped.resend("grafana", 0, None) == {await made.device("Red"): 2}
        await made.until(lambda: len(influx.writes) == 2)
        await made.settled(URL, 2)
    assert influx.points.keys() == before.keys()
    assert [fields.split(",")[0] for fields in influx.points.values()] == ["sg=1.052", "sg=1.051"]


async def test_wrong_settings_are_named(made: Mapped) -> None:
    with pytest.raises(InvalidInput, match="--bucket is missing"):
        await made.add("grafana", "influx", "http://influx:8086", org="home")
    with pytest.raises(InvalidInput, match="--org is missing"):
        await made.add("grafana", "influx", "http://influx:8086", bucket="b")
    with pytest.raises(InvalidInput, match="--api is 1, 2 or 3"):
        await made.add("grafana", "influx", "http://influx:8086", bucket="b", api=4)
    with pytest.raises(InvalidInput, match="no kind graphite"):
        await made.add("grafana", "graphite", "http://influx:8086")
    with pytest.raises(InvalidInput, match="--url ends before") as refused:
        await made.add("grafana", "influx", "http://influx:8086/?u=me&p=S3CRET", bucket="b", api=1)
    assert "S3CRET" not in str(refused.value)
    with pytest.raises(InvalidInput):
        await made.add("grafana", "influx", "http://169.254.169.254:8086", bucket="b", api=1)
