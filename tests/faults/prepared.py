"""Data directories to start a gateway on: devices registered and in a brew session that is forwarded."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.services.brewsessions import SessionChange
from gateway.services.build import build_services
from gateway.store.sqlite.store import SqliteStore
from tests.faults.cloud import UPSTREAM_ID
from tests.faults.devices import names
from tests.faults.frame import folders

_TEMPLATES: dict[tuple[str, ...], tuple[dict[str, bytes], str]] = {}


async def prepare(data: Path, devices: Sequence[str] = tuple(names(2, 2))) -> str:
    """A data directory whose devices are all in brew session 1, which is forwarded; the owner's API key.

    What registered them is a reading each, outside the brew session.
    """
    wanted = tuple(devices)
    if wanted not in _TEMPLATES:
        with folders() as (folder, _):
            key = await _make(folder / "data", wanted)
            _TEMPLATES[wanted] = await asyncio.to_thread(_files, folder / "data"), key
    files, key = _TEMPLATES[wanted]
    await asyncio.to_thread(_write, data, files)
    return key


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, content in files.items():
        with (folder / name).open("wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o600)
            os.fsync(file.fileno())  # a power cut comes later
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


async def _make(data: Path, devices: Sequence[str]) -> str:
    store = SqliteStore(data)
    services = build_services(store, data, SystemClock())
    await store.open()
    try:
        first = await services.access.start(first_key="first")
        assert first is not None
        await services.intake.start()
        change = SessionChange(batchcode="FAULTS", upstream_id=UPSTREAM_ID)
        session = await services.brewsessions.add_session(1, change)
        for device in devices:
            body = f'{{"name":"{device}","ID":"{device}","angle":45,"temperature":20.5,"temp_units":"C",'
            body += f'"gravity":12.5,"interval":900,"comment":"{device} registers"}}'
            await services.intake.take(Payload(body.encode(), time.time(), "http /ingest"))
            await services.brewsessions.assign(device, session.id, None)
    finally:
        await store.close()
    return first.key_text
