"""A target: a service that readings are forwarded to, most often a Brewing Data Service."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.domain.texts import shown_url

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
NAME_RULE = "a target's name is of letters, digits, '-', '_' and '.', 64 of them at most"

PER_MINUTE, PER_MINUTE_MAX = 60, 6000
"""Requests in any minute at most: the default, and the highest number that is taken."""

MIRROR_RATE, MIRROR_RATE_MIN, MIRROR_RATE_MAX = 2.0, 0.01, 100.0
"""Requests a second to a service that is copied: the default, the least, and the most."""

UPSTREAM, MIRROR = "upstream", "mirror"
"""The names of the services of `--upstream-url` and `--mirror-from`."""


SERVICE = "service"
"""The kind of a Brewing Data Service. It takes brew sessions; other kinds take what `targets map` names."""


KEYED_ADDRESS_KINDS = ("brewfather", "brewersfriend", "grainfather")
"""Kinds whose address holds a key, so that only a part of it is shown."""

SECRET_ADDRESS_KINDS = ("grainfather",)
"""Kinds whose address is a key, so that it is always kept in a file."""


@dataclass(frozen=True, slots=True)
class Target:
    """A service to forward to. Watermarks and mappings belong to its base URL, `url`. Its key is in a file.

    Of another kind than a Brewing Data Service, `url` is `kind:name`: the address may be a secret, and two
    targets may have the same one. `settings` is a JSON object without secrets, empty for a service.

    `unnamed` means that brew sessions without a named service go to this target, `paused` that the user
    stopped it. `from_options` means that the target comes from the options of `serve`. `resumed` is a count:
    when it changes, forwarding to the target begins afresh.
    """

    name: str
    url: str
    key_file: str
    per_minute: int = PER_MINUTE
    from_options: bool = False
    unnamed: bool = False
    paused: bool = False
    resumed: int = 0
    kind: str = SERVICE
    settings: str = "{}"

    @property
    def shown(self) -> str:
        """Return the base URL as people may see it, or `kind:name`; this is its name in states and logs."""
        return shown_url(self.url) if self.kind == SERVICE else self.url

    @property
    def address(self) -> str:
        """Return the address as people may see it: of one that is a secret only the part that is none."""
        return self.shown if self.kind == SERVICE else str(self.options.get("shown", ""))

    @property
    def latest(self) -> bool:
        """Return whether it gets the latest reading of each device only."""
        return bool(self.options.get("latest"))

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the settings."""
        found: dict[str, Any] = json.loads(self.settings)
        return found


RouteKind = Literal["all", "device", "brew"]


@dataclass(frozen=True, slots=True)
class Route:
    """What goes to a target of another kind: the readings of a device or a brew, by its id, or all (id 0)."""

    what: RouteKind
    id: int = 0


StateKind = Literal["well", "partly", "retries", "blocked", "held", "paused", "off"]
"""Kinds of a target's state.

- `well`: readings go there
- `partly`: the target does not take one brew session, or several
- `retries`: the target gave no answer, and is tried again soon
- `blocked`: somebody must act, because the target refuses the key or the address
- `held`: nothing is forwarded anywhere for now
- `paused`: by the user
- `off`: no gateway is running
"""


NOT_TRIED = "not tried yet"
"""How a state begins in words while nothing was sent since the start: nobody knows whether all is well."""


@dataclass(frozen=True, slots=True)
class TargetState:
    """A target's state in words, and the time of the next request (Unix seconds), if that is known.

    `reason` is the part of the words that names the trouble. `not_taken` are reasons by the id of a brew
    session that the target does not take.
    """

    words: str
    next_at: float | None = None
    kind: StateKind = "off"
    reason: str = ""
    not_taken: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sending:
    """The readings of a brew session at a target, in counts that the store finds quickly.

    `upstream_id` is the session's number there, None if the session is no longer forwarded there. `oldest_at`
    is the arrival of the first waiting reading (Unix milliseconds), `newest_at` the time of the newest
    reading that the target has (Unix seconds). `superseded` is as in `Delivery`, and so is `session_id` 0.
    """

    target: str
    session_id: int
    upstream_id: int | None
    sent: int
    waiting: int
    refused: int
    oldest_at: int | None
    newest_at: int | None
    superseded: int = 0


@dataclass(frozen=True, slots=True)
class Delivery:
    """The readings of a brew session at a target, counted by their state.

    `upstream_id` is the session's number there, None if the session is no longer forwarded there. `edited`
    counts readings that were edited here and are unchanged there, `superseded` those that a target of the
    newest reading passed over. `session_id` 0 stands for readings in no brew session. `oldest_at` is the
    arrival of the first pending reading (Unix milliseconds), `edited_since` the time of the first edited
    reading (Unix seconds).
    """

    target: str
    session_id: int
    upstream_id: int | None
    pending: int
    forwarded: int
    refused: int
    not_forwarded: int
    oldest_at: int | None
    edited: int = 0
    edited_since: int | None = None
    superseded: int = 0


@dataclass(frozen=True, slots=True)
class ReadingDelivery:
    """The state of one reading at each target, and the reason, by the target's name.

    The states are `pending`, `forwarded`, `refused`, `superseded`, `not forwarded` and
    `edited here, not there`.
    """

    oid: str
    created_at: int
    states: dict[str, str]
    reasons: dict[str, str]
