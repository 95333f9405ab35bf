"""M1 and M2: the gateway killed at any moment of a message; the broker restarted, killed and away."""

import asyncio
import random
from contextlib import AsyncExitStack

from tests.faults import mqtt_floods, mqtt_hostile, mqtt_links, mqtt_neighbours
from tests.faults.devices import Fleet
from tests.faults.drain import drained
from tests.faults.frame import Run, Scenario, program
from tests.faults.gateways import Gateway
from tests.faults.ledger import Ledger
from tests.faults.mqtt_brokers import STOCK, Mosquitto, bench, connected_within

SLOW_DISK_US = 10_000
"""Before and after each fdatasync, so that most kills hit between receive, commit and PUBACK."""

SLOW_DISK = (
    *("strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e"),
    f"inject=fdatasync:delay_enter={SLOW_DISK_US}:delay_exit={SLOW_DISK_US}",
)

SEGMENT = 50
"""Kills with one data directory, before all of it is judged."""

KILL_WITHIN_S = 0.06

MOSQUITTO_PAUSE_S = 0.05
"""Of a device: Mosquitto writes all that waits at every message, and the gateway is dead most of the time."""

RECONNECT_S = 30.0
"""M2: at most so long after the broker's return."""

SAVED_S = 1.6
"""Mosquitto has written down what it acknowledged: `autosave_interval` is 1."""

DOWN_S, LONG_DOWN_S, LONG_FROM = 2.0, 600.0, 10
"""How long the broker stays away; from so many cycles on, once for ten minutes."""


async def play_m1(run: Run) -> None:
    """Half of the kills with our listener, half with Mosquitto; the mutation is of the former."""
    shares = [run.n] if run.mutated else run.shares(2)
    async with asyncio.TaskGroup() as lanes:
        for lane, share in enumerate(shares):
            lanes.create_task(_kills(run, lane, share))


async def _kills(run: Run, lane: int, kills: int) -> None:
    for number, first in enumerate(range(0, kills, SEGMENT)):
        chance = random.Random(run.seed * 100 + lane * 50 + number)  # noqa: S311 - no secrets
        async with AsyncExitStack() as stack:
            await _segment(run, stack, f"{lane}-{number}", min(SEGMENT, kills - first), chance)


async def _segment(run: Run, stack: AsyncExitStack, name: str, kills: int, chance: random.Random) -> None:
    mosquitto = Mosquitto(run.sub(f"{name}-mosquitto")) if name[0] == "1" else None
    if mosquitto is not None:
        await mosquitto.start()
        stack.push_async_callback(mosquitto.kill)
    gateway, upstream, ledger = await bench(run, stack, name, mosquitto)
    gateway.prefix, gateway.weak = SLOW_DISK, "impatient" if run.mutated else ""
    port = gateway.mqtt_port if mosquitto is None else mosquitto.port
    pause_s = 0.0 if mosquitto is None else MOSQUITTO_PAUSE_S
    fleet = Fleet(ledger, gateway.http_port, port, http_devices=0, pause_s=pause_s)
    if mosquitto is not None:  # it keeps nothing for a client that it has never seen
        run.expect(await _started(gateway), f"{name}: no start: {gateway.lines[-3:]}")
        await gateway.kill()
    async with fleet:
        for _ in range(kills):
            if not run.expect(await _started(gateway), f"{name}: no start: {gateway.lines[-3:]}"):
                return
            await fleet.more(chance.randint(1, 10))
            await asyncio.sleep(chance.uniform(0, KILL_WITHIN_S))
            await gateway.kill()
            run.step()
    gateway.prefix = ()
    if run.expect(await gateway.start(), f"{name}: no start: {gateway.lines[-3:]}"):
        await drained(run, gateway, upstream, ledger, where=f"{name}: ")


async def _started(gateway: Gateway) -> bool:
    """Whether it is ready and listens, or has its broker."""
    return await gateway.start() and await connected_within(gateway, RECONNECT_S) is not None


async def play_m2(run: Run) -> None:
    """In turn: stopped under load; killed with messages for a gateway that is down; away for a while."""
    async with AsyncExitStack() as stack:
        mosquitto = Mosquitto(run.sub("mosquitto"), STOCK if run.mutated else ())
        await mosquitto.start()
        stack.push_async_callback(mosquitto.kill)
        gateway, upstream, ledger = await bench(run, stack, "data", mosquitto)
        run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}")
        run.expect(await connected_within(gateway, RECONNECT_S) is not None, "never connected")
        for cycle in range(run.n):
            if cycle % 3 == 0:
                await _stopped_under_load(gateway, mosquitto, ledger, cycle)
            elif cycle % 3 == 1:
                await _killed_with_messages(run, gateway, mosquitto, ledger, cycle)
            else:
                await _away(run, mosquitto, cycle)
            within = await connected_within(gateway, 2 * RECONNECT_S)
            if run.expect(within is not None and within <= RECONNECT_S, f"back after {within} s"):
                run.highest("reconnect_s", round(within or 0.0, 1))
            run.step()
        await drained(run, gateway, upstream, ledger)


def _fleet(gateway: Gateway, mosquitto: Mosquitto, ledger: Ledger, cycle: int) -> Fleet:
    number = 10_000 * (cycle + 1)
    return Fleet(ledger, gateway.http_port, mosquitto.port, http_devices=0, number_from=number, pause_s=0.002)


async def _stopped_under_load(gateway: Gateway, mosquitto: Mosquitto, ledger: Ledger, cycle: int) -> None:
    async with _fleet(gateway, mosquitto, ledger, cycle) as fleet:
        await fleet.more(50)
        await mosquitto.stop()
        await mosquitto.start()
        await fleet.more(50)


async def _killed_with_messages(
    run: Run, gateway: Gateway, mosquitto: Mosquitto, ledger: Ledger, cycle: int
) -> None:
    await gateway.stop()
    async with _fleet(gateway, mosquitto, ledger, cycle) as fleet:
        await fleet.more(50)
    await asyncio.sleep(SAVED_S)
    await mosquitto.kill()
    await mosquitto.start()
    run.expect(await gateway.start(), f"no start: {gateway.lines[-3:]}")


async def _away(run: Run, mosquitto: Mosquitto, cycle: int) -> None:
    await mosquitto.stop()
    is_long = run.n >= LONG_FROM and cycle == 2
    await asyncio.sleep(LONG_DOWN_S if is_long else DOWN_S)
    await mosquitto.start()


SCENARIOS = (
    Scenario(
        "M1",
        "kill -9 between receive, commit and PUBACK: our listener and Mosquitto",
        unit="kills",
        full=500,
        small=4,
        play=play_m1,
        mutation="PUBACK before the commit",
        mutation_n=1,
        needs=(program("strace"), program("mosquitto")),
    ),
    Scenario(
        "M2",
        "the broker restarted, killed, and away (for ten minutes, once)",
        unit="cycles",
        full=30,
        small=3,
        play=play_m2,
        mutation="Mosquitto's own settings",
        mutation_n=2,
        needs=(program("mosquitto"),),
    ),
    *mqtt_links.SCENARIOS,
    *mqtt_floods.SCENARIOS,
    *mqtt_hostile.SCENARIOS,
    *mqtt_neighbours.SCENARIOS,
)
