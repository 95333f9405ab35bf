"""Golden reports: what each kind sends of one moment of one beer, and what it says with it.

`golden/<kind>.txt` has the readings, then the request or the data with the ends of lines in view, or login
and messages. `python -m tests.pure.sample_devices.golden --write` renews all of them; each difference
has to be compared with the firmware's source before it is kept.
"""

import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

from sample_devices.devices import KINDS
from sample_devices.fermentation import Fermentation
from sample_devices.wire.report import Address, HttpReport, MqttReport, Place, Report, Said, TcpReport

GOLDEN = Path(__file__).parent / "golden"

BEER = Fermentation("1|0")
POINT = BEER.at(48 * 3600)
GATEWAY = Address("brewgw.lan", 8080)
EVENING = datetime(2025, 3, 14, 19, 30, tzinfo=timezone(timedelta(hours=-5)))


def make(kind: str, place: Place = Place(1), to: Address = GATEWAY) -> Report:  # noqa: B008 - immutable
    return KINDS[kind].factory(place).report(POINT, to, EVENING)


def path_of(kind: str) -> Path:
    return GOLDEN / f"{kind}.txt"


def rendered(report: Report) -> str:
    """The report as lines of text."""
    return "\n".join([*map(_said, report.said), *_sent(report)]).rstrip("\n") + "\n"


def _said(said: Said) -> str:
    values = (said.name, said.device_id, said.gravity, said.gravity_unit, said.temp, said.temp_unit)
    facts = [f"{name}={value}" for name, value in said.facts.items()]
    times = [] if said.measured_at is None else [f"measured_at={said.measured_at}"]
    return " ".join(["said", *map(str, values), *facts, *times])


def _sent(report: Report) -> list[str]:
    match report:
        case HttpReport():
            return [_in_view(report.request)]
        case TcpReport():
            return [_in_view(report.data)]
        case MqttReport(login=login):
            return [
                f"login {(login.client_id, login.keep_alive_s, login.user, login.password)}",
                *(
                    f"{m.topic} qos={m.qos} retain={m.retain:d} {_in_view(m.payload)}"
                    for m in report.messages
                ),
            ]


def _in_view(data: bytes) -> str:
    r"""Show bytes as text with escapes, and begin a line after each `\n`."""
    return data.decode().encode("unicode_escape").decode().replace(r"\n", "\\n\n")


def write() -> None:
    """Renew the files of all kinds, and remove those of kinds that there are no more."""
    for file in GOLDEN.iterdir():
        if file.suffix != ".txt" or file.stem not in KINDS:
            file.unlink()
    for kind in KINDS:
        path_of(kind).write_text(rendered(make(kind)), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.pure.sample_devices.golden --write")
    write()
