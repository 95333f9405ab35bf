"""`sessions note`, `measure`, `events`, `done`: what happens in a brew, written down by hand."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import ask, get
from gateway.cli.lookup import no_session, session_name, session_number
from gateway.cli.options import Config, DataDir, Session, Wide, json_option
from gateway.cli.output import Column, exact, parse_time, table, unix, when
from gateway.cli.recipe_view import one_line
from gateway.cli.session_view import GRAVITY_UNITS
from gateway.domain.brew_event import HAND_READING, INSTRUMENT

PATH = "/manage/brewsessions"

At = Annotated[str | None, typer.Option(help="When it was: 2026-03-01 or 2026-03-01T18:30. [default: now]")]


def note(
    session: Session,
    text: Annotated[str, typer.Argument(help="The note, or what was added.")],
    data_dir: DataDir,
    config: Config = None,
    kind: Annotated[
        str, typer.Option(help="note, dry_hop, addition, transfer, cold_crash or packaged.")
    ] = "note",
    amount: Annotated[
        str | None, typer.Option(help="Of a dry hop or an addition, for instance `50 g`.")
    ] = None,
    at: At = None,
) -> None:
    """Write a note, a dry hop or another event into the time line.

    Example: hydrometer-gateway sessions note HP001 Citra --kind dry_hop --amount "50 g"
    """
    _add(data_dir, session, {"kind": kind, "text": text, "amount": amount}, at)


def measure(
    session: Session,
    data_dir: DataDir,
    config: Config = None,
    gravity: Annotated[str | None, typer.Option(help="As read, for instance 1.024 or 6.1.")] = None,
    gravity_unit: Annotated[str, typer.Option("--gravity-unit", help="G (SG) or P (Plato).")] = "G",
    temp: Annotated[str | None, typer.Option(help="Temperature of the sample.")] = None,
    temp_unit: Annotated[str, typer.Option("--temp-unit", help="C or F.")] = "C",
    instrument: Annotated[str, typer.Option(help="Any text.")] = INSTRUMENT,
    note: Annotated[str, typer.Option(help="Any text.")] = "",
    at: At = None,
) -> None:
    """Add a reading that was taken by hand. It is sent on like any imported reading.

    Correct the value of a refractometer for alcohol first: uncorrected, it is far too high.

    Example: hydrometer-gateway sessions measure HP001 --gravity 1.024 --temp 19
    """
    body = {
        "kind": HAND_READING,
        **({"gravity": gravity, "gravity_unit": gravity_unit} if gravity is not None else {}),
        **({"temp": temp, "temp_unit": temp_unit} if temp is not None else {}),
        "instrument": instrument,
        "text": note,
    }
    _add(data_dir, session, body, at)


def events(
    session: Session,
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_SESSIONS_EVENTS_JSON")] = False,
    wide: Wide = False,
) -> None:
    """Show what happened in a brew session, the newest last."""
    number = session_number(data_dir, session)
    found = get(data_dir, f"{PATH}/{number}/events", missing=no_session(number))["events"]
    if as_json:
        for event in reversed(found):
            typer.echo(json.dumps(event, ensure_ascii=False))
        return
    rows = [
        (
            event["id"],
            when(unix(event["at"])),
            event["kind"].replace("_", " "),
            _words(event),
            one_line(event["author"]),
        )
        for event in reversed(found)
    ]
    columns = (
        *(Column("ID", 3), Column("TIME"), Column("KIND"), Column("WHAT", cut=True)),
        Column("BY", 2, cut=True),
    )
    table(columns, rows, wide=wide)


def done(
    session: Session,
    data_dir: DataDir,
    config: Config = None,
    phase: Annotated[str | None, typer.Option(help="Any text. [default: Conditioning]")] = None,
    take_back: Annotated[
        bool, typer.Option("--take-back", help="It is not done after all: free devices return.")
    ] = False,
) -> None:
    """Mark a brew session done.

    Its devices are free, and its readings stay.
    """
    number = session_number(data_dir, session)
    body = {"ended": not take_back, "phase": phase}
    changed = ask(data_dir, "PATCH", f"{PATH}/{number}", body=body, missing=no_session(number))
    record = changed["brewsessions"][0]
    state = "is not done" if take_back else "is done"
    sentence = f"Brew session {session_name(record)} {state}; its phase is {record['phase']}."
    typer.echo(one_line(sentence), err=True)


def _add(data_dir: Path, session: str, body: dict[str, Any], at: str | None) -> None:
    number = session_number(data_dir, session)
    if at is not None:
        body = {**body, "at": exact(parse_time(at))}
    ask(data_dir, "POST", f"{PATH}/{number}/events", body=body, missing=no_session(number))


def _words(event: dict[str, Any]) -> str:
    """Say what the event is about: the reading, what was added, the device, the phase, the note."""
    gravity = f"{event['gravity']} {GRAVITY_UNITS[event['gravity_unit']]}" if event["gravity"] else ""
    temp = f"{event['temp']} °{event['temp_unit']}" if event["temp"] else ""
    words = (gravity, temp, event["amount"], event["device"], event["phase"], event["text"])
    return ", ".join(one_line(word) for word in words if word)
