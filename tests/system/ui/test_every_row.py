"""Every row of the table of pages: who may ask for it, and that no stranger's form reaches a view."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.payload import Payload
from gateway.services.access import READ_ONLY
from gateway.services.brewsessions import SessionChange
from gateway.services.logins import COOKIE
from gateway.store.sqlite.store import SqliteStore
from gateway.ui import routes
from gateway.ui.pages import Moved, Row, Visit
from tests.cases import each
from tests.system.ui.site import logged_in, served

PUBLIC = {"login", "login.send", "me", "picture", "tv.link", "tv.link.brews", "tv.link.events"}
"""Pages without a login: the login itself, and links whose tokens their views look at."""

CHANGES_OF_A_READER = {"logout", "language", "settings.choose", "settings.logins.end"}
"""Forms that a key may send which only looks: they change the viewer's own login alone."""

ISPINDEL = b'{"name":"iSpindel042","ID":42,"angle":40,"temperature":20,"gravity":1.05}'

FORMS = [row for row in routes.ROWS if row.method == "POST"]


@each("row", FORMS)
def test_who_only_looks_changes_nothing_but_the_own_login(row: Row) -> None:
    assert row.scope == "admin" or row.public or row.name in CHANGES_OF_A_READER, row.name


@each("row", [row for row in routes.ROWS if row.public])
def test_pages_without_a_login_are_few(row: Row) -> None:
    assert row.name in PUBLIC, row.name


async def test_no_stranger_reaches_a_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[str] = []

    async def view(visit: Visit) -> Moved:
        reached.append(visit.request.path)
        return Moved("/ui/more")

    rows = [replace(row, view=view) for row in routes.ROWS]
    monkeypatch.setattr(routes, "ROWS", tuple(rows))
    async with served(tmp_path) as browser:
        monkeypatch.undo()
        token, admin = "0" * 80, browser.cookie
        reader = await logged_in(browser.services, READ_ONLY)
        wrong = []
        for row in rows:
            path = "/ui" + re.sub(r"\{[^}]+\}", "1", row.path)
            tries: list[tuple[str, dict[str, str], int]]
            if row.method == "GET":
                tries = [("", {}, 303)] if not row.public else []
                tries += [(reader, {}, 403)] if row.scope == "admin" else []
            else:
                own = {"Origin": browser.origin}
                tries = [(admin, {"Origin": "null"}, 403)]
                tries += [(admin, own, 403), ("", own, 401)] if not row.public else []
                tries += [(reader, own, 403)] if row.scope == "admin" else []
            for cookie, headers, status in tries:
                sent = {**headers, "Cookie": f"hg_login={cookie}"}
                async with browser.client.request(
                    row.method, path, headers=sent, data={"token": token}, allow_redirects=False
                ) as answer:
                    if answer.status != status:
                        wrong.append((row.name, headers, answer.status, status))
    assert (wrong, reached) == ([], [])
    assert len(FORMS) > 30


async def test_looking_changes_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        services = browser.services
        brew = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
        await services.intake.start()
        await services.intake.take(Payload(ISPINDEL, services.clock.now(), "http /ingest", "192.0.2.4"))
        await services.intake.take(Payload(b"?", services.clock.now(), "http /ingest", "192.0.2.4"))
        store = services.store
        assert isinstance(store, SqliteStore)
        works, seen = store._writer.changes.works, 0
        for row in routes.ROWS:
            if row.method == "GET" and "events" not in row.name:
                path = "/ui" + re.sub(r"\{[^}]+\}", str(brew.id), row.path)
                headers = {"Cookie": f"{COOKIE}={browser.cookie}"}
                async with browser.client.get(path, headers=headers, allow_redirects=False) as answer:
                    assert answer.status < 500, (row.name, await answer.text())
                    seen += answer.status == 200
                assert store._writer.changes.works == works, row.name
        assert seen > 20
