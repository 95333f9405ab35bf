"""Sending on, as a page shows it: each target's state, and each brew's state at each target."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from gateway.domain.brewsession import BrewSession
from gateway.domain.target import SERVICE, RouteKind, Sending, StateKind, Target, TargetState
from gateway.services.figures import FigureService
from gateway.services.targets import TargetService
from gateway.store.protocol import Store
from gateway.store.queries import Search

BREWS = 1000
"""Brews that are listed at most, the newest first."""

BrewStateKind = StateKind | Literal["sent", "waiting", "not_taken", "ended"]
"""Kinds of a brew's state at a target.

- `sent`: nothing waits
- `waiting`: readings wait for the next batch
- `not_taken`: the target does not take this brew
- `ended`: the brew is no longer sent there
- else that of the target
"""


@dataclass(frozen=True, slots=True)
class BrewSending:
    """A brew at a target: the state's kind, and its readings that were sent, wait, or were refused.

    `last_at` is the time of the newest reading that the target has, `oldest_at` the arrival of the first
    waiting one, `next_at` the next attempt (Unix seconds). `number` is the brew's number there, None if it
    has none, or is no longer sent there. `reason` names a trouble in English.
    """

    session_id: int
    target: str
    state: BrewStateKind
    sent: int
    waiting: int
    refused: int
    last_at: int | None
    oldest_at: int | None = None
    next_at: float | None = None
    number: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TargetSending:
    """A target, its state, the sums of its brews, and its brews by their ids here.

    `oldest_at` is the arrival of the first waiting reading, `last_at` the time of the newest reading that the
    target has (Unix seconds). Of another kind than a Brewing Data Service, `goes` is what goes there, each
    with the name of the device or the batch code, and `superseded` counts readings that were passed over.
    """

    target: Target
    state: StateKind
    reason: str
    next_at: float | None
    sent: int
    waiting: int
    refused: int
    oldest_at: int | None
    last_at: int | None
    brews: Mapping[int, BrewSending]
    superseded: int = 0
    goes: tuple[tuple[RouteKind, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SendingBrew:
    """A brew with its recipe's title, and whether it is running."""

    session: BrewSession
    title: str
    is_running: bool


class SendingService:
    """A service that tells what was sent on and what waits."""

    def __init__(self, store: Store, targets: TargetService, figures: FigureService) -> None:
        self._store = store
        self._targets = targets
        self._figures = figures

    async def sending_of(self, session: BrewSession) -> list[BrewSending]:
        """Return the states of a brew at each target that takes it or took it; empty if none ever did."""
        targets = {target.name: target for target in await self._store.targets.all()}
        return [
            _of_brew(self._targets.state_of(targets[counts.target]), counts)
            for counts in await self._store.totals.sending(session.id)
            if counts.target in targets
        ]

    async def overview(self) -> list[TargetSending]:
        """Return every target with its state and its brews, the target of `--upstream-url` first."""
        counts = await self._store.totals.sending()
        found = []
        for target in await self._store.targets.all():
            its = [each for each in counts if each.target == target.name]
            goes = await self._goes(target)
            found.append(replace(_of_target(target, self._targets.state_of(target), its), goes=goes))
        return found

    async def _goes(self, target: Target) -> tuple[tuple[RouteKind, str], ...]:
        if target.kind == SERVICE:
            return ()
        found = []
        for route in await self._store.routes.of(target.url):
            name = ""
            if route.what == "device" and (device := await self._store.devices.get(route.id)) is not None:
                name = device.title
            if route.what == "brew" and (session := await self._store.sessions.get(route.id)) is not None:
                name = session.batchcode
            found.append((route.what, name))
        return tuple(found)

    async def brews(self, account_id: int) -> list[SendingBrew]:
        """Return the brews of an account, the newest first."""
        _, found = await self._store.sessions.search(Search(account_id=account_id, limit=BREWS))
        running = set(await self._figures.running(account_id))
        return [
            SendingBrew(entry.session, entry.recipe_title, entry.session.id in running) for entry in found
        ]


def _of_brew(state: TargetState, counts: Sending) -> BrewSending:
    kind: BrewStateKind
    reason = ""
    if counts.upstream_id is None:
        kind = "ended"
    elif counts.session_id in state.not_taken:
        kind, reason = "not_taken", state.not_taken[counts.session_id]
    elif state.kind in {"well", "partly"}:
        kind = "waiting" if counts.waiting else "sent"
    else:
        kind, reason = state.kind, state.reason
    return BrewSending(
        session_id=counts.session_id,
        target=counts.target,
        state=kind,
        sent=counts.sent,
        waiting=counts.waiting,
        refused=counts.refused,
        last_at=counts.newest_at,
        oldest_at=None if counts.oldest_at is None else counts.oldest_at // 1000,
        next_at=state.next_at if kind in {"waiting", "retries", "blocked"} else None,
        number=counts.upstream_id or None,
        reason=reason,
    )


def _of_target(target: Target, state: TargetState, counts: list[Sending]) -> TargetSending:
    brews = [_of_brew(state, each) for each in counts]
    return TargetSending(
        target=target,
        state=state.kind,
        reason=state.reason,
        next_at=state.next_at,
        sent=sum(brew.sent for brew in brews),
        waiting=sum(brew.waiting for brew in brews),
        refused=sum(brew.refused for brew in brews),
        oldest_at=min((brew.oldest_at for brew in brews if brew.oldest_at is not None), default=None),
        last_at=max((brew.last_at for brew in brews if brew.last_at is not None), default=None),
        brews={brew.session_id: brew for brew in brews if brew.session_id},
        superseded=sum(each.superseded for each in counts),
    )
