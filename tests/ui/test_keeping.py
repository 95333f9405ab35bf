"""Logging in, settings, keys, recipes and photos in a real browser, also by the keyboard alone."""

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import expect

from tests.program.program import until
from tests.ui.browsing import PHONE, browser_test, chromium, gateway, tab
from tests.ui.hand import WAYS, Hand

pytestmark = [*browser_test, pytest.mark.timeout(600)]

RECIPE = "<RECIPES><RECIPE><NAME>{}</NAME></RECIPE></RECIPES>"

FILES = {
    "porter.xml": RECIPE.format("Harbour Porter"),
    "pale.xml": RECIPE.format("Quay Pale"),
    "bad.xml": "<no",
}


def picture() -> bytes:
    """A photo as a phone takes it."""
    made = BytesIO()
    Image.new("RGB", (900, 1600), "peru").save(made, "JPEG")
    return made.getvalue()


@pytest.mark.parametrize("way", WAYS)
async def test_a_browser_logs_in_has_its_way_and_a_key_comes_and_goes(tmp_path: Path, way: str) -> None:
    scripts = way != "no script"
    async with (
        gateway(tmp_path) as (server, key),
        chromium() as browser,
        tab(browser, server, java_script_enabled=scripts) as shown,
        tab(browser, server, viewport=PHONE, java_script_enabled=scripts) as phone,
    ):
        hand = Hand(shown.page, keyboard=way == "keyboard")
        await shown.go("/keys")
        await hand.fill("key", key)
        await hand.press(hand.button("Log in"))
        await expect(shown.page.locator("h1")).to_have_text("Accounts and keys")

        await hand.fill("name", "tablet in the cellar")
        await hand.choose("rights", "Look and change")
        await hand.press(hand.button("Make the key"))
        made = await hand.main.locator("input[readonly]").first.input_value()
        assert made.startswith("hg_")
        await phone.log_in(made)
        await hand.press(hand.link("To the keys"))
        await hand.press(hand.link("Revoke tablet in the cellar"))
        await expect(hand.main).to_contain_text("1 login ends with it.")
        await hand.press(hand.button("Revoke"))
        await hand.is_told("The key tablet in the cellar is revoked.")
        await phone.go("/")
        assert "/login" in phone.page.url, "a revoked key ends its logins"

        await shown.go("/settings")
        await hand.choose("gravity_unit", "Degrees Plato")
        await hand.choose("scheme", "Dark")
        await hand.choose("language", "Deutsch")
        await hand.press(hand.button("Save"))
        await expect(shown.page.locator("html")).to_have_attribute("lang", "de")
        await expect(shown.page.locator("html")).to_have_class("dark")
        await expect(hand.field("gravity_unit")).to_have_value("P")


@pytest.mark.parametrize("way", WAYS)
async def test_recipes_come_from_files_and_photos_from_the_phone(tmp_path: Path, way: str) -> None:
    async with (
        gateway(tmp_path) as (server, key),
        chromium() as browser,
        tab(browser, server, key, viewport=PHONE, java_script_enabled=way != "no script") as shown,
    ):
        hand = Hand(shown.page, keyboard=way == "keyboard")
        await shown.go("/recipes/import")
        files = [
            {"name": name, "mimeType": "text/xml", "buffer": text.encode()} for name, text in FILES.items()
        ]
        await hand.give_files("files", *files)
        await hand.press(hand.button("Import"))
        for name in FILES:
            await expect(hand.main.locator(".card", has_text=name)).to_contain_text(
                "not imported" if name == "bad.xml" else "1 recipe imported"
            )
        await hand.press(hand.link("Harbour Porter"))
        await expect(shown.page.locator("h1")).to_have_text("Harbour Porter")
        await hand.press(hand.link("Add photos"))
        await hand.fill("caption", "Krausen")
        await hand.give_files("photos", {"name": "a.jpg", "mimeType": "image/jpeg", "buffer": picture()})
        await hand.press(hand.button("Add"))
        await hand.is_told("1 photo is added.")
        thumb = hand.main.locator(".thumbs img").first
        await thumb.scroll_into_view_if_needed()
        await until(lambda: thumb.evaluate("each => each.complete && each.naturalWidth"))
        await hand.press(hand.main.locator(".thumbs a").first)
        await expect(hand.main.locator("figcaption")).to_contain_text("Krausen")
        assert shown.strangers == []
        assert shown.complaints == []
