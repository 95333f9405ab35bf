"""Command line of the simulated hydrometers: `python -m sample_devices kinds|send|fleet`."""

import asyncio
import json
import os
import signal
import sys
from typing import Annotated, NoReturn
from urllib.parse import unquote, urlsplit

import typer

from sample_devices import fleet as fleets
from sample_devices.devices import KINDS, Broker, Simulated, Targets, simulate, simulate_fleet
from sample_devices.fermentation import HOUR_S
from sample_devices.transports import mqtt as mqtt_transport
from sample_devices.transports.errors import NotAnswered
from sample_devices.wire.report import Address, HttpReport, MqttReport, Place, Report

HTTP_PORT = 80
MQTT_PORT = 1883
STEP_S = 900.0  # one report interval of a real device

# "\b" keeps typer from filling the lines of a paragraph.
_EXAMPLES = """\b
Examples:
  python -m sample_devices kinds
  python -m sample_devices send ispindel-http --http http://127.0.0.1:8080 --show
  python -m sample_devices send tiltpi-http --http http://127.0.0.1:8080 --name RED --hours 48
  python -m sample_devices fleet --http http://127.0.0.1:8080 --mqtt 127.0.0.1:1883 --minutes 5
  python -m sample_devices fleet --http http://127.0.0.1:8080 --kind tiltpi-http --count 20 --json
"""

app = typer.Typer(
    help="Simulated hydrometers that report byte for byte as the real ones do.",
    epilog=_EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

HttpUrl = Annotated[
    str | None, typer.Option("--http", help="Send HTTP reports here; a path in the URL replaces the default.")
]
MqttBroker = Annotated[
    str | None, typer.Option("--mqtt", help="Send MQTT reports here: HOST:PORT or USER:PASSWORD@HOST:PORT.")
]
Seed = Annotated[int, typer.Option(help="Same seed: same devices, same curves.", min=0)]


@app.command()
def kinds() -> None:
    """List the kinds of device that can be simulated."""
    for name, kind in KINDS.items():
        typer.echo(f"{name:<16} {kind.about}")


@app.command(epilog=_EXAMPLES)
def send(
    kind: Annotated[str, typer.Argument(help="One of the names that `kinds` lists.", metavar="KIND")],
    http: HttpUrl = None,
    mqtt: MqttBroker = None,
    name: Annotated[str | None, typer.Option(help="Device name (for a Tilt: its colour).")] = None,
    seed: Seed = 1,
    hours: Annotated[float, typer.Option(help="Simulated hours since pitching.", min=0)] = 0.0,
    path: Annotated[str | None, typer.Option(help="Request target instead of the kind's own.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the bytes before they are sent.")] = False,
) -> None:
    """Send one report; exit 0 only if it was answered (HTTP 200, or MQTT handed over)."""
    targets = _targets(http, mqtt, path)
    _check_kinds([kind], targets)
    device = simulate(kind, Place(seed, name=name), targets)
    report = device.report(hours * HOUR_S)
    if show:
        _show(report)
    try:
        typer.echo(f"answered: {asyncio.run(device.send(report))}")
    except NotAnswered as failure:
        _fail(str(failure))


@app.command(epilog=_EXAMPLES)
def fleet(
    http: HttpUrl = None,
    mqtt: MqttBroker = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Repeatable; default: all kinds a target was given for.")
    ] = None,
    count: Annotated[int | None, typer.Option(help="Devices; default: one of each kind.", min=1)] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after this many seconds.", min=0)] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this many minutes.", min=0)] = None,
    every: Annotated[float, typer.Option(help="Real seconds between reports of a device.", min=0)] = 1.0,
    step: Annotated[float, typer.Option(help="Simulated seconds each report advances.", min=0)] = STEP_S,
    seed: Seed = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line; `number` counts per device.")
    ] = False,
) -> None:
    """Run several devices at once, until the time is up or SIGINT or SIGTERM comes."""
    if seconds is not None and minutes is not None:
        _fail("give --seconds or --minutes, not both")
    targets = _targets(http, mqtt, None)
    chosen = kind or [each for each, made in KINDS.items() if targets.has(made.transport)]
    _check_kinds(chosen, targets)
    devices = simulate_fleet(chosen, count or len(chosen), seed, targets)
    limit_s = minutes * 60 if minutes is not None else seconds
    try:
        tally = asyncio.run(_run_fleet(devices, fleets.Beat(every, step), limit_s, as_json))
        summary = {"summary": {"sent": tally.sent, "answered": tally.answered}}
        _say(json.dumps(summary) if as_json else f"sent {tally.sent}, answered {tally.answered}")
    except* BrokenPipeError:
        # The reader (`| head`) has gone; keep Python from failing again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _run_fleet(
    devices: list[Simulated], beat: fleets.Beat, limit_s: float | None, as_json: bool
) -> fleets.Tally:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if limit_s is not None:
        loop.call_later(limit_s, stop.set)
    return await fleets.run(
        devices, beat, stop, lambda outcome: _say(outcome.as_json() if as_json else outcome.as_text())
    )


def _targets(http: str | None, mqtt: str | None, path: str | None) -> Targets:
    try:
        return Targets(
            _http_address(http, path) if http is not None else None,
            _mqtt_broker(mqtt) if mqtt is not None else None,
        )
    except ValueError as failure:
        _fail(str(failure))


def _http_address(url: str, path: str | None) -> Address:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"--http must look like http://HOST:PORT, not {url!r}")
    in_url = parts.path + (f"?{parts.query}" if parts.query else "")
    if path is None and in_url not in {"", "/"}:
        path = in_url
    return Address(parts.hostname, parts.port or HTTP_PORT, path)


def _mqtt_broker(text: str) -> Broker:
    parts = urlsplit(text if "://" in text else f"mqtt://{text}")
    if parts.scheme != "mqtt" or not parts.hostname or parts.path not in {"", "/"}:
        raise ValueError("--mqtt must look like HOST:PORT or USER:PASSWORD@HOST:PORT")
    user = unquote(parts.username) if parts.username is not None else None
    password = unquote(parts.password) if parts.password is not None else None
    return Broker(parts.hostname, parts.port or MQTT_PORT, user, password)


def _check_kinds(chosen: list[str], targets: Targets) -> None:
    if not chosen:
        _fail("give --http URL, --mqtt HOST:PORT or both")
    for name in chosen:
        if name not in KINDS:
            _fail(f"there is no kind {name!r}; there are {', '.join(KINDS)}")
        if not targets.has(KINDS[name].transport):
            _fail(f"{name} needs --{KINDS[name].transport}")


def _show(report: Report) -> None:
    """Print an HTTP request as it is, and MQTT packets one a line as Python bytes."""
    match report:
        case HttpReport():
            sys.stdout.buffer.write(report.request + b"\n")
            sys.stdout.buffer.flush()
        case MqttReport():
            packets = [mqtt_transport.publish_packet(message) for message in report.messages]
            for packet in [mqtt_transport.connect_packet(report.login), *packets, mqtt_transport.DISCONNECT]:
                _say(repr(packet))


def _say(line: str) -> None:
    print(line, flush=True)


def _fail(why: str) -> NoReturn:
    typer.echo(f"error: {why}", err=True)
    raise typer.Exit(1)


if __name__ == "__main__":
    app(prog_name="python -m sample_devices")
