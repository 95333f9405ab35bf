"""A query parameter that is blank is as if it were not there: every one of every endpoint."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.system.api.everything import BODIES, QUERIES, Filled, Running, description, fill, running

NEEDED = {("get", "/v1/recipes/{recipe_id}/photo", "uuid"), ("delete", "/manage/keys", "name")}
"""Without these there is nothing to answer."""


def parameters() -> Iterator[tuple[str, str, str]]:
    """Method, path and name of every query parameter that is described."""
    for path, operations in description()["paths"].items():
        for method, operation in operations.items():
            for parameter in operation["parameters"]:
                if parameter["in"] == "query" and operation["tags"] != ["devices"]:
                    yield method, path, parameter["name"]


ALL = [each for each in parameters() if not each[1].startswith("/ingest") and each[1] != "/"]


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


@pytest.fixture
async def mine(whole: Running) -> Filled:
    return await fill(whole.services, "owner", "MARK")


def test_the_table_has_the_parameters_of_the_specification() -> None:
    names = {name for _, path, name in ALL if path.startswith("/v1/")}
    assert names >= {"skip", "limit", "offset", "from", "to", "created_from", "updated_to", "reset", "width"}
    assert len(ALL) > 40


@pytest.mark.parametrize(("method", "path", "name"), [each for each in ALL if each not in NEEDED])
async def test_blank_is_absent(whole: Running, mine: Filled, method: str, path: str, name: str) -> None:
    usual = QUERIES.get((method.upper(), path), "")
    body = BODIES.get((method.upper(), path), {})
    target = f"{path}{usual}{'&' if usual else '?'}{name}="
    answer = await whole.ask(method, mine.path(target), **body)
    assert answer.status == 200, answer.body
    if method == "get":
        without = (await whole.ask(method, mine.path(path + usual))).body
        if path == "/manage/backup":  # which says when it was made
            assert len(answer.body) == len(without)
        elif path.endswith("/capture"):  # which makes up new names each time
            assert json.loads(answer.body)["payloads"] == json.loads(without)["payloads"]
        else:
            assert answer.body == without


@pytest.mark.parametrize(("method", "path", "name"), sorted(NEEDED))
async def test_what_is_needed_is_missing_where_it_is_blank(
    whole: Running, mine: Filled, method: str, path: str, name: str
) -> None:
    for query in ("", f"?{name}="):
        assert (await whole.ask(method, mine.path(path + query))).status == 400
