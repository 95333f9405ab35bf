"""`devices`: the hydrometers, and the brew session that each is in."""

import json
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gateway.cli.client import ask
from gateway.cli.device_merge import merge
from gateway.cli.device_settings import calibrate, exclude, include, resend, set_device
from gateway.cli.device_trust import bind, forget, unbind
from gateway.cli.device_view import entry, show
from gateway.cli.lookup import (
    as_device,
    device_number,
    devices,
    found_device,
    no_session,
    session_name,
    session_number,
)
from gateway.cli.made import Quiet, tell_done, tell_person
from gateway.cli.next_beer import Again, NewBatchcode, NextUpstreamId, PhaseAfter, RecipeToBrew, Since, begin
from gateway.cli.options import Config, DataDir, Device, Session, Wide, json_option
from gateway.cli.output import (
    DETAIL,
    GREEN,
    GREY,
    YELLOW,
    Cell,
    Column,
    exact,
    parse_time,
    state,
    table,
    unix,
    when,
)
from gateway.domain.brewsession import PHASE_AFTER_FERMENTING
from gateway.errors import InvalidInput
from gateway.insight.silence import silent_after_s
from gateway.services.lookalikes import lookalikes

app = typer.Typer(
    help="Devices: list, show, assign, set up, calibrate, merge.",
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
    now = time.time()
    # Only where there is any, because in most houses these two columns would be empty.
    guarded = any(record["bound_source"] or record["bound_keys"] or record["waiting"] for record in found)
    columns = (
        *(Column("ID", DETAIL), Column("KEY", DETAIL + 2, cut=True), Column("NAME", cut=True)),
        *(Column("SESSION", 2), Column("READINGS", DETAIL), Column("LAST SEEN", 3, short="SEEN")),
        *(Column("GRAVITY", cut=True), Column("TEMP", 4, cut=True)),
        *((Column("BOUND TO", DETAIL + 1, cut=True), Column("WAITING", DETAIL)) if guarded else ()),
        Column("STATE", piped=False),
    )
    rows = [
        (
            record["id"],
            record["key"],
            record["label"] or record["name"],
            record["session"],
            record["readings"],
            when(unix(record["last_seen_at"]), "never"),
            _with_unit(record, "gravity"),
            _with_unit(record, "temp"),
            *((_bound_to(record), record["waiting"] or None) if guarded else ()),
            _state(record, now),
        )
        for record in found
    ]
    table(columns, rows, wide=wide, order=ON_A_TERMINAL)
    if not found:
        typer.echo(NONE_YET, err=True)
    for shared, alike in lookalikes([as_device(record) for record in found]):
        first, second, *_ = ids = [str(device.id) for device in alike]
        typer.echo(
            f"Devices {', '.join(ids)} have {shared} and may be one: "
            f"see `devices merge {first} {second} --dry-run`",
            err=True,
        )


NONE_YET = (
    "No device has reported yet. The page says under Devices, Add a device, what to type into yours; "
    "`quarantine list` shows what arrived and was not understood."
)
"""What stands below an empty list."""


ON_A_TERMINAL = ("NAME", "SESSION", "GRAVITY", "TEMP", "LAST SEEN", "STATE")
"""The columns that come first on a terminal."""


def _state(record: dict[str, Any], now: float) -> Cell:
    """Return whether the device reports: in a word, and a colour where somebody should look."""
    last_at = unix(record["last_seen_at"])
    if record["waiting"]:
        return state("waiting", YELLOW)
    if last_at is None:
        return state("never", GREY)
    if now - last_at > silent_after_s(record["interval_s"]):
        return state("silent", GREY if record["session"] is None else YELLOW)
    return state("ok", GREEN)


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
    quiet: Quiet = False,
) -> None:
    """Put a device into a brew session.

    The readings that it sends from now on belong there. With --since, earlier readings come along, if the
    device was in no session when it sent them.
    """
    number = session_number(data_dir, session)
    body = {"brew_session_id": number, "since": None if since is None else exact(parse_time(since))}
    path = f"/manage/devices/{device_number(data_dir, device)}/brewsession"
    done = ask(data_dir, "PUT", path, body=body, missing=no_session(number))
    for sentence in _sentences(done, since):
        tell_done(sentence, quiet=quiet)


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
def release(device: Device, data_dir: DataDir, config: Config = None, quiet: Quiet = False) -> None:
    """Take a device out of its brew session; its readings stay there."""
    record = found_device(data_dir, device)
    ask(data_dir, "DELETE", f"/manage/devices/{record['id']}/brewsession")
    name, was = record["label"] or record["name"], record["session"]
    now = f"reports into no brew session from now on; its readings stay in brew session {was}"
    tell_person(f"{name} {now if was else 'was in no brew session'}.", quiet=quiet)


@app.command("next")
def next_beer(
    device: Device,
    data_dir: DataDir,
    config: Config = None,
    recipe: RecipeToBrew = None,
    batchcode: NewBatchcode = None,
    upstream_id: NextUpstreamId = None,
    phase: PhaseAfter = PHASE_AFTER_FERMENTING,
    since: Since = None,
    again: Again = False,
    quiet: Quiet = False,
) -> None:
    """Begin the next beer in this device's fermenter.

    It ends the brew session of the device, makes the next one, and moves the device. Other devices of the
    brew session move as well. Give --recipe, --batchcode or both. Prints the id of the new brew session; on a
    terminal, a sentence.

    Example: hydrometer-gateway devices next iSpindel042 --batchcode HP002
    """
    record = found_device(data_dir, device)
    if record["session"] is None:
        name = record["label"] or record["name"]
        raise InvalidInput(
            f"{name} is in no brew session that could end; `sessions add --batchcode {batchcode or 'CODE'}` "
            f"makes one, `devices assign {device} {batchcode or 'CODE'}` puts it there"
        )
    body = {"recipe_id": recipe, "batchcode": batchcode, "upstream_id": upstream_id, "phase": phase}
    begin(data_dir, record["session"], {**body, "again": again}, since, quiet=quiet)


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
