"""`targets`: the services that readings are forwarded to."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.lookup import session_number
from gateway.cli.options import NUMBER_MAX, Config, DataDir, OnlySession, Session, Wide, json_option
from gateway.cli.output import local_time, parse_time, show_members, table
from gateway.cli.reading_files import STDIN
from gateway.cli.recipe_view import one_line
from gateway.config import read_key, said_of_url
from gateway.control import run_command
from gateway.domain.target import PER_MINUTE
from gateway.domain.times import iso
from gateway.errors import ConfigError, InvalidInput
from gateway.services.targets import PER_MINUTE_MAX

app = typer.Typer(
    help="Targets: the services that readings are forwarded to, each for itself.", no_args_is_help=True
)

KEY_CHARACTERS = 10_000
"""Read of stdin at most."""

NewName = Annotated[str, typer.Argument(metavar="NAME", help="What you call it: letters, digits, - _ .")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="As `targets list` shows it.")]


@app.command("list")
def list_targets(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_TARGETS_LIST_JSON")] = False,
) -> None:
    """List targets: what waits there, what became of the rest, how each is doing and why it waits.

    Not forwarded are readings that came from the service itself, that say nothing, or that are damaged.
    Those edited here are counted by themselves while the service has them as they were.
    """
    found = _run(data_dir, "targets.list")
    if not as_json:
        for target in found:
            show_members(_members(target))
        for sentence in _run(data_dir, "targets.forgotten"):
            typer.echo(one_line(sentence), err=True)
        return
    for target in found:
        times = {name: iso(target[name]) for name in ("next_at", "oldest_at", "edited_since")}
        typer.echo(json.dumps({**target, **times}, ensure_ascii=False))


def _members(target: dict[str, Any]) -> dict[str, str]:
    """What is shown of a target, by name; what is blank is left out."""
    oldest = f", the oldest since {_time(target['oldest_at'])}" if target["oldest_at"] else ""
    return {
        "target": target["name"],
        "address": target["url"],
        "waiting": f"{target['pending']:,}{oldest}",
        "forwarded": f"{target['forwarded']:,}",
        "refused": f"{target['refused']:,}",
        "not forwarded": f"{target['not_forwarded']:,}",
        "edited": _edited(target) if target["edited"] else "",
        "next attempt": "" if target["paused"] else _time(target["next_at"]),
        "state": one_line(target["state"]),
    }


def _edited(target: dict[str, Any]) -> str:
    since = local_time(target["edited_since"]).replace(" ", "T")
    return (
        f"{target['edited']:,} edited here, not there; sent under the same _id where the service has that, "
        f"else `targets resend {target['name']} --since {since}` sends it as one more reading"
    )


def _time(unix_seconds: float | None) -> str:
    return local_time(None if unix_seconds is None else int(unix_seconds))


@app.command()
def add(
    name: NewName,
    url: Annotated[str, typer.Argument(metavar="URL", help="https://host, without /v1.")],
    data_dir: DataDir,
    config: Config = None,
    key_file: Annotated[
        Path | None, typer.Option(help="File that holds only the API key; it stays there.")
    ] = None,
    per_minute: Annotated[
        int, typer.Option(help="Requests in any minute at most.", min=1, max=PER_MINUTE_MAX)
    ] = PER_MINUTE,
) -> None:
    """Add a target beside the one of `serve --upstream-url`.

    The key is read from its file for each request, so a new one works at once. Then say which brew sessions
    go there by `targets map`.

    Example: hydrometer-gateway targets add club https://brew.example --key-file ~/club.key
    """
    if key_file is None:
        raise ConfigError("--key-file is missing: a file that holds only the API key for that service")
    arguments = {"name": name, "url": url, "key_file": str(key_file.absolute()), "per_minute": per_minute}
    _tell_cut(url, _run(data_dir, "targets.add", **arguments))


@app.command()
def login(
    name: NewName,
    data_dir: DataDir,
    config: Config = None,
    url: Annotated[
        str | None, typer.Option(help="https://host, without /v1. [default: asked for]", show_default=False)
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            help="File that holds only the API key; - is stdin. [default: asked for]", show_default=False
        ),
    ] = None,
) -> None:
    """Ask for the address of a service and for your API key there, try both, and keep them.

    The key is kept in a file of the data directory that only its owner can read. A target of that name gets
    the new address and key. Where something is wrong, it is said, and nothing is changed.

    Example: hydrometer-gateway targets login club --url https://brew.example --key-file - < club.key
    """
    address = url or _asked("Address of the service, such as https://brew.example", "--url")
    key = (
        _key(key_file)
        if key_file
        else _asked("Your API key there (it is not shown)", "--key-file", hide=True)
    )
    done = _run(data_dir, "targets.login", name=name, url=address, key=key.strip())
    _tell_cut(address, done["url"])
    typer.echo(
        f"Address and key are right. The key is kept in {done['key_file']}, its owner's alone.", err=True
    )
    typer.echo(f"`targets sessions {name}` shows the brew sessions there.", err=True)


def _asked(what: str, option: str, *, hide: bool = False) -> str:
    if not sys.stdin.isatty():
        raise ConfigError(f"{option} is missing, and there is no terminal to ask at")
    return str(typer.prompt(what, hide_input=hide, err=True))


def _key(path: Path) -> str:
    return sys.stdin.read(KEY_CHARACTERS) if path == STDIN else read_key(path, "key file")


def _tell_cut(told: str, taken: str) -> None:
    sentence = said_of_url(told, taken)
    if sentence:
        typer.echo(sentence, err=True)


@app.command("sessions")
def list_sessions(
    name: Name,
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_TARGETS_SESSIONS_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List the brew sessions that a service has, the newest first, with the numbers that `targets map` needs.

    HERE is the brew session of this gateway that goes there.
    """
    found = _run(data_dir, "targets.sessions", name=name)
    if as_json:
        for row in found:
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    texts = ("batchcode", "name", "phase", "day")
    rows = [
        (row["number"], *(one_line(row[text]) for text in texts), " ".join(map(str, row["here"])))
        for row in found
    ]
    headings = ("NUMBER", "BATCHCODE", "NAME", "PHASE", "BREWED", "HERE")
    table(headings, rows, wide=wide, cut=headings[1:4])
    alike = [row for row in found if row["like"] is not None and not row["here"]]
    for row in alike:
        number, code = row["number"], one_line(row["batchcode"])
        typer.echo(f"`targets map {name} {row['like']} {number}` forwards {code} there.", err=True)
    if found and not alike:
        typer.echo(f"`targets map {name} SESSION NUMBER` forwards a brew session of this gateway.", err=True)
    if not found:
        typer.echo("There is no brew session there yet: make one there first.", err=True)


@app.command()
def remove(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Forget a target. What it was sent stays known, should it be added again."""
    _run(data_dir, "targets.remove", name=name)


@app.command("map")
def map_session(
    name: Name,
    session: Session,
    upstream_id: Annotated[
        int,
        typer.Argument(
            metavar="NUMBER", help="The session's number there; 0 stops it.", min=0, max=NUMBER_MAX
        ),
    ],
    data_dir: DataDir,
    config: Config = None,
) -> None:
    """Forward a brew session to a target; a session can go to several.

    For the target of `serve --upstream-url` it is the same as `sessions update --upstream-id`.

    Example: hydrometer-gateway targets map club 1 4101
    """
    number = session_number(data_dir, session)
    for sentence in _run(data_dir, "targets.map", name=name, session_id=number, upstream_id=upstream_id):
        typer.echo(one_line(sentence), err=True)


@app.command("test")
def try_out(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Ask a target whether address, key and brew sessions are right; leaves no reading there.

    Exit code 1 says that something is not.
    """
    findings = _run(data_dir, "targets.test", name=name)
    for finding in findings:
        typer.echo(f"{'ok' if finding['ok'] else 'PROBLEM'}: {one_line(finding['words'])}")
    if not all(finding["ok"] for finding in findings):
        sys.exit(1)


@app.command()
def pause(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Send nothing to a target until `resume`, restarts included. Everything is kept for it."""
    _run(data_dir, "targets.pause", name=name)


@app.command()
def resume(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Go on forwarding to a target, at once, whatever it waits for."""
    _run(data_dir, "targets.resume", name=name)


@app.command()
def resend(
    name: Name,
    data_dir: DataDir,
    config: Config = None,
    since: Annotated[str | None, typer.Option(help="2026-03-01 or 2026-03-01T18:30.")] = None,
    session: OnlySession = None,
) -> None:
    """Look whether a target still has what it was sent since then, and send what is missing.

    For a service that was restored from an old backup. Nothing is doubled: it is asked first, and readings
    keep their _id.
    """
    if since is None:
        raise InvalidInput("--since is missing: from when on it may have lost readings, such as 2026-03-01")
    number = None if session is None else session_number(data_dir, session)
    arguments = {"name": name, "since": int(parse_time(since)), "session_id": number}
    found = _run(data_dir, "targets.resend", **arguments)
    for session_id, count in found.items():
        typer.echo(f"brew session {session_id}: {count} readings are looked for while the gateway runs")
    if not found:
        typer.echo("Nothing was forwarded there since then.", err=True)


def _run(data_dir: Path, command: str, **arguments: Any) -> Any:
    return asyncio.run(run_command(data_dir, command, **arguments))
