"""`devices`: which hydrometers there are, and which brew session each is in."""

import asyncio
import json
from typing import Annotated

import typer

from gateway.cli.device_merge import merge
from gateway.cli.device_settings import calibrate, exclude, include, resend, set_device
from gateway.cli.device_view import entry, show
from gateway.cli.options import NUMBER_MAX, Config, DataDir, Device
from gateway.cli.output import local_time, parse_time, table
from gateway.control import opened_read_only, run_command
from gateway.services.merging import lookalikes

app = typer.Typer(
    help="Devices: what there is, what was understood of them, calibration, brew sessions.",
    no_args_is_help=True,
)


@app.command("list")
def list_devices(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[
        bool, typer.Option("--json", envvar="GATEWAY_DEVICES_LIST_JSON", help="One JSON object per line.")
    ] = False,
) -> None:
    """List devices with their last reading. A device registers itself with its first reading."""

    async def show() -> None:
        async with opened_read_only(data_dir) as store:
            summaries = await store.devices.summaries()
        if as_json:
            for summary in summaries:
                typer.echo(json.dumps(entry(summary), ensure_ascii=False))
            return
        headings = ("ID", "KEY", "NAME", "SESSION", "READINGS", "LAST SEEN", "GRAVITY", "TEMP")
        rows = [
            (
                s.device.id,
                s.device.key,
                s.device.title,
                s.device.session_id,
                s.readings,
                local_time(s.last_seen_at),
                f"{s.gravity} {s.gravity_unit}" if s.gravity else None,
                f"{s.temp} {s.temp_unit}" if s.temp else None,
            )
            for s in summaries
        ]
        table(headings, rows)
        for shared, alike in lookalikes([s.device for s in summaries]):
            first, second, *_ = ids = [str(device.id) for device in alike]
            typer.echo(
                f"Devices {', '.join(ids)} have {shared} and may be one: "
                f"see `devices merge {first} {second} --dry-run`",
                err=True,
            )

    asyncio.run(show())


@app.command()
def assign(
    device: Device,
    session: Annotated[
        int, typer.Argument(help="Brew session id, as `sessions list` shows it.", max=NUMBER_MAX)
    ],
    data_dir: DataDir,
    config: Config = None,
    since: Annotated[
        str | None,
        typer.Option(
            help="Also claim the device's unassigned readings since then: 2026-03-01 or 2026-03-01T18:30."
        ),
    ] = None,
) -> None:
    """Put a device into a brew session: what it sends from now on belongs there.

    With --since, readings that it sent earlier while it was in no session come along.
    """
    claimed = asyncio.run(
        run_command(
            data_dir,
            "devices.assign",
            device=device,
            session_id=session,
            since=None if since is None else parse_time(since),
        )
    )
    if since is not None:
        typer.echo(f"{claimed} earlier readings claimed", err=True)


@app.command()
def release(device: Device, data_dir: DataDir, config: Config = None) -> None:
    """Take a device out of its brew session; its readings stay there."""
    asyncio.run(run_command(data_dir, "devices.release", device=device))


app.command("merge")(merge)
app.command("show")(show)
app.command("set")(set_device)
app.command("calibrate")(calibrate)
app.command("exclude")(exclude)
app.command("include")(include)
app.command("resend")(resend)
