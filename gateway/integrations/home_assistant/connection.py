"""Our own connection to the user's broker, for what we publish there. Readings come by another one.

It is apart because the broker says `offline` for us when it breaks, and because its trouble must not touch
the acknowledgements of readings. Nothing waits in it: what was not published is lost with the connection.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from paho.mqtt import client as paho
from paho.mqtt.enums import MQTTErrorCode

from gateway.clock import Clock
from gateway.errors import GatewayError
from gateway.transports.mqtt_link import MqttUrl, Reconnects
from gateway.transports.paho_client import Client, log_in

log = logging.getLogger(__name__)

KEEPALIVE_S = 30
"""Seconds of silence until paho sends a PINGREQ; as long again without an answer ends the connection."""

CONNECT_S = 2.0
"""Seconds that the broker's machine may take to accept a connection: a stop may have to wait so long."""

QUEUED = 40
"""Messages that are not acknowledged, at most; more are refused."""

ANSWER_S = 30.0
"""Seconds that the broker may take to acknowledge a message."""

RECONNECT_S = 8.0
"""The longest wait between attempts to connect: states are right again ten seconds after an outage."""

GOODBYE_S = 1.0
"""Seconds that a clean stop waits for the acknowledgement of its last message."""


CANNOT_REACH = "cannot reach"


class NotConnected(GatewayError):
    """There is no connection to the broker, or it broke before the message was acknowledged."""


class Will(NamedTuple):
    """A retained message that the broker publishes for us if the connection breaks."""

    topic: str
    payload: str


class Connection:
    """A connection to a broker that is made again whenever it breaks. It belongs to one event loop.

    `hears` are topics whose messages go to `on_message`, unless they are retained. `on_change` is called
    after each connect and each loss.
    """

    def __init__(
        self, url: MqttUrl, client_id: str, clock: Clock, will: Will | None = None, hears: Sequence[str] = ()
    ) -> None:
        self._url = url
        self._will = will
        self._hears = tuple(hears)
        self._clock = clock
        self._reconnects = Reconnects(RECONNECT_S)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._stopping = False
        self.is_connected = False
        self.state = "not started"
        """The state in words for users."""
        self.on_message: Callable[[str, bytes], None] = lambda topic, payload: None
        self.on_change: Callable[[], None] = lambda: None
        client = self._client = Client(
            client_id, self._on_broken, lambda: None, lambda: True, clean_session=True
        )
        log_in(client, url)
        client.connect_timeout = CONNECT_S
        # What was not acknowledged when the connection broke is sent again on the next: it must not grow.
        client.max_queued_messages_set(QUEUED)
        if will is not None:
            client.will_set(will.topic, will.payload, qos=1, retain=True)
        client.on_connect = self._on_connect
        client.on_connect_fail = lambda *_: self._on_lost(CANNOT_REACH)
        client.on_disconnect = lambda *_: self._on_lost("lost")
        client.on_publish = lambda _client, _userdata, mid, *_: self._post(self._acknowledged, mid)
        client.on_message = self._on_message

    def start(self) -> None:
        """Begin to connect. From then on paho's thread keeps the connection up."""
        self._loop = asyncio.get_running_loop()
        self._client.connect_async(self._url.host, self._url.port, keepalive=KEEPALIVE_S)
        self._client.loop_start()

    async def stop(self) -> None:
        """Say that we go, and disconnect."""
        if self._will is not None:
            with suppress(NotConnected, TimeoutError):
                async with asyncio.timeout(GOODBYE_S):
                    await self.publish(self._will.topic, self._will.payload, retain=True)
        self._stopping = True
        self.is_connected = False
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)
        client = self._client
        client.on_connect = client.on_connect_fail = client.on_disconnect = None
        client.on_publish = client.on_message = None
        del self._client  # it calls us when a packet is bad: no cycle is left, its sockets close here and now

    async def publish(self, topic: str, payload: str, *, retain: bool = False) -> None:
        """Publish at QoS 1 and return when the broker has acknowledged it. `NotConnected` if it does not."""
        await self.publish_all([(topic, payload)], retain=retain)

    async def publish_all(self, messages: Sequence[tuple[str, str]], *, retain: bool = True) -> None:
        """Publish messages in their order; return when the broker has acknowledged all of them."""
        try:
            async with asyncio.timeout(ANSWER_S):
                for sent in [self._send(topic, payload, retain) for topic, payload in messages]:
                    await sent
        except TimeoutError as error:
            raise NotConnected(f"{self._url.where} does not acknowledge what we publish") from error

    def _send(self, topic: str, payload: str, retain: bool) -> asyncio.Future[None]:
        if not self.is_connected or self._loop is None:
            raise NotConnected(f"there is no connection to {self._url.where}")
        sent: asyncio.Future[None] = self._loop.create_future()
        sent.add_done_callback(lambda future: future.cancelled() or future.exception())  # awaited or not
        info = self._client.publish(topic, payload.encode("utf-8", "replace"), qos=1, retain=retain)
        if info.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise NotConnected(f"{self._url.where} takes nothing: {info.rc!r}")
        # Its acknowledgement cannot have been here already: paho's thread hands it to this loop.
        self._waiting[info.mid] = sent
        return sent

    def _acknowledged(self, mid: int) -> None:
        sent = self._waiting.pop(mid, None)
        if sent is not None and not sent.done():
            sent.set_result(None)

    def _connected(self) -> None:
        self.is_connected = True
        self._say(f"connected to {self._url.where}", logging.INFO)
        self.on_change()

    def _lost(self, words: str, *, is_news: bool) -> None:
        is_news, self.is_connected = is_news or self.is_connected, False
        waiting, self._waiting = self._waiting, {}
        for sent in waiting.values():
            if not sent.done():
                sent.set_exception(NotConnected(words))
        if is_news:
            self._say(words, logging.WARNING)
            self.on_change()

    def _say(self, state: str, level: int) -> None:
        if state != self.state:  # logged once, not at every attempt
            self.state = state
            log.log(level, "home assistant: %s", state)

    # The methods below are called in paho's thread.

    def _on_connect(
        self, client: paho.Client, _userdata: Any, _flags: Any, reason: Any, _properties: Any
    ) -> None:
        if reason.is_failure:
            self._post(self._say, f"{self._url.where} refuses us: {reason}", logging.WARNING)
            return
        self._reconnects.connected(self._clock.monotonic())
        if self._hears:
            client.subscribe([(topic, 0) for topic in self._hears])
        self._post(self._connected)

    def _on_message(self, _client: paho.Client, _userdata: Any, message: paho.MQTTMessage) -> None:
        if not message.retain:  # else it is old: it was said before we came
            with suppress(UnicodeDecodeError):
                self._post(self.on_message, message.topic, bytes(message.payload))

    def _on_broken(self, fault: str) -> None:
        self._reconnects.broken()
        words = f"{self._url.where} sent an unreadable packet ({fault}); trying again"
        self._post(partial(self._lost, words, is_news=True))

    def _on_lost(self, what: str) -> None:
        self._reconnects.lost(self._clock.monotonic())
        # paho doubles without jitter, so it gets a fixed delay each time; a fraction is fine, it only sleeps.
        delay: Any = self._reconnects.delay_s()
        self._client.reconnect_delay_set(delay, delay)
        if not self._stopping:
            words = f"{what} {self._url.where}; trying again"
            self._post(partial(self._lost, words, is_news=what == CANNOT_REACH))

    def _post(self, callback: Callable[..., object], *arguments: object) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop may close before paho's thread ends
                self._loop.call_soon_threadsafe(callback, *arguments)
