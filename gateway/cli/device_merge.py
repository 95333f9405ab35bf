"""`devices merge`: show the device that two devices of one hydrometer would become, and merge them."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gateway.cli.client import ask
from gateway.cli.lookup import as_device, devices
from gateway.cli.options import Config, DataDir, device_words
from gateway.cli.output import harmless, local_time
from gateway.cli.progress import progress_bar
from gateway.domain.device import find_device


def merge(
    into: Annotated[
        str, typer.Argument(metavar="A", help="The device that stays.", autocompletion=device_words)
    ],
    other: Annotated[
        str,
        typer.Argument(metavar="B", help="The device that becomes part of it.", autocompletion=device_words),
    ],
    data_dir: DataDir,
    config: Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would happen, change nothing.")
    ] = False,
) -> None:
    """Merge two devices: B becomes a part of A.

    B's readings become A's, and so do the readings that B sends from now on. Readings stay in their brew
    sessions, and nothing is forwarded a second time. A keeps its settings, and takes B's where A has none.
    There is no way back but a backup.
    """
    found = [as_device(record) for record in devices(data_dir, writing=True)]
    stays, joins = find_device(found, into), find_device(found, other)
    with progress_bar() as progress:
        body = {"other": joins.id, "dry_run": dry_run}
        plan = ask(data_dir, "POST", f"/manage/devices/{stays.id}/merge", body=body, progress=progress)
    for line in _sentences(plan, done=not dry_run):
        typer.echo(harmless(line))


def _sentences(plan: dict[str, Any], *, done: bool) -> Iterator[str]:
    a, b = plan["into"], plan["other"]
    verb = "is" if done else "would become"
    yield f"Device {b['id']} ({_names(b)}) {verb} part of device {a['id']} ({_names(a)})."
    for side in (a, b):
        yield f"Device {side['id']} {'had' if done else 'has'} {_sent(side['parts'])}."
    if plan["doubt"]:
        yield f"Look twice: {plan['doubt']}."
    if plan["overlap"]:
        from gateway.services.merging import OVERLAP_S  # not above: it brings the drivers

        yield (
            f"{plan['overlap']} readings of device {b['id']} lie within {OVERLAP_S} seconds of one of device "
            f"{a['id']}: perhaps the same measurement, told twice. All stay."
        )
    yield from _of_sessions(plan, a, b)
    if plan["taken"]:
        yield f"Device {a['id']} takes from device {b['id']}: {', '.join(plan['taken'])}."
    if plan["given_up"]:
        yield f"Both have set something else; that of device {a['id']} counts: {', '.join(plan['given_up'])}."
    if plan["understood_again"]:
        yield "Because settings differ, the readings are understood again under those that count."
    yield f"What comes as {b['key']} from now on is device {a['id']}'s. Nothing is forwarded a second time."
    if not done:
        yield "Nothing is changed yet: without --dry-run it is done."


def _of_sessions(plan: dict[str, Any], a: dict[str, Any], b: dict[str, Any]) -> Iterator[str]:
    if plan["session"] is None:
        return
    yield f"What it sends from now on goes into brew session {plan['session']}."
    if b["session"] not in {None, plan["session"]}:
        yield (f"What device {b['id']} has sent into brew session {b['session']} stays there.")
    if any(part["session_id"] is None for part in (*a["parts"], *b["parts"])):
        yield (
            "What is in no brew session stays in none; "
            f"`devices assign {a['id']} {plan['session']} --since DAY` claims it."
        )


def _names(side: dict[str, Any]) -> str:
    return f"{side['key']}, {side['title']}" if side["title"] else side["key"]


def _sent(parts: list[dict[str, Any]]) -> str:
    if not parts:
        return "no readings"
    said = [
        f"{part['readings']} readings in {_session(part)} from {local_time(part['first'])} "
        f"to {local_time(part['last'])}"
        for part in parts
    ]
    return "; ".join(said)


def _session(part: dict[str, Any]) -> str:
    return "no brew session" if part["session_id"] is None else f"brew session {part['session_id']}"
