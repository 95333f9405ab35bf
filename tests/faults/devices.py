"""The workload: devices over HTTP and MQTT QoS 1, each sending again what nobody said yes to."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp

from sample_devices.transports.mqtt import connect_packet, publish_packet
from sample_devices.wire.report import Login, Message
from tests.faults.ledger import Ledger
from tests.faults.readings import body_of, mark_of

ANSWER_S = 10.0
"""A device waits so long for its yes."""

AGAIN_S = 0.05
"""Before a device tries again after an error."""

PATIENCE_S = 40.0
"""A device gives a reading up that nobody took for so long, and takes the next; it was promised nothing."""

LOOK_S = 0.01

DUP = 0x08
"""MQTT 3.1.1, section 3.3.1.1."""


@dataclass
class Fleet:
    """Devices that report to one gateway; its ports stay the same over restarts."""

    ledger: Ledger
    http_port: int
    mqtt_port: int
    http_devices: int = 2
    mqtt_devices: int = 2
    pause_s: float = 0.0
    """Between two readings of a device."""
    number_from: int = 0
    without_wait: int = 0
    """Refusals without Retry-After."""
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """HTTP devices are h0, h1 ..., MQTT devices m0, m1 ..."""
        return names(self.http_devices, self.mqtt_devices)

    async def __aenter__(self) -> "Fleet":
        self._tasks = [
            asyncio.create_task((self._post if name[0] == "h" else self._publish)(name))
            for name in self.names
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def more(self, yeses: int, patience_s: float = 60.0) -> None:
        """Wait for so many more yeses."""
        wanted = self.ledger.yes + yeses
        async with asyncio.timeout(patience_s):
            while self.ledger.yes < wanted:  # noqa: ASYNC110 - any of the devices
                await asyncio.sleep(LOOK_S)

    def _marks(self, device: str) -> Iterator[str]:
        number = self.number_from
        while True:
            number += 1
            mark = mark_of(device, number)
            self.ledger.issued.add(mark)
            yield mark

    async def _post(self, device: str) -> None:
        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        async with aiohttp.ClientSession(timeout=timeout) as http:
            for mark in self._marks(device):
                began = time.monotonic()
                while not await self._posted(http, device, mark):
                    if time.monotonic() - began > PATIENCE_S:
                        break
                    await asyncio.sleep(AGAIN_S)
                await asyncio.sleep(self.pause_s)

    async def _posted(self, http: aiohttp.ClientSession, device: str, mark: str) -> bool:
        began = time.monotonic()
        url = f"http://127.0.0.1:{self.http_port}/ingest"
        try:
            async with http.post(url, data=body_of(mark, device)) as answer:
                await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError):
            self.ledger.no += 1
            return False
        if answer.status != 200:
            self.ledger.no += 1
            self.without_wait += "Retry-After" not in answer.headers
            return False
        self.ledger.write(mark, time.monotonic() - began)
        return True

    async def _publish(self, device: str) -> None:
        marks, mark, attempt, began = self._marks(device), "", 0, 0.0
        while True:
            try:
                async with connected(self.mqtt_port, device) as line:
                    while True:
                        if not mark:
                            mark, attempt, began = next(marks), 0, time.monotonic()
                        attempt += 1
                        await line.publish(device, mark, again=attempt > 1)
                        self.ledger.write(mark, time.monotonic() - began)
                        mark = ""
                        await asyncio.sleep(self.pause_s)
            except (OSError, EOFError, TimeoutError):
                self.ledger.no += 1
                if mark and time.monotonic() - began > PATIENCE_S:
                    mark = ""
                await asyncio.sleep(AGAIN_S)


@dataclass
class Line:
    """One MQTT 3.1.1 connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    packet_id: int = 0

    async def publish(self, device: str, mark: str, *, again: bool = False) -> None:
        """At QoS 1; returns with the PUBACK, raises `EOFError`, `OSError` or `TimeoutError` without one."""
        self.packet_id = self.packet_id % 65_535 + 1
        packet = publish_packet(Message(f"hydrometer/{device}", body_of(mark, device), qos=1), self.packet_id)
        self.writer.write(bytes([packet[0] | (DUP if again else 0)]) + packet[1:])
        async with asyncio.timeout(ANSWER_S):
            answer = await self.reader.readexactly(4)
        if answer != b"\x40\x02" + self.packet_id.to_bytes(2, "big"):
            raise EOFError(f"not our PUBACK: {answer.hex()}")


@asynccontextmanager
async def connected(port: int, client_id: str) -> AsyncIterator[Line]:
    """A connection whose CONNECT was accepted."""
    async with asyncio.timeout(ANSWER_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(connect_packet(Login(client_id=f"faults-{client_id}", keep_alive_s=60)))
        async with asyncio.timeout(ANSWER_S):
            connack = await reader.readexactly(4)
        if connack[3] != 0:
            raise EOFError(f"refused: {connack.hex()}")
        yield Line(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def names(http_devices: int, mqtt_devices: int) -> list[str]:
    """What a fleet's devices are called."""
    return [
        *(f"h{number}" for number in range(http_devices)),
        *(f"m{number}" for number in range(mqtt_devices)),
    ]


async def post_one(
    port: int, device: str, mark: str, ledger: Ledger, *, padding: int = 0, source: str = "127.0.0.1"
) -> tuple[int, str | None]:
    """Send one reading over HTTP from an address: status and Retry-After; 0 where nobody answered."""
    ledger.issued.add(mark)
    timeout = aiohttp.ClientTimeout(total=ANSWER_S)
    url = f"http://127.0.0.1:{port}/ingest"
    try:
        async with (
            aiohttp.ClientSession(
                timeout=timeout, connector=aiohttp.TCPConnector(local_addr=(source, 0))
            ) as http,
            http.post(url, data=body_of(mark, device, padding)) as answer,
        ):
            await answer.read()
    except (aiohttp.ClientError, TimeoutError, OSError):
        return 0, None
    if answer.status == 200:
        ledger.write(mark)
    return answer.status, answer.headers.get("Retry-After")
