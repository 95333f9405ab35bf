"""`/manage/backup`: the file that `backup` on the command line writes; for the owner only."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from aiohttp import hdrs, web
from pydantic import Field

from gateway.domain.audit import AuditEntry
from gateway.errors import Forbidden, NameTaken, StoreUnavailable, in_words
from gateway.http.endpoint import Body, Call, Done, Endpoint, Media, Query
from gateway.http.lines import WATCH_S, check_presence
from gateway.http.parameters import Flag, RecordNumber, Words

TAR = "application/x-tar"

DIRECTORY = "backup-to-send"
"""Folder of a backup in the making. The name is fixed, so that a crash leaves one backup at most."""

PIECE_BYTES = 1024 * 1024

FILE_CHARACTERS = 255
"""Characters of a file's name at most, as file systems have it."""


class BackupOptions(Query):
    """Options of a backup."""

    photos: Flag = Field(default=True, description="With the photos, or without them.")


class MadeBackup(Body):
    """A backup that is made."""

    file: Words = Field(max_length=FILE_CHARACTERS, description="The name of its file.")
    size: RecordNumber = Field(description="Its size in bytes.")


async def send_backup(call: Call[BackupOptions, None]) -> web.StreamResponse:
    """Make a backup, check it, send it, and keep nothing of it here."""
    photos, request, data_dir = call.query.photos, call.request, call.services.directory
    now = call.services.clock.now()
    headers = {
        hdrs.CONTENT_TYPE: TAR,
        hdrs.CONTENT_DISPOSITION: 'attachment; filename="hydrometer-gateway.tar"',
        hdrs.CACHE_CONTROL: "no-store",
    }
    response = web.StreamResponse(headers=headers)
    if request.method == hdrs.METH_HEAD:  # without the length, because that would cost a whole backup
        await response.prepare(request)
        return response
    directory = data_dir / DIRECTORY
    with _alone(directory):
        file = await _made(request, data_dir, directory / "gateway.tar", photos, now)
    with file:
        await call.store.audit.add(AuditEntry("backup", "backup:download", f"{file.seek(0, 2)} bytes"))
        response.content_length = file.seek(0, 2)
        file.seek(0)
        await response.prepare(request)
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            await response.write(piece)
    await response.write_eof()
    return response


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Reserve the directory for one backup, because two at a time would need twice the room."""
    if directory in _under_way:
        raise NameTaken("a backup is being made right now; try again when it is done")
    _under_way.add(directory)
    try:
        shutil.rmtree(directory, ignore_errors=True)  # of a gateway that was killed
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        _under_way.discard(directory)


_under_way: set[Path] = set()


async def _made(request: web.Request, data_dir: Path, target: Path, photos: bool, now: float) -> BinaryIO:
    """Make the backup and return its file, open for reading; stop if the client leaves."""
    from gateway.backup.backup import Work, make  # here: other requests need no archives

    work = Work()

    def run() -> BinaryIO:
        try:
            target.parent.mkdir(mode=0o700)
        except OSError as error:
            raise StoreUnavailable(f"cannot write into {data_dir}: {in_words(error)}") from error
        make(data_dir, target, work, now=now, photos=photos)
        return target.open("rb")

    making = asyncio.ensure_future(asyncio.to_thread(run))
    try:
        while not making.done():
            await asyncio.wait([making], timeout=WATCH_S)
            check_presence(request)
    except BaseException:
        work.stopped = True  # the thread cannot be cancelled, but it looks here
        await asyncio.wait([making])
        if making.exception() is None:
            making.result().close()
        raise
    return making.result()


async def note_backup(call: Call[Query, MadeBackup]) -> Done:
    """Write a row of the audit log for a backup that the command line has made beside the gateway."""
    if not call.caller.everywhere:
        raise Forbidden("only the command line notes a backup, through the Unix socket")
    made = call.body
    await call.store.audit.add(AuditEntry("backup", f"backup:{made.file}", f"{made.size} bytes"))
    return Done()


ENDPOINTS = (
    Endpoint(
        "POST",
        "/manage/backup",
        note_backup,
        "Note a backup that the command line has made; through the Unix socket only",
        Query,
        Done,
        body=MadeBackup,
        refusals=(403,),
        owner_only=True,
    ),
    Endpoint(
        "GET",
        "/manage/backup",
        send_backup,
        "A backup of everything, as one file",
        BackupOptions,
        Media((TAR,)),
        refusals=(409,),
        owner_only=True,
    ),
)
"""Backup."""
