"""`sessions`: brew sessions."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.accounts import AccountName, account_id
from gateway.cli.lookup import session_number
from gateway.cli.options import NUMBER_MAX, Config, DataDir, Session, Wide, json_option
from gateway.cli.output import iso, table, to_the_minute
from gateway.cli.progress import progress_bar
from gateway.cli.recipe_view import one_line
from gateway.cli.session_view import session_lines
from gateway.control import opened_read_only, run_command
from gateway.domain.brewsession import DETAIL_MEMBERS, DeletedSession, SessionEntry
from gateway.errors import InvalidInput, NotFound
from gateway.services.brewsessions import ALL_SESSIONS, DEFAULT_PHASE
from gateway.store.queries import Order, Search

PHASE_AFTER_FERMENTING = "Conditioning"
"""What a beer is in once its hydrometer swims in the next."""

app = typer.Typer(
    help="Brew sessions: add, update, next, list, show, delete, bring back, purge.", no_args_is_help=True
)

SessionId = Session
DeletedId = Annotated[
    int,
    typer.Argument(metavar="ID", help="As `sessions list --deleted` shows it.", min=1, max=NUMBER_MAX),
]
RecipeToBrew = Annotated[
    int | None, typer.Option(help="What is brewed: an id of `recipes list`.", min=1, max=NUMBER_MAX)
]
NewBatchcode = Annotated[
    str | None,
    typer.Option(help="For instance HP001. [default: the recipe's initials and the next number]"),
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
) -> None:
    """Make a brew session and print its id, and nothing else, on stdout.

    It takes a copy of the recipe, which later changes of the recipe do not reach. Needed is one of --recipe
    and --batchcode. The brewing day is today, by the machine's time zone, unless said.

    Example: hydrometer-gateway sessions add --recipe 3 --userdate 2026-03-01 --set totalwater=30
    """
    arguments = _change(batchcode, phase, userdate, notes, folder, upstream_id, details)
    arguments |= {"recipe_id": recipe, "account": account}
    added = asyncio.run(run_command(data_dir, "sessions.add", **arguments))
    typer.echo(added["id"])
    _tell(added["said"])


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
    details: Details = None,
) -> None:
    """Change what is given of a brew session; the rest stays as it is, and so does its recipe.

    Example: hydrometer-gateway sessions update 1 --phase Conditioning --notes "Racked on Sunday"
    """
    arguments = _change(batchcode, phase, userdate, notes, folder, upstream_id, details)
    if not details and all(value is None for name, value in arguments.items() if name != "details"):
        raise InvalidInput("nothing to change; say what, for instance --phase Conditioning")
    number = session_number(data_dir, session)
    _tell(asyncio.run(run_command(data_dir, "sessions.update", session_id=number, **arguments)))


@app.command("next")
def next_session(
    session: SessionId,
    data_dir: DataDir,
    config: Config = None,
    recipe: RecipeToBrew = None,
    batchcode: NewBatchcode = None,
    upstream_id: UpstreamId = None,
    phase: Annotated[
        str, typer.Option(help="Of the beer that is done fermenting. Any text.")
    ] = PHASE_AFTER_FERMENTING,
) -> None:
    """The next beer: make a brew session that takes over the devices of another, and print its id on stdout.

    The other one gets the phase; its readings stay there. Needed is one of --recipe and --batchcode.

    Example: hydrometer-gateway sessions next HP001 --batchcode HP002 --upstream-id 4102
    """
    number = session_number(data_dir, session)
    arguments: dict[str, Any] = {
        "recipe_id": recipe,
        "batchcode": batchcode,
        "upstream_id": upstream_id,
        "phase": phase,
    }
    done = asyncio.run(run_command(data_dir, "sessions.next", session_id=number, **arguments))
    typer.echo(done["id"])
    _tell(done["said"])


def _tell(sentences: list[str]) -> None:
    for sentence in sentences:
        typer.echo(one_line(sentence), err=True)


def _change(
    batchcode: str | None,
    phase: str | None,
    userdate: str | None,
    notes: str | None,
    folder: int | None,
    upstream_id: int | None,
    details: list[str] | None,
) -> dict[str, Any]:
    """Members of a `SessionChange` but the recipe."""
    return {
        "batchcode": batchcode,
        "phase": phase,
        "userdate": userdate,
        "notes": notes,
        "folder_id": folder,
        "upstream_id": upstream_id,
        "details": dict(map(_detail, details or ())),
    }


def _detail(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"--set wants NAME=VALUE, not {text!r}")
    return name, value or None


@app.command()
def delete(session: SessionId, data_dir: DataDir, config: Config = None) -> None:
    """Delete a brew session: nothing shows it any more, its devices are free, its readings stay stored."""
    number = session_number(data_dir, session)
    deleted = asyncio.run(run_command(data_dir, "sessions.delete", session_id=number))
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
    back = asyncio.run(run_command(data_dir, "sessions.undelete", session_id=session))
    which = f"{session} ({one_line(back['batchcode'])})"
    typer.echo(f"Brew session {which} is back with {back['readings']} readings; it has no device.", err=True)


@app.command()
def purge(
    session: DeletedId,
    data_dir: DataDir,
    config: Config = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a deleted brew session and its readings for good. Nothing brings them back but a backup.

    Their room is free for new readings at once. `sessions list --deleted` shows how many they are.
    """
    deleted = {found.session.id: found for found in asyncio.run(_deleted(data_dir))}
    if session not in deleted:
        raise NotFound(f"no deleted brew session {session}; `sessions list --deleted` shows them")
    found = deleted[session]
    which = f"brew session {session} ({one_line(found.session.batchcode)}) and its {found.readings} readings"
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInput(f"this deletes {which} for good; say --yes")
        typer.confirm(f"Delete {which} for good?", abort=True)
    with progress_bar() as progress:
        arguments = {"session_id": session, "readings": found.readings}
        gone = asyncio.run(run_command(data_dir, "sessions.purge", progress, **arguments))
    typer.echo(f"Brew session {session} and {gone} readings are gone for good.", err=True)


async def _deleted(data_dir: Path) -> list[DeletedSession]:
    async with opened_read_only(data_dir) as store:
        return await store.sessions.deleted()


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
        _list_deleted(asyncio.run(_deleted(data_dir)), as_json)
        return

    async def show() -> None:
        async with opened_read_only(data_dir) as store:
            owner = await account_id(store, account)
            search = Search(account_id=owner, order=Order(descending=False), limit=ALL_SESSIONS)
            _, entries = await store.sessions.search(search)
            numbers: dict[int, list[int]] = {}
            for target in await store.targets.all():
                for session_id, number in (await store.targets.sessions(target)).items():
                    numbers.setdefault(session_id, []).append(number)
        if as_json:
            for entry in entries:
                typer.echo(json.dumps(_entry(entry), ensure_ascii=False))
            return
        headings = ("ID", "BATCHCODE", "PHASE", "BREWED", "RECIPE", "FOLDER", "UPSTREAM", "CREATED")
        rows = [_row(entry, numbers.get(entry.session.id, [])) for entry in entries]
        table(headings, rows, wide=wide, cut=headings[1:6], spare=("CREATED",))

    asyncio.run(show())


def _list_deleted(found: list[DeletedSession], as_json: bool) -> None:
    if not as_json:
        rows = [
            (d.session.id, one_line(d.session.batchcode), d.readings, to_the_minute(d.session.updated_at))
            for d in found
        ]
        table(("ID", "BATCHCODE", "READINGS", "DELETED"), rows)
        return
    for d in found:
        s = d.session
        line = {"id": s.id, "batchcode": s.batchcode, "readings": d.readings, "deleted_at": iso(s.updated_at)}
        typer.echo(json.dumps(line, ensure_ascii=False))


def _row(entry: SessionEntry, numbers: Sequence[int]) -> tuple[object, ...]:
    """Cells of the table; `numbers` are those that the session has at targets."""
    s = entry.session
    texts = (s.batchcode, s.phase, s.userdate, entry.recipe_title, entry.folder_name)
    upstream = " ".join(map(str, numbers)) or s.upstream_id
    return (s.id, *map(one_line, texts), upstream, to_the_minute(s.created_at))


def _entry(entry: SessionEntry) -> dict[str, object]:
    s = entry.session
    return {
        "id": s.id,
        "batchcode": s.batchcode,
        "phase": s.phase,
        "userdate": s.userdate,
        "recipe_id": s.recipe_id or None,
        "recipe_title": entry.recipe_title,
        "folder_id": s.folder_id,
        "folder_name": entry.folder_name,
        "upstream_id": s.upstream_id,
        "created_at": iso(s.created_at),
    }


@app.command()
def show(session: SessionId, data_dir: DataDir, config: Config = None) -> None:
    """Show everything about a brew session, with the figures that its readings give so far."""

    async def look() -> list[str]:
        async with opened_read_only(data_dir) as store:
            return await session_lines(store, number)

    number = session_number(data_dir, session)
    for line in asyncio.run(look()):
        typer.echo(line)
