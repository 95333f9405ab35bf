"""`inbox`: devices whose readings wait for your word."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import ask, check_text, get
from gateway.cli.options import Config, DataDir, Wide, json_option, waiting_words
from gateway.cli.output import DETAIL, Column, harmless, parse_time, table, to_the_minute, unix, when
from gateway.cli.progress import progress_bar
from gateway.errors import NotFound

PATH = "/manage/inbox"

app = typer.Typer(help="New devices that wait: look at, accept, refuse them.", no_args_is_help=True)

Waiting = Annotated[
    str,
    typer.Argument(
        metavar="DEVICE",
        help="Key, device id, name or number, as `inbox list` shows them.",
        autocompletion=waiting_words,
    ),
]
Source = Annotated[str | None, typer.Option(metavar="ADDRESS", help="Only what came from this address.")]


@app.command("list")
def list_inbox(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_INBOX_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List the devices whose readings wait, with the reason.

    It also lists the devices that you refused. Readings wait if the device is new and `serve` runs with
    --new-devices ask, or if the device has a key or an address of its own and they came without. They are
    kept as they came. Beyond 20 devices of one sender, 200 in all, or 5,000 readings of one device, further
    readings are refused with 503.
    """
    found = get(data_dir, PATH)
    if as_json:
        for entry in found["waiting"]:
            typer.echo(json.dumps({**entry, "refused": False}, ensure_ascii=False))
        for entry in found["refused"]:
            typer.echo(json.dumps({**entry, "refused": True}, ensure_ascii=False))
        return
    columns = (
        *(Column("NUMBER"), Column("KEY", DETAIL, cut=True), Column("NAME", cut=True)),
        *(Column("FROM", 3, cut=True), Column("REASON", 2, cut=True), Column("READINGS", 4)),
        *(Column("FIRST", DETAIL), Column("LAST", 3)),
    )
    rows = [
        (
            entry["number"],
            entry["key"],
            entry["name"],
            entry["source"],
            "accepted, not all stored yet" if entry["accepted"] else entry["reason"],
            entry["readings"],
            when(unix(entry["first_at"])),
            when(unix(entry["last_at"])),
        )
        for entry in found["waiting"]
    ]
    table(columns, rows, wide=wide)
    for entry in found["refused"]:
        where = f" from {entry['source']}" if entry["source"] else ""
        device = f"{entry['key']} {entry['name']}".rstrip()
        typer.echo(harmless(f"refused until {_minute(entry['until'])}: {device}{where}"))
    line = "{names:,} of at most {names_max:,} devices, {readings:,} readings, {bytes:,} bytes"
    typer.echo(line.format(**found["state"]))


@app.command()
def accept(
    device: Waiting,
    data_dir: DataDir,
    config: Config = None,
    source: Source = None,
) -> None:
    """Accept a device: its waiting readings are stored.

    They are stored in order, each with the time of its arrival. Its later readings no longer wait, unless the
    device has a key or an address of its own and they come without. A device that you refused is no longer
    refused.
    """
    found = _find(data_dir, device, source)
    for entry in found["refused"]:
        ask(data_dir, "DELETE", f"{PATH}/refused/{entry['number']}")
        typer.echo(harmless(f"{entry['name'] or entry['key']} is no longer refused."), err=True)
    if not found["waiting"]:
        return
    body = {"numbers": [entry["number"] for entry in found["waiting"]]}
    with progress_bar() as progress:
        done = ask(data_dir, "POST", f"{PATH}/accept", body=body, progress=progress, missing=_nothing(device))
    typer.echo(harmless(f"{done['key']} is accepted, with {done['stored']} readings."), err=True)
    for reason, count in done["reasons"].items():
        typer.echo(harmless(f"  {count} payloads still wait: {reason}"), err=True)


@app.command()
def refuse(
    device: Waiting,
    data_dir: DataDir,
    config: Config = None,
    source: Source = None,
) -> None:
    """Refuse a device: its waiting readings are deleted.

    For 30 days, later ones are not kept either. A new device is refused wherever it reports from. Of a device
    that you know, only readings of the sender that is listed are. `inbox accept` takes a refusal back.
    """
    found = _find(data_dir, device, source)
    if not found["waiting"]:
        raise NotFound(_nothing(device))
    body = {"numbers": [entry["number"] for entry in found["waiting"]]}
    done = ask(data_dir, "POST", f"{PATH}/refuse", body=body, missing=_nothing(device))
    typer.echo(harmless(f"{device} is refused; {done['readings']} readings are deleted."), err=True)


def _find(data_dir: Path, device: str, source: str | None) -> dict[str, Any]:
    """Return the entries of the device that has this key, id, name or number, of all sources or of one."""
    check_text({"device": device})
    found: dict[str, Any] = get(
        data_dir, PATH, query={"find": device}, missing=_nothing(device), writing=True
    )
    if device in {str(entry["number"]) for entry in found["waiting"]}:
        # A number means one entry, while a name means the device, from wherever it reports.
        found["waiting"] = [entry for entry in found["waiting"] if str(entry["number"]) == device]
    if source is not None:
        for part in ("waiting", "refused"):
            found[part] = [entry for entry in found[part] if entry["source"] == source]
        if not found["waiting"] and not found["refused"]:
            raise NotFound(f"nothing of {device!r} came from {source}; `inbox list` shows what waits")
    return found


def _nothing(device: str) -> str:
    return f"nothing of {device!r} waits; `inbox list` shows what does"


def _minute(time: str) -> str | None:
    return to_the_minute(int(parse_time(time)))
