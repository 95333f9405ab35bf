"""A driver: a name, the addresses of its family's devices, and a pure function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.report import Report


@dataclass(frozen=True, slots=True)
class ValueTopics:
    """MQTT topics with one value each: `ispindel/{label}/{key}`.

    The values of one label make one reading: a JSON object of texts by `key`. The reading is complete a
    moment after one of the `last` keys, when a key comes a second time, or after a silence. `parts` splits a
    message that holds several values by their keys, and gives nothing for a single value. `named` gives label
    and key of a topic whose levels do not separate them.
    """

    pattern: str
    last: frozenset[str] = frozenset()
    parts: Callable[[bytes], Mapping[str, bytes]] | None = None
    named: Callable[[str, str], tuple[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request of firmware beside its reports, by any method: a path, and the members of the answer.

    Such a request brings no reading and nothing is stored. `answer` is pure and never raises.
    """

    path: str
    answer: Callable[[Payload], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Driver:
    """A device family: its names, its addresses, and the function that reads its payloads.

    `parse` returns the reports in a payload, none if the format is known and holds no measurement. It raises
    `DriverError` if the bytes are not of this family, and nothing else, whatever the bytes are. `name` is
    also the last word of the family's own path, `/ingest/<name>`. `paths` are firmware's, or other
    servers'; in them `{label}` is the device's name, `{token}` a key. `topics` are MQTT topics with a whole
    reading in each message, with `{label}` for the name, and `+` and `#` as in MQTT; `values` are topics with
    one value each. `status` is the status that the firmware takes as success. A reading that follows a stored
    one of the same device within `spacing_s` is not kept: some bridges push every few seconds. `parameters`
    are names of values that may come beside the body, as headers or in the query. `reply` are members of the
    answer to a payload without a measurement. Firmware that `repeats_comments` sends a comment with every
    report until a user clears it: all but the first are flagged. `exchanges` are requests before and beside
    the reports. At `numbered` paths the answer is a number alone. `of_a_house` marks drivers whose topics
    also carry other things of a house, which are passed over.
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
