"""`readings`: what was stored."""

import asyncio
import json
import sys
from contextlib import aclosing
from typing import Annotated

import typer

from gateway.cli.options import NUMBER_MAX, Config, DataDir
from gateway.control import opened_read_only
from gateway.errors import NotFound
from gateway.services.brewing import find_device

LINE = "{created_at:26}{name:20}{gravity:>10} {gravity_unit:2}{temp:>9} {temp_unit:2} {session:>7}  {flags}"


def readings(
    data_dir: DataDir,
    config: Config = None,
    device: Annotated[str | None, typer.Option(help="Only this device: id, device id, name or key.")] = None,
    session: Annotated[int | None, typer.Option(help="Only this brew session.", max=NUMBER_MAX)] = None,
    last: Annotated[
        int, typer.Option(help="How many, counted from the newest.", min=1, max=NUMBER_MAX)
    ] = 100,
    as_json: Annotated[
        bool, typer.Option("--json", envvar="GATEWAY_READINGS_JSON", help="One JSON object per line.")
    ] = False,
) -> None:
    """Show readings, the newest last, gravity and temperature as the device sent them."""

    async def show() -> None:
        async with opened_read_only(data_dir) as store:
            device_id = None
            if device is not None:
                device_id = find_device(await store.devices.all(), device).id
            if session is not None and await store.sessions.get(session) is None:
                raise NotFound(f"no brew session {session}; `sessions list` shows them")
            if not as_json:
                typer.echo(_line(HEADINGS))
            lines = store.readings.json_lines(last=last, device_id=device_id, session_id=session)
            async with aclosing(lines):
                async for line in lines:
                    sys.stdout.write((line if as_json else _line(json.loads(line))) + "\n")

    asyncio.run(show())


HEADINGS: dict[str, object] = {
    "created_at": "TIME (UTC)",
    "name": "NAME",
    "gravity": "GRAVITY",
    "gravity_unit": "",
    "temp": "TEMP",
    "temp_unit": "",
    "brewevent_id": "SESSION",
    "flags": ["FLAGS"],
}


def _line(reading: dict[str, object]) -> str:
    flags = reading["flags"]
    return LINE.format_map(
        {
            **reading,
            "session": reading["brewevent_id"] or "-",
            "flags": " ".join(flags) if isinstance(flags, list) else "",
        }
    ).rstrip()
