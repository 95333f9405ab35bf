"""The order and the times in which brew sessions send. Pure: the caller gives the times and does all I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.domain.delivery import Backlog
from gateway.forward.backoff import Backoff


@dataclass(frozen=True, slots=True)
class ForwardSettings:
    """Settings of forwarding: size and age of a batch, the wait before a read-back, the target's sessions.

    A batch goes when it has `batch_readings`, or when its oldest reading has waited `batch_seconds`. An
    ambiguous request is `readback_delay_s` old before it is read back, so that a slow target can finish it:
    long for an import of 500 readings, short enough that a restart is soon forgotten. With `unnamed`, brew
    sessions that name no service are forwarded to this target.
    """

    batch_readings: int = 500
    batch_seconds: float = 60.0
    readback_delay_s: float = 10.0
    unnamed: bool = True


@dataclass(slots=True)
class SessionState:
    """The state of a brew session with readings to send.

    `due_at` and `not_before` are monotonic seconds. `stuck` counts ambiguous endings since a reading last got
    through. `paused` says why the target does not take this brew session; empty while it does.
    """

    due_at: float
    backoff: Backoff = field(default_factory=Backoff)
    stuck: int = 0
    paused: str = ""
    not_before: float = 0.0


class Schedule:
    """The brew sessions of one target that have readings waiting, and the target's own backoff."""

    def __init__(self, settings: ForwardSettings) -> None:
        self._settings = settings
        self._is_first = True
        self.target = Backoff()
        self.sessions: dict[int, SessionState] = {}

    def update(self, backlogs: Sequence[Backlog], now: float, unix_now: float) -> None:
        """Add brew sessions that have begun to wait, and drop brew sessions that wait no longer."""
        waiting = {backlog.session_id for backlog in backlogs}
        self.sessions = {key: state for key, state in self.sessions.items() if key in waiting}
        for backlog in backlogs:
            if backlog.session_id in self.sessions:
                self.sessions[backlog.session_id].not_before = now + backlog.not_before - unix_now
                continue
            # Due times are fixed here, once, on the monotonic clock, because the wall clock may jump.
            limit = self._settings.batch_seconds
            age = unix_now - backlog.oldest_at / 1000
            # After a start nothing waits for more readings: waiting readings have waited through the stop.
            wait = 0.0 if self._is_first else min(max(limit - age, 0.0), limit)
            state = self.sessions[backlog.session_id] = SessionState(now + wait)
            state.not_before = now + backlog.not_before - unix_now
            if backlog.unsettled:  # begun before we were: the target may still be at work on it
                state.backoff.wait_until(now + self._settings.readback_delay_s)
        self._is_first = False

    def ready_at(self, backlog: Backlog, now: float) -> float:
        """Return the monotonic time at which a brew session may send."""
        state = self.sessions[backlog.session_id]
        # After a failure a batch need not be full: its readings have waited long enough.
        at_once = (
            backlog.unsettled
            or backlog.waiting >= self._settings.batch_readings
            or self.target.failures
            or state.backoff.failures
        )
        return max(now if at_once else state.due_at, state.backoff.until, state.not_before)

    def in_order(self, backlogs: Sequence[Backlog]) -> list[int]:
        """Return the ids of brew sessions in the order in which they send."""
        # Failed ones last, because one that the target chokes on would starve the others.
        order = sorted(backlogs, key=lambda backlog: self.sessions[backlog.session_id].backoff.failures)
        return [backlog.session_id for backlog in order]

    def delivered(self, session_id: int, readings: int, now: float) -> None:
        """Note that a batch of this number of readings was delivered."""
        self.target.succeeded()
        del self.sessions[session_id]
        # Behind a full batch there may be more, and it need not wait.
        if readings >= self._settings.batch_readings:
            self.sessions[session_id] = SessionState(now)

    @property
    def failing(self) -> bool:
        """Return whether a brew session waits because the target, or our store, failed."""
        return any(state.backoff.failures and not state.paused for state in self.sessions.values())

    @property
    def paused(self) -> dict[int, str]:
        """Return the reasons why brew sessions are paused, by the session's id."""
        return {session_id: state.paused for session_id, state in self.sessions.items() if state.paused}
