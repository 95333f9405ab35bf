"""The gateway without figures of brews and without looks for alarms: the ceiling of what these cost."""

import asyncio
from typing import Any

from gateway.__main__ import main
from gateway.notify.notifier import Notifier
from gateway.services.insight import InsightService


async def _rest(_: Any) -> None:
    await asyncio.Event().wait()


if __name__ == "__main__":
    InsightService.run = _rest  # type: ignore[method-assign, assignment]
    Notifier.run = _rest  # type: ignore[method-assign, assignment]
    main()
