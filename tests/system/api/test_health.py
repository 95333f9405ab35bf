import pytest

from gateway import __version__
from gateway.errors import StoreUnavailable
from gateway.manage import health
from tests.system.api.conftest import Service


async def test_health_needs_no_key_and_counts(service: Service) -> None:
    await service.take([{"temp": 1}])
    service.stats.say("mqtt", "connected")
    service.stats.say("tcp", "already in use", well=False)
    async with service.client.get("/healthz") as answer:
        page = await answer.json()
        assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    assert (page["status"], page["version"], page["imported"]) == ("ok", __version__, 1)
    assert page["parts"] == {"mqtt": "connected", "tcp": "already in use"}
    assert page["in_trouble"] == ["tcp"]
    assert page["uptime_s"] >= 0
    assert page["sqlite_version"].count(".") == 2
    assert service.key not in str(page)


async def test_health_is_503_when_the_store_cannot_read(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def get(session_id: int) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(service.store.sessions, "get", get)
    async with service.client.get("/healthz") as answer:
        assert (answer.status, (await answer.json())["status"]) == (503, "store unavailable")


async def test_health_is_503_when_the_store_does_not_answer(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "STORE_ANSWERS_S", 0)
    async with service.client.get("/healthz") as answer:
        assert answer.status == 503


async def test_health_is_only_read(service: Service) -> None:
    async with service.client.post("/healthz") as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "GET,HEAD")
    async with service.client.head("/healthz") as answer:
        assert answer.status == 200
