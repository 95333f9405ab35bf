"""`keys`: shown once, stored as SHA-256, in force at once."""

import re
from pathlib import Path

import aiohttp

from tests.program.program import answer, command, refusal

from .conftest import gateway, texts_in

KEY = re.compile(r"hg_[A-Za-z0-9_-]{43}\n")


async def added(data: Path, name: str, *options: str) -> str:
    """A new key; nothing else is said."""
    finished = await answer(data, "keys add", name, *options)
    assert KEY.fullmatch(finished.out)
    assert finished.err == ""
    return finished.out.strip()


async def status(http: aiohttp.ClientSession, url: str, key: str, *, post: bool = False) -> int:
    headers = {"X-API-KEY": key}
    if post:
        async with http.post(f"{url}/v1/fermentation/99/import", headers=headers, json=[]) as response:
            return response.status
    async with http.get(f"{url}/v1/fermentation/99", headers=headers) as response:
        return response.status


async def test_add_list_revoke(data: Path) -> None:
    key = await added(data, "phone", "--scope", "read")
    everything = await added(data, "everything")
    listed = (await answer(data, "keys list")).out
    assert key not in listed
    assert everything not in listed
    rows = {line.split()[0]: line.split()[2:] for line in listed.splitlines()[1:]}
    assert rows["phone"][:2] == ["read", "owner"]
    assert rows["everything"][:4] == ["admin", "ingest", "read", "owner"]
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
        key = await added(tmp_path, "phone")
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
    listed = (await answer(data, "keys list")).lines
    assert listed[0].split() == ["NAME", "KEY", "SCOPES", "ACCOUNT", "CREATED"]
    rows = {line.split()[0]: line.split()[5] for line in listed[1:] if not line.startswith("first")}
    assert rows == {"hers": "anna", "mine": "owner"}


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("keys", "add", "x", "--scope", "root"), "unknown scope root; there are admin, ingest, read"),
    (("keys", "add", " "), "the key's name is empty"),
    (("keys", "add", "caf\udce9"), "the name is not UTF-8 text: 'caf\\udce9'"),
    (("keys", "add", "x", "--account", "nobody"), "no account named 'nobody'; `accounts list` shows them"),
    (("keys", "revoke", "nobody"), "no active key named 'nobody'"),
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
