"""Which brew session may send when. Pure: the times are given, and nothing is read or written."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.domain.delivery import Backlog
from gateway.forward.backoff import Backoff


@dataclass(frozen=True, slots=True)
class ForwardSettings:
    """A batch goes when it has so many readings, or when its oldest has waited so long.

    An ambiguous request is `readback_delay_s` old before it is read back, so that a slow target can finish
    it: long for an import of 500 readings, short enough that a restart is soon forgotten. `unnamed` says
    that brew sessions which name no service are forwarded to this target.
    """

    batch_readings: int = 500
    batch_seconds: float = 60.0
    readback_delay_s: float = 10.0
    unnamed: bool = True


@dataclass(slots=True)
class SessionState:
    """One brew session on its way; `due_at` is monotonic time.

    `stuck` counts ambiguous endings since a reading last got through.
    """

    due_at: float
    backoff: Backoff = field(default_factory=Backoff)
    stuck: int = 0
    paused: str = ""


class Schedule:
    """The brew sessions of one target that have something waiting, and the target's own backoff."""

    def __init__(self, settings: ForwardSettings) -> None:
        self._settings = settings
        self._first_look = True
        self.target = Backoff()
        self.sessions: dict[int, SessionState] = {}

    def note(self, backlogs: Sequence[Backlog], now: float, unix_now: float) -> None:
        """Take over what waits. Due times are fixed here once, on the clock that never jumps."""
        waiting = {backlog.session_id for backlog in backlogs}
        self.sessions = {key: progress for key, progress in self.sessions.items() if key in waiting}
        for backlog in backlogs:
            if backlog.session_id in self.sessions:
                continue
            limit = self._settings.batch_seconds
            age = unix_now - backlog.oldest_at / 1000
            wait = 0.0 if self._first_look else min(max(limit - age, 0.0), limit)
            progress = self.sessions[backlog.session_id] = SessionState(now + wait)
            if backlog.unsettled:  # begun before we were: the target may still be at work on it
                progress.backoff.wait_until(now + self._settings.readback_delay_s)
        self._first_look = False

    def ready_at(self, backlog: Backlog, now: float) -> float:
        """When it may send; after a failure whatever waits goes at once."""
        progress = self.sessions[backlog.session_id]
        at_once = (
            backlog.unsettled
            or backlog.waiting >= self._settings.batch_readings
            or self.target.failures
            or progress.backoff.failures
        )
        return max(now if at_once else progress.due_at, progress.backoff.until)

    def in_turn(self, backlogs: Sequence[Backlog]) -> list[int]:
        """Session ids; whoever failed goes last, or one that the target chokes on would starve the others."""
        order = sorted(backlogs, key=lambda backlog: self.sessions[backlog.session_id].backoff.failures)
        return [backlog.session_id for backlog in order]

    def delivered(self, session_id: int, readings: int, now: float) -> None:
        """A batch is through; what stands behind a full one need not wait."""
        self.target.succeeded()
        del self.sessions[session_id]
        if readings >= self._settings.batch_readings:
            self.sessions[session_id] = SessionState(now)

    @property
    def failing(self) -> bool:
        """Whether some brew session waits because the target, or our store, did not take it."""
        return any(progress.backoff.failures and not progress.paused for progress in self.sessions.values())

    @property
    def paused(self) -> list[str]:
        """Which brew sessions are paused, and why."""
        return [progress.paused for progress in self.sessions.values() if progress.paused]
