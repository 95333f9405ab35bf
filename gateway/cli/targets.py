"""`targets`: the services that readings are forwarded to."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import ask, get
from gateway.cli.lookup import no_session, session_name, session_number
from gateway.cli.options import NUMBER_MAX, Config, DataDir, OnlySession, Session, Wide, json_option
from gateway.cli.output import local_time, parse_time, show_members, table
from gateway.cli.reading_files import STDIN
from gateway.cli.recipe_view import one_line
from gateway.config import others_can_read, read_key, said_of_url
from gateway.domain.target import NAME, NAME_RULE, PER_MINUTE, PER_MINUTE_MAX
from gateway.domain.texts import did_you_mean, shown_url
from gateway.domain.times import iso
from gateway.errors import ConfigError, InvalidInput, NotFound
from gateway.network import sends_key_in_the_clear

app = typer.Typer(
    help="Targets: the services that readings are forwarded to, each for itself.", no_args_is_help=True
)

KEY_CHARACTERS = 10_000
"""Characters of a key that are read from stdin at most."""

Plaintext = Annotated[
    bool,
    typer.Option("--plaintext", help="Send the key to a public address over http, where others can read it."),
]

NewName = Annotated[str, typer.Argument(metavar="NAME", help="What you call it: letters, digits, - _ .")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="As `targets list` shows it.")]


@app.command("list")
def list_targets(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_TARGETS_LIST_JSON")] = False,
) -> None:
    """List targets: readings that wait, were forwarded or refused; and each target's state and why it waits.

    Not forwarded are readings that came from the service itself, have no value, or are damaged. Readings
    that were edited here are counted by themselves while the service has them as they were.
    """
    found = get(data_dir, "/manage/targets")
    for target in found["targets"]:
        if as_json:
            typer.echo(json.dumps(target, ensure_ascii=False))
        else:
            show_members(_members(target))
    if not as_json:
        for sentence in found["warnings"]:
            typer.echo(one_line(sentence), err=True)


def _members(target: dict[str, Any]) -> dict[str, str]:
    """Return the shown members of a target by name; blank ones are not printed."""
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
    since = _time(target["edited_since"]).replace(" ", "T")
    return (
        f"{target['edited']:,} edited here, not there; sent under the same _id where the service has that, "
        f"else `targets resend {target['name']} --since {since}` sends it as one more reading"
    )


def _time(iso_time: str | None) -> str:
    return "" if iso_time is None else local_time(int(parse_time(iso_time)))


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
    plaintext: Plaintext = False,
) -> None:
    """Add a target beside the one of `serve --upstream-url`.

    The key is read from its file for each request, so a new key works at once. Then choose the brew sessions
    that go there with `targets map`.

    Example: hydrometer-gateway targets add club https://brew.example --key-file ~/club.key
    """
    if key_file is None:
        raise ConfigError("--key-file is missing: a file that holds only the API key for that service")
    body = {
        **{"name": name, "url": url, "key_file": str(key_file.absolute()), "per_minute": per_minute},
        "plaintext": _way_agreed(url, plaintext),
    }
    _tell_address(url, ask(data_dir, "POST", "/manage/targets", body=body)["targets"][0]["url"])
    _warn_of_readers(key_file)


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
    plaintext: Plaintext = False,
) -> None:
    """Ask for the address of a service and for your API key there, try both, and keep them.

    The key is kept in a file of the data directory that only its owner can read. A target of that name gets
    the new address and key. If something is wrong, the command names it and changes nothing.

    Example: hydrometer-gateway targets login club --url https://brew.example --key-file - < club.key
    """
    address = url or _asked("Address of the service, such as https://brew.example", "--url")
    agreed = _way_agreed(address, plaintext)
    key = (
        _key(key_file)
        if key_file
        else _asked("Your API key there (it is not shown)", "--key-file", hide=True)
    )
    if not NAME.fullmatch(name):
        raise InvalidInput(NAME_RULE)
    body = {"url": address, "key": key.strip(), "plaintext": agreed}
    target = ask(data_dir, "PUT", f"/manage/targets/{name}", body=body)["targets"][0]
    _tell_address(address, target["url"])
    if key_file is not None and key_file != STDIN:
        _warn_of_readers(key_file)
    typer.echo(
        f"Address and key are right. The key is kept in {target['key_file']}, its owner's alone.", err=True
    )
    typer.echo(f"`targets sessions {name}` shows the brew sessions there.", err=True)


def _asked(what: str, option: str, *, hide: bool = False) -> str:
    if not sys.stdin.isatty():
        raise ConfigError(f"{option} is missing, and there is no terminal to ask at")
    return str(typer.prompt(what, hide_input=hide, err=True))


def _key(path: Path) -> str:
    if path == STDIN:
        return sys.stdin.read(KEY_CHARACTERS)
    return read_key(path, "key file")


def _warn_of_readers(path: Path) -> None:
    with contextlib.suppress(OSError):  # the gateway says what is wrong with the file
        if others_can_read(path):
            typer.echo(f"Other users can read {path}: chmod 600 {path}", err=True)


def _way_agreed(url: str, plaintext: bool) -> bool:
    """Return the consent to a key in the clear on the Internet: ask for it, or want `--plaintext`."""
    url = url.strip()
    if not sends_key_in_the_clear(url):
        return plaintext
    warning = f"anyone on the way to {shown_url(url)} can read the key"
    if plaintext:
        typer.echo(f"Warning: {warning}.", err=True)
    elif not sys.stdin.isatty():
        raise InvalidInput(f"{warning}: use https://, or --plaintext to send it so")
    else:
        typer.confirm(f"Warning: {warning}. Send it all the same?", abort=True, err=True)
    return True


def _tell_address(told: str, taken: str) -> None:
    """Tell what was cut off the address, and that the key goes unencrypted inside the local network."""
    sentence = said_of_url(told, taken)
    if sentence:
        typer.echo(sentence, err=True)
    if taken.startswith("http://") and not sends_key_in_the_clear(taken):
        typer.echo(f"The key goes to {shown_url(taken)} unencrypted, inside your own network.", err=True)


@app.command("sessions")
def list_sessions(
    name: Name,
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_TARGETS_SESSIONS_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List the brew sessions that a service has, the newest first, with the numbers that `targets map` needs.

    HERE is the brew session of this gateway that is forwarded there.
    """
    found = _ask(data_dir, name, "GET", "/brewsessions")["brewsessions"]
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
    """Remove a target. The gateway still knows which readings it got, in case the target is added again."""
    _ask(data_dir, name, "DELETE")


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

    For the target of `serve --upstream-url` this is the same as `sessions update --upstream-id`.

    Example: hydrometer-gateway targets map club 1 4101
    """
    number = session_number(data_dir, session)
    path = f"/brewsessions/{number}"
    done = _ask(data_dir, name, "PUT", path, session=number, body={"upstream_id": upstream_id})
    session_label = one_line(session_name({**done, "id": done["brew_session_id"]}))
    if upstream_id:
        sentence = f"goes to {name} from now on, where it is number {upstream_id}."
    else:
        sentence = f"goes to {name} no longer; what is there stays there."
    typer.echo(f"Brew session {session_label} {sentence}", err=True)


@app.command("test")
def try_out(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Ask a target whether address, key and brew sessions are right; no reading is left there.

    Exit code 1 means that something is wrong.
    """
    findings = _ask(data_dir, name, "POST", "/test")["findings"]
    for finding in findings:
        typer.echo(f"{'ok' if finding['ok'] else 'PROBLEM'}: {one_line(finding['text'])}")
    if not all(finding["ok"] for finding in findings):
        sys.exit(1)


@app.command()
def pause(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Send nothing to a target until `resume`, also after a restart. Every reading is kept for the target."""
    _ask(data_dir, name, "PATCH", body={"paused": True})


@app.command()
def resume(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Go on forwarding to a target at once, also if it waits for its next attempt."""
    _ask(data_dir, name, "PATCH", body={"paused": False})


@app.command()
def resend(
    name: Name,
    data_dir: DataDir,
    config: Config = None,
    since: Annotated[str | None, typer.Option(help="2026-03-01 or 2026-03-01T18:30.")] = None,
    session: OnlySession = None,
) -> None:
    """Check whether a target still has the readings that it got since then, and send the missing ones.

    For a service that was restored from an old backup. Nothing is doubled: the service is asked first, and
    readings keep their _id.
    """
    if since is None:
        raise InvalidInput("--since is missing: from when on it may have lost readings, such as 2026-03-01")
    number = None if session is None else session_number(data_dir, session)
    body = {"since": iso(parse_time(since)), "brew_session_id": number}
    found = _ask(data_dir, name, "POST", "/resend", session=number, body=body)["brewsessions"]
    for each in found:
        typer.echo(
            f"brew session {each['id']}: {each['readings']} readings are looked for while the gateway runs"
        )
    if not found:
        typer.echo("Nothing was forwarded there since then.", err=True)


def _ask(
    data_dir: Path, name: str, method: str, path: str = "", *, session: int | None = None, **options: Any
) -> Any:
    """Send a request about a target. For a 404, raise `NotFound` for the missing target or brew session."""
    if NAME.fullmatch(name):  # else no target is called so, and no path has room for the name
        with contextlib.suppress(NotFound):
            return ask(data_dir, method, f"/manage/targets/{name}{path}", **options)
    if session is not None:
        get(data_dir, f"/v1/brewsessions/{session}", missing=no_session(session))
    names = [target["name"] for target in get(data_dir, "/manage/targets")["targets"]]
    raise NotFound(f"no target {name!r}{did_you_mean(name, names)}; `targets list` shows them")
