"""Methods and paths: HEAD and OPTIONS on every route, 405 and 404 in the one error body, keys before all."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cases import each
from tests.keys import allow_wrong_keys
from tests.system.api.everything import KEPT_PATHS, PATHS, QUERIES, Filled, Running, fill, methods_of, running

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND")

CHANGING = {path: {"Content-Length"} for path in ("/metrics", "/manage/status", "/healthz", "/manage/backup")}
"""Headers of pages that say something else at every look, or that only a whole answer has."""

UNAUTHORIZED = {"message": "unauthorized", "detail": "invalid api key"}
NOT_FOUND = {"message": "not-found", "detail": "no records found"}


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


@pytest.fixture
async def mine(whole: Running) -> Filled:
    return await fill(whole.services, "owner", "MARK")


@each("path", PATHS)
async def test_options_says_what_there_is_and_nothing_about_other_origins(
    whole: Running, mine: Filled, path: str
) -> None:
    answer = await whole.ask("OPTIONS", mine.path(path), headers={"Origin": "https://elsewhere.example"})
    assert (answer.status, answer.body) == (204, b"")
    assert set(answer.headers["Allow"].split(",")) == methods_of(path) | {"OPTIONS"}
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


@each("path", PATHS)
async def test_methods_that_a_path_does_not_have_are_405(whole: Running, mine: Filled, path: str) -> None:
    for method in sorted(set(METHODS) - methods_of(path) - {"OPTIONS"}):
        answer = await whole.ask(method, mine.path(path))
        assert answer.status == 405, method
        assert set(answer.headers["Allow"].split(",")) == methods_of(path)
        if method != "HEAD":
            assert json.loads(answer.body) == {"message": "failure", "detail": "Method Not Allowed"}


@each("path", [path for path in PATHS if "HEAD" in methods_of(path)])
async def test_head_is_get_without_a_body(whole: Running, mine: Filled, path: str) -> None:
    target = mine.path(path + QUERIES.get(("GET", path), ""))
    head, get = await whole.ask("HEAD", target), await whole.ask("GET", target)
    assert (head.status, head.body, get.status) == (200, b"", 200)
    assert get.body
    for name in {"Content-Type", "Content-Length", "ETag", "Cache-Control"} - CHANGING.get(path, set()):
        assert head.headers.get(name) == get.headers.get(name), name


async def test_every_page_that_can_be_read_answers_head_except_where_devices_report() -> None:
    only_get = {path for path in PATHS if "GET" in methods_of(path) and "HEAD" not in methods_of(path)}
    assert {path for path in only_get if path != "/" and not path.startswith("/ingest")} == set()


@each("method", METHODS)
@each("path", ["/v2/recipes", "/nothing", "/v1/nothing", "/manage/nothing", "/v1", "/manage"])
async def test_unknown_paths_are_404_in_the_error_body(whole: Running, method: str, path: str) -> None:
    answer = await whole.ask(method, path)
    assert answer.status == 404
    assert method == "HEAD" or json.loads(answer.body) == NOT_FOUND


@each("path", [*KEPT_PATHS, "/v1", "/v1/nothing", "/manage", "/manage/nothing"])
async def test_the_key_comes_before_method_path_query_and_body(
    whole: Running, mine: Filled, path: str
) -> None:
    allow_wrong_keys(whole.services.access)
    for method in METHODS:
        for key in ("", "hg_unknown"):
            answer = await whole.ask(
                method, f"{mine.path(path)}?limit=x&reset=x", key, data=b"{", headers={"Content-Type": "no"}
            )
            assert answer.status == 401, method
            assert method == "HEAD" or json.loads(answer.body) == UNAUTHORIZED


@each("name", ["X-API-KEY", "x-api-key", "X-Api-Key"])
@each("blanks", [(" ", ""), ("", "  "), ("\t ", " \t")])
async def test_the_key_is_taken_in_any_case_and_with_blanks_around(
    whole: Running, name: str, blanks: tuple[str, str]
) -> None:
    header = f"{name}:{blanks[0]}{whole.key}{blanks[1]}\r\n"
    assert (
        await status_of(whole, f"GET /v1/recipes HTTP/1.1\r\nHost: localhost\r\n{header}\r\n".encode()) == 200
    )


@each(
    "target, status",
    [
        (b"/v1/recipes?keyword=%00", 400),
        (b"/v1/recipes?keyword=%ff", 200),
        (b"/v1/recipes?keyword=%ed%a0%80", 200),
        (b"/v1/recipes?keyword=\xff\xfe", 400),
        (b"/v1/recipes/\xff", 400),
        (b"/v1/recipes/%00", 404),
        (b"/v1/recipes/%2e%2e/%2e%2e/docs", 404),
        (b"/v1/recipes/1/photo/%00", 404),
        (b"/%76%31/recipes", 200),
    ],
)
async def test_odd_bytes_in_the_target_are_no_trouble(whole: Running, target: bytes, status: int) -> None:
    head = f"Host: localhost\r\nX-API-KEY: {whole.key}\r\n\r\n".encode()
    assert await status_of(whole, b"GET " + target + b" HTTP/1.1\r\n" + head) == status


async def test_a_line_that_is_too_long_is_refused_as_described(whole: Running) -> None:
    answer = await whole.ask("GET", f"/v1/recipes?keyword={'x' * 9000}")
    assert (answer.status, answer.headers["Content-Type"].split(";")[0]) == (400, "text/plain")


async def test_a_path_in_disguise_needs_the_key_all_the_same(whole: Running) -> None:
    for target in (b"/%76%31/recipes", b"/%6danage/keys", b"/x/../v1/recipes", b"/./manage/keys"):
        request = b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert await status_of(whole, request) in {401, 404}


async def status_of(whole: Running, request: bytes) -> int:
    """The status of the answer to these bytes, sent as they are."""
    server = whole.client.server
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(request)
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return int(line.split()[1])
