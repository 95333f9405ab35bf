"""`sessions`: make, change, show and delete brew sessions."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli import session_events
from gateway.cli.accounts import AccountName
from gateway.cli.client import ask, get
from gateway.cli.lookup import device_number, no_recipe, no_session, session_name, session_number
from gateway.cli.made import Quiet, tell_made, tell_person
from gateway.cli.next_beer import (
    Again,
    NewBatchcode,
    NextUpstreamId,
    PhaseAfter,
    RecipeToBrew,
    Since,
    begin,
    warn,
)
from gateway.cli.options import NUMBER_MAX, Config, DataDir, Session, Wide, json_option
from gateway.cli.output import DETAIL, Column, table, unix, when
from gateway.cli.progress import progress_bar
from gateway.cli.recipe_view import one_line
from gateway.cli.session_view import session_lines
from gateway.domain.brewsession import DEFAULT_PHASE, DETAIL_MEMBERS, PHASE_AFTER_FERMENTING
from gateway.domain.texts import did_you_mean
from gateway.errors import InvalidInput, NotFound

PATH = "/manage/brewsessions"

app = typer.Typer(
    help="Brew sessions: add, list, update, next, done, notes.",
    no_args_is_help=True,
)

SessionId = Session
DeletedId = Annotated[
    int,
    typer.Argument(metavar="ID", help="As `sessions list --deleted` shows it.", min=1, max=NUMBER_MAX),
]
Batchcode = Annotated[str | None, typer.Option(help="For instance HP001.")]
Phase = Annotated[str | None, typer.Option(help="Any text.")]
Userdate = Annotated[str | None, typer.Option(metavar="DAY", help="The brewing day, YYYY-MM-DD.")]
Notes = Annotated[str | None, typer.Option(help="Any text.")]
Folder = Annotated[
    int | None, typer.Option(help="File it there; an id of `folders list`, 0 is none.", min=0, max=NUMBER_MAX)
]
UpstreamId = Annotated[
    int | None,
    typer.Option(
        help="The session's number at the upstream: its readings are forwarded there. 0 stops that.",
        min=0,
        max=NUMBER_MAX,
    ),
]
Owner = Annotated[
    str | None,
    typer.Option(
        "--account", help="Whose it is: an account's name. [default: the recipe's account, else the owner's]"
    ),
]
SET_HELP = f"A detail, NAME=VALUE; without VALUE it is unset. May be repeated: {', '.join(DETAIL_MEMBERS)}."
NewDetails = Annotated[
    list[str] | None, typer.Option("--set", envvar="GATEWAY_SESSIONS_ADD_SET", help=SET_HELP)
]
Details = Annotated[
    list[str] | None, typer.Option("--set", envvar="GATEWAY_SESSIONS_UPDATE_SET", help=SET_HELP)
]


@app.command()
def add(
    data_dir: DataDir,
    config: Config = None,
    recipe: RecipeToBrew = None,
    batchcode: NewBatchcode = None,
    phase: Annotated[str, typer.Option(help="Any text.")] = DEFAULT_PHASE,
    userdate: Userdate = None,
    notes: Notes = None,
    folder: Folder = None,
    upstream_id: UpstreamId = None,
    account: Owner = None,
    details: NewDetails = None,
    again: Again = False,
    quiet: Quiet = False,
) -> None:
    """Make a brew session.

    Prints its id; on a terminal, a sentence. The brew session takes a copy of the recipe, which later changes
    of the recipe do not reach. Give --recipe, --batchcode or both. Without --userdate, the brewing day is
    today, by the machine's time zone.

    Example: hydrometer-gateway sessions add --recipe 3 --userdate 2026-03-01 --set totalwater=30
    """
    body = {
        **_change(batchcode, phase, userdate, notes, folder, upstream_id, details),
        "recipe_id": recipe,
        "again": again,
    }
    missing = no_recipe(recipe) if recipe else _no_folder(folder)
    added = ask(data_dir, "POST", PATH, body=body, account=account, missing=missing)
    session = added["brewsessions"][0]
    tell_made(
        session["id"],
        f"Brew session {session_name(session)} is made; `devices assign DEVICE {session['id']}` lets one "
        "report into it.",
        quiet=quiet,
    )
    warn(added)


@app.command()
def update(
    session: SessionId,
    data_dir: DataDir,
    config: Config = None,
    batchcode: Batchcode = None,
    phase: Phase = None,
    userdate: Userdate = None,
    notes: Notes = None,
    folder: Folder = None,
    upstream_id: UpstreamId = None,
    og: Annotated[
        str | None, typer.Option(help="The original gravity by hand, for instance 1.050; '' takes it back.")
    ] = None,
    og_unit: Annotated[str | None, typer.Option(help="G (SG) or P (Plato). [default: G]")] = None,
    send_notes: Annotated[
        bool | None, typer.Option("--send-notes/--keep-notes", help="Send notes on as comments, too.")
    ] = None,
    lead: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE", help="The device whose gravity the figures follow; '' leaves the choice to us."
        ),
    ] = None,
    details: Details = None,
    quiet: Quiet = False,
) -> None:
    """Change what you name of a brew session.

    The rest stays as it is, its recipe included.

    Example: hydrometer-gateway sessions update 1 --phase Conditioning --notes "Racked on Sunday"
    """
    arguments = {
        **_change(batchcode, phase, userdate, notes, folder, upstream_id, details),
        "og": og,
        "og_unit": og_unit,
        "send_notes": send_notes,
        "lead_device": lead and device_number(data_dir, lead),
    }
    if lead == "":
        arguments["lead_device"] = 0
    if not details and all(value is None for name, value in arguments.items() if name != "details"):
        raise InvalidInput("nothing to change; say what, for instance --phase Conditioning")
    number = session_number(data_dir, session)
    missing = _no_folder(folder) if folder else no_session(number)
    changed = ask(data_dir, "PATCH", f"{PATH}/{number}", body=arguments, missing=missing)
    tell_person(f"Brew session {session_name(changed['brewsessions'][0])} is changed.", quiet=quiet)
    if batchcode is None:
        changed["warnings"] = []
    if not upstream_id:
        changed["nowhere"] = None
    warn(changed)


@app.command("next")
def next_session(
    session: SessionId,
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
    """Begin the next beer: end a brew session and make the next one.

    The next one takes over the devices. Prints its id. The other session is done; it gets the phase, and
    keeps its readings. Give --recipe, --batchcode or both. On a terminal, a sentence stands for the id.

    Example: hydrometer-gateway sessions next HP001 --batchcode HP002 --upstream-id 4102
    """
    number = session_number(data_dir, session)
    body = {"recipe_id": recipe, "batchcode": batchcode, "upstream_id": upstream_id, "phase": phase}
    begin(data_dir, number, {**body, "again": again}, since, quiet=quiet)


for command in (session_events.done, session_events.note, session_events.measure, session_events.events):
    app.command()(command)


def _no_folder(number: int | None) -> str:
    return f"no folder {number} for that; `folders list` shows them"


def _change(
    batchcode: str | None,
    phase: str | None,
    userdate: str | None,
    notes: str | None,
    folder: int | None,
    upstream_id: int | None,
    details: list[str] | None,
) -> dict[str, Any]:
    """Return the members of a `SessionChange`, without the recipe."""
    if batchcode is not None and not batchcode.strip():
        raise InvalidInput("the batch code is empty")
    given = dict(map(_detail, details or ()))
    if unknown := given.keys() - set(DETAIL_MEMBERS):
        meant = did_you_mean(min(unknown), DETAIL_MEMBERS)
        known = ", ".join(DETAIL_MEMBERS)
        raise InvalidInput(f"a brew session has no {', '.join(sorted(unknown))}{meant}; --set takes {known}")
    return {
        "batchcode": batchcode,
        "phase": phase,
        "userdate": userdate,
        "notes": notes,
        "folder_id": folder,
        "upstream_id": upstream_id,
        "details": given,
    }


def _detail(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"--set wants NAME=VALUE, not {text!r}")
    return name, value or None


@app.command()
def delete(session: SessionId, data_dir: DataDir, config: Config = None) -> None:
    """Delete a brew session; `undelete` brings it back.

    It is not shown any more. Its devices are free, and its readings stay stored.
    """
    number = session_number(data_dir, session)
    deleted = ask(data_dir, "DELETE", f"{PATH}/{number}", missing=no_session(number))
    released = ", ".join(map(one_line, deleted["devices"]))
    freed = f" No longer in it: {released}." if released else ""
    which = f"{number} ({one_line(deleted['batchcode'])})"
    typer.echo(
        f"Brew session {which} is deleted; its readings stay stored.{freed} `sessions undelete {number}` "
        f"brings it back, `sessions purge {number}` deletes it for good.",
        err=True,
    )


@app.command()
def undelete(session: DeletedId, data_dir: DataDir, config: Config = None) -> None:
    """Bring a deleted brew session back with its readings. Devices have to be assigned again."""
    back = ask(data_dir, "POST", f"{PATH}/{session}/undelete", missing=_no_deleted(session))
    which = f"{session} ({one_line(back['batchcode'])})"
    typer.echo(f"Brew session {which} is back with {back['readings']} readings; it has no device.", err=True)


@app.command()
def purge(
    session: DeletedId,
    data_dir: DataDir,
    config: Config = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a deleted brew session and its readings for good. Only a backup brings them back.

    The room of the readings is free for new ones at once. `sessions list --deleted` shows their number.
    """
    deleted = {found["id"]: found for found in _deleted(data_dir)}
    if session not in deleted:
        raise NotFound(_no_deleted(session))
    found = deleted[session]
    which = f"brew session {session} ({one_line(found['batchcode'])}) and its {found['readings']} readings"
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInput(f"this deletes {which} for good; say --yes")
        typer.confirm(f"Delete {which} for good?", abort=True)
    with progress_bar() as progress:
        path = f"{PATH}/{session}/purge"
        gone = ask(data_dir, "POST", path, progress=progress, missing=_no_deleted(session))
    typer.echo(f"Brew session {session} and {gone['readings']} readings are gone for good.", err=True)


def _deleted(data_dir: Path) -> list[dict[str, Any]]:
    query = {"deleted": True, "everyone": True}
    found: list[dict[str, Any]] = get(data_dir, PATH, query=query)["brewsessions"]
    return found


def _no_deleted(number: int) -> str:
    return f"no deleted brew session {number}; `sessions list --deleted` shows them"


@app.command("list")
def list_sessions(
    data_dir: DataDir,
    config: Config = None,
    account: AccountName = None,
    as_json: Annotated[bool, json_option("GATEWAY_SESSIONS_LIST_JSON")] = False,
    deleted: Annotated[
        bool,
        typer.Option("--deleted", help="Those, of all accounts, that `undelete` brings back."),
    ] = False,
    wide: Wide = False,
) -> None:
    """List an account's brew sessions, the newest last."""
    if deleted:
        _list_deleted(_deleted(data_dir), as_json, wide)
        return
    found = get(data_dir, PATH, account=account)["brewsessions"]
    if as_json:
        for session in found:
            typer.echo(json.dumps({name: session[name] for name in ENTRY}, ensure_ascii=False))
        return
    columns = (
        *(Column("ID"), Column("BATCHCODE", cut=True), Column("PHASE", 2, cut=True)),
        *(Column("BREWED", 3), Column("RECIPE", 3, cut=True), Column("FOLDER", DETAIL, cut=True)),
        *(Column("UPSTREAM", 2), Column("CREATED", DETAIL)),
    )
    rows = [
        (
            s["id"],
            *(
                one_line(s[name])
                for name in ("batchcode", "phase", "userdate", "recipe_title", "folder_name")
            ),
            " ".join(map(str, s["numbers"])) or s["upstream_id"],
            when(unix(s["created_at"])),
        )
        for s in found
    ]
    table(columns, rows, wide=wide)


ENTRY = (
    *("id", "batchcode", "phase", "userdate", "recipe_id", "recipe_title"),
    *("folder_id", "folder_name", "upstream_id", "created_at"),
)
"""Members of a brew session in the JSON list, in their order."""


def _list_deleted(found: list[dict[str, Any]], as_json: bool, wide: bool) -> None:
    if not as_json:
        rows = [
            (s["id"], one_line(s["batchcode"]), s["readings"], when(unix(s["updated_at"]))) for s in found
        ]
        columns = (Column("ID"), Column("BATCHCODE", cut=True), Column("READINGS", 2), Column("DELETED"))
        table(columns, rows, wide=wide)
        return
    for s in found:
        members = {name: s[name] for name in ("id", "batchcode", "readings")}
        typer.echo(json.dumps({**members, "deleted_at": s["updated_at"]}, ensure_ascii=False))


@app.command()
def show(session: SessionId, data_dir: DataDir, config: Config = None) -> None:
    """Show everything about a brew session, with its figures.

    Figures are what its readings give so far.
    """
    number = session_number(data_dir, session)
    found = get(data_dir, f"{PATH}/{number}", missing=no_session(number))["brewsession"]
    insight = get(data_dir, f"{PATH}/{number}/insight", missing=no_session(number))
    for line in session_lines(found, insight):
        typer.echo(line)
