"""Sends the messages of one channel: one at a time, each until it is taken, and each ending written down."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from gateway.clock import Clock
from gateway.domain.alarm import Channel, Message, MessageState
from gateway.domain.delivery import DeliveryResult, Outcome
from gateway.domain.quiet_hours import quiet_hours
from gateway.errors import ConfigError, StoreUnavailable
from gateway.forward.backoff import Backoff
from gateway.forward.forwarder import PAUSE_S
from gateway.notify.channels import Sends
from gateway.notify.plan import DAY_S, PER_DAY, PER_HOUR, Plan, Rules, plan
from gateway.notify.words import note_of
from gateway.outward.client import SHOWN
from gateway.services.channel_settings import hidden, secrets_of
from gateway.services.channels import TAKEN, ChannelService, Trouble
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

LOOKED_AT = 500
"""Messages on their way that are looked at once at most."""

REFUSALS = 3
"""Refusals in a row after which a message is given up: others wait behind it."""

ONCE_MORE_S = 60.0
"""Seconds after which a message is sent once more, if nobody can know whether it has arrived."""

STORE_AGAIN_S = 2.0
"""Seconds until our own store is tried again."""

LOOK_S = 600.0
"""Seconds after which a sender looks again at the latest."""

TROUBLE_CHARACTERS = SHOWN + 20
"""Characters of a trouble that are kept: a status, and the beginning of what the server says."""

PERHAPS_TWICE = "perhaps twice"
"""The note on a message of which nobody knows how often it has arrived."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all senders share. `clock_known` tells whether the time can be trusted, `page` is its address."""

    store: Store
    channels: ChannelService
    clock: Clock
    instance: str
    page: Callable[[], str]
    clock_known: Callable[[], bool]
    zone: tzinfo | None
    draw: Callable[[], float]


class Sender:
    """Sends the messages of one channel until it is cancelled. `ring` tells it that there may be more."""

    def __init__(self, channel: Channel, sends: Sends, around: Surroundings) -> None:
        self._channel = channel
        self._sends = sends
        self._around = around
        self._store = around.store.messages
        self._clock = around.clock
        self._bell = asyncio.Event()
        self._backoff = Backoff()
        self._trouble = ""
        self._refused: tuple[int, int] = (0, 0)
        settings = channel.settings
        self._rules = Rules(
            channel.name,
            quiet_hours(settings["quiet"]) if "quiet" in settings else None,
            bool(settings.get("quiet_critical", False)),
            int(settings.get("per_hour", PER_HOUR)),
            int(settings.get("per_day", PER_DAY)),
        )

    def ring(self) -> None:
        """Look again: there may be a new message."""
        self._bell.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            self._bell.clear()
            try:
                wait = await self._step()
            except StoreUnavailable as error:
                log.debug("channel %s: %s", self._channel.name, error)
                wait = STORE_AGAIN_S
            except Exception:
                # Whatever a damaged file has in its rows: it must end neither the gateway nor other channels.
                log.exception("channel %s stumbled", self._channel.name)
                wait = LOOK_S
            if wait > 0:
                await self._idle(wait)

    async def _step(self) -> float:
        """Send the next message, if there is one; return the seconds until the next look."""
        messages = await self._store.to_send(self._channel.name, LOOKED_AT)
        if not messages:
            return LOOK_S
        now = self._clock.now()
        known = self._around.clock_known()
        sent = await self._store.sent_since(self._channel.name, int(now) - DAY_S)
        decided = plan(messages, sent, self._rules, now, clock_known=known, zone=self._around.zone)
        await self._write(decided)
        if not decided.send:
            again_at = decided.again_at
            return LOOK_S if again_at is None else min(max(again_at - now, 0.1), LOOK_S)
        is_test = any(message.event.kind == "test" for message in decided.send)
        wait = self._backoff.until - self._clock.monotonic()
        if wait > 0 and not is_test:
            return wait
        await self._deliver(decided.send)
        return 0.0

    async def _write(self, decided: Plan) -> None:
        name = self._channel.name
        if decided.expire:
            trouble = self._trouble or "it could not be sent in time"
            await self._store.mark(name, decided.expire, "expired", trouble=trouble)
            log.warning("channel %s: %d messages could not be sent in time", name, len(decided.expire))
        if decided.merge:
            await self._store.mark(name, decided.merge, "merged")
        if decided.hold:
            await self._store.mark(name, decided.hold, "held")

    async def _deliver(self, messages: Sequence[Message]) -> None:
        name, event_ids = self._channel.name, [message.event.id for message in messages]
        attempts = max(message.attempts for message in messages) + 1
        once_more = messages[0].state == "open" and not self._sends.repeats
        if once_more and messages[0].trouble == PERHAPS_TWICE:  # a stop came before the second ending
            await self._store.mark(name, event_ids[:1], "sent", trouble=PERHAPS_TWICE, merged=event_ids[1:])
            return
        if once_more and not self._backoff.failures:  # a stop came before the first ending
            self._backoff.failed(self._clock.monotonic(), 0.0, ONCE_MORE_S)
            return
        # On the medium before a byte leaves: after a kill it is known that this one may have been taken.
        trouble = PERHAPS_TWICE if once_more else ""
        await self._store.mark(name, event_ids, "open", attempts=attempts, trouble=trouble)
        outcome = await self._sent(messages)
        settling = asyncio.create_task(self._settle(messages, outcome, once_more=once_more))
        try:
            await asyncio.shield(settling)
        except asyncio.CancelledError:
            with suppress(TimeoutError):  # else the message goes again after the next start, with its id
                async with asyncio.timeout(STORE_AGAIN_S / 2):
                    await settling
            raise

    async def _sent(self, messages: Sequence[Message]) -> Outcome:
        around, now = self._around, self._clock.now()
        try:
            parts = await asyncio.to_thread(secrets_of, self._channel)
        except ConfigError as error:
            return Outcome(DeliveryResult.PAUSED, str(error))
        note = note_of(messages, around.instance, around.page(), now, around.zone)
        try:
            outcome = await self._sends.send(note, parts, now)
        except Exception as error:
            # A channel that has a bug must not end the gateway, nor the other channels.
            log.exception("channel %s failed", self._channel.name)
            outcome = Outcome(DeliveryResult.AMBIGUOUS, f"it failed: {type(error).__name__}")
        # An address that was given beside a file with the secret is in the settings, and may be secret, too.
        address = {"url": str(url)} if (url := self._channel.settings.get("url")) else {}
        reason = hidden(outcome.reason, address | parts)[:TROUBLE_CHARACTERS]
        if self._channel.account_id is not None and reason.startswith("HTTP "):
            reason = reason[:8]  # what a server in the house says is for the owner alone
        return Outcome(outcome.verdict, reason, outcome.retry_after_s)

    async def _settle(self, messages: Sequence[Message], outcome: Outcome, *, once_more: bool) -> None:
        """Write the ending down, however long the store takes for that: it must not be forgotten."""
        verdict, event_ids = outcome.verdict, [message.event.id for message in messages]
        is_test = messages[0].event.kind == "test"
        now, wall = self._clock.monotonic(), self._clock.now()
        nobody_knows = verdict is DeliveryResult.AMBIGUOUS and not self._sends.repeats
        if verdict is DeliveryResult.ACCEPTED:
            self._succeeded()
        else:
            self._failed(outcome, now)
        if verdict is DeliveryResult.ACCEPTED or (nobody_knows and once_more):
            trouble = PERHAPS_TWICE if once_more else ""
            await self._write_down(
                event_ids[:1], "sent", sent_at=int(wall), trouble=trouble, merged=event_ids[1:]
            )
        elif is_test or self._refusals(verdict, event_ids[0]) >= REFUSALS:
            await self._write_down(event_ids, "expired", trouble=outcome.reason)
        else:
            if nobody_knows:
                self._backoff.until = now + ONCE_MORE_S
            # What has perhaps been taken stays as it is, so that the same message goes again, with its id.
            state: MessageState = "open" if verdict is DeliveryResult.AMBIGUOUS else "waiting"
            next_at = int(wall + self._backoff.until - now)
            await self._write_down(event_ids, state, next_at=next_at, trouble=outcome.reason)
        if is_test:
            accepted = f"{TAKEN} ({outcome.reason})" if outcome.reason else TAKEN
            words = accepted if verdict is DeliveryResult.ACCEPTED else f"not taken: {outcome.reason}"
            self._around.channels.ended(event_ids[0], words)

    def _refusals(self, verdict: DeliveryResult, event_id: int) -> int:
        """Return how often a message was refused in a row: what was only away before may take it yet."""
        before = self._refused[1] if self._refused[0] == event_id else 0
        self._refused = event_id, before + 1 if verdict is DeliveryResult.REFUSED else 0
        return self._refused[1]

    async def _write_down(self, event_ids: Sequence[int], state: MessageState, **members: Any) -> None:
        while True:
            try:
                await self._store.mark(self._channel.name, event_ids, state, **members)
                return
            except StoreUnavailable:
                await self._clock.sleep(STORE_AGAIN_S)

    def _succeeded(self) -> None:
        self._backoff.succeeded()
        if self._trouble:
            log.info("channel %s takes messages again", self._channel.name)
        self._trouble = ""
        self._around.channels.troubles.pop(self._channel.name, None)

    def _failed(self, outcome: Outcome, now: float) -> None:
        blocked = outcome.verdict is DeliveryResult.PAUSED
        self._backoff.failed(now, self._around.draw(), outcome.retry_after_s)
        if blocked:
            self._backoff.wait_until(now + PAUSE_S)
        troubles, name = self._around.channels.troubles, self._channel.name
        since = troubles[name].since if name in troubles else int(self._clock.now())
        if name not in troubles or troubles[name].blocked != blocked:  # one line for each change
            log.warning("channel %s %s: %s", name, "is paused" if blocked else "tries again", outcome.reason)
        self._trouble = outcome.reason
        troubles[name] = Trouble(outcome.reason, since, blocked)

    async def _idle(self, seconds: float) -> None:
        """Wait until somebody rings, or until the time is up."""
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._ring_after(seconds), name=f"channel {self._channel.name} timer")
            await self._bell.wait()
            timer.cancel()

    async def _ring_after(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._bell.set()
