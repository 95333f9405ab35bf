"""A certificate of the gateway's own, made by the `openssl` program.

Not by the package `cryptography`, because that takes 17 MB with its C library and has no wheel for armv7.
"""

import ipaddress
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gateway.errors import ConfigError, GatewayError, in_words
from gateway.interfaces import own_addresses
from gateway.network import LOCAL_DOMAINS
from gateway.tls.certificate import Certificate, load

CERTIFICATE_NAME, KEY_NAME = "tls.crt", "tls.key"

HOST_NAME = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*",
    re.IGNORECASE,
)
"""A host name (RFC 1123). Nothing else goes to `openssl`, whose lists of names have commas and colons."""

COMMON_NAME_CHARACTERS = 64
"""The longest common name (RFC 5280)."""

OPENSSL_S = 60.0
"""Seconds that the `openssl` program may take: 40 ms on a computer, some more on a Pi Zero."""

NO_OPENSSL = "there is no `openssl` program: `sudo apt install openssl`, or bring a certificate"


def names_of_this_machine() -> list[str]:
    """Return the host name, with the endings of home networks, and all addresses that others can reach."""
    host = socket.gethostname().split(".")[0]
    names = [socket.gethostname(), *(f"{host}.{domain}" for domain in LOCAL_DOMAINS), "localhost"]
    # Not link-local ones: a client writes them with a zone, which a certificate cannot hold.
    own = [ipaddress.ip_address(each.address) for each in own_addresses()]
    return [
        *(name for name in names if HOST_NAME.fullmatch(name)),
        *(str(address) for address in own if not address.is_link_local),
    ]


def make(directory: Path, names: Sequence[str], days: int) -> Certificate:
    """Make a key and a certificate for these names in the directory, and return the certificate.

    The key is readable by its owner alone. Files of the same names are replaced once the new ones are whole.
    """
    program = shutil.which("openssl")
    if program is None:
        raise GatewayError(NO_OPENSSL)
    names = list(dict.fromkeys([*names, *names_of_this_machine()]))
    alternatives = ",".join(dict.fromkeys(_alternative(name) for name in names))
    common = next((name for name in names if len(name) <= COMMON_NAME_CHARACTERS), "hydrometer-gateway")
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Made beside their place, so that a reload never meets half a file.
        with tempfile.TemporaryDirectory(prefix=".tls-", dir=directory) as room:
            certificate, key = Path(room, CERTIFICATE_NAME), Path(room, KEY_NAME)
            key.touch(mode=0o600)
            _run(
                *(program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
                *("-nodes", "-days", str(days), "-subj", f"/CN={common}"),
                *("-addext", f"subjectAltName={alternatives}"),
                *("-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=serverAuth"),
                *("-keyout", str(key), "-out", str(certificate)),
            )
            made = load(certificate, key)
            certificate.chmod(0o644)
            key.chmod(0o600)
            for path in (key, certificate):
                _give_to_owner_of(directory, path)
                path.replace(directory / path.name)
    except OSError as error:
        raise GatewayError(f"{directory}: {in_words(error)}") from error
    return made


def _alternative(name: str) -> str:
    """Return a name as OpenSSL's list of alternative names has it. `ConfigError` if it is no name."""
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        if HOST_NAME.fullmatch(name) is None:
            raise ConfigError(f"{name!r} is neither a host name nor an address") from None
        return f"DNS:{name.lower()}"


def _run(*arguments: str) -> None:
    try:
        ended = subprocess.run(arguments, capture_output=True, text=True, timeout=OPENSSL_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as error:
        raise GatewayError(f"openssl did not end within {OPENSSL_S:g} seconds") from error
    if ended.returncode != 0:
        lines = [line for line in ended.stderr.splitlines() if line.strip(".+*- ")]
        raise GatewayError(f"openssl made no certificate: {lines[-1] if lines else 'it gives no reason'}")


def _give_to_owner_of(directory: Path, path: Path) -> None:
    """Let the user who owns the directory own the file: root makes it for a service that is not root."""
    if os.geteuid() == 0:
        owner = directory.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
