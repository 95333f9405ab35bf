"""`/manage/targets` over HTTP: added with a key, mapped, tried out, paused, sent to again and removed."""

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.services.brewsessions import SessionChange
from tests.system.api.everything import Running, running
from tests.system.api.harmless import HARMLESS_KEY, harmless

TARGETS = "/manage/targets"
CLUB = {"name": "club", "url": f"{harmless()}/club/v1/", "key": HARMLESS_KEY}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


async def ask(service: Running, method: str, path: str = "", *, status: int = 200, **more: Any) -> Any:
    answer = await service.ask(method, f"{TARGETS}{path}", **more)
    assert answer.status == status, answer.body
    return json.loads(answer.body)


async def session(service: Running, *gravities: float, account: int = 1) -> int:
    made = await service.services.brewsessions.add_session(account, SessionChange(batchcode="HP001"))
    rows = [{"gravity": g, "created_at": f"2026-03-0{day}"} for day, g in enumerate(gravities, 1)]
    await service.services.importing.run(made, json.dumps(rows).encode(), "json", "", reset=False)
    return made.id


async def test_a_target_is_added_with_its_key_in_a_file_of_its_owner(
    service: Running, tmp_path: Path
) -> None:
    added = (await ask(service, "POST", json=CLUB))["targets"][0]
    file = tmp_path / "target-keys" / "club.key"
    assert (added["name"], added["url"]) == ("club", f"{harmless()}/club")
    assert (added["key_file"], file.read_text()) == (str(file), f"{HARMLESS_KEY}\n")
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    listed = await ask(service, "GET")
    assert (listed["count"], listed["targets"], listed["warnings"]) == ("1", [added], [])
    assert HARMLESS_KEY not in str(listed)
    await ask(service, "DELETE", "/club")
    assert not file.exists()
    assert (await ask(service, "GET"))["targets"] == []


async def test_a_name_that_is_taken_keeps_its_key(service: Running, tmp_path: Path) -> None:
    await ask(service, "POST", json=CLUB)
    for other in ({**CLUB, "key": "another"}, {**CLUB, "url": "https://elsewhere.example", "key": "another"}):
        await ask(service, "POST", status=409, json=other)
    assert (tmp_path / "target-keys" / "club.key").read_text() == f"{HARMLESS_KEY}\n"
    assert (await ask(service, "POST", "/club/test"))["findings"][0]["ok"]


async def test_a_file_of_the_gateways_disk_is_not_named_over_tcp(service: Running, tmp_path: Path) -> None:
    file = tmp_path / "brew.key"
    file.write_text(HARMLESS_KEY)
    body = {"name": "club", "url": harmless(), "key_file": str(file)}
    answer = await ask(service, "POST", status=403, json=body)
    assert "through its Unix socket only" in answer["detail"]
    assert (await ask(service, "GET"))["targets"] == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "club", "url": "https://x"},
        {**CLUB, "key_file": "/x"},
        {**CLUB, "key": None},
        {**CLUB, "key": "two\nlines"},
        {**CLUB, "name": "../x"},
        {**CLUB, "name": "upstream"},
        {**CLUB, "url": "ftp://x"},
        {**CLUB, "per_minute": 0},
        {**CLUB, "per_minutes": 5},
    ],
)
async def test_what_no_target_can_be_is_refused(
    service: Running, tmp_path: Path, body: dict[str, Any]
) -> None:
    await ask(service, "POST", status=400, json=body)
    assert (await ask(service, "GET"))["targets"] == []
    assert not (tmp_path / "target-keys").exists()


async def test_a_login_is_tried_before_it_is_kept(service: Running, tmp_path: Path) -> None:
    url = f"{harmless()}/club"
    refused = await ask(service, "PUT", "/club", status=400, json={"url": url, "key": "wrong"})
    assert "the key is refused" in refused["detail"]
    assert refused["detail"].endswith("nothing was changed")
    assert (await ask(service, "GET"))["targets"] == []
    assert not (tmp_path / "target-keys").exists()
    await ask(service, "PUT", "/club", json={"url": url, "key": HARMLESS_KEY})
    await ask(service, "PUT", "/club", status=400, json={"url": url, "key": "wrong"})
    assert (tmp_path / "target-keys" / "club.key").read_text() == f"{HARMLESS_KEY}\n"
    await ask(service, "PUT", "/other", status=409, json={"url": url, "key": HARMLESS_KEY})


async def test_sessions_are_mapped_counted_and_sent_again(service: Running) -> None:
    await ask(service, "POST", json=CLUB)
    number = await session(service, 1.05, 1.04)
    path = f"/club/brewsessions/{number}"
    mapped = await ask(service, "PUT", path, json={"upstream_id": 70})
    assert (mapped["brew_session_id"], mapped["batchcode"], mapped["upstream_id"]) == (number, "HP001", 70)
    found = (await ask(service, "GET"))["targets"][0]
    assert (found["pending"], found["forwarded"], found["next_at"]) == (2, 0, None)
    assert found["oldest_at"].endswith("+00:00")
    assert [(s["session_id"], s["upstream_id"], s["pending"]) for s in found["sessions"]] == [(number, 70, 2)]
    body = {"since": "2026-03-02", "brew_session_id": number}
    assert (await ask(service, "POST", "/club/resend", json=body))["brewsessions"] == []
    assert (await ask(service, "PUT", path, json={"upstream_id": 0}))["upstream_id"] is None
    assert (await ask(service, "POST", "/club/resend", status=400, json=body))["detail"].startswith(
        f"brew session {number} is not forwarded there"
    )
    await ask(service, "POST", "/club/resend", status=400, json={"since": "yesterday"})


async def test_a_session_of_another_account_is_not_found(service: Running) -> None:
    other = (await service.services.access.add_account("other")).id
    await ask(service, "POST", json=CLUB)
    number = await session(service, 1.05, account=other)
    await ask(service, "PUT", f"/club/brewsessions/{number}", status=404, json={"upstream_id": 70})
    body = {"since": "2026-03-01", "brew_session_id": number}
    await ask(service, "POST", "/club/resend", status=404, json=body)
    assert (await ask(service, "GET"))["targets"][0]["sessions"] == []


async def test_what_is_paused_says_so_until_it_goes_on(service: Running) -> None:
    await ask(service, "POST", json=CLUB)
    paused = (await ask(service, "PATCH", "/club", json={"paused": True}))["targets"][0]
    assert (paused["paused"], paused["state"]) == (True, "paused by you; `targets resume club` goes on")
    assert not (await ask(service, "PATCH", "/club", json={"paused": False}))["targets"][0]["paused"]


async def test_a_service_is_tried_and_its_sessions_are_listed(service: Running, tmp_path: Path) -> None:
    await ask(service, "POST", json=CLUB)
    found = (await ask(service, "POST", "/club/test"))["findings"]
    assert found[0] == {"ok": True, "text": "address and key are right"} or "plain http" in found[0]["text"]
    assert (await ask(service, "GET", "/club/brewsessions"))["brewsessions"] == []
    (tmp_path / "target-keys" / "club.key").unlink()
    found = (await ask(service, "POST", "/club/test"))["findings"]
    assert [finding["ok"] for finding in found] == [False]
    assert (
        "there is no key file of target club"
        in (await ask(service, "GET", "/club/brewsessions", status=400))["detail"]
    )


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/nobody/brewsessions/1", {"upstream_id": 1}),
        ("GET", "/nobody/brewsessions", None),
        ("PATCH", "/nobody", {"paused": True}),
        ("DELETE", "/nobody", None),
        ("POST", "/nobody/resend", {"since": "2026-03-01"}),
        ("POST", "/nobody/test", None),
    ],
)
async def test_a_target_that_is_not_there_is_not_found(
    service: Running, method: str, path: str, body: Any
) -> None:
    await session(service)
    await ask(service, method, path, status=404, **({} if body is None else {"json": body}))
