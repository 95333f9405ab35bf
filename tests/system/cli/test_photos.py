"""`photos`: files in and out as they are, and what is refused."""

import re
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from gateway.formats.image_header import PHOTO_BYTES
from gateway.store.files import PHOTO_DIRECTORY
from tests.program.program import answer, command, process, refusal

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def picture(file: Path, size: tuple[int, int] = (40, 30), kind: str = "PNG") -> bytes:
    """A picture, in that file as well."""
    buffer = BytesIO()
    Image.new("RGB", size, (200, 120, 40)).save(buffer, kind)
    file.write_bytes(buffer.getvalue())
    return buffer.getvalue()


@pytest.fixture
async def brewery(data: Path, tmp_path: Path) -> Path:
    """The data directory with one recipe."""
    file = tmp_path / "recipe.xml"
    file.write_text("<RECIPES><RECIPE><NAME>Harbour Porter</NAME></RECIPE></RECIPES>")
    await answer(data, "recipes import --quiet", str(file))
    return data


async def test_add_prints_only_uuids_and_list_shows_them(brewery: Path, tmp_path: Path) -> None:
    glass, label = tmp_path / "glass.png", tmp_path / "label.jpg"
    data = picture(glass)
    picture(label, (20, 50), "JPEG")
    added = await answer(brewery, "photos add 1", str(glass), str(label), "--caption", "First\nbatch")
    first, second = added.lines
    assert added.err == ""
    assert UUID.fullmatch(first)
    assert UUID.fullmatch(second)
    listed = {entry["uuid"]: entry for entry in (await answer(brewery, "photos list 1 --json")).objects}
    assert set(listed) == {first, second}
    entry = listed[first]
    assert entry.pop("created_at").endswith("+00:00")
    assert entry == {
        **{"uuid": first, "recipe_id": 1, "filename": "glass.png", "mimetype": "image/png"},
        **{"width": 40, "height": 30, "size": len(data), "caption": "First\nbatch"},
    }
    table = (await answer(brewery, "photos list 1")).lines
    assert table[0].split() == ["UUID", "FILE", "PIXELS", "BYTES", "ADDED", "CAPTION"]
    [row] = [line for line in table if line.startswith(second)]
    assert row.split()[1:3] == ["label.jpg", "20x50"]
    assert row.endswith("First batch")


async def test_export_is_byte_for_byte_what_was_added(brewery: Path, tmp_path: Path) -> None:
    glass, out = tmp_path / "glass.jpg", tmp_path / "out.jpg"
    data = picture(glass, kind="JPEG")
    uuid = (await answer(brewery, "photos add 1", str(glass))).out.strip()
    exported = await answer(brewery, "photos export 1", uuid.upper(), "--out", str(out))
    assert (exported.out, out.read_bytes()) == ("", data)


async def test_export_to_a_pipe(brewery: Path, tmp_path: Path) -> None:
    xbm = b'{"no": "picture, but text"}'  # so that it comes through as text
    glass = tmp_path / "glass.png"
    picture(glass)
    uuid = (await answer(brewery, "photos add 1", str(glass))).out.strip()
    (brewery / PHOTO_DIRECTORY / f"{uuid}.png").write_bytes(xbm)
    assert (await process(brewery, "photos export 1", uuid)).out.encode() == xbm


async def test_delete_takes_the_file_along(brewery: Path, tmp_path: Path) -> None:
    glass = tmp_path / "glass.png"
    picture(glass)
    uuid = (await answer(brewery, "photos add 1", str(glass))).out.strip()
    folder = brewery / PHOTO_DIRECTORY
    assert [path.name for path in folder.iterdir()] == [f"{uuid}.png"]
    deleted = await answer(brewery, "photos delete 1", uuid.upper())
    assert (deleted.out, deleted.err) == ("", "")
    assert list(folder.iterdir()) == []
    assert (await answer(brewery, "photos list 1 --json")).out == ""
    assert await refusal(brewery, "photos delete 1", uuid) == f"recipe 1 has no photo {uuid}"
    assert await refusal(brewery, "photos export 1", uuid) == (
        f"recipe 1 has no photo {uuid}; `photos list 1` shows them"
    )


async def test_files_that_are_no_photos_are_named_and_the_others_taken(brewery: Path, tmp_path: Path) -> None:
    good, text, large = tmp_path / "good.png", tmp_path / "text.png", tmp_path / "large.png"
    data = picture(good)
    text.write_text("no picture")
    large.write_bytes(data + bytes(PHOTO_BYTES))
    finished = await command(brewery, "photos add 1", str(text), str(good), str(large))
    assert finished.status == 1
    assert len(finished.out.splitlines()) == 1
    assert finished.err.splitlines() == [
        f"hydrometer-gateway: {text}: the photo is neither a JPEG nor a PNG nor a GIF",
        f"hydrometer-gateway: {large}: the photo is larger than {PHOTO_BYTES >> 20} MiB; shrink it first",
        "hydrometer-gateway: 2 of 3 files were refused",
    ]
    assert len((await answer(brewery, "photos list 1 --json")).lines) == 1
    long = await refusal(brewery, "photos add 1", str(good), "--caption", "x" * 1001)
    assert long.startswith(f"{good}: a file name has 255 characters at most")


async def test_no_recipe_is_one_line_however_many_files(brewery: Path, tmp_path: Path) -> None:
    glass = tmp_path / "glass.png"
    picture(glass)
    message = "no recipe 9; `recipes list` shows them"
    assert await refusal(brewery, "photos add 9", str(glass), str(glass)) == message
    for words in ("photos list 9", "photos export 9 x", "photos delete 9 x"):
        assert await refusal(brewery, words) == message
