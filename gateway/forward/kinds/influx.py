"""InfluxDB: line protocol to the write endpoint of version 1, 2 or 3. A point that is sent again is the same.

A point is known by its series and its time. The only tag is the device's key: a tag that changes, such as a
name or a brew, would make a second point of the same reading. So an ending in doubt is simply sent again.
"""

import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from gateway.clock import Clock
from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.domain.target import PER_MINUTE, Target
from gateway.errors import ConfigError, unreachable
from gateway.forward.backoff import RateLimiter, parse_retry_after
from gateway.forward.kinds import Check, Lane, Policy, everything
from gateway.forward.kinds.values import NUMBERS, values_of
from gateway.outward.client import Answer, OutwardClient, check_url
from gateway.outward.guard import OutwardFailed

log = logging.getLogger(__name__)

MEASUREMENT = "hydrometer"
FIELDS = tuple(name for name in NUMBERS if name not in {"plato", "temp_f"})
"""Numbers that become fields; the others follow from them."""

POINTS = 1_000
"""Points in one request at most: about 100 kB."""

GATHER_S = 10.0
"""Seconds that a reading waits for others."""

DEADLINE_S = 30.0
"""Seconds for a request: a database on a Pi is slow with a thousand points."""

APIS = (1, 2, 3)

TAG_ESCAPES = str.maketrans({",": "\\,", "=": "\\=", " ": "\\ ", "\n": "_", "\r": "_", "\t": "_"})
"""Escapes in the value of a tag. A line break would begin another point."""

REFUSED_STATUSES = frozenset({400, 413, 422})
"""The batch is not taken as it is: it is halved."""

KEPT_STATUSES = frozenset({408, 425, 429, 503})
"""Certainly not taken, and perhaps later."""

COMMENT_LINE = b"# hydrometer-gateway: is the address right?\n"
"""A line that the protocol passes over: it tries address, key and database, and leaves no point."""


class Influx:
    """An InfluxDB at one URL, with a bucket or a database."""

    lane: Lane = "device"
    policy = Policy.BACKLOG
    repeat_is_harmless = True
    most: int | None = POINTS
    gather_s: float | None = GATHER_S
    key_on_the_way = True

    def __init__(
        self, target: Target, read_key: Callable[[], str], client: OutwardClient, clock: Clock
    ) -> None:
        """`ConfigError` if a setting is missing. `read_key` returns the token, an empty text without one."""
        self.name = self.shown = target.url
        self._options = checked(target.options)
        self._read_key = read_key
        self._client = client
        self._clock = clock
        self._limiter = RateLimiter(target.per_minute or PER_MINUTE, clock)
        self.skipped = 0
        """Readings without a number that were passed over."""

    async def wait_for_slot(self) -> None:
        """Wait until another request may be sent."""
        await self._limiter.acquire()

    async def send(self, batch: Batch) -> Outcome:
        """Write the points."""
        lines = [line for row in batch.rows if (line := line_of(values_of(row)))]
        if len(lines) < len(batch.rows):
            self.skipped += len(batch.rows) - len(lines)
            log.info("forward: %s: %d readings without a number so far", self.shown, self.skipped)
        if not lines:
            return Outcome(DeliveryResult.ACCEPTED)
        try:
            answer = await self._write("\n".join(lines).encode())
        except OutwardFailed as failure:
            return failure.outcome
        except ConfigError as error:
            return Outcome(DeliveryResult.PAUSED, str(error))
        return self._judge(answer)

    async def read_back(self, batch: Batch) -> tuple[Sequence[int], Sequence[int]]:
        """Send all of it again: a point that is there becomes itself."""
        return everything(batch)

    def address(self) -> str:
        """Return the URL; `ConfigError` if it is none."""
        return check_url(str(self._options["url"]))

    async def test(self) -> Sequence[Check]:
        """Write a comment, which leaves no point."""
        try:
            answer = await self._write(COMMENT_LINE)
        except (OutwardFailed, ConfigError) as error:
            return [Check(False, f"{self._options['url']}: {unreachable(str(error))}")]
        # 400 is said of the content, after address, key and database were found right.
        if 200 <= answer.status < 300 or answer.status == 400:
            return [Check(True, "address, key and database are right")]
        remedies = {
            401: "look at the key",
            403: "the key may not write there",
            404: "there is no such bucket or database, or the version (--api) is another",
        }
        remedy = remedies.get(answer.status, "look at the address")
        return [Check(False, f"{self._reason(answer)}; {remedy}")]

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    async def _write(self, body: bytes) -> Answer:
        key = self._read_key()
        headers = {"Content-Type": "text/plain; charset=utf-8", **_authorization(self._options["api"], key)}
        url = write_url(self._options)
        return await self._client.request("POST", url, headers=headers, body=body, deadline_s=DEADLINE_S)

    def _judge(self, answer: Answer) -> Outcome:
        status, reason = answer.status, self._reason(answer)
        if 200 <= status < 300:
            return Outcome(DeliveryResult.ACCEPTED)
        if status in REFUSED_STATUSES:
            return Outcome(DeliveryResult.REFUSED, reason)
        retry_after_s = parse_retry_after(answer.headers.get("retry-after"), self._clock.now())
        if status in KEPT_STATUSES:
            return Outcome(DeliveryResult.KEPT, reason, retry_after_s)
        if 400 <= status < 500:
            return Outcome(DeliveryResult.PAUSED, reason)
        return Outcome(DeliveryResult.AMBIGUOUS, reason, retry_after_s)

    def _reason(self, answer: Answer) -> str:
        try:
            shown = answer.shown([self._read_key()])
        except ConfigError:
            shown = ""
        return f"HTTP {answer.status}: {shown}" if shown else f"HTTP {answer.status}"


def line_of(values: Mapping[str, Any]) -> str:
    """Return the point as a line; an empty text for a reading without a number."""
    fields = [f"{name}={values[name]!r}" for name in FIELDS if values[name] is not None]
    if not fields:
        return ""
    if values["brew_id"] is not None:
        fields.append(f"session={values['brew_id']}i")
    # A backslash at the end would escape the space behind the tag.
    device = str(values["device"]).rstrip("\\").translate(TAG_ESCAPES) or "_"
    return f"{MEASUREMENT},device={device} {','.join(fields)} {microseconds(values)}"


def microseconds(values: Mapping[str, Any]) -> int:
    """Return the time of a point: the reading's second, and microseconds from its id.

    Two readings of a device in one second stay two points, and the same reading has always the same time.
    Milliseconds are too few: ids begin anywhere after a start, and each thousandth pair was one point.
    """
    return int(values["at"]) * 1_000_000 + int(values["id"][-5:], 16) % 1_000_000


def write_url(options: Mapping[str, Any]) -> str:
    """Return the address of the write endpoint."""
    base = str(options["url"]).rstrip("/")
    if options["api"] == 1:
        query = {"db": options["bucket"], "precision": "u"}
        return f"{base}/write?{urlencode(query)}"
    if options["api"] == 3:
        query = {"db": options["bucket"], "precision": "microsecond", "accept_partial": "false"}
        return f"{base}/api/v3/write_lp?{urlencode(query)}"
    query = {"org": options["org"], "bucket": options["bucket"], "precision": "us"}
    return f"{base}/api/v2/write?{urlencode(query)}"


def checked(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings: `url`, `api`, `bucket` (of version 1 and 3 the database), `org` (of version 2)."""
    api = options.get("api", 2)
    if api not in APIS:
        raise ConfigError("--api is 1, 2 or 3: the version of the InfluxDB")
    if not options.get("bucket"):
        raise ConfigError("--bucket is missing: the bucket, of version 1 and 3 the database")
    if api == 2 and not options.get("org"):
        raise ConfigError("--org is missing: the organisation that the bucket belongs to")
    if not options.get("url"):
        raise ConfigError("--url is missing: the address of the InfluxDB, such as http://influx:8086")
    if set(str(options["url"])) & {"?", "#"}:  # a password may stand there, and the path would go behind it
        raise ConfigError("--url ends before ? or #; --key-file holds the token, or user:password")
    return {"org": "", **options, "api": api}


def _authorization(api: int, key: str) -> Mapping[str, str]:
    if not key:
        return {}
    if api == 1 and ":" in key:  # version 1 knows users with passwords
        return {"Authorization": f"Basic {base64.b64encode(key.encode()).decode()}"}
    return {"Authorization": f"{'Bearer' if api == 3 else 'Token'} {key}"}
