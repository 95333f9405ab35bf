"""`targets`: the services that readings are forwarded to."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.options import NUMBER_MAX, Config, DataDir
from gateway.cli.output import iso, local_time, parse_time, table
from gateway.cli.recipe_view import one_line
from gateway.control import run_command
from gateway.domain.target import PER_MINUTE
from gateway.errors import ConfigError, InvalidInput
from gateway.services.targets import PER_MINUTE_MAX

app = typer.Typer(
    help="Targets: the services that readings are forwarded to, each for itself.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As `targets list` shows it.")]
Session = Annotated[
    int,
    typer.Argument(metavar="SESSION", help="Brew session id, as `sessions list` shows it.", max=NUMBER_MAX),
]
HEADINGS = (
    "NAME", "ADDRESS", "WAITING", "OLDEST", "FORWARDED", "REFUSED", "NOT FORWARDED", "NEXT ATTEMPT", "STATE",
)  # fmt: skip


@app.command("list")
def list_targets(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[
        bool, typer.Option("--json", envvar="GATEWAY_TARGETS_LIST_JSON", help="One JSON object per line.")
    ] = False,
) -> None:
    """List targets: what waits there, what became of the rest, how each is doing and why it waits.

    Not forwarded are readings that came from the service itself, that say nothing, or that are damaged.
    Those edited here are counted below the table while the service has them as they were.
    """
    found = _run(data_dir, "targets.list")
    if not as_json:
        table(HEADINGS, [_row(target) for target in found])
        for target in found:
            if target["edited"]:
                typer.echo(_edited(target))
        return
    for target in found:
        times = {name: _iso(target[name]) for name in ("next_at", "oldest_at", "edited_since")}
        typer.echo(json.dumps({**target, **times}, ensure_ascii=False))


def _edited(target: dict[str, Any]) -> str:
    name, since = target["name"], _iso(target["edited_since"])
    return (
        f"{name}: {target['edited']} edited here, not there. An edit is sent under the same _id where the "
        f"service has that; elsewhere `targets resend {name} --since {since}` sends it as one more reading."
    )


def _iso(unix_seconds: float | None) -> str | None:
    return iso(None if unix_seconds is None else int(unix_seconds))


def _row(target: dict[str, Any]) -> tuple[object, ...]:
    counts = (target["forwarded"], target["refused"], target["not_forwarded"])
    next_at = "" if target["paused"] else _time(target["next_at"])
    state = one_line(target["state"])
    return (
        target["name"], target["url"], target["pending"], _time(target["oldest_at"]), *counts, next_at, state,
    )  # fmt: skip


def _time(unix_seconds: float | None) -> str:
    return local_time(None if unix_seconds is None else int(unix_seconds))


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What you call it: letters, digits, - _ .")],
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
    _run(data_dir, "targets.add", **arguments)


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
    _run(data_dir, "targets.map", name=name, session_id=session, upstream_id=upstream_id)


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
    session: Annotated[int | None, typer.Option(help="Only this brew session.", max=NUMBER_MAX)] = None,
) -> None:
    """Look whether a target still has what it was sent since then, and send what is missing.

    For a service that was restored from an old backup. Nothing is doubled: it is asked first, and readings
    keep their _id.
    """
    if since is None:
        raise InvalidInput("--since is missing: from when on it may have lost readings, such as 2026-03-01")
    arguments = {"name": name, "since": int(parse_time(since)), "session_id": session}
    found = _run(data_dir, "targets.resend", **arguments)
    for session_id, count in found.items():
        typer.echo(f"brew session {session_id}: {count} readings are looked for while the gateway runs")
    if not found:
        typer.echo("Nothing was forwarded there since then.", err=True)


def _run(data_dir: Path, command: str, **arguments: Any) -> Any:
    return asyncio.run(run_command(data_dir, command, **arguments))
