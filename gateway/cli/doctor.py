"""`doctor`: examine everything that can go wrong, and name the remedies."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer._click.exceptions import NoSuchOption

from gateway.cli.client import ask_briefly, ask_running
from gateway.cli.exit_codes import ExitCode
from gateway.cli.options import SERVE, Config, DataDir, json_option
from gateway.cli.output import GREEN, RED, YELLOW, coloured, is_coloured
from gateway.cli.progress import signs_of_life
from gateway.errors import GatewayError, in_words

if TYPE_CHECKING:
    from gateway.doctor.finding import Broker, Finding
    from gateway.settings import Settings

QUICK_S = 5.0
"""Seconds in which a gateway has to answer `--quick`, also on a small and busy machine."""

STORE = "store"
"""The part of a running gateway that stores readings."""

CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Any option that `doctor` does not have is taken as an option of `serve`."""


def doctor(
    context: typer.Context,
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_DOCTOR_JSON")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Ask the running gateway whether it stores readings, no more.")
    ] = False,
) -> None:
    """Look for problems, and name the remedy of each.

    It checks data, disk, clock, database, broker, upstream and ports.

    Reads the configuration of `serve`, and takes its options as well. Changes nothing, sends no readings, and
    may run beside a gateway or without one. The exit code is 3 if there is a problem; warnings do not count.

    With --quick, it takes a moment, as a container's HEALTHCHECK wants it: is a gateway running with these
    data, does it answer, does it store?

    Example: hydrometer-gateway doctor --mqtt-url mqtt://broker.lan --mqtt-user gateway
    """
    if quick:
        _look_quickly(data_dir, as_json=as_json)
        return
    from gateway.doctor import examine  # not above: other commands need none of it

    settings = _settings_of_serve(context, ["--data-dir", str(data_dir), *_config(config), *context.args])
    unread, quota = partial(_unread, settings), partial(_quota, settings)
    with signs_of_life():
        findings = asyncio.run(
            examine(
                settings, _broker(settings), partial(_parts, settings),
                unread=unread, quota=quota, shared_ids=partial(_shared_ids, settings),
            )
        )  # fmt: skip
    for finding in findings:
        typer.echo(
            json.dumps(finding.as_json(), ensure_ascii=False) if as_json else _line(finding),
            color=is_coloured(sys.stdout),
        )
    problems = sum(finding.level == "problem" for finding in findings)
    if not as_json:
        warnings = sum(finding.level == "warning" for finding in findings)
        typer.echo(f"{_many(problems, 'problem')}, {_many(warnings, 'warning')}")
    if problems:
        raise typer.Exit(ExitCode.PROBLEM_FOUND)


def _look_quickly(data_dir: Path, *, as_json: bool) -> None:
    """Say in one line whether the running gateway stores readings; import none of the checks."""
    try:
        health = ask_briefly(data_dir, "/healthz", silence_s=QUICK_S)
        fault = _fault(health)
    except OSError as error:
        fault = f"{data_dir}: {in_words(error)}"
    except GatewayError as error:
        fault = f"no gateway is running with the data in {data_dir}: {error}"
    text = fault or f"the gateway with the data in {data_dir} answers and stores readings"
    if as_json:
        members = {"about": "gateway", "level": "problem" if fault else "ok", "text": text}
        typer.echo(json.dumps(members, ensure_ascii=False))
    else:
        typer.echo(f"{'problem' if fault else 'ok':<8} gateway: {text}")
    if fault:
        raise typer.Exit(ExitCode.PROBLEM_FOUND)


def _fault(health: Mapping[str, Any]) -> str:
    """Return why a gateway that answers does not store, "" if it stores."""
    if health["status"] == "unavailable":
        return "the gateway answers, but cannot read its database; its log says why"
    if STORE in health.get("in_trouble", ()):
        return f"the gateway answers, but stores no readings: {health['parts'][STORE]}"
    return ""


async def _parts(settings: "Settings") -> Mapping[str, str]:
    parts: Mapping[str, str] = (await ask_running(settings.data_dir, "/healthz"))["parts"]
    return parts


async def _unread(settings: "Settings") -> Mapping[str, Any]:
    topics: Mapping[str, Any] = (await ask_running(settings.data_dir, "/manage/status"))["unread_topics"]
    return topics


async def _quota(settings: "Settings") -> int:
    return int((await ask_running(settings.data_dir, "/manage/status"))["disk"]["quota_bytes"])


async def _shared_ids(settings: "Settings") -> Mapping[str, Sequence[str]]:
    mqtt = (await ask_running(settings.data_dir, "/manage/status"))["mqtt"]
    shared: Mapping[str, Sequence[str]] = mqtt["shared_ids"]
    return shared


def _config(config: object) -> list[str]:
    return [] if config is None else ["--config", str(config)]


def _settings_of_serve(context: typer.Context, arguments: list[str]) -> "Settings":
    """Return the settings that `serve` would have with these arguments, the environment and the file."""
    root = context.find_root()
    command = root.command.get_command(root, SERVE)  # type: ignore[attr-defined]
    try:
        told = command.make_context(SERVE, arguments, parent=root).params
    except NoSuchOption as error:
        known = [name for option in command.params for name in option.opts]
        raise NoSuchOption(error.option_name, possibilities=known, ctx=context) from None
    from gateway.settings import Settings  # not above: `--quick` has no use for it

    return Settings(**{key: value for key, value in told.items() if key != "config" and value is not None})


def _broker(settings: "Settings") -> "Broker | None":
    from gateway.doctor.finding import Broker
    from gateway.transports.mqtt_link import advice_of, broker_of

    url = broker_of(settings)
    if url is None:
        return None
    return Broker(url.host, url.port, url.tls, url.user, url.password, tuple(advice_of(settings)))


COLOURS = {"ok": GREEN, "warning": YELLOW, "problem": RED}


def _line(finding: "Finding") -> str:
    remedy = f"\n         -> {finding.remedy}" if finding.remedy else ""
    level = coloured(f"{finding.level:<8}", COLOURS.get(finding.level), sys.stdout)
    return f"{level} {finding.check}: {finding.text}{remedy}"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
