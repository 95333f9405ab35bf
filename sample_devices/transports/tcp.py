"""Send bytes over a raw TCP connection of their own and take whatever comes back for two seconds.

Source: universam1/iSpindel `pio/lib/Sender/Sender.cpp` (`sendTCP`: CONNTIMEOUT 2000, then all that is
there; devices.md 5.4).  The firmware takes any answer, and none, for success.
"""

import asyncio

from sample_devices.transports.errors import NotAnswered, reason

CONNECT_DEADLINE_S = 5.0  # of the ESP8266's WiFiClient
REPLY_DEADLINE_S = 2.0
MAX_REPLY_BYTES = 4096


async def send(host: str, port: int, data: bytes, deadline_s: float = REPLY_DEADLINE_S) -> bytes:
    """Send the bytes and return the reply, empty where none came, or raise NotAnswered with the reason."""
    try:
        async with asyncio.timeout(CONNECT_DEADLINE_S):
            reader, writer = await asyncio.open_connection(host, port)
    except OSError as failure:
        raise NotAnswered(f"{host}:{port}: {reason(failure, CONNECT_DEADLINE_S)}") from failure
    try:
        writer.write(data)
        await writer.drain()
        return await _reply(reader, deadline_s)
    except OSError as failure:
        raise NotAnswered(f"{host}:{port}: {reason(failure, deadline_s)}") from failure
    finally:
        writer.close()


async def _reply(reader: asyncio.StreamReader, deadline_s: float) -> bytes:
    try:
        async with asyncio.timeout(deadline_s):
            return await reader.read(MAX_REPLY_BYTES)
    except TimeoutError:
        return b""
