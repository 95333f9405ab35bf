"""A broker of the user: each reading as a JSON message at QoS 1, in order. PUBACK is the success.

The connection is its own: its trouble touches neither the connection that readings come by nor its
acknowledgements. The newest reading of a device is retained; so are older ones until the newest has come.
A message may come twice after an ending in doubt, under the same `id`.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.domain.target import Target
from gateway.drivers.addresses import covers
from gateway.errors import ConfigError, in_words, unreachable
from gateway.forward.kinds import Check, Lane, Policy, everything
from gateway.forward.kinds.values import values_of
from gateway.outward.guard import Guard, OutwardFailed
from gateway.tls.authorities import verifying_context

if TYPE_CHECKING:
    from paho.mqtt.client import Client

log = logging.getLogger(__name__)

MESSAGES = 100
"""Messages in flight at most."""

DEADLINE_S = 30.0
"""Seconds from the first message of a batch to the last PUBACK, the connection included."""

CONNECT_S = 5.0
"""Seconds that an address of the broker may take to accept the connection; the next one is tried then."""

KEEPALIVE_S = 60

PORTS = {"mqtt": 1883, "mqtts": 8883}

TOPIC = "brewery/{device}/reading"
"""The topic that is taken if none is named."""

ADDRESS = "the address of a broker looks like mqtt://broker.lan or mqtts://host:8883"

ANY_LEVEL = "+"

PLACES = {"device": "ispindel:0", "brew": "0", "name": ANY_LEVEL, "batchcode": ANY_LEVEL}
"""Names in braces that a topic may have, and what they look like: a user writes the last two."""

TOPIC_BYTES = 1_024
"""Bytes of a topic at most."""

_LEVEL = str.maketrans({"/": "_", "+": "_", "#": "_", "\0": "_", "$": "_"})


@dataclass(frozen=True, slots=True)
class Broker:
    """The address of a broker."""

    host: str
    port: int
    tls: bool

    @classmethod
    def parse(cls, url: str) -> "Broker":
        """Parse `mqtt://host:port` or `mqtts://host`; `ConfigError` for anything else, such as a password."""
        try:
            parts = urlsplit(url)
            usual = PORTS[parts.scheme]
            host, port = parts.hostname or "", parts.port or usual
            host.encode("idna")
        except (ValueError, KeyError):
            raise ConfigError(ADDRESS) from None
        if not host or parts.path.strip("/") or parts.query:
            raise ConfigError(ADDRESS)
        if parts.username or parts.password:
            raise ConfigError("no user and password in the address: --user and --key-file take them")
        return cls(host, port, parts.scheme == "mqtts")


class Mqtt:
    """A broker. The connection is made for a batch and stays while there is something to send."""

    lane: Lane = "device"
    policy = Policy.BACKLOG
    repeat_is_harmless = True
    most: int | None = MESSAGES
    gather_s: float | None = 0.0
    key_on_the_way = False

    def __init__(
        self, target: Target, read_key: Callable[[], str], guard: Guard, hears: Collection[str] = ()
    ) -> None:
        """`hears` are the filters of the topics that we read; `ConfigError` if the topic is one of them."""
        self.name = self.shown = target.url
        self._options = checked(target.options, hears)
        self._broker = Broker.parse(self._options["url"])
        self._read_key = read_key
        self._guard = guard
        self._client: Client | None = None
        self._newest: dict[str, int] = {}

    async def wait_for_slot(self) -> None:
        """Return at once: a broker says itself when it has enough."""

    async def send(self, batch: Batch) -> Outcome:
        """Publish the readings in their order, and wait for all acknowledgements."""
        begun = False
        try:
            async with asyncio.timeout(DEADLINE_S):
                client = await self._connected()
                messages = [self._message(row) for row in batch.rows]
                begun = True
                for info in [
                    client.publish(topic, body, qos=1, retain=last) for topic, body, last in messages
                ]:
                    await _acknowledged(client, info)
        except OutwardFailed as failure:
            return failure.outcome
        except ConfigError as error:
            return Outcome(DeliveryResult.PAUSED, str(error))
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            await self.close()
            verdict = DeliveryResult.AMBIGUOUS if begun else DeliveryResult.KEPT
            return Outcome(verdict, in_words(error) or "the broker gives no answer")
        return Outcome(DeliveryResult.ACCEPTED)

    async def read_back(self, batch: Batch) -> tuple[Sequence[int], Sequence[int]]:
        """Send all of it again, under the same ids."""
        return everything(batch)

    def address(self) -> str:
        """Return the URL."""
        return str(self._options["url"])

    async def test(self) -> Sequence[Check]:
        """Connect and log in; publish nothing."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                await self._connected()
        except ConfigError as error:
            return [Check(False, str(error))]
        except OutwardFailed as error:
            return [Check(False, unreachable(str(error), self._broker.host))]
        except (OSError, TimeoutError, ValueError) as error:
            return [Check(False, f"{self._options['url']} gives no answer: {unreachable(in_words(error))}")]
        return [Check(True, f"the broker takes us; readings go to {self._options['topic']}")]

    async def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            client.disconnect()
            await asyncio.to_thread(client.loop_stop)
            client.on_connect = client.on_connect_fail = client.on_disconnect = None

    def _message(self, row: str) -> tuple[str, bytes, bool]:
        """Return topic, body, and whether it is retained: not if a newer one of the device has gone."""
        values = values_of(row)
        newest = max(self._newest.get(values["device"], 0), values["at"])
        self._newest[values["device"]] = newest
        body = {name: value for name, value in values.items() if value is not None and value != ""}
        return topic_of(self._options["topic"], values), json.dumps(body).encode(), values["at"] >= newest

    async def _connected(self) -> "Client":
        if self._client is not None and self._client.is_connected():
            return self._client
        await self.close()
        # The broker may have another address since the last time.
        addresses = await self._guard.addresses(self._broker.host, self._broker.port)
        # A certificate is for the name, and paho tries the addresses of a name by itself.
        hosts = [self._broker.host] if self._broker.tls else addresses
        for host in hosts[:-1]:
            with suppress(OSError):
                return await self._connected_to(host)
        return await self._connected_to(hosts[-1])

    async def _connected_to(self, host: str) -> "Client":
        from paho.mqtt import client as paho
        from paho.mqtt.enums import CallbackAPIVersion

        loop = asyncio.get_running_loop()
        answered: asyncio.Future[str] = loop.create_future()

        def settle(words: str) -> None:
            if not answered.done():
                answered.set_result(words)

        def say(words: str) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle, words)

        client = paho.Client(CallbackAPIVersion.VERSION2, clean_session=True, protocol=paho.MQTTv311)
        if self._options["user"]:
            client.username_pw_set(self._options["user"], self._read_key() or None)
        if self._broker.tls:
            client.tls_set_context(await asyncio.to_thread(verifying_context))
        client.on_connect = lambda _client, _data, _flags, code, _more: say(
            str(code) if code.is_failure else ""
        )
        client.on_connect_fail = lambda *_: say("nobody answers there")
        client.on_disconnect = lambda *_: say("the connection broke off")
        client.reconnect_delay_set(1, 1)
        client.connect_timeout = CONNECT_S
        client.connect_async(host, self._broker.port, keepalive=KEEPALIVE_S)
        self._client = client
        client.loop_start()
        try:
            words = await answered
        except BaseException:
            await self.close()
            raise
        if words:
            await self.close()
            if "authoriz" in words or "bad user" in words.lower() or "not auth" in words.lower():
                raise ConfigError(f"the broker refuses user or password: {words}")
            raise OSError(words)
        return client


async def _acknowledged(client: "Client", info: Any) -> None:
    """Wait for the PUBACK of a message; `OSError` if the connection broke."""
    if info.rc != 0:
        raise OSError("there is no connection to the broker")
    while not info.is_published():
        if not client.is_connected():
            raise OSError("the connection broke off")
        await asyncio.sleep(ACK_LOOK_S)


ACK_LOOK_S = 0.005
"""Seconds between two looks at whether a message was acknowledged."""


def topic_of(pattern: str, values: Mapping[str, Any]) -> str:
    """Return the topic of a reading: each name in braces is one level, whatever the value holds."""
    levels = {
        "device": values["device"],
        "name": values["name"],
        "brew": "none" if values["brew_id"] is None else str(values["brew_id"]),
        "batchcode": values["batchcode"] or "none",
    }
    topic = pattern
    for name, text in levels.items():
        topic = topic.replace(f"{{{name}}}", str(text).translate(_LEVEL) or "_")
    return topic


def checked(options: Mapping[str, Any], hears: Collection[str]) -> Mapping[str, Any]:
    """Return the settings: `url`, `topic`, `user`. `ConfigError` if it is no topic, or one that we read."""
    Broker.parse(str(options.get("url", "")))
    topic = str(options.get("topic") or TOPIC)
    plain = topic
    for name, place in PLACES.items():
        plain = plain.replace(f"{{{name}}}", place)
    if len(topic.encode()) > TOPIC_BYTES or not topic.strip() or "\0" in topic:
        raise ConfigError(f"a topic has 1 to {TOPIC_BYTES} bytes")
    if "{" in plain or "}" in plain:
        raise ConfigError(
            f"a topic may have {', '.join(f'{{{name}}}' for name in PLACES)}, nothing else in braces"
        )
    if "#" in topic or "+" in topic or topic.startswith("$"):
        raise ConfigError("a topic to publish to has no + and #, and does not begin with $")
    for heard in hears:
        if meets(heard, plain):
            raise ConfigError(
                f"we read {heard} ourselves: what goes to {topic} would come back as new readings; "
                "take another topic"
            )
    return {"user": "", **options, "topic": topic}


def meets(one: str, other: str) -> bool:
    """Return whether a topic exists that fits both filters."""
    if covers(one, other) or covers(other, one):
        return True
    mine, theirs = one.split("/"), other.split("/")
    for place in range(max(len(mine), len(theirs))):
        here = mine[place] if place < len(mine) else None
        there = theirs[place] if place < len(theirs) else None
        if "#" in {here, there}:
            return True
        if here is None or there is None or (ANY_LEVEL not in {here, there} and here != there):
            return False
    return True
