"""`folders`: what recipes and brew sessions are filed in."""

from pathlib import Path

from tests.program.program import answer, command, refusal


async def folders(data: Path, *options: str) -> list[tuple[object, ...]]:
    listed = (await answer(data, "folders list --json", *options)).objects
    return [(f["id"], f["kind"], f["name"], f["filed"]) for f in listed]


async def test_add_rename_delete(data: Path) -> None:
    added = [
        await answer(data, "folders add", "Dark ones", "--kind", "recipe"),
        await answer(data, "folders add", "Dark ones", "--kind", "brewsession"),
    ]
    assert [(f.out, f.err) for f in added] == [("1\n", ""), ("2\n", "")]
    await answer(data, "sessions add --batchcode A --folder 2")
    assert await folders(data) == [(1, "recipe", "Dark ones", 0), (2, "brewsession", "Dark ones", 1)]
    renamed = await answer(data, "folders rename 2", "Winter")
    assert (renamed.out, renamed.err) == ("", "")
    table = (await answer(data, "folders list")).lines
    assert table[0].split() == ["ID", "KIND", "NAME", "FILED"]
    assert table[2].split() == ["2", "brewsession", "Winter", "1"]
    deleted = await answer(data, "folders delete 2")
    assert (deleted.out, deleted.err) == (
        "",
        "Folder 2 (Winter) is removed; what was in it is filed nowhere.\n",
    )
    assert await folders(data) == [(1, "recipe", "Dark ones", 0)]
    [session] = (await answer(data, "sessions list --json")).objects
    assert session["folder_id"] is None


async def test_everybody_has_their_own(data: Path) -> None:
    await answer(data, "accounts add anna")
    await answer(data, "folders add Dark --kind recipe")
    await answer(data, "folders add Dark --kind recipe --account anna")
    assert await folders(data) == [(1, "recipe", "Dark", 0)]
    assert await folders(data, "--account", "anna") == [(2, "recipe", "Dark", 0)]
    await answer(data, "folders rename 2 Pale")  # an id needs no account
    assert await folders(data, "--account", "anna") == [(2, "recipe", "Pale", 0)]


async def test_what_cannot_be_done(data: Path) -> None:
    await answer(data, "folders add Dark --kind recipe")
    await answer(data, "folders add Pale --kind recipe")
    for words, message in (
        (("folders", "add", "Dark", "--kind", "recipe"), "there is a recipe folder named 'Dark'"),
        (("folders", "add", " ", "--kind", "recipe"), "a folder's name has 1 to 200 characters"),
        (("folders", "rename", "2", "Dark"), "there is a folder named 'Dark'"),
        (("folders", "rename", "9", "Dark"), "no folder 9; `folders list` shows them"),
        (("folders", "delete", "9"), "no folder 9; `folders list` shows them"),
        (
            ("folders", "add", "Dark", "--kind", "recipe", "--account", "x"),
            "no account named 'x'; `accounts list` shows them",
        ),
    ):
        assert await refusal(data, words) == message
    wrong = await command(data, "folders add Dark --kind device")
    assert wrong.status == 2
    assert "recipe" in wrong.err
    assert await folders(data) == [(1, "recipe", "Dark", 0), (2, "recipe", "Pale", 0)]
