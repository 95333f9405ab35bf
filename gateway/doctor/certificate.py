"""Checks the certificate: the files as they are now, and the pair that a running gateway uses."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from gateway.doctor.finding import Context, Finding, ok, problem, warning
from gateway.errors import ConfigError, GatewayError
from gateway.tls.certificate import ENDS_SOON_DAYS, FINGERPRINT_SHOWN, PART, UNUSABLE, Certificate, load

ANSWER_S = 5.0
"""Seconds in which a running gateway must answer."""

RENEW = "renew it, then `systemctl reload hydrometer-gateway`"


async def pair(context: Context) -> Sequence[Finding]:
    """Check that the files are a pair, how long the certificate lasts, and which pair is in use."""
    certificate_file, key_file = context.settings.tls_cert, context.settings.tls_key
    if certificate_file is None or key_file is None:
        return [ok("none is configured: HTTPS and MQTT over TLS are off")]
    try:
        certificate = await asyncio.to_thread(load, certificate_file, key_file)
    except ConfigError as error:
        remedy = "put the right files there, or make a pair: hydrometer-gateway tls self-signed"
        return [problem(str(error), remedy), *await _running(context, None)]
    found = [_end(certificate, context.clock.now()), *await _running(context, certificate)]
    return [*found, *_readable(key_file)]


def _end(certificate: Certificate, now: float) -> Finding:
    words, days = certificate.describe(now), certificate.days_left(now)
    if days < 0:
        return problem(f"{words}: clients refuse it", RENEW)
    if days <= ENDS_SOON_DAYS:
        return warning(f"{words}, in {days} days", RENEW)
    if not certificate.names:
        return warning(
            f"{words}: clients refuse it", "make one with the names of this machine: `tls self-signed`"
        )
    return ok(words)


def _readable(key_file: Path) -> list[Finding]:
    if key_file.stat().st_mode & 0o007:
        return [warning(f"other users can read {key_file}", f"chmod o= {key_file}")]
    return []


async def _running(context: Context, certificate: Certificate | None) -> list[Finding]:
    """Compare the files with the pair of a running gateway, if there is one."""
    if not context.is_open():
        return []
    try:
        state = (await asyncio.wait_for(context.parts(), ANSWER_S)).get(PART)
    except (OSError, TimeoutError, GatewayError):
        return []  # the check of the ports says so
    if state is None:
        return [warning("the running gateway has none", "restart it, so that it knows --tls-cert")]
    if state.startswith(UNUSABLE):
        return [problem(f"the running gateway {state}", "mend the files, then reload it as above")]
    if certificate is not None and certificate.fingerprint[:FINGERPRINT_SHOWN] not in state:
        text = f"the running gateway still uses another one: {state}"
        return [warning(text, "`systemctl reload hydrometer-gateway`, or kill -HUP its process")]
    return []
