"""The whole HTTP side as the gateway builds it, and an account with one marked record of every kind."""

import io
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from PIL import Image
from yarl import URL

from gateway.clock import SystemClock
from gateway.domain.alarm import Alarm, AlarmEvent
from gateway.domain.inbox import WaitingName, WaitReason
from gateway.domain.key import ALL_SCOPES
from gateway.domain.payload import Payload
from gateway.domain.quarantined import Quarantined
from gateway.domain.recipe import CONTENT_MEMBERS, INGREDIENT_KINDS, Ingredient, RecipeContent
from gateway.domain.target import Route
from gateway.endpoints import ENDPOINTS
from gateway.http import openapi
from gateway.http.browsers import ReportRules
from gateway.http.event_streams import MEDIA
from gateway.http.parameters import path_template
from gateway.intake.intake import Intake
from gateway.manage import watch
from gateway.network import Admission
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services, build_services
from gateway.services.mapped_targets import NewMapped
from gateway.services.timeline import EventContent
from gateway.site import build
from gateway.store.protocols.alarms import AlarmChange
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.http import HttpIngest
from tests.program.program import ispindel
from tests.system.api.harmless import HARMLESS_KEY, harmless


def device_routes(services: Services, origins: Collection[str] = ()) -> list[web.RouteDef]:
    intake = Intake(services.store, services.notices, services.stats, services.clock)
    admission, rules = Admission(services.clock), ReportRules(origins)
    return HttpIngest(intake, services.access, services.clock, admission, rules, services.stats).routes()


def unused_parts() -> Services:
    """For looking at routes only: the store is never opened."""
    directory = Path("nowhere")
    return build_services(SqliteStore(directory), directory, SystemClock())


def app_on(services: Services, **options: Any) -> web.Application:
    """Every route there is, as `gateway.app` builds them."""
    return build(services, device_routes(services, options.get("allowed_origins", ())), **options)


def routes_of(app: web.Application) -> list[tuple[str, str]]:
    """Method and path of every route, path parameters as `{name}`, in the router's order."""
    resources = [(route.method, route.resource) for route in app.router.routes()]
    return [(method, resource.canonical) for method, resource in resources if resource is not None]


ROUTES = routes_of(app_on(unused_parts(), page=False))

PATHS = list(dict.fromkeys(path for _, path in ROUTES))

KEPT_PATHS = [path for path in PATHS if path.startswith(("/v1/", "/manage/")) or path == "/metrics"]
"""Those that need a key."""

OWNER_ONLY = {
    (method, path_template(endpoint.path))
    for endpoint in ENDPOINTS
    if endpoint.owner_only
    for method in ((endpoint.method, "HEAD") if endpoint.method == "GET" else (endpoint.method,))
}
"""Routes that are about the whole gateway: keys of other accounts get a 403."""


def methods_of(path: str) -> set[str]:
    return {method for method, routed in ROUTES if routed == path}


BEERXML = b"""<?xml version="1.0"?><RECIPES><RECIPE><NAME>Harbour Porter</NAME><VERSION>1</VERSION>
<TYPE>All Grain</TYPE><BATCH_SIZE>21</BATCH_SIZE></RECIPE></RECIPES>"""

QUERIES = {
    ("GET", "/v1/recipes/{recipe_id}/photo"): "?uuid={uuid}",
    ("HEAD", "/v1/recipes/{recipe_id}/photo"): "?uuid={uuid}",
    ("DELETE", "/manage/keys"): "?name={spare_key}",
    ("GET", "/manage/recipes.xml"): "?ids={recipe_id}",
    ("HEAD", "/manage/recipes.xml"): "?ids={recipe_id}",
    ("GET", "/manage/heard"): "?since=2020-01-01",
    ("HEAD", "/manage/heard"): "?since=2020-01-01",
}
"""What a path needs beside its parameters to be answered."""


def picture(kind: str = "png") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 3), "gold").save(file, kind)
    return file.getvalue()


BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/v1/fermentation/{brew_session_id}/import"): {"json": [{"gravity": 1.01}]},
    ("POST", "/manage/recipes"): {"data": BEERXML, "headers": {"Content-Type": "application/xml"}},
    ("PATCH", "/manage/recipes/{recipe_id}"): {"json": {"folder_id": 0}},
    ("POST", "/manage/recipes/{recipe_id}/photos"): {
        "data": picture(),
        "headers": {"Content-Type": "image/png"},
    },
    ("PATCH", "/manage/recipes/{recipe_id}/photos/{uuid}"): {"json": {"caption": "changed"}},
    ("POST", "/manage/folders"): {"json": {"kind": "recipe", "name": "new"}},
    ("PATCH", "/manage/folders/{folder_id}"): {"json": {"name": "changed"}},
    ("POST", "/manage/brewsessions"): {"json": {"batchcode": "NEW"}},
    ("PATCH", "/manage/brewsessions/{brew_session_id}"): {"json": {"phase": "changed"}},
    ("POST", "/manage/brewsessions/{brew_session_id}/events"): {
        "json": {"kind": "hand_reading", "gravity": "1.024"}
    },
    ("PATCH", "/manage/brewsessions/{brew_session_id}/events/{event_id}"): {"json": {"text": "changed"}},
    ("PUT", "/manage/brewsessions/{brew_session_id}/targets/{name}"): {"json": {"upstream_id": 6}},
    ("PUT", "/manage/alarms/settings"): {
        "json": {"rule": "temperature", "setting": {"lo": 17, "hi": 22}},
    },
    ("POST", "/manage/alarms/test"): {"json": {"rule": "stuck"}},
    ("POST", "/manage/alarms/{alarm_id}/snooze"): {"json": {"until": "8h"}},
    ("POST", "/manage/alarms/{alarm_id}/ack"): {},
    ("POST", "/manage/accounts"): {"json": {"name": "third"}},
    ("POST", "/manage/keys"): {"json": {"name": "new"}},
    ("POST", "/manage/links"): {"json": {"kind": "tv", "name": "new"}},
    ("POST", "/manage/keys/rotate"): {"json": {"name": "test"}},
    ("POST", "/manage/brewsessions/{brew_session_id}/readings"): {"json": {"csv": "gravity\n1.05\n"}},
    ("POST", "/manage/brewsessions/{brew_session_id}/readings/take-back"): {"json": {}},
    ("PATCH", "/manage/recipes"): {"json": {"recipe_ids": [1], "folder_id": 0}},
    ("POST", "/manage/brewsessions/{brew_session_id}/next"): {"json": {"batchcode": "NEXT"}},
    ("POST", "/manage/brewsessions/{brew_session_id}/undelete"): {},
    ("POST", "/manage/brewsessions/{brew_session_id}/purge"): {},
    ("PATCH", "/manage/devices/{device_id}"): {"json": {"label": "new"}},
    ("POST", "/manage/devices/{device_id}/calibration/fit"): {"json": {"points": [[25, 1.0], [65, 1.1]]}},
    ("PATCH", "/manage/devices/{device_id}/calibration"): {"json": {"gravity_offset": 0.001}},
    ("POST", "/manage/devices/{device_id}/exclusions"): {"json": {"from": "2026-03-01T18:30:00Z"}},
    ("PUT", "/manage/devices/{device_id}/brewsession"): {"json": {"brew_session_id": 1}},
    ("PUT", "/manage/devices/{device_id}/source"): {"json": {"source": "192.168.1.37"}},
    ("POST", "/manage/devices/{device_id}/resend"): {"json": {}},
    ("POST", "/manage/devices/{device_id}/merge"): {"json": {"other": 2}},
    ("POST", "/manage/targets"): {"json": {"name": "new", "url": f"{harmless()}/new", "key": HARMLESS_KEY}},
    ("PUT", "/manage/targets/{name}/routes/{what}/{route_id}"): {"json": {"since": "2026-03-01"}},
    ("PUT", "/manage/targets/{name}"): {"json": {"url": f"{harmless()}/login", "key": HARMLESS_KEY}},
    ("PATCH", "/manage/targets/{name}"): {"json": {"paused": True}},
    ("PUT", "/manage/targets/{name}/brewsessions/{brew_session_id}"): {"json": {"upstream_id": 5}},
    ("POST", "/manage/targets/{name}/resend"): {"json": {"since": "2026-03-01T18:30:00Z"}},
    ("POST", "/manage/targets/{name}/test"): {},
    ("POST", "/manage/channels"): {
        "json": {"name": "new", "kind": "webhook", "settings": {"url": harmless()}}
    },
    ("PATCH", "/manage/channels/{channel}"): {"json": {"paused": True}},
    ("POST", "/manage/channels/{channel}/test"): {},
    ("POST", "/manage/quarantine/replay"): {"json": {}},
    ("POST", "/manage/inbox/accept"): {"json": {"numbers": [1]}},
    ("POST", "/manage/inbox/refuse"): {"json": {"numbers": [2]}},
    ("POST", "/manage/mirror"): {"json": {"url": harmless(), "key": HARMLESS_KEY}},
    ("POST", "/manage/backup"): {"json": {"file": "gateway.tar", "size": 1}},
    ("POST", "/manage/sample-data"): {"json": {"photos": False}},
}
"""Bodies that routes take."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Running:
    """A running service with every route, its parts, and the owner's first key."""

    client: TestClient[web.Request, web.Application]
    services: Services
    key: str

    async def ask(self, method: str, path: str, key: str | None = None, **more: Any) -> Answer:
        """One request, the path taken as it is, with the owner's key unless another is named."""
        headers = {"X-API-KEY": self.key if key is None else key, **more.pop("headers", {})}
        async with self.client.request(
            method, URL(path, encoded=True), headers=headers, allow_redirects=False, **more
        ) as answer:
            # A stream of events has no end, and what it begins with stands for it.
            endless = answer.status == 200 and answer.content_type == MEDIA and method != "HEAD"
            body = await answer.content.readany() if endless else await answer.read()
            return Answer(answer.status, answer.headers, body)


@asynccontextmanager
async def running(directory: Path, **options: Any) -> AsyncIterator[Running]:
    """`options` are those of `site.build`."""
    store = SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, SystemClock())
        first = await services.access.start(first_key="test")
        assert first is not None
        await services.alarms.start()
        server = TestServer(app_on(services, **options))
        await server.start_server(auto_decompress=False)  # as the composition root does
        async with TestClient(server) as client:
            try:
                yield Running(client, services, first.key_text)
            finally:
                services.photos.stop()
    finally:
        await store.close()


@dataclass(frozen=True)
class Filled:
    """An account: its records' ids by the path parameter that takes them; `mark` is in all its texts."""

    account_id: int
    mark: str
    key: str
    ids: dict[str, str]

    def path(self, template: str) -> str:
        """The template with this account's ids; a parameter that nobody knows is an error here."""
        if template.endswith(("/undelete", "/purge")):
            return template.format_map({**self.ids, "brew_session_id": self.ids["deleted_session_id"]})
        if "/routes/" in template:
            return template.format_map({**self.ids, "name": self.ids["mapped"]})
        return template.format_map(self.ids)


def marked_recipe(mark: str) -> RecipeContent:
    record = dict.fromkeys(CONTENT_MEMBERS, mark)
    ingredients: dict[str, list[Ingredient]] = {kind: [{"name": mark}] for kind in INGREDIENT_KINDS}
    return RecipeContent(record, ingredients, f"<RECIPE><NAME>{mark}</NAME><VERSION>1</VERSION></RECIPE>")


async def fill(services: Services, account: str, mark: str) -> Filled:
    """A recipe in a folder, with a photo, brewed in a session in a folder, with a reading; all marked."""
    account_id, key = (
        await services.access.account_id(account),
        await services.access.add(mark, ALL_SCOPES, account),
    )
    spare = f"{mark}-spare"
    await services.access.add(spare, frozenset({"read"}), account)
    folder = await services.library.add_folder(account_id, "recipe", mark)
    sessions = await services.library.add_folder(account_id, "brewsession", mark)
    recipe = await services.library.add(account_id, marked_recipe(mark), folder_id=folder.id)
    photo = await services.photos.add(recipe.id, picture(), f"{mark}.png", mark)
    said = SessionChange(recipe.id, mark, mark, "2026-03-01", mark, sessions.id, None, {"chillmethod": mark})
    session = await services.brewsessions.add_session(account_id, said)
    reading = f'[{{"gravity": 1.05, "name": "{mark}", "comment": "{mark}", "ph": "{mark}"}}]'.encode()
    await services.importing.run(session, reading, "json", "", False)
    _, link = await services.links.make(account_id, "picture", mark, session)
    event = await services.timeline.add(session, EventContent("note", text=mark), mark, "")
    alarm = await alarm_of(services, account_id, session.id, mark)
    # These belong to the gateway and to no account, so they have no mark.
    arrival = services.clock.now() - 60
    for number in (account_id, account_id + 100):
        report = ispindel(number, name=f"device{number}", gravity="1.05").encode()
        await services.intake.take(Payload(report, arrival, "http /ingest"))
    device = next(d for d in await services.store.devices.all() if d.stable_id == str(account_id))
    settings = replace(device.settings, excluded=((0, 1),))
    await services.reprocessor.configure(device, settings, lambda _: None)
    deleted = await services.brewsessions.add_session(account_id, SessionChange(batchcode=mark))
    await services.brewsessions.delete_session(deleted)
    await services.store.quarantine.add(Quarantined(b"?", "not understood", int(arrival), "http /", ""))
    [quarantined] = await services.store.quarantine.newest(1)
    waiting = Payload(ispindel(account_id + 200).encode(), arrival, "http /ingest")
    for name in ("first", "second", "refused"):
        device_key = f"ispindel:{account_id + 200}"
        entry = WaitingName(device_key, name, WaitReason.NEW, "ispindel", str(account_id + 200), name, 1)
        await services.store.inbox.add(waiting, [entry])
    await services.intake.inbox.refuse([(await services.store.inbox.names())[-1].id])
    refused = (await services.store.inbox.refused())[-1]
    target = f"target{account_id}"
    await services.targets.add_with_key(target, f"{harmless()}/{target}", HARMLESS_KEY)
    mapped = f"mapped{account_id}"
    await services.mapped.add(NewMapped(mapped, "webhook", harmless()))
    await services.mapped.add_route(mapped, Route("device", device.id), None)
    channel = f"channel-{mark}"
    await services.channels.add(channel, "webhook", {"url": harmless()}, account_id=account_id)
    ids = {
        "channel": channel,
        "device_id": str(device.id),
        "number": str(quarantined.id),
        "refused_id": str(refused.id),
        "name": target,
        "mapped": mapped,
        "what": "device",
        "route_id": str(device.id),
        "recipe_id": str(recipe.id),
        "brew_session_id": str(session.id),
        "deleted_session_id": str(deleted.id),
        "folder_id": str(folder.id),
        "session_folder_id": str(sessions.id),
        "uuid": photo.uuid,
        "event_id": str(event.id),
        "alarm_id": str(alarm.id),
        "link_id": str(link.id),
        "key": "hg_unknown",
        "spare_key": spare,
    }
    return Filled(account_id, mark, key, ids)


async def alarm_of(services: Services, account_id: int, session_id: int, mark: str) -> Alarm:
    """An alarm that fires about a brew, and a limit of that brew; both are marked."""
    await services.alarms.set("reached", {"day": 9, "text": mark}, "brew", str(session_id))
    at, subject = int(services.clock.now()) - 60, str(session_id)
    fired = AlarmEvent(0, 0, at, "fired", mark)
    alarm = Alarm(0, account_id, "stuck", "brew", subject, "firing", at, at, evidence={"sg": 1.03}, text=mark)
    [made] = await services.alarms.apply(lambda _: [AlarmChange(alarm, fired)])
    return made


def description() -> dict[str, Any]:
    """The OpenAPI document of all these routes."""
    services = unused_parts()
    endpoints = (*ENDPOINTS, *watch.endpoints(0.0))
    described = (*endpoints, *openapi.endpoints(endpoints, device_routes(services)))
    return openapi.document(described, device_routes(services))
