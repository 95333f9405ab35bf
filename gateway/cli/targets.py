"""`targets`: the services that readings are forwarded to."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import ask, get
from gateway.cli.lookup import device_number, no_session, session_name, session_number
from gateway.cli.options import (
    NUMBER_MAX,
    Config,
    DataDir,
    OnlySession,
    Wide,
    device_words,
    json_option,
    session_words,
    target_words,
)
from gateway.cli.output import (
    DETAIL,
    GREEN,
    GREY,
    RED,
    YELLOW,
    Cell,
    Column,
    harmless,
    local_time,
    parse_time,
    show_members,
    show_remarks,
    state,
    table,
    terminal_width,
    unix,
    when,
)
from gateway.cli.reading_files import STDIN
from gateway.cli.recipe_view import one_line
from gateway.cli.target_add import add
from gateway.cli.target_keys import NewName, Plaintext, tell_address, warn_of_readers, way_agreed
from gateway.config import read_key
from gateway.domain.target import NAME, NAME_RULE, NOT_TRIED, SERVICE
from gateway.domain.texts import did_you_mean
from gateway.domain.times import iso
from gateway.errors import ConfigError, InvalidInput, NotFound

app = typer.Typer(help="Targets: the services that readings are sent on to.", no_args_is_help=True)

KEY_CHARACTERS = 10_000
"""Characters of a key that are read from stdin at most."""

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="As `targets list` shows it.", autocompletion=target_words),
]


@app.command("list")
def list_targets(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_TARGETS_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List targets, what waits for each, and why.

    It counts the readings that wait, were forwarded or were refused. A pipe gets a line for each member of a
    target, and so does a terminal with --wide. Not forwarded are readings that came from the service itself,
    have no value, or are damaged. Readings that were edited here are counted by themselves while the service
    has them as they were.
    """
    found = get(data_dir, "/manage/targets")
    on_terminal = not wide and terminal_width() is not None
    if on_terminal and not as_json:
        _show_table(found["targets"])
    for target in found["targets"]:
        if as_json:
            typer.echo(json.dumps(target, ensure_ascii=False))
        elif not on_terminal:
            show_members(_members(target))
    if not as_json:
        for sentence in found["warnings"]:
            typer.echo(one_line(sentence), err=True)


STATES = {
    "well": state("sends", GREEN),
    "partly": state("partly", YELLOW),
    "retries": state("retries", YELLOW),
    "blocked": state("stopped", RED),
    "held": state("waits", YELLOW),
    "paused": state("paused", YELLOW),
    "off": state("off", GREY),
}
"""A word for each kind of state."""


def _show_table(targets: list[dict[str, Any]]) -> None:
    """Show the targets on a terminal, and below them what is wrong, in sentences."""
    columns = (
        *(Column("NAME", cut=True), Column("WAITING"), Column("OLDEST", 2), Column("STATE")),
        *(Column("KIND", DETAIL), Column("FORWARDED", DETAIL), Column("REFUSED", DETAIL)),
        Column("ADDRESS", DETAIL + 1, cut=True),
    )
    rows = [
        (
            target["name"],
            f"{target['pending']:,}",
            when(unix(target["oldest_at"])),
            _state(target),
            target["kind"],
            f"{target['forwarded']:,}",
            f"{target['refused']:,}",
            target["url"],
        )
        for target in targets
    ]
    table(columns, rows)
    show_remarks(
        f"{target['name']}: {one_line(target['state'])}"
        for target in targets
        if target.get("state_kind") != "well"
    )


def _state(target: dict[str, Any]) -> Cell:
    if target["state"].startswith(NOT_TRIED):
        return state(NOT_TRIED, GREY)
    return STATES.get(target.get("state_kind", ""), Cell("", one_line(target["state"])))


def _members(target: dict[str, Any]) -> dict[str, str]:
    """Return the shown members of a target by name; blank ones are not printed."""
    oldest = f", the oldest since {_time(target['oldest_at'])}" if target["oldest_at"] else ""
    return {
        "target": target["name"],
        "kind": "" if target["kind"] == SERVICE else target["kind"],
        "address": target["url"],
        "shows": LATEST_ONLY if target["latest"] else "",
        "goes there": _goes(target),
        "waiting": f"{target['pending']:,}{oldest}",
        "forwarded": f"{target['forwarded']:,}",
        "refused": f"{target['refused']:,}",
        "superseded": f"{target['superseded']:,}" if target["latest"] else "",
        "not forwarded": f"{target['not_forwarded']:,}",
        "edited": _edited(target) if target["edited"] else "",
        "next attempt": "" if target["paused"] else _time(target["next_at"]),
        "state": one_line(target["state"]),
    }


LATEST_ONLY = "the latest reading of each device only; an outage leaves a gap there, not here"


def _goes(target: dict[str, Any]) -> str:
    """Return what goes to a target that is no service: nothing, if nobody has said so."""
    if target["kind"] == SERVICE:
        return ""
    words = {"all": "everything", "device": "device", "brew": "brew session"}
    routes = [
        words[route["what"]]
        if route["what"] == "all"
        else f"{words[route['what']]} {route['id']} ({route['name']})"
        for route in target["routes"]
    ]
    return one_line(", ".join(routes)) or "nothing yet"


def _edited(target: dict[str, Any]) -> str:
    since = _time(target["edited_since"]).replace(" ", "T")
    return (
        f"{target['edited']:,} edited here, not there; sent under the same _id where the service has that, "
        f"else `targets resend {target['name']} --since {since}` sends it as one more reading"
    )


def _time(iso_time: str | None) -> str:
    return "" if iso_time is None else local_time(int(parse_time(iso_time)))


app.command()(add)


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
    """Add a Brewing Data Service, or give it a new key.

    Asks for the address of the service and for your API key there, tries both, and keeps them. The key is
    kept in a file of the data directory that only its owner can read. A target of that name gets the new
    address and key. If something is wrong, the command names it and changes nothing.

    Example: hydrometer-gateway targets login club --url https://brew.example --key-file - < club.key
    """
    address = url or _asked("Address of the service, such as https://brew.example", "--url")
    agreed = way_agreed(address, plaintext)
    key = (
        _key(key_file)
        if key_file
        else _asked("Your API key there (it is not shown)", "--key-file", hide=True)
    )
    if not NAME.fullmatch(name):
        raise InvalidInput(NAME_RULE)
    body = {"url": address, "key": key.strip(), "plaintext": agreed}
    target = ask(data_dir, "PUT", f"/manage/targets/{name}", body=body)["targets"][0]
    tell_address(address, target["url"])
    if key_file is not None and key_file != STDIN:
        warn_of_readers(key_file)
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


@app.command("sessions")
def list_sessions(
    name: Name,
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_TARGETS_SESSIONS_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List the brew sessions that a service has, the newest first.

    NUMBER is what `targets map` needs. HERE is the brew session of this gateway that is forwarded there. On a
    terminal you are asked whether a brew session goes to the one there that has the same batch code.
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
    columns = (
        *(Column("NUMBER"), Column("BATCHCODE", cut=True), Column("NAME", 2, cut=True)),
        *(Column("PHASE", 3, cut=True), Column("BREWED", 4), Column("HERE")),
    )
    table(columns, rows, wide=wide)
    alike = [row for row in found if row["like"] is not None and not row["here"]]
    for row in alike:
        session, number, code = row["like"], row["number"], one_line(row["batchcode"])
        asks = not wide and terminal_width() is not None and sys.stdin.isatty()
        if not (asks and number.isdecimal()):
            typer.echo(f"`targets map {name} {session} {number}` forwards {code} there.", err=True)
        else:
            question = harmless(f"Forward brew session {session} ({code}) to which number there? 0: to none")
            chosen = typer.prompt(question, default=int(number), type=int, err=True)
            if chosen:
                _map(data_dir, name, session, chosen)
    if found and not alike:
        typer.echo(f"`targets map {name} SESSION NUMBER` forwards a brew session of this gateway.", err=True)
    if not found:
        typer.echo("There is no brew session there yet: make one there first.", err=True)


@app.command()
def remove(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Remove a target. The gateway still knows which readings it got, in case the target is added again."""
    _ask(data_dir, name, "DELETE")


Device = Annotated[str | None, typer.Option(help="Readings of this device.", autocompletion=device_words)]
Brew = Annotated[
    str | None,
    typer.Option(help="Readings of this brew session: number or batch code.", autocompletion=session_words),
]
MappedSession = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION", help="Of a service: number or batch code.", autocompletion=session_words
    ),
]


@app.command("map")
def map_session(
    name: Name,
    data_dir: DataDir,
    session: MappedSession = None,
    upstream_id: Annotated[
        int | None,
        typer.Argument(
            metavar="NUMBER", help="The session's number there; 0 stops it.", min=0, max=NUMBER_MAX
        ),
    ] = None,
    config: Config = None,
    device: Device = None,
    brew: Brew = None,
    everything: Annotated[
        bool, typer.Option("--all", envvar="GATEWAY_TARGETS_MAP_ALL", help="All readings.")
    ] = False,
    since: Annotated[
        str | None, typer.Option(help="Earlier readings, too: 2026-03-01 or 2026-03-01T18:30.")
    ] = None,
) -> None:
    """Choose what goes to a target. A brew session or a device can go to several.

    To a Brewing Data Service goes a brew session, under its number there; for the target of
    `serve --upstream-url` this is the same as `sessions update --upstream-id`. To any other kind go devices,
    brews, or all: from now on, with --since earlier readings, too.

    Examples: hydrometer-gateway targets map club 1 4101

    hydrometer-gateway targets map grafana --all --since 2026-01-01
    """
    if session is None:
        path, words = _route(data_dir, device, brew, everything)
        body = {} if since is None else {"since": iso(parse_time(since))}
        _ask(data_dir, name, "PUT", path, body=body)
        typer.echo(f"{words} to {name} from now on{', and since ' + since if since else ''}.", err=True)
        return
    if device or brew or everything or since:
        raise InvalidInput("SESSION NUMBER is for a service, the options are for other kinds of targets")
    if upstream_id is None:
        raise InvalidInput(
            f"NUMBER is missing: the session's number there; `targets sessions {name}` shows it"
        )
    _map(data_dir, name, session_number(data_dir, session), upstream_id)


def _map(data_dir: Path, name: str, session: int, upstream_id: int) -> None:
    """Forward a brew session to a number at a service, or nowhere (0); say so."""
    path = f"/brewsessions/{session}"
    done = _ask(data_dir, name, "PUT", path, session=session, body={"upstream_id": upstream_id})
    session_label = one_line(session_name({**done, "id": done["brew_session_id"]}))
    if upstream_id:
        sentence = f"goes to {name} from now on, where it is number {upstream_id}."
    else:
        sentence = f"goes to {name} no longer; what is there stays there."
    typer.echo(f"Brew session {session_label} {sentence}", err=True)


@app.command("unmap")
def unmap(
    name: Name,
    data_dir: DataDir,
    session: MappedSession = None,
    config: Config = None,
    device: Device = None,
    brew: Brew = None,
    everything: Annotated[
        bool, typer.Option("--all", envvar="GATEWAY_TARGETS_UNMAP_ALL", help="All readings.")
    ] = False,
) -> None:
    """Let something go to a target no longer. What is there stays there.

    Example: hydrometer-gateway targets unmap grafana --device ispindel:1234567
    """
    if session is not None:
        map_session(name, data_dir, session, 0)
        return
    path, words = _route(data_dir, device, brew, everything)
    _ask(data_dir, name, "DELETE", path)
    typer.echo(f"{words} to {name} no longer; what is there stays there.", err=True)


def _route(data_dir: Path, device: str | None, brew: str | None, everything: bool) -> tuple[str, str]:
    """Return the path of a route, and the beginning of a sentence about it."""
    if (device is not None) + (brew is not None) + everything != 1:
        raise InvalidInput("name one: --device, --brew or --all; of a service SESSION and NUMBER")
    if device is not None:
        return f"/routes/device/{device_number(data_dir, device)}", f"Device {one_line(device)} goes"
    if brew is not None:
        return f"/routes/brew/{session_number(data_dir, brew)}", f"Brew session {one_line(brew)} goes"
    return "/routes/all/0", "Everything goes"


@app.command("test")
def try_out(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Ask a target whether address, key and brew sessions are right.

    It leaves no reading there. Exit code 1 means that something is wrong. From version 0.3.0 on that will be
    exit code 3.
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
    """Go on forwarding to a target at once.

    It also ends the waiting for the next attempt.
    """
    _ask(data_dir, name, "PATCH", body={"paused": False})


@app.command()
def resend(
    name: Name,
    data_dir: DataDir,
    config: Config = None,
    since: Annotated[str | None, typer.Option(help="2026-03-01 or 2026-03-01T18:30.")] = None,
    session: OnlySession = None,
    device: Annotated[
        str | None,
        typer.Option(help="Only this device; not of a service.", autocompletion=device_words),
    ] = None,
) -> None:
    """Send once more what a target has lost.

    Asks it whether it still has the readings that it got since then, and sends the missing ones. For a
    service that was restored from an old backup. Nothing is doubled: the service is asked first, and readings
    keep their _id.

    A target of another kind gets all of them again as they are here now, such as after a calibration. An
    InfluxDB overwrites its points. A broker or a webhook gets them a second time, under the same id.
    """
    if since is None:
        raise InvalidInput("--since is missing: from when on it may have lost readings, such as 2026-03-01")
    number = None if session is None else session_number(data_dir, session)
    body = {"since": iso(parse_time(since)), "brew_session_id": number}
    if device is not None:
        body["device_id"] = device_number(data_dir, device)
    done = _ask(data_dir, name, "POST", "/resend", session=number, body=body)
    for each in done["brewsessions"]:
        typer.echo(
            f"brew session {each['id']}: {each['readings']} readings are looked for while the gateway runs"
        )
    for each in done["devices"]:
        which = f"device {each['id']}" if each["id"] else "of no device"
        typer.echo(f"{which}: {each['readings']} readings are sent again while the gateway runs")
    if not (done["brewsessions"] or done["devices"]):
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
