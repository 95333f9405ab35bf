"""Links: they survive a restart, tokens are stored nowhere, and each shows brews of its account alone."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.audit import AuditRow
from gateway.domain.brewsession import BrewSession
from gateway.domain.payload import Payload
from gateway.errors import InvalidInput, NotFound
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services, build_services
from gateway.services.links import LINKS_PER_ACCOUNT
from gateway.store.sqlite.store import SqliteStore
from tests.cases import each
from tests.clock import FakeClock
from tests.payloads import ispindel


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Services]:
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, FakeClock())
    await services.access.start()
    yield services
    await store.close()


async def brew(services: Services, name: str = "HP001", account_id: int = 1) -> BrewSession:
    return await services.brewsessions.add_session(account_id, SessionChange(batchcode=name))


def file_of(services: Services) -> Path:
    assert isinstance(services.store, SqliteStore)
    return services.store._database.path


async def test_a_link_survives_a_restart_and_its_token_is_stored_nowhere(
    services: Services, tmp_path: Path
) -> None:
    session = await brew(services)
    token, link = await services.links.make(1, "picture", " Kitchen ", session, {"gravity_unit": "P"})
    assert len(token) >= 32, "192 bits"
    again = build_services(services.store, tmp_path, services.clock).links
    assert again.find(token, "picture") is None
    await again.start()
    assert again.find(token, "picture") == link
    assert (link.name, link.session_id, dict(link.options)) == ("Kitchen", session.id, {"gravity_unit": "P"})
    assert again.find(token, "tv") is None
    assert again.find("\ud800", "picture") is None
    with sqlite3.connect(file_of(services)) as connection:
        assert token not in "\n".join(connection.iterdump())
    rows = await services.store.audit.page(limit=9)
    assert [(row.verb, row.object) for row in rows if row.object.startswith("link")] == [
        ("make", f"link:{link.id}")
    ]
    assert not any(isinstance(row, AuditRow) and token in row.detail for row in rows)


async def test_a_revoked_link_fails_at_once(services: Services) -> None:
    token, link = await services.links.make(1, "tv", "Wall")
    other = await services.access.add_account("other")
    with pytest.raises(NotFound):
        await services.links.revoke(other.id, link.id)
    assert services.links.find(token, "tv") == link
    await services.links.revoke(1, link.id)
    assert services.links.find(token, "tv") is None
    assert await services.store.view_links.all() == []
    with pytest.raises(NotFound):
        await services.links.revoke(1, link.id)


async def test_a_link_shows_its_brew_or_the_running_ones_and_never_anothers(services: Services) -> None:
    other = await services.access.add_account("other")
    mine, theirs = await brew(services), await brew(services, "theirs", other.id)
    _, picture = await services.links.make(1, "picture", "one", mine)
    _, running = await services.links.make(1, "tv", "all")
    assert [each.id for each in await services.links.brews(picture)] == [mine.id]
    assert [each.id for each in await services.links.brews(running)] == [mine.id]
    with pytest.raises(NotFound):
        await services.links.make(1, "picture", "x", theirs)
    await services.brewsessions.delete_session(mine)
    assert await services.links.brews(picture) == []


async def test_a_link_does_not_show_a_younger_brew_with_the_same_number(services: Services) -> None:
    session = await brew(services)
    _, link = await services.links.make(1, "picture", "one", session)
    with sqlite3.connect(file_of(services)) as connection:
        connection.execute("UPDATE brewsessions SET created_at = created_at + 1")
    assert await services.links.brews(link) == []


async def test_a_picture_of_the_running_brew_is_of_the_newest_with_a_device(services: Services) -> None:
    first, second = await brew(services, "first"), await brew(services, "second")
    _, link = await services.links.make(1, "picture", "one")
    assert [each.batchcode for each in await services.links.brews(link)] == ["second"]
    await services.intake.take(Payload(ispindel().encode(), services.clock.now(), "http /ingest"))
    [device] = await services.store.devices.all()
    for session in (first, second):
        await services.store.devices.assign(device.id, session.id, 0)
        assert [each.batchcode for each in await services.links.brews(link)] == [session.batchcode]


@each(
    "name, options",
    [("", {}), (" ", {}), ("x", {"scheme": "dark"}), ("x", {"zone": "z" * 65})],
)
async def test_a_link_that_cannot_be(services: Services, name: str, options: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        await services.links.make(1, "tv", name, None, options)
    assert services.links.all(1) == []


async def test_links_are_bounded(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.services.links.LINKS_PER_ACCOUNT", 2)
    assert LINKS_PER_ACCOUNT > 2
    for _ in range(2):
        await services.links.make(1, "tv", "x")
    with pytest.raises(InvalidInput, match="revoke one first"):
        await services.links.make(1, "tv", "x")
