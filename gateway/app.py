"""Composition root: builds every part, starts outputs before inputs, and stops them in reverse."""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gateway import site
from gateway.clock import Clock, SystemClock
from gateway.domain.texts import shown_url
from gateway.errors import GatewayError, StoreInUse, StoreUnavailable
from gateway.forward.forwarding import Forwarding, targets_of
from gateway.forward.kinds.table import Surroundings
from gateway.forward.schedule import ForwardSettings
from gateway.http.unix import UnixListener, is_served
from gateway.interfaces import is_loopback
from gateway.listening import MQTT, MQTTS, WITHOUT, Listeners, OnMessage, named_together
from gateway.network import Admission
from gateway.services.build import build_services
from gateway.services.key_files import first_key_file, keep_first_key
from gateway.services.upkeep import Retention, Upkeep
from gateway.settings import Settings
from gateway.stats import BROKER
from gateway.store.local import LocalStore
from gateway.tls.certificate import CertificateFiles
from gateway.transports.mqtt_link import MessageSource, advice_of, broker_of
from gateway.transports.topics import TopicMap

if TYPE_CHECKING:
    from gateway.transports.mqtt_listener import MqttListener

log = logging.getLogger(__name__)

STOP_S = 4.4
"""Seconds that the whole stop may take; after that the process ends, and committed readings are safe."""

LOCK_WAIT_S = 3.0
"""Seconds that a start waits for a gateway that is stopping."""

COMMAND_WAIT_S = 30.0
"""Seconds that a start waits for commands that have the data."""

LOCK_STEP_S = 0.05

FIRST_KEY_NAME = "first"

SWITCH_INTERVAL_S = 0.0005
"""Seconds that the event loop may keep the interpreter while the writer's thread waits for it.

Python's default of 5 ms is longer than a commit takes.
"""

GC_THRESHOLDS = (10_000, 20, 20)
"""Thresholds of garbage collection, youngest generation first: Python's 700 costs a tenth of an ingest."""


class Gateway:
    """The whole daemon. `on_message` gets the lines that a person reads at the start."""

    def __init__(
        self,
        settings: Settings,
        on_message: OnMessage,
        clock: Clock | None = None,
        *,
        on_terminal: bool = False,
    ) -> None:
        """`on_terminal` says that a person reads the messages, and that no journal keeps them."""
        self._settings = settings
        self._on_message = on_message
        self._on_terminal = on_terminal
        self._clock = clock or SystemClock()
        self._store = LocalStore(settings.data_dir, quota_bytes=settings.quota, repair=True)
        self._parts = build_services(self._store, settings.data_dir, self._clock, settings.names_an_hour)
        self._stats, self._notices = self._parts.stats, self._parts.notices
        self._topics = TopicMap(settings.mqtt_topic, unread=self._stats.unread)
        self._parts.page.fixed_brewery = settings.brewery or ""
        self._parts.page.lan_view = settings.lan_view
        self._intake = self._parts.intake
        self._intake.inbox.asks = settings.new_devices == "ask"
        self._admission = Admission(self._clock)
        self._certificate: CertificateFiles | None = None

    def reload(self) -> None:
        """Read the certificate and its key again. Without TLS there is nothing to read."""
        if self._certificate is None:
            log.info("nothing to read again: there is no certificate")
        else:
            self._certificate.request_reload()

    async def run(self, stopped: asyncio.Event) -> None:
        """Serve until `stopped` is set, then drain and close. If one part dies, stop all parts."""
        if self._settings.upstream_url:
            self._settings.upstream_key()  # a mistake in the key file stops the start here
        mirror_key = self._settings.mirror_key() if self._settings.mirror_from else ""
        broker_of(self._settings)  # so does one in its address or its password file
        if self._settings.ha_discovery:
            from gateway.integrations.home_assistant.topics import check

            check(self._settings.mqtt_topic, self._settings.ha_prefix)
        if self._settings.tls_cert is not None and self._settings.tls_key is not None:
            pair = self._settings.tls_cert, self._settings.tls_key
            self._certificate = CertificateFiles(*pair, self._stats, self._clock)
        async with AsyncExitStack() as outputs:
            await self._lock_store()
            outputs.push_async_callback(self._store.close)
            outputs.push_async_callback(self._note_keys)
            outputs.callback(self._parts.photos.stop)
            # The ports before the first key: a start that fails has none to show.
            listeners = Listeners(
                self._settings, self._parts, self._admission, self._on_message, self._clock, self._certificate
            )
            outputs.callback(listeners.close)
            listeners.bind()
            shown_key = await self._start_services()
            async with asyncio.TaskGroup() as parts, AsyncExitStack() as inputs:
                timekeeping = self._parts.clock_monitor.run(self._parts.retiming.settle)
                _keep_running(parts, inputs, timekeeping, "clock")
                _keep_running(parts, inputs, self._parts.insight.run(), "insight")
                await self._start_forwarding(parts, inputs, listeners)
                if self._settings.mirror_from:
                    await self._start_mirror(parts, inputs, self._settings.mirror_from, mirror_key)
                if self._certificate is not None:
                    _keep_running(parts, inputs, self._certificate.run(), "certificate")
                await listeners.start_http(inputs)
                if shown_key is not None:
                    for line in login_by_phone(self._parts.page.address, shown_key):
                        self._on_message(line)
                await listeners.start_tcp(inputs)
                await self._start_mqtt(parts, inputs, listeners)
                await self._start_home_assistant(parts, inputs)
                await self._start_channels(parts, inputs, listeners)
                socket = UnixListener(site.build(self._parts, door="socket"), self._settings.data_dir)
                await socket.start()
                inputs.push_async_callback(socket.stop)
                self._start_upkeep(parts, inputs)
                self._start_alarms(parts, inputs)
                listeners.warn_of_the_internet()
                missing = named_together(listeners.missing)
                self._on_message(f"{WITHOUT}{missing}." if missing else "Ready.")
                await stopped.wait()
                log.info("stopping")

    async def _start_services(self) -> str | None:
        """Load everything; return the first key if a person at a terminal sees it now."""
        data_dir = self._settings.data_dir
        first = await self._parts.access.start(
            first_key=FIRST_KEY_NAME, keep=partial(keep_first_key, data_dir)
        )
        await self._parts.logins.start()
        await self._parts.links.start()
        await self._parts.page.start()
        await self._parts.alarms.start()
        self._on_message(f"Data in {data_dir}")
        waiting = first_key_file(data_dir)
        if first is not None and self._on_terminal:
            self._on_message(f"Created the owner account. Its API key, shown this once: {first.key_text}")
            waiting.unlink()
        elif waiting.exists():
            created = "Created the owner account. " if first is not None else ""
            self._on_message(
                f"{created}Its API key is in {waiting}; `hydrometer-gateway keys first` shows it and removes "
                "the file."
            )
        try:
            await self._store.audit.note_options(self._settings.shown_options())
        except StoreUnavailable as error:  # the next start sees the difference, too
            log.warning("audit: options that differ are not noted: %s", error)
        await self._parts.clock_monitor.start()
        await self._intake.start()
        if not (await self._store.upkeep.condition()).damages:  # else files may have lost their rows only
            await self._parts.photos.sweep()
        return first.key_text if first is not None and self._on_terminal else None

    async def _note_keys(self) -> None:
        with suppress(StoreUnavailable):  # a stop waits for no disk: last uses are no readings
            await self._parts.access.note()

    async def _lock_store(self) -> None:
        began, told = self._clock.monotonic(), False
        while True:
            try:
                await self._store.open()
                return
            except StoreInUse as error:
                waited_s = self._clock.monotonic() - began
                if waited_s > LOCK_WAIT_S and is_served(data_dir := self._settings.data_dir):
                    holder = str(error).partition(" open")[2]
                    raise StoreInUse(
                        f"a gateway runs already with {data_dir}{holder}; commands work beside it"
                    ) from error
                if waited_s > COMMAND_WAIT_S:
                    raise
                if waited_s > LOCK_WAIT_S and not told:
                    self._on_message(f"Waiting: {error}")
                    told = True
            await self._clock.sleep(LOCK_STEP_S)

    async def _start_forwarding(
        self, parts: asyncio.TaskGroup, inputs: AsyncExitStack, listeners: Listeners
    ) -> None:
        await self._store.targets.take_options(targets_of(self._settings))
        batch = ForwardSettings(self._settings.forward_readings, self._settings.forward_seconds)
        targets = self._parts.targets
        targets.around = Surroundings(listeners.ports, () if self._settings.no_mqtt else self._topics.filters)
        forwarding = Forwarding(
            self._store, self._notices, self._stats, self._clock, batch,
            changed=targets.changed, states=targets.states, held_back=self._parts.clock_monitor.held_back,
            around=targets.around,
        )  # fmt: skip
        _keep_running(parts, inputs, forwarding.run(), "forwarding")
        for target in await self._store.targets.all():
            self._on_message(f"Forwarding to {target.shown}" + (" is paused" if target.paused else ""))

    async def _start_mirror(
        self, parts: asyncio.TaskGroup, inputs: AsyncExitStack, url: str, key: str
    ) -> None:
        """Copy a service on a schedule."""
        # Here, because it costs memory that a gateway without a mirror need not pay.
        from gateway.mirror.run import MirrorSource
        from gateway.mirror.schedule import MirrorSchedule

        same = self._settings.mirrors_upstream
        source = MirrorSource(url, key, self._settings.mirror_photos, unnamed=same)
        schedule = MirrorSchedule(self._parts, source, self._settings.mirror_hours)
        _keep_running(parts, inputs, schedule.run(), "mirror")
        self._on_message(f"Mirroring {shown_url(source.name)} every {self._settings.mirror_hours:g} hours")

    async def _start_channels(
        self, parts: asyncio.TaskGroup, inputs: AsyncExitStack, listeners: Listeners
    ) -> None:
        """Send messages about alarms through the channels."""
        from gateway.notify.outbox import Outbox

        broker = broker_of(self._settings)
        publish = None
        if broker is not None:
            name = f"hydrometer-gateway-{await self._store.alarms.instance()}-alarms"

            async def publish(topic: str, payload: bytes) -> None:
                from gateway.transports import paho_publish

                await paho_publish.publish(broker, name, topic, payload)

        outbox = Outbox(
            self._store, self._parts.channels, self._notices, self._clock,
            clock_known=lambda: self._parts.clock_monitor.doubt is None,
            page=lambda: self._parts.page.address, own_ports=listeners.ports, publish=publish,
        )  # fmt: skip
        _keep_running(parts, inputs, outbox.run(), "channels")

    def _start_upkeep(self, parts: asyncio.TaskGroup, inputs: AsyncExitStack) -> None:
        """Go on with work on the data that the last stop cut short, and look after the data from now on."""
        _keep_running(parts, inputs, self._parts.reprocessor.run(), "understanding")
        _keep_running(parts, inputs, self._parts.acceptance.resume(), "inbox")
        _keep_running(parts, inputs, self._parts.forgetting.resume(), "forgetting")
        keep_days = self._settings.keep_days
        upkeep = Upkeep(
            self._store, self._parts.access, self._parts.logins, self._intake, self._stats, self._clock,
            Retention(self._store, keep_days) if keep_days else None,
            held_back=self._parts.clock_monitor.held_back,
        )  # fmt: skip
        _keep_running(parts, inputs, upkeep.run(), "upkeep")
        self._start_nightly(parts, inputs)

    def _start_alarms(self, parts: asyncio.TaskGroup, inputs: AsyncExitStack) -> None:
        # Here, because commands that import this module need none of it.
        from gateway.notify.notifier import Notifier

        _keep_running(parts, inputs, Notifier(self._parts).run(), "alarms")

    def _start_nightly(self, parts: asyncio.TaskGroup, inputs: AsyncExitStack) -> None:
        directory = self._settings.nightly_backup
        if directory is None:
            return
        from gateway.backup.nightly import NightlyBackup

        data_dir, keep = self._settings.data_dir, self._settings.nightly_keep
        nightly = NightlyBackup(data_dir, directory, keep, self._stats, self._clock, self._store.audit.add)
        _keep_running(parts, inputs, nightly.run(), "nightly backup")
        self._on_message(f"Backup every night into {directory}")

    async def _start_mqtt(
        self, parts: asyncio.TaskGroup, inputs: AsyncExitStack, listeners: Listeners
    ) -> None:
        """Start MQTT: our own listener, or a broker's messages."""
        if self._settings.no_mqtt:
            return
        # Imported here, because each costs memory that a gateway without it need not pay.
        from gateway.transports.mqtt import MqttIngest

        source: MessageSource
        own: MqttListener | None = None
        broker = broker_of(self._settings)
        if broker is None:
            if not (listeners.of(MQTT) or listeners.of(MQTTS)):
                return
            from gateway.transports import mqtt_listener

            source = own = mqtt_listener.MqttListener(
                self._topics, self._clock, self._admission, self._stats, self._parts.access,
                require_key=self._settings.require_key, knocks=self._parts.knocks,
            )  # fmt: skip
        else:
            from gateway.transports.paho_bridge import Bridge

            self._on_message(f"MQTT from the broker at {broker.where}")
            self._stats.listening[BROKER] = broker.where
            for sentence in advice_of(self._settings):
                self._on_message(sentence)
            bridge = Bridge(broker, client_id(self._settings.data_dir), self._topics.filters, self._clock)
            bridge.start()
            inputs.push_async_callback(bridge.stop)
            source = bridge
        ingest = MqttIngest(source, self._topics, self._intake, self._store, self._stats, self._clock)
        inputs.push_async_callback(ingest.store_open)
        _keep_running(parts, inputs, ingest.run(), "mqtt")
        if own is not None:
            # Last, so that the listener stops first: commits under way are still acknowledged.
            await listeners.start_mqtt(own, inputs)

    async def _start_home_assistant(self, parts: asyncio.TaskGroup, inputs: AsyncExitStack) -> None:
        """Announce devices to Home Assistant, or remove what an earlier start announced."""
        broker = broker_of(self._settings)
        if broker is None or not (self._settings.ha_discovery or await self._store.published.all()):
            return
        # Here, because it costs memory that a gateway without it need not pay.
        from gateway.integrations.home_assistant import publisher

        instance, prefix = await self._store.alarms.instance(), self._settings.ha_prefix
        if self._settings.ha_discovery:
            work = publisher.publish(self._parts, broker, instance, prefix, brews=self._settings.ha_brews)
        else:
            work = publisher.clear(self._parts, broker, instance)
        _keep_running(parts, inputs, work, "home assistant")


def _keep_running(
    parts: asyncio.TaskGroup, inputs: AsyncExitStack, coroutine: Coroutine[Any, Any, None], name: str
) -> None:
    """Run a part as a named task until the inputs are closed. If the task dies, the daemon stops."""
    task = parts.create_task(coroutine, name=name)

    async def end() -> None:
        task.cancel()
        await asyncio.wait([task])

    inputs.push_async_callback(end)


def login_by_phone(address: str, key: str) -> list[str]:
    """Return the lines with a QR code that logs a phone in at the page; none if no phone reaches the page."""
    host = urlsplit(address).hostname or "localhost"
    if is_loopback(host):
        return []
    from gateway.services.qr import for_terminal

    # The key stands behind #, so that no server and no log ever gets it.
    return ["This code logs a phone in:", for_terminal(f"{address}{site.PAGE_ROOT}login#{key}")]


def _give_up() -> None:
    log.warning("stopping took longer than %s s; what is committed is safe", STOP_S)
    os._exit(0)


async def _serve(settings: Settings, on_message: OnMessage, clock: Clock | None) -> None:
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
    gateway = Gateway(settings, on_message, clock, on_terminal=sys.stdout.isatty())
    at_terminal = _has_terminal()

    def hang_up() -> None:
        # A terminal that is closed sends the same signal as `systemctl reload`.
        if at_terminal and not _has_terminal():
            stop()
        else:
            gateway.reload()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hang_up)
    await gateway.run(stopped)


def _has_terminal() -> bool:
    """Return whether somebody can type: a closed terminal is none."""
    try:
        return os.isatty(0)
    except OSError:
        return False


def client_id(directory: Path) -> str:
    """Name our session at a broker: the same after every start, another for another gateway."""
    return f"hydrometer-gateway-{blake2b(str(directory.resolve()).encode(), digest_size=4).hexdigest()}"


def serve(settings: Settings, on_message: OnMessage, clock: Clock | None = None) -> None:
    """Run the daemon until SIGTERM or SIGINT; a second signal ends it at once."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()  # imported objects stay for ever: collections need not visit them
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        asyncio.run(_serve(settings, on_message, clock))
    except BaseExceptionGroup as group:
        ours = group.subgroup(GatewayError)
        if ours is not None and len(ours.exceptions) == len(group.exceptions) == 1:
            raise ours.exceptions[0] from group
        raise
