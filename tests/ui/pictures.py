"""Take a picture of every page: `python -m tests.ui.pictures [--out DIRECTORY] [--only WORD]`.

A gateway is filled with the sample brewery and with a nasty one. Each page is taken in both schemes, at the
width of a phone and of a desk, in English and German. Look at them before you hand a change of a page in.
`tests.pictures` makes those of the README.
"""

import argparse
import asyncio
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from playwright.async_api import Browser

from tests.program.program import HTTP_ONLY, Server, serving
from tests.ui.brewery import YEAR, Brewery, brew
from tests.ui.browsing import DESK, PHONE, chromium, tab

WIDTHS = {"390": PHONE, "1280": DESK}
SCHEMES = ("light", "dark")
LOCALES = {"en": "en-GB", "de": "de-DE"}


def pages(brewery: Brewery) -> Mapping[str, str]:
    """The path below `/ui` of every page worth a picture, by the picture's name."""
    one = brewery.running
    return {
        "brews": "/",
        "brews-search": "/?q=porter",
        "brew": f"/brews/{one}",
        "brew-3d": f"/brews/{one}?range=3d",
        "brew-year": f"/brews/{brewery.year}",
        "brew-nasty": f"/brews/{brewery.nasty}",
        "brew-empty": f"/brews/{brewery.empty}",
        "readings": f"/brews/{one}/readings",
        "readings-nasty": f"/brews/{brewery.nasty}/readings",
        "brews-new": "/brews/new",
        "brew-next": f"/brews/{one}/next",
        "brew-edit": f"/brews/{one}/edit",
        "brew-og": f"/brews/{one}/og",
        "brew-done": f"/brews/{one}/done",
        "brew-note": f"/brews/{one}/note",
        "brew-hop": f"/brews/{one}/note?kind=dry_hop",
        "brew-hand": f"/brews/{one}/hand",
        "brew-events": f"/brews/{brewery.nasty}/events",
        "brew-event": f"/brews/{brewery.nasty}/events/{brewery.event}",
        "brew-event-delete": f"/brews/{brewery.nasty}/events/{brewery.event}/delete",
        "compare": f"/compare?id={one}&id={brewery.year}",
        "compare-one": f"/compare?id={one}",
        "devices": "/devices",
        "device": f"/devices/{brewery.device}",
        "calibrate": f"/devices/{brewery.device}/calibrate",
        "exclude": f"/devices/{brewery.device}/exclude",
        "add": "/devices/add",
        "add-family": "/devices/add/ispindel",
        "add-way": "/devices/add/ispindel/http",
        "alarms": "/alarms",
        "alarms-rule": "/alarms/rules/temperature",
        "alarms-rule-brew": f"/alarms/rules/reached?for=brew:{one}",
        "sending": "/sending",
        "sending-add": "/sending/add",
        "sending-key": "/sending/club/key",
        "sending-resend": "/sending/club/resend",
        "sending-remove": "/sending/club/remove",
        "quarantine": "/quarantine",
        "quarantine-one": f"/quarantine/{brewery.quarantined}",
        "recipes": "/recipes",
        "recipe": f"/recipes/{brewery.recipe}",
        "recipe-nasty": f"/recipes/{brewery.nasty_recipe}",
        "recipe-import": "/recipes/import",
        "recipe-folders": "/recipes/folders",
        "recipe-delete": f"/recipes/{brewery.nasty_recipe}/delete",
        "photo": f"/recipes/{brewery.nasty_recipe}/photos/{brewery.photo}",
        "photo-add": f"/recipes/{brewery.nasty_recipe}/photos/add",
        "keys": "/keys",
        "settings": "/settings",
        "channel-ntfy": "/settings/channels/add/ntfy",
        "channel-webhook": "/settings/channels/add/webhook",
        "channel-email": "/settings/channels/add/email",
        "channel-remove": "/settings/channels/phone/remove",
        "tv": "/tv",
        "tv-link": f"/tv/{brewery.tv}",
        "label": f"/label/{brewery.device}",
        "label-nasty": f"/label/{brewery.nasty_device}",
        "device-nasty": f"/devices/{brewery.nasty_device}",
        "links": "/settings/links",
        "help": "/help",
        "more": "/more",
        "nothing": "/brews/999999",
    }


async def take(
    browser: Browser,
    server: Server,
    key: str,
    taken: Mapping[str, str],
    out: Path,
    locales: Mapping[str, str] = LOCALES,
) -> list[Path]:
    """Take a picture of each page in every scheme, width and language, and return the files."""
    files = []
    for language, locale in locales.items():
        for width, viewport in WIDTHS.items():
            for scheme in SCHEMES:
                options = {"locale": locale, "viewport": viewport, "color_scheme": scheme}
                async with tab(browser, server, key, **options) as shown:
                    for name, path in taken.items():
                        await shown.go(path)
                        files.append(out / f"{quote(name, safe='')}-{width}-{scheme}-{language}.png")
                        await shown.page.screenshot(path=files[-1], full_page=True)
    return files


async def main() -> None:
    """Fill a gateway, take the pictures, and print their directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("pictures"), help="directory of the pictures")
    parser.add_argument("--only", default="", help="pages whose name has this word")
    parser.add_argument("--language", choices=LOCALES, help="one language instead of all")
    parser.add_argument("--readings", type=int, default=YEAR, help="readings of the long brew")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    locales = {options.language: LOCALES[options.language]} if options.language else LOCALES
    with TemporaryDirectory() as directory:
        brewery = await brew(Path(directory), readings=options.readings)
        taken = {name: path for name, path in pages(brewery).items() if options.only in name}
        async with serving(Path(directory), *HTTP_ONLY) as server, chromium() as browser:
            files = await take(browser, server, brewery.key, taken, options.out, locales)
            async with tab(browser, server) as shown:
                await shown.go("/login")
                await shown.page.screenshot(path=options.out / "login.png", full_page=True)
    print(f"{len(files) + 1} pictures in {options.out}")


if __name__ == "__main__":
    asyncio.run(main())
