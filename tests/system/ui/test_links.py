"""Links that need no login: pictures of a brew, and the page for a screen on the wall."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree
from PIL import Image
from yarl import URL

from gateway.domain.brewsession import BrewSession
from gateway.domain.payload import Payload
from gateway.domain.times import iso
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from gateway.ui.charts import picture as drawing
from gateway.ui.charts import png
from gateway.ui.views import picture
from tests.cases import each
from tests.clock import FakeClock
from tests.payloads import ispindel
from tests.system.ui.site import Browser, parse, served

NASTY = '<img src=x onerror=alert(1)>"&{{7*7}}\u202e\x0b'


async def brewed(services: Services, name: str = "HP001", hours: int = 48) -> BrewSession:
    """A brew with a reading an hour, which falls from 1.060 to 1.012."""
    session = await services.brewsessions.add_session(1, SessionChange(batchcode=name))
    begun = services.clock.now() - hours * 3600
    rows = [
        {
            "gravity": f"{max(1.012, 1.06 - hour / 900):.4f}",
            "temp": f"{19 + hour % 5 / 10}",
            "created_at": iso(begun + hour * 3600),
        }
        for hour in range(hours)
    ]
    await services.importing.run(session, json.dumps(rows).encode(), "json", "", False)
    return session


async def link_to(
    services: Services, session: BrewSession | None, kind: Any = "picture", **options: str
) -> str:
    token, _ = await services.links.make(1, kind, "screen", session, options)
    return token


async def fetched(page: Browser, path: str, status: int = 200, **headers: str) -> tuple[bytes, Any]:
    """An answer without any login."""
    async with page.client.get(URL(f"/ui{path}", encoded=True), headers=headers) as answer:
        assert answer.status == status, await answer.text()
        return await answer.read(), answer.headers


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    monkeypatch.setattr(picture, "PICTURES", picture.Pictures())
    return FakeClock()


async def test_a_picture_needs_no_login_and_shows_its_brew_alone(tmp_path: Path, clock: FakeClock) -> None:
    async with served(tmp_path, clock=clock) as page:
        session = await brewed(page.services, NASTY)
        token = await link_to(page.services, session, gravity_unit="P", language="de")
        body, headers = await fetched(page, f"/picture/{token}.svg?w=640&h=400")
        root = ElementTree.fromstring(body)
        assert (root.get("width"), root.get("height")) == ("640", "400")
        texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        assert "°P" in texts
        assert any("<img src=x" in (text or "") for text in texts)
        assert b"<img" not in body
        assert b"style" not in body
        assert b'class="gravity"' not in body  # it has no page whose styles could colour it
        assert headers["Content-Type"] == "image/svg+xml"
        assert headers["Cache-Control"] == "max-age=60"
        await fetched(page, f"/picture/{token}.gif", 404)
        await fetched(page, f"/picture/{token}", 404)
        await fetched(page, "/picture/unknown.svg", 404)
        wall = await link_to(page.services, session, "tv")
        await fetched(page, f"/picture/{wall}.svg", 404)


@each("scheme, colours", [("light", 256 * 256), ("dark", 256 * 256), ("mono", 16)])
async def test_a_picture_as_png(scheme: str, colours: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    picture.PICTURES = picture.Pictures()
    async with served(tmp_path_factory.mktemp("png"), clock=FakeClock()) as page:
        token = await link_to(page.services, await brewed(page.services))
        body, headers = await fetched(page, f"/picture/{token}.png?w=300&h=200&scheme={scheme}")
        assert headers["Content-Type"] == "image/png"
        image = Image.open(io.BytesIO(body))
        assert image.size == (300, 200)
        found = image.convert("RGB").getcolors(300 * 200)
        assert found is not None
        assert 4 < len(found) <= colours
        if scheme == "mono":
            assert all(isinstance(each, tuple) and len(set(each)) == 1 for _, each in found)


async def test_a_revoked_link_and_a_deleted_brew_have_no_picture(tmp_path: Path, clock: FakeClock) -> None:
    async with served(tmp_path, clock=clock) as page:
        services, session = page.services, await brewed(page.services)
        token, other = await link_to(services, session), await link_to(services, session)
        await fetched(page, f"/picture/{token}.svg")
        await services.links.revoke(1, services.links.all(1)[0].id)
        await fetched(page, f"/picture/{token}.svg", 404)
        await services.brewsessions.delete_session(session)
        await fetched(page, f"/picture/{other}.svg", 404)


async def test_a_picture_is_drawn_once_a_second_and_only_if_something_changed(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    real = drawing.picture

    def draw(*given: Any) -> bytes:
        drawn.append(given)
        return real(*given)

    monkeypatch.setattr(picture, "picture", draw)
    async with served(tmp_path, clock=clock) as page:
        session = await brewed(page.services)
        path = f"/picture/{await link_to(page.services, session)}.svg"
        _, headers = await fetched(page, path)
        tag = headers["ETag"]
        await fetched(page, path)
        assert len(drawn) == 1
        clock.advance(2)
        body, _ = await fetched(page, path, 304, **{"If-None-Match": tag})
        assert body == b""
        assert len(drawn) == 1
        report = b'[{"gravity": 1.011}]'
        await page.services.importing.run(session, report, "json", "", False)
        clock.advance(2)
        _, headers = await fetched(page, path, **{"If-None-Match": tag})
        assert headers["ETag"] != tag
        assert len(drawn) == 2


@each("query", ["w=10", "h=9999", "w=x", "w=%D9%A3", "scheme=pink", "w=" + "9" * 5000])
async def test_a_picture_that_cannot_be(query: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    async with served(tmp_path_factory.mktemp("bad"), clock=FakeClock()) as page:
        token = await link_to(page.services, None)
        await fetched(page, f"/picture/{token}.svg?{query}", 400)


async def test_a_picture_without_a_running_brew_says_so(tmp_path: Path, clock: FakeClock) -> None:
    async with served(tmp_path, clock=clock) as page:
        body, _ = await fetched(page, f"/picture/{await link_to(page.services, None)}.svg")
        assert "No brew is running" in body.decode()


def test_letters_without_the_font_of_debian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, "FONT", Path("/nowhere"))
    png.font.cache_clear()
    assert png.writable("Gärung – 20,5\u00a0°C · Straße") == "Garung - 20,5 C  Strasse"
    assert png.font(14) is not None
    png.font.cache_clear()


async def test_a_screen_by_a_link_needs_no_login_and_has_nothing_to_touch(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with served(tmp_path, clock=clock) as page:
        await brewed(page.services, NASTY)
        await brewed(page.services, "LQ002", hours=10)
        token = await link_to(page.services, None, "tv", gravity_unit="P", language="de")
        body, headers = await fetched(page, f"/tv/{token}")
        root = parse(body.decode())
        assert {tile.one("h2").text for tile in root.all("article")} == {"LQ002", NASTY.strip()}
        assert not [name for name in ("a", "button", "input", "form", "summary") if root.all(name)]
        assert root.one("html").attributes["lang"] == "de"
        assert "°P" in root.text
        assert root.all(class_="state")[0].text == "Alles gut"
        assert root.one("meta", **{"http-equiv": "refresh"})
        wall = root.one("main").attributes
        part, _ = await fetched(page, wall["data-src"].removeprefix("/ui"))
        assert len(parse(part.decode()).all("article")) == 2
        assert "img-src 'self'" in headers["Content-Security-Policy"]
        picture_token = await link_to(page.services, None)
        for path in (f"/tv/{picture_token}", "/tv/unknown", "/tv/unknown/brews", "/tv/unknown/events"):
            await fetched(page, path, 404)


async def test_a_screen_of_one_brew_shows_no_other_and_ends_with_its_link(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with served(tmp_path, clock=clock) as page:
        await brewed(page.services, "other")
        session = await brewed(page.services, "mine")
        path = f"/tv/{await link_to(page.services, session, 'tv')}"
        body, _ = await fetched(page, path)
        assert b"mine" in body
        assert b"other" not in body
        async with page.client.get(f"/ui{path}/events") as stream:
            assert stream.content_type == "text/event-stream"
            assert (await stream.content.readline()).startswith(b"retry:")
        await page.services.links.revoke(1, page.services.links.all(1)[0].id)
        await fetched(page, path, 404)
        await fetched(page, f"{path}/brews", 404)


async def test_the_viewers_own_screen_greys_a_silent_brew_and_tells_the_time_without_any(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with served(tmp_path, clock=clock) as page:
        empty = await page.get("/tv")
        assert "No brew is running" in empty.text
        assert re.search(r"\d\d:\d\d", empty.text)
        await brewed(page.services)
        clock.jump(5 * 3600)
        shown = (await page.get("/tv?scheme=dark")).page
        assert shown.one(class_="state").text.startswith("Silent for ")
        assert shown.all(class_="old")
        assert shown.one("html").attributes["class"] == "dark"
        page.cookie = ""
        page.client.session.cookie_jar.clear()
        assert "/ui/login" in str((await page.get("/tv")).page.one("form").attributes)


@each("host, is_local", [("192.168.1.20:8080", False), ("localhost:8080", True), ("127.0.0.1", True)])
async def test_a_label_leads_to_the_devices_page(
    host: str, is_local: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with served(tmp_path_factory.mktemp("label"), clock=FakeClock()) as page:
        report = ispindel(1, name="<b>Fermenter", gravity="1.05").encode()
        await page.services.intake.take(Payload(report, page.services.clock.now(), "http /ingest"))
        [device] = await page.services.store.devices.all()
        label = (await page.get(f"/label/{device.id}", Host=host)).page
        code = label.one("svg").attributes["aria-label"]
        assert code == f"Code that leads to http://{host}/ui/devices/{device.id}"
        assert bool(label.all(class_="warn")) == is_local
        assert "<b>Fermenter" in label.one(class_="label").text
        await page.get("/label/77", 404)
