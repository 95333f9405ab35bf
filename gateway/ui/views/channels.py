"""Channels: how alarms reach a phone, in the settings; the forms for new ones, and their tests."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from gateway.domain.alarm import ChannelKind
from gateway.domain.target import NAME
from gateway.errors import ConfigError, InvalidInput, NameTaken, NotFound
from gateway.services.channel_settings import NTFY_SERVER
from gateway.services.channels import TAKEN, ChannelState
from gateway.ui.forms import Filled, Form, among, at_most, whole
from gateway.ui.pages import Answer, Moved, Page, Part, Row, Visit
from gateway.ui.words import Ago

TEXT, LONG = 200, 2_000
"""Characters of a field at most: of most of them, and of an address."""

TLS = ("starttls", "tls", "none")


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError("channels.wrong_name")
    return text


class NewChannel(Form):
    """What all kinds of channels ask for."""

    channel_name: Annotated[str, _name]
    quiet: Annotated[str, at_most(20)] = ""


class NewNtfy(NewChannel):
    """A topic of an ntfy server."""

    topic: Annotated[str, at_most(64)]
    server: Annotated[str, at_most(LONG)] = ""
    secret_token: Annotated[str, at_most(TEXT)] = ""


class NewWebhook(NewChannel):
    """An address that messages are posted to."""

    address: Annotated[str, at_most(LONG)]
    secret: Annotated[str, at_most(TEXT)] = ""


class NewEmail(NewChannel):
    """A mail server, and the addresses that get the messages."""

    host: Annotated[str, at_most(TEXT)]
    sender: Annotated[str, at_most(TEXT)]
    to: Annotated[str, at_most(LONG)]
    tls: Annotated[str, among(TLS)] = "starttls"
    port: Annotated[int, whole] = 0
    user: Annotated[str, at_most(TEXT)] = ""
    password: Annotated[str, at_most(TEXT)] = ""


FORMS: Mapping[ChannelKind, type[NewChannel]] = {"ntfy": NewNtfy, "webhook": NewWebhook, "email": NewEmail}
"""The kinds that the page can add; the command line has all of them."""


class ChannelLine(NamedTuple):
    """A channel as the settings show it; `sign` is the class of its state."""

    name: str
    kind: str
    to: str
    quiet: str
    state: str
    sign: str
    trouble: str
    last: Ago | None
    given_up: Ago | None
    is_paused: bool


async def part(visit: Visit) -> Part:
    """Show the channels of the account."""
    states = await visit.services.channels.states(visit.viewer.account_id)
    values = {"channels": [_line(visit, state) for state in states], "kinds": list(FORMS)}
    return Part("parts/channels.html", ("alarm",), values)


def _line(visit: Visit, state: ChannelState) -> ChannelLine:
    channel, settings = state.channel, state.channel.settings
    where = {
        "ntfy": settings.get("server", NTFY_SERVER),
        "webhook": settings.get("shown", ""),
        "email": ", ".join(settings.get("to", ())),
        "mqtt": settings.get("topic", ""),
    }.get(channel.kind, "")
    word, sign = "well", "good"
    if channel.paused:
        word, sign = "paused", "quiet"
    elif state.trouble:
        word, sign = ("blocked", "bad") if state.blocked else ("retries", "warn")
    return ChannelLine(
        name=channel.name,
        kind=visit.t(f"channels.kind.{channel.kind}"),
        to=str(where),
        quiet=str(settings.get("quiet", "")),
        state=visit.t(f"channels.state.{word}"),
        sign=sign,
        trouble=state.trouble,
        last=None if state.sent_at is None else visit.words.ago(state.sent_at),
        given_up=None if state.expired_at is None else visit.words.ago(state.expired_at),
        is_paused=channel.paused,
    )


def _kind(visit: Visit) -> ChannelKind:
    for kind in FORMS:
        if kind == visit.path_text("kind"):
            return kind
    raise NotFound


async def ask(visit: Visit) -> Answer:
    """Show the form for a new channel."""
    return _form(visit, _kind(visit))


def _form(visit: Visit, kind: ChannelKind, filled: Filled[Any] | None = None, fault: str = "") -> Page:
    values = {
        "kind": kind,
        "filled": filled,
        "fault": fault,
        "tls": [(word, visit.t(f"channels.tls.{word}")) for word in TLS],
    }
    status = 200 if filled is None else 422
    return Page("channel_add.html", visit.t(f"channels.add.{kind}"), values, menu="more", status=status)


async def add(visit: Visit) -> Answer:
    """Add a channel."""
    kind = _kind(visit)
    filled = visit.read(FORMS[kind])
    if filled.value is None:
        return _form(visit, kind, filled)
    settings, secret = _said(kind, filled.value)
    name = filled.value.channel_name
    try:
        await visit.services.channels.add(
            name, kind, settings, secret=secret, account_id=visit.viewer.account_id
        )
    except NameTaken:
        filled.wrong("channel_name", "channels.name_taken")
        return _form(visit, kind, filled)
    except (InvalidInput, ConfigError) as error:
        return _form(visit, kind, filled, str(error))
    return Moved(visit.url("settings"), visit.t("channels.added", name=name))


def _said(kind: ChannelKind, form: Any) -> tuple[dict[str, Any], str]:
    """Return the settings that a form holds, and the secret as the service takes it."""
    settings: dict[str, Any] = {}
    if kind == "ntfy":
        settings = {"server": form.server}
        secret = f"topic={form.topic}\ntoken={form.secret_token}"
    elif kind == "webhook":
        settings = {"url": form.address}
        secret = f"secret={form.secret}"
    else:
        recipients = form.to.replace(",", " ").split()
        settings = {"host": form.host, "sender": form.sender, "to": recipients, "tls": form.tls}
        settings |= {"port": form.port, "user": form.user}
        secret = f"password={form.password}"
    settings["quiet"] = form.quiet
    return {name: value for name, value in settings.items() if value}, secret


async def test(visit: Visit) -> Answer:
    """Send a test message, and show what became of it."""
    name = visit.path_text("name")
    words = await visit.services.channels.test(name, visit.viewer.account_id)
    values = {"name": name, "words": words, "ok": words.startswith(TAKEN)}
    return Page("channel_test.html", visit.t("channels.test.title", name=name), values, menu="more")


async def pause(visit: Visit) -> Answer:
    """Send nothing through a channel until it is resumed."""
    return await _pause(visit, paused=True)


async def resume(visit: Visit) -> Answer:
    """Let a channel go on."""
    return await _pause(visit, paused=False)


async def _pause(visit: Visit, *, paused: bool) -> Answer:
    name = visit.path_text("name")
    await visit.services.channels.pause(name, paused, visit.viewer.account_id)
    return Moved(
        visit.url("settings"), visit.t("channels.paused" if paused else "channels.resumed", name=name)
    )


async def ask_remove(visit: Visit) -> Answer:
    """Ask before a channel is removed."""
    channel = await visit.services.channels.named(visit.path_text("name"), visit.viewer.account_id)
    values = {
        "question": visit.t("channels.remove.ask", name=channel.name),
        "explain": visit.t("channels.remove.explain"),
        "action": visit.url("channels.remove", name=channel.name),
        "button": visit.t("channels.remove"),
        "back": visit.url("settings"),
    }
    return Page("confirm.html", visit.t("channels.remove"), values, menu="more")


async def remove(visit: Visit) -> Answer:
    """Forget a channel, and its secret if the gateway keeps it."""
    name = visit.path_text("name")
    await visit.services.channels.remove(name, visit.viewer.account_id)
    return Moved(visit.url("settings"), visit.t("channels.removed", name=name))


PATH, NAMED = "/settings/channels", "/settings/channels/{name}"

ROWS = (
    Row("GET", PATH, part, "channels", "The ways in which alarms reach you", "admin"),
    Row("GET", f"{PATH}/add/{{kind}}", ask, "channels.ask", "The form for a new channel", "admin"),
    Row("POST", f"{PATH}/add/{{kind}}", add, "channels.add", "Add a channel", "admin", no_store=True),
    Row("POST", f"{NAMED}/test", test, "channels.test", "Send a test message", "admin"),
    Row("POST", f"{NAMED}/pause", pause, "channels.pause", "Pause a channel", "admin"),
    Row("POST", f"{NAMED}/resume", resume, "channels.resume", "Let a channel go on", "admin"),
    Row("GET", f"{NAMED}/remove", ask_remove, "channels.ask_remove", "Ask before that", "admin"),
    Row("POST", f"{NAMED}/remove", remove, "channels.remove", "Remove a channel", "admin"),
)
