"""Which MQTT messages are readings: on the drivers' topics, on those the user chose, on `hydrometer/<name>`.

A message holds a whole reading, or one value of a reading that comes in several messages. What the user chose
goes first. Home Assistant's own tree, where devices announce themselves, is listened to only where the user
names it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.drivers import BY_NAME, DRIVERS, Driver, ValueTopics
from gateway.drivers.addresses import as_filter, captured, covers, label_of
from gateway.drivers.esphome import CHOSEN_MARK
from gateway.errors import ConfigError
from gateway.stats import UnreadTopicLog

JSON_PATTERN = "hydrometer/{label}"
"""For programs of the user's own: a whole reading of any family."""

HOME_ASSISTANT = "homeassistant"

PASTED = ("", " ", "  ", "   ")
"""What a topic begins with: GravityMon's templates are pasted in the lines of its documentation."""

OPTION = "--mqtt-topic"

FORMS = "it must be FILTER=DRIVER or TOPIC=DEVICE:FIELD"

FIELD_DRIVER = "esphome"
FIELD_DRIVERS = {"cbpi/sensordata/": "craftbeerpi"}
"""Whose single values are no plain text, by how their topics begin; of all others it is `FIELD_DRIVER`."""

FIELDS = ("gravity", "plato", "temp", "temp_c", "temp_f", "angle", "battery", "rssi")
"""What a single value may be, in the words of the driver that gets them."""

SENDS_SINGLE_VALUES = frozenset({"brewpiless", FIELD_DRIVER})
"""Drivers for single values that have no topic of their own to show it: the user chooses it."""

ESPHOME_COMPONENT = "sensor"
"""The level before an object id; all before it is the device (esphome/esphome mqtt_component.cpp)."""

NAME, KEY = "{label}", "{key}"

PLAIN_VALUES = ValueTopics(KEY)
"""Of single values whose driver has nothing to say about them."""

TOPIC_BYTES = 65_535

PLACES = 4_096
PLACE_CHARACTERS = 256
"""Bounds of the memory for what a topic means: their number, and of topics that are remembered the length."""


@dataclass(frozen=True, slots=True)
class Route:
    """What messages on the topics of a pattern are; `label` and `key` where the pattern has none in braces.

    `driver` None leaves it to the content. With a `key`, or one in the pattern, they are single values.
    `chosen` are those that the user named.
    """

    pattern: str
    driver: str | None = None
    label: str = ""
    key: str = ""
    values: ValueTopics = PLAIN_VALUES
    chosen: bool = False

    @property
    def single(self) -> bool:
        """Whether each message holds one value."""
        return bool(self.key) or KEY in self.pattern.split("/")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message belongs: a whole reading where there is no `key`, else one value of a reading."""

    driver: str | None
    label: str
    key: str | None = None
    values: ValueTopics = PLAIN_VALUES
    channel: str = ""
    chosen: bool = False

    @property
    def group(self) -> tuple[str, str]:
        """What single values of one reading have in common: driver and name."""
        return self.driver or "", self.label


class TopicMap:
    """All routes; `filters` are what must be subscribed to, none of them covered by another.

    Each message is looked up once, by whatever brought it, so `unread` counts those that nobody listens to.
    """

    def __init__(
        self,
        chosen: Sequence[str] = (),
        drivers: Sequence[Driver] = DRIVERS,
        unread: UnreadTopicLog | None = None,
    ) -> None:
        self.unread = unread or UnreadTopicLog()
        self._routes = [*map(chosen_route, chosen), Route(JSON_PATTERN)]
        for driver in drivers:
            self._routes += [Route(pattern, driver.name) for pattern in driver.topics]
            for values in driver.values:
                self._routes += [
                    Route(blanks + values.pattern, driver.name, values=values) for blanks in PASTED
                ]
        self.filters = _uncovered([as_filter(route.pattern) for route in self._routes])
        self._places: dict[str, Place | None] = {}

    def place_of(self, topic: str) -> Place | None:
        """Where a message on this topic belongs, or None; white space around it is not looked at."""
        try:
            place = self._places[topic]
        except KeyError:
            place = self._find(topic) or self._find(topic.strip())
            if len(topic) <= PLACE_CHARACTERS:
                if len(self._places) >= PLACES:
                    self._places.clear()
                self._places[topic] = place
        if place is None and not _is_announcement(topic):
            self.unread.count(topic)
        return place

    def _find(self, topic: str) -> Place | None:
        for route in self._routes:
            if _is_fenced(topic) and as_filter(route.pattern)[0] in "+#":
                continue
            found = captured(route.pattern, topic)
            if found is not None:
                return _place(route, topic, found)
        return None


def _place(route: Route, topic: str, found: dict[str, str]) -> Place:
    label = label_of(found) or route.label
    if not route.single:
        return Place(route.driver, label, channel=f"mqtt {topic}", chosen=route.chosen)
    levels = route.pattern.split("/")
    above = "/".join(topic.split("/")[: levels.index(KEY)]) if KEY in levels else topic
    key = found.get("key", route.key)
    if route.values.named is not None:
        label, key = route.values.named(label, key)
    return Place(route.driver, label, key, route.values, f"mqtt {above.strip()}", route.chosen)


def _is_announcement(topic: str) -> bool:
    """Whether a device tells Home Assistant there what it has: no value ever comes on it."""
    return topic.startswith(f"{HOME_ASSISTANT}/") and topic.endswith("/config")


def _is_fenced(topic: str) -> bool:
    """Whether a wildcard at the beginning does not mean this topic (`$`: MQTT 3.1.1 section 4.7.2)."""
    return topic.startswith(("$", f"{HOME_ASSISTANT}/"))


def _uncovered(filters: Sequence[str]) -> tuple[str, ...]:
    """Without those that another covers: brokers may send a message once for each that fits."""
    found = tuple(dict.fromkeys(filters))
    return tuple(one for one in found if not any(other != one and covers(other, one) for other in found))


def chosen_route(text: str) -> Route:
    """The route that `FILTER=DRIVER` or `TOPIC=DEVICE:FIELD` asks for; `ConfigError` quotes what is wrong."""
    topic, equals, meaning = text.rpartition("=")
    if not equals or not topic or not meaning.strip():
        raise _refused(text, FORMS)
    _check_filter(text, topic)
    device, colon, field = meaning.strip().rpartition(":")
    if colon:
        return replace(_field_route(text, topic, device, field), chosen=True)
    if field not in BY_NAME:
        raise _refused(text, f"there is no driver {field!r}; there are {', '.join(sorted(BY_NAME))}")
    return replace(_driver_route(text, topic, BY_NAME[field]), chosen=True)


def _field_route(text: str, topic: str, device: str, field: str) -> Route:
    if field not in FIELDS:
        raise _refused(text, f"there is no field {field!r}; there are {', '.join(FIELDS)}")
    if not device:
        raise _refused(text, "it names no device before the colon")
    if as_filter(topic) != topic or {"+", "#"} & set(topic.split("/")):
        raise _refused(text, "a single value needs a topic without wildcards")
    driver = next((name for begin, name in FIELD_DRIVERS.items() if topic.startswith(begin)), FIELD_DRIVER)
    return Route(topic, driver, device, CHOSEN_MARK + field)


def _driver_route(text: str, topic: str, driver: Driver) -> Route:
    """With `{key}`, and of drivers for single values with `+`, each message holds one value."""
    levels = topic.split("/")
    if KEY not in levels and "+" in levels and (driver.values or driver.name in SENDS_SINGLE_VALUES):
        levels[_last(levels, "+")] = KEY
    key = ""
    if KEY in levels:
        place = levels.index(KEY)
    elif driver.name == FIELD_DRIVER:
        place = _last(levels, ESPHOME_COMPONENT) + 1
        key = levels[place] if 0 < place < len(levels) else ""
        if key in {"", "#"}:
            raise _refused(
                text,
                "which level names the value? write + or {key} there, as in cellar/sensor/+/state=esphome",
            )
    else:
        place = len(levels)
    values = next(iter(driver.values), PLAIN_VALUES)
    return _named_route(levels, place, Route("", driver.name, "", key, values))


def _named_route(levels: list[str], end: int, route: Route) -> Route:
    """With the device's name: `{label}`, else the last `+` before the key, else what stands there."""
    label = ""
    if NAME not in levels:
        if "+" in levels[:end]:
            levels[_last(levels[:end], "+")] = NAME
        elif route.driver == FIELD_DRIVER and end > 1 and levels[end - 1] == ESPHOME_COMPONENT:
            label = "/".join(levels[: end - 1])
        else:
            label = next((level for level in reversed(levels[:end]) if level not in {"", "#"}), "")
    return Route("/".join(levels), route.driver, label, route.key, route.values)


def _last(levels: list[str], wanted: str) -> int:
    """The place of the last such level, -1 without one."""
    return max((place for place, level in enumerate(levels) if level == wanted), default=-1)


def _check_filter(text: str, topic: str) -> None:
    """MQTT 3.1.1 section 4.7: wildcards are whole levels, `#` the last one; the names in braces are ours."""
    if len(topic.encode("utf-8", "replace")) > TOPIC_BYTES or not topic.isprintable():
        raise _refused(text, "a topic has at most 65,535 bytes and no control characters")
    levels = topic.split("/")
    if "#" in topic and (topic.count("#") > 1 or levels[-1] != "#"):
        raise _refused(text, "# can only be the last level of a filter, all of it")
    if any("+" in level and level != "+" for level in levels):
        raise _refused(text, "+ can only be all of a level")
    if any({"{", "}"} & set(level) and level not in {NAME, KEY} for level in levels):
        raise _refused(text, "braces can only be {label} or {key}, all of a level")
    if levels.count(NAME) > 1 or levels.count(KEY) > 1:
        raise _refused(text, "{label} and {key} can stand there once")


def _refused(text: str, why: str) -> ConfigError:
    return ConfigError(f"{OPTION} {text!r}: {why}")
