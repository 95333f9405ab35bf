import pytest

from gateway import __version__
from gateway.errors import StoreUnavailable
from gateway.http import health
from tests.system.api.conftest import Service


async def test_health_without_a_key_is_words_alone(service: Service) -> None:
    service.stats.say("mqtt", "connected")
    service.stats.say("upstream https://brew.example", "refused", well=False)
    service.stats.say("upstream https://other.example", "up to date")
    service.stats.say("http 5000", "listening on http://192.168.1.20:5000")
    async with service.client.get("/healthz") as answer:
        assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
        words = {"mqtt": "ok", "upstream": "trouble", "http": "ok"}
        assert await answer.json() == {"status": "trouble", "parts": words}
    service.stats.forget("upstream https://brew.example")
    async with service.client.get("/healthz") as answer:
        assert (await answer.json())["status"] == "ok"


async def test_health_with_a_key_counts(service: Service) -> None:
    await service.take([{"temp": 1}])
    service.stats.say("mqtt", "connected")
    service.stats.say("tcp", "already in use", well=False)
    async with service.client.get("/healthz", headers=service.headers) as answer:
        page = await answer.json()
        assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    assert (page["status"], page["version"], page["imported"]) == ("trouble", __version__, 1)
    assert page["parts"] == {"mqtt": "connected", "tcp": "already in use"}
    assert page["in_trouble"] == ["tcp"]
    assert page["uptime_s"] >= 0
    assert page["sqlite_version"].count(".") == 2
    assert service.key not in str(page)


async def test_health_looks_at_the_key_that_is_sent(service: Service) -> None:
    await service.access.add_account("guest")
    guest = await service.access.add("guest", account="guest")
    narrow = await service.access.add("narrow", frozenset({"ingest"}))
    for key, status in ((guest, 200), ("", 200), ("hg_wrong", 401), (narrow, 401)):
        async with service.client.get("/healthz", headers={"X-API-KEY": key}) as answer:
            assert (answer.status, "version" in await answer.json()) == (status, False)


async def test_health_is_503_when_the_store_cannot_read(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def get(session_id: int) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(service.store.sessions, "get", get)
    async with service.client.get("/healthz") as answer:
        assert (answer.status, (await answer.json())["status"]) == (503, "unavailable")


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
