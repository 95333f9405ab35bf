"""The walk of a reading through our modules, from `Intake.take` to the commit."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from gateway.domain.payload import Payload
from gateway.intake.intake import Intake
from gateway.services.build import Services
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.pure.test_architecture import GATEWAY, module_name, part_of, rank_of

SPINDLE = {"name": "Grün", "ID": 5312877, "temperature": 19.8, "gravity": 12.48, "interval": 900}

ENTRIES_MAX, CLIMBS_MAX, CALLS_MAX = 8, 2, 181

OWN = "gateway.intake.intake"


class Walk:
    """Every call of one of our functions until the commit: who calls, who is called, and what.

    A coroutine that goes on after a pause is called by the one that awaits it; the event loop is not ours.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []
        self._ended = False
        self._modules: dict[CodeType, str] = {}

    def module(self, code: CodeType) -> str:
        """The module that a function stands in; empty if it is not ours."""
        if code not in self._modules:
            path = Path(code.co_filename)
            self._modules[code] = module_name(path) if path.is_relative_to(GATEWAY) else ""
        return self._modules[code]

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call, for `sys.setprofile`."""
        begun = self.calls or frame.f_code is Intake.take.__code__
        here = self.module(frame.f_code) if begun and not self._ended and event == "call" else ""
        if not here:
            return
        self._ended = frame.f_code is Writer._answer.__code__
        caller = frame.f_back
        while caller is not None and not self.module(caller.f_code):
            caller = caller.f_back
        self.calls.append((self.module(caller.f_code) if caller else "", here, frame.f_code.co_qualname))

    def entries(self) -> list[str]:
        """Calls in `intake.py` that follow a call elsewhere: the walk has left the file and is back."""
        walk = [("", "", ""), *self.calls]
        return [there[2] for here, there in pairwise(walk) if there[1] == OWN != here[1]]

    def climbs(self) -> list[str]:
        """Calls that lead up the ranks."""
        return [
            f"{caller} calls {called}: {name}"
            for caller, called, name in self.calls
            if caller and rank_of(part_of(caller)) < rank_of(part_of(called))
        ]


@contextmanager
def watched(walk: Walk) -> Iterator[None]:
    sys.setprofile(walk.note)
    try:
        yield
    finally:
        sys.setprofile(None)


async def test_a_post_of_a_known_ispindel_takes_the_short_way(services: Services, clock: FakeClock) -> None:
    await services.clock_monitor.start()
    await services.intake.start()
    for gravity in (12.48, 12.47):  # the first one makes the device, the second one loads its past
        await services.intake.take(posted(gravity, clock.now()))
    walk = Walk()
    store = services.store
    assert isinstance(store, SqliteStore)
    await store._writer.run(lambda _: sys.setprofile(walk.note))  # the thread that commits
    with watched(walk):
        await services.intake.take(posted(12.46, clock.now()))
    await store._writer.run(lambda _: sys.setprofile(None))
    assert services.stats.stored == 3
    assert walk.calls[0][2] == "Intake.take"
    assert len(walk.entries()) <= ENTRIES_MAX, walk.entries()
    assert len(walk.climbs()) <= CLIMBS_MAX, walk.climbs()
    assert len(walk.calls) <= CALLS_MAX, len(walk.calls)


def posted(gravity: float, received_at: float) -> Payload:
    """The payload that the HTTP listener makes of a POST of an iSpindel to /ingest/ispindel."""
    body = json.dumps({**SPINDLE, "gravity": gravity}).encode()
    return Payload(body, received_at, "http /ingest/ispindel", driver="ispindel", source="192.0.2.10")
