"""Every reason that a payload can have for being in quarantine has a kind, and so words and a remedy."""

import ast
from pathlib import Path

from gateway.domain.quarantined import Quarantined
from gateway.services.quarantine import ALL_KINDS, OTHER, kind_of
from tests.cases import each
from tests.pure.test_architecture import GATEWAY

REASONS = {
    "an empty body": "empty",
    "nothing reported in the device shadow": "empty",
    "not JSON at character 7": "no_json",
    "not a JSON object": "no_json",
    "JSON nested too deeply": "no_json",
    "item 3: not JSON that can be read": "no_json",
    "no known device sends this": "unknown",
    "looks like nautilis, for which there is no driver yet": "no_driver",
    "neither gravity nor temperature nor angle": "no_values",
    "neither bubbles nor temperature": "no_values",
    "item 12: neither a nor b in it": "no_values",
    "no colour of a Tilt": "no_name",
    "neither colour nor MAC of a Tilt": "no_name",
    "a number without a meaning: --mqtt-topic cbpi/sensordata/ID=DEVICE:gravity gives it one": "no_meaning",
    "metrics, but not of a hydrometer": "no_hydrometer",
    "20000 readings in one list": "too_many",
    "readings of 70 devices in one payload": "too_many",
    "metrics of more than 64 devices": "too_many",
    "a new device beyond the 20 that 192.168.1.9 may register in an hour": "new_device",
    "a new device: the last 200 places are for senders with few devices": "new_device",
    "the driver failed on it": "failed",
    "it cannot be stored as a reading": "failed",
    "no reading in it, though it came on a topic that --mqtt-topic names": "no_reading",
    "no text format of Prometheus": "other_format",
    "a list of readings instead of a single one": "other_format",
    "words of a later version": OTHER,
}


def quarantined(reason: str, channel: str = "http /ingest") -> Quarantined:
    return Quarantined(b"", reason, 0, channel, "192.0.2.7")


@each("reason, kind", REASONS.items())
def test_a_reason_has_its_kind(reason: str, kind: str) -> None:
    assert kind_of(quarantined(reason)) == kind
    assert kind in ALL_KINDS


def test_what_is_no_payload_has_a_kind_by_its_channel() -> None:
    assert kind_of(quarantined("HTTP 400: unknown unit", "forward https://bds.example")) == "refused"
    assert kind_of(quarantined("its checksum is wrong", "damaged")) == "damaged"


def messages(path: Path) -> list[str]:
    """The messages of all `DriverError`s in a module; a part that is filled in is a number."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id in {"DriverError", "NotTaken"} and node.args:
            text = node.args[0]
            if isinstance(text, ast.Constant):
                found.append(str(text.value))
            elif isinstance(text, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else 64 for part in text.values)
                found.append("".join(map(str, parts)))
    return found


def test_every_message_of_a_driver_has_a_kind() -> None:
    paths = [*(GATEWAY / "drivers").rglob("*.py"), *(GATEWAY / "intake").rglob("*.py")]
    reasons = [message for path in paths for message in messages(path)]
    assert len(reasons) > 40
    assert [reason for reason in reasons if kind_of(quarantined(reason)) == OTHER] == []
