"""`doctor`: examine everything that can go wrong, and name the remedies."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.client import ask_running
from gateway.cli.options import SERVE, Config, DataDir, json_option
from gateway.settings import Settings

if TYPE_CHECKING:
    from gateway.doctor.finding import Broker, Finding

CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Any option that `doctor` does not have is taken as an option of `serve`."""


def doctor(
    context: typer.Context,
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_DOCTOR_JSON")] = False,
) -> None:
    """Check data, disk, clock, database, broker, upstream and ports; name each problem and its remedy.

    Reads the configuration of `serve`, and takes its options as well. Changes nothing, sends no readings, and
    may run beside a gateway or without one. The exit code is 0 if there is no problem; warnings do not count.

    Example: hydrometer-gateway doctor --mqtt-url mqtt://broker.lan --mqtt-user gateway
    """
    from gateway.doctor import examine  # not above: other commands need none of it

    settings = _settings_of_serve(context, ["--data-dir", str(data_dir), *_config(config), *context.args])
    unread, quota = partial(_unread, settings), partial(_quota, settings)
    findings = asyncio.run(
        examine(
            settings, _broker(settings), partial(_parts, settings),
            unread=unread, quota=quota, shared_ids=partial(_shared_ids, settings),
        )
    )  # fmt: skip
    for finding in findings:
        typer.echo(json.dumps(finding.as_json(), ensure_ascii=False) if as_json else _line(finding))
    problems = sum(finding.level == "problem" for finding in findings)
    if not as_json:
        warnings = sum(finding.level == "warning" for finding in findings)
        typer.echo(f"{_many(problems, 'problem')}, {_many(warnings, 'warning')}")
    if problems:
        raise typer.Exit(1)


async def _parts(settings: Settings) -> Mapping[str, str]:
    parts: Mapping[str, str] = (await ask_running(settings.data_dir, "/healthz"))["parts"]
    return parts


async def _unread(settings: Settings) -> Mapping[str, Any]:
    topics: Mapping[str, Any] = (await ask_running(settings.data_dir, "/manage/status"))["unread_topics"]
    return topics


async def _quota(settings: Settings) -> int:
    return int((await ask_running(settings.data_dir, "/manage/status"))["disk"]["quota_bytes"])


async def _shared_ids(settings: Settings) -> Mapping[str, Sequence[str]]:
    mqtt = (await ask_running(settings.data_dir, "/manage/status"))["mqtt"]
    shared: Mapping[str, Sequence[str]] = mqtt["shared_ids"]
    return shared


def _config(config: object) -> list[str]:
    return [] if config is None else ["--config", str(config)]


def _settings_of_serve(context: typer.Context, arguments: list[str]) -> Settings:
    """Return the settings that `serve` would have with these arguments, the environment and the file."""
    root = context.find_root()
    command = root.command.get_command(root, SERVE)  # type: ignore[attr-defined]
    told = command.make_context(SERVE, arguments, parent=root).params
    return Settings(**{key: value for key, value in told.items() if key != "config" and value is not None})


def _broker(settings: Settings) -> "Broker | None":
    from gateway.doctor.finding import Broker
    from gateway.transports.mqtt_link import advice_of, broker_of

    url = broker_of(settings)
    if url is None:
        return None
    return Broker(url.host, url.port, url.tls, url.user, url.password, tuple(advice_of(settings)))


def _line(finding: "Finding") -> str:
    remedy = f"\n         -> {finding.remedy}" if finding.remedy else ""
    return f"{finding.level:<8} {finding.check}: {finding.text}{remedy}"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
