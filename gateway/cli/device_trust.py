"""`devices bind`, `unbind`, `forget`: which sender a device may have, and devices that are no more."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import ask
from gateway.cli.lookup import as_device, device_number, devices
from gateway.cli.options import Config, DataDir, Device, device_words
from gateway.cli.output import exact, harmless, parse_span, to_the_minute, unix
from gateway.cli.progress import progress_bar
from gateway.domain.device import find_device
from gateway.errors import InvalidInput, NameTaken
from gateway.network import written_address

PATH = "/manage/devices"


def bind(
    device: Device,
    data_dir: DataDir,
    config: Config = None,
    source: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The device's address, such as 192.168.1.37.")
    ] = None,
) -> None:
    """Let a device report from one address only.

    What comes under its name from elsewhere waits in the inbox. This is for firmware that can send no key.
    The router must always give the device the same address: fix it in the router's DHCP settings first, or
    the device's own readings wait, too. Of an IPv6 address the network (/64) counts. For firmware that can
    send a key, `keys add NAME --device DEVICE` is better.
    """
    if source is None:
        raise InvalidInput("which address? say --source; `devices show` lists where its readings came from")
    ask(data_dir, "PUT", f"{PATH}/{device_number(data_dir, device)}/source", body={"source": source})
    typer.echo(
        harmless(
            f"{device} reports from {written_address(source)} only; what comes from elsewhere waits in the "
            "inbox. Fix that address in the router's DHCP settings."
        ),
        err=True,
    )


def unbind(device: Device, data_dir: DataDir, config: Config = None) -> None:
    """Let a device report from every address again. What waits in the inbox stays there."""
    ask(data_dir, "DELETE", f"{PATH}/{device_number(data_dir, device)}/source")


def forget(
    data_dir: DataDir,
    device: Annotated[
        str | None,
        typer.Argument(
            help="Id, device id, name, label or key, as `devices list` shows them.",
            autocompletion=device_words,
        ),
    ] = None,
    config: Config = None,
    unused: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="All devices that have not reported for so long, such as 30d."),
    ] = None,
    with_readings: Annotated[
        bool, typer.Option("--with-readings", help="Delete their readings, too, for good.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget a device, or all unused ones.

    Its calibration and its place in a brew session are forgotten, too. Its readings stay in their brew
    sessions under the old name; readings in no brew session can no longer be put into one. With
    --with-readings all of them are deleted, and only a backup brings them back. If the device reports again,
    it is a new device.
    """
    if (device is None) == (unused is None):
        raise InvalidInput("either a device or --unused")
    found = devices(data_dir, writing=True)
    since = None
    if device is not None:
        wanted = find_device([as_device(record) for record in found], device).id
        chosen = [record for record in found if record["id"] == wanted]
    else:
        since = int(time.time()) - parse_span(unused or "")
        chosen = [record for record in found if _last_seen(record) < since]
        if not chosen:
            typer.echo(f"Every device has reported within {unused}.", err=True)
            return
        for record in chosen:
            seen = to_the_minute(_last_seen(record))
            typer.echo(harmless(f"{_name(record)}: {record['readings']} readings, the last at {seen}"))
    if not yes:
        _confirm(chosen, with_readings=with_readings, listed=unused is not None)
    for record in chosen:
        _forget(data_dir, record, since, with_readings=with_readings)


def _confirm(chosen: Sequence[dict[str, Any]], *, with_readings: bool, listed: bool) -> None:
    """Ask before anything is lost that only a backup brings back, or that the command has chosen."""
    readings = sum(record["readings"] for record in chosen)
    if not with_readings and not listed:
        return
    which = f"{len(chosen)} devices" if listed else _name(chosen[0])
    what = f"{which} and {readings} readings" if with_readings else which
    if not sys.stdin.isatty():
        raise InvalidInput(f"this forgets {what}; say --yes")
    if not with_readings:
        typer.confirm(harmless(f"Forget {what}?"), abort=True)
        return
    word = str(readings) if listed else str(chosen[0]["label"] or chosen[0]["name"] or chosen[0]["key"])
    meaning = "the number of readings" if listed else "the device's name"
    typed = typer.prompt(harmless(f"This deletes {what} for good. Type {meaning}, {word}"))
    if typed.strip() != word:
        raise InvalidInput("that is not it; nothing is deleted")


def _forget(data_dir: Path, record: dict[str, Any], since: int | None, *, with_readings: bool) -> None:
    query = {"with_readings": with_readings, "unless_since": None if since is None else exact(since)}
    name = _name(record)
    try:
        with progress_bar() as progress:
            done = ask(data_dir, "DELETE", f"{PATH}/{record['id']}", query=query, progress=progress)
    except NameTaken:
        typer.echo(harmless(f"{name} has reported meanwhile and stays."), err=True)
        return
    sentence = f"{name} is forgotten"
    if with_readings:
        sentence += f", with {done['deleted']} readings"
    elif done["kept"]:
        sentence += f"; its {done['kept']} readings stay"
        sentence += f", {done['unassigned']} of them in no brew session" if done["unassigned"] else ""
    typer.echo(harmless(f"{sentence}."), err=True)


def _last_seen(record: dict[str, Any]) -> int:
    return max(filter(None, (unix(record["last_seen_at"]), unix(record["first_seen_at"]))))


def _name(record: dict[str, Any]) -> str:
    return f"{record['label'] or record['name'] or record['device_id']} ({record['key']})"
