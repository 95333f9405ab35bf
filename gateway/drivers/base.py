"""What a driver is: a name, the addresses that devices of its family use, and a pure function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.report import Report


@dataclass(frozen=True, slots=True)
class ValueTopics:
    """MQTT topics with one value each: `ispindel/{label}/{key}`.

    The values of one label make one reading: a JSON object of texts by `key`. It is complete a moment after
    one of the `last` keys, when a key comes a second time, or after a silence.
    `parts` gives the values of a message that holds several, by their key; nothing where it holds one.
    `named` gives label and key of a topic whose levels do not part them so, from what its levels are.
    """

    pattern: str
    last: frozenset[str] = frozenset()
    parts: Callable[[bytes], Mapping[str, bytes]] | None = None
    named: Callable[[str, str], tuple[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """What firmware asks a server beside its reports, by any method: a path, and members of the answer.

    No reading comes by it and nothing is stored, so `answer` is pure; it never raises.
    """

    path: str
    answer: Callable[[Payload], Mapping[str, Any]]


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
    `parameters` are names of values that may come beside the body, as headers or in the query. `reply` are
    members of the answer to what holds no measurement. Firmware that `repeats_comments` sends one with every
    report until somebody clears it: all but the first are flagged. `exchanges` are what it asks for before it
    reports, or beside. At its `numbered` paths the answer is a number and nothing else.
    `of_a_house` are drivers whose topics carry other things of a house, too, which are passed over wherever
    they come.
    """

    name: str
    title: str
    parse: Callable[[Payload], list[Report]]
    paths: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    values: tuple[ValueTopics, ...] = ()
    status: int = 200
    spacing_s: float = 0.0
    parameters: frozenset[str] = frozenset()
    reply: Mapping[str, Any] | None = None
    repeats_comments: bool = False
    exchanges: tuple[Exchange, ...] = ()
    numbered: frozenset[str] = frozenset()
    of_a_house: bool = False
