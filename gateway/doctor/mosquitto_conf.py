"""Reads the configuration of a Mosquitto on this machine and finds settings that lose messages.

Format and defaults: eclipse-mosquitto/mosquitto, man/mosquitto.conf.5.xml (2.0.11 to 2.1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.doctor.finding import Finding, ok, problem, warning

FILE = Path("/etc/mosquitto/mosquitto.conf")

DEFAULTS: Mapping[str, str] = {
    "persistence": "false",
    "autosave_interval": "1800",
    "autosave_on_changes": "false",
    "max_queued_messages": "1000",
    "max_queued_bytes": "0",
    "queue_qos0_messages": "false",
    "max_inflight_messages": "20",
}

QUEUE_MESSAGES = 10_000
"""Messages that a queue must hold: ten iSpindels with seven messages every 15 minutes fill it in 36 hours."""

IN_FLIGHT = 100
"""Messages that must be allowed in flight, for readings of several messages, acknowledged together."""

SAMPLE = "as deploy/mosquitto/mosquitto.conf of this program has it"


@dataclass(frozen=True, slots=True)
class Conf:
    """The values of the settings above; `keeps_itself` if a plugin keeps messages (2.1)."""

    values: Mapping[str, str]
    keeps_itself: bool


def read(file: Path) -> Conf:
    """Read the file and the files of its `include_dir`; `OSError` if one cannot be read."""
    values, plugin = dict(DEFAULTS), False
    for line in _lines(file):
        name, _, value = line.partition(" ")
        if name in values:
            values[name] = value.strip()
        plugin |= name in {"plugin", "global_plugin"} and "persist" in value
    return Conf(values, plugin)


def _lines(file: Path) -> list[str]:
    found: list[str] = []
    for raw in file.read_text("utf-8", "replace").splitlines():
        line = raw.strip()
        if line.startswith("include_dir "):
            folder = Path(line.partition(" ")[2].strip())
            for included in sorted(folder.glob("*.conf")):
                found += _lines(included)
        elif line and not line.startswith("#"):
            found.append(line)
    return found


def judged(conf: Conf) -> list[Finding]:
    """Make a finding for each setting that loses messages."""
    values, found = conf.values, []
    if not conf.keeps_itself:
        found += _persistence(values)
    queue, size = _number(values, "max_queued_messages"), _number(values, "max_queued_bytes")
    if 0 < queue < QUEUE_MESSAGES or (not queue and 0 < size < QUEUE_MESSAGES * 100):
        text = f"max_queued_messages is {queue}: while the gateway is down, further messages are dropped"
        found.append(problem(text, f"max_queued_messages 100000, {SAMPLE}"))
    if not _is_on(values, "queue_qos0_messages"):
        text = "queue_qos0_messages is off: while the gateway is down, iSpindel and GravityMon lose messages"
        found.append(problem(text, f"queue_qos0_messages true, {SAMPLE}"))
    if 0 < _number(values, "max_inflight_messages") < IN_FLIGHT:
        number = values["max_inflight_messages"]
        text = f"max_inflight_messages is {number}: readings in several messages get stuck"
        found.append(warning(text, f"max_inflight_messages 1000, {SAMPLE}"))
    return found or [ok("no setting loses messages; a crash of Mosquitto may lose its last second")]


def _persistence(values: Mapping[str, str]) -> list[Finding]:
    if not _is_on(values, "persistence"):
        text = "persistence is off: a restart of Mosquitto loses everything that waits for the gateway"
        return [problem(text, f"persistence true, {SAMPLE}")]
    every, on_changes = _number(values, "autosave_interval"), _is_on(values, "autosave_on_changes")
    if on_changes and every == 1:
        return []
    often = f"every {every} changes" if on_changes else f"every {every} s" if every else "only when it ends"
    text = f"it saves its messages {often}: a crash or power cut loses later ones, though acknowledged"
    return [problem(text, f"autosave_on_changes true and autosave_interval 1, {SAMPLE}")]


def _is_on(values: Mapping[str, str], name: str) -> bool:
    return values[name].lower() in {"true", "1"}


def _number(values: Mapping[str, str], name: str) -> int:
    try:
        return int(values[name])
    except ValueError:
        return int(DEFAULTS[name])
