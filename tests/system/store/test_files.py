"""Photo files: durable before they count, private, and no trace of what failed."""

import errno
import os
import stat
from pathlib import Path

import pytest

from gateway.errors import InvalidInput, StoreUnavailable
from gateway.store.files import PhotoFiles

NAME = "3f1d9c1e-7c55-4b0e-9d3a-5f0a6f0f2b11.jpg"
OTHER = "00000000-0000-4000-8000-000000000002.png"


@pytest.fixture
def files(tmp_path: Path) -> PhotoFiles:
    return PhotoFiles(tmp_path / "photos")


def failing(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def listing(files: PhotoFiles) -> list[str]:
    return sorted(path.name for path in files.directory.iterdir())


def test_what_was_saved_can_be_loaded_and_removed(files: PhotoFiles) -> None:
    files.save(NAME, b"pixels")
    assert files.load(NAME) == b"pixels"
    assert files.names() == {NAME}
    files.remove(NAME)
    files.remove(NAME)
    assert files.names() == set()


def test_no_directory_yet(files: PhotoFiles) -> None:
    assert files.names() == set()
    assert files.sweep([]) == 0
    files.remove(NAME)
    assert not files.directory.exists()


def test_saving_again_replaces(files: PhotoFiles) -> None:
    files.save(NAME, b"old")
    files.save(NAME, b"new")
    assert files.load(NAME) == b"new"
    assert listing(files) == [NAME]


def test_only_the_owner_may_look(files: PhotoFiles) -> None:
    files.save(NAME, b"pixels")
    assert stat.S_IMODE(files.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((files.directory / NAME).stat().st_mode) == 0o600


def test_the_file_is_on_the_disk_before_it_has_its_name(
    files: PhotoFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def recorded_fsync(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        whole = "" if path.is_dir() else f" of {path.stat().st_size} bytes"
        steps.append(f"fsync {'.part' if path.suffix == '.part' else path.name}{whole}")
        fsync(fd)

    def recorded_replace(path: Path, target: Path) -> Path:
        steps.append(f"rename to {target.name}")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    files.save(NAME, b"pixels")
    kept = ["fsync .part of 6 bytes", f"rename to {NAME}", "fsync photos"]
    assert steps == [f"fsync {files.directory.parent.name}", *kept]
    steps.clear()
    files.save(OTHER, b"pixels")
    assert steps == [kept[0], f"rename to {OTHER}", kept[2]]
    steps.clear()
    files.remove(OTHER)
    assert steps == ["fsync photos"]


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_full_disk_leaves_nothing(files: PhotoFiles, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    files.save(OTHER, b"pixels")
    monkeypatch.setattr(step, failing)
    with pytest.raises(StoreUnavailable, match=r"cannot keep the photo in .*: the disk is full"):
        files.save(NAME, b"pixels")
    monkeypatch.undo()
    assert listing(files) == [OTHER]


def test_the_first_error_counts(files: PhotoFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    files.save(OTHER, b"pixels")
    monkeypatch.setattr(os, "fsync", failing)
    monkeypatch.setattr(Path, "unlink", failing)
    with pytest.raises(StoreUnavailable, match="keep the photo"):
        files.save(NAME, b"pixels")
    monkeypatch.undo()
    assert files.names() == {OTHER}
    assert files.sweep({OTHER}) == 1
    assert listing(files) == [OTHER]


def test_a_row_without_its_file_says_what_to_do(files: PhotoFiles) -> None:
    with pytest.raises(StoreUnavailable, match=rf"{NAME} is missing: restore it from a backup"):
        files.load(NAME)


def test_trouble_with_the_disk_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "photos").write_text("in the way")
    files = PhotoFiles(tmp_path / "photos")
    for work in (lambda: files.save(NAME, b""), lambda: files.load(NAME), lambda: files.remove(NAME)):
        with pytest.raises(StoreUnavailable, match="a part of the path is a file, not a directory"):
            work()
    for tidy in (files.names, lambda: files.sweep([])):
        with pytest.raises(StoreUnavailable, match="a part of the path is a file, not a directory"):
            tidy()


def test_sweep_takes_what_crashes_left_and_nothing_else(files: PhotoFiles) -> None:
    files.save(NAME, b"known")
    files.save(OTHER, b"without a row")
    (files.directory / f"{NAME}.k3x_9ab2.part").write_bytes(b"half")
    foreign = ["holiday.jpg", "notes.part", f"{OTHER}.bak", f"x{OTHER}", "gateway.sqlite3"]
    for name in foreign:
        (files.directory / name).write_bytes(b"mine")
    (files.directory / OTHER.replace("2.png", "3.png")).mkdir()
    (files.directory / OTHER.replace("2.png", "4.png")).symlink_to("holiday.jpg")
    assert files.names() == {NAME, OTHER}
    assert files.sweep([NAME]) == 2
    assert files.sweep([NAME]) == 0
    assert files.names() == {NAME}
    assert set(foreign) < set(listing(files))
    assert len(listing(files)) == len(foreign) + 3


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        "../gateway.sqlite3",
        f"../{NAME}",
        f"/{NAME}",
        f"{NAME}\n",
        f"{NAME}\0",
        NAME.upper(),
        NAME.replace("jpg", "svg"),
        NAME.replace("-", "/"),
        NAME.removesuffix(".jpg"),
    ],
)
def test_no_other_name_is_taken(files: PhotoFiles, name: str) -> None:
    for work in (lambda: files.save(name, b""), lambda: files.load(name), lambda: files.remove(name)):
        with pytest.raises(InvalidInput):
            work()
    assert not files.directory.exists()
