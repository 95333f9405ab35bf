"""`quarantine`: what nobody understood, or an upstream refused: to look at, and to be tried again."""

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gateway.cli.options import NUMBER_MAX, Config, DataDir, Wide, json_option
from gateway.cli.output import harmless, local_time, table, to_the_minute
from gateway.cli.progress import progress_bar
from gateway.commands.quarantine import item_of
from gateway.control import has_database, opened_read_only, run_command
from gateway.domain.quarantined import Quarantined, QuarantineState
from gateway.domain.report import Report
from gateway.domain.times import iso
from gateway.drivers import decode
from gateway.errors import DriverError, InvalidInput, StoreUnavailable
from gateway.intake.intake import raw_of
from gateway.intake.replay import REFUSED, payload_of

START_BYTES = 48
"""Of a payload, in the list."""

HEX_BYTES = 16
"""In a line of what is no text."""

MS = 1000

app = typer.Typer(
    help="What nobody understood, or an upstream refused: look at it, try it again.", no_args_is_help=True
)


@app.command("list")
def list_quarantine(
    data_dir: DataDir,
    config: Config = None,
    last: Annotated[int, typer.Option(help="How many, counted from the newest.", min=1, max=NUMBER_MAX)] = 50,
    as_json: Annotated[bool, json_option("GATEWAY_QUARANTINE_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List what is in quarantine, the newest last.

    It holds a limited number; beyond it the oldest are pushed out, and counted.
    """

    async def show() -> None:
        async with opened_read_only(data_dir) as store:
            items, state = await store.quarantine.newest(last), await store.quarantine.state()
        if as_json:
            for item in items:
                typer.echo(json.dumps(_object(item)))
            return
        headings = ("NUMBER", "ARRIVED", "BY", "FROM", "REASON", "BYTES", "BEGINS")
        cut = ("BY", "FROM", "REASON", "BEGINS")
        table(headings, [_row(item) for item in items], wide=wide, cut=cut, spare=("BEGINS",))
        typer.echo(_footer(state))

    asyncio.run(show())


@app.command()
def show(
    number: Annotated[int, typer.Argument(help="As `quarantine list` shows it.", max=NUMBER_MAX)],
    data_dir: DataDir,
    config: Config = None,
    raw: Annotated[bool, typer.Option("--raw", help="Only the bytes as they came, on stdout.")] = False,
) -> None:
    """Show one payload, and what is understood of it today."""

    async def look() -> None:
        async with opened_read_only(data_dir) as store:
            item = await item_of(store, number)
        if raw:
            typer.echo(_bytes(item), nl=False)
            return
        for line in _lines(item):
            typer.echo(line)

    asyncio.run(look())


@app.command()
def replay(
    data_dir: DataDir,
    config: Config = None,
    numbers: Annotated[
        list[int] | None, typer.Argument(help="As `quarantine list` shows them; all without.", max=NUMBER_MAX)
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Only what says this id, device id, name or key anywhere."),
    ] = None,
) -> None:
    """Try again what is in quarantine, as after an update.

    What is understood becomes a reading with the time of its arrival, once, however often you repeat this,
    and leaves quarantine. What an upstream refused goes into the forwarding queue again. The rest stays.

    A reading goes into the brew session that its device is in now, as old as it may be. If it is of an
    earlier brew: `devices release` first, then replay, then `devices assign` with --since where it belongs.
    """
    if numbers and device is not None:
        raise InvalidInput("either numbers or --device, not both")

    if not has_database(data_dir):  # else it would be made, and nothing be in it
        raise StoreUnavailable(f"there is no database in {data_dir} yet")
    with progress_bar() as progress:
        done = asyncio.run(
            run_command(data_dir, "quarantine.replay", progress, ids=numbers or [], device=device)
        )
    typer.echo(f"{done['understood']} understood, {done['left']} still not")
    for reason, count in done["reasons"].items():
        typer.echo(f"  {count} x {harmless(reason)}")


def _bytes(item: Quarantined) -> bytes:
    return raw_of(payload_of(item))


def _start(item: Quarantined) -> str:
    return harmless(_bytes(item)[:START_BYTES].decode("utf-8", "backslashreplace"))


def _row(item: Quarantined) -> tuple[object, ...]:
    arrived = to_the_minute(item.received_at // MS)
    return item.id, arrived, item.channel, item.source, item.reason, len(_bytes(item)), _start(item)


def _object(item: Quarantined) -> dict[str, Any]:
    return {
        "number": item.id,
        "received_at": iso(item.received_at // MS),
        "channel": item.channel,
        "source": item.source,
        "reason": item.reason,
        "bytes": len(_bytes(item)),
        "driver": item.driver,
        "hint": item.hint,
        "label": item.label,
        "query": item.query,
        "begins": _start(item),
    }


def _footer(state: QuarantineState) -> str:
    return (
        f"{state.items} of at most {state.items_max} payloads, {state.size} of at most {state.bytes_max} "
        f"bytes\n{state.pushed_out} were pushed out by newer ones"
    )


def _lines(item: Quarantined) -> Iterator[str]:
    shown = {
        "number": item.id,
        "arrived": local_time(item.received_at // MS),
        "by": item.channel,
        "from": item.source,
        "reason": item.reason,
        "driver": item.driver or (f"{item.hint}, usually" if item.hint else ""),
        "name": item.label,
        "query": item.query,
        "bytes": len(item.body),
        "today": _today(item),
    }
    for name, value in shown.items():
        if value not in {"", None}:
            yield f"{name:9}{harmless(str(value))}"
    yield from (f"  {line}" for line in _body_lines(item.body))


def _today(item: Quarantined) -> str:
    """What `replay` would make of it."""
    if item.channel.startswith(REFUSED):
        return f"`quarantine replay {item.id}` puts it into the forwarding queue again"
    try:
        decoded = decode(payload_of(item))
    except DriverError as error:
        return f"not understood: {error}"
    except Exception as error:  # a mistake of ours must not hide the payload that shows it
        return f"the driver fails on it: {error!r}"
    said = "; ".join(map(_said, decoded.reports)) or "understood, and holds no measurement"
    return said if decoded.trouble is None else f"{said}; not understood: {decoded.trouble}"


def _said(report: Report) -> str:
    gravity = f"gravity {report.gravity} {report.gravity_unit or '(unit not sent)'}"
    temp = f"temp {report.temp} {report.temp_unit or '(unit not sent)'}"
    values = [report.gravity and gravity, report.temp and temp, " ".join(report.flags)]
    return (
        f"a reading of {report.device_key} {report.name!r}: {', '.join(filter(None, values)) or 'no value'}"
    )


def _body_lines(body: bytes) -> Iterator[str]:
    """As text, line by line; in hex where it is none."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        for place in range(0, len(body), HEX_BYTES):
            piece = body[place : place + HEX_BYTES]
            letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
            yield f"{place:06x}  {piece.hex(' '):{3 * HEX_BYTES}} {letters}"
        return
    yield from map(harmless, text.split("\n") if text else [])
