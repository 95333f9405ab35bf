"""`devices`: which hydrometers there are, and which brew session each is in."""

import asyncio
import json
from typing import Annotated, Any

import typer

from gateway.cli.device_merge import merge
from gateway.cli.device_settings import calibrate, exclude, include, resend, set_device
from gateway.cli.device_view import entry, show
from gateway.cli.lookup import session_number
from gateway.cli.options import Config, DataDir, Device, Session, Wide, json_option
from gateway.cli.output import parse_time, table, to_the_minute
from gateway.cli.recipe_view import one_line
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
    as_json: Annotated[bool, json_option("GATEWAY_DEVICES_LIST_JSON")] = False,
    wide: Wide = False,
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
                to_the_minute(s.last_seen_at),
                f"{s.gravity} {s.gravity_unit}" if s.gravity else None,
                f"{s.temp} {s.temp_unit}" if s.temp else None,
            )
            for s in summaries
        ]
        cut = ("KEY", "NAME", "GRAVITY", "TEMP")
        table(headings, rows, wide=wide, cut=cut, spare=("KEY",))
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
    session: Session,
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
    moment = None if since is None else parse_time(since)
    arguments: dict[str, Any] = {
        "device": device,
        "session_id": session_number(data_dir, session),
        "since": moment,
    }
    for sentence in asyncio.run(run_command(data_dir, "devices.assign", **arguments)):
        typer.echo(one_line(sentence), err=True)


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
