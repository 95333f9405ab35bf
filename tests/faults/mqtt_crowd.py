"""Neighbours of the MQTT listener that mean no good, all at once, while a scenario plays."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tests import mqtt_wire as wire
from tests.mqtt_client import Client, opened
from tests.mqtt_wire import MQTT_3_1_1, MQTT_5, Will, connect, publish

SUBSCRIBERS, SILENT, FILTERERS, KEEPERS = "127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.14"
"""Their addresses: four neighbours."""

CROWD = 60
"""Connections of the silent neighbour, nearly four times what a source may have."""

AGAIN_S = 0.5
"""Until a connection that was ended is tried again."""

BIG = bytes(60_000)


@dataclass
class Crowd:
    """Subscribers that do not read, filters, a silent crowd, and sessions that are left open.

    The first numbers are connections of each kind. `filters` and `sessions` count what was sent; `ended`
    counts connections that the listener ended.
    """

    port: int
    unread: int = 4
    silent: int = CROWD
    filterers: int = 4
    keepers: int = 4
    filters: int = 0
    sessions: int = 0
    ended: int = 0
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    async def __aenter__(self) -> "Crowd":
        kinds: Sequence[tuple[Callable[[int], Awaitable[None]], int]] = (
            (self._does_not_read, self.unread),
            (self._is_silent, self.silent),
            (self._leaves_filters, self.filterers),
            (self._leaves_a_session, self.keepers),
        )
        self._tasks = [
            asyncio.create_task(self._again_and_again(attack, number))
            for attack, size in kinds
            for number in range(size)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _again_and_again(self, attack: Callable[[int], Awaitable[None]], number: int) -> None:
        while True:
            with suppress(OSError, EOFError, TimeoutError):
                await attack(number)
            self.ended += 1
            await asyncio.sleep(AGAIN_S)

    async def _does_not_read(self, number: int) -> None:
        """Want all, read nothing, and publish what has to be answered, 60 kB each and small."""
        level = MQTT_5 if number % 2 else MQTT_3_1_1
        async with opened(self.port, connect(level, f"unread{number}"), source=SUBSCRIBERS) as client:
            client.writer.transport.pause_reading()  # type: ignore[attr-defined] # of a socket it has it
            await client.send(wire.subscribe(1, ["#", "hydrometer/+"], level))
            for turn in itertools.count(1):
                mid = turn % 65_535 + 1
                content = BIG if turn % 8 == 0 else b"20.5"
                await client.send(publish("nobody/listens", content, 1, mid, level=level), wire.PING * 64)

    async def _is_silent(self, number: int) -> None:
        """Say nothing; or begin a packet and never end it."""
        begin = (b"", connect()[:7], connect(), connect() + publish("hydrometer/x", BIG)[:50_000])[number % 4]
        async with opened(self.port, begin, source=SILENT) as client:
            await client.rest()

    async def _leaves_filters(self, number: int) -> None:
        """Subscribe, 64 filters at a time, and never unsubscribe."""
        async with opened(
            self.port, connect(client_id=f"filters{number}", clean=False), source=FILTERERS
        ) as client:
            for turn in itertools.count(1):
                names = [f"home/{number}/{turn}/{each}/set" for each in range(64)]
                await client.send(wire.subscribe(turn % 65_535 + 1, names))
                if not await client.packet():
                    return
                self.filters += len(names)

    async def _leaves_a_session(self, _: int) -> None:
        """Come under a new name each time, and leave a will, a retained message and open ids of QoS 2."""
        name = f"session{next(self._numbers)}"
        will = Will(f"home/{name}/status", BIG[:4_000], 2, retain=True)
        async with opened(
            self.port, connect(client_id=name, clean=False, will=will), source=KEEPERS
        ) as client:
            messages = [publish("nobody/listens", b"x", 2, mid, retain=True) for mid in range(1, 21)]
            await client.send(b"".join(messages))
            for _message in messages:
                if not await client.packet():
                    return
            self.sessions += 1
            client.reset()


async def honest(client: Client, topic: str, bodies: Sequence[bytes], pause_s: float) -> list[float]:
    """Publish at QoS 1, one after the other; the seconds until each PUBACK."""
    loop = asyncio.get_running_loop()
    waits_s = []
    for mid, body in enumerate(bodies, 1):
        began = loop.time()
        await client.send(publish(topic, body, 1, mid))
        await client.hears(b"\x40\x02" + mid.to_bytes(2))
        waits_s.append(loop.time() - began)
        await asyncio.sleep(pause_s)
    return waits_s
