"""`/manage/channels`: the ways in which alarms reach a person; an account sees its own."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gateway.domain.times import iso
from gateway.errors import Forbidden, NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Page, Query, Single
from gateway.http.parameters import Text, Words
from gateway.services.channel_settings import ADDRESSES, MOST_PER_DAY, MOST_PER_HOUR, SECRET_CHARACTERS
from gateway.services.channels import TAKEN, ChannelState

Kind = Literal["ntfy", "webhook", "email", "mqtt", "apprise"]

URL_CHARACTERS, TEMPLATE_CHARACTERS = 2_000, 16_384


class ChannelSettings(Body):
    """Settings of a channel. Quiet hours and numbers are for each kind, the others for the one named.

    Without numbers of its own, a channel sends 10 messages an hour and 30 a day.
    """

    server: Words | None = Field(
        default=None, max_length=URL_CHARACTERS, description="ntfy: the server; without it the public one."
    )
    url: Words | None = Field(
        default=None, max_length=URL_CHARACTERS, description="webhook: the address. It is kept as a secret."
    )
    template: Words | None = Field(
        default=None,
        max_length=TEMPLATE_CHARACTERS,
        description="webhook: the body, with `{{text}}`, `{{title}}` and other members of a message in it.",
    )
    content_type: Words | None = Field(
        default=None,
        max_length=100,
        description="webhook: the type of the template, `application/json` without.",
    )
    host: Words | None = Field(default=None, max_length=253, description="email: the mail server.")
    port: int | None = Field(default=None, ge=1, le=65_535, description="email: its port.")
    tls: Literal["starttls", "tls", "none"] | None = Field(
        default=None, description="email: `starttls` without it. `none` only without a login."
    )
    user: Words | None = Field(default=None, max_length=200, description="email: the login.")
    sender: Words | None = Field(default=None, max_length=320, description="email: the address in `From`.")
    to: list[Words] | None = Field(
        default=None, min_length=1, max_length=ADDRESSES, description="email: the addresses in `To`."
    )
    topic: Words | None = Field(
        default=None, max_length=200, description="mqtt: `hydrometer_gateway/INSTANCE/event` without it."
    )
    quiet: Words | None = Field(
        default=None,
        max_length=20,
        description="Hours of each day in which only what is critical is sent: `22:00-07:00`.",
    )
    quiet_critical: bool | None = Field(default=None, description="Hold back what is critical, too.")
    per_hour: int | None = Field(
        default=None, ge=1, le=MOST_PER_HOUR, description="Messages in any hour at most."
    )
    per_day: int | None = Field(
        default=None, ge=1, le=MOST_PER_DAY, description="Messages in any day at most."
    )


class NewChannel(Body):
    """A new channel, with its secret or with the file of its secret."""

    name: Words = Field(max_length=64, description="Letters, digits, `-`, `_` and `.`, 64 of them at most.")
    kind: Kind
    settings: ChannelSettings = Field(default_factory=ChannelSettings)
    secret: Text | None = Field(
        default=None,
        max_length=SECRET_CHARACTERS,
        description="ntfy: `topic=...`, and `token=...` in another line; webhook: `secret=...`; email: "
        "`password=...`; apprise: addresses, one a line. The gateway keeps it in a file.",
    )
    secret_file: Text | None = Field(
        default=None,
        max_length=4_096,
        description="A file on the gateway's disk that holds the secret; through the Unix socket only.",
    )


class ChannelChange(Body):
    """A change to a channel."""

    paused: bool = Field(description="Alarms make no messages for it while it is paused.")


class ChannelRecord(AnswerModel):
    """A channel and its state; its secret is never shown.

    `waiting` messages wait, the first of them since `oldest_at`; the last one was taken at `sent_at`.
    `trouble` says why it takes none, since `failing_since`; with `blocked` a person must act. `expired_at`
    is the time of the last message that was given up.
    """

    name: str
    kind: Kind
    settings: dict[str, Any]
    secret_file: str | None = Field(description="The file on the gateway's disk that holds the secret.")
    paused: bool
    waiting: int
    oldest_at: str | None
    sent_at: str | None
    trouble: str
    failing_since: str | None
    blocked: bool
    expired_at: str | None


class Channels(Page):
    """The channels, by name."""

    channels: list[ChannelRecord]


class OneChannel(Single):
    """A single channel."""

    channels: list[ChannelRecord] = Field(min_length=1, max_length=1)


class ChannelTested(Done):
    """What became of a test message within 15 s."""

    ok: bool
    text: str


async def list_channels(call: Call[Query, None]) -> Channels:
    """List channels with their states."""
    found = await call.services.channels.states(_account(call))
    return Channels(count=str(len(found)), channels=[_record(state) for state in found])


async def add_channel(call: Call[Query, NewChannel]) -> OneChannel:
    """Add a channel. Its secret is kept in a file, and shown nowhere."""
    new = call.body
    if new.secret_file is not None and not call.caller.everywhere:
        # Not over TCP, because the gateway would send any file of its disk to a stranger as a secret.
        raise Forbidden("a file of the gateway's disk is named through its Unix socket only; send the secret")
    settings = new.settings.model_dump(exclude_none=True)
    await call.services.channels.add(
        new.name,
        new.kind,
        settings,
        secret=new.secret,
        secret_file=Path(new.secret_file) if new.secret_file is not None else None,
        account_id=_account(call),
    )
    return await _shown(call, new.name)


async def change_channel(call: Call[Query, ChannelChange]) -> OneChannel:
    """Pause a channel, or let it go on."""
    await call.services.channels.pause(_name(call), call.body.paused, _account(call))
    return await _shown(call, _name(call))


async def remove_channel(call: Call[Query, None]) -> Done:
    """Forget a channel, its messages on their way, and its secret if the gateway keeps it."""
    await call.services.channels.remove(_name(call), _account(call))
    return Done()


async def try_channel(call: Call[Query, None]) -> ChannelTested:
    """Send a marked message the way that alarms go, and wait 15 s for the outcome."""
    words = await call.services.channels.test(_name(call), _account(call))
    return ChannelTested(ok=words.startswith(TAKEN), text=words)


def _account(call: Call[Any, Any]) -> int | None:
    return None if call.caller.everywhere else call.caller.account_id


def _name(call: Call[Any, Any]) -> str:
    return call.request.match_info["channel"]


async def _shown(call: Call[Any, Any], name: str) -> OneChannel:
    for state in await call.services.channels.states(_account(call)):
        if state.channel.name == name:
            return OneChannel(channels=[_record(state)])
    raise NotFound


def _record(state: ChannelState) -> ChannelRecord:
    def at(seconds: int | None) -> str | None:
        return None if seconds is None else iso(seconds)

    channel = state.channel
    return ChannelRecord(
        name=channel.name,
        kind=channel.kind,
        # Many addresses are secrets themselves; `shown` is what is none of it.
        settings={name: value for name, value in channel.settings.items() if name != "url"},
        secret_file=channel.secret_file,
        paused=channel.paused,
        waiting=state.waiting,
        oldest_at=at(state.oldest_at),
        sent_at=at(state.sent_at),
        trouble=state.trouble,
        failing_since=at(state.failing_since),
        blocked=state.blocked,
        expired_at=at(state.expired_at),
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/manage/channels",
        list_channels,
        "Channels, the ways in which alarms reach you",
        Query,
        Channels,
        scope="read",
    ),
    Endpoint(
        "POST",
        "/manage/channels",
        add_channel,
        "Add a channel",
        Query,
        OneChannel,
        body=NewChannel,
        refusals=(409,),
        scope="admin",
    ),
    Endpoint(
        "PATCH",
        "/manage/channels/{channel}",
        change_channel,
        "Pause a channel, or let it go on",
        Query,
        OneChannel,
        body=ChannelChange,
        refusals=(404,),
        scope="admin",
    ),
    Endpoint(
        "DELETE",
        "/manage/channels/{channel}",
        remove_channel,
        "Remove a channel",
        Query,
        Done,
        refusals=(404,),
        scope="admin",
    ),
    Endpoint(
        "POST",
        "/manage/channels/{channel}/test",
        try_channel,
        "Send a test message through a channel",
        Query,
        ChannelTested,
        refusals=(404,),
        scope="admin",
    ),
)
"""Channels."""
