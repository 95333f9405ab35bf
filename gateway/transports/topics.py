"""Maps MQTT topics to readings: the drivers' topics, topics that the user chose, `hydrometer/<name>`.

A message holds a whole reading, or one value of a reading that comes in several messages. Topics that the
user chose go first. Home Assistant's own tree, where devices announce themselves, is read only if the user
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
"""Topics for the user's own programs: a whole reading of any device family."""

HOME_ASSISTANT = "homeassistant"

OWN = "hydrometer_gateway"
"""The first level of the topics that the gateway itself publishes. It never hears them."""

NOT_COUNTED = (f"{HOME_ASSISTANT}/", f"{OWN}/")
"""Topics that hold no reading of a device unless the user names them: nobody needs to be told of them."""

PASTED = ("", " ", "  ", "   ")
"""Blanks in front of a topic: users paste GravityMon's templates from the lines of its documentation."""

OPTION = "--mqtt-topic"

FORMS = "it must be FILTER=DRIVER or TOPIC=DEVICE:FIELD"

FIELD_DRIVER = "esphome"
FIELD_DRIVERS = {"cbpi/sensordata/": "craftbeerpi"}
"""Drivers whose single values are no plain text, by the start of their topics; else `FIELD_DRIVER`."""

FIELDS = ("gravity", "plato", "temp", "temp_c", "temp_f", "angle", "battery", "rssi")
"""Names of a single value, as its driver knows them."""

SENDS_SINGLE_VALUES = frozenset({"brewpiless", FIELD_DRIVER})
"""Drivers for single values without topics of their own: the user chooses the topics."""

ESPHOME_COMPONENT = "sensor"
"""The topic level before an object id; all before it is the device (esphome/esphome mqtt_component.cpp)."""

NAME, KEY = "{label}", "{key}"

PLAIN_VALUES = ValueTopics(KEY)
"""The topics of single values whose driver defines none."""

TOPIC_BYTES = 65_535
"""Bytes of a topic at most (MQTT 3.1.1 section 1.5.3)."""

PLACES = 4_096
PLACE_CHARACTERS = 256
"""Topics whose place is remembered, at most, and characters of such a topic, at most."""


@dataclass(frozen=True, slots=True)
class Route:
    """The meaning of topics that fit a pattern; `label` and `key` if the pattern has none in braces.

    With `driver` None the content decides. With a `key`, here or in the pattern, messages are single values.
    `chosen`: the user named the pattern.
    """

    pattern: str
    driver: str | None = None
    label: str = ""
    key: str = ""
    values: ValueTopics = PLAIN_VALUES
    chosen: bool = False

    @property
    def single(self) -> bool:
        """Return whether each message holds a single value."""
        return bool(self.key) or KEY in self.pattern.split("/")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a message: a whole reading without `key`, else one value of a reading."""

    driver: str | None
    label: str
    key: str | None = None
    values: ValueTopics = PLAIN_VALUES
    channel: str = ""
    chosen: bool = False

    @property
    def group(self) -> tuple[str, str]:
        """Return driver and name, which single values of one reading have in common."""
        return self.driver or "", self.label


class TopicMap:
    """All routes. `filters` are the subscriptions that they need, none covered by another.

    Each message is looked up once, so `unread` counts the messages that no route fits.
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
        filters = tuple(dict.fromkeys(as_filter(route.pattern) for route in self._routes))
        # Without filters that another covers: brokers may send a message once for each that fits.
        self.filters = tuple(
            name for name in filters if not any(other != name and covers(other, name) for other in filters)
        )
        self._places: dict[str, Place | None] = {}

    def place_of(self, topic: str) -> Place | None:
        """Return the place of messages on this topic, ignoring white space around it; None without one."""
        place = self._remembered(topic)
        if place is None and not topic.startswith(NOT_COUNTED):
            self.unread.count(topic)
        return place

    def is_heard(self, topic: str) -> bool:
        """Return whether messages on this topic hold readings. The question counts as no message."""
        return self._remembered(topic) is not None

    def _remembered(self, topic: str) -> Place | None:
        try:
            return self._places[topic]
        except KeyError:
            place = self._find(topic) or self._find(topic.strip())
            if len(topic) <= PLACE_CHARACTERS:
                if len(self._places) >= PLACES:
                    self._places.clear()
                self._places[topic] = place
            return place

    def _find(self, topic: str) -> Place | None:
        if topic.startswith(f"{OWN}/"):
            return None
        # A wildcard at the beginning does not fit these topics (`$`: MQTT 3.1.1 section 4.7.2).
        is_fenced = topic.startswith(("$", f"{HOME_ASSISTANT}/"))
        for route in self._routes:
            if is_fenced and as_filter(route.pattern)[0] in "+#":
                continue
            found = captured(route.pattern, topic)
            if found is None:
                continue
            label = label_of(found) or route.label
            if not route.single:
                return Place(route.driver, label, channel=f"mqtt {topic}", chosen=route.chosen)
            levels = route.pattern.split("/")
            # All values of a reading have one channel: the levels above the key.
            above = "/".join(topic.split("/")[: levels.index(KEY)]) if KEY in levels else topic
            key = found.get("key", route.key)
            if route.values.named is not None:
                label, key = route.values.named(label, key)
            return Place(route.driver, label, key, route.values, f"mqtt {above.strip()}", route.chosen)
        return None


def chosen_route(text: str) -> Route:
    """Parse `FILTER=DRIVER` or `TOPIC=DEVICE:FIELD` to a route; `ConfigError` quotes the fault."""
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
    """Make a route to a driver. With `{key}`, or `+` for a driver of single values, a message is a value."""
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
    """Add the device's name to a route: `{label}`, else the last `+` before the key, else a level's text."""
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
    """Return the place of the last such level, -1 without one."""
    return max((place for place, level in enumerate(levels) if level == wanted), default=-1)


def _check_filter(text: str, topic: str) -> None:
    """Check a filter by MQTT 3.1.1 section 4.7: wildcards are whole levels, `#` the last. Braces are ours."""
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
