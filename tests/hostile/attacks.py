"""The attacks, each a coroutine that runs for some seconds in a process of its own and counts its deeds."""

import asyncio
import itertools
import json
import random
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tests import mqtt_wire
from tests.hostile.mqtt_packets import mutant, streams
from tests.hostile.target import HOST

FLOODERS = ("127.0.0.2", "127.0.0.3")
CROWD, MUTANT = "127.0.0.4", "127.0.0.5"
"""The addresses of attackers: one or two neighbours an attack."""

FLOOD_BYTES = 60_000
"""Bytes of a message of the flood."""

FILTERS_A_PACKET = 64
WAIT_S = 2.0
"""Seconds that an attacker waits for an answer."""

CrowdPart = tuple[str, bytes]


@dataclass
class Attack:
    """What an attack knows: the ports by part, its seconds, its size from 0 to 1, and its deeds so far."""

    ports: dict[str, int]
    seconds: float
    size: float = 1.0
    seed: int = 0
    deeds: Counter[str] = field(default_factory=Counter)
    ledger: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ends_at = time.monotonic() + self.seconds

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.ends_at

    def scaled(self, number: int) -> int:
        """The number at this attack's size."""
        return max(1, int(number * self.size))


async def connected(port: int, address: str) -> socket.socket:
    """A socket that is connected from this address, and does not block."""
    sock = socket.socket()
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.bind((address, 0))
    try:
        await asyncio.get_running_loop().sock_connect(sock, (HOST, port))
    except BaseException:
        sock.close()
        raise
    return sock


async def flood(attack: Attack, *, subscribers: int = 0) -> None:
    """Publish large messages as fast as they go; subscribers ask for all and read nothing."""
    silent = []
    for number in range(subscribers):
        with suppress(OSError):
            sock = await connected(attack.ports["mqtt"], FLOODERS[number % 2])
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            packets = mqtt_wire.connect(client_id=f"silent-{number}", keep_alive=0) + mqtt_wire.subscribe(
                1, ["#"]
            )
            await asyncio.get_running_loop().sock_sendall(sock, packets)
            silent.append(sock)
    await asyncio.gather(*(_flood_from(attack, address) for address in FLOODERS))
    for sock in silent:
        sock.close()


async def _flood_from(attack: Attack, address: str) -> None:
    topics = itertools.cycle(["hydrometer/flood", "elsewhere/flood", "ispindel/flood/angle"])
    messages = [mqtt_wire.publish(next(topics), random.Random(n).randbytes(FLOOD_BYTES)) for n in range(3)]  # noqa: S311
    loop = asyncio.get_running_loop()
    while not attack.is_over:
        with suppress(OSError, TimeoutError):
            sock = await connected(attack.ports["mqtt"], address)
            try:
                await loop.sock_sendall(sock, mqtt_wire.connect(client_id="flood", keep_alive=0))
                for message in itertools.cycle(messages):
                    async with asyncio.timeout(max(0.1, attack.ends_at - time.monotonic())):
                        await loop.sock_sendall(sock, message)
                    attack.deeds["messages"] += 1
            finally:
                sock.close()
        await asyncio.sleep(0.05)


async def crowd(attack: Attack, *, part: str, begin: bytes) -> None:
    """Open connections of one source as fast as they go, each silent or with half a packet in it."""
    wanted, loop = attack.scaled(2_000), asyncio.get_running_loop()
    ours: list[socket.socket] = []
    while not attack.is_over:
        for sock in [each for each in ours if _is_closed(each)]:
            sock.close()
            ours.remove(sock)
            attack.deeds["closed"] += 1
        for _ in range(min(64, wanted - len(ours))):
            with suppress(OSError):
                sock = await connected(attack.ports[part], CROWD)
                ours.append(sock)
                attack.deeds["opened"] += 1
                await loop.sock_sendall(sock, begin)
        await asyncio.sleep(0.02)
    for sock in ours:
        sock.close()


def _is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(65_536) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


async def filters(attack: Attack) -> None:
    """Leave filters behind, over connections whose sessions are to be kept; this machine has no rate."""
    wanted, loop = attack.scaled(100_000), asyncio.get_running_loop()
    while attack.deeds["filters"] < wanted and not attack.is_over:
        with suppress(OSError, TimeoutError):
            sock = await connected(attack.ports["mqtt"], HOST)
            try:
                name = f"leaver-{attack.deeds['filters']}"
                await loop.sock_sendall(sock, mqtt_wire.connect(client_id=name, clean=False))
                for mid in range(1, 200):
                    names = [f"a/{mid}/{n}/+" for n in range(FILTERS_A_PACKET)]
                    async with asyncio.timeout(WAIT_S):
                        await loop.sock_sendall(sock, mqtt_wire.subscribe(mid, names))
                        if not await loop.sock_recv(sock, 65_536):
                            break
                    attack.deeds["filters"] += FILTERS_A_PACKET
            finally:
                sock.close()
        await asyncio.sleep(0.01)


async def names(attack: Attack) -> None:
    """Come from this machine under many client ids, with a will, retained and open QoS 2 messages each."""
    wanted, loop = attack.scaled(20_000), asyncio.get_running_loop()
    while attack.deeds["ids"] < wanted and not attack.is_over:
        with suppress(OSError, TimeoutError):
            sock = await connected(attack.ports["mqtt"], HOST)
            try:
                will = mqtt_wire.Will("hydrometer/will", b"x" * 1000, 2, retain=True)
                packets = mqtt_wire.connect(client_id=f"id-{attack.deeds['ids']}", clean=False, will=will)
                packets += mqtt_wire.publish("left/open", b"x" * 1000, 2, 1, retain=True)
                async with asyncio.timeout(WAIT_S):
                    await loop.sock_sendall(sock, packets)
                    if await loop.sock_recv(sock, 64):
                        attack.deeds["ids"] += 1
            finally:
                sock.close()
        attack.deeds["tries"] += 1


async def mutants(attack: Attack) -> None:
    """Send broken packets on live connections; from this machine, where no rate slows them down."""
    wanted, loop, chance = attack.scaled(1_000_000), asyncio.get_running_loop(), random.Random(attack.seed)  # noqa: S311
    good = [stream for level in mqtt_wire.LEVELS for stream in streams(level)]
    while attack.deeds["mutants"] < wanted and not attack.is_over:
        with suppress(OSError, TimeoutError):
            sock = await connected(attack.ports["mqtt"], MUTANT if chance.random() < 0.01 else HOST)
            try:
                # Until one of them ends the connection: after that nothing is read.
                for _ in range(50):
                    attack.deeds["mutants"] += 1
                    await loop.sock_sendall(sock, mutant(chance.choice(good), chance))
            finally:
                sock.close()
        if attack.deeds["mutants"] % 50 == 0:
            await asyncio.sleep(0)


async def inventions(attack: Attack) -> None:
    """Invent devices and send garbage by HTTP from this machine; note each that was answered 200."""
    readings, garbage = attack.scaled(10_000), attack.scaled(100_000)
    share = max(1, garbage // readings)
    reader, writer = await asyncio.open_connection(HOST, attack.ports["http"])
    for number in range(readings):
        if attack.is_over:
            break
        reading = {
            "name": f"invented-{number}", "ID": 10_000_000 + number, "angle": 25.5, "temperature": 20.1,
            "temp_units": "C", "battery": 3.9, "gravity": 12.5,
        }  # fmt: skip
        pieces = [b"garbage %d.%d" % (number, n) * 8 for n in range(share)]
        for body in (json.dumps(reading).encode(), *pieces):
            is_reading = body.startswith(b"{")
            try:
                status = await _post(reader, writer, body)
            except (OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection(HOST, attack.ports["http"])
                continue
            attack.deeds[f"{'readings' if is_reading else 'garbage'} {status}"] += 1
            if status == 200 and is_reading:
                attack.ledger.append((f"invented-{number}", status))
    writer.close()


async def _post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> int:
    writer.write(b"POST /ingest HTTP/1.1\r\nHost: gateway\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            await reader.readexactly(int(line[15:]))
    if b"\r\nconnection: close" in head.lower():
        writer.close()
        raise ConnectionResetError
    return int(head.split()[1])


async def documents(attack: Attack) -> None:
    """Ask for the largest documents that need no key, as fast as they come, and read none of them."""
    loop = asyncio.get_running_loop()
    request = b"".join(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % path for path in KEYLESS_PATHS)
    while not attack.is_over:
        with suppress(OSError):
            socks = [await connected(attack.ports["http"], address) for address in FLOODERS for _ in range(8)]
            for sock in socks:
                await loop.sock_sendall(sock, request * 8)
                attack.deeds["requests"] += 8 * len(KEYLESS_PATHS)
            await asyncio.sleep(0.2)
            for sock in socks:
                sock.close()


KEYLESS_PATHS = (b"/openapi.json", b"/docs", b"/healthz")

HALF_HTTP = b"POST /ingest HTTP/1.1\r\nHost: gate"
HALF_MQTT = mqtt_wire.connect(client_id="half")[:9]
HALF_TCP = b'{"name": "half'


def _flooding(subscribers: int) -> Callable[[Attack], Awaitable[None]]:
    return lambda attack: flood(attack, subscribers=subscribers)


def _crowding(part: str, begin: bytes) -> Callable[[Attack], Awaitable[None]]:
    return lambda attack: crowd(attack, part=part, begin=begin)


ATTACKS: dict[str, Sequence[Callable[[Attack], Awaitable[None]]]] = {
    "flood": [_flooding(0)],
    "flood-subscribed": [_flooding(2)],
    "crowd-http": [_crowding("http", b""), _crowding("http", HALF_HTTP)],
    "crowd-mqtt": [_crowding("mqtt", b""), _crowding("mqtt", HALF_MQTT)],
    "crowd-tcp": [_crowding("tcp", b""), _crowding("tcp", HALF_TCP)],
    "filters": [filters],
    "names": [names],
    "documents": [documents],
    "mutants": [mutants],
    "inventions": [inventions],
}
"""Each attack's parts, which run side by side."""

EVERYTHING = tuple(name for name in ATTACKS if name != "flood")


def run(name: str, attack: Attack) -> Attack:
    """Run the parts of an attack, or of all of them; return it with its deeds."""
    parts = [part for each in (EVERYTHING if name == "everything" else (name,)) for part in ATTACKS[each]]

    async def together() -> None:
        await asyncio.gather(*(part(attack) for part in parts))

    asyncio.run(together())
    return attack
