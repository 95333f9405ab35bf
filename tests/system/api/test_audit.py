"""The audit log: each change has a row, with its actor, in the transaction of the change."""

import json
from pathlib import Path

from gateway.domain.audit import AuditRow
from gateway.endpoints import ENDPOINTS
from gateway.http.parameters import path_template
from gateway.store.sqlite import audit
from tests.system.api.everything import BODIES, QUERIES, Filled, Running, fill, running

Route = tuple[str, str]

WITHOUT_A_ROW: dict[Route, str] = {
    ("POST", "/v1/fermentation/{brew_session_id}/import"): "adds; with `reset` there is a row",
    (
        "POST",
        "/manage/brewsessions/{brew_session_id}/readings",
    ): "as the import",
    ("POST", "/manage/recipes"): "adds: the record has its own time",
    ("PATCH", "/manage/recipes"): "files recipes in folders, which changes none of them",
    ("PATCH", "/manage/recipes/{recipe_id}"): "files a recipe in a folder, which does not change it",
    ("POST", "/manage/recipes/{recipe_id}/photos"): "adds: the record has its own time",
    ("PATCH", "/manage/recipes/{recipe_id}/photos/{uuid}"): "a caption is the daily work of a brewer",
    ("POST", "/manage/folders"): "a folder is a heading",
    ("PATCH", "/manage/folders/{folder_id}"): "a folder is a heading",
    ("DELETE", "/manage/folders/{folder_id}"): "a folder is a heading: what was in it stays",
    ("POST", "/manage/brewsessions"): "adds: the record has its own time",
    ("POST", "/manage/brewsessions/{brew_session_id}/events"): "adds: the event has its own author and time",
    (
        "PATCH",
        "/manage/brewsessions/{brew_session_id}/events/{event_id}",
    ): "the daily work of a brewer; a reading that is sent again has a row",
    ("PATCH", "/manage/brewsessions/{brew_session_id}"): "the daily work of a brewer; it deletes nothing",
    ("POST", "/manage/alarms/{alarm_id}/ack"): "the history of the alarm has its own line",
    ("POST", "/manage/alarms/{alarm_id}/snooze"): "the history of the alarm has its own line",
    ("POST", "/manage/alarms/test"): "changes nothing",
    ("POST", "/manage/devices/{device_id}/calibration/fit"): "changes nothing",
    ("POST", "/manage/targets/{name}/test"): "changes nothing",
    ("POST", "/manage/channels/{channel}/test"): "changes nothing where no gateway runs; else it has a row",
    ("POST", "/manage/quarantine/replay"): "quarantine and readings show what became of a payload",
    ("POST", "/manage/backup"): "through the Unix socket only, where `backup` is shown to write it",
    ("POST", "/manage/mirror"): "adds copies; each is remembered with its origin",
    ("POST", "/manage/sample-data"): "adds to an empty account; its devices have rows",
}
"""The changing endpoints that need no row of their own, and why."""

CHANGING: list[Route] = [
    (endpoint.method, path_template(endpoint.path)) for endpoint in ENDPOINTS if endpoint.method != "GET"
]

LAST = (
    "/manage/recipes/{recipe_id}",
    "/manage/brewsessions/{brew_session_id}",
    "/manage/devices/{device_id}",
)
"""Records that the other rows need."""


async def rows_of(here: Running) -> list[AuditRow]:
    return await here.services.store.audit.page(limit=audit.ROWS)


async def prepare(here: Running, filled: Filled, template: str) -> None:
    """Put back what the rows before have taken, and make an edit that can be taken back."""
    store = here.services.store
    if template.endswith("/purge"):
        await store.sessions.delete(int(filled.ids["deleted_session_id"]), 1)
    if template.endswith("/take-back"):
        session = await store.sessions.get(int(filled.ids["brew_session_id"]))
        assert session is not None
        found = await here.ask("GET", f"/v1/fermentation/{session.id}")
        oid = json.loads(found.body)["readings"][0]["_id"]
        edit = json.dumps([{"_id": oid, "gravity": 1.2}]).encode()
        await here.services.importing.run(session, edit, "json", "", False)


async def test_each_changing_endpoint_writes_a_row_or_says_why_not(tmp_path: Path) -> None:
    assert set(WITHOUT_A_ROW) <= set(CHANGING), "a reason for an endpoint that is gone"
    silent, chatty, wrong = [], [], []
    async with running(tmp_path) as here:
        filled = await fill(here.services, "owner", "owner-mark")
        for method, template in sorted(CHANGING, key=lambda route: (route[0] == "DELETE", route[1] in LAST)):
            await prepare(here, filled, template)
            before = len(await rows_of(here))
            path = filled.path(template) + QUERIES.get((method, template), "").format_map(filled.ids)
            answer = await here.ask(method, path, **BODIES.get((method, template), {}))
            new = (await rows_of(here))[before:]
            named = f"{method} {template}: {answer.status} {answer.body[:200]!r} {new}"
            if (method, template) not in WITHOUT_A_ROW:
                silent += [named] if not new or answer.status != 200 else []
            elif "sample-data" not in template:
                chatty += [named] if new else []
            wrong += [row for row in new if (row.actor, row.source) != ("key:test", "127.0.0.1")]
    assert silent == []
    assert chatty == []
    assert wrong == []


async def test_rows_of_a_backup_a_reset_and_another_account(tmp_path: Path) -> None:
    async with running(tmp_path) as here:
        await here.services.access.add_account("anna")
        anna = await fill(here.services, "anna", "anna-mark")
        before = len(await rows_of(here))
        assert (await here.ask("HEAD", "/manage/backup")).status == 200
        assert (await here.ask("GET", "/manage/backup")).status == 200
        path = anna.path("/v1/fermentation/{brew_session_id}/import?reset=true")
        assert (await here.ask("POST", path, anna.key, json=[{"gravity": 1.01}])).status == 200
        assert (await here.ask("POST", "/manage/keys", anna.key, json={"name": "new"})).status == 200
        new = (await rows_of(here))[before:]
    assert [(row.actor, row.verb, row.object) for row in new] == [
        ("key:test", "backup", "backup:download"),
        ("key:anna-mark of account 2", "import with reset", anna.path("session:{brew_session_id}")),
        ("key:anna-mark of account 2", "add", "key:new"),
    ]
