"""Kinds of targets: what a service takes, and how it is asked. `Forwarder` has what all kinds share.

A kind is a class in a module of this package, and a line in the table of `gateway.forward.kinds.table`. The
module is imported when the first target of its kind is made, never before: a gateway without an InfluxDB
does not load the code for it.

How to write a kind:

- `send` returns an `Outcome` for every ending, network trouble included. It raises nothing that the outside
  can cause. The verdicts are those of `DeliveryResult`. If a byte may have left and no answer came, that is
  `AMBIGUOUS`, else `KEPT`.
- `REFUSED` for a request of several readings makes the forwarder halve it; a lone reading that is refused
  goes into quarantine and is never sent again.
- `PAUSED` is for what a person must mend, such as a key. It is tried again each 15 minutes.
- `read_back` decides what happens after an ending in doubt. A kind whose repetition is harmless returns all
  places: `everything` does that.
- Keys are read from their file for each request. No key, and no URL that is one, stands in `shown` or in the
  reason of an outcome.

There are two policies. `BACKLOG` sends every reading, in order; `Forwarder` empties the queue of the store.
`LATEST` is for a service that stamps readings with the time of their arrival: old ones would be drawn at the
wrong time. It gets the newest reading of a device only, and not sooner than `min_interval_s` after the last
one. What waits then is decided by the queue that `Forwarder` is given, not by `Forwarder`: see `Queue`.
The queue of `LATEST` is `gateway.forward.kinds.latest.LatestQueue`, on the table `latest`:

- `backlogs` returns one `Backlog` per mapped device whose newest reading is younger than 30 minutes, has no
  flag, and is not yet in `latest`. `Backlog.not_before` is the Unix time before which it may not be sent.
- `begin` returns a batch of that one reading. If a newer one has come meanwhile, it returns the newer one.
- `settle` writes `latest`, with the time of the success. Nothing is written before a success.
- `release` and `refuse` are as for the other queues. A reading that was passed over is `superseded`.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

from gateway.domain.delivery import Backlog, Batch, Outcome
from gateway.domain.quarantined import Quarantined
from gateway.errors import GatewayError

Lane = Literal["brew session", "device"]
"""What the readings of a target are in order by; `Batch.session_id` is the number of one."""


class Policy(Enum):
    """What a target gets."""

    BACKLOG = "backlog"
    """Every reading, in order."""
    LATEST = "latest"
    """The newest reading of each device."""


@dataclass(frozen=True, slots=True)
class SessionPaused(Outcome):
    """`PAUSED`, but only for the brew session of this batch: the others may go on."""


class ReadBackFailed(GatewayError):
    """The target's readings could not be read; the attempt stays ambiguous."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.reason)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check of a target, in words, with the remedy if it failed."""

    ok: bool
    words: str


class Kind(Protocol):
    """A target of some kind, as `Forwarder` sees it."""

    name: str
    """Progress is kept under this name in the store: the base URL, or `kind:NAME` if that is a secret."""

    shown: str
    """The same for people, without anything secret."""

    lane: Lane
    policy: Policy

    repeat_is_harmless: bool
    """An attempt without a known outcome is simply sent again. Else `read_back` finds what is there."""

    most: int | None
    """Readings in one request at most; None: as the options of `serve` say."""

    gather_s: float | None
    """Seconds that a reading waits for others, to go in one request; None: as the options say."""

    key_on_the_way: bool
    """A key goes with each request, so that `http://` to a public address is worth a warning."""

    async def wait_for_slot(self) -> None:
        """Wait until another request may be sent. This is called before each `send`."""

    async def send(self, batch: Batch) -> Outcome:
        """Send the readings, and return how it ended."""

    async def read_back(self, batch: Batch) -> tuple[Sequence[int], Sequence[int]]:
        """Return the places in the batch to be sent, and of a batch that corrects the places absent there.

        Called for batches that are unsettled or that correct. `ReadBackFailed` if nobody can tell.
        """

    async def close(self) -> None:
        """Close what is open. The next `send` may open it again."""


class MappedKind(Kind, Protocol):
    """A kind that gets the readings which `targets map` names: every kind but `service`."""

    def address(self) -> str:
        """Return the address; `ConfigError` if it is none that we send to."""

    async def test(self) -> Sequence[Check]:
        """Check address and key, and leave no reading there where the service allows that."""


class LatestKind(MappedKind, Protocol):
    """A kind of the policy `LATEST`."""

    min_interval_s: float
    """Seconds from one reading of a device to the next at least."""

    interval_by_session: bool
    """All devices of a brew session share the interval."""


def everything(batch: Batch) -> tuple[Sequence[int], Sequence[int]]:
    """Return what `read_back` returns where a repetition is harmless: all of it is sent again."""
    return range(len(batch.rows)), ()


class Queue(Protocol):
    """What waits for a target. `OutboxStore` is one; the places in a batch are those of the store."""

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        """Return what waits, by lane, the longest waiting first."""

    async def begin(self, target: str, lane: int, limit: int) -> Batch | None:
        """Return the next readings of a lane; the open attempt is on the medium then. None without any."""

    async def settle(
        self, batch: Batch, sent: Set[int] | None = None, *, withheld: Set[int] = frozenset()
    ) -> None:
        """Note that the target has the batch; `sent` are the places that were sent this time."""

    async def refuse(self, batch: Batch, item: Quarantined) -> None:
        """Note that the target never takes the batch's only reading, and quarantine it."""

    async def release(self, batch: Batch) -> None:
        """Note that the target certainly took none of the batch."""
