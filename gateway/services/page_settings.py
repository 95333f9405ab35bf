"""The page's own settings: the brewery's name, who may look without a key, and the address to type."""

from gateway.config import DEFAULT_BREWERY
from gateway.domain.texts import label_of
from gateway.errors import InvalidInput
from gateway.store.protocol import Store

BREWERY = "brewery"
"""The name of the setting in the store."""


class PageSettings:
    """Settings of the page, in memory, because each page asks for them.

    `lan_view` lets neighbours look without a key, `fixed_brewery` is the name that an option of `serve`
    gives. `address` is the address that `serve` prints, such as `http://192.168.1.20:8080`; empty before.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._brewery = ""
        self.fixed_brewery = ""
        self.lan_view = False
        self.address = ""

    async def start(self) -> None:
        """Load the settings."""
        self._brewery = (await self._store.page_settings.all()).get(BREWERY, "")

    @property
    def brewery(self) -> str:
        """The name of the brewery."""
        return self.fixed_brewery or self._brewery or DEFAULT_BREWERY

    async def name_brewery(self, text: str) -> None:
        """Keep the name of the brewery; an empty text takes the name back."""
        if self.fixed_brewery:
            raise InvalidInput("the option --brewery gives the name")
        name = label_of(text.strip())
        if name != self._brewery:
            await self._store.page_settings.set(BREWERY, name)
            self._brewery = name
