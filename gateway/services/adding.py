"""Adding a device: the gateway's addresses, whether a way can work, and what is heard."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from gateway.domain.device import Device, DeviceSummary
from gateway.domain.inbox import WaitingName
from gateway.domain.quarantined import Quarantined
from gateway.domain.reading import Reading
from gateway.drivers.families import Way
from gateway.interfaces import is_loopback
from gateway.network import address_in
from gateway.services.build import Services
from gateway.services.knocks import Knock
from gateway.stats import BROKER, Stats

HEARD = 20
"""Devices, payloads and knocks of each kind that are shown at most, the newest ones."""

DEFAULT_PORTS = {"http": 8080, "mqtt": 1883, "tcp": 9501}

MS = 1000


class Need(NamedTuple):
    """A need of a way: met, not met, or None where the gateway cannot know; and the reason in words."""

    need: str
    is_met: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HeardDevice:
    """A device that reported: is it new, its last reading, and the address that the reading came from."""

    device: Device
    is_new: bool
    at: int
    address: str
    reading: Reading | None

    @property
    def name(self) -> str:
        """Return the device's name, or its id where it has none."""
        return self.device.title or self.device.stable_id or self.device.key


@dataclass(frozen=True, slots=True)
class Heard:
    """All that came since a time, each kind with the newest first.

    `waiting` are devices whose readings wait for the owner's word.
    """

    devices: tuple[HeardDevice, ...]
    waiting: tuple[WaitingName, ...]
    quarantine: tuple[Quarantined, ...]
    knocks: tuple[Knock, ...]


def addresses(stats: Stats, authority: str, way: Way | None = None) -> dict[str, str]:
    """Return what stands for the words in braces. `authority` is host and port in the browser's bar.

    Where that is this machine itself, the address that `serve` prints stands for it. A way by MQTT goes to
    the broker that the gateway listens to, if there is one.
    """
    host = host_in(authority)
    printed, http_port = _split(stats.listening.get("http", ""))
    if printed and (not host or is_loopback(host.strip("[]"))):
        host = printed
    mqtt_host, mqtt_port = _split(stats.listening.get(BROKER, ""))
    if not mqtt_port:
        mqtt_port = _split(stats.listening.get("mqtt", ""))[1]
    elif way is not None and "mqtt" in way.needs and not is_loopback(mqtt_host):
        host = mqtt_host
    return {
        "host": host,
        "http_port": http_port or str(DEFAULT_PORTS["http"]),
        "mqtt_port": mqtt_port or str(DEFAULT_PORTS["mqtt"]),
        "tcp_port": _split(stats.listening.get("tcp", ""))[1] or str(DEFAULT_PORTS["tcp"]),
    }


def host_in(authority: str) -> str:
    """Return the host of `host:port`, an IPv6 address with its brackets."""
    if authority.startswith("["):
        return authority.partition("]")[0] + "]"
    return authority.partition(":")[0]


def printed_instead(stats: Stats, authority: str) -> str:
    """Return the number to type in place of a name in the browser's bar, which not every device finds.

    Return no text if the bar has a number, or if the gateway knows of none that other machines reach.
    """
    host, printed = host_in(authority), _split(stats.listening.get("http", ""))[0]
    is_name = address_in(host.strip("[]")) is None and not is_loopback(host)
    return printed if is_name and printed and not is_loopback(printed) else ""


def needs_of(stats: Stats, way: Way) -> list[Need]:
    """Return the needs of a way, each with whether the gateway meets it now."""
    return [_need(stats, way, need) for need in way.needs]


def _need(stats: Stats, way: Way, need: str) -> Need:
    if need == "mqtt":
        is_met = bool(stats.listening.keys() & {"mqtt", BROKER})
        return Need(need, is_met, "" if is_met else stats.parts.get("mqtt", ""))
    if need == "tcp":
        return Need(need, "tcp" in stats.listening, stats.parts.get("tcp", ""))
    if need == "own broker":
        return Need(need, BROKER in stats.listening)
    if way.port is not None and need == f"port {way.port}":
        ports = {_split(address)[1] for part, address in stats.listening.items() if part != BROKER}
        return Need(need, str(way.port) in ports, stats.parts.get(f"http {way.port}", ""))
    return Need(need, None)


def _split(address: str) -> tuple[str, str]:
    host, _, port = address.rpartition(":")
    return host, port


async def heard(services: Services, since: float, drivers: Collection[str] | None = None) -> Heard:
    """Return all that came since a time (Unix seconds).

    Known devices that none of these drivers reads are left out. Without `drivers`, no device is.
    """
    since = int(since)
    store = services.store
    came = [
        summary
        for summary in await store.devices.summaries()
        if summary.last_seen_at is not None and summary.last_seen_at >= since
        if summary.device.first_seen_at >= since or drivers is None or summary.device.family in drivers
    ]
    came.sort(key=lambda summary: (summary.last_seen_at or 0, summary.device.id), reverse=True)
    payloads = await store.quarantine.newest(HEARD)
    waiting = [name for name in await store.inbox.names() if name.last_at >= since * MS]
    return Heard(
        tuple([await _heard_device(services, summary, since) for summary in came[:HEARD]]),
        tuple(reversed(waiting[-HEARD:])),
        tuple(item for item in reversed(payloads) if item.received_at >= since * MS),
        tuple(services.knocks.since(since)[:HEARD]),
    )


async def _heard_device(services: Services, summary: DeviceSummary, since: int) -> HeardDevice:
    device = summary.device
    latest = await services.store.payloads.latest(device.id, 1)
    sources = await services.store.devices.sources(device.id)
    newest = max(sources, key=lambda source: source.last_at, default=None)
    return HeardDevice(
        device=device,
        is_new=device.first_seen_at >= since,
        at=summary.last_seen_at or 0,
        address=newest.address if newest is not None else "",
        reading=latest[0].reading if latest else None,
    )
