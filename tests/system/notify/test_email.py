"""E-mail to a scripted server: TLS in both ways, logins, and every place at which it can end."""

import asyncio
import socket
import ssl
import threading
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.delivery import DeliveryResult, Outcome
from gateway.notify.channels import email as module
from gateway.notify.channels.email import Email
from gateway.notify.words import Note
from gateway.outward.guard import Guard
from gateway.tls.authorities import FILE_VARIABLE
from gateway.tls.self_signed import CERTIFICATE_NAME, KEY_NAME, make
from tests.mail_server import MailServer
from tests.patience import PATIENCE_S

NOW = 1_772_616_600.0
NOTE = Note(
    "hg-0a1b2c3d-7",
    int(NOW),
    "Fermentation is stuck",
    "C12 steht bei 1.022 – schau nach",
    "warning",
    "http://x/1",
    (),
)
PASSWORD = "planted-password-5b1f"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    make(folder, ["mail.test"], 2)
    return folder


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> MailServer:
    monkeypatch.setenv(FILE_VARIABLE, str(folder / CERTIFICATE_NAME))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / CERTIFICATE_NAME, folder / KEY_NAME)
    return MailServer(context)


async def resolve(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


def channel(server: MailServer, **settings: object) -> Email:
    given = {
        "host": "mail.test",
        "port": server.port,
        "sender": "gateway@example.org",
        "to": ["me@example.org"],
    }
    return Email(Guard(resolve=resolve), {**given, **settings})


async def test_starttls_and_a_login(server: MailServer) -> None:
    async with server.listening():
        outcome = await channel(server, user="me", to=["me@example.org", "you@example.org"]).send(
            NOTE, {"password": PASSWORD}, NOW
        )
    assert outcome.verdict is DeliveryResult.ACCEPTED, outcome
    [mail] = server.mails
    assert (mail.tls, mail.login) == (True, f"\0me\0{PASSWORD}")
    assert server.heard.index("STARTTLS") < next(
        n for n, line in enumerate(server.heard) if line.startswith("AUTH")
    )
    assert len(mail.recipients) == 2
    message = message_from_bytes(mail.text.removesuffix(b".\r\n"), policy=default)
    assert isinstance(message, EmailMessage)
    assert message["Message-ID"] == "<hg-0a1b2c3d-7@example.org>"
    assert (message["From"], message["To"]) == ("gateway@example.org", "me@example.org, you@example.org")
    assert message["Subject"] == "Fermentation is stuck"
    assert message.get_content().split() == f"{NOTE.text} http://x/1".split()
    assert message.get_content_type() == "text/plain"


async def test_tls_from_the_start(server: MailServer) -> None:
    async with server.listening(tls_at_once=True):
        outcome = await channel(server, tls="tls").send(NOTE, {}, NOW)
    assert outcome.verdict is DeliveryResult.ACCEPTED, outcome
    assert server.mails[0].tls


async def test_without_tls_there_is_no_login(server: MailServer) -> None:
    async with server.listening():
        outcome = await channel(server, tls="none", user="me").send(NOTE, {"password": PASSWORD}, NOW)
        assert outcome.verdict is DeliveryResult.PAUSED
        assert not any(line.startswith("AUTH") for line in server.heard)
        assert (await channel(server, tls="none").send(NOTE, {}, NOW)).verdict is DeliveryResult.ACCEPTED


async def test_a_server_that_offers_no_starttls_gets_nothing(server: MailServer) -> None:
    server.offers_tls = False
    async with server.listening():
        outcome = await channel(server, user="me").send(NOTE, {"password": PASSWORD}, NOW)
    assert outcome.verdict is DeliveryResult.PAUSED
    assert "STARTTLS" in outcome.reason
    assert [line.split()[0].upper() for line in server.heard] == ["EHLO"]


async def test_a_certificate_that_nobody_vouches_for(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(FILE_VARIABLE)
    async with server.listening():
        outcome = await channel(server, user="me").send(NOTE, {"password": PASSWORD}, NOW)
    assert (outcome.verdict, server.mails) == (DeliveryResult.PAUSED, [])
    assert "certificate is not to be trusted: nobody whom this machine knows has signed" in outcome.reason


@pytest.mark.parametrize(
    ("verb", "answer", "verdict"),
    [
        ("CONNECT", "421 too busy", DeliveryResult.KEPT),
        ("CONNECT", "554 go away", DeliveryResult.PAUSED),
        ("AUTH", "535 wrong password", DeliveryResult.PAUSED),
        ("AUTH", "454 not now", DeliveryResult.KEPT),
        ("MAIL", "452 full", DeliveryResult.KEPT),
        ("MAIL", "550 not from you", DeliveryResult.PAUSED),
        ("RCPT", "550 nobody of that name", DeliveryResult.PAUSED),
        ("RCPT", "450 greylisted", DeliveryResult.KEPT),
        ("DATA", "451 not now", DeliveryResult.KEPT),
        (".", "554 looks like spam", DeliveryResult.REFUSED),
        (".", "451 not now", DeliveryResult.KEPT),
    ],
)
async def test_refusals(server: MailServer, verb: str, answer: str, verdict: DeliveryResult) -> None:
    server.answers = {verb: answer}
    async with server.listening():
        outcome = await channel(server, user="me").send(NOTE, {"password": PASSWORD}, NOW)
    assert outcome.verdict is verdict, outcome
    assert answer[:3] in outcome.reason


@pytest.mark.parametrize("verb", ["CONNECT", "EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "."])
@pytest.mark.parametrize("silent", [True, False])
async def test_where_it_ends_says_whether_it_may_have_left(
    server: MailServer, verb: str, silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WHOLE_S", 0.7)
    server.silent_at, server.cut_at = (verb, "") if silent else ("", verb)
    async with server.listening():
        outcome = await channel(server, user="me").send(NOTE, {"password": PASSWORD}, NOW)
    expected = DeliveryResult.AMBIGUOUS if verb in {"DATA", "."} else DeliveryResult.KEPT
    assert outcome.verdict is expected, outcome


async def test_what_nobody_waits_for_any_more_does_not_leave(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection comes after the deadline: the message is kept and goes again, so it must not go now."""
    connects, over = threading.Event(), threading.Event()
    connect, send = module._Conversation._first_that_answers, module._Conversation.send

    def late(talk: module._Conversation) -> socket.socket:
        connects.wait(PATIENCE_S)
        return connect(talk)

    def whole(talk: module._Conversation, *given: Any) -> Outcome:
        try:
            return send(talk, *given)
        finally:
            over.set()

    monkeypatch.setattr(module._Conversation, "_first_that_answers", late)
    monkeypatch.setattr(module._Conversation, "send", whole)
    monkeypatch.setattr(module, "WHOLE_S", 0.05)
    async with server.listening():
        outcome = await channel(server).send(NOTE, {}, NOW)
        assert outcome.verdict is DeliveryResult.KEPT
        connects.set()
        assert await asyncio.to_thread(over.wait, PATIENCE_S)
    assert (server.connections, server.mails) == (1, [])


async def test_one_of_two_recipients_is_refused(server: MailServer) -> None:
    async with server.listening():
        server.answers = {"RCPT": "550 nobody"}
        both = await channel(server, to=["a@example.org", "b@example.org"]).send(NOTE, {}, NOW)
    assert both.verdict is DeliveryResult.PAUSED


@pytest.mark.parametrize(
    "bad", ["a@example.org\r\nBcc: all@example.org", "a@example.org\nX: y", "a@exa\rmple.org"]
)
@pytest.mark.parametrize("name", ["sender", "to", "title"])
async def test_line_breaks_end_no_header(server: MailServer, bad: str, name: str) -> None:
    note = Note("hg-1-1", 1, bad, "x", "info", "", ()) if name == "title" else NOTE
    settings = {"sender": bad} if name == "sender" else {"to": [bad]} if name == "to" else {}
    async with server.listening():
        outcome = await channel(server, **settings).send(note, {}, NOW)
    assert outcome.verdict is DeliveryResult.REFUSED
    assert server.connections == 0


async def test_a_link_local_mail_server_is_refused() -> None:
    guarded = Email(Guard(), {"host": "169.254.169.254", "port": 25, "sender": "a@b.c", "to": ["a@b.c"]})
    outcome = await guarded.send(NOTE, {}, NOW)
    assert outcome.verdict is DeliveryResult.PAUSED
    assert "link-local" in outcome.reason
