"""The table of `docs/supported.md`, made of the golden cases and of the sections of `docs/devices.md`.

`python -m tests.pure.drivers.support` prints it, `--write` puts it into its page between its two marks.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from gateway.config import TCP_PORT
from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import BY_NAME, DRIVERS, decode
from gateway.drivers.addresses import captured
from gateway.intake.normalise import normalise
from gateway.transports.topics import JSON_PATTERN
from tests.pure.drivers.messages import CHOSEN
from tests.pure.drivers.test_cases import FILES, payloads

DOCUMENTS = Path(__file__).parents[3] / "docs"
MANUAL, SUPPORTED = DOCUMENTS / "devices.md", DOCUMENTS / "supported.md"
BEGIN = "<!-- support table: python -m tests.pure.drivers.support --write -->"
END = "<!-- end of the support table -->"
SETTINGS = "\n## What to type into your device\n"

HEADINGS = ("device", "read by", "sends to", "unit of its gravity", "cases")
ALIGNMENT = ("---", "---", "---", "---", "---:")

ANYBODY = "any"
"""How a case says that no device in particular sends it; such cases have no row."""

CAPTURED = "captured"
"""The variant of a case that `capture` wrote: whose it is stands there only once somebody has looked."""

WRITTEN = {"{label}": "NAME", "{token}": "KEY", "{key}": "VALUE"}
"""What the manual writes for a level in braces; for others their word in capitals."""

UNITS = {"G": "SG", "P": "Plato"}

NONE = "no gravity"

REASONS = (
    (re.compile(r"(.+) says .+"), r"told in `\1`"),
    (re.compile(r"the name of (.+)"), r"{unit} by its name `\1`"),
    (re.compile(r"the end of its name"), r"{unit} by the end of the device's name"),
    (re.compile(r"what this format means"), r"always {unit}"),
    (re.compile(r"no unit sent.*"), "not told: by its size"),
    (re.compile(r"[\d.]+ to [\d.]+ is specific gravity times (\d+)"), r"SG times \1: by its size"),
)
"""What `normalise` gives as reason for a unit, in the words of the table; other reasons stay as they are."""


@dataclass(slots=True)
class Row:
    """A device as one driver reads it; `reasons` is empty as long as no case has a gravity."""

    addresses: set[tuple[str, str]] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)
    cases: int = 0


def settings_of(manual: str) -> str:
    """The chapter that has a section for each device."""
    return manual.partition(SETTINGS)[2].partition("\n## ")[0]


def devices_of(manual: str) -> dict[str, str]:
    """The devices that have a section, each with the anchor of its heading: `### Tilt Pi, Tilt app`."""
    found: dict[str, str] = {}
    for heading in re.findall(r"^### (.+)$", settings_of(manual), re.MULTILINE):
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        found |= dict.fromkeys(heading.split(", "), anchor)
    return found


def device_of(said: str, devices: Sequence[str]) -> str:
    """The device of a case: the longest name with a section that its own begins with."""
    fitting = [name for name in devices if said.lower().startswith(name.lower())]
    if not fitting:
        raise LookupError(f"{said!r} has cases and no section: give it a heading in {MANUAL.name}")
    return max(fitting, key=len)


def table(manual: str) -> str:
    """The table as Markdown, in the order of the sections."""
    devices = devices_of(manual)
    found: dict[tuple[str, str], Row] = {}
    for path in FILES:
        case = json.loads(path.read_text("utf-8"))
        if case["device"].startswith(ANYBODY) or case.get("variant") == CAPTURED:
            continue  # nobody's in particular
        if not case.get("expected") or path.parent.name not in BY_NAME:
            continue  # nothing comes of it
        row = found.setdefault((device_of(case["device"], [*devices]), path.parent.name), Row())
        row.cases += 1
        row.addresses.update(addresses_of(case))
        row.reasons.update(reasons_of(case))
    places = {name: place for place, name in enumerate(devices)}
    lines = [HEADINGS, ALIGNMENT]
    for (device, driver), row in sorted(found.items(), key=lambda item: (places[item[0][0]], item[0][1])):
        cells = (f"[{device}]({MANUAL.name}#{devices[device]})", f"`{driver}`", *_cells(row))
        lines.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cells(row: Row) -> tuple[str, str, str]:
    addresses = [
        f"{way} {', '.join(f'`{address}`' for _, address in same)}"
        for way, same in groupby(sorted(row.addresses), key=itemgetter(0))
    ]
    return "; ".join(addresses), "; ".join(sorted(row.reasons)) or NONE, str(row.cases)


def addresses_of(case: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Where the case is sent to: transport or method, and path, topic or port, as patterns."""
    if case["transport"] == "tcp":
        yield "TCP port", str(TCP_PORT)
    elif case["transport"] == "mqtt":
        yield from (("MQTT", found) for message in case["messages"] if (found := topic_of(message["topic"])))
    else:
        yield case["method"], path_of(case["path"])


def path_of(target: str) -> str:
    """The pattern of a request target; our own paths as they are."""
    path = "/" + target.partition("?")[0].strip("/")
    patterns = [pattern for driver in DRIVERS for pattern in driver.paths]
    return next((written(pattern) for pattern in patterns if captured(pattern, path) is not None), path)


def topic_of(topic: str) -> str | None:
    """The pattern of a topic, or the option that makes the gateway listen to it; None for no reading."""
    patterns = [pattern for driver in DRIVERS for pattern in driver.topics]
    patterns += [values.pattern for driver in DRIVERS for values in driver.values]
    for pattern in [*patterns, JSON_PATTERN]:
        if captured(pattern, topic) is not None:
            return written(pattern)
    for text in CHOSEN:
        if captured(text.rpartition("=")[0], topic) is not None:
            return f"--mqtt-topic {text}"
    return None


def written(pattern: str) -> str:
    """The pattern as the manual writes it."""
    return "/".join(
        WRITTEN.get(level, level[1:-1].upper() if level.startswith("{") else level)
        for level in pattern.split("/")
    )


def reasons_of(case: dict[str, Any]) -> Iterator[str]:
    """Who says the unit of each gravity in the case."""
    for payload in payloads(case):
        for report in decode(payload).reports:
            yield from reason_of(report, payload)


def reason_of(report: Report, payload: Payload) -> Iterator[str]:
    """Who says the unit of a report's gravity, in the words of the table; nothing without one."""
    _, inferred = normalise(report, Device.first_seen(report, 0), payload)
    if report.gravity is None or "gravity_unit" not in inferred:
        return
    unit, reason, _ = inferred["gravity_unit"]
    for pattern, words in REASONS:
        if match := pattern.fullmatch(reason):
            yield match.expand(words).format(unit=UNITS[unit])
            return
    yield f"{UNITS[unit]}: {reason}"


def with_table(page: str, manual: str) -> str:
    """The page with the table of today."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise LookupError(f"{SUPPORTED.name} lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n\n{table(manual)}\n\n{END}{after}"


if __name__ == "__main__":
    text = MANUAL.read_text("utf-8")
    if sys.argv[1:] == ["--write"]:
        SUPPORTED.write_text(with_table(SUPPORTED.read_text("utf-8"), text), "utf-8")
    else:
        print(table(text))
