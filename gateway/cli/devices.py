"""`devices`: the hydrometers, and the brew session that each is in."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gateway.cli.client import ask
from gateway.cli.device_merge import merge
from gateway.cli.device_settings import calibrate, exclude, include, resend, set_device
from gateway.cli.device_trust import bind, forget, unbind
from gateway.cli.device_view import entry, show
from gateway.cli.lookup import as_device, device_number, devices, no_session, session_name, session_number
from gateway.cli.options import Config, DataDir, Device, Session, Wide, json_option
from gateway.cli.output import exact, parse_time, table, to_the_minute, unix
from gateway.cli.recipe_view import one_line
from gateway.services.lookalikes import lookalikes

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

    found = devices(data_dir)
    if as_json:
        for record in found:
            typer.echo(json.dumps(entry(record), ensure_ascii=False))
        return
    # Only where there is any, because in most houses these two columns would be empty.
    guarded = any(record["bound_source"] or record["bound_keys"] or record["waiting"] for record in found)
    headings: tuple[str, ...] = (
        *("ID", "KEY", "NAME", "SESSION", "READINGS", "LAST SEEN", "GRAVITY", "TEMP"),
        *(("BOUND TO", "WAITING") if guarded else ()),
    )
    rows = [
        (
            record["id"],
            record["key"],
            record["label"] or record["name"],
            record["session"],
            record["readings"],
            to_the_minute(unix(record["last_seen_at"])),
            _with_unit(record, "gravity"),
            _with_unit(record, "temp"),
            *((_bound_to(record), record["waiting"] or None) if guarded else ()),
        )
        for record in found
    ]
    cut = ("KEY", "NAME", "GRAVITY", "TEMP", "BOUND TO") if guarded else ("KEY", "NAME", "GRAVITY", "TEMP")
    table(headings, rows, wide=wide, cut=cut, spare=("KEY",))
    for shared, alike in lookalikes([as_device(record) for record in found]):
        first, second, *_ = ids = [str(device.id) for device in alike]
        typer.echo(
            f"Devices {', '.join(ids)} have {shared} and may be one: "
            f"see `devices merge {first} {second} --dry-run`",
            err=True,
        )


def _bound_to(record: dict[str, Any]) -> str | None:
    """Say which address and which keys the device may report with."""
    keys = [f"key {name}" for name in record["bound_keys"]]
    return ", ".join([*filter(None, [record["bound_source"]]), *keys]) or None


def _with_unit(record: dict[str, Any], quantity: str) -> str | None:
    value = record[f"last_{quantity}"]
    return f"{value} {record[f'last_{quantity}_unit']}" if value else None


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
    """Put a device into a brew session: the readings that it sends from now on belong there.

    With --since, earlier readings come along, if the device was in no session when it sent them.
    """
    number = session_number(data_dir, session)
    body = {"brew_session_id": number, "since": None if since is None else exact(parse_time(since))}
    path = f"/manage/devices/{device_number(data_dir, device)}/brewsession"
    done = ask(data_dir, "PUT", path, body=body, missing=no_session(number))
    for sentence in _sentences(done, since):
        typer.echo(one_line(sentence), err=True)


def _sentences(done: dict[str, Any], since: str | None) -> Iterator[str]:
    """Say in sentences which session the device is in now, and which steps are left to the user."""
    device, session, before = done["device"], done["brew_session"], done["before"]
    moved = before is not None and before["id"] != session["id"]
    from_where = f", no longer into {session_name(before)}" if moved else ""
    sentence = f"{device} reports into brew session {session_name(session)} from now on{from_where}"
    if since is not None:
        were = "reading was" if done["claimed"] == 1 else "readings were"
        yield f"{sentence}; {done['claimed'] or 'no'} earlier {were} put into it."
    else:
        yield f"{sentence}."
        if left := done["unassigned"]:
            are = "reading of it is" if left == 1 else "readings of it are"
            remedy = f"`devices assign {device} {session['id']} --since DAY` puts those since a day into it"
            yield f"{left:,} earlier {are} in no brew session; {remedy}."
    if done["nowhere"]:
        yield f"But {done['nowhere']}."


@app.command()
def release(device: Device, data_dir: DataDir, config: Config = None) -> None:
    """Take a device out of its brew session; its readings stay there."""
    ask(data_dir, "DELETE", f"/manage/devices/{device_number(data_dir, device)}/brewsession")


app.command("merge")(merge)
app.command("show")(show)
app.command("bind")(bind)
app.command("unbind")(unbind)
app.command("forget")(forget)
app.command("set")(set_device)
app.command("calibrate")(calibrate)
app.command("exclude")(exclude)
app.command("include")(include)
app.command("resend")(resend)
