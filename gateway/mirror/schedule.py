"""Mirror a service at intervals of hours while the gateway runs. A failure stops nothing else."""

import logging

from gateway.domain.texts import shown_url
from gateway.errors import GatewayError
from gateway.mirror.copying import mirror
from gateway.mirror.run import MirrorSource
from gateway.services.build import Services

log = logging.getLogger(__name__)

HOUR_S = 3600.0

RETRY_S = 3600.0
"""Seconds until the next try after a failure, or the usual pause if that is shorter."""

LOGGED = 20
"""Reports of a run that go to the log at most."""

PART = "mirror"
"""The name of the mirror among the gateway's parts."""


class MirrorSchedule:
    """Copies a service into the owner's account, at the start and then every `hours`."""

    def __init__(self, services: Services, source: MirrorSource, hours: float) -> None:
        self._services = services
        self._source = source
        self._pause_s = hours * HOUR_S

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self._services.clock.sleep(await self._once())

    async def _once(self) -> float:
        """Copy once. Return the seconds until the next run."""

        def progress(done: int, of: int, what: str) -> None:
            self._say(f"copying: {done} of {of} {what}")

        self._say("copying")
        try:
            result = await mirror(self._services, self._source, self._services.access.owner_id, progress)
        except GatewayError as error:
            log.warning("mirror: %s: %s", shown_url(self._source.name), error)
            return self._failed(str(error))
        except Exception:
            log.exception("mirror: %s failed", shown_url(self._source.name))
            return self._failed("failed, see the log")
        log.info("mirror: %s: %s", shown_url(self._source.name), result.summary())
        for line in result.reports[result.renumbered : LOGGED]:  # that one was logged when it was found
            log.warning("mirror: %s", line)
        if len(result.reports) > LOGGED:
            log.warning("mirror: there are more reports; the command `mirror` shows them")
        self._say(f"ok: {result.summary()}")
        return self._pause_s

    def _failed(self, reason: str) -> float:
        self._say(f"waits to try again: {reason}", well=False)
        return min(RETRY_S, self._pause_s)

    def _say(self, state: str, *, well: bool = True) -> None:
        self._services.stats.say(PART, f"from {shown_url(self._source.name)}: {state}", well=well)
