"""Composition root: builds every part, starts outputs before inputs, and stops them in reverse."""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any

import aiohttp

from gateway.clock import Clock, SystemClock
from gateway.config import Settings
from gateway.control import ControlSocket
from gateway.errors import GatewayError, PortTaken, StoreInUse
from gateway.forward.forwarder import Forwarder, ForwardSettings
from gateway.forward.import_target import ImportTarget
from gateway.ingest.topics import TopicMap
from gateway.listening import Listeners, Say, shown_host
from gateway.services.parts import put_together
from gateway.store.sqlite.store import SqliteStore

log = logging.getLogger(__name__)

STOP_S = 4.4
"""Everything together; beyond it the process ends with what is committed."""

LOCK_WAIT_S = 3.0
"""How long the start waits for a command, or a gateway that is just stopping, to let go of the data."""

LOCK_STEP_S = 0.05

FIRST_KEY_NAME = "first"

SWITCH_INTERVAL_S = 0.0005
"""How long the event loop may keep the interpreter while the writer's thread waits for it.

Python's default of 5 ms is longer than a commit takes.
"""

GC_THRESHOLDS = (10_000, 20, 20)
"""Objects until a collection, and the same for older generations: Python's 700 costs a tenth of an ingest."""


class Gateway:
    """The whole daemon. `say` gets the lines that a person wants to see at the start."""

    def __init__(self, settings: Settings, say: Say, clock: Clock | None = None) -> None:
        self._settings = settings
        self._say = say
        self._clock = clock or SystemClock()
        self._topics = TopicMap(settings.mqtt_topic)
        self._store = SqliteStore(settings.data_dir)
        self._parts = put_together(self._store, settings.data_dir, self._clock)
        self._stats, self._notices = self._parts.stats, self._parts.notices
        self._intake = self._parts.intake

    async def run(self, stopped: asyncio.Event) -> None:
        """Serve until `stopped` is set, then drain and close. A part that dies stops the whole."""
        upstream_key = self._settings.upstream_key() if self._settings.upstream_url else ""
        mirror_key = self._settings.mirror_key() if self._settings.mirror_from else ""
        async with AsyncExitStack() as outputs:
            await self._open_store(outputs)
            async with asyncio.TaskGroup() as parts, AsyncExitStack() as inputs:
                if self._settings.upstream_url:
                    await self._start_forwarder(parts, inputs, self._settings.upstream_url, upstream_key)
                if self._settings.mirror_from:
                    await self._start_mirror(parts, inputs, self._settings.mirror_from, mirror_key)
                listeners = Listeners(self._settings, self._parts, self._say, self._clock)
                await listeners.start_http(inputs)
                await listeners.start_tcp(inputs)
                await self._start_mqtt(parts, inputs)
                await self._start_control(inputs)
                _keep_running(parts, inputs, self._parts.understanding.resume(), "understanding")
                self._say("Ready.")
                await stopped.wait()
                log.info("stopping")

    async def _open_store(self, outputs: AsyncExitStack) -> None:
        await self._lock_store()
        outputs.push_async_callback(self._store.close)
        first = await self._parts.access.start(first_key=FIRST_KEY_NAME)
        self._say(f"Data in {self._settings.data_dir}")
        if first is not None:
            self._say(f"Created the owner account. Its API key, shown this once: {first.key_text}")
        await self._intake.start()
        await self._parts.photos.sweep()

    async def _lock_store(self) -> None:
        deadline = self._clock.monotonic() + LOCK_WAIT_S
        while True:
            try:
                await self._store.open()
                return
            except StoreInUse:
                if self._clock.monotonic() > deadline:
                    raise
            await self._clock.sleep(LOCK_STEP_S)

    async def _start_forwarder(
        self, parts: asyncio.TaskGroup, inputs: AsyncExitStack, url: str, key: str, *, unnamed: bool = True
    ) -> None:
        client = aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
        session = await inputs.enter_async_context(client)
        batch = self._settings.forward_readings, self._settings.forward_seconds
        settings = ForwardSettings(*batch, unnamed=unnamed)
        target = ImportTarget(session, url, key, self._clock)
        forwarder = Forwarder(self._store, target, self._notices, self._stats, self._clock, settings)
        _keep_running(parts, inputs, forwarder.run(), f"forwarder {target.name}")
        self._say(f"Forwarding to {target.name}")

    async def _start_mirror(
        self, parts: asyncio.TaskGroup, inputs: AsyncExitStack, url: str, key: str
    ) -> None:
        """Copy a service on a schedule; readings of what is copied go there, whatever the upstream is."""
        # Here, because it costs memory that a gateway without a mirror need not pay.
        from gateway.mirror.run import Source
        from gateway.mirror.schedule import MirrorSchedule

        same = self._settings.mirrors_upstream
        if not same:
            await self._start_forwarder(parts, inputs, url, key, unnamed=False)
        source = Source(url, key, self._settings.mirror_photos, unnamed=same)
        schedule = MirrorSchedule(self._parts, source, self._settings.mirror_hours)
        _keep_running(parts, inputs, schedule.run(), "mirror")
        self._say(f"Mirroring {source.name} every {self._settings.mirror_hours:g} hours")

    async def _start_mqtt(self, parts: asyncio.TaskGroup, inputs: AsyncExitStack) -> None:
        if self._settings.no_mqtt:
            return
        # Here, because paho and amqtt cost memory that a gateway without MQTT need not pay.
        from gateway.ingest.mqtt import MqttListener
        from gateway.ingest.paho_bridge import Bridge, MqttUrl

        if self._settings.mqtt_url is not None:
            url = MqttUrl.parse(self._settings.mqtt_url)
            self._say(f"MQTT from the broker at {url.host}:{url.port}")
        else:
            port = await self._start_broker(inputs)
            if port is None:
                return
            url = MqttUrl("127.0.0.1", port)
        bridge = Bridge(url, _client_id(self._settings.data_dir), self._topics.filters, self._clock)
        listener = MqttListener(bridge, self._topics, self._intake, self._store, self._stats, self._clock)
        bridge.start()
        inputs.push_async_callback(bridge.stop)
        inputs.push_async_callback(listener.store_open)
        _keep_running(parts, inputs, listener.run(), "mqtt")

    async def _start_broker(self, inputs: AsyncExitStack) -> int | None:
        """The embedded broker's port, or None where it is taken: HTTP goes on without it."""
        from gateway.ingest.broker import EmbeddedBroker

        broker = EmbeddedBroker(self._settings.host or "0.0.0.0", self._settings.mqtt_port)  # noqa: S104
        try:
            await broker.start()
        except (PortTaken, OSError) as error:
            self._stats.parts["mqtt"] = str(error)
            self._say(f"No MQTT: {error}")
            return None
        inputs.push_async_callback(broker.stop)
        self._say(f"MQTT broker on mqtt://{shown_host(self._settings.host)}:{broker.port}")
        return broker.port

    async def _start_control(self, inputs: AsyncExitStack) -> None:
        control = ControlSocket(self._settings.data_dir, self._parts)
        await control.start()
        inputs.push_async_callback(control.stop)


def _keep_running(
    parts: asyncio.TaskGroup, inputs: AsyncExitStack, coroutine: Coroutine[Any, Any, None], name: str
) -> None:
    """Run a part as a named task until the inputs are closed; its death stops the daemon."""
    task = parts.create_task(coroutine, name=name)

    async def end() -> None:
        task.cancel()
        await asyncio.wait([task])

    inputs.push_async_callback(end)


def _client_id(directory: Path) -> str:
    """The name of our session at the broker: the same after every start, another for another gateway."""
    return f"hydrometer-gateway-{blake2b(str(directory.resolve()).encode(), digest_size=4).hexdigest()}"


def _give_up() -> None:
    log.warning("stopping took longer than %s s; what is committed is safe", STOP_S)
    os._exit(0)


async def _serve(settings: Settings, say: Say) -> None:
    stopped = asyncio.Event()

    def stop() -> None:
        if stopped.is_set():
            os._exit(0)
        stopped.set()
        # A thread, not the loop: Python itself waits at its end, for ever, for threads that others left.
        last_resort = threading.Timer(STOP_S, _give_up)
        last_resort.daemon = True
        last_resort.start()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    await Gateway(settings, say).run(stopped)


def serve(settings: Settings, say: Say) -> None:
    """Run the daemon until SIGTERM or SIGINT; a second signal ends it at once."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()  # what the imports made stays; collections need not look at it
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        asyncio.run(_serve(settings, say))
    except BaseExceptionGroup as group:
        ours = group.subgroup(GatewayError)
        if ours is not None and len(ours.exceptions) == len(group.exceptions) == 1:
            raise ours.exceptions[0] from group
        raise
