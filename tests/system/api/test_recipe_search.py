"""Endpoint 4 of the specification: searching for recipes, with the semantics of api-decisions section 13."""

from itertools import permutations
from typing import Any

import pytest

from gateway.domain.recipe import Recipe
from tests.cases import each
from tests.system.api.conftest import Service
from tests.system.api.library import PORTER_INGREDIENTS, Brewery, Query, content, opened, porter, unix
from tests.system.api.test_recipes import ARRAYS, assert_record


@pytest.fixture
async def brewery(service: Service) -> Brewery:
    return await opened(service)


async def search(brewery: Brewery, query: Query = "") -> tuple[int, list[dict[str, Any]]]:
    """Count and recipes of an answer that has the shape of the specification."""
    answer = await brewery.get("recipes", query)
    assert list(answer) == ["message", "count", "recipes"]
    assert answer["message"] == "success"
    assert type(answer["count"]) is str
    assert answer["count"] == str(int(answer["count"]))
    return int(answer["count"]), answer["recipes"]


async def titles(brewery: Brewery, query: Query = "") -> list[str]:
    """Titles of all that match, in order."""
    count, recipes = await search(brewery, query)
    assert count == len(recipes)
    return [recipe["title"] for recipe in recipes]


async def fill(brewery: Brewery, number: int) -> list[Recipe]:
    return [await brewery.recipe(f"Number {n:03d}", created_at=n) for n in range(number)]


@pytest.fixture
async def many(brewery: Brewery) -> int:
    return len(await fill(brewery, 105))


async def test_an_empty_brewery(brewery: Brewery) -> None:
    await brewery.recipe("not ours", account_id=1)
    for query in ("", "keyword=ours", "keyword=r", "snapshots=true&ingredients=true", "id=1"):
        assert await brewery.get("recipes", query) == {"message": "success", "count": "0", "recipes": []}


async def test_records_have_ingredients_only_where_asked_for(brewery: Brewery) -> None:
    stored = await brewery.recipe(porter())
    await brewery.recipe("Empty")
    for query in ("", "ingredients=false", "ingredients=0", "ingredients=no", "ingredients="):
        for record in (await search(brewery, query))[1]:
            assert_record(record)
    single = (await brewery.get(f"recipes/{stored.id}"))["recipes"][0]
    for query in ("ingredients=true", "ingredients=1", "ingredients=YES", "ingredients=True"):
        empty, full = (await search(brewery, query))[1]
        assert_record(full, *ARRAYS)
        assert {kind: full[kind] for kind in ARRAYS} == PORTER_INGREDIENTS
        assert [empty[kind] for kind in ARRAYS] == [[], [], [], [], []]
        assert full == single


@each(
    "query, expected",
    [
        ("", 20),
        ("limit=7", 7),
        ("limit=100", 100),
        ("limit=101", 100),
        ("limit=999", 100),
        ("limit=999999999999999", 100),
        ("limit=0", 0),
        ("ingredients=true", 20),
        ("ingredients=true&limit=7", 7),
        ("ingredients=true&limit=21", 20),
        ("ingredients=true&limit=100", 20),
        ("ingredients=true&limit=0", 0),
        ("ingredients=false&limit=21", 21),
        ("offset=100", 5),
        ("offset=104", 1),
        ("offset=105", 0),
        ("offset=999999999999999", 0),
        ("offset=103&limit=1", 1),
        ("offset=0&limit=1", 1),
    ],
)
async def test_pages_are_clamped_and_the_count_is_of_all(
    many: int, brewery: Brewery, query: str, expected: int
) -> None:
    count, recipes = await search(brewery, query)
    assert (count, len(recipes)) == (many, expected)


async def test_a_walker_meets_each_recipe_once(brewery: Brewery) -> None:
    stored = await fill(brewery, 45)
    for page, more in ((10, ""), (20, "&ingredients=true"), (100, "")):
        walked = []
        for offset in range(0, 60, page):
            _, recipes = await search(brewery, f"limit={page}&offset={offset}{more}")
            walked += [recipe["id"] for recipe in recipes]
        assert walked == [str(recipe.id) for recipe in reversed(stored)]


NAMED = {
    "b": ("Bitter", "2026-03-02 00:00:00", "2026-03-05 00:00:00"),
    "a": ("ale", "2026-03-01 00:00:00", "2026-03-06 00:00:00"),
    "c": ("cider", "2026-03-03 00:00:00", "2026-03-04 00:00:00"),
    "u": ("Ärger", "2026-03-04 00:00:00", "2026-03-03 00:00:00"),
}


@pytest.fixture
async def named(brewery: Brewery) -> None:
    for title, created_at, updated_at in NAMED.values():
        await brewery.recipe(title, created_at=unix(created_at), updated_at=unix(updated_at))


@pytest.mark.usefixtures("named")
@each(
    "sort, expected",
    [
        ("", "ucba"),
        ("sort=", "ucba"),
        ("sort=created_at:1", "abcu"),
        ("sort=created_at:-1", "ucba"),
        ("sort=created_at:0", "ucba"),
        ("sort=created_at:2", "ucba"),
        ("sort=created_at:desc", "ucba"),
        ("sort=created_at", "abcu"),
        ("sort=created_at:", "abcu"),
        ("sort=updated_at:1", "ucba"),
        ("sort=updated_at:-1", "abcu"),
        ("sort=title:1", "abcu"),
        ("sort=title:-1", "ucba"),
        ("sort=title", "abcu"),
    ],
)
async def test_sort(brewery: Brewery, sort: str, expected: str) -> None:
    assert await titles(brewery, sort) == [NAMED[letter][0] for letter in expected]


@pytest.mark.parametrize("field", ["created_at", "updated_at", "title"])
async def test_ties_go_by_id_in_the_same_direction(brewery: Brewery, field: str) -> None:
    ids = [str((await brewery.recipe(title)).id) for title in ("SAME", "same", "Same")]
    for direction, expected in ((":1", ids), (":-1", ids[::-1]), (":0", ids[::-1]), ("", ids)):
        _, recipes = await search(brewery, f"sort={field}{direction}")
        assert [recipe["id"] for recipe in recipes] == expected


async def test_id_is_compared_as_text_or_number_and_combines(brewery: Brewery) -> None:
    first, second = await brewery.recipe("First"), await brewery.recipe("Second")
    theirs = await brewery.recipe("Theirs", account_id=1)
    assert await titles(brewery, f"id={second.id}") == ["Second"]
    assert await titles(brewery, f"id={second.id}&ingredients=true") == ["Second"]
    assert await titles(brewery, f"id={second.id}&keyword=first") == []
    assert await titles(brewery, f"id={theirs.id}") == []
    assert await titles(brewery, "id=") == ["Second", "First"]
    assert await search(brewery, f"id={first.id}&limit=0") == (1, [])


@pytest.fixture
async def somebody(brewery: Brewery) -> None:
    await brewery.recipe()


@pytest.mark.usefixtures("somebody")
@each("wanted", ["x", "-1", "1.0", "0", "1,2", "0x1", "null", "9" * 15, "9" * 40, "%D9%A1", "%20"])
async def test_an_id_that_is_no_recipe_s_finds_nothing(brewery: Brewery, wanted: str) -> None:
    assert await titles(brewery, f"id={wanted}") == []


async def test_a_snapshot_is_found_by_its_id_where_snapshots_are_asked_for(brewery: Brewery) -> None:
    session = await brewery.session(await brewery.recipe())
    assert await titles(brewery, f"id={session.recipe_id}") == []
    assert await titles(brewery, f"id={session.recipe_id}&snapshots=true") == ["Harbour Porter"]


async def test_snapshots_are_hidden_or_shown_beside_the_others(brewery: Brewery) -> None:
    original = await brewery.recipe("Original")
    await brewery.session(original)
    for query in ("", "snapshots=false", "snapshots=0", "snapshots=no", "snapshots=", "snapshots=False"):
        count, recipes = await search(brewery, query)
        assert (count, [recipe["snapshot"] for recipe in recipes]) == (1, ["0"])
    for query in ("snapshots=true", "snapshots=1", "snapshots=yes", "snapshots=TRUE"):
        count, recipes = await search(brewery, query)
        assert (count, [recipe["snapshot"] for recipe in recipes]) == (2, ["1", "0"])
        assert [recipe["copy_parent_id"] for recipe in recipes] == [str(original.id), None]


async def test_deleted_recipes_are_nowhere(brewery: Brewery) -> None:
    gone = await brewery.recipe("Gone")
    await brewery.recipe("Here")
    await brewery.service.services.library.delete(gone)
    for query in ("", "keyword=gone", "keyword=go", f"id={gone.id}", "snapshots=true&sort=title:1"):
        assert "Gone" not in await titles(brewery, query)


async def test_author_is_compared_in_any_case_and_whole(brewery: Brewery) -> None:
    for author in ("R. Quay", "STRASSE", None, "", "50%"):
        await brewery.recipe(content(str(author), author=author))
    assert await titles(brewery, {"author": "r. QUAY"}) == ["R. Quay"]
    assert await titles(brewery, {"author": "Straße"}) == ["STRASSE"]
    assert await titles(brewery, {"author": "Quay"}) == []
    assert await titles(brewery, {"author": "R. Qua_"}) == []
    assert await titles(brewery, {"author": "50%"}) == ["50%"]
    assert await titles(brewery, {"author": "%"}) == []
    assert len(await titles(brewery, {"author": ""})) == 5


async def test_group(brewery: Brewery) -> None:
    await brewery.recipe("Mine")
    await brewery.recipe("Club", group_id="12")
    assert await titles(brewery, "group_id=12") == ["Club"]
    for other in ("1", "012", "x", "0", "null", "%20"):
        assert await titles(brewery, f"group_id={other}") == []
    assert await titles(brewery, "group_id=") == ["Club", "Mine"]


async def test_brewer_author_id_is_the_login_of_the_owner(brewery: Brewery) -> None:
    await brewery.recipe("Mine")
    _, (recipe,) = await search(brewery, f"brewer_author_id={brewery.account_id}")
    assert recipe["brewer_author_id"] == str(brewery.account_id)
    for other in ("1", f"0{brewery.account_id}", f"{brewery.account_id}.0", "x", "9" * 40):
        assert await titles(brewery, f"brewer_author_id={other}") == []
    assert await titles(brewery, "brewer_author_id=") == ["Mine"]


async def test_folder(brewery: Brewery) -> None:
    library = brewery.service.services.library
    folder = await library.add_folder(brewery.account_id, "recipe", "Winter")
    await brewery.recipe("Unfiled")
    await brewery.recipe("Filed", folder_id=folder.id)
    _, (recipe,) = await search(brewery, f"folder_id={folder.id}")
    assert (recipe["title"], recipe["folder_name"]) == ("Filed", "Winter")
    for other in (folder.id + 1, 0, "9" * 15):
        assert await titles(brewery, f"folder_id={other}") == []
    assert await titles(brewery, "folder_id=") == ["Filed", "Unfiled"]


DAYS = ["2026-03-03 23:59:59", "2026-03-04 00:00:00", "2026-03-04 23:59:59", "2026-03-05 00:00:00"]


@pytest.fixture
async def dated(brewery: Brewery, field: str) -> None:
    for place, time in enumerate(DAYS):
        row = {"created_at": unix("2026-07-01 00:00:00"), "updated_at": unix("2026-07-01 00:00:00")}
        await brewery.recipe(str(place), **{**row, f"{field}_at": unix(time)})


@pytest.mark.usefixtures("dated")
@pytest.mark.parametrize("field", ["created", "updated"])
@each(
    "first, last, expected",
    [
        ("2026-03-04", "", "123"),
        ("", "2026-03-04", "012"),
        ("2026-03-04", "2026-03-04", "12"),
        ("2026-03-05", "2026-03-04", ""),
        ("2026-03-06", "", ""),
        ("0001-01-01", "9999-12-31", "0123"),
        ("1969-12-31", "1970-01-01", ""),
    ],
)
async def test_days_are_inclusive_and_utc(
    brewery: Brewery, field: str, first: str, last: str, expected: str
) -> None:
    ends = {f"{field}_from": first, f"{field}_to": last}
    query = {name: day for name, day in ends.items() if day}
    assert "".join(sorted(await titles(brewery, query))) == expected


TEXTS = {
    "title": content("Smoked PORTER"),
    "hop": content("1", hops=[{"name": "Fuggle"}, {"name": "East Kent"}]),
    "malt": content("2", fermentables=[{"name": "Pale Malt", "amount": "4.1"}]),
    "yeast": content("3", yeasts=[{"name": "London Ale"}]),
    "step": content("4", mashsteps=[{"name": "Rest", "description": "not searched"}]),
    "other": content("5", others=[{"name": "Irish Moss"}]),
    "notes": content("6", notes="Line one\nline TWO, 100% by hand_made"),
    "style": content("7", stylename="Gose 'n' \"Sour\" *"),
    "author": content("8", author="Porterhouse", url="http://porter.example", brewmethod="porter"),
    "odd": content("9", notes="İstanbul Straße Ärger 🍺🍻🍺 a\u0301 ﬁn"),
}


@pytest.fixture
async def texts(brewery: Brewery) -> dict[str, str]:
    """The names of the texts by the ids of their recipes."""
    return {str((await brewery.recipe(said)).id): name for name, said in TEXTS.items()}


@each(
    "keyword, expected",
    [
        ("porter", "title"),
        ("PORTER", "title"),
        ("d p", "title"),
        ("smoked  porter", ""),
        ("fuggle", "hop"),
        ("ugg", "hop"),
        ("ug", "hop"),
        ("pale malt", "malt"),
        ("4.1", ""),
        ("don al", "yeast"),
        ("rest", "step"),
        ("not searched", ""),
        ("moss", "other"),
        ("one\nLINE", "notes"),
        ("gose", "style"),
        ("fuggleeast", ""),
        ("fuggle east", ""),
        ("eea", ""),
        ("e\x1fe", ""),
        ("e e", ""),
        ("1fuggle", ""),
        ("%", "notes"),
        ("00%", "notes"),
        ("1%b", ""),
        ("por%er", ""),
        ("_", "notes"),
        ("hand_made", "notes"),
        ("p_rter", ""),
        ("'", "style"),
        ("'n'", "style"),
        ('"', "style"),
        ('"sour"', "style"),
        ('" *', "style"),
        ("*", "style"),
        ("por*", ""),
        ("porter OR fuggle", ""),
        ("NOT fuggle", ""),
        ("folded:porter", ""),
        ("-porter", ""),
        ("İstanbul", "odd"),
        ("i\u0307stanbul", "odd"),
        ("STRASSE", "odd"),
        ("straße", "odd"),
        ("ß", "odd other"),
        ("ÄRGER", "odd"),
        ("ärg", "odd"),
        ("ä", "odd"),
        ("arger", ""),
        ("🍺", "odd"),
        ("🍺🍻", "odd"),
        ("🍺🍻🍺", "odd"),
        ("🍺🍺", ""),
        ("A\u0301", "odd"),
        ("FIN", "odd"),
        (" ", "hop malt yeast notes style odd title other"),
        ("   ", ""),
        ("x" * 5000, ""),
    ],
)
async def test_keyword(brewery: Brewery, texts: dict[str, str], keyword: str, expected: str) -> None:
    _, recipes = await search(brewery, {"keyword": keyword})
    assert {texts[recipe["id"]] for recipe in recipes} == set(expected.split())


async def test_keyword_finds_a_long_text_as_a_whole(brewery: Brewery) -> None:
    notes = "".join(chr(0x4E00 + n * 7 % 20_000) for n in range(700))
    await brewery.recipe(content("Long", notes=notes))
    assert await titles(brewery, {"keyword": notes}) == ["Long"]
    assert await titles(brewery, {"keyword": notes[:-1] + "x"}) == []


async def test_keyword_follows_changes(brewery: Brewery) -> None:
    stored = await brewery.recipe(content("Before", hops=[{"name": "Fuggle"}]))
    await brewery.service.services.store.recipes.update(
        Recipe(**{name: getattr(stored, name) for name in Recipe.__slots__} | {"content": content("After")})
    )
    for keyword, expected in (
        ("before", []),
        ("fug", []),
        ("be", []),
        ("after", ["After"]),
        ("af", ["After"]),
    ):
        assert await titles(brewery, {"keyword": keyword}) == expected


async def test_blank_keyword_filters_nothing(brewery: Brewery) -> None:
    await brewery.recipe("")
    assert await titles(brewery, "keyword=") == [""]


async def combined(brewery: Brewery) -> dict[str, str]:
    """One recipe that all the filters fit; as many that one filter each does not fit; the filters."""
    folder = await brewery.service.services.library.add_folder(brewery.account_id, "recipe", "Winter")
    old, new, at = unix("2026-01-01 00:00:00"), unix("2026-05-01 00:00:00"), unix("2026-03-01 12:00:00")
    fitting: dict[str, Any] = {
        "folder_id": folder.id, "group_id": "12", "created_at": at, "updated_at": at, "snapshot": False,
    }  # fmt: skip
    said: dict[str, Any] = {"author": "R. Quay", "hops": [{"name": "Fuggle"}]}
    ids = [str((await brewery.recipe(content("Wanted", **said), **fitting)).id)]
    misfits: list[dict[str, Any]] = [
        {"folder_id": None}, {"group_id": "13"}, {"created_at": old}, {"created_at": new},
        {"updated_at": old}, {"updated_at": new}, {"snapshot": True},
    ]  # fmt: skip
    for misfit in misfits:
        await brewery.recipe(content("Unwanted", **said), **{**fitting, **misfit})
    await brewery.recipe(content("Unwanted", **said | {"author": "R. Quai"}), **fitting)
    await brewery.recipe(content("Unwanted", **said | {"hops": []}), **fitting)
    await brewery.recipe(content("Unwanted", **said), **fitting, account_id=1)
    return {
        "id": ids[0], "author": "r. quay", "group_id": "12", "brewer_author_id": str(brewery.account_id),
        "folder_id": str(folder.id), "keyword": "FUGGLE", "updated_from": "2026-03-01",
        "updated_to": "2026-03-01", "created_from": "2026-03-01", "created_to": "2026-03-01",
    }  # fmt: skip


async def test_all_filters_must_hold(brewery: Brewery) -> None:
    filters = await combined(brewery)
    assert await titles(brewery, filters) == ["Wanted"]
    del filters["id"]
    more = {"sort": "title:1", "limit": "5", "offset": "0", "ingredients": "true", "snapshots": "false"}
    assert await titles(brewery, {**filters, **more}) == ["Wanted"]
    found = {name: await titles(brewery, _without(filters, name)) for name in filters}
    assert {name: len(titles) for name, titles in found.items()} == {
        "author": 2, "group_id": 2, "brewer_author_id": 1, "folder_id": 2, "keyword": 2,
        "updated_from": 2, "updated_to": 2, "created_from": 2, "created_to": 2,
    }  # fmt: skip
    assert await titles(brewery, {**filters, "snapshots": "true"}) == ["Unwanted", "Wanted"]


def _without(filters: dict[str, str], name: str) -> dict[str, str]:
    return {other: value for other, value in filters.items() if other != name}


async def test_filters_hold_in_pairs_in_any_order(brewery: Brewery) -> None:
    filters = await combined(brewery)
    del filters["id"]
    for one, two in permutations(filters.items(), 2):
        count, _ = await search(brewery, [one, two])
        singles = [await search(brewery, [one]), await search(brewery, [two])]
        assert 1 <= count <= min(single for single, _ in singles)
        assert await search(brewery, [two, one]) == await search(brewery, [one, two])


async def test_count_does_not_depend_on_the_page(brewery: Brewery) -> None:
    await fill(brewery, 25)
    for query in ("limit=0", "limit=3", "offset=24", "offset=99", "limit=3&offset=23", "ingredients=true"):
        assert (await search(brewery, f"keyword=number 01&{query}"))[0] == 10


@each("name", ["limit", "offset"])
@each("value", ["-1", "x", "1.5", "%20", "1e3", "0x1", "%D9%A1", "%2B1", "true"])
async def test_paging_takes_whole_numbers_only(brewery: Brewery, name: str, value: str) -> None:
    expected = (400, "failure", f"{name} must be a whole number, 0 or more")
    assert await brewery.refusal("recipes", f"{name}={value}") == expected


@each("name", ["updated_from", "updated_to", "created_from", "created_to"])
@each(
    "value",
    ["x", "2026-3-4", "20260304", "2026-02-30", "2026-03-04T00:00:00", "0000-01-01", "04-03-2026"],
)
async def test_days_are_strict(brewery: Brewery, name: str, value: str) -> None:
    status, message, detail = await brewery.refusal("recipes", f"{name}={value}")
    assert (status, message) == (400, "failure")
    assert detail.startswith(f"{name} ")


@each("name", ["ingredients", "snapshots"])
@each("value", ["2", "x", "on", "%20", "truefalse", "null", "-1"])
async def test_booleans_are_strict(brewery: Brewery, name: str, value: str) -> None:
    expected = (400, "failure", f"{name} must be true or false")
    assert await brewery.refusal("recipes", f"{name}={value}") == expected


@each("value", ["x", "id:1", "batchcode:1", ":1", "Title:1", "title%20:1", "1", "%20", "notes"])
async def test_sort_knows_three_fields(brewery: Brewery, value: str) -> None:
    expected = (400, "failure", "sort must be one of created_at, updated_at, title, then :1 or :-1")
    assert await brewery.refusal("recipes", f"sort={value}") == expected


@each("value", ["x", "-1", "1.5", "%20", "null"])
async def test_a_folder_is_a_number(brewery: Brewery, value: str) -> None:
    assert (await brewery.refusal("recipes", f"folder_id={value}"))[:2] == (400, "failure")


async def test_no_parameter_has_a_nul(brewery: Brewery) -> None:
    for name in ("keyword", "author", "id", "limit", "created_from", "sort", "group_id"):
        expected = (400, "failure", f"{name} has a NUL in it")
        assert await brewery.refusal("recipes", f"{name}=1%00") == expected


async def test_unknown_parameters_are_ignored_and_of_repeated_ones_the_first_counts(brewery: Brewery) -> None:
    await fill(brewery, 3)
    whole = await brewery.get("recipes")
    assert await brewery.get("recipes", "page=1&unknown=x&Limit=1&skip=2&from=x&batchcode=1") == whole
    assert await brewery.get("recipes", "limit=1&limit=x&limit=3") == await brewery.get("recipes", "limit=1")
