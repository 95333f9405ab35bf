"""`GET /metrics`: the figures of `/manage/status` and of the beer, for Prometheus.

The text is made by prometheus-client. Keys of other accounts than the owner's see their own beer only.
"""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from aiohttp import hdrs, web

from gateway.http.endpoint import Call, Query
from gateway.manage.status import Status, Watch

if TYPE_CHECKING:
    from prometheus_client import Metric

    from gateway.manage.beer_metrics import Beer

PREFIX = "hydrometer_gateway_"

COUNTERS = {
    "received": "Deliveries of devices",
    "accepted": "Readings in them; a delivery that was not understood counts as one",
    "stored": "Readings of devices that were stored",
    "duplicates": "Readings that were stored already",
    "thinned": "Readings of bridges that came too soon after the last one",
    "quarantined": "Payloads that were put into quarantine",
    "waiting": "Readings that went into the inbox",
    "refused": "Readings under a name that was refused",
    "not_stored": "Readings that the store could not take",
    "imported": "Readings that were imported",
    "forwarded": "Readings that a target took",
    "refused_upstream": "Readings that a target refused",
}
"""Counters since the start. accepted = stored + duplicates + thinned + quarantined + waiting + refused +
not_stored."""


async def metrics(watch: Watch, call: Call[Query, None]) -> web.Response:
    """Answer a scrape. The first scrape loads what it needs, because most gateways have no scrape."""
    from gateway.manage import beer_metrics

    status = await watch.status(call) if beer_metrics.sees_all(call.caller) else None
    beer = await beer_metrics.look_at_beer(call)
    # In a thread: the text of 200 devices takes longer than others may be kept waiting.
    now = call.services.clock.now()
    body, content_type = await asyncio.to_thread(_text, status, beer, now)
    headers = {hdrs.CONTENT_TYPE: content_type, hdrs.CACHE_CONTROL: "no-store"}
    return web.Response(body=body, headers=headers)


def _text(status: Status | None, beer: "Beer", now: float) -> tuple[bytes, str]:
    """Return the exposition at a time (Unix seconds), and its content type."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

    from gateway.manage.beer_metrics import families

    registry = CollectorRegistry(auto_describe=False)
    if status is not None:
        registry.register(_Collector(status, now))
    registry.register(_Made(families(beer)))
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Made:
    """A collector of metrics that are made already."""

    def __init__(self, metrics: "Iterator[Metric]") -> None:
        self._metrics = metrics

    def collect(self) -> "Iterator[Metric]":
        """Return every metric, once."""
        return self._metrics


class _Collector:
    """A collector that turns a status into metrics. `now` is Unix seconds."""

    def __init__(self, status: Status, now: float) -> None:
        self._status = status
        self._now = now

    def collect(self) -> "Iterator[Metric]":
        """Yield every metric, once."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

        def counter(name: str, words: str, value: float) -> "Metric":
            return CounterMetricFamily(PREFIX + name, words, value=value)

        def gauge(name: str, words: str, values: dict[str, int], label: str = "") -> "Metric":
            family = GaugeMetricFamily(PREFIX + name, words, labels=[label] if label else [])
            for kind, value in values.items():
                family.add_metric([kind] if label else [], value)
            return family

        status = self._status
        for name, words in COUNTERS.items():
            yield counter(name, words, getattr(status.since_start, name))
        for name, words, value in _further_counts(status):
            yield counter(name, words, value)
        mqtt = status.mqtt
        for name, words, label, values in (
            ("mqtt_messages", "MQTT messages", "qos", {str(qos): n for qos, n in enumerate(mqtt.messages)}),
            ("mqtt_refused", "MQTT connections that were refused or ended", "reason", mqtt.refused),
        ):
            family = CounterMetricFamily(PREFIX + name, words, labels=[label])
            for kind, value in values.items():
                family.add_metric([kind], value)
            yield family
        states = status.totals.model_dump()
        yield gauge("readings", "Readings in the store", {"": states.pop("stored")})
        yield gauge("readings_by_state", "The same by what they are in", states, "state")
        targets = GaugeMetricFamily(
            f"{PREFIX}target_readings",
            "Readings for a target by what became of them",
            labels=["target", "state"],
        )
        for target in status.targets:
            for state in ("forwarded", "refused", "pending", "not_sent", "superseded"):
                targets.add_metric([target.name, state], getattr(target, state))
        yield targets
        oldest = GaugeMetricFamily(
            f"{PREFIX}target_oldest_seconds",
            "Age of the first reading that waits for a target, 0 if none waits",
            labels=["target"],
        )
        for target in status.targets:
            waits_s = 0.0 if target.oldest_at is None else max(0.0, self._now - target.oldest_at)
            oldest.add_metric([target.name], waits_s)
        yield oldest
        working = {part: int(part not in status.in_trouble) for part in status.parts}
        yield gauge("part_ok", "Whether a part of the gateway does its work", working, "part")
        for name, words, value in _further_states(status):
            yield gauge(name, words, {"": value})
        versions = {"version": status.version, "sqlite": status.sqlite.version}
        yield InfoMetricFamily(PREFIX.rstrip("_"), "Versions", value=versions)


def _further_counts(status: Status) -> Iterator[tuple[str, str, int]]:
    yield "connections_refused", "HTTP connections for which there was no room", status.connections.refused
    yield "connections_cut", "HTTP connections cut off for being too slow", status.connections.cut
    yield "unreadable_requests", "What was no HTTP request", status.connections.unreadable_requests
    yield "wrong_keys", "Requests without a key that fits", status.connections.wrong_keys
    yield "mqtt_held", "MQTT packets that waited for room or for their source's rate", status.mqtt.held
    yield "pages_refused", "Reports of web pages that were refused", status.connections.pages_refused
    yield "hosts_refused", "Requests for a name that is not this machine's", status.connections.hosts_refused
    yield "task_errors", "Errors that no part of the program handled", status.task_errors
    yield "log_lines_left_out", "Log lines counted instead of written", status.log_lines_left_out


def _further_states(status: Status) -> Iterator[tuple[str, str, int]]:
    yield "uptime_seconds", "Since the start", status.uptime_s
    yield "connections", "HTTP connections", status.connections.open
    yield "mqtt_connections", "MQTT connections", status.mqtt.connections
    yield "quarantine_items", "Payloads in quarantine", status.quarantine.items
    yield "quarantine_bytes", "Bytes of payloads in quarantine", status.quarantine.bytes
    yield (
        "quarantine_pushed_out",
        "Payloads that quarantine had no more room for",
        status.quarantine.pushed_out,
    )
    yield "inbox_devices", "Devices whose readings wait in the inbox", status.inbox.names
    yield "inbox_readings", "Readings that wait in the inbox", status.inbox.readings
    yield "database_bytes", "Size of the database", status.disk.database_bytes
    yield "database_wal_bytes", "Size of its write-ahead log", status.disk.wal_bytes
    yield "disk_free_bytes", "Free on the disk of the database", status.disk.free_bytes
    yield "counted_timestamp_seconds", "When readings were counted", status.counted_at
