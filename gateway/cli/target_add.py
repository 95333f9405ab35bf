"""`targets add`: a new target of any kind."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.client import ask
from gateway.cli.lookup import device_number
from gateway.cli.options import Config, DataDir, device_words
from gateway.cli.target_keys import NewName, Plaintext, tell_address, warn_of_readers, way_agreed
from gateway.domain.target import PER_MINUTE, PER_MINUTE_MAX, SERVICE
from gateway.domain.texts import decimal_digits
from gateway.errors import ConfigError, InvalidInput, in_words


def add(
    name: NewName,
    data_dir: DataDir,
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="https://host, without /v1. Or --url.")
    ] = None,
    config: Config = None,
    kind: Annotated[
        str, typer.Option(help="service, influx, mqtt, webhook, brewfather, brewersfriend or grainfather.")
    ] = SERVICE,
    url_option: Annotated[
        str | None,
        typer.Option(
            "--url",
            envvar="GATEWAY_TARGETS_ADD_URL",
            help="The address; mqtt://host of a broker.",
            show_default=False,
        ),
    ] = None,
    url_file: Annotated[
        Path | None,
        typer.Option(help="webhook, grainfather: file that holds the address, if that is a secret."),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="File that holds only the API key, token or password; it stays there.")
    ] = None,
    org: Annotated[str | None, typer.Option(help="influx: the organisation (version 2).")] = None,
    bucket: Annotated[str | None, typer.Option(help="influx: the bucket or database.")] = None,
    api: Annotated[int, typer.Option(help="influx: version 1, 2 or 3.", min=1, max=3)] = 2,
    topic: Annotated[
        str | None,
        typer.Option(help="mqtt: the topic. [default: brewery/{device}/reading]", show_default=False),
    ] = None,
    user: Annotated[str | None, typer.Option(help="mqtt: the user; the password is in --key-file.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="webhook: brewspy, bricks, meadtools, ubidots or thingspeak.")
    ] = None,
    template: Annotated[
        Path | None, typer.Option(help="webhook: file with the body; {{sg}} and so on stand for values.")
    ] = None,
    content_type: Annotated[
        str | None, typer.Option(help="webhook: type of the template. [default: application/json]")
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="webhook: an array of readings.")] = False,
    latest: Annotated[
        bool, typer.Option("--latest", help="webhook: the newest reading of each device only.")
    ] = False,
    min_interval: Annotated[
        str | None, typer.Option(help="webhook: the least time between two, such as 30s or 15m.")
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(help="Not service: let this device's readings go there.", autocompletion=device_words),
    ] = None,
    per_minute: Annotated[
        int, typer.Option(help="Requests in any minute at most.", min=1, max=PER_MINUTE_MAX)
    ] = PER_MINUTE,
    plaintext: Plaintext = False,
) -> None:
    """Add a target beside the one of `serve --upstream-url`.

    A key is read from its file for each request, so a new key works at once. Nothing goes to a new target
    before you choose what, with `targets map`: brew sessions, to other kinds than a service devices or all.

    Examples, one for each kind:

    hydrometer-gateway targets add club https://brew.example --key-file ~/club.key

    hydrometer-gateway targets add grafana --kind influx --url http://influx:8086 --org home --bucket brewery
    --key-file ~/influx.token

    hydrometer-gateway targets add out --kind mqtt --url mqtt://broker.lan --topic 'brewery/{device}/reading'

    hydrometer-gateway targets add hook --kind webhook --url https://example.org/hook --key-file ~/hook.secret

    hydrometer-gateway targets add bf --kind brewfather --key-file ~/brewfather.id

    hydrometer-gateway targets add friend --kind brewersfriend --key-file ~/friend.key

    hydrometer-gateway targets add gf --kind grainfather --device ispindel:1234567 --url-file ~/gf.url

    The last three take no time of a reading: they get the newest reading of each device, every 15 minutes.
    An outage leaves a gap there, not here.
    """
    address = url or url_option or ""
    if kind == SERVICE and key_file is None:
        raise ConfigError("--key-file is missing: a file that holds only the API key for that service")
    if kind == SERVICE and not address:
        raise ConfigError("the address is missing, such as https://brew.example")
    settings = {
        "org": org,
        "bucket": bucket,
        "api": api if kind == "influx" else None,
        "topic": topic,
        "user": user,
        "preset": preset,
        "body": None if template is None else read_text(template),
        "content_type": content_type,
        "batch": batch or None,
        "latest": latest or None,
        "min_interval_s": None if min_interval is None else seconds_of(min_interval),
    }
    given = {option: value for option, value in settings.items() if value is not None}
    if kind == SERVICE and (given or url_file or device):
        raise ConfigError("these options are for other kinds, such as --kind influx")
    devices = [(word, device_number(data_dir, word)) for word in device or ()]
    body = {
        **{"name": name, "url": address, "kind": kind, "per_minute": per_minute, "settings": given},
        "url_file": None if url_file is None else str(url_file.absolute()),
        "key_file": None if key_file is None else str(key_file.absolute()),
        "plaintext": way_agreed(address, plaintext) if key_file else plaintext,
    }
    added = ask(data_dir, "POST", "/manage/targets", body=body)["targets"][0]
    for path in (key_file, url_file):
        if path is not None:
            warn_of_readers(path)
    if kind == SERVICE:
        tell_address(address, added["url"])
        return
    for _, number in devices:
        ask(data_dir, "PUT", f"/manage/targets/{name}/routes/device/{number}", body={})
    if not devices:
        typer.echo(f"Nothing goes there yet: `targets map {name} --all`, --device or --brew.", err=True)


UNITS_S = {"s": 1, "m": 60, "h": 3600}
"""Seconds of a unit of `--min-interval`."""


def seconds_of(text: str) -> int:
    """Return the seconds of 900, 30s, 15m or 2h; `InvalidInput` for anything else."""
    number, unit = (text[:-1], UNITS_S[text[-1]]) if text[-1:] in UNITS_S else (text, 1)
    if not decimal_digits(number):
        raise InvalidInput(f"--min-interval {text!r} is no time; it looks like 30s, 15m or 2h")
    return int(number) * unit


def read_text(path: Path) -> str:
    """Return a small text file; `ConfigError` if it cannot be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{path}: {in_words(error)}") from error
