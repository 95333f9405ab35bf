"""Our topics at the broker, and the ids of our devices in Home Assistant. No name of the user is in them.

`instance` is the name of the data directory, 8 hexadecimal digits: two gateways on one broker do not meet.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from gateway.drivers.addresses import as_filter
from gateway.errors import ConfigError
from gateway.transports.topics import OWN, TopicMap, chosen_route

BIRTH = "homeassistant/status"
"""Where Home Assistant says `online` after its start, unless its user changed that."""

SLUG_CHARACTERS = 64
"""Characters of a stable id that are kept in an id of ours."""

ANY_INSTANCE = "00000000"
"""Stands for an instance while none is known."""

_PLAIN = re.compile(r"[a-z0-9]{1,64}")
_OTHERS = re.compile(r"[^a-z0-9]+")


def slug_of(family: str, stable_id: str) -> str:
    """Return a device's part of topics and ids: `ispindel`, `1234567` give `ispindel_1234567`.

    Where a character cannot stay as it is, a hash follows, so that two devices never have the same.
    """
    kind = _OTHERS.sub("_", family.lower())
    if _PLAIN.fullmatch(stable_id):
        return f"{kind}_{stable_id}"
    kept = _OTHERS.sub("_", stable_id.lower()).strip("_")[:SLUG_CHARACTERS]
    digest = blake2b(f"{family}:{stable_id}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return "_".join(part for part in (kind, kept, digest) if part)


@dataclass(frozen=True, slots=True)
class Place:
    """The topics and the id of one device in Home Assistant: a hydrometer, a brew, or the gateway itself.

    `availability` is empty where only the gateway's own counts. `event` is never retained.
    """

    id: str
    config: str
    state: str
    event: str
    availability: str = ""

    @property
    def retained(self) -> tuple[str, ...]:
        """Return the topics that keep a message, in the order in which it is published."""
        return tuple(topic for topic in (self.config, self.availability, self.state) if topic)


@dataclass(frozen=True, slots=True)
class Topics:
    """All topics of one gateway. `prefix` is that of Home Assistant's discovery."""

    instance: str
    prefix: str

    @property
    def status(self) -> str:
        """Where the gateway says whether it is there."""
        return f"{OWN}/{self.instance}/status"

    @property
    def gateway(self) -> Place:
        """Return the place of the gateway itself."""
        return self._place("", f"{OWN}/{self.instance}/gateway")

    def device(self, family: str, stable_id: str) -> Place:
        """Return the place of a hydrometer."""
        slug = slug_of(family, stable_id)
        base = f"{OWN}/{self.instance}/device/{slug}"
        return self._place(f"_{slug}", base, f"{base}/availability")

    def brew(self, brew_id: int) -> Place:
        """Return the place of a brew."""
        return self._place(f"_brew_{brew_id}", f"{OWN}/{self.instance}/brew/{brew_id}")

    def _place(self, suffix: str, base: str, availability: str = "") -> Place:
        name = f"hg_{self.instance}{suffix}"
        config = f"{self.prefix}/device/{name}/config"
        return Place(name, config, f"{base}/state", f"{base}/event", availability)

    def filters(self) -> Iterator[str]:
        """Yield filters that every topic of ours fits."""
        yield f"{self.prefix}/device/+/config"
        base = f"{OWN}/{self.instance}"
        yield from (f"{base}/status", f"{base}/gateway/state", f"{base}/gateway/event")
        yield from (f"{base}/device/+/{what}" for what in ("availability", "state", "event"))
        yield from (f"{base}/brew/+/{what}" for what in ("state", "event"))


def overlap(one: str, other: str) -> bool:
    """Return whether some topic fits both filters (MQTT 3.1.1 section 4.7)."""
    ones, others = one.split("/"), other.split("/")
    if "$" in (one[:1], other[:1]) and (ones[0] in {"+", "#"} or others[0] in {"+", "#"}):
        return False
    for first, second in zip(ones, others, strict=False):
        if "#" in (first, second):
            return True
        if first != second and "+" not in (first, second):
            return False
    longer, shorter = (ones, others) if len(ones) > len(others) else (others, ones)
    return len(longer) == len(shorter) or longer[len(shorter) :] == ["#"]


def check(chosen: Iterable[str], prefix: str) -> None:
    """Refuse topics of `--mqtt-topic` on which we would hear ourselves; `ConfigError` names the first."""
    ours = [*Topics(ANY_INSTANCE, prefix).filters()]
    for text in chosen:
        name = as_filter(chosen_route(text).pattern)
        if name.split("/")[0] == OWN or any(overlap(name, own) for own in ours):
            raise ConfigError(
                f"--mqtt-topic {text!r} does not go together with --ha-discovery: the gateway would hear "
                f"what it publishes itself below {OWN}/ and {prefix}/device/; choose a narrower filter"
            )
    heard = next((name for name in TopicMap().filters for own in ours if overlap(name, own)), None)
    if heard is not None:
        raise ConfigError(
            f"--ha-prefix {prefix!r}: the gateway hears {heard} and would hear itself; choose another"
        )
