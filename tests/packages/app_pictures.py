"""The icon and the logo of the Home Assistant app, drawn from the icon of the page.

`python -m tests.packages.app_pictures` draws them anew, by Debian's chromium.
"""

import asyncio
from pathlib import Path

from tests.program.program import PROJECT
from tests.ui.browsing import chromium

APP = PROJECT / "deploy/home-assistant/hydrometer_gateway"
ICON = PROJECT / "gateway/ui/static/icon.svg"

NAME = "<b>Hydrometer<br>Gateway</b>"

SIZES = {"icon.png": (128, 128, ""), "logo.png": (250, 100, NAME)}
"""Width and height in pixels, as Home Assistant wants them, and the text beside the icon."""

PAGE = """<!doctype html><style>
body {{ margin: 0; height: {height}px; display: flex; align-items: center; gap: 10px; background: transparent;
        font: 19px/1.15 "DejaVu Sans", sans-serif; color: #9a5b00; }}
svg {{ height: 100%; flex: none; }}
</style><body>{icon}{text}</body>"""


async def draw(folder: Path) -> None:
    """Draw both pictures into a folder, on a transparent ground."""
    icon = ICON.read_text()
    async with chromium() as browser:
        for name, (width, height, text) in SIZES.items():
            page = await browser.new_page(viewport={"width": width, "height": height})
            await page.set_content(PAGE.format(height=height, icon=icon, text=text))
            await page.screenshot(path=folder / name, omit_background=True)


if __name__ == "__main__":
    asyncio.run(draw(APP))
