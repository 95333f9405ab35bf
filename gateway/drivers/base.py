"""What a driver is: a name, the addresses that devices of its family use, and a pure function."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.domain.payload import Payload
from gateway.domain.report import Report


@dataclass(frozen=True, slots=True)
class ValueTopics:
    """MQTT topics with one value each: `ispindel/{label}/{key}`.

    The values of one label make one reading: a JSON object of texts by `key`. It is complete with one of the
    `last` keys, when a key comes a second time, or after a short silence.
    """

    pattern: str
    last: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Driver:
    """One device family.

    `parse` gives the reports in a payload, none where it is known and holds no measurement. It raises
    `DriverError` where the bytes are not of this family, and nothing else, whatever the bytes are.
    `name` is also the last word of the family's own path, `/ingest/<name>`. `paths` are those that firmware
    or users of other servers have; `{label}` in them is the device's name, `{token}` a key. `topics` are MQTT
    topics with a whole reading in each message, `{label}` again the name, `+` and `#` as MQTT has them;
    `values` topics with one value each. Firmware takes `status` as success. Readings of one device that come
    sooner than `spacing_s` after a stored one are not kept: for bridges that push every few seconds.
    """

    name: str
    title: str
    parse: Callable[[Payload], list[Report]]
    paths: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    values: tuple[ValueTopics, ...] = ()
    status: int = 200
    spacing_s: float = 0.0
