"""Files with keys for services: there, readable, and their owner's alone."""

import asyncio
from collections.abc import Sequence

from gateway.errors import ConfigError
from gateway.services.doctor.finding import Case, Finding, ok, problem, warning
from gateway.services.doctor.services import Service, services


async def files(case: Case) -> Sequence[Finding]:
    """Each key file that the gateway reads."""
    found = [await asyncio.to_thread(_judged, service) for service in await services(case)]
    return found or [ok("none is configured")]


def _judged(service: Service) -> Finding:
    try:
        service.key()
    except ConfigError as error:
        return problem(str(error), "write the API key, and nothing else, into the file")
    path = service.key_file
    if path is not None and path.stat().st_mode & 0o077:
        return warning(f"others can read {path}", f"chmod 600 {path}")
    return ok(f"{path} is its owner's alone")
