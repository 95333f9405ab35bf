"""What the rules look at, and what they find. Times are Unix seconds, gravities SG, temperatures °C."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gateway.domain.alarm import Scope
from gateway.domain.target import StateKind
from gateway.insight.records import Insight
from gateway.store.protocols.alarms import Signs


class BrewView(NamedTuple):
    """An open brew with a device in it.

    `title` is its name in a sentence. `signs` are those of the device that leads. `recipe_fg` and the limits
    `lo` and `hi` of its yeast are the recipe's. `asks` says that the brewer may be asked whether it is done.
    """

    session_id: int
    account_id: int | None
    title: str
    insight: Insight
    signs: Signs | None = None
    recipe_fg: float | None = None
    lo: float | None = None
    hi: float | None = None
    cold_yeast: bool = False
    asks: bool = True


class DeviceView(NamedTuple):
    """A device. `brew` is the name of the open brew that it is in, empty for none.

    It is in there since `in_brew_since` at the earliest. `interval_s` is what it says or is set to. Nobody
    calls it silent before `quiet_until`: the gateway has just begun to listen.
    """

    device_id: int
    account_id: int | None
    title: str
    family: str
    signs: Signs
    session_id: int | None = None
    brew: str = ""
    in_brew_since: int = 0
    interval_s: int | None = None
    quiet_until: int = 0


class TargetView(NamedTuple):
    """A target, or a channel of messages. `oldest_at` is the arrival of the first reading that waits.

    `refused` counts readings, of which the newest was refused at `refused_at`, if that is known.
    `interval_s` is the least time between two readings that a target takes which shows the latest only.
    """

    name: str
    kind: StateKind
    reason: str = ""
    oldest_at: int | None = None
    refused: int = 0
    refused_at: int | None = None
    interval_s: int | None = None


class Trouble(NamedTuple):
    """A trouble of the gateway itself: since when it is there, and a sentence."""

    since: int
    text: str


class KeeperView(NamedTuple):
    """What the gateway knows of itself: a trouble by each subject, None where all is well.

    Of a subject that is not there, nothing can be said now.
    """

    troubles: Mapping[str, Trouble | None]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found at a subject.

    `holds` says whether it is so, and None that nothing can be said, so nothing changes. It fires once it
    has held for `held_s` seconds, counted from `since`. `saw` and `limit` are for a person who asks why;
    `text` is the sentence of the alarm, `ended` that of its end, and `why_not` says why it does not fire.

    A `note` is told of and is over. What is `told` already fires no more. `late_until` makes it history: it
    was so from `since` until then, and nobody is told.
    """

    rule: str
    scope: Scope
    subject: str
    account_id: int | None
    holds: bool | None
    since: int = 0
    held_s: int = 0
    saw: str = ""
    limit: str = ""
    text: str = ""
    ended: str = ""
    why_not: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    note: bool = False
    told: bool = False
    off: bool = False
    late_until: int | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """The rule and its subject: there is one open alarm of each."""
        return self.rule, self.scope, self.subject

    def fires(self, now: int) -> bool:
        """Return whether it has held for long enough."""
        return self.holds is True and not self.told and now - self.since >= self.held_s
