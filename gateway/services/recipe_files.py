"""Files with recipes, imported each for itself: a bad file keeps no other from being imported."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.errors import InvalidInput, StoreUnavailable, TooLarge
from gateway.services.library import Library, StoredRecipe

REPORTS = 20
"""Reports that are remembered at most, of all accounts."""


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file, its recipes with what was mended in each, and the error if nothing of it was imported."""

    filename: str
    recipes: tuple[StoredRecipe, ...]
    error: str = ""


class RecipeFiles:
    """Imports files with recipes, and remembers the latest reports until the gateway stops."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._reports: OrderedDict[int, tuple[int, tuple[ImportedFile, ...]]] = OrderedDict()
        self._number = 0

    async def import_file(
        self, account_id: int, filename: str, document: bytes, folder_id: int | None = None
    ) -> ImportedFile:
        """Import all recipes of a BeerXML or BeerJSON file, or none of them; report the error if none."""
        try:
            recipes = await self._library.import_document(account_id, document, folder_id)
        except (InvalidInput, TooLarge, StoreUnavailable) as error:
            return ImportedFile(filename, (), str(error))
        return ImportedFile(filename, tuple(recipes))

    def remember(self, account_id: int, files: Sequence[ImportedFile]) -> int:
        """Remember a report, and forget the oldest one; return the report's number."""
        self._number += 1
        self._reports[self._number] = (account_id, tuple(files))
        if len(self._reports) > REPORTS:
            self._reports.popitem(last=False)
        return self._number

    def report(self, account_id: int, number: int) -> tuple[ImportedFile, ...] | None:
        """Return a report of the account; None if it is no longer remembered."""
        owner, files = self._reports.get(number, (0, ()))
        return files if owner == account_id and files else None
