"""The certificate and the key: read, checked, and put in the place of the old pair without a restart.

Python has no public function that reads the names and the end of a certificate that belongs to no authority.
So the gateway makes a TLS connection to itself in memory, as any client does: it shows that key and
certificate work together, and the client's side knows the content. It costs 5 ms.
"""

import asyncio
import ipaddress
import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from gateway.clock import Clock
from gateway.errors import ConfigError, in_words
from gateway.stats import Stats

log = logging.getLogger(__name__)

PART = "tls"
"""The name of this part on the health page."""

DAY_S = 86_400.0

ENDS_SOON_DAYS = 21
"""Days before the end of a certificate from which `doctor` warns."""

FINGERPRINT_SHOWN = 23
"""Characters of the fingerprint that stand in a state or a log line: eight bytes."""

UNUSABLE = "cannot use the new certificate"
"""The beginning of the state after a reload that failed."""

RECHECK_S = 3_600.0
"""Seconds from one check of the end to the next."""

NO_CHECK_TIME = 0x200000
"""OpenSSL's `X509_V_FLAG_NO_CHECK_TIME`, which Python does not name: an ended certificate is read, too."""

HANDSHAKE_STEPS = 10
"""The most turns of the handshake in memory; TLS needs three."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, ready for use.

    `names` are host names in lower case and addresses, `ends_at` is in Unix seconds, `fingerprint` is the
    SHA-256.
    """

    context: ssl.SSLContext
    names: tuple[str, ...]
    ends_at: float
    fingerprint: str

    def days_left(self, now: float) -> int:
        """Return the whole days until the end; negative after it."""
        return int((self.ends_at - now) // DAY_S)

    def describe(self, now: float) -> str:
        """Return the name, the end and the start of the fingerprint, in words."""
        day = datetime.fromtimestamp(self.ends_at, UTC).date().isoformat()
        name = self.names[0] if self.names else "no name"
        ends = f"ended on {day}" if now >= self.ends_at else f"ends on {day}"
        return f"certificate for {name}, {ends}, SHA-256 {self.fingerprint[:FINGERPRINT_SHOWN]}"


def load(certificate: Path, key: Path) -> Certificate:
    """Read a certificate and its key. `ConfigError` names the file and its fault."""
    for path in (certificate, key):
        try:
            path.open("rb").close()
        except OSError as error:
            raise ConfigError(f"{path}: {in_words(error)}") from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    # No tickets, because TLS 1.3 sends them unasked: a device that sends and leaves without reading them
    # resets the connection, and its last bytes are lost.
    context.num_tickets = 0
    try:
        context.load_cert_chain(certificate, key, password=lambda: _refuse_password(key))
        encoded = _handshake(context, _client()).getpeercert(binary_form=True) or b""
        reader = _client()
        reader.load_verify_locations(cadata=encoded)
        reader.verify_mode = ssl.CERT_REQUIRED
        reader.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | NO_CHECK_TIME
        content: Any = _handshake(context, reader).getpeercert() or {}
        names = tuple(
            name.lower() if kind == "DNS" else str(ipaddress.ip_address(name))
            for kind, name in content.get("subjectAltName", ())
            if kind in {"DNS", "IP Address"}
        )
        ends_at = float(ssl.cert_time_to_seconds(content["notAfter"]))
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(f"{certificate} is not for a server: {error.verify_message}") from error
    except ssl.SSLError as error:
        raise ConfigError(_fault(certificate, key, error)) from error
    except OSError as error:  # the files are being replaced at this moment
        raise ConfigError(f"{certificate} with {key}: {in_words(error)}") from error
    except (LookupError, ValueError) as error:
        raise ConfigError(f"{certificate} has a name, an address or an end that cannot be read") from error
    digits = sha256(encoded).hexdigest().upper()
    fingerprint = ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))
    return Certificate(context, names, ends_at, fingerprint)


def _refuse_password(key: Path) -> NoReturn:
    # Without this OpenSSL asks for the password at the terminal, and the gateway waits there for ever.
    raise ConfigError(f"{key} needs a password; take it off: openssl pkey -in {key} -out new.key")


def _client() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """Connect a client to a server in memory, and return the client's side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = client.wrap_bio(to_client, to_server)
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(HANDSHAKE_STEPS):
        waiting = False
        for side in (theirs, ours):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                waiting = True
        if not waiting:
            return theirs
    raise ssl.SSLError("the handshake does not end")


def _fault(certificate: Path, key: Path, error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{key} does not belong to {certificate}"
    try:
        _client().load_verify_locations(certificate)
    except (ssl.SSLError, OSError):
        return f"{certificate} holds no certificate in PEM form, or only a part of one"
    if error.reason in {None, "PEM_LIB"} or "PEM" in str(error):
        return f"{key} holds no key in PEM form, or only a part of one"
    return f"{certificate} with {key}: {str(error.reason).replace('_', ' ').lower()}"


class CertificateFiles:
    """The pair in use, and the files from which a new pair is read on request.

    A bad file changes nothing: the pair in use stays.
    """

    def __init__(self, certificate: Path, key: Path, stats: Stats, clock: Clock) -> None:
        self._certificate = certificate
        self._key = key
        self._stats = stats
        self._clock = clock
        self._requested = asyncio.Event()
        self._on_names: Callable[[Iterable[str]], None] = lambda _: None
        self._trouble = ""
        self.current = load(certificate, key)
        self._show()

    def context(self) -> ssl.SSLContext:
        """Return the context for the next connection."""
        return self.current.context

    def tell_names(self, on_names: Callable[[Iterable[str]], None]) -> None:
        """Call this function with the names of the certificate: now, and after each renewal."""
        self._on_names = on_names
        on_names(self.current.names)

    def request_reload(self) -> None:
        """Ask for the files to be read again, soon."""
        self._requested.set()

    async def run(self) -> None:
        """Read the files whenever that is asked for, and look at the end of the certificate every hour."""
        while True:
            try:
                async with asyncio.timeout(RECHECK_S):
                    await self._requested.wait()
            except TimeoutError:
                self._show()
                continue
            self._requested.clear()
            await self.reload()

    async def reload(self) -> None:
        """Put the pair of the files in the place of the one in use, if it is whole and has not ended.

        Open connections go on with the pair that they began with.
        """
        try:
            fresh = await asyncio.to_thread(load, self._certificate, self._key)
        except ConfigError as error:
            self._trouble = str(error)
        else:
            now = self._clock.now()
            ended = fresh.ends_at <= now
            self._trouble = f"{self._certificate} is out of date: {fresh.describe(now)}" if ended else ""
            self.current = self.current if ended else fresh
        if self._trouble:
            log.warning("tls: the new certificate cannot be used, the old one stays: %s", self._trouble)
        else:
            self._on_names(self.current.names)
            log.info("tls: new connections get the %s", self.current.describe(self._clock.now()))
        self._show()

    def _show(self) -> None:
        now = self._clock.now()
        words = self.current.describe(now)
        if self._trouble:
            words = f"{UNUSABLE}: {self._trouble}; still in use: {words}"
        self._stats.say(PART, words, well=not self._trouble and now < self.current.ends_at)
