"""`recipes`: documents in and out, what is told of them, and what is refused."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.clock import SystemClock
from gateway.domain.recipe import DOCUMENT_BYTES
from gateway.errors import StoreUnavailable
from gateway.services.library import Library
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.program.program import answer, command, process, refusal

SAMPLES = Path(__file__).parents[2] / "pure" / "formats" / "beerxml"

JSON_MEMBERS = {
    *("id", "title", "author", "stylename", "brewmethod", "batchsize", "batchsizeunit", "og", "fg", "abv"),
    *("folder_id", "folder_name", "snapshot", "copy_parent_id", "brew_count", "created_at", "updated_at"),
}


def recipe(name: str, more: str = "") -> str:
    return f"<RECIPE><NAME>{name}</NAME><BATCH_SIZE>20</BATCH_SIZE>{more}</RECIPE>"


def document(folder: Path, *names: str, more: str = "", file: str = "recipes.xml") -> str:
    """A file with recipes of these names; its path."""
    path = folder / file
    path.write_text(f"<RECIPES>{''.join(recipe(name, more) for name in names)}</RECIPES>")
    return str(path)


async def titles(data: Path, *options: str) -> list[str]:
    return [entry["title"] for entry in (await answer(data, "recipes list --json", *options)).objects]


async def test_import_prints_only_the_ids_and_tells_the_changes_beside_them(
    data: Path, tmp_path: Path
) -> None:
    file = document(tmp_path, "Harbour Porter", "Quay Bitter")
    imported = await answer(data, "recipes import", file)
    assert imported.out == "1\n2\n"
    told = imported.err.splitlines()
    assert told[0] == f"{file}: recipe 1, Harbour Porter, was changed:"
    assert all(line.startswith("  ") for line in told[1 : told.index(next(x for x in told[1:] if "2," in x))])
    assert "BREWER is missing" in imported.err
    silent = await answer(data, "recipes import --quiet", file)
    assert (silent.out, silent.err) == ("3\n4\n", "")
    assert await titles(data) == ["Harbour Porter", "Quay Bitter"] * 2


async def test_what_is_valid_is_imported_without_a_word_and_beerjson_as_well(
    data: Path, tmp_path: Path
) -> None:
    file = document(tmp_path, "Harbour Porter")
    await answer(data, "recipes import", file)
    clean = tmp_path / "clean.xml"
    await answer(data, "recipes export 1 --out", str(clean))
    again = await answer(data, "recipes import", str(clean))
    assert (again.out, again.err) == ("2\n", "")
    assert (await answer(data, "recipes import --quiet", str(SAMPLES / "beerjson.json"))).out.startswith(
        "3\n"
    )
    assert len(await titles(data)) >= 3


async def test_files_that_cannot_be_read_are_named_and_the_others_taken(data: Path, tmp_path: Path) -> None:
    good = document(tmp_path, "Harbour Porter")
    last = document(tmp_path, "Quay Bitter", file="last.xml")
    bad = {
        "nowhere.xml": "cannot read it: there is no such file or directory",
        "folder.xml": "cannot read it: it is a directory, not a file",
        "picture.xml": "",
        "empty.xml": "the document is empty",
        "doctype.xml": "a document type declaration is not allowed",
        "large.xml": f"the document is larger than {DOCUMENT_BYTES} bytes",
    }
    (tmp_path / "folder.xml").mkdir()
    (tmp_path / "picture.xml").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    (tmp_path / "empty.xml").touch()
    (tmp_path / "doctype.xml").write_text("<!DOCTYPE x [<!ENTITY y 'z'>]>" + recipe("&y;"))
    (tmp_path / "large.xml").write_bytes(b" " * (DOCUMENT_BYTES + 1))
    files = [good, *(str(tmp_path / name) for name in bad), last]
    finished = await command(data, "recipes import --quiet", *files)
    assert (finished.status, finished.out) == (1, "1\n2\n")
    *lines, summary = finished.err.splitlines()
    for line, (name, reason) in zip(lines, bad.items(), strict=True):
        assert line.startswith(f"hydrometer-gateway: {tmp_path / name}: {reason}")
    assert summary == "hydrometer-gateway: 6 of 8 files were refused"
    assert await titles(data) == ["Harbour Porter", "Quay Bitter"]
    alone = await refusal(data, "recipes import", str(tmp_path / "nowhere.xml"))
    assert alone == f"{tmp_path / 'nowhere.xml'}: cannot read it: there is no such file or directory"


async def test_a_document_is_taken_as_a_whole_or_not_at_all(data: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.xml"
    cut.write_text(f"<RECIPES>{recipe('First')}{recipe('Second')[:-20]}")
    assert str(cut) in await refusal(data, "recipes import", str(cut))
    await answer(data, "recipes import --quiet", document(tmp_path, "Third"))
    assert await titles(data) == ["Third"]
    none = tmp_path / "none.xml"
    none.write_text("<RECIPES/>")
    empty = await answer(data, "recipes import", str(none))
    assert (empty.out, empty.err) == ("", f"{none}: there is no recipe in it\n")


async def test_a_disk_that_does_not_take_all_of_a_document_takes_none_of_it(tmp_path: Path) -> None:
    many = "".join(recipe(f"Porter {number}", f"<NOTES>{'long ' * 2000}</NOTES>") for number in range(50))
    store = SqliteStore(tmp_path)
    await store.open()
    try:
        owner, _ = await store.keys.owner(0)
        writer = store._database.writer
        [pages] = await writer.run(lambda c: c.execute("PRAGMA page_count").fetchone())
        await writer.run(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 60}").fetchone())
        with pytest.raises(StoreUnavailable, match="the quota is full"):
            await Library(store, SystemClock()).import_document(owner, f"<RECIPES>{many}</RECIPES>".encode())
    finally:
        await store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as connection:
        assert connection.execute("SELECT count(*) FROM recipes").fetchone() == (0,)


async def test_the_report_is_bounded(tmp_path: Path) -> None:
    file = document(tmp_path, *(f"Porter {number}" for number in range(30)))
    told = (await answer(tmp_path, "recipes import", file)).err.splitlines()
    assert len([line for line in told if "was changed:" in line]) == 20
    assert told[-1] == f"{file}: 10 recipes more were changed"
    first = told[1 : told.index(f"{file}: recipe 2, Porter 1, was changed:")]
    assert len(first) == 11
    assert first[-1].startswith("  and ")
    assert first[-1].endswith(" changes more")


async def test_all_changes_are_listed_to_who_asks(data: Path, tmp_path: Path) -> None:
    hops = "<HOP><NAME>h</NAME></HOP>" * 80  # six lines of report for each
    file = document(tmp_path, *(f"Porter {number}" for number in range(25)), more=f"<HOPS>{hops}</HOPS>")
    finished = await answer(data, "recipes import --all-changes", file)
    told = finished.err.splitlines()
    assert [line for line in told if "was changed:" in line] == [
        f"{file}: recipe {number + 1}, Porter {number}, was changed:" for number in range(25)
    ]
    assert not any(line.endswith("more") or "were changed" in line for line in told)
    for element in ("VERSION", "ALPHA", "AMOUNT", "USE", "TIME"):
        ours = [line for line in told if line.startswith("  HOPS/HOP 80 (h): " + element)]
        assert len(ours) == 25


async def test_list_as_a_table_and_as_json(data: Path, tmp_path: Path) -> None:
    more = "<OG>1.0551</OG><FG>1.014</FG><STYLE><NAME>English Porter</NAME></STYLE>"
    await answer(data, "folders add Dark --kind recipe")
    file = document(tmp_path, "Harbour\n Porter", more=more)
    await answer(data, "recipes import --quiet --folder 1", file)
    await answer(data, "recipes import --quiet", document(tmp_path, "Quay Bitter"))
    await answer(data, "sessions add --recipe 1 --userdate 2026-03-01")
    table = (await answer(data, "recipes list")).lines
    assert table[0].split() == ["ID", "TITLE", "STYLE", "OG", "ABV", "BATCH", "FOLDER", "BREWED"]
    assert table[1].split() == [
        *("1", "Harbour", "Porter", "English", "Porter", "1.055", "5.4", "%", "20.0", "l", "Dark", "1")
    ]
    assert [line.split()[0] for line in table[1:]] == ["1", "2"]
    first, _ = (await answer(data, "recipes list --json")).objects
    assert set(first) == JSON_MEMBERS
    assert (first["id"], first["og"], first["batchsize"], first["batchsizeunit"]) == (1, "1.0551", "20", "l")
    assert (first["folder_id"], first["folder_name"], first["brew_count"]) == (1, "Dark", 1)
    assert (first["snapshot"], first["copy_parent_id"]) == (False, None)
    with_copies = (await answer(data, "recipes list --snapshots --json")).objects
    assert [(r["id"], r["snapshot"], r["copy_parent_id"]) for r in with_copies] == [
        *((1, False, None), (2, False, None), (3, True, 1))
    ]
    copies = (await answer(data, "recipes list --snapshots")).lines
    assert copies[0].endswith("COPY OF")
    assert copies[3].split()[-1] == "1"


async def test_list_by_keyword(data: Path, tmp_path: Path) -> None:
    hop = "<HOPS><HOP><NAME>East Kent Goldings</NAME></HOP></HOPS>"
    await answer(data, "recipes import --quiet", document(tmp_path, "Quay Bitter", more=hop))
    await answer(data, "recipes import --quiet", document(tmp_path, "Harbour Porter"))
    assert await titles(data, "--keyword", "kent gold") == ["Quay Bitter"]
    assert await titles(data, "--keyword", "PORTER") == ["Harbour Porter"]
    assert await titles(data, "--keyword", "%") == []


async def test_more_recipes_than_fit_on_a_page_are_all_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.cli.recipes.PAGE", 3)
    names = [f"Porter {number}" for number in range(7)]
    await answer(tmp_path, "recipes import --quiet", document(tmp_path, *names))
    assert await titles(tmp_path) == names


async def test_what_a_title_holds_cannot_reach_the_terminal(tmp_path: Path) -> None:
    file = document(tmp_path, "Clear \x9b2J Porter")
    told = await answer(tmp_path, "recipes import", file)
    table = await answer(tmp_path, "recipes list")
    assert "Porter" in table.out
    assert "\x9b" not in told.err + table.out


async def test_export_gives_back_what_was_imported(data: Path, tmp_path: Path) -> None:
    await answer(data, "recipes import --quiet", str(SAMPLES / "full.xml"))
    await answer(data, "recipes import --quiet", document(tmp_path, "Quay Bitter"))
    both = tmp_path / "both.xml"
    written = await answer(data, "recipes export 2 1 --out", str(both))
    assert (written.out, written.err) == ("", "")
    printed = await process(data, "recipes export 2 1")
    assert printed.out.encode() == both.read_bytes()
    text = both.read_text("utf-8")
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<RECIPES>')
    assert text.index("Quay Bitter") < text.index(json.dumps((await titles(data))[0])[1:-1])
    again = await answer(data, "recipes import", str(both))
    assert (again.out, again.err) == ("3\n4\n", "")
    copied = tmp_path / "copied.xml"
    await answer(data, "recipes export 3 4 --out", str(copied))
    assert copied.read_bytes() == both.read_bytes()


async def test_recipes_are_filed_and_taken_out_again(data: Path, tmp_path: Path) -> None:
    await answer(data, "folders add Dark --kind recipe")
    await answer(data, "folders add Batches --kind brewsession")
    await answer(data, "recipes import --quiet", document(tmp_path, "One", "Two", "Three"))

    async def filed() -> list[object]:
        return [entry["folder_id"] for entry in (await answer(data, "recipes list --json")).objects]

    done = await answer(data, "recipes file 1 3 --folder 1")
    assert (done.out, done.err) == ("", "")
    assert await filed() == [1, None, 1]
    for words, message in (
        ("recipes file 2 9 --folder 1", "no recipe 9; `recipes list` shows them"),
        ("recipes file 2 --folder 2", "no folder 2 for that; `folders list` shows them"),
        ("recipes file 2 --folder 9", "no folder 9 for that; `folders list` shows them"),
    ):
        assert await refusal(data, words) == message
    assert await filed() == [1, None, 1]
    await answer(data, "recipes file 1 --folder 0")
    assert await filed() == [None, None, 1]


async def test_a_recipe_is_deleted_but_not_the_copy_of_a_brew_session(data: Path, tmp_path: Path) -> None:
    await answer(data, "recipes import --quiet", document(tmp_path, "Harbour Porter"))
    await answer(data, "sessions add --recipe 1")
    assert await refusal(data, "recipes delete 2") == "recipe 2 is the snapshot of brew session 1"
    deleted = await answer(data, "recipes delete 1")
    assert deleted.out == ""
    assert deleted.err == "Recipe 1 (Harbour Porter) is deleted; brew sessions keep their copies.\n"
    assert await titles(data) == []
    assert await titles(data, "--snapshots") == ["Harbour Porter"]
    assert await refusal(data, "recipes delete 1") == "no recipe 1; `recipes list` shows them"


async def test_whose_recipes_they_are(data: Path, tmp_path: Path) -> None:
    file = document(tmp_path, "Harbour Porter")
    await answer(data, "accounts add anna")
    await answer(data, "folders add Dark --kind recipe --account anna")
    await answer(data, "recipes import --quiet", file)
    await answer(data, "recipes import --quiet --account anna", file)
    await answer(data, "recipes import --quiet --folder 1", file)  # anna's folder says whose
    assert [entry["id"] for entry in (await answer(data, "recipes list --json")).objects] == [1]
    hers = (await answer(data, "recipes list --json --account anna")).objects
    assert [(entry["id"], entry["folder_id"]) for entry in hers] == [(2, None), (3, 1)]


REFUSED: list[tuple[str, str]] = [
    ("recipes export 1 9", "no recipe 9; `recipes list` shows them"),
    (
        "recipes export 1 --out /nowhere/x.xml",
        "cannot write /nowhere/x.xml: there is no such file or directory",
    ),
    ("recipes list --account nobody", "no account named 'nobody'; `accounts list` shows them"),
    ("recipes import FILE --account nobody", "no account named 'nobody'; `accounts list` shows them"),
    ("recipes import FILE FILE --folder 9", "no folder 9; `folders list` shows them"),
    ("recipes import FILE --account owner --folder 9", "no folder 9 for that; `folders list` shows them"),
]


async def test_what_cannot_be_done(data: Path, tmp_path: Path) -> None:
    file = document(tmp_path, "Harbour Porter")
    await answer(data, "recipes import --quiet", file)
    for words, message in REFUSED:
        assert await refusal(data, words.replace("FILE", file)) == message
    assert len(await titles(data)) == 1
