"""Parts of the demo: its fast clock, the network between its gateways, and when it opens a browser."""

import asyncio
import time

import pytest

from gateway.cli.demo_browser import may_open
from gateway.cli.demo_gateway import LapseClock
from gateway.cli.demo_link import Link

DAY_S = 86_400


def test_the_clock_begins_days_ago_and_catches_up() -> None:
    slow, fast = LapseClock(7, 7200), LapseClock(0.01, 1e9)
    assert 6.5 * DAY_S < time.time() - slow.now() <= 7 * DAY_S
    time.sleep(0.01)  # the fast one has nothing left to catch up
    assert abs(fast.now() - time.time()) < 0.5


def test_wall_time_and_time_since_boot_run_alike() -> None:
    """So the gateway sees no clock that jumps, and doubts nothing."""
    clock = LapseClock(7, 7200)
    before = clock.now() - clock.since_boot()
    time.sleep(0.1)
    assert abs(clock.now() - clock.since_boot() - before) < 120
    assert clock.since_boot() > 0


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that sends back what it gets."""
    while piece := await reader.read(100):
        writer.write(piece)
    writer.close()


async def test_a_link_passes_on_is_cut_and_mended_at_the_same_port() -> None:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        link = Link(server.sockets[0].getsockname()[1])
        await link.mend()
        port = link.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        assert not link.is_cut
        await link.cut()
        assert link.is_cut
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        await link.mend()
        assert link.port == port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"again")
        writer.write_eof()
        assert await reader.read() == b"again", "the end of one side comes through, too"
        writer.close()
        await link.cut()


@pytest.mark.parametrize(
    ("environment", "user_id", "platform", "opens"),
    [
        ({"DISPLAY": ":0"}, 1000, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, 1000, "linux", True),
        ({}, 1000, "linux", False),
        ({"DISPLAY": ":0"}, 0, "linux", False),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "10.0.0.2 1 10.0.0.3 22"}, 1000, "linux", False),
        ({}, 501, "darwin", True),
        ({"SSH_TTY": "/dev/ttys001"}, 501, "darwin", False),
        ({"DISPLAY": ":0"}, 1000, "freebsd14", False),
    ],
)
def test_a_browser_opens_where_a_person_sees_it(
    environment: dict[str, str], user_id: int, platform: str, opens: bool
) -> None:
    assert may_open(environment, user_id, platform) == opens
