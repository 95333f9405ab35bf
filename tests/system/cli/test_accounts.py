"""`accounts`: whose records there are."""

from pathlib import Path

from tests.program.program import answer, refusal

from .conftest import gateway


async def test_add_prints_only_the_id_and_says_how_to_go_on(data: Path) -> None:
    added = await answer(data, "accounts add anna")
    assert added.out == "2\n"
    assert "`keys add KEYNAME --account NAME`" in added.err
    await answer(data, "keys add phone --account anna")
    listed = (await answer(data, "accounts list --json")).objects
    assert all(entry.pop("created_at").endswith("+00:00") for entry in listed)
    owners_keys = listed[0].pop("keys")
    assert owners_keys in {0, 1}  # the first start of a gateway makes one
    assert listed == [{"id": 1, "name": "owner"}, {"id": 2, "name": "anna", "keys": 1}]
    table = (await answer(data, "accounts list")).lines
    assert table[0].split() == ["ID", "NAME", "KEYS", "CREATED"]
    assert table[2].split()[:3] == ["2", "anna", "1"]


async def test_what_cannot_be_done(data: Path) -> None:
    await answer(data, "accounts add anna")
    assert await refusal(data, "accounts add anna") == (
        "there is an account named 'anna' already; `accounts list` shows them"
    )
    assert await refusal(data, "accounts add owner") == (
        "there is an account named 'owner' already; `accounts list` shows them"
    )
    assert await refusal(data, ("accounts", "add", " ")) == "an account's name has 1 to 200 characters"
    assert len((await answer(data, "accounts list --json")).lines) == 2


async def test_a_key_opens_its_own_account_alone(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        await answer(tmp_path, "accounts add anna")
        await answer(tmp_path, "sessions add --batchcode MINE")
        await answer(tmp_path, "sessions add --batchcode HERS --account anna")
        key = (await answer(tmp_path, "keys add phone --account anna")).out.strip()
        headers = {"X-API-KEY": key}
        async with http.get(f"{server.url}/v1/brewsessions", headers=headers) as response:
            found = (await response.json())["brewsessions"]
        assert [(session["id"], session["batchcode"], session["loginid"]) for session in found] == [
            ("2", "HERS", "2")
        ]
        async with http.get(f"{server.url}/v1/brewsessions/1", headers=headers) as response:
            assert response.status == 404
