"""What the clouds that show the latest reading only have in common: pace, requests and their endings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from gateway.clock import Clock
from gateway.domain.delivery import Batch, DeliveryResult, Outcome
from gateway.domain.target import Target
from gateway.errors import ConfigError, unreachable
from gateway.forward.backoff import parse_retry_after
from gateway.forward.kinds import Check, Lane, Policy, SessionPaused, everything
from gateway.forward.kinds.values import values_of
from gateway.outward.client import PORTS, Answer, OutwardClient, check_url
from gateway.outward.guard import OutwardFailed

PAUSED_STATUSES = frozenset({401, 403, 404, 405, 410, 415})
"""Statuses of a wrong key or address: a person must act."""

KEPT_STATUSES = frozenset({408, 425, 503})
"""Certainly not taken, and perhaps later."""

TOO_SOON_STATUS = 429


class Request(NamedTuple):
    """A request with JSON."""

    url: str
    body: bytes


class Cloud:
    """A service on the internet that stamps a reading with the time of its arrival."""

    lane: Lane = "device"
    policy = Policy.LATEST
    repeat_is_harmless = True
    most: int | None = 1
    gather_s: float | None = 0.0
    key_on_the_way = True

    min_interval_s = 905.0
    """Seconds from one reading to the next: the services ask for 15 minutes, and 5 s are for our clocks."""

    interval_by_session = False
    """Whether all devices of a brew session share the interval."""

    own_url = ""
    """The service's address, without a key."""

    def __init__(
        self,
        target: Target,
        read_key: Callable[[], str],
        read_url: Callable[[], str],
        client: OutwardClient,
        clock: Clock,
    ) -> None:
        """`read_key` and `read_url` read the file of the key or of the address; `ConfigError` if not."""
        self.name = self.shown = target.url
        self._target = target
        self._options = target.options
        self._read_key = read_key
        self._read_url = read_url
        self._client = client
        self._clock = clock

    @property
    def base_url(self) -> str:
        """Return the address without the key: that of the settings, else the service's own."""
        return str(self._options.get("url") or self.own_url)

    def request(self, values: Mapping[str, Any]) -> Request:
        """Return the request for a reading; the values are those of `values_of`."""
        raise NotImplementedError

    def secrets(self) -> list[str]:
        """Return what an answer may repeat and nobody may see: the key, also as it stands in an address."""
        key = self._read_key()
        return [key, quote(key, safe="")]

    def address(self) -> str:
        """Return the URL, secret and all; `ConfigError` if it is none, or key or address cannot be read."""
        if self.own_url and not self._target.key_file:
            raise ConfigError("--key-file is missing: a file that holds only the key")
        return check_url(self.request(NOTHING).url)

    async def wait_for_slot(self) -> None:
        """Wait for nothing: each device has its own interval."""

    async def send(self, batch: Batch) -> Outcome:
        """Send the batch's only reading."""
        try:
            secrets = self.secrets()
            url, body = self.request(values_of(batch.rows[0]))
            headers = {"Content-Type": "application/json"}
            answer = await self._client.request("POST", url, headers=headers, body=body)
        except OutwardFailed as failure:
            return failure.outcome
        except ConfigError as error:
            return Outcome(DeliveryResult.PAUSED, str(error))
        return self.judge(answer, secrets)

    def judge(self, answer: Answer, secrets: Sequence[str]) -> Outcome:
        """Return how a request ended. What concerns one device alone is `SessionPaused`."""
        status, shown = answer.status, answer.shown(secrets)
        reason = f"HTTP {status}: {shown}" if shown else f"HTTP {status}"
        if 200 <= status < 300:
            return Outcome(DeliveryResult.ACCEPTED)
        if status == TOO_SOON_STATUS:
            return SessionPaused(DeliveryResult.PAUSED, reason)
        if status in PAUSED_STATUSES:
            return Outcome(DeliveryResult.PAUSED, reason)
        retry_after_s = parse_retry_after(answer.headers.get("retry-after"), self._clock.now())
        if status in KEPT_STATUSES:
            return Outcome(DeliveryResult.KEPT, reason, retry_after_s)
        if 400 <= status < 500:
            return Outcome(DeliveryResult.REFUSED, reason)
        return Outcome(DeliveryResult.AMBIGUOUS, reason, retry_after_s)

    async def read_back(self, batch: Batch) -> tuple[Sequence[int], Sequence[int]]:
        """Send it again, after the interval."""
        return everything(batch)

    async def test(self) -> Sequence[Check]:
        """Look at key and address. Nothing is sent: the service would show it as a reading."""
        try:
            url = urlsplit(self.address())
        except ConfigError as error:
            return [Check(False, str(error))]
        host = url.hostname or ""
        try:
            await self._client.guard.addresses(host, url.port or PORTS[url.scheme])
        except OutwardFailed as error:
            return [Check(False, unreachable(str(error), host))]
        return [Check(True, "key and address can be used; the first reading shows whether it is taken")]

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


NOTHING = values_of(
    '{"id": "", "at": 0, "device": "", "name": "", "session": null, "batchcode": null, "sg": null, '
    '"temp_c": null, "facts": {}, "flags": [], "comment": ""}'
)
"""A reading of nothing, to make an address with."""


def known(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that have a value."""
    return {name: value for name, value in body.items() if value is not None and value != ""}
