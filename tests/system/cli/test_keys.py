"""`keys`: shown once, stored as SHA-256, in force at once."""

import re
from pathlib import Path

import aiohttp

from gateway.services.key_files import keep_first_key
from tests.program.program import answer, command, refusal

from .conftest import gateway, texts_in

KEY = re.compile(r"hg_[A-Za-z0-9_-]{43}\n")


async def added(data: Path, name: str, *options: str) -> str:
    """A new key; nothing else is said, but of a key that may do everything."""
    finished = await answer(data, "keys add", name, *options)
    assert KEY.fullmatch(finished.out)
    assert ("it may look, report, change and delete everything" in finished.err) == ("admin" in options)
    assert len(finished.err.splitlines()) == ("admin" in options)
    return finished.out.strip()


async def listed(data: Path) -> dict[str, list[str]]:
    """The cells of each key in the list, by name."""
    lines = (await answer(data, "keys list")).lines
    assert re.split(r"  +", lines[0]) == [
        "NAME", "KEY", "SCOPE", "LAST USED", "EXPIRES", "ACCOUNT", "CREATED",
    ]  # fmt: skip
    rows = [re.split(r"  +", line) for line in lines[1:]]
    return {row[0]: row[1:] for row in rows}


async def status(http: aiohttp.ClientSession, url: str, key: str, *, post: bool = False) -> int:
    headers = {"X-API-KEY": key}
    if post:
        async with http.post(f"{url}/v1/fermentation/99/import", headers=headers, json=[]) as response:
            return response.status
    async with http.get(f"{url}/v1/fermentation/99", headers=headers) as response:
        return response.status


async def test_add_list_revoke(data: Path) -> None:
    key = await added(data, "phone", "--scope", "read")
    everything = await added(data, "everything", "--scope", "admin")
    whole = (await answer(data, "keys list")).out
    assert key not in whole
    assert everything not in whole
    await added(data, "looks")
    await added(data, "vat", "--device", "iSpindel042", "--expires", "90d")
    rows = await listed(data)
    assert rows["phone"][1:5] == ["read", "never", "never", "owner"]
    assert rows["everything"][1:5] == ["admin", "never", "never", "owner"]
    assert rows["looks"][1] == "read", "the least that a key can do is the default"
    assert rows["vat"][1:3] == ["ingest for iSpindel042", "never"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d", rows["vat"][3])
    revoked = await answer(data, "keys revoke", "phone")
    assert (revoked.out, revoked.err) == ("", "")
    assert "phone" not in (await answer(data, "keys list")).out
    await added(data, "phone")


async def test_no_file_holds_a_key(data: Path) -> None:
    keys = [await added(data, name) for name in ("one", "two")]
    await answer(data, "keys revoke", "two")
    texts = texts_in(data)
    assert texts
    assert not [key for key in keys for text in texts if key.removeprefix("hg_").encode() in text]


async def test_a_running_server_obeys_from_the_next_request_on(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        assert await status(http, server.url, "hg_" + "A" * 43) == 401
        assert await status(http, server.url, server.first_key or "") == 404
        key = await added(tmp_path, "phone", "--scope", "admin")
        assert await status(http, server.url, key) == 404
        assert await status(http, server.url, key, post=True) == 404
        await answer(tmp_path, "keys revoke", "phone")
        assert await status(http, server.url, key) == 401
        await answer(tmp_path, "keys revoke", "first")
        assert await status(http, server.url, server.first_key or "") == 401
        assert server.first_key is not None
        texts = texts_in(tmp_path)
        assert not [text for text in texts if server.first_key.encode() in text]


async def test_a_key_may_do_only_what_its_scope_says(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        reader = await added(tmp_path, "reader", "--scope", "read")
        writer = await added(tmp_path, "writer", "--scope", "ingest")
        both = await added(tmp_path, "both", "--scope", "read", "--scope", "ingest")
        seen = [
            (await status(http, server.url, key), await status(http, server.url, key, post=True))
            for key in (reader, writer, both)
        ]
    assert seen == [(404, 401), (401, 404), (404, 404)]


async def test_a_key_belongs_to_the_account_that_was_named(data: Path) -> None:
    await answer(data, "accounts add anna")
    await added(data, "hers", "--account", "anna")
    await added(data, "mine")
    rows = await listed(data)
    assert {name: rows[name][4] for name in ("hers", "mine")} == {"hers": "anna", "mine": "owner"}


async def test_a_rotated_key_leaves_time_to_change_it_everywhere(data: Path) -> None:
    await added(data, "vat", "--device", "iSpindel042")
    finished = await answer(data, "keys rotate vat --overlap 2h")
    assert KEY.fullmatch(finished.out)
    old, new = [line for line in (await answer(data, "keys list")).lines if line.startswith("vat")]
    assert "(replaced)" in old
    assert "ingest for iSpindel042" in new
    assert "replaced" not in new
    await answer(data, "keys rotate vat --overlap 0m")
    await answer(data, "keys revoke vat")
    assert "vat" not in (await answer(data, "keys list")).out


async def test_the_first_key_is_shown_once(tmp_path: Path) -> None:
    waiting = tmp_path / "first-key"
    missing = await refusal(tmp_path, "keys first")
    assert missing.startswith(f"no first key waits in {waiting}: ")
    keep_first_key(tmp_path, "hg_first")
    assert waiting.stat().st_mode & 0o777 == 0o600
    assert (await answer(tmp_path, "keys first")).out == "hg_first\n"
    assert not waiting.exists()
    assert await refusal(tmp_path, "keys first") == missing


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("keys", "add", "x", "--scope", "root"), "unknown scope root; there are admin, ingest, read"),
    (("keys", "add", " "), "the key's name is empty"),
    (("keys", "add", "x", "--expires", "soon"), "'soon' is no span of time; write 30m, 24h or 90d"),
    (("keys", "add", "x", "--expires", "0d"), "the key would have ended already"),
    (
        ("keys", "add", "x", "--device", "vat", "--scope", "admin"),
        "a key for one device has the scope ingest and no other",
    ),
    (("keys", "rotate", "nobody"), "no active key named 'nobody'; `keys list` shows them"),
    (("keys", "rotate", "x", "--overlap", "91d"), "overlap_s: 7776000 is the most that it can be"),
    (("keys", "add", "caf\udce9"), "the name is not UTF-8 text: 'caf\\udce9'"),
    (("keys", "add", "x", "--account", "nobody"), "no account named 'nobody'; `accounts list` shows them"),
    (("keys", "revoke", "nobody"), "no active key named 'nobody'; `keys list` shows them"),
]


async def test_what_cannot_be_done(data: Path) -> None:
    for words, message in REFUSED:
        assert await refusal(data, words) == message


async def test_a_name_is_taken_until_it_is_revoked(data: Path) -> None:
    await added(data, "phone")
    assert await refusal(data, "keys add", "phone") == "there is an active key named 'phone'; revoke it first"


async def test_usage_is_told_without_a_traceback(tmp_path: Path) -> None:
    finished = await command(tmp_path, "keys add")
    assert finished.status == 2
    assert "Missing argument" in finished.err
