"""The way of a payload over the wire, as far as it is stored, with pseudonyms in its address."""

import json
import re
from collections.abc import Iterator
from typing import Any

from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.drivers import BY_NAME, DRIVERS, esphome
from gateway.drivers.addresses import captured, of_path
from gateway.errors import GatewayError
from gateway.redact import Redactor
from gateway.transports.topics import JSON_PATTERN, TopicMap

DECODED_AT_S = 1_741_980_600.5
"""The time at which cases are decoded, in Unix seconds: the ARRIVAL of tests/pure/drivers/messages.py."""

KEY_IN_PATH = "redacted"
"""The word that replaces a key in a path."""

FORM_BY_POST = frozenset({"tilt", "tilt_tools"})
"""Families that post forms. Other families send `key=value` by GET. The method itself is not stored."""

USER_NAMES_VALUES = esphome.DRIVER.name
"""The family of devices whose values have names of the user's choice."""

VALUE_WORDS = {word for name in esphome.CANONICAL for word in name.split("_")} | {
    "specific", "sensor", "state", "beer", "tilt", "unit",
    *esphome.HYDROMETER_WORDS, *esphome.PERCENT_WORDS, *esphome.FAHRENHEIT_WORDS, *esphome.CELSIUS_WORDS,
    *(word for word, _ in esphome.WORDS),
}  # fmt: skip
"""Words of such names that tell the kind of the value."""

_BRACES = re.compile(r"\{(\w+)[^}]*\}")


class NotCaptured(GatewayError):
    """The payload cannot become a case."""


class Wires:
    """The members of a case about transport and address, and the payload that the gateway takes from them."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._topics = TopicMap()

    def wire(self, device: Device, channel: str, text: str) -> dict[str, Any]:
        """Describe how this text, not redacted yet, comes by this channel."""
        named = self._renamed(text) if device.family == USER_NAMES_VALUES else text
        return self._wire(device, channel, self._redactor.body(named))

    def _wire(self, device: Device, channel: str, text: str) -> dict[str, Any]:
        way, _, address = channel.partition(" ")
        if way == "mqtt":
            return {"transport": "mqtt", "messages": list(self._messages(device, address, text))}
        if way == "tcp":
            return {"transport": "tcp", "body": text}
        path = self._path(device, address)
        head, equals, _ = text.lstrip("\ufeff \t\r\n").partition("=")
        is_form = bool(equals) and not set(head) & set("{[# ,?")  # `key=value` pairs
        if is_form and device.family not in FORM_BY_POST:
            return {"transport": "http", "method": "GET", "path": f"{path}?{text}", "body": None}
        return {"transport": "http", "method": "POST", "path": path, "body": text}

    def _path(self, device: Device, pattern: str) -> str:
        """Return the path with pseudonyms; the family's own path if the stored one is served no more."""
        own = pattern.partition("/{token:")[0]
        if own in {"", "/", "/ingest", "/ingest/", f"/ingest/{device.family}", f"/ingest/{device.family}/"}:
            return own.rstrip("/") or "/"
        words = [word for word in _BRACES.findall(pattern) if word != "token"]
        levels = device.stable_id.split("/")
        if words and len(levels) != len(words):
            raise NotCaptured("its path holds a name that is not kept")
        names = dict(zip(words, map(self._redactor.word, levels), strict=True)) if words else {}
        path = _BRACES.sub(lambda match: names.get(match[1], KEY_IN_PATH), pattern)
        return path if of_path(DRIVERS, path) else f"/ingest/{device.family}"

    def _messages(self, device: Device, topic: str, text: str) -> Iterator[dict[str, Any]]:
        """Yield one message; one for each value if the values arrived singly."""
        driver = BY_NAME[device.family]
        for pattern in (JSON_PATTERN, *driver.topics):
            if captured(pattern, topic) is not None:
                yield _message(self._topic(pattern, topic), text)
                return
        for values in driver.values:
            above, braced, below = values.pattern.partition("{key}")
            if braced and captured(above.rstrip("/"), topic) is not None:
                place = self._topic(above.rstrip("/"), topic)
                for key, value in json.loads(text).items():
                    yield _message(f"{place}/{key}{below}", value)
                return
        # Not on the topic of the user's choice, which may hold names, but on the one for users' own programs.
        yield _message(JSON_PATTERN.replace("{label}", self._redactor.word(device.stable_id)), text)

    def _renamed(self, text: str) -> str:
        """Rename values that were sent singly: a pseudonym replaces each word that does not tell the kind."""
        values = json.loads(text)
        # The words of a value's kind stay; the others may be the user's own.
        names = {
            name: "_".join(
                word if word in VALUE_WORDS else self._redactor.word(word) for word in name.split("_")
            )
            for name in values
        }
        return _object({names[name]: value for name, value in values.items()})

    def _topic(self, pattern: str, topic: str) -> str:
        wanted, levels = pattern.split("/"), topic.split("/")
        kept = {place for place, want in enumerate(wanted) if want[:1] not in {"{", "+", "#"}}
        return "/".join(
            level if place in kept else self._redactor.word(level) for place, level in enumerate(levels)
        )

    def delivered(self, wire: dict[str, Any]) -> Payload:
        """Make the payload that the gateway takes from this wire."""
        if wire["transport"] == "mqtt":
            return self._by_mqtt(wire["messages"])
        body = (wire["body"] or "").encode()
        if wire["transport"] == "tcp":
            return Payload(body, DECODED_AT_S, "tcp", hint="ispindel")
        path, _, query = wire["path"].partition("?")
        payload = Payload(body, DECODED_AT_S, f"http {path}", query=query)
        address = of_path(DRIVERS, path)
        if path.startswith("/ingest") or address is None:
            payload.driver = path.removeprefix("/ingest").strip("/") or None
        else:
            payload.hint, payload.label, payload.token = address.driver.name, address.label, address.token
        return payload

    def _by_mqtt(self, messages: list[dict[str, Any]]) -> Payload:
        places = [self._topics.place_of(message["topic"]) for message in messages]
        place = places[0]
        if place is None or any(other is None or other.group != place.group for other in places):
            raise NotCaptured("its MQTT topic means something else by default")
        if place.key is None:
            body = messages[0]["payload"]
        else:
            pairs = zip(places, messages, strict=True)
            values = {other.key or "": message["payload"] for other, message in pairs if other is not None}
            body = _object(values)
        return Payload(body.encode(), DECODED_AT_S, place.channel, driver=place.driver, label=place.label)


def _object(values: dict[str, Any]) -> str:
    """Join single values to an object, as the MQTT transport does."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _message(topic: str, payload: str) -> dict[str, Any]:
    return {"topic": topic, "payload": payload, "qos": 0, "retain": False}
