"""Mutants of good MQTT streams, for the parser alone.

`python -m tests.hostile.mqtt_packets --count 1000000` prints what came of them. A mutant must be read or
refused with `Malformed`, in bounded memory, and the same however it is cut.
"""

import argparse
import random
import time
from collections import Counter

from gateway.transports.mqtt_fields import Malformed
from gateway.transports.mqtt_packets import PUBLISH_BYTES, Packet, Packets
from tests import mqtt_wire as wire
from tests.mqtt_wire import LEVELS, MQTT_5, Will

INTERESTING = (0x00, 0x01, 0x02, 0x0B, 0x10, 0x11, 0x23, 0x26, 0x30, 0x62, 0x7F, 0x80, 0x82, 0xC0, 0xE0, 0xFF)
"""Bytes that mean something somewhere: packets, properties, ends of lengths."""

HEADER_BYTES = 5


def streams(level: int, topic: str = "hydrometer/red") -> list[bytes]:
    """Good streams to be mutated, each from CONNECT on, with messages on this topic."""
    is_5 = level == MQTT_5
    connects = (
        wire.connect(level, "mutant", user="u", password="p"),
        wire.connect(level, "m", clean=False, will=Will("w/t", b"gone", 1), raw=b"\x11\0\0\0\x09\x21\0\x05"),
    )
    raw = b"\x01\x01\x02\0\0\0\x05\x03\0\x01t\x26\0\x01k\0\x01v" if is_5 else b""
    rest = (
        wire.publish(topic, b'{"angle":45}', 1, 1, level=level),
        wire.publish(topic, b'{"angle":46}', 2, 2, level=level, raw=raw) + wire.release(2),
        wire.subscribe(3, ["#", "home/lamp/set"], level) + wire.unsubscribe(4, ["#"], level),
        wire.publish(f"{topic}/tilt", b"45", level=level, retain=True) + wire.PING + wire.GOODBYE,
        wire.packet(0xE0, b"\x04\x05\x11\0\0\0\x01") if is_5 else wire.GOODBYE,
    )
    return [first + more for first in connects for more in (*rest, b"".join(rest))]


def packets_of(stream: bytes) -> int:
    """The number of packets in a good stream."""
    return len(read([stream])[0])


def mutant(stream: bytes, chance: random.Random) -> bytes:
    """The stream with one to four changes: bits, bytes, lengths, pieces cut out, doubled or put in."""
    data = bytearray(stream)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) or 1)
        kind = chance.randrange(6)
        if kind == 0 and data:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and data:
            data[at] = chance.choice(INTERESTING)
        elif kind == 2:
            del data[at : at + chance.randint(1, 8)]
        elif kind == 3:
            data[at:at] = data[at : at + chance.randint(1, 40)]
        elif kind == 4:
            data[at:at] = bytes(chance.choice(INTERESTING) for _ in range(chance.randint(1, 5)))
        else:
            del data[at:]
    return bytes(data)


def read(pieces: list[bytes]) -> tuple[list[Packet], int | None]:
    """Packets, and the code of the fault that ended them."""
    packets, found = Packets(), []
    try:
        for piece in pieces:
            packets.feed(piece)
            while (one := packets.next()) is not None:
                found.append(one)
            assert packets.unfinished <= HEADER_BYTES + PUBLISH_BYTES
    except Malformed as error:
        return found, error.code
    return found, None


def fuzz(count: int, seed: int) -> Counter[str]:
    """Read so many mutants; raises what the parser raises, with the mutant."""
    chance = random.Random(seed)  # noqa: S311 - no secrets
    good = [stream for level in LEVELS for stream in streams(level)]
    counts: Counter[str] = Counter()
    for _ in range(count):
        data = mutant(chance.choice(good), chance)
        cut = chance.randrange(len(data) + 1)
        try:
            whole = read([data])
            assert read([data[:cut], data[cut:]]) == whole
        except Exception as error:
            error.add_note(f"mutant: {data.hex()}, cut at {cut}")
            raise
        counts["packets"] += len(whole[0])
        counts["whole" if whole[1] is None else "refused"] += 1
    return counts


def main() -> None:
    """Read the options, and the mutants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    counts = fuzz(options.count, options.seed)
    seconds = time.monotonic() - began
    print(f"{options.count:,} mutants, seed {options.seed}, {seconds:.1f} s: {dict(counts)}")


if __name__ == "__main__":
    main()
