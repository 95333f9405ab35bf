"""Backups: whole, consistent, verified; restored they are what they were; nothing goes upstream twice."""

import asyncio
import itertools
import json
import os
import shutil
import sqlite3
import tarfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest
from PIL import Image

from gateway.backup import backup, nightly
from gateway.backup import restore as restoring
from gateway.backup.backup import Made, Stopped, Work
from gateway.backup.nightly import NightlyBackup, last_due, made_in, made_name, next_due
from gateway.backup.restore import MARK, restore
from gateway.clock import SystemClock
from gateway.domain.alarm import AlarmEvent, Channel
from gateway.domain.audit import AuditEntry
from gateway.errors import InvalidInput, NameTaken, SchemaTooNew, StoreInUse, StoreUnavailable
from gateway.network import Peer
from gateway.services.build import Services, build_services
from gateway.services.timeline import EventContent
from gateway.stats import Stats
from gateway.store.files import PHOTO_DIRECTORY
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.cases import each
from tests.clock import FakeClock
from tests.cloud import ScriptedCloud, running
from tests.system.forward.bench import Bench, reading

NOW = 1_780_000_000.0


@asynccontextmanager
async def gateway(data: Path) -> AsyncIterator[Services]:
    store = SqliteStore(data)
    await store.open()
    try:
        services = build_services(store, data, SystemClock())
        await services.access.start()
        yield services
    finally:
        await store.close()


async def arrive(services: Services, numbers: range) -> None:
    """These readings, in brew session 1."""
    sessions = await services.store.sessions.all()
    session = sessions[0] if sessions else await services.store.sessions.add(brew(batchcode="A"))
    await services.store.readings.import_readings(session, [reading(n) for n in numbers], reset=False)


async def photo(services: Services, colour: tuple[int, int, int]) -> str:
    """A photo of recipe 1; its file's name."""
    buffer = BytesIO()
    Image.new("RGB", (8, 8), colour).save(buffer, "PNG")
    return (await services.photos.add(1, buffer.getvalue(), "glass.png")).file_name


def numbers_in(data: Path) -> list[int]:
    with closing(sqlite3.connect(f"file:{data / DATABASE_NAME}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT comment FROM readings").fetchall()
    return sorted(int(comment.removeprefix("no. ")) for (comment,) in rows)


def make(data: Path, target: Path, *, photos: bool = True, force: bool = False) -> Made:
    return backup.make(data, target, Work(), now=NOW, photos=photos, force=force)


def content(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, data: bytes | bytearray) -> None:
    path.write_bytes(data)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def everything_in(directory: Path) -> list[Path]:
    return [directory, *directory.rglob("*")]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "usb"
    folder.mkdir()
    return folder / "gateway.tar"


async def add_recipe(services: Services) -> None:
    document = b"<RECIPES><RECIPE><NAME>Harbour Porter</NAME></RECIPE></RECIPES>"
    await services.library.import_document(services.access.owner_id, document, None, lambda *_: None)


async def test_a_backup_comes_back_as_it_was_with_its_photos(
    data: Path, target: Path, tmp_path: Path
) -> None:
    async with gateway(data) as services:
        await arrive(services, range(50))
        await add_recipe(services)
        name = await photo(services, (200, 120, 40))
        [session] = await services.store.sessions.all()
        await services.timeline.add(session, EventContent("note", text="racked"), "phone", "")
        events = await services.timeline.events(session)
    made = make(data, target)
    assert (made.photos, made.missing, made.contents.counts["readings"]) == (1, [], 50)
    assert mode(target) == 0o600
    assert names(target.parent) == ["gateway.tar"]
    other = tmp_path / "elsewhere"
    restored = restore(other, target, Work())
    assert (restored.before, restored.aside, restored.missing) == (None, [], [])
    assert restored.made_at == datetime.fromtimestamp(NOW, UTC).isoformat()
    assert numbers_in(other) == list(range(50))
    assert (other / PHOTO_DIRECTORY / name).read_bytes() == (data / PHOTO_DIRECTORY / name).read_bytes()
    async with gateway(other) as services:
        assert await services.photos.sweep() == 0
        assert await services.timeline.events(session) == events
        await arrive(services, range(50, 60))
    assert numbers_in(other) == list(range(60))


async def test_any_tar_program_reads_it(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        await arrive(services, range(3))
    make(data, target)
    with tarfile.open(target) as tar:
        assert tar.getnames() == ["gateway.sqlite3", "manifest.json"]


async def test_what_was_acknowledged_before_it_began_is_in_it_while_more_comes_in(
    data: Path, target: Path
) -> None:
    async with gateway(data) as services:
        await arrive(services, range(200))
        stop = False
        slowest = 0.0

        async def more() -> int:
            nonlocal slowest
            number = 200
            while not stop:
                began = time.monotonic()
                await arrive(services, range(number, number + 1))
                slowest = max(slowest, time.monotonic() - began)
                number += 1
            return number

        writing = asyncio.create_task(more())
        for _ in range(3):
            acknowledged = len(numbers_in(data))
            made = await asyncio.to_thread(make, data, target, force=True)
            assert made.contents.counts["readings"] >= acknowledged
        stop = True
        written = await writing
        assert numbers_in(data) == list(range(written))
    assert written > 200
    assert slowest < 5  # seconds: nobody waits for a backup


async def test_nothing_is_overwritten_unless_told_and_nothing_written_among_the_data(
    data: Path, target: Path
) -> None:
    with pytest.raises(StoreUnavailable, match="there is no database"):
        make(data, target)
    async with gateway(data) as services:
        await arrive(services, range(3))
    write(target, b"something else")
    with pytest.raises(NameTaken, match="--force"):
        make(data, target)
    assert content(target) == b"something else"
    make(data, target, force=True)
    assert tarfile.is_tarfile(target)
    with pytest.raises(InvalidInput, match="among the data"):
        make(data, data / DATABASE_NAME, force=True)
    with pytest.raises(InvalidInput, match="is a directory"):
        make(data, target.parent)
    assert numbers_in(data) == [0, 1, 2]
    assert names(target.parent) == ["gateway.tar"]


async def test_a_damaged_database_gives_no_backup(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        await arrive(services, range(500))
    with (data / DATABASE_NAME).open("r+b") as file:
        file.seek(20 * 1024)
        file.write(b"\xff" * 4096)
    with pytest.raises(StoreUnavailable, match="cannot make a sound copy"):
        make(data, target)
    assert names(target.parent) == []


async def test_a_stopped_backup_leaves_nothing(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        await arrive(services, range(500))
    for what in ("copying", "writing the database", "reading"):
        work = Work()

        def stop(_done: int, _of: int, now: str, work: Work = work, what: str = what) -> None:
            work.stopped |= now.startswith(what)

        work._progress = stop
        with pytest.raises(Stopped):
            backup.make(data, target, work, now=NOW)
        assert names(target.parent) == []


async def test_a_lost_photo_is_named_and_the_rest_is_kept(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        await add_recipe(services)
        lost, damaged, sound = [await photo(services, (red, 0, 0)) for red in (1, 2, 3)]
    (data / PHOTO_DIRECTORY / lost).unlink()
    (data / PHOTO_DIRECTORY / damaged).write_bytes(b"rotten")
    made = make(data, target)
    assert sorted(made.missing) == sorted([lost, damaged])
    assert made.photos == 1
    shutil.rmtree(data)
    assert sorted(restore(data, target, Work()).missing) == sorted([lost, damaged])
    assert (data / PHOTO_DIRECTORY / sound).exists()


async def test_restore_keeps_what_was_there_and_can_be_undone(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        await add_recipe(services)
        await arrive(services, range(10))
        old = await photo(services, (1, 0, 0))
    make(data, target)
    async with gateway(data) as services:
        await arrive(services, range(10, 30))
        new = await photo(services, (2, 0, 0))
    restored = restore(data, target, Work())
    assert restored.before is not None
    assert (restored.before.counts["readings"], restored.now.counts["readings"]) == (30, 10)
    kept = next(name for name in restored.aside if name.startswith(DATABASE_NAME))
    folder = next(name for name in restored.aside if name.startswith(PHOTO_DIRECTORY))
    assert names(data / folder) == [new]
    async with gateway(data) as services:  # its sweep takes what the backup does not know
        await services.photos.sweep()
    assert (numbers_in(data), names(data / PHOTO_DIRECTORY)) == (list(range(10)), [old])
    restore(data, data / kept, Work())
    assert numbers_in(data) == list(range(30))
    assert names(data / PHOTO_DIRECTORY) == sorted([old, new])
    async with gateway(data) as services:
        assert await services.photos.sweep() == 0


async def test_a_restore_ends_all_logins(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        key = await services.access.add("phone")
        secret, _ = await services.logins.log_in(key, Peer("127.0.0.1"), "")
    make(data, target)
    async with gateway(data) as services:
        await services.logins.start()
        assert services.logins.find(secret) is not None
    restore(data, target, Work())
    async with gateway(data) as services:
        await services.logins.start()
        assert services.access.check(key, "read")
        assert services.logins.find(secret) is None


async def test_after_a_restore_no_message_has_an_id_that_was_given_before(data: Path, target: Path) -> None:
    async def told(services: Services) -> int:
        return await services.store.messages.test("phone", AlarmEvent(0, None, int(NOW), "test", "a test"))

    async with gateway(data) as services:
        await services.store.messages.save_channel(Channel("phone", "ntfy"))
        before = await told(services)
        make(data, target)
        since = await told(services)
    restore(data, target, Work())
    async with gateway(data) as services:
        assert await told(services) > since > before


async def test_a_backup_without_photos_leaves_those_that_are_there(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        await add_recipe(services)
        name = await photo(services, (1, 0, 0))
    assert make(data, target, photos=False).photos == 0
    restored = restore(data, target, Work())
    assert (restored.missing, names(data / PHOTO_DIRECTORY)) == ([], [name])


async def test_restore_refuses_while_a_gateway_runs(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        await arrive(services, range(5))
        make(data, target)
        with pytest.raises(StoreInUse, match="stop the gateway first"):
            restore(data, target, Work())
        dry = restore(data, target, Work(), dry_run=True)
        assert (dry.now.counts["readings"], dry.aside) == (5, [])
        await arrive(services, range(5, 6))
    assert numbers_in(data) == list(range(6))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_what_root_restores_belongs_to_whom_the_directory_belongs(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        await add_recipe(services)
        await photo(services, (1, 0, 0))
    make(data, target)
    other = data.with_name("other")
    for _ in range(2):
        restore(other, target, Work())
        os.chown(other, 12345, 12345)
    assert {path.stat().st_uid for path in everything_in(other)} == {12345}


@pytest.mark.parametrize("what", ["flipped", "cut", "cut short", "no backup", "empty", "not there"])
async def test_a_backup_that_is_not_sound_changes_nothing(data: Path, target: Path, what: str) -> None:
    async with gateway(data) as services:
        await arrive(services, range(5))
    make(data, target)
    said = bytearray(content(target))
    match what:
        case "flipped":
            said[30_000] ^= 1
        case "cut":
            del said[20_000:]
        case "cut short":
            del said[said.rindex(b"manifest.json") :]
        case "no backup":
            said = bytearray(b"no tar at all" * 1000)
        case "empty":
            said.clear()
    broken = target.with_name("broken.tar")
    if what != "not there":
        write(broken, said)
    before = names(data)
    with pytest.raises(InvalidInput, match=r"damaged|no backup|cannot read"):
        restore(data, broken, Work())
    assert numbers_in(data) == list(range(5))
    assert set(names(data)) <= {*before, "gateway.lock"}


PHOTO = f"photos/{'0' * 8}-0000-4000-8000-{'0' * 12}.jpg"
HUGE_BYTES = 3_000_000_000
SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(HUGE_BYTES)}


def with_stranger(backup: Path, stranger: tarfile.TarInfo, size: int | None) -> Path:
    """Write the backup once more with another member, which its manifest names with `size` bytes."""
    evil = backup.with_name("evil.tar")
    with tarfile.open(backup) as source, tarfile.open(evil, "w") as tar:
        for member in source.getmembers():
            content = source.extractfile(member)
            assert content is not None
            if member.name == "manifest.json":
                tar.addfile(stranger, BytesIO(b"0" * stranger.size) if stranger.size else None)
                manifest = json.load(content)
                if size is not None:
                    manifest["files"][stranger.name] = {"bytes": size, "sha256": "0" * 64}
                content = BytesIO(json.dumps(manifest).encode())
                member.size = len(content.getvalue())
            tar.addfile(member, content)
    return evil


async def test_a_tar_with_other_things_in_it_is_refused(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        await arrive(services, range(5))
    make(data, target)

    @each(
        "name, kind, pax, size, words",
        [
            ("photos/../../escaped", tarfile.SYMTYPE, {}, None, "which is no file of a backup"),
            ("photos/", tarfile.DIRTYPE, {}, 0, "'photos/', which is no file of a backup"),
            ("photos/", tarfile.REGTYPE, {}, 0, "no file of a backup|no plain file"),
            ("photos/control.sock", tarfile.REGTYPE, {}, 0, "'photos/control.sock', which is no file"),
            ("photos/\x1b[2J.jpg", tarfile.REGTYPE, {}, 0, r"'photos/\\x1b\[2J.jpg', which is no file"),
            ("readme.txt", tarfile.REGTYPE, {}, None, "'readme.txt', which is no file"),
            (PHOTO, tarfile.SYMTYPE, {}, 0, "is no plain file"),
            (PHOTO, tarfile.LNKTYPE, {}, 0, "is no plain file"),
            (PHOTO, tarfile.CHRTYPE, {}, 0, "is no plain file"),
            (PHOTO, tarfile.GNUTYPE_SPARSE, {}, HUGE_BYTES, "no plain file|is damaged"),
            (PHOTO, tarfile.REGTYPE, SPARSE, HUGE_BYTES, "no plain file|is damaged"),
            (PHOTO, tarfile.REGTYPE, {}, HUGE_BYTES, "not those of its manifest"),
            (PHOTO, tarfile.REGTYPE, {}, -1, "a size that is none"),
        ],
    )
    def walk(name: str, kind: bytes, pax: dict[str, str], size: int | None, words: str) -> None:
        stranger = tarfile.TarInfo(name)
        stranger.type, stranger.pax_headers, stranger.linkname = kind, pax, "/etc/passwd"
        if kind == tarfile.REGTYPE:
            stranger.size = 512 if pax else 0
        evil = with_stranger(target, stranger, size)
        before = names(data)
        with pytest.raises(InvalidInput, match=words) as refused:
            restore(data, evil, Work())
        assert str(refused.value).isprintable()
        assert set(names(data)) <= {*before, "gateway.lock"}

    walk()


async def test_room_is_looked_for_before_a_byte_is_written(
    data: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(data) as services:
        await arrive(services, range(5))
    make(data, target)
    usage = shutil.disk_usage(data)._replace(free=1024)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StoreUnavailable, match="has 1 KiB left"):
        restore(data, target, Work())
    assert numbers_in(data) == list(range(5))


async def test_a_database_of_a_newer_schema_is_refused(data: Path, target: Path) -> None:
    async with gateway(data) as services:
        await arrive(services, range(5))
    newer = target.with_name("gateway.sqlite3")
    shutil.copy(data / DATABASE_NAME, newer)
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 999")
    with pytest.raises(SchemaTooNew, match="update it first"):
        restore(data, newer, Work())
    assert numbers_in(data) == list(range(5))


async def test_a_restore_that_is_cut_off_leaves_the_data_or_the_backup_and_nothing_between(
    data: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(data) as services:
        await add_recipe(services)
        await arrive(services, range(10))
        old = await photo(services, (1, 0, 0))
    make(data, target)
    async with gateway(data) as services:
        await arrive(services, range(10, 20))
        new = await photo(services, (2, 0, 0))
    for cut in range(20):
        calls = 0

        def counted(directory: Path, cut: int = cut) -> None:
            nonlocal calls
            calls += 1
            if calls > cut:
                raise KeyboardInterrupt

        monkeypatch.setattr(restoring, "sync_directory", counted)
        try:
            restore(data, target, Work())
        except KeyboardInterrupt:
            found = numbers_in(data)
            assert found in (list(range(20)), list(range(10)))
            wanted = {old, new} if len(found) == 20 else {old}
            assert wanted <= set(names(data / PHOTO_DIRECTORY))
        else:
            break
    assert cut > 2
    assert numbers_in(data) == list(range(10))


async def arrived_after_a_restore(data: Path, target: Path, keeps_ids: bool) -> tuple[list[int], list[int]]:
    """Numbers that a cloud has in two brew sessions when the queue of a backup has been emptied once more."""
    clock = FakeClock()
    async with running(ScriptedCloud(keeps_ids=keeps_ids)) as cloud, aiohttp.ClientSession() as client:

        @asynccontextmanager
        async def forwarding() -> AsyncIterator[Bench]:
            store = SqliteStore(data)
            await store.open()
            try:
                await store.keys.owner(0)
                yield Bench(store, cloud, client, clock=clock)
            finally:
                await store.close()

        async with forwarding() as bench:
            first = await bench.session()
            second = await bench.session(78)
            await bench.arrive(first, range(5))
            await bench.drain()
            await bench.arrive(first, range(5, 10))  # waits while the backup is made, and goes afterwards
            await bench.arrive(second, range(100, 105))  # of a session that was never forwarded so far
            make(data, target)
            await bench.drain()
            await bench.arrive(first, range(10, 15))
            await bench.drain()
        restore(data, target, Work())
        async with forwarding() as bench:
            await bench.arrive(first, range(20, 25))
            await bench.drain()
            return sorted(bench.arrived()), sorted(bench.arrived(78))


@pytest.mark.parametrize("keeps_ids", [True, False])
async def test_after_a_restore_each_reading_is_upstream_once(
    data: Path, target: Path, keeps_ids: bool
) -> None:
    arrived = await arrived_after_a_restore(data, target, keeps_ids)
    assert arrived == ([*range(15), *range(20, 25)], [*range(100, 105)])


async def test_without_reading_back_they_would_be_there_twice(
    data: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.sqlite.snapshot.make_ready", lambda *_: None)
    first, second = await arrived_after_a_restore(data, target, keeps_ids=False)
    assert (len(first), len(second)) == (20 + 5, 5 + 5)


def local(text: str) -> float:
    return datetime.fromisoformat(text).astimezone().timestamp()


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_three_is_by_the_clock_on_the_wall_summer_and_winter() -> None:
    assert last_due(local("2026-03-04T02:59:59")) == local("2026-03-03T03:00")
    assert last_due(local("2026-03-04T03:00:00")) == local("2026-03-04T03:00")
    assert next_due(local("2026-03-28T12:00")) == local("2026-03-29T03:00")  # there is no half past two
    assert next_due(local("2026-03-28T12:00")) - local("2026-03-28T12:00") == 14 * 3600
    assert next_due(local("2026-10-24T12:00")) - local("2026-10-24T12:00") == 16 * 3600


class Night:
    """A nightly backup, with the clock in the test's hand."""

    def __init__(self, data: Path, directory: Path, keep: int = 3) -> None:
        self.clock = FakeClock(last_due(NOW) + 3600)
        self.stats = Stats()
        self.directory = directory
        self.rows: list[AuditEntry] = []
        self.job = NightlyBackup(data, directory, keep, self.stats, self.clock, self.note)

    async def note(self, entry: AuditEntry) -> None:
        self.rows.append(entry)

    @property
    def state(self) -> str:
        return self.stats.parts[nightly.PART]

    async def until_next(self, times: int = 1) -> None:
        """Look as `run` would, until three has come so often."""
        for _ in range(times):
            due = next_due(self.clock.now())
            while self.clock.now() < due + 1:
                self.clock.advance(await self.job.look())
            await self.job.look()


async def test_a_missed_backup_is_made_at_the_start_and_then_every_night_and_some_are_kept(
    data: Path, target: Path
) -> None:
    async with gateway(data) as services:
        await arrive(services, range(5))
        night = Night(data, target.parent)
        write(target, b"somebody else's")
        (target.parent / f".{made_name(NOW)}.part").write_bytes(b"left by a crash")
        await night.job.look()
        first = made_in(target.parent)
        assert first == [int(night.clock.now())]
        await night.job.look()
        assert made_in(target.parent) == first
        await night.until_next(4)
    made = sorted(made_in(target.parent))
    assert len(made) == 3
    steps = [later - earlier for earlier, later in itertools.pairwise(made)]
    assert steps == pytest.approx([86_400] * 2, abs=2)
    assert made[-1] == pytest.approx(last_due(night.clock.now()), abs=2)
    assert names(target.parent) == ["gateway.tar", *map(made_name, made)]
    assert night.state == f"into {target.parent}: ok: {made_name(made[-1])}"
    assert night.stats.in_trouble == set()
    assert [(row.verb, row.object) for row in night.rows[-3:]] == [
        ("backup", f"backup:{made_name(at)}") for at in made
    ]
    newest = target.parent / made_name(made[-1])
    assert restore(data.with_name("other"), newest, Work()).now.counts["readings"] == 5


async def test_a_failure_is_loud_and_tried_again(
    data: Path, target: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(data) as services:
        await arrive(services, range(5))
        missing = target.parent / "not mounted"
        night = Night(data, missing)
        assert await night.job.look() == nightly.RETRY_S
        assert "FAILED" in night.state
        assert night.stats.in_trouble == {nightly.PART}
        assert "is the disk mounted?" in night.state
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        missing.mkdir()
        await night.job.look()
        assert "ok" in night.state
        assert night.stats.in_trouble == set()
        await arrive(services, range(5, 6))


async def test_no_backup_is_named_after_a_clock_that_nobody_has_set(data: Path, target: Path) -> None:
    async with gateway(data):
        night = Night(data, target.parent)
        night.clock.jump(-night.clock.now())
        await night.job.look()
        assert names(target.parent) == []
        assert "what time it is" in night.state
        assert night.stats.in_trouble == {nightly.PART}
        night.clock.jump(NOW)
        await night.job.look()
        assert len(made_in(target.parent)) == 1


async def test_backups_from_the_future_push_none_out(data: Path, target: Path) -> None:
    async with gateway(data):
        night = Night(data, target.parent, keep=1)
        for days in (10, 20):
            (target.parent / made_name(night.clock.now() + days * 86_400)).write_bytes(b"of a wrong clock")
        await night.job.look()
        assert len(made_in(target.parent)) == 3
        assert int(night.clock.now()) in made_in(target.parent)


async def test_the_run_goes_on_until_cancelled(data: Path, target: Path) -> None:
    async with gateway(data):
        night = Night(data, target.parent)
        task = asyncio.create_task(night.job.run())
        await night.clock.run_until(lambda: bool(made_in(target.parent)))
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


async def test_the_log_of_a_killed_gateway_is_in_the_backup_and_in_what_is_kept(
    data: Path, target: Path
) -> None:
    async with gateway(data) as services:
        await arrive(services, range(5))
        copied = data.with_name("killed")  # as a power cut leaves it: the log holds everything
        copied.mkdir()
        for name in names(data):
            if name != "control.sock":
                shutil.copy(data / name, copied / name)
    assert (copied / f"{DATABASE_NAME}-wal").stat().st_size > 0
    make(copied, target)
    restored = restore(copied, target, Work())
    [kept] = [name for name in restored.aside if MARK in name]
    assert restored.now.counts["readings"] == 5
    alone = copied.with_name("alone")
    assert restore(alone, copied / kept, Work()).now.counts["readings"] == 5
    assert f"{DATABASE_NAME}-wal" not in names(copied)
