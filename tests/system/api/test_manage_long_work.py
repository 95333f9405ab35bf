"""`/manage/mirror`, `/manage/sample-data`, `/manage/backup` and captures over HTTP."""

import asyncio
import io
import json
import re
import shutil
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.backup import backup
from gateway.domain.key import ALL_SCOPES
from gateway.mirror import copying
from gateway.samples import brewery
from gateway.services.build import Services
from tests.system.api.everything import Running, fill, running
from tests.system.api.harmless import HARMLESS_KEY, harmless

LINES = {"Accept": "application/x-ndjson"}
MIRROR, SAMPLES, BACKUP = "/manage/mirror", "/manage/sample-data", "/manage/backup"
SERVICE = {"url": harmless(), "key": HARMLESS_KEY}
PATIENCE_S = 20.0


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path / "data") as service:
        yield service


async def post(service: Running, path: str, body: Any, **more: Any) -> tuple[int, Any]:
    answer = await service.ask("POST", path, json=body, **more)
    return answer.status, json.loads(answer.body)


async def test_a_service_is_copied_and_says_what_became_of_it(service: Running) -> None:
    status, done = await post(service, MIRROR, SERVICE)
    assert (status, done["requests"], done["unreported"]) == (200, 2, 0)
    assert set(done["counts"]) == {"recipes", "brew sessions", "readings", "photos"}
    assert done["counts"]["recipes"] == dict.fromkeys(("copied", "updated", "unchanged", "kept", "failed"), 0)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": harmless()},
        {**SERVICE, "url": "ftp://x"},
        {**SERVICE, "rate": 0},
        {**SERVICE, "key": "two\nlines"},
        {**SERVICE, "key": "wrong"},
        {**SERVICE, "account": "other"},
    ],
)
async def test_a_service_that_cannot_be_copied_is_a_400(service: Running, body: dict[str, Any]) -> None:
    assert (await post(service, MIRROR, body))[0] == 400


async def test_one_mirror_at_a_time(service: Running) -> None:
    async with copying.under_way(service.services.store):
        status, refused = await post(service, MIRROR, SERVICE)
    assert (status, refused["detail"]) == (
        409,
        "the gateway is copying a service right now; /manage/status shows how far it is",
    )
    assert (await post(service, MIRROR, SERVICE))[0] == 200


def hanging(begun: asyncio.Event, ended: asyncio.Event) -> Callable[..., Any]:
    """A piece of work that goes on until it is cancelled."""

    async def hang(*_: object, **__: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    return hang


@pytest.mark.parametrize("headers", [{}, LINES])
async def test_a_caller_who_leaves_ends_the_mirror(
    service: Running, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(copying, "_copy_all", hanging(begun, ended))
    asking = asyncio.create_task(post(service, MIRROR, SERVICE, headers=headers))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
        asking.cancel()
        await ended.wait()
    monkeypatch.undo()
    assert (await post(service, MIRROR, SERVICE))[0] == 200


async def test_sample_data_fill_an_empty_account_once(service: Running) -> None:
    answer = await service.ask("POST", SAMPLES, json={"photos": False, "seed": 7}, headers=LINES)
    lines = [json.loads(line) for line in answer.body.splitlines() if line]
    made = lines[-1]["result"]
    assert "progress" in lines[0]
    assert (made["photos"], made["readings"] > 100) == (0, True)
    for path in (f"/v1/brewsessions/{made['running']}", f"/v1/recipes/{made['recipe']}"):
        assert (await service.ask("GET", path)).status == 200
    before = await service.services.store.readings.count()
    status, refused = await post(service, SAMPLES, {"photos": False})
    assert (status, refused["message"]) == (409, "failure")
    assert "already" in refused["detail"]
    assert await service.services.store.readings.count() == before
    for body in ({"seed": -1}, {"seed": 10**6}, {"photo": True}):
        assert (await post(service, SAMPLES, body))[0] == 400


async def test_a_caller_who_leaves_ends_the_filling_and_what_is_there_stays(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(brewery._Filling, "_measure", hanging(begun, ended))
    asking = asyncio.create_task(post(service, SAMPLES, {"photos": False}))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
        asking.cancel()
        await ended.wait()
    assert json.loads((await service.ask("GET", "/v1/recipes")).body)["count"] != "0"
    assert (await post(service, SAMPLES, {"photos": False}))[0] == 409


def names(body: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        return archive.getnames()


async def test_a_backup_is_a_tar_and_leaves_nothing_behind(service: Running, tmp_path: Path) -> None:
    mine = await fill(service.services, "owner", "MARK")
    before = sorted(path.name for path in tmp_path.joinpath("data").iterdir())
    answer = await service.ask("GET", BACKUP)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/x-tar")
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    assert names(answer.body) == ["gateway.sqlite3", f"photos/{mine.ids['uuid']}.png", "manifest.json"]
    without = await service.ask("GET", f"{BACKUP}?photos=false")
    assert names(without.body) == ["gateway.sqlite3", "manifest.json"]
    assert sorted(path.name for path in tmp_path.joinpath("data").iterdir()) == before
    assert not [name for name in names(answer.body) if "key" in name]
    assert (await service.ask("GET", f"{BACKUP}?photos=x")).status == 400


async def test_a_backup_without_room_is_a_503(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1024))
    answer = await service.ask("GET", BACKUP)
    assert (answer.status, "Retry-After" in answer.headers) == (503, True)
    assert re.search("has 1 KiB left; making a backup takes [0-9]+ KiB", json.loads(answer.body)["detail"])
    monkeypatch.undo()
    assert (await service.ask("GET", BACKUP)).status == 200


async def test_a_caller_who_leaves_ends_the_backup_and_meanwhile_there_is_no_other(
    service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stopped = Event(), Event()

    def make(_: Path, target: Path, work: backup.Work, **__: object) -> None:
        target.write_bytes(b"half")
        begun.set()
        while not work.stopped:
            stopped.wait(0.01)
        stopped.set()
        raise backup.Stopped

    monkeypatch.setattr(backup, "make", make)
    asking = asyncio.create_task(service.ask("GET", BACKUP))
    async with asyncio.timeout(PATIENCE_S):
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        assert (await service.ask("GET", BACKUP)).status == 409
        asking.cancel()
        assert await asyncio.to_thread(stopped.wait, PATIENCE_S)
        monkeypatch.undo()
        while (await service.ask("GET", BACKUP)).status == 409:  # noqa: ASYNC110 - the request tells nobody
            await asyncio.sleep(0.05)
    assert not (tmp_path / "data" / "backup-to-send").exists()


async def test_captured_payloads_have_no_names(service: Running) -> None:
    mine = await fill(service.services, "owner", "MARK")
    path = f"/manage/devices/{mine.ids['device_id']}/capture"
    found = json.loads((await service.ask("GET", path)).body)
    assert (found["device"], found["payloads"], found["left_out"]) == ("ispindel:1", 1, {})
    [case] = found["cases"]
    assert case["name"].startswith("ispindel/captured_")
    assert case["content"]["expected"]["gravity"] == "1.05"
    assert "device1" not in json.dumps(found["cases"])
    for last in ("0", "1001", "x"):
        assert (await service.ask("GET", f"{path}?last={last}")).status == 400
    assert (await service.ask("GET", "/manage/devices/4711/capture")).status == 404
    lines = (await service.ask("GET", path, headers=LINES)).body.splitlines()
    result = json.loads(lines[-1])["result"]
    assert [each["name"] for each in result["cases"]] == [case["name"]]


async def test_a_caller_who_leaves_ends_the_capture(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = await fill(service.services, "owner", "MARK")
    begun, ended = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr("gateway.capture.newest_payloads", hanging(begun, ended))
    asking = asyncio.create_task(service.ask("GET", f"/manage/devices/{mine.ids['device_id']}/capture"))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
        asking.cancel()
        await ended.wait()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("POST", MIRROR, SERVICE), ("POST", SAMPLES, {}), ("GET", BACKUP, None)],
)
async def test_without_the_owners_admin_key_nothing_begins(
    service: Running, method: str, path: str, body: Any
) -> None:
    services: Services = service.services
    await services.access.add_account("other")
    keys = {
        "": 401,
        await services.access.add("reads", frozenset({"read"})): 401,
        await services.access.add("others", ALL_SCOPES, "other"): 403,
    }
    for key, status in keys.items():
        more = {} if body is None else {"json": body}
        assert (await service.ask(method, path, key, **more)).status == status
    assert await services.store.readings.count() == 0
