"""`alarms`: what fires and why, the limits of the rules, and what was said."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import ask, get
from gateway.cli.lookup import device_number, no_session, session_number
from gateway.cli.options import (
    Config,
    DataDir,
    Wide,
    channel_words,
    device_words,
    json_option,
    session_words,
    target_words,
)
from gateway.cli.output import (
    GREY,
    RED,
    Column,
    exact,
    local_time,
    parse_time,
    state,
    table,
    to_the_minute,
    unix,
    when,
)
from gateway.cli.recipe_view import one_line
from gateway.errors import InvalidInput

app = typer.Typer(help="Alarms: what fires, say OK, limits, a test message.", no_args_is_help=True)

PATH = "/manage/alarms"

FIRING = "firing"

SHOWN_EVENTS = 50

LAST_MAX = 10_000

Brew = Annotated[
    str | None,
    typer.Option(
        "--brew",
        metavar="SESSION",
        help="Only this brew session: id or batch code.",
        autocompletion=session_words,
    ),
]
OneDevice = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="Only this device: id, device id, name, label or key.",
        autocompletion=device_words,
    ),
]
Number = Annotated[int, typer.Argument(metavar="ID", help="As `alarms list` shows it.", min=1)]


@app.command("list")
def list_alarms(
    data_dir: DataDir,
    config: Config = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", envvar="GATEWAY_ALARMS_LIST_ALL", help="Also those that are acknowledged or snoozed."
        ),
    ] = False,
    brew: Brew = None,
    device: OneDevice = None,
    as_json: Annotated[bool, json_option("GATEWAY_ALARMS_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List the alarms that fire, the worst first.

    Each has its state, since when it fires, what it is about, and why. The exit code is 1 while one fires
    that nobody has acknowledged or snoozed, for instance for cron.
    """
    found = get(data_dir, PATH, query=_about(data_dir, brew, device))["alarms"]
    fires = [alarm for alarm in found if alarm["state"] == FIRING]
    shown = found if everything else fires
    if as_json:
        for alarm in shown:
            typer.echo(json.dumps(alarm, ensure_ascii=False))
    elif shown:
        rows = [
            (
                alarm["id"],
                state(_state(alarm), RED if alarm["state"] == FIRING else GREY),
                alarm["severity"],
                when(unix(alarm["fired_at"] or alarm["since"])),
                _rule(alarm["rule"]),
                one_line(alarm["name"]),
                one_line(alarm["text"]),
            )
            for alarm in shown
        ]
        columns = (
            *(Column("ID"), Column("STATE"), Column("SEVERITY", 4), Column("SINCE", 3)),
            *(Column("WHAT"), Column("ABOUT", cut=True), Column("WHY", 2, cut=True)),
        )
        table(columns, rows, wide=wide)
    elif not found and sys.stdout.isatty():  # not for cron, which would send it by mail
        typer.echo("No alarm fires.")
    if not as_json and not everything and len(found) > len(fires):
        typer.echo(
            f"{len(found) - len(fires)} more are acknowledged or snoozed: `alarms list --all`", err=True
        )
    if fires:
        raise typer.Exit(1)


@app.command()
def ack(number: Number, data_dir: DataDir, config: Config = None) -> None:
    """Acknowledge an alarm: nobody is reminded of it any more. It goes on until it clears by itself."""
    alarm = _change(data_dir, number, "ack")
    typer.echo(f"Alarm {number} is acknowledged: {one_line(alarm['text'])}", err=True)


@app.command()
def snooze(
    number: Number,
    until: Annotated[
        str, typer.Argument(help="1h, 8h, tomorrow (8:00), or a time such as 2026-03-01T18:30.")
    ],
    data_dir: DataDir,
    config: Config = None,
) -> None:
    """Be quiet about an alarm for a while.

    After that you are reminded of it, if it still fires.

    Example: hydrometer-gateway alarms snooze 3 8h
    """
    alarm = _change(data_dir, number, "snooze", {"until": until})
    typer.echo(f"Alarm {number} is quiet until {local_time(unix(alarm['snoozed_until']))}.", err=True)


@app.command()
def history(
    data_dir: DataDir,
    config: Config = None,
    brew: Brew = None,
    device: OneDevice = None,
    last: Annotated[
        int, typer.Option(help="How many events, the newest ones.", min=1, max=LAST_MAX)
    ] = SHOWN_EVENTS,
    as_json: Annotated[bool, json_option("GATEWAY_ALARMS_HISTORY_JSON")] = False,
    wide: Wide = False,
) -> None:
    """Show what happened to alarms, the newest last.

    Late means that it was found in readings that came afterwards: nobody was told.
    """
    query = {**_about(data_dir, brew, device), "last": last}
    found = list(reversed(get(data_dir, f"{PATH}/history", query=query)["events"]))
    if as_json:
        for event in found:
            typer.echo(json.dumps(event, ensure_ascii=False))
        return
    rows = [
        (
            when(unix(event["at"])),
            event["kind"] + (", late" if event["late"] else ""),
            event["alarm"]["id"],
            _rule(event["alarm"]["rule"]),
            one_line(event["alarm"]["name"]),
            one_line(event["text"]),
        )
        for event in found
    ]
    columns = (
        *(Column("TIME"), Column("EVENT"), Column("ID", 4), Column("WHAT", 3)),
        *(Column("ABOUT", cut=True), Column("TEXT", 2, cut=True)),
    )
    table(columns, rows, wide=wide)


@app.command("set")
def set_limits(
    rule: Annotated[
        str, typer.Argument(metavar="RULE", help="A rule, as `alarms check` shows them, or `all` of them.")
    ],
    data_dir: DataDir,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Limits of the rule.")
    ] = None,
    config: Config = None,
    brew: Brew = None,
    device: OneDevice = None,
    target: Annotated[
        str | None, typer.Option(help="Only this target, by its name.", autocompletion=target_words)
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Switch the rule off.")] = False,
    default: Annotated[bool, typer.Option("--default", help="Take the setting back.")] = False,
) -> None:
    """Set the limits of a rule, or switch the rule off.

    They hold for everything, or only for a brew session, a device or a target. The narrowest setting counts.
    Limits: hours (not_started); sg, attenuation, day, text (reached); lo, hi in °C (temperature); volts,
    percent (battery).

    Example: hydrometer-gateway alarms set reached --brew 1 attenuation=75 text="dry hops"
    """
    if sum((bool(values), off, default)) != 1:
        raise InvalidInput("say KEY=VALUE, --off or --default")
    scopes = {"brew": brew, "device": device, "target": target}
    given = {scope: name for scope, name in scopes.items() if name is not None}
    if len(given) > 1:
        raise InvalidInput(f"say one of {', '.join(f'--{name}' for name in given)}")
    scope, subject = "all", ""
    if brew is not None:
        scope, subject = "brew", str(session_number(data_dir, brew))
    elif device is not None:
        scope, subject = "device", str(device_number(data_dir, device))
    elif target is not None:
        scope, subject = "target", target
    body: dict[str, Any] = {"rule": _key(rule), "scope": scope, "subject": subject}
    body |= {"default": True} if default else {"setting": {"off": True} if off else _pairs(values or [])}
    name = next(iter(given.values()), subject)
    ask(data_dir, "PUT", f"{PATH}/settings", body=body, missing=f"no {scope} {name!r}")
    what = "as usual" if default else "off" if off else ", ".join(values or [])
    where = f"{scope} {name}" if given else "all"
    typer.echo(f"{_rule(body['rule']) or 'every rule'} for {one_line(where)}: {one_line(what)}", err=True)


@app.command()
def check(
    data_dir: DataDir,
    config: Config = None,
    brew: Brew = None,
    at: Annotated[
        str | None, typer.Option(help="At this time: 2026-03-01 or 2026-03-01T18:30. [default: now]")
    ] = None,
    as_of_now: Annotated[
        bool, typer.Option("--as-of-now", help="Take also readings that arrived after that time.")
    ] = False,
    as_json: Annotated[bool, json_option("GATEWAY_ALARMS_CHECK_JSON")] = False,
    wide: Wide = False,
) -> None:
    """Show what each rule sees, and why it fires or not.

    It shows the limit, too, and changes nothing. With --at only readings count that had arrived by then, so
    it tells what the gateway could have known.

    Example: hydrometer-gateway alarms check --brew HP001 --at 2026-03-01T18:30
    """
    number = None if brew is None else session_number(data_dir, brew)
    query = {
        "brew": number,
        "at": None if at is None else exact(parse_time(at)),
        "as_of_now": as_of_now,
    }
    missing = "" if number is None else no_session(number)
    found = get(data_dir, f"{PATH}/check", query=query, missing=missing)["checks"]
    if as_json:
        for row in found:
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    rows = [
        (
            one_line(row["name"]),
            _rule(row["rule"]),
            "yes" if row["fires"] else "no",
            one_line(row["saw"]),
            one_line(row["limit"]),
            one_line(row["text"] if row["fires"] else row["why_not"]),
        )
        for row in found
    ]
    columns = (
        *(Column("ABOUT", cut=True), Column("RULE"), Column("FIRES")),
        *(Column("SAW", 3, cut=True), Column("LIMIT", 4, cut=True), Column("WHY", 2, cut=True)),
    )
    table(columns, rows, wide=wide)


@app.command("test")
def send_test(
    data_dir: DataDir,
    rule: Annotated[
        str | None, typer.Argument(metavar="RULE", help="The rule whose words the message has.")
    ] = None,
    config: Config = None,
    channel: Annotated[
        str | None, typer.Option(help="Only this channel.", autocompletion=channel_words)
    ] = None,
) -> None:
    """Send a test message through the channels, as an alarm would go.

    Waits 15 s, and says what became of it.
    """
    body = {"rule": None if rule is None else _key(rule), "channel": channel}
    missing = f"no channel {channel!r}; `channels list` shows them"
    for outcome in ask(data_dir, "POST", f"{PATH}/test", body=body, missing=missing)["channels"]:
        typer.echo(f"{outcome['channel']}: {one_line(outcome['text'])}")


def _about(data_dir: Path, brew: str | None, device: str | None) -> dict[str, Any]:
    """Return the query for a brew session or a device, by the name that was typed."""
    if brew is not None and device is not None:
        raise InvalidInput("say --brew or --device, not both")
    return {
        "brew": None if brew is None else session_number(data_dir, brew),
        "device": None if device is None else device_number(data_dir, device, writing=False),
    }


def _change(data_dir: Path, number: int, action: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    missing = f"no alarm {number} fires; `alarms list --all` shows those that do"
    answer = ask(data_dir, "POST", f"{PATH}/{number}/{action}", body=body, missing=missing)
    alarm: dict[str, Any] = answer["alarms"][0]
    return alarm


def _pairs(values: list[str]) -> dict[str, Any]:
    """Read `KEY=VALUE` words. A number is one; the gateway says which limits there are."""
    pairs: dict[str, Any] = {}
    for word in values:
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"{word!r} is no KEY=VALUE, such as hi=22")
        pairs[name.strip()] = text.strip()
    return pairs


def _state(alarm: dict[str, Any]) -> str:
    if alarm["snoozed_until"] is not None and alarm["state"] == "snoozed":
        return f"quiet until {to_the_minute(unix(alarm['snoozed_until']))}"
    return str(alarm["state"])


def _key(rule: str) -> str:
    """Return a rule as the gateway names it; `all` is every rule."""
    return "" if rule == "all" else rule.strip().replace(" ", "_").replace("-", "_")


def _rule(rule: str) -> str:
    return rule.replace("_", " ")
