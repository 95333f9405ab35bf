"""`quarantine`: list, show, replay payloads that nothing understood and readings that an upstream refused."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gateway.cli.client import ask, get
from gateway.cli.options import NUMBER_MAX, Config, DataDir, Wide, device_words, json_option
from gateway.cli.output import DETAIL, Column, harmless, local_time, parse_time, table, when
from gateway.cli.progress import progress_bar
from gateway.domain.quarantined import no_payload
from gateway.domain.texts import MAX_NUMBER
from gateway.errors import InvalidInput, NotFound

PATH = "/manage/quarantine"

HEX_BYTES = 16
"""Bytes in a line of a payload that is no text."""

MIB = 1024 * 1024
"""Bytes."""

app = typer.Typer(help="What nobody understood: look at it, try it again.", no_args_is_help=True)


@app.command("list")
def list_quarantine(
    data_dir: DataDir,
    config: Config = None,
    last: Annotated[int, typer.Option(help="How many, counted from the newest.", min=1, max=NUMBER_MAX)] = 50,
    as_json: Annotated[bool, json_option("GATEWAY_QUARANTINE_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List the payloads in quarantine, the newest last.

    Quarantine holds a limited number; beyond it the oldest payloads are pushed out, and counted.
    """

    found = get(data_dir, PATH, query={"last": min(last, MAX_NUMBER)})
    items = [{**item, "begins": harmless(item["begins"])} for item in found["items"]]
    if as_json:
        for item in items:
            typer.echo(json.dumps(item))
        return
    columns = (
        *(Column("NUMBER"), Column("ARRIVED", 2), Column("BY", 4, cut=True), Column("FROM", 3, cut=True)),
        *(Column("REASON", cut=True), Column("BYTES", DETAIL), Column("BEGINS", DETAIL, cut=True)),
    )
    table(columns, [_row(item) for item in items], wide=wide)
    state = found["state"]
    typer.echo(
        f"{state['items']:,} of at most {state['items_max']:,} payloads, "
        f"{state['bytes'] / MIB:.1f} of at most {state['bytes_max'] / MIB:g} MiB\n"
        f"{state['pushed_out']:,} were pushed out by newer ones"
    )


@app.command()
def show(
    number: Annotated[int, typer.Argument(help="As `quarantine list` shows it.", max=NUMBER_MAX)],
    data_dir: DataDir,
    config: Config = None,
    raw: Annotated[bool, typer.Option("--raw", help="Only the bytes as they came, on stdout.")] = False,
) -> None:
    """Show a payload, and the readings that it would become today."""

    if number < 0:
        raise no_payload(number)
    path, missing = f"{PATH}/{number}", str(no_payload(number))
    item = get(data_dir, path, missing=missing)["items"][0]
    body = bytearray()
    if raw or item["body_bytes"]:
        get(data_dir, f"{path}/raw", missing=missing, receive=body.extend)
    if raw:
        typer.echo(bytes(body), nl=False)
        return
    shown = {
        "number": number,
        "arrived": local_time(int(parse_time(item["received_at"]))),
        "by": item["channel"],
        "from": item["source"],
        "reason": item["reason"],
        "driver": item["driver"] or (f"{item['hint']}, usually" if item["hint"] else ""),
        "name": item["label"],
        "query": item["query"],
        "bytes": item["body_bytes"],
        "today": item["today"],
    }
    for name, value in shown.items():
        if value not in {"", None}:
            typer.echo(f"{name:9}{harmless(str(value))}")
    for line in _body_lines(bytes(body)):
        typer.echo(f"  {line}")


@app.command()
def replay(
    data_dir: DataDir,
    config: Config = None,
    numbers: Annotated[
        list[int] | None, typer.Argument(help="As `quarantine list` shows them; all without.", max=NUMBER_MAX)
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Only what says this id, device id, name or key anywhere.", autocompletion=device_words
        ),
    ] = None,
) -> None:
    """Try the payloads in quarantine again, for instance after an update.

    A payload that is understood now becomes a reading with the time of its arrival, once, however often you
    repeat this, and leaves quarantine. A reading that an upstream refused goes into the forwarding queue
    again. The rest stays.

    A reading goes into the brew session that its device is in now, however old the reading is. If the
    reading is of an earlier brew: `devices release` first, then replay, then `devices assign` with --since
    for the session where the reading belongs.
    """
    if numbers and device is not None:
        raise InvalidInput("either numbers or --device, not both")

    if any(number < 0 for number in numbers or ()):
        raise no_payload(min(numbers or ()))
    get(data_dir, PATH, query={"last": 0})  # else the replay would make the database that is not there
    body = {"numbers": numbers or None, "device": device}
    with progress_bar() as progress:
        try:
            done = ask(data_dir, "POST", f"{PATH}/replay", body=body, progress=progress)
        except NotFound:
            for number in numbers or ():
                get(data_dir, f"{PATH}/{number}", missing=str(no_payload(number)))
            raise
    typer.echo(f"{done['understood']} understood, {done['left']} still not")
    for reason, count in done["reasons"].items():
        typer.echo(f"  {count} x {harmless(reason)}")


def _row(item: dict[str, Any]) -> tuple[object, ...]:
    arrived = when(int(parse_time(item["received_at"])))
    members = ("channel", "source", "reason", "bytes", "begins")
    return item["number"], arrived, *(item[name] for name in members)


def _body_lines(body: bytes) -> Iterator[str]:
    """Yield the payload line by line as text; in hex if the payload is no text."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        for place in range(0, len(body), HEX_BYTES):
            piece = body[place : place + HEX_BYTES]
            letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
            yield f"{place:06x}  {piece.hex(' '):{3 * HEX_BYTES}} {letters}"
        return
    yield from map(harmless, text.split("\n") if text else [])
