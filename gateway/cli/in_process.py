"""The application in the process of a command, for a data directory that no gateway has open."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway import site
from gateway.clock import SystemClock
from gateway.http.unix import UnixListener
from gateway.services.build import build_services
from gateway.store.local import open_read_only, open_store


@asynccontextmanager
async def serving(directory: Path, *, read_only: bool) -> AsyncIterator[Path]:
    """Serve the data on a socket in a private directory; yield that directory."""
    async with (open_read_only if read_only else open_store)(directory) as store:
        services = build_services(store, directory, SystemClock())
        await (services.access.load() if read_only else services.access.start())
        await services.alarms.start()
        with tempfile.TemporaryDirectory(prefix="hydrometer-gateway-") as private:
            listener = UnixListener(site.build(services, door="socket"), Path(private))
            await listener.start()
            try:
                yield Path(private)
            finally:
                await listener.stop()
