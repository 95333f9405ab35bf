"""Streams of server-sent events: what changed, as it changes. A page then asks again for that part alone.

An event has ids only. A slow reader loses nothing: topics that changed again before they were sent are one.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from aiohttp import hdrs, web

from gateway.domain.account import OWNER_ID
from gateway.errors import RateLimited, StoreUnavailable
from gateway.events import EVERYTHING, Topic, TopicListener
from gateway.http.guard import Handler
from gateway.http.middleware import SERVICES, peer_of
from gateway.network import source_of
from gateway.store.protocol import Store

MEDIA = "text/event-stream"

RETRY_MS = 5000
"""Milliseconds after which a browser begins a stream that has ended again."""

COMMENT_S = 15.0
"""Seconds of silence until a comment goes out: a router forgets a connection that says nothing."""

PACE_S = 1.0
"""Seconds between two batches of events: at most one event a topic in each."""

WATCH_S = 1.0
"""Seconds between two checks that the client is there, that its key still holds, and that all is well."""

STUCK_S = 30.0
"""Seconds that a client may take to read what was sent."""

PER_SOURCE, STREAMS = 10, 50
"""Streams at once, of one address and in all."""

GATEWAY = Topic("gateway")

HEADERS = {
    hdrs.CONTENT_TYPE: MEDIA,
    hdrs.CACHE_CONTROL: "no-store",
    # A proxy in front must not gather events until it has a whole page of them.
    "X-Accel-Buffering": "no",
}


class Sight:
    """What a listener may see of the topics that change: those of an account, or of some of its brews.

    `holds` says whether the listener may still see anything. `brews` are ids; None is all of the account.
    """

    def __init__(
        self,
        store: Store,
        account_id: int,
        *,
        everywhere: bool = False,
        brews: Callable[[], Collection[int]] | None = None,
        holds: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._account_id = account_id
        self._everywhere = everywhere
        self._brews = brews
        self.holds = holds

    @property
    def is_owner(self) -> bool:
        """Return whether topics of the whole gateway are in sight."""
        return self._brews is None and (self._everywhere or self._account_id == OWNER_ID)

    async def of(self, topics: Sequence[Topic]) -> list[Topic]:
        """Return what is to be seen of these topics; to a device add its brew, which intake does not know."""
        devices: dict[int, int | None] = {}
        if any(topic.device is not None and topic.brew is None for topic in topics):
            devices = {device.id: device.session_id for device in await self._store.devices.all()}
        seen: dict[Topic, None] = {}
        for topic in topics:
            brew = topic.brew if topic.device is None else topic.brew or devices.get(topic.device)
            mine = brew if brew is not None and await self._is_mine(brew) else None
            if topic.kind == EVERYTHING:
                seen[topic] = None
            elif self.is_owner or mine is not None:
                seen[Topic(topic.kind, mine, topic.device)] = None
        return [topic for topic in seen if topic != Topic("brew")]

    async def _is_mine(self, brew: int) -> bool:
        if self._brews is not None and brew not in self._brews():
            return False
        session = await self._store.sessions.get(brew)
        return session is not None and (self._everywhere or session.account_id == self._account_id)


class EventStreams:
    """The streams of an application, counted by source."""

    def __init__(self) -> None:
        self._open: dict[TopicListener, tuple[str, web.Request]] = {}
        self._ended = asyncio.Event()

    async def end(self, _: web.Application) -> None:
        """End all streams at once: the gateway stops, and waits for nobody who looks at a page."""
        self._ended.set()
        for listener in self._open:
            listener.add(Topic(EVERYTHING))

    async def send(self, request: web.Request, sight: Sight) -> web.StreamResponse:
        """Send events until the client leaves, its key ends or the gateway stops."""
        response = web.StreamResponse(headers=HEADERS)
        if request.method == hdrs.METH_HEAD:
            await response.prepare(request)
            return response
        services = request.app[SERVICES]
        with services.notices.follow() as news, self._place(request, news):
            if request.query.get("seen", count := str(services.notices.count)) != count:
                # Something changed after the page was made, and before its stream began.
                news.add(Topic(EVERYTHING))
            await response.prepare(request)
            await _write(response, b"retry: %d\n\n" % RETRY_MS)
            loop = asyncio.get_running_loop()
            written_at, trouble = loop.time(), set(services.stats.in_trouble)
            while self._goes_on(request, sight):
                topics = news.take() if await news.wait(WATCH_S) else []
                if trouble != services.stats.in_trouble:
                    trouble = set(services.stats.in_trouble)
                    topics.append(GATEWAY)
                events = await _events(sight, topics)
                if not events and loop.time() - written_at < COMMENT_S:
                    continue
                if not self._goes_on(request, sight):
                    break
                await _write(response, events or b":\n\n")
                written_at = loop.time()
                if events:
                    await self._pause(PACE_S)
        return response

    @contextmanager
    def _place(self, request: web.Request, listener: TopicListener) -> Iterator[None]:
        source = source_of(peer_of(request).address)
        alive = [where for where, each in self._open.values() if not _is_gone(each)]
        if len(alive) >= STREAMS or alive.count(source) >= PER_SOURCE:
            raise RateLimited(RETRY_MS / 1000)
        self._open[listener] = source, request
        protocol = request.protocol
        if isinstance(protocol, Handler):
            protocol.is_streaming = True
        try:
            yield
        finally:
            del self._open[listener]
            if isinstance(protocol, Handler):
                protocol.is_streaming = False

    def _goes_on(self, request: web.Request, sight: Sight) -> bool:
        return not self._ended.is_set() and not _is_gone(request) and sight.holds()

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            return


EVENT_STREAMS: web.AppKey[EventStreams] = web.AppKey("event_streams")


async def _events(sight: Sight, topics: Sequence[Topic]) -> bytes:
    try:
        seen = await sight.of(topics) if topics else []
    except StoreUnavailable:
        seen = [GATEWAY]
    return b"".join(map(_event, seen))


def _event(topic: Topic) -> bytes:
    ids = dict(zip(topic._fields[1:], topic[1:], strict=True))
    ids = {name: value for name, value in ids.items() if value is not None}
    return f"event: {topic.kind}\ndata: {json.dumps(ids, separators=(',', ':'))}\n\n".encode()


async def _write(response: web.StreamResponse, data: bytes) -> None:
    try:
        async with asyncio.timeout(STUCK_S):
            await response.write(data)
    except TimeoutError as error:
        raise ConnectionResetError("the client reads nothing") from error


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()
