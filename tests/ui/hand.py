"""How somebody uses a page: by pointer or finger, or by the keyboard alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.ui.browsing import BROWSER_MS

expect.set_options(timeout=BROWSER_MS)

TABS = 300
"""Times that the Tab key is pressed at most before an element counts as out of reach."""

OPTIONS = 300
"""Options of a list at most that the arrow keys go through."""

FOCUSED = "each => each === document.activeElement"

CHOSEN = "each => each.selectedOptions[0].label"

WAYS = ("script", "keyboard", "no script")
"""The ways in which each flow is gone."""


@dataclass
class Hand:
    """Somebody before a page. `keyboard`: nothing is clicked, and only what the Tab key reaches is used."""

    page: Page
    keyboard: bool = False

    def __post_init__(self) -> None:
        # The browser hands its file dialogs over only while somebody listens. Playwright tells it so
        # without waiting, and a key may overtake that: then a dialog opens that nobody sees.
        self.page.on("filechooser", lambda _: None)

    @property
    def main(self) -> Locator:
        return self.page.locator("main")

    def button(self, name: str) -> Locator:
        return self.main.get_by_role("button", name=name, exact=True).first

    def link(self, name: str) -> Locator:
        return self.main.get_by_role("link", name=name).first

    def field(self, name: str) -> Locator:
        return self.main.locator(f"[name={name}]:not([type=hidden])").first

    async def press(self, wanted: Locator) -> None:
        """Press a button or follow a link, and wait for the page that comes."""
        await expect(wanted).to_be_visible()
        if self.keyboard:
            await self.reach(wanted)
        async with self.page.expect_navigation():
            await (self.page.keyboard.press("Enter") if self.keyboard else wanted.click())

    async def open(self, summary: str) -> None:
        """Open what is folded up behind these words."""
        wanted = self.main.locator("summary", has_text=summary).first
        if self.keyboard:
            await self.reach(wanted)
            await self.page.keyboard.press("Enter")
        else:
            await wanted.click()

    async def fill(self, name: str, text: str) -> None:
        """Type into a field."""
        wanted = self.field(name)
        if not self.keyboard or await wanted.get_attribute("type") == "datetime-local":
            # The keys of a date field depend on the language of the browser, not on the page.
            await (self.reach(wanted) if self.keyboard else expect(wanted).to_be_visible())
            await wanted.fill(text)
            return
        await self.reach(wanted)
        await self.page.keyboard.press("Control+A")
        await self.page.keyboard.type(text)

    async def choose(self, name: str, words: str) -> None:
        """Choose the first option that has these words."""
        wanted = self.field(name)
        option = wanted.locator("option", has_text=words).first
        label = await option.evaluate("each => each.label")
        if not self.keyboard:
            await wanted.select_option(label=label)
            return
        await self.reach(wanted)
        # Not by typing, because a busy browser takes slow keys for a new word.
        await self.page.keyboard.press("Home")
        for _ in range(OPTIONS):
            if await wanted.evaluate(CHOSEN) == label:
                return
            await self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"the arrow keys never reach {words} in {name}")

    async def give_files(self, name: str, *files: Path | dict[str, Any]) -> None:
        """Choose files in the dialog that the browser opens."""
        wanted = self.field(name)
        if self.keyboard:
            await self.reach(wanted)
        async with self.page.expect_file_chooser() as chooser:
            await (self.page.keyboard.press("Space") if self.keyboard else wanted.click())
        await (await chooser.value).set_files(list(files))  # type: ignore[arg-type]

    async def reach(self, wanted: Locator) -> None:
        """Press the Tab key until an element has the focus."""
        await expect(wanted).to_be_visible()
        for _ in range(TABS):
            if await wanted.evaluate(FOCUSED):
                return
            await self.page.keyboard.press("Tab")
        raise AssertionError(f"the Tab key never reaches {wanted}")

    async def is_told(self, text: str) -> None:
        """Wait for the notice of the last form."""
        await expect(self.page.locator("[role=status]").first).to_contain_text(text)
