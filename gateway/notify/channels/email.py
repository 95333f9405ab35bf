"""E-mail: plain text by SMTP, in a thread, with STARTTLS or TLS; a login never goes in the clear."""

import asyncio
import smtplib
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any

from gateway.domain.delivery import DeliveryResult, Outcome
from gateway.errors import in_words
from gateway.notify.words import Note
from gateway.outward.guard import Guard, OutwardFailed

STEP_S = 10.0
"""Seconds that each step of the conversation may take."""

WHOLE_S = 30.0
"""Seconds that the whole conversation may take."""

PORTS = {"starttls": 587, "tls": 465, "none": 25}

# Not this machine's name, because looking for it may ask a name server, and wait for it.
OUR_NAME = "[127.0.0.1]"


class Email:
    """Sends to some addresses, one connection a message. A copy has the same `Message-ID`."""

    repeats = True

    def __init__(self, guard: Guard, settings: Mapping[str, Any]) -> None:
        self._guard = guard
        self._settings = settings

    async def send(self, note: Note, parts: Mapping[str, str], now: float) -> Outcome:
        """Send a message."""
        settings = self._settings
        host, tls = str(settings["host"]), str(settings.get("tls", "starttls"))
        port = int(settings.get("port", PORTS[tls]))
        try:
            message = _message(note, str(settings["sender"]), settings["to"], now)
        except ValueError as error:  # a line break in an address or a subject
            return Outcome(DeliveryResult.REFUSED, str(error))
        try:
            async with asyncio.timeout(WHOLE_S):
                addresses = await self._guard.addresses(host, port)
        except OutwardFailed as failure:
            return failure.outcome
        except TimeoutError as error:
            return Outcome(DeliveryResult.KEPT, in_words(error))
        talk = _Conversation(
            host, port, addresses, tls, str(settings.get("user", "")), parts.get("password", "")
        )
        try:
            async with asyncio.timeout(WHOLE_S):
                return await asyncio.shield(
                    asyncio.to_thread(talk.send, message, settings["sender"], settings["to"])
                )
        except TimeoutError:
            talk.cut()  # the thread ends with the connection
            return talk.ended("no end in time")
        except asyncio.CancelledError:
            talk.cut()
            raise


def _message(note: Note, sender: str, recipients: Sequence[str], now: float) -> bytes:
    message = EmailMessage(policy=SMTP)
    message["From"] = sender
    message["To"] = ", ".join(recipients)
    message["Subject"] = note.title
    message["Date"] = format_datetime(datetime.fromtimestamp(now, UTC))
    message["Message-ID"] = f"<{note.id}@{sender.partition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content("\n\n".join(filter(None, (note.text, note.click))) + "\n", cte="quoted-printable")
    return message.as_bytes()


class _Conversation:
    """A conversation with a server, in a thread. `begun`: the message itself may have left."""

    def __init__(
        self, host: str, port: int, addresses: Sequence[str], tls: str, user: str, password: str
    ) -> None:
        self._host, self._port, self._addresses = host, port, addresses
        self._tls, self._user, self._password = tls, user, password
        self._socket: socket.socket | None = None
        self._turn = threading.Lock()
        self._is_cut = False
        self.begun = False

    def cut(self) -> None:
        """End the connection, from another thread. After that no message begins to leave."""
        with self._turn:
            self._is_cut = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def ended(self, reason: str) -> Outcome:
        """Return an ending without an answer of the server."""
        return Outcome(DeliveryResult.AMBIGUOUS if self.begun else DeliveryResult.KEPT, reason)

    def send(self, message: bytes, sender: str, recipients: Sequence[str]) -> Outcome:
        """Say everything; blocks."""
        try:
            with self._connected() as server:
                return self._say(server, message, sender, recipients)
        except smtplib.SMTPServerDisconnected:
            return self.ended("the connection was cut")
        except smtplib.SMTPResponseException as error:
            return _refusal(error.smtp_code, error.smtp_error)
        except smtplib.SMTPException as error:
            return Outcome(DeliveryResult.PAUSED, str(error))
        except ssl.SSLCertVerificationError as error:
            return Outcome(DeliveryResult.PAUSED, in_words(error))
        except (OSError, UnicodeError) as error:
            return self.ended(in_words(error))

    def _connected(self) -> smtplib.SMTP:
        """Connect to the first address that answers, as far as TLS. The name is for TLS alone."""
        made = self._socket = self._first_that_answers()
        server = smtplib.SMTP(local_hostname=OUR_NAME, timeout=STEP_S)
        server._host = self._host  # type: ignore[attr-defined]
        server.sock = made
        with ExitStack() as failed:
            failed.callback(server.close)
            context = ssl.create_default_context()
            if self._tls == "tls":
                self._socket = server.sock = context.wrap_socket(made, server_hostname=self._host)
            code, answer = server.getreply()
            if code != 220:
                raise smtplib.SMTPConnectError(code, answer)
            if self._tls == "starttls":
                server.starttls(context=context)
                self._socket = server.sock
            failed.pop_all()
        return server

    def _first_that_answers(self) -> socket.socket:
        for address in self._addresses[:-1]:
            with suppress(OSError):
                return socket.create_connection((address, self._port), STEP_S)
        return socket.create_connection((self._addresses[-1], self._port), STEP_S)

    def _say(self, server: smtplib.SMTP, message: bytes, sender: str, recipients: Sequence[str]) -> Outcome:
        server.ehlo_or_helo_if_needed()
        if self._user:
            if not isinstance(server.sock, ssl.SSLSocket):
                return Outcome(DeliveryResult.PAUSED, "the login would go in the clear")
            server.login(self._user, self._password)
        code, answer = server.mail(sender)
        if code != 250:
            return _refusal(code, answer)
        refused = []
        for recipient in recipients:
            code, answer = server.rcpt(recipient)
            if code not in {250, 251}:
                refused.append((code, answer))
        if len(refused) == len(recipients):
            return _refusal(*refused[0])
        with self._turn:
            if self._is_cut:  # nobody waits any more, and the message goes again
                return self.ended("no end in time")
            self.begun = True
        code, answer = server.data(message)
        if code != 250:
            return _refusal(code, answer, DeliveryResult.REFUSED)
        with suppress(OSError, smtplib.SMTPException):  # it has the message
            server.quit()
        return Outcome(DeliveryResult.ACCEPTED, f"{len(refused)} recipients refused" if refused else "")


def _refusal(code: int, answer: bytes | str, for_ever: DeliveryResult = DeliveryResult.PAUSED) -> Outcome:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    reason = f"{code} {' '.join(text.split())}"
    return Outcome(for_ever if code >= 500 else DeliveryResult.KEPT, reason)
