"""Channels as endpoints and commands see them: add, change, test and remove them, and the state of each."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gateway.clock import Clock
from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import AlarmEvent, Channel, ChannelKind
from gateway.domain.target import NAME
from gateway.domain.texts import did_you_mean
from gateway.errors import ConfigError, InvalidInput, NotFound
from gateway.events import ChangeNotices, StoredNotices
from gateway.services.channel_settings import (
    check_together,
    checked_settings,
    parse_secret,
    secrets_of,
)
from gateway.services.key_files import keep_secret, secret_file
from gateway.store.protocol import Store
from gateway.store.protocols.alarms import ChannelCounts

TEST_S = 15.0
"""Seconds that a test waits for its outcome."""

CHANNELS = 20
"""Channels at most: each has a sender of its own."""

TAKEN = "taken"
"""The first word about a test that arrived."""

TEST_TEXT = "This is a test of the channel {name}: {what} will come like this."

NAME_RULE = "a channel's name is of letters, digits, '-', '_' and '.', 64 of them at most"

NOTHING = ChannelCounts(0, None, None, None)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a channel takes no messages, and since when (Unix seconds). `blocked`: a person must act."""

    words: str
    since: int
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class ChannelState:
    """A channel and its state; times are Unix seconds.

    `waiting` messages wait, the first of them since `oldest_at`; the last one was taken at `sent_at`.
    `trouble` says why it takes none, since `failing_since`; with `blocked` a person must act. `expired_at`
    is the time of the last message that was given up.
    """

    channel: Channel
    waiting: int = 0
    sent_at: int | None = None
    trouble: str = ""
    failing_since: int | None = None
    blocked: bool = False
    oldest_at: int | None = None
    expired_at: int | None = None


class ChannelService:
    """Adds, removes and tests channels. Secrets stay in files."""

    def __init__(self, store: Store, directory: Path, notices: StoredNotices, clock: Clock) -> None:
        self._store = store
        self._directory = directory
        self._notices = notices
        self._clock = clock
        self.changed = ChangeNotices()
        self.troubles: dict[str, Trouble] = {}
        self.is_running = False
        self._tests: dict[int, asyncio.Future[str]] = {}

    async def states(self, account_id: int | None = None) -> list[ChannelState]:
        """Return the channels of an account with their states; None is everybody."""
        counts = await self._store.messages.counts()
        found = []
        for channel in await self._store.messages.channels():
            if not _sees(account_id, channel):
                continue
            count, trouble = counts.get(channel.name, NOTHING), self.troubles.get(channel.name)
            found.append(
                ChannelState(
                    channel,
                    count.waiting,
                    count.sent_at,
                    trouble.words if trouble else "",
                    trouble.since if trouble else None,
                    trouble.blocked if trouble else False,
                    count.oldest_at,
                    count.expired_at,
                )
            )
        return found

    async def named(self, name: str, account_id: int | None = None) -> Channel:
        """Return the channel of that name; `NotFound` suggests a similar name."""
        found = {
            channel.name: channel
            for channel in await self._store.messages.channels()
            if _sees(account_id, channel)
        }
        if name not in found:
            raise NotFound(f"no channel {name!r}{did_you_mean(name, found)}; `channels list` shows them")
        return found[name]

    async def add(
        self,
        name: str,
        kind: ChannelKind,
        settings: Mapping[str, Any],
        *,
        secret: str | None = None,
        secret_file: Path | None = None,
        account_id: int | None = None,
    ) -> Channel:
        """Add a channel; a secret that was typed goes into `secrets/NAME` of the data directory, mode 0600.

        `InvalidInput` names what is wrong with its settings or its secret.
        """
        if not NAME.fullmatch(name):
            raise InvalidInput(NAME_RULE)
        made = checked_settings(kind, settings)
        if secret is not None and secret_file is not None:
            raise InvalidInput("either the secret or its file is given")
        account_id = None if account_id == OWNER_ID else account_id
        if kind == "mqtt" and account_id is not None:
            raise InvalidInput("a channel of kind mqtt is the owner's: the broker is")
        channel = Channel(name, kind, made, str(secret_file) if secret_file else None, account_id)
        if secret_file is not None:
            try:
                parts = await asyncio.to_thread(secrets_of, channel)
            except ConfigError as error:
                raise InvalidInput(str(error)) from error
        else:
            parts = parse_secret(kind, secret or "")
        check_together(kind, made, parts)
        if kind == "webhook":
            address = parts.get("url") or str(made["url"])
            made["shown"] = f"{urlsplit(address).scheme}://{urlsplit(address).netloc}"
            if secret_file is None:
                # Many addresses of this kind are secrets themselves.
                parts["url"] = address
                made.pop("url", None)
        if len(await self._store.messages.channels()) >= CHANNELS:
            raise InvalidInput(f"there are {CHANNELS} channels already; more are not possible")
        if secret_file is None and parts:
            channel = replace(channel, secret_file=str(self._own_file(name)))
        # First the row, not the file: a name that is taken must not lose its secret to the newcomer.
        await self._store.messages.save_channel(channel)
        if secret_file is None and parts:
            try:
                lines = (
                    [parts["url"]] if kind == "apprise" else [f"{key}={part}" for key, part in parts.items()]
                )
                await asyncio.to_thread(keep_secret, self._directory, name, "\n".join(lines))
            except BaseException:
                await self._store.messages.remove_channel(channel.name)
                raise
        await self._followed()
        return channel

    async def remove(self, name: str, account_id: int | None = None) -> None:
        """Remove a channel, its messages on their way, and the file of its secret if we wrote it."""
        channel = await self.named(name, account_id)
        await self._store.messages.remove_channel(name)
        await self._followed()
        own = self._own_file(name)
        if channel.secret_file == str(own):
            await asyncio.to_thread(own.unlink, missing_ok=True)

    async def pause(self, name: str, paused: bool, account_id: int | None = None) -> None:
        """Pause a channel, or let it go on at once. While it is paused, alarms make no messages for it."""
        channel = await self.named(name, account_id)
        await self._store.messages.save_channel(
            replace(channel, paused=paused), "pause" if paused else "resume"
        )
        await self._followed()

    async def test(self, name: str, account_id: int | None = None, rule: str = "") -> str:
        """Send a marked message through the outbox; return what became of it within 15 s, in words.

        They begin with `TAKEN` if all is well. `rule` is the one that the message speaks of.
        """
        channel = await self.named(name, account_id)
        if channel.paused:
            return f"not sent: {name} is paused; `channels resume {name}` lets it go on"
        if not self.is_running:
            return "not sent: no gateway is running"
        what = f"the alarm '{rule.replace('_', ' ')}'" if rule else "alarms"
        text = TEST_TEXT.format(name=name, what=what)
        event = AlarmEvent(0, None, int(self._clock.now()), "test", text)
        event_id = await self._store.messages.test(name, event)
        ending: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tests[event_id] = ending
        self._notices.publish("alarm")
        try:
            async with asyncio.timeout(TEST_S):
                return await ending
        except TimeoutError:
            return f"no outcome within {TEST_S:g} s; `channels list` shows what became of it"
        finally:
            self._tests.pop(event_id, None)

    async def test_each(
        self, names: Sequence[str], account_id: int | None = None, rule: str = ""
    ) -> list[tuple[str, str]]:
        """Test channels, all at once, as each may take 15 s; return their names and what became of each."""
        outcomes = await asyncio.gather(*(self.test(name, account_id, rule) for name in names))
        return list(zip(names, outcomes, strict=True))

    def ended(self, event_id: int, words: str) -> None:
        """Tell whoever waits for the end of a test."""
        ending = self._tests.get(event_id)
        if ending is not None and not ending.done():
            ending.set_result(words)

    async def _followed(self) -> None:
        self._notices.publish("alarm")
        await self.changed.notify()

    def _own_file(self, name: str) -> Path:
        return secret_file(self._directory, name)


def _sees(account_id: int | None, channel: Channel) -> bool:
    return account_id is None or account_id == (channel.account_id or OWNER_ID)
