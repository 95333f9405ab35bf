"""Several files with recipes: each for itself, and a report that is remembered for a while."""

import pytest

from gateway.domain.recipe import Recipe
from gateway.errors import NotFound, StoreUnavailable
from gateway.services.build import Services
from gateway.services.recipe_files import REPORTS, ImportedFile
from tests.system.services.test_library import TWO, all_of


async def test_a_bad_file_names_its_error_and_the_others_are_imported(services: Services) -> None:
    folder = await services.library.add_folder(1, "recipe", "Winter")
    files = [("good.xml", TWO), ("bad.xml", TWO[:-20]), ("photo.jpg", b"\xff\xd8"), ("more.xml", TWO)]
    found = [await services.recipe_files.import_file(1, name, data, folder.id) for name, data in files]
    assert [[recipe.title for recipe in file.recipes] for file in found] == [
        ["Stöut", "Bitter"], [], [], ["Stöut", "Bitter"]
    ]  # fmt: skip
    assert [bool(file.error) for file in found] == [False, True, True, False]
    assert all(recipe.changes for recipe in found[0].recipes)
    assert len(await all_of(services)) == 4
    with pytest.raises(NotFound):
        await services.recipe_files.import_file(1, "good.xml", TWO, 99)


async def test_no_disk_is_the_error_of_a_file(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: list[Recipe]) -> list[Recipe]:
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(services.store.recipes, "add_all", refuse)
    found = await services.recipe_files.import_file(1, "good.xml", TWO)
    assert found == ImportedFile("good.xml", (), "the disk is gone")


def test_a_report_is_its_accounts_own_and_the_oldest_is_forgotten(services: Services) -> None:
    files = services.recipe_files
    first = files.remember(1, [ImportedFile("a.xml", ())])
    assert files.report(1, first) == (ImportedFile("a.xml", ()),)
    assert files.report(2, first) is None
    for _ in range(REPORTS):
        last = files.remember(2, [ImportedFile("b.xml", ())])
    assert (files.report(1, first), files.report(1, last + 1)) == (None, None)
    assert files.report(2, last) is not None
