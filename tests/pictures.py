"""Make the pictures of the README, under `docs/pictures/`: `python -m tests.pictures [--out DIRECTORY]`.

Clock and seed are fixed, so a difference to the committed pictures is a change of the program. Look at them
before you commit them. `tests.ui.pictures` takes a picture of every page.
"""

import argparse
import asyncio
import io
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.async_api import Browser
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from gateway.app import Gateway
from gateway.cli.demo_screen import screen
from gateway.cli.demo_state import NAMED
from gateway.clock import SystemClock
from gateway.domain.account import OWNER_ID
from gateway.domain.key import ALL_SCOPES
from gateway.domain.payload import Payload
from gateway.domain.units import SECONDS_PER_DAY
from gateway.services.brewsessions import SessionChange
from gateway.services.build import build_services
from gateway.services.device_settings import BasicChange
from gateway.settings import Settings
from gateway.store.sqlite.store import SqliteStore
from sample_devices.devices import Targets, simulate
from sample_devices.wire.report import HttpReport, Place
from tests.demo_moment import moment
from tests.program.program import PROJECT
from tests.ui.browsing import BROWSER_MS, chromium

DOCS = PROJECT / "docs" / "pictures"

NOW = datetime(2026, 6, 13, 17, 0, tzinfo=UTC).timestamp()
"""The time of the pictures, in Unix seconds."""

VIEWPORT_PX, SCALE = 1125, 1.6
"""Three brews stand side by side. The README shows them 900 pixels wide; fine screens have twice those."""

BREWS = {"ispindel-http": 4.4, "tiltpi-http": 1.9, "gravitymon-http": 2.8}
"""The brews of the picture by their device's kind, and their ages in days."""

EVERY_S = 900
"""Seconds between two readings."""

COLOURS = 96
"""Colours of a picture: few, so that the files stay small."""

COLUMNS, LINES, DAY, SEED = 100, 32, 3.6, 4
"""Size of the terminal, the moment of the demo, and the seed of its beers."""

THEME = TerminalTheme(
    (27, 29, 33),
    (222, 222, 218),
    [(27, 29, 33), (220, 80, 70), (90, 170, 90), (220, 180, 80)] + [(120, 160, 210)] * 3 + [(222, 222, 218)],
)
"""A dark terminal, which looks well on a light and on a dark page."""

STRANGERS = re.compile(r"@font-face \{.*?\}|<!--.*?-->", re.DOTALL)
"""Parts of rich's drawing that name other hosts."""

FONTS = '"DejaVu Sans Mono", Menlo, Consolas, monospace'


class PictureClock(SystemClock):
    """A clock that begins at `NOW` and then runs."""

    def __init__(self) -> None:
        self._ahead_s = NOW - time.time()

    def now(self) -> float:
        """Return the pictures' Unix time in seconds."""
        return super().now() + self._ahead_s


def terminal_svg() -> str:
    """The demo's screen as a window, which needs no other host: rich's own names the address of a font."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="256")
    for line in screen(moment(SEED, DAY), COLUMNS, LINES):
        console.print(line, no_wrap=True, crop=False)
    drawn = STRANGERS.sub("", console.export_svg(title="hydrometer-gateway demo", theme=THEME))
    drawn = drawn.replace("Fira Code, monospace", FONTS).replace(
        "font-family: arial", "font-family: sans-serif"
    )
    return "\n".join(line.rstrip() for line in drawn.splitlines() if line.strip()) + "\n"


async def fill(directory: Path, clock: SystemClock) -> str:
    """Fill an empty data directory with three brews, from the bytes of the demo's devices; return a key."""
    store = SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, clock)
        await services.access.start()
        await services.intake.start()
        for number, (kind, days) in reversed(list(enumerate(BREWS.items()))):
            named = next(each for each in NAMED if each.kind == kind)
            device = simulate(kind, Place(SEED, number), Targets())
            began = NOW - days * SECONDS_PER_DAY
            session = None
            for elapsed_s in range(0, int(days * SECONDS_PER_DAY), EVERY_S):
                report = device.report(float(elapsed_s), datetime.fromtimestamp(began + elapsed_s, UTC))
                assert isinstance(report, HttpReport)
                body = report.request.partition(b"\r\n\r\n")[2]
                path = f"http /ingest/{named.family}"
                payload = Payload(body, began + elapsed_s, path, driver=named.family, source="127.0.0.1")
                await services.intake.take(payload)
                if session is None:
                    [found] = [each for each in await store.devices.all() if each.session_id is None]
                    change = SessionChange(batchcode=named.beer, phase="Primary Fermentation")
                    session = await services.brewsessions.add_session(OWNER_ID, change)
                    await services.brewsessions.assign(found.key, session.id, since=0)
                    settings = BasicChange(label=named.name).apply(found.settings)
                    await services.reprocessor.configure(found, settings, lambda _: None)
        return await services.access.add("pictures", ALL_SCOPES)
    finally:
        await store.close()


@asynccontextmanager
async def brewery(directory: Path, clock: SystemClock) -> AsyncIterator[str]:
    """Serve a data directory in this process; give the address of its page."""
    settings = Settings(data_dir=directory, host="127.0.0.1", port=0, no_mqtt=True, no_tcp=True)
    lines: asyncio.Queue[str] = asyncio.Queue()
    stopped = asyncio.Event()
    running = asyncio.create_task(Gateway(settings, lines.put_nowait, clock).run(stopped))
    try:
        address = None
        while address is None:
            address = re.search(r"HTTP on (http://\S+?),? ", f"{await lines.get()} ")
        yield f"{address[1]}/ui/"
    finally:
        stopped.set()
        await running


async def take(browser: Browser, page_address: str, key: str, scheme: str) -> bytes:
    """Take the picture of the first page, down to the end of the cards."""
    context = await browser.new_context(
        viewport={"width": VIEWPORT_PX, "height": 900},
        device_scale_factor=SCALE,
        color_scheme="dark" if scheme == "dark" else "light",
        locale="en-GB",
        timezone_id="Europe/Berlin",
    )
    context.set_default_timeout(BROWSER_MS)
    page = await context.new_page()
    await page.goto(f"{page_address}login#{key}")
    await page.wait_for_url(page_address)
    await page.locator(".live[data-state=live]").wait_for()
    cards = await page.locator(".cards").bounding_box()
    assert cards is not None
    end = cards["y"] + cards["height"] + 16
    taken = await page.screenshot(clip={"x": 0, "y": 0, "width": VIEWPORT_PX, "height": end}, full_page=True)
    await context.close()
    return taken


async def main() -> None:
    """Make the pictures where the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DOCS, help="directory of the pictures")
    await make(parser.parse_args().out)


async def make(out: Path) -> None:
    """Make the pictures in a directory."""
    out.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240  (nothing else runs yet)
    (out / "demo.svg").write_text(terminal_svg(), "utf-8")
    with TemporaryDirectory() as directory:
        clock = PictureClock()
        key = await fill(Path(directory), clock)
        async with brewery(Path(directory), clock) as page, chromium() as browser:
            for scheme in ("light", "dark"):
                taken = Image.open(io.BytesIO(await take(browser, page, key, scheme)))
                few = taken.convert("RGB").quantize(COLOURS)
                few.save(out / f"page-{scheme}.png", optimize=True)


if __name__ == "__main__":
    asyncio.run(main())
