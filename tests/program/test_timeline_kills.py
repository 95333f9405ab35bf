"""A gateway that is killed between a change of a brew and the event that tells it."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from gateway.services.build import build_services
from gateway.store.sqlite.store import SqliteStore
from tests.system.forward.editing import editing

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from gateway.clock import SystemClock
from gateway.services.brewsessions import SessionChange
from gateway.services.build import build_services
from gateway.services.timeline import EventContent
from gateway.store.sqlite import events
from gateway.store.sqlite.store import SqliteStore

async def main(directory, what):
    store = SqliteStore(directory)
    await store.open()
    services = build_services(store, directory, SystemClock())
    session = await store.sessions.get(1)
    events._insert = events.record = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    if what == "hand":
        await services.timeline.add(session, EventContent("hand_reading", gravity="1.024"), "phone", "")
    elif what == "done":
        await services.brewsessions.update_session(session, SessionChange(ended=True))
    else:
        await services.brewsessions.next_session(session, "Bottled", SessionChange(batchcode="HP002"), 0)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""
"""Dies by kill -9 in the transaction, after the reading or the move and before the event."""


async def test_a_kill_between_a_change_and_its_event_leaves_neither(tmp_path: Path) -> None:
    async with editing(tmp_path, keeps_ids=True) as here:
        await here.send("1.05")
        await here.bench.store.close()
        for what in ("hand", "done", "next"):
            script = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path), what]
            ended = await asyncio.to_thread(subprocess.run, script, timeout=60, check=False)
            assert ended.returncode == -signal.SIGKILL
        store = SqliteStore(tmp_path)
        await store.open()
        services = build_services(store, tmp_path, here.bench.clock)
        assert await store.sessions.all() == [here.session]
        assert await store.readings.count() == 1
        assert [device.session_id for device in await store.devices.all()] == [1]
        assert [event.kind for event in await services.timeline.events(here.session)] == [
            "device_in",
            "begun",
        ]
        await store.close()
