"""Recipes: the list, one as a brewer reads it, the import of good, mended and bad files, folders."""

from pathlib import Path

import pytest

from gateway.domain.key import ALL_SCOPES, Scope
from gateway.errors import TooLarge
from gateway.samples.recipes import sample_recipes
from gateway.services.brewsessions import SessionChange
from gateway.services.recipe_files import ImportedFile
from gateway.ui.pages import Budget
from gateway.ui.views import recipes as views
from tests.cases import each
from tests.system.services.test_library import TWO
from tests.system.ui.site import Browser, logged_in, served

NASTY = '"><img src=x onerror=alert(1)>{{7*7}}'

XML = "application/xml"

SAMPLE = next(recipe for recipe in sample_recipes() if recipe.title == "Foggy Pier Hazy IPA")


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def nasty_recipe() -> bytes:
    name = escaped(NASTY)
    style = f"<STYLE><NAME>{name}</NAME><CATEGORY>{name}</CATEGORY></STYLE>"
    hop = (
        f"<HOPS><HOP><NAME>{name}</NAME><USE>{name}</USE><FORM>{name}</FORM><TIME>{name}</TIME></HOP></HOPS>"
    )
    body = f"<NAME>{name}</NAME><BREWER>{name}</BREWER><NOTES>{name}</NOTES>{style}{hop}"
    return f"<RECIPES><RECIPE>{body}</RECIPE></RECIPES>".encode()


async def become(browser: Browser, scopes: frozenset[Scope] = ALL_SCOPES, account: str | None = None) -> None:
    """Log in with another key; the browser forgets the cookie that it has."""
    browser.client.session.cookie_jar.clear()
    browser.cookie = await logged_in(browser.services, scopes, account)


async def import_one(browser: Browser, document: bytes, account_id: int = 1) -> int:
    return (await browser.services.library.import_document(account_id, document))[0].id


async def test_an_empty_list_says_what_to_do_and_a_reader_that_there_is_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        page = await browser.get("/recipes")
        assert "Import a recipe from any brewing program." in page.text
        assert page.page.one("a", class_="main").attributes["href"] == "/ui/recipes/import"
        await become(browser, frozenset({"read"}))
        page = await browser.get("/recipes")
        assert "There are no recipes yet." in page.text
        assert "/ui/recipes/import" not in page.raw


async def test_the_list_has_figures_a_swatch_and_a_number_and_is_searched(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        await import_one(browser, SAMPLE.document())
        folder = await browser.services.library.add_folder(1, "recipe", NASTY)
        await browser.services.recipe_files.import_file(1, "two.xml", TWO, folder.id)
        html = await browser.get("/recipes")
        assert [link.text for link in html.page.one("ul", class_="recipes").all("b")] == [
            "Bitter", "Foggy Pier Hazy IPA", "Stöut"
        ]  # fmt: skip
        assert "OG 1.066 SG 6.7 % 29 IBU 6 SRM" in html.text.replace("\u00a0", " ")
        assert html.page.all("rect")[0].attributes["fill"].startswith("#")
        assert NASTY not in html.raw
        assert "Foggy" not in (await browser.get("/recipes?q=fuggle")).page.one("main").text
        assert "Foggy" not in (await browser.get(f"/recipes?folder={folder.id}")).page.one("main").text
        assert "No recipe fits this." in (await browser.get("/recipes?q=nothing")).text
        browser.language = "de"
        assert "16,1 °P" in (await browser.get("/recipes")).text.replace("\u00a0", " ")
        assert "11 EBC" in (await browser.get("/recipes")).text.replace("\u00a0", " ")


async def test_a_long_list_has_pages(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        for _ in range(views.LISTED // 2 + 1):
            await browser.services.library.import_document(1, TWO)
        first = (await browser.get("/recipes")).page
        assert "52 recipes" in first.text
        second = first.one("a", rel="next").attributes["href"]
        assert len((await browser.get(second)).page.one("ul", class_="recipes").all("b")) == 2


async def test_one_recipe_is_shown_as_a_brewer_reads_it(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await import_one(browser, SAMPLE.document())
        text = (await browser.get(f"/recipes/{recipe}")).text.replace("\u00a0", " ")
        for part in (
            "21C Hazy IPA · by Ada Maltby",
            "OG 1.066 SG FG 1.015 SG ABV 6.7 % IBU 29 Colour 6 SRM",
            "Batch 21.0 l",
            "78 % 5.00 kg Golden Promise Pale Malt",
            "11 % 0.70 kg Flaked Oats adjunct",
            "6.45 kg in all",
            "Mash 60 min 30 g Cascade 6.2 % alpha, whole cones 3.8",
            "Dry hop 3 days 60 g Galaxy",
            "London III, harvested House 200 ml · 77 % attenuation · 17.0 to 23.0 °C",
            "Saccharification infusion 67.5 °C · 60 min · add 19.0 l",
            "Gypsum for the water 3.0 g · in the mash 60 min",
            "Chloride two to one.",
            "No brew was made of it yet.",
        ):
            assert part in text, (part, text)
        await browser.services.brewsessions.add_session(
            1, SessionChange(recipe_id=recipe, batchcode="HAZY", userdate="2026-03-01")
        )
        html = await browser.get(f"/recipes/{recipe}")
        assert "HAZY 1 Mar 2026" in html.text.replace("\u00a0", " ")
        browser.language = "de"
        german = (await browser.get(f"/recipes/{recipe}")).text.replace("\u00a0", " ")
        assert "Stammwürze" in german or "OG 16,1 °P" in german
        assert "Stopfen 3 Tage 60 g Galaxy 14,2 % Alpha, Pellets" in german


async def test_a_brews_copy_says_so_and_leads_to_the_recipe(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await import_one(browser, SAMPLE.document())
        brew = await browser.services.brewsessions.add_session(1, SessionChange(recipe_id=recipe))
        html = await browser.get(f"/recipes/{brew.recipe_id}")
        assert "This is the copy that a brew took when it began." in html.text
        assert [a for a in html.page.all("a") if a.attributes["href"] == f"/ui/recipes/{recipe}"]
        assert "/delete" not in html.raw


async def test_good_mended_and_bad_files_are_imported_together(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        folder = await browser.services.library.add_folder(1, "recipe", "Winter")
        html = await browser.post(
            "/recipes/import",
            [
                ("folder", str(folder.id)),
                ("files", ("good.xml", SAMPLE.document(), XML)),
                ("files", ("mended.xml", TWO, XML)),
                ("files", ("bad.xml", TWO[:-20], XML)),
                ("files", ("", b"", "application/octet-stream")),
            ],
        )
        assert "3 recipes imported" in html.text
        assert "good.xml ● imported".replace("● ", "") in html.text
        assert "Nothing had to be mended." in html.text
        assert "things were mended" in html.text
        assert "bad.xml not imported" in html.text
        assert "Nothing of this file was imported:" in html.text
        listed = (await browser.get(f"/recipes?folder={folder.id}")).text
        assert "3 recipes" in listed
        await browser.get("/recipes/imports/99", 404)


async def test_one_file_with_nothing_to_report_leads_to_its_recipe(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        html = await browser.post("/recipes/import", [("files", ("a.xml", SAMPLE.document(), XML))])
        assert html.page.one("h1").text == SAMPLE.title
        assert "1 recipe imported" in html.text
        nothing = [("files", ("", b"", "application/octet-stream"))]
        html = await browser.post("/recipes/import", nothing, 422)
        assert "Choose a file first." in html.text


async def test_files_have_bounds_and_the_others_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = ("files", ("good.xml", SAMPLE.document(), XML))
    large = ("files", ("large.xml", b" " * (len(SAMPLE.document()) + 1), XML))
    monkeypatch.setattr(views, "DOCUMENT_BYTES", len(SAMPLE.document()))
    async with served(tmp_path) as browser:
        html = await browser.post("/recipes/import", [large, good])
        assert "large.xml not imported" in html.text
        assert "The file is larger than" in html.text
        assert "good.xml imported" in html.text

        def spend(budget: Budget, count: int) -> None:
            budget.left -= count
            if budget.left < budget.limit - 2 * len(SAMPLE.document()):
                raise TooLarge

        monkeypatch.setattr(Budget, "spend", spend)
        html = await browser.post("/recipes/import", [good, large, good])
        assert "All files together are larger than 50 MiB." in html.text
        assert "good.xml imported" in html.text


async def test_nasty_texts_of_a_recipe_stay_texts(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await import_one(browser, nasty_recipe())
        for path in ("/recipes", f"/recipes/{recipe}", f"/recipes/{recipe}/delete"):
            html = await browser.get(path)
            assert NASTY in html.text, path
            assert "<img src=x" not in html.raw
            assert "49" not in html.page.one("h1").text
            assert not [element for element in html.page.all() if "onerror" in element.attributes]
        report = browser.services.recipe_files.remember(1, [ImportedFile(NASTY, (), NASTY)])
        html = await browser.get(f"/recipes/imports/{report}")
        assert NASTY in html.text
        assert NASTY not in html.raw
        async with browser.client.get(f"/ui/recipes/{recipe}/beerxml", headers=browser.headers) as answer:
            name = answer.headers["Content-Disposition"]
            assert (answer.status, answer.content_type) == (200, XML)
            assert name.startswith('attachment; filename="img src x onerror alert')
            assert (await answer.read()).startswith(b"<?xml")


@each(
    "fields, sentence",
    [
        ({"name": ""}, "Something is missing here."),
        ({"name": "x" * 201}, "A name has 200 characters at most."),
        ({"name": "Winter"}, "There is a folder of this name already."),
    ],
)
async def check_folder(browser: Browser, path: str, fields: dict[str, str], sentence: str) -> None:
    assert sentence in (await browser.post(path, fields, 422)).text


async def test_folders_are_made_renamed_and_deleted_and_recipes_put_into_them(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await import_one(browser, SAMPLE.document())
        assert "There are no folders yet." in (await browser.get("/recipes/folders")).text
        await browser.post("/recipes/folders", {"name": "Winter"})
        await browser.post("/recipes/folders", {"name": "Other"})
        folders = {f.name: f.id for f in await browser.services.store.folders.all(1)}
        await check_folder(browser=browser, path="/recipes/folders")
        await check_folder(browser=browser, path=f"/recipes/folders/{folders['Other']}")
        html = await browser.post(f"/recipes/{recipe}/folder", {"folder": str(folders["Winter"])})
        assert "The recipe is in the folder Winter." in html.text
        assert html.page.one("option", selected="").text == "Winter"
        html = await browser.post(f"/recipes/folders/{folders['Winter']}", {"name": "Summer"})
        assert "Folder with 1 recipe" in html.text
        assert (
            "Delete the folder Summer?"
            in (await browser.get(f"/recipes/folders/{folders['Winter']}/delete")).text
        )
        html = await browser.post(f"/recipes/folders/{folders['Winter']}/delete")
        assert "Its recipes are still there." in html.text
        assert "In no folder" not in (await browser.post(f"/recipes/{recipe}/folder", {"folder": ""})).text
        await browser.post(f"/recipes/{recipe}/folder", {"folder": "99"}, 404)


async def test_deleting_asks_first_and_brews_keep_their_copies(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await import_one(browser, SAMPLE.document())
        brew = await browser.services.brewsessions.add_session(1, SessionChange(recipe_id=recipe))
        assert f"Delete {SAMPLE.title}?" in (await browser.get(f"/recipes/{recipe}/delete")).text
        assert await browser.services.store.recipes.get(recipe) is not None
        assert f"{SAMPLE.title} is deleted." in (await browser.post(f"/recipes/{recipe}/delete")).text
        assert "There is no recipe" in (await browser.get(f"/recipes/{recipe}", 404)).text
        await browser.get(f"/recipes/{brew.recipe_id}")


async def test_a_reader_looks_and_another_account_sees_its_own_only(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        recipe = await import_one(browser, SAMPLE.document())
        folder = await browser.services.library.add_folder(1, "recipe", "Winter")
        await become(browser, frozenset({"read"}))
        html = await browser.get(f"/recipes/{recipe}")
        assert "/delete" not in html.raw
        assert "Put it there" not in html.text
        for path in ("/recipes/import", "/recipes/folders", f"/recipes/{recipe}/delete"):
            await browser.get(path, 403)
            await browser.post(path, status=403)
        other = await browser.services.access.add_account("other")
        theirs = await import_one(browser, TWO, other.id)
        await become(browser, account="other")
        listed = (await browser.get("/recipes")).text
        assert "Stöut" in listed
        assert SAMPLE.title not in listed
        assert "Winter" not in listed
        await browser.get(f"/recipes/{theirs}")
        for path in (
            f"/recipes/{recipe}",
            f"/recipes/{recipe}/beerxml",
            f"/recipes/folders/{folder.id}/delete",
        ):
            await browser.get(path, 404)
        await browser.post(f"/recipes/{theirs}/folder", {"folder": str(folder.id)}, 404)
