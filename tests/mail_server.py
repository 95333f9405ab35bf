"""A mail server on loopback that does what a script says: TLS, logins, refusals, silence."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Mail:
    """A message that was taken, and how it came."""

    sender: str
    recipients: list[str]
    text: bytes
    tls: bool
    login: str


@dataclass
class MailServer:
    """Speaks as much SMTP as a client needs.

    `answers` are answers by verb in place of its own; `silent_at` is the verb that it does not answer,
    `cut_at` the one at which it ends the connection (`.` is the end of a message).
    """

    tls: ssl.SSLContext | None = None
    offers_tls: bool = True
    answers: dict[str, str] = field(default_factory=dict)
    silent_at: str = ""
    cut_at: str = ""
    mails: list[Mail] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @asynccontextmanager
    async def listening(self, *, tls_at_once: bool = False) -> AsyncIterator["MailServer"]:
        context = self.tls if tls_at_once else None
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in list(self._tasks):
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        secure = writer.get_extra_info("ssl_object") is not None
        login, sender, recipients = "", "", []

        async def say(verb: str, answer: str) -> bool:
            if verb == self.silent_at:
                await asyncio.Event().wait()
            if verb == self.cut_at:
                return False
            writer.write(f"{self.answers.get(verb, answer)}\r\n".encode())
            await writer.drain()
            return True

        if not await say("CONNECT", "220 mail.test ESMTP"):
            return
        while True:
            line = (await reader.readuntil(b"\r\n")).decode().strip()
            self.heard.append(line)
            verb = line.split(" ")[0].upper()
            answer = "250 ok"
            if verb == "EHLO":
                offered = "250-STARTTLS\r\n" if self.tls and self.offers_tls and not secure else ""
                answer = f"250-mail.test\r\n{offered}250-AUTH PLAIN\r\n250 8BITMIME"
            elif verb == "STARTTLS":
                if not await say(verb, "220 go ahead"):
                    return
                await writer.start_tls(self.tls)  # type: ignore[arg-type]
                secure = True
                continue
            elif verb == "AUTH":
                login = base64.b64decode(line.split(" ")[2]).decode()
                answer = "235 welcome"
            elif verb == "MAIL":
                sender = line
            elif verb == "RCPT":
                recipients.append(line)
            elif verb == "DATA":
                if not await say(verb, "354 go ahead"):
                    return
                text = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(Mail(sender, recipients, text, secure, login))
                verb = "."
            elif verb == "QUIT":
                await say(verb, "221 bye")
                return
            if not await say(verb, answer):
                return
