"""A webhook: a template per reading, or an array of readings, signed by Standard Webhooks.

The message id is that of the reading, so a receiver can drop what comes twice.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from gateway.clock import Clock
from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.domain.target import Target
from gateway.domain.texts import SECRET_CHARACTERS, did_you_mean
from gateway.errors import ConfigError, unreachable
from gateway.forward.backoff import RateLimiter, parse_retry_after
from gateway.forward.kinds import Check, Lane, Policy, everything
from gateway.forward.kinds.values import NAMES, values_of
from gateway.outward.client import Answer, OutwardClient, check_url
from gateway.outward.guard import OutwardFailed
from gateway.outward.signing import signed_headers
from gateway.outward.templates import FORM, JSON, check_template, fill

PRESETS = Path(__file__).parents[1] / "presets.toml"

TEMPLATE_NAMES = (*NAMES, "at_ms", "slug", "device_hash", "token")
"""Names that a template may have: the values of a reading, and what identifies it or us there."""

URL_PLACE = "{{slug}}"
"""The only name that a URL may have: letters, digits, - and _ of the device's key."""

READINGS = 100
"""Readings in one request at most, if it takes an array."""

INTERVAL_MAX_S = 86_400
"""Seconds between two requests at most that may be demanded: a day."""

PAUSED_STATUSES = frozenset({401, 403, 404, 405, 410, 415})
"""Statuses of a wrong address or key, or of a receiver that is gone: a person must act."""

KEPT_STATUSES = frozenset({408, 425, 429, 503})
"""Certainly not taken, and perhaps later."""

_NO_SLUG = re.compile(r"[^a-z0-9_-]+")


@cache
def presets() -> Mapping[str, Mapping[str, Any]]:
    """Return the settings of known services by name. Blocks for a millisecond at the first call."""
    return tomllib.loads(PRESETS.read_text("utf-8"))


class Webhook:
    """A receiver of readings at one URL."""

    lane: Lane = "device"
    repeat_is_harmless = True
    gather_s: float | None = 0.0
    key_on_the_way = True
    interval_by_session = False

    def __init__(
        self,
        target: Target,
        read_key: Callable[[], str],
        read_url: Callable[[], str],
        client: OutwardClient,
        clock: Clock,
    ) -> None:
        """`read_key` returns token or secret, an empty text without one; `read_url` the address, which may be
        a secret itself. `ConfigError` if a setting is wrong."""
        self.name = self.shown = target.url
        self._options = checked(target.options)
        self.policy = Policy.LATEST if self._options["latest"] else Policy.BACKLOG
        self.most: int | None = READINGS if self._options["batch"] else 1
        self.min_interval_s = float(self._options["min_interval_s"])
        self._read_key = read_key
        self._read_url = read_url
        self._client = client
        self._clock = clock
        self._limiter = RateLimiter(target.per_minute, clock)
        self._free_at = 0.0

    async def wait_for_slot(self) -> None:
        """Wait until another request may be sent."""
        await self._limiter.acquire()
        # A target of the latest reading waits by device, and its queue knows for how long.
        if self.policy is Policy.BACKLOG and self.min_interval_s:
            wait = self._free_at - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
            self._free_at = self._clock.monotonic() + self.min_interval_s

    async def send(self, batch: Batch) -> Outcome:
        """Send the readings in one request."""
        readings = [values_of(row) for row in batch.rows]
        try:
            now = self._clock.now()
            request = request_of(self._options, self.address(), self._read_key(), readings, now)
            url, headers, body = request
            answer = await self._client.request("POST", url, headers=headers, body=body)
        except OutwardFailed as failure:
            return failure.outcome
        except ConfigError as error:
            return Outcome(DeliveryResult.PAUSED, str(error))
        return self._judge(answer)

    async def read_back(self, batch: Batch) -> tuple[Sequence[int], Sequence[int]]:
        """Send all of it again, under the same ids."""
        return everything(batch)

    def address(self) -> str:
        """Return the URL; `ConfigError` if it is none. A device's part of it is still a place."""
        url = self._read_url() or str(self._options.get("url", ""))
        if not url:
            raise ConfigError("--url or --url-file is missing: the address of the receiver")
        check_url(url.replace(URL_PLACE, "x"))
        if "{{" in url.replace(URL_PLACE, ""):
            raise ConfigError(f"an address may have {URL_PLACE}, and no other place")
        return url

    async def test(self) -> Sequence[Check]:
        """Look at settings, key and address. Nothing is sent: a receiver would take it for a reading."""
        try:
            self._read_key()
            host, port = host_and_port(self.address())
        except ConfigError as error:
            return [Check(False, str(error))]
        try:
            await self._client.guard.addresses(host, port)
        except OutwardFailed as error:
            return [Check(False, unreachable(str(error), host))]
        words = "settings, key and address are right; the first reading shows whether it is taken"
        return [Check(True, words)]

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()

    def _judge(self, answer: Answer) -> Outcome:
        status = answer.status
        try:
            secrets = secrets_of(self._read_key(), self._read_url() if self._options.get("url_file") else "")
        except ConfigError:
            return Outcome(DeliveryResult.AMBIGUOUS, f"HTTP {status}")
        said = answer.shown(secrets)
        reason = f"HTTP {status}: {said}" if said else f"HTTP {status}"
        retry_after_s = parse_retry_after(answer.headers.get("retry-after"), self._clock.now())
        if 200 <= status < 300:
            failed = self._options.get("failed_body")
            if failed is not None and answer.body.decode("utf-8", "replace").strip() == failed:
                return Outcome(DeliveryResult.KEPT, f"HTTP {status}, but it says {failed}: not taken")
            return Outcome(DeliveryResult.ACCEPTED)
        if status in PAUSED_STATUSES:
            return Outcome(DeliveryResult.PAUSED, reason)
        if status in KEPT_STATUSES:
            return Outcome(DeliveryResult.KEPT, reason, retry_after_s)
        if 400 <= status < 500:
            return Outcome(DeliveryResult.REFUSED, reason)
        return Outcome(DeliveryResult.AMBIGUOUS, reason, retry_after_s)


class Request(NamedTuple):
    """A request to be sent."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def request_of(
    options: Mapping[str, Any], url: str, key: str, readings: Sequence[Mapping[str, Any]], now: float
) -> Request:
    """Return the request for readings. Without a template a reading is a JSON object of all that is known."""
    given = [
        {
            **values,
            "at_ms": int(values["at"]) * 1000,
            "slug": slug_of(values["device"]),
            "device_hash": hashlib.sha256(str(values["device"]).encode()).hexdigest()[:16],
            "token": key,
        }
        for values in readings
    ]
    content_type = options["content_type"]
    if options["body"]:
        bodies = [fill(options["body"], values, content_type) for values in given]
        if options["preset"] and content_type == JSON:
            bodies = [_without_nulls(body) for body in bodies]
    else:
        bodies = [
            json.dumps({name: value for name, value in values.items() if value not in (None, "")}).encode()
            for values in readings
        ]
    body = b"[%s]" % b",".join(bodies) if options["batch"] else bodies[0]
    headers = {"Content-Type": content_type, **options["headers"]}
    if options["token_header"]:
        headers[options["token_header"]] = key
    elif not options["preset"]:
        headers |= signed_headers(message_id(readings), int(now), body, key)
    return Request(url.replace(URL_PLACE, given[0]["slug"]), headers, body)


def message_id(readings: Sequence[Mapping[str, Any]]) -> str:
    """Return the reading's id, of several readings one that follows from theirs."""
    if len(readings) == 1:
        return str(readings[0]["id"])
    return hashlib.sha256(",".join(values["id"] for values in readings).encode()).hexdigest()[:24]


def slug_of(device: str) -> str:
    """Return the device's key as letters, digits, - and _."""
    return _NO_SLUG.sub("-", device.lower()).strip("-") or "device"


def checked(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return all settings, with those of the preset; `ConfigError` names what is wrong.

    `preset`, `body` (a template), `content_type`, `batch`, `latest`, `min_interval_s`; `url` if it is not
    secret.
    """
    name = options.get("preset") or ""
    if name and name not in presets():
        known = ", ".join(presets())
        raise ConfigError(f"there is no preset {name}{did_you_mean(name, presets())}; there are {known}")
    preset = presets()[name] if name else {}
    found = {
        "content_type": JSON, "body": "", "headers": {}, "token_header": "", "min_interval_s": 0,
        **preset, "batch": False, "latest": bool(preset) and not preset.get("backlog"),
        **{key: value for key, value in options.items() if value not in (None, "")}, "preset": name,
    }  # fmt: skip
    if found["batch"] and (found["latest"] or name or found["content_type"] == FORM):
        raise ConfigError("--batch is for every reading, in JSON, without a preset")
    if name and not preset.get("backlog") and not found["latest"]:
        raise ConfigError(f"{preset['title']} takes no time: it gets the newest reading only (--latest)")
    seconds = found["min_interval_s"]
    least = preset.get("min_interval_s", 0)
    if not isinstance(seconds, int | float) or not least <= seconds <= INTERVAL_MAX_S:
        raise ConfigError(f"--min-interval is {least} s to {INTERVAL_MAX_S} s here")
    if found["body"]:
        check_template(found["body"], TEMPLATE_NAMES, found["content_type"])
    elif found["content_type"] != JSON:
        raise ConfigError("without a template a reading is JSON")
    return found


def host_and_port(url: str) -> tuple[str, int]:
    """Return host and port of a URL that `check_url` takes."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def secrets_of(key: str, url: str) -> list[str]:
    """Return what an answer may repeat and nobody may see: the key, the address and parts of it."""
    parts = urlsplit(url)
    values = [value for _, value in parse_qsl(parts.query)]
    levels = [level for level in parts.path.split("/") if len(level) >= SECRET_CHARACTERS]
    return [key, url, parts.query, *values, *levels]


def _without_nulls(body: bytes) -> bytes:
    """Return the JSON object without members that are null, or whose value is."""
    members = json.loads(body)
    kept = {
        name: value
        for name, value in members.items()
        if value is not None and not (isinstance(value, dict) and value.get("value", value) is None)
    }
    return json.dumps(kept).encode()
