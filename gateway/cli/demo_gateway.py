"""One gateway of the demo, as a process: `serve` with a clock that begins days ago and catches up.

Its argument is a JSON object: `settings` as in `Settings`, and `lapse_days` and `speed` of the clock.
"""

import json
import sys
import time
from pathlib import Path

from gateway.clock import SystemClock
from gateway.domain.units import SECONDS_PER_DAY
from gateway.errors import GatewayError


class LapseClock(SystemClock):
    """A clock that begins `lapse_days` ago and runs `speed` times as fast until it has caught up.

    Wall time and time since boot run alike, so the gateway sees a clock that never jumps. Waits and deadlines
    are those of the machine.
    """

    def __init__(self, lapse_days: float, speed: float) -> None:
        self._lapse_s = lapse_days * SECONDS_PER_DAY
        self._gain = speed - 1
        self._began = time.monotonic()

    def _gained_s(self) -> float:
        return min(self._lapse_s, (time.monotonic() - self._began) * self._gain)

    def now(self) -> float:
        """Return the demo's Unix time in seconds."""
        return super().now() - self._lapse_s + self._gained_s()

    def since_boot(self) -> float:
        """Return seconds since boot that run as fast as `now`."""
        return super().since_boot() + self._gained_s()


def main() -> None:
    """Run the gateway until SIGTERM."""
    from gateway import app
    from gateway.cli.options import set_up_logging
    from gateway.settings import Settings

    given = json.loads(sys.argv[1])
    settings = Settings(**{**given["settings"], "data_dir": Path(given["settings"]["data_dir"])})
    set_up_logging(settings.log_level)
    clock = LapseClock(given["lapse_days"], given["speed"])
    try:
        app.serve(settings, lambda line: print(line, flush=True), clock)
    except GatewayError as error:
        print(error, flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
