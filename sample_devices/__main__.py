"""Command line of the simulated hydrometers: `python -m sample_devices kinds|send|fleet`."""

import asyncio
import json
import math
import os
import signal
import sys
import time
from typing import Annotated, NoReturn

import typer

from sample_devices import fleet as fleets
from sample_devices.devices import KINDS, Simulated, Targets, simulate, simulate_fleet
from sample_devices.faults import DEFAULT_SHARE, FAULTS, Faults, NotApplicable, Sending, faulty, plain
from sample_devices.fermentation import HOUR_S
from sample_devices.targets import DEFAULTS, targets_from
from sample_devices.transports import mqtt as mqtt_transport
from sample_devices.transports.errors import NotAnswered
from sample_devices.wire.report import HttpReport, MqttReport, Place, Report, TcpReport

STEP_S = 900.0  # one report interval of a real device
LONGEST_S = 100 * 365 * 24 * HOUR_S
"""A hundred years: no beer takes longer, and with more, or infinity, there is no curve."""

# "\b" keeps typer from filling the lines of a paragraph.
_EXAMPLES = """\b
Examples:
  python -m sample_devices kinds
  python -m sample_devices send ispindel-http --http http://127.0.0.1:8080 --show
  python -m sample_devices send tiltpi-http --http http://127.0.0.1:8080 --name RED --hours 48
  python -m sample_devices send ispindel-tcp --tcp 127.0.0.1:9501 --fault duplicate
  python -m sample_devices fleet --count 200 --minutes 5
  python -m sample_devices fleet --http http://127.0.0.1:8080 --kind tiltpi-http --count 20 --json
  python -m sample_devices fleet --mqtt 127.0.0.1:1883 --fault retained,late --fault-share 0.5
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
TcpServer = Annotated[str | None, typer.Option("--tcp", help="Send raw TCP reports here: HOST:PORT.")]
FaultNames = Annotated[
    list[str] | None, typer.Option("--fault", help=f"Repeatable, or comma separated: {', '.join(FAULTS)}.")
]
FaultShare = Annotated[
    float, typer.Option(help="Share of the reports that have one of the faults.", min=0, max=1)
]
KindNames = Annotated[
    list[str] | None,
    typer.Option(help="Repeatable; default: all kinds a target was given for and a gateway hears by itself."),
]
AllKinds = Annotated[
    bool, typer.Option("--all-kinds", help="Those too that the gateway hears only with an option.")
]
Seed = Annotated[int, typer.Option(help="Same seed: same devices, same curves.", min=0)]


@app.command()
def kinds() -> None:
    """List the kinds of device that can be simulated, with their transport.

    At the end of a line is the option of `serve` without which the gateway does not hear such a device.
    """
    width = max(map(len, KINDS))
    for name, kind in KINDS.items():
        needs = f" Needs {kind.needs}" if kind.needs else ""
        typer.echo(f"{name:<{width}}  {kind.transport:<4}  {kind.about}{needs}")


@app.command(epilog=_EXAMPLES)
def send(
    kind: Annotated[str, typer.Argument(help="One of the names that `kinds` lists.", metavar="KIND")],
    http: HttpUrl = None,
    mqtt: MqttBroker = None,
    tcp: TcpServer = None,
    name: Annotated[str | None, typer.Option(help="Device name (for a Tilt: its colour).")] = None,
    seed: Seed = 1,
    hours: Annotated[
        float, typer.Option(help="Simulated hours since pitching.", min=0, max=LONGEST_S / HOUR_S)
    ] = 0.0,
    path: Annotated[str | None, typer.Option(help="Request target instead of the kind's own.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the bytes before they are sent.")] = False,
    fault: FaultNames = None,
) -> None:
    """Send one report, or one for each --fault (burst: five).

    Exit 0 only if all were answered as the device expects: most want HTTP 200; MQTT has to be handed
    over; raw TCP only has to be taken.
    """
    targets = _targets(http, mqtt, tcp, path)
    _check_kinds([kind], targets)
    device = simulate(kind, Place(seed, name=name), targets)
    try:
        for sending in _planned(device, _fault_names(fault), hours * HOUR_S):
            _send(device, sending, show)
    except (NotApplicable, NotAnswered) as failure:
        _fail(str(failure))


def _planned(device: Simulated, faults: tuple[str, ...], elapsed_s: float) -> list[Sending]:
    if not faults:
        return [plain(device.report(elapsed_s))]
    return [sending for fault in faults for sending in faulty(device, fault, elapsed_s, STEP_S)]


def _send(device: Simulated, sending: Sending, show: bool) -> None:
    time.sleep(sending.pause_s)
    for report in sending.copies:
        if show:
            _show(report)
        typer.echo(f"answered: {asyncio.run(device.send(report))}")


@app.command(epilog=_EXAMPLES)
def fleet(
    http: HttpUrl = None,
    mqtt: MqttBroker = None,
    tcp: TcpServer = None,
    kind: KindNames = None,
    all_kinds: AllKinds = False,
    without: Annotated[list[str] | None, typer.Option(help="Leave this kind out. Repeatable.")] = None,
    count: Annotated[int | None, typer.Option(help="Devices; default: one of each kind.", min=1)] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Stop after this many seconds.", min=0, max=LONGEST_S)
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Stop after this many minutes.", min=0, max=LONGEST_S / 60)
    ] = None,
    every: Annotated[
        float, typer.Option(help="Real seconds between reports of a device.", min=0, max=LONGEST_S)
    ] = 1.0,
    step: Annotated[
        float, typer.Option(help="Simulated seconds each report advances.", min=0, max=LONGEST_S)
    ] = STEP_S,
    apart: Annotated[
        float | None,
        typer.Option(
            help="Real seconds from one device's first report to the next one's. "
            "[default: spread over one interval]",
            min=0,
            max=LONGEST_S,
        ),
    ] = None,
    lapse: Annotated[
        float | None,
        typer.Option(help="After so many seconds, simulated time is real time: a report a minute.", min=0),
    ] = None,
    seed: Seed = 1,
    fault: FaultNames = None,
    fault_share: FaultShare = DEFAULT_SHARE,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a reading.")] = False,
    introduce: Annotated[
        bool, typer.Option("--introduce", help="First print a JSON object for each device: kind, name, id.")
    ] = False,
) -> None:
    """Run several devices at once, until the time is up or SIGINT or SIGTERM comes.

    Without --http, --mqtt and --tcp it reports to a gateway on this machine, at its usual ports.
    Kinds that a gateway hears only with an option, as `kinds` says, come along only by --kind or
    --all-kinds.
    A device that would send the same bytes as within the last minute sends nothing, as nobody could
    tell them apart. In --json, `number` counts a device's moments, `facts` are its further values,
    `measured_at` is there where it sends its own time, `readings` where a report has not just one,
    `fault` where it has one, `expected` (false) where no reading should be stored.
    """
    if seconds is not None and minutes is not None:
        _fail("give --seconds or --minutes, not both")
    if http is None and mqtt is None and tcp is None:
        http, mqtt, tcp = DEFAULTS
    targets = _targets(http, mqtt, tcp, None)
    chosen = kind or [
        name
        for name, made in KINDS.items()
        if targets.has(made.transport) and (all_kinds or not made.needs) and not made.alone
    ]
    _check_names(without or [])
    chosen = [name for name in chosen if name not in (without or [])]
    _check_kinds(chosen, targets)
    devices = simulate_fleet(chosen, count or len(chosen), seed, targets)
    faults = Faults(_fault_names(fault), fault_share, seed)
    limit_s = minutes * 60 if minutes is not None else seconds
    if introduce:
        for line in fleets.introductions(devices):
            _say(line)
    beat = fleets.Beat(every, step, apart, math.inf if lapse is None else lapse)
    _run_and_sum_up(devices, beat, faults, limit_s, as_json)


def _run_and_sum_up(
    devices: list[Simulated], beat: fleets.Beat, faults: Faults, limit_s: float | None, as_json: bool
) -> None:
    try:
        tally = asyncio.run(_run_fleet(devices, beat, faults, limit_s, as_json))
        summary = {"summary": {"sent": tally.sent, "answered": tally.answered}}
        _say(json.dumps(summary) if as_json else f"sent {tally.sent}, answered {tally.answered}")
    except* BrokenPipeError:
        # The reader (`| head`) has gone; keep Python from failing again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _run_fleet(
    devices: list[Simulated], beat: fleets.Beat, faults: Faults, limit_s: float | None, as_json: bool
) -> fleets.Tally:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if limit_s is not None:
        loop.call_later(limit_s, stop.set)
    return await fleets.run(
        devices, beat, stop, lambda outcome: _say(outcome.as_json() if as_json else outcome.as_text()), faults
    )


def _targets(http: str | None, mqtt: str | None, tcp: str | None, path: str | None) -> Targets:
    try:
        return targets_from(http, mqtt, tcp, path)
    except ValueError as failure:
        _fail(str(failure))


def _fault_names(given: list[str] | None) -> tuple[str, ...]:
    names = [name.strip() for each in given or () for name in each.split(",")]
    for name in names:
        if name not in FAULTS:
            _fail(f"there is no fault {name!r}; there are {', '.join(FAULTS)}")
    return tuple(dict.fromkeys(names))


def _check_names(kinds: list[str]) -> None:
    for name in kinds:
        if name not in KINDS:
            _fail(f"there is no kind {name!r}; there are {', '.join(KINDS)}")


def _check_kinds(chosen: list[str], targets: Targets) -> None:
    _check_names(chosen)
    for name in chosen:
        if not targets.has(KINDS[name].transport):
            _fail(f"{name} needs --{KINDS[name].transport}")


def _show(report: Report) -> None:
    """Print an HTTP request as it is; MQTT packets one a line, and TCP data, as Python bytes."""
    match report:
        case HttpReport():
            sys.stdout.buffer.write(report.request + b"\n")
            sys.stdout.buffer.flush()
        case MqttReport():
            for packet in mqtt_transport.packets(report.login, report.messages):
                _say(repr(packet))
        case TcpReport():
            _say(repr(report.data))


def _say(line: str) -> None:
    print(line, flush=True)


def _fail(why: str) -> NoReturn:
    typer.echo(f"error: {why}", err=True)
    raise typer.Exit(1)


if __name__ == "__main__":
    app(prog_name="python -m sample_devices")
