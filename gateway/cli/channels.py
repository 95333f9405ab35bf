"""`channels`: the ways in which alarms reach a person."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import ask, get
from gateway.cli.options import Config, DataDir, Wide, channel_words, json_option
from gateway.cli.output import (
    DETAIL,
    GREEN,
    RED,
    YELLOW,
    Column,
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
from gateway.cli.recipe_view import one_line
from gateway.config import others_can_read
from gateway.domain.target import NAME
from gateway.domain.texts import did_you_mean
from gateway.errors import ConfigError, InvalidInput, NotFound, in_words

app = typer.Typer(help="Channels: the ways in which alarms reach you.", no_args_is_help=True)

KINDS = ("ntfy", "webhook", "email", "mqtt", "apprise")

NewName = Annotated[str, typer.Argument(metavar="NAME", help="What you call it: letters, digits, - _ .")]
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="As `channels list` shows it.", autocompletion=channel_words),
]


@app.command("list")
def list_channels(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_CHANNELS_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List channels, and what is wrong with each.

    Each shows where it leads, what waits, and when it took its last message. Secrets are shown nowhere. A
    pipe gets a line for each member of a channel, and so does a terminal with --wide.
    """
    found = get(data_dir, "/manage/channels")["channels"]
    on_terminal = not wide and terminal_width() is not None
    if on_terminal and not as_json:
        _show_table(found)
    for channel in found:
        if as_json:
            typer.echo(json.dumps(channel, ensure_ascii=False))
        elif not on_terminal:
            show_members(_members(channel))


def _show_table(channels: list[dict[str, Any]]) -> None:
    """Show the channels on a terminal, and below them what is wrong, in sentences."""
    columns = (
        *(Column("NAME", cut=True), Column("KIND", 3), Column("WAITING"), Column("LAST MESSAGE", 2)),
        *(Column("STATE"), Column("TO", DETAIL, cut=True)),
    )
    rows = [
        (
            channel["name"],
            channel["kind"],
            f"{channel['waiting']:,}",
            when(unix(channel["sent_at"]), "never"),
            state("paused", YELLOW)
            if channel["paused"]
            else state("trouble", RED)
            if channel["trouble"]
            else state("ok", GREEN),
            one_line(_where(channel)),
        )
        for channel in channels
    ]
    table(columns, rows)
    show_remarks(
        f"{channel['name']}: {one_line(_words(channel))}"
        for channel in channels
        if channel["paused"] or channel["trouble"]
    )


def _where(channel: dict[str, Any]) -> str:
    """Return where a channel leads, without what is a secret."""
    settings = channel["settings"]
    places = {
        "ntfy": settings.get("server", "https://ntfy.sh"),
        "webhook": settings.get("shown", ""),
        "email": f"{', '.join(settings.get('to', ()))} by {settings.get('host', '')}",
        "mqtt": settings.get("topic", ""),
    }
    return str(places.get(channel["kind"], ""))


def _words(channel: dict[str, Any]) -> str:
    """Return a channel's state in words."""
    if channel["paused"]:
        return f"paused by you; `channels resume {channel['name']}` lets it go on"
    since = f", since {_time(channel['failing_since'])}" if channel["failing_since"] else ""
    return f"{channel['trouble']}{since}" if channel["trouble"] else "ok"


def _members(channel: dict[str, Any]) -> dict[str, str]:
    """Return the shown members of a channel by name; blank ones are not printed."""
    oldest = f", the oldest since {_time(channel['oldest_at'])}" if channel["oldest_at"] else ""
    return {
        "channel": channel["name"],
        "kind": channel["kind"],
        "to": one_line(_where(channel)),
        "quiet hours": channel["settings"].get("quiet", ""),
        "secret": channel["secret_file"] or "",
        "waiting": f"{channel['waiting']:,}{oldest}",
        "last message": _time(channel["sent_at"]),
        "given up": _time(channel["expired_at"]),
        "state": one_line(_words(channel)),
    }


def _time(iso_time: str | None) -> str:
    return "" if iso_time is None else local_time(int(parse_time(iso_time)))


@app.command()
def add(
    name: NewName,
    data_dir: DataDir,
    config: Config = None,
    kind: Annotated[str, typer.Option(help=f"{', '.join(KINDS)}.")] = "",
    secret_file: Annotated[
        Path | None,
        typer.Option(
            "--secret-file",
            "--topic-file",
            help="File with the secret; it stays there. ntfy: the topic. webhook: the secret for signatures. "
            "email: the password. apprise: addresses, one a line. [default: asked for]",
            show_default=False,
        ),
    ] = None,
    server: Annotated[str | None, typer.Option(help="ntfy: the server. [default: https://ntfy.sh]")] = None,
    url: Annotated[str | None, typer.Option(help="webhook: the address. [default: asked for]")] = None,
    template_file: Annotated[
        Path | None, typer.Option(help='webhook: file with the body, such as {"content": "{{text}}"}.')
    ] = None,
    content_type: Annotated[
        str | None, typer.Option(help="webhook: the template's type. [default: application/json]")
    ] = None,
    host: Annotated[str | None, typer.Option(help="email: the mail server.")] = None,
    port: Annotated[int | None, typer.Option(help="email: its port. [default: 587, or 465 with tls]")] = None,
    tls: Annotated[str | None, typer.Option(help="email: starttls, tls or none. [default: starttls]")] = None,
    user: Annotated[str | None, typer.Option(help="email: the login at the mail server.")] = None,
    sender: Annotated[
        str | None,
        typer.Option("--from", envvar="GATEWAY_CHANNELS_ADD_FROM", help="email: your address there."),
    ] = None,
    to: Annotated[list[str] | None, typer.Option(help="email: who gets it; may be given often.")] = None,
    topic: Annotated[
        str | None, typer.Option(help="mqtt: the topic. [default: hydrometer_gateway/INSTANCE/event]")
    ] = None,
    quiet_hours: Annotated[
        str | None, typer.Option(help="Hours in which only what is critical is sent, such as 22:00-07:00.")
    ] = None,
    quiet_critical: Annotated[
        bool, typer.Option("--quiet-critical", help="Hold back what is critical, too.")
    ] = False,
    per_hour: Annotated[int | None, typer.Option(help="Messages in any hour at most. [default: 10]")] = None,
    per_day: Annotated[int | None, typer.Option(help="Messages in any day at most. [default: 30]")] = None,
) -> None:
    """Add a channel. What you do not give, such as its secret, is asked for.

    A secret that is typed is kept in a file of the data directory that only its owner can read. A file with
    several secrets has a line for each: topic=..., token=...; secret=..., url=..., token=... The kind mqtt
    uses the broker of `serve --mqtt-url`.

    Examples:

    hydrometer-gateway channels add phone --kind ntfy --topic-file ~/ntfy.topic --quiet-hours 22:00-07:00

    hydrometer-gateway channels add house --kind webhook --url http://nodered.lan:1880/alarm

    hydrometer-gateway channels add mail --kind email --host mail.example.org --user me --from me@example.org
    --to me@example.org --secret-file ~/mail.password

    hydrometer-gateway channels add broker --kind mqtt

    hydrometer-gateway channels add chat --kind apprise --secret-file ~/apprise.urls
    """
    if kind not in KINDS:
        raise InvalidInput(f"--kind is one of {', '.join(KINDS)}{did_you_mean(kind, KINDS)}")
    settings: dict[str, Any] = {
        "server": server,
        "url": url,
        "template": _text(template_file) if template_file is not None else None,
        "content_type": content_type,
        "host": host,
        "port": port,
        "tls": tls,
        "user": user,
        "sender": sender,
        "to": to or None,
        "topic": topic,
        "quiet": quiet_hours,
        "quiet_critical": quiet_critical or None,
        "per_hour": per_hour,
        "per_day": per_day,
    }
    body: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "settings": {key: value for key, value in settings.items() if value is not None},
    }
    if secret_file is not None:
        body["secret_file"] = str(secret_file.absolute())
    else:
        body["secret"] = _asked(kind, url, user)
    ask(data_dir, "POST", "/manage/channels", body={key: each for key, each in body.items() if each != ""})
    if secret_file is not None:
        with contextlib.suppress(OSError):
            if others_can_read(secret_file):
                typer.echo(f"Other users can read {secret_file}: chmod 600 {secret_file}", err=True)
    typer.echo(f"`channels test {name}` sends a message now.", err=True)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {in_words(error)}") from error


def _asked(kind: str, url: str | None, user: str | None) -> str:
    """Ask for the parts of the secret; the text that the gateway keeps."""
    wanted = {
        "ntfy": [
            ("topic", "Topic (it is a password: who knows it can read along)", True),
            ("token", "Access token", False),
        ],
        "webhook": [
            *([] if url is not None else [("url", "Address", True)]),
            ("secret", "Secret for signatures", False),
        ],
        "email": [("password", "Password at the mail server", True)] if user is not None else [],
        "apprise": [("url", "Address, such as tgram://...", True)],
    }.get(kind, [])  # fmt: skip
    lines = []
    for part, question, needed in wanted:
        if not sys.stdin.isatty():
            if needed:
                raise ConfigError(
                    f"the {part} is missing, and there is no terminal to ask at; give it by --secret-file"
                )
            continue
        words = question if needed else f"{question} (or nothing)"
        answer = typer.prompt(
            words, hide_input=True, err=True, default=None if needed else "", show_default=False
        )
        if answer:
            lines.append(answer if kind == "apprise" else f"{part}={answer}")
    return "\n".join(lines)


@app.command()
def remove(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Remove a channel.

    Its messages on their way go, too, and so does its secret, if the gateway keeps it.
    """
    _ask(data_dir, name, "DELETE")


@app.command()
def pause(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Pause a channel until `resume`, also after a restart.

    Meanwhile alarms make no messages for it.
    """
    _ask(data_dir, name, "PATCH", body={"paused": True})


@app.command()
def resume(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Let a channel go on at once, also if it waits for its next attempt."""
    _ask(data_dir, name, "PATCH", body={"paused": False})


@app.command("test")
def try_out(name: Name, data_dir: DataDir, config: Config = None) -> None:
    """Send a test message through a channel, as an alarm would go.

    Waits 15 s, and says what became of it. Exit code 1 means that it was not taken.
    """
    outcome = _ask(data_dir, name, "POST", "/test")
    typer.echo(one_line(outcome["text"]))
    if not outcome["ok"]:
        sys.exit(1)


def _ask(data_dir: Path, name: str, method: str, path: str = "", **options: Any) -> Any:
    """Send a request about a channel. For a 404, raise `NotFound` for the missing channel."""
    if NAME.fullmatch(name):  # else no channel is called so, and no path has room for the name
        with contextlib.suppress(NotFound):
            return ask(data_dir, method, f"/manage/channels/{name}{path}", **options)
    names = [channel["name"] for channel in get(data_dir, "/manage/channels")["channels"]]
    raise NotFound(f"no channel {name!r}{did_you_mean(name, names)}; `channels list` shows them")
