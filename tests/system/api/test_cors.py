"""Pages of other origins: nothing without the option, with it preflights without a key and marked answers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.http import cors
from gateway.settings import Settings
from tests.cases import each
from tests.program.program import refusal
from tests.system.api.everything import KEPT_PATHS, PATHS, ROUTES, Answer, Filled, Running, fill, running

NAMED, OTHER, STRANGER = "https://brew.lan", "http://192.168.1.20:3000", "https://evil.example"

API = [path for path in PATHS if path.startswith(("/v1/", "/manage/"))] + ["/healthz", "/openapi.json"]
DEVICES = ["/", "/ingest", "/ingest/tilt"]


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path, allowed_origins=(NAMED, OTHER)) as service:
        yield service


@pytest.fixture
async def mine(whole: Running) -> Filled:
    return await fill(whole.services, "owner", "MARK")


def asking(origin: str, method: str = "GET") -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "x-api-key",
    }


def of_cors(answer: Answer) -> dict[str, str]:
    return {
        name: value for name, value in answer.headers.items() if name.lower().startswith("access-control-")
    }


def allows(answer: Answer, origin: str) -> bool:
    assert "Origin" in answer.headers.getall("Vary")  # type: ignore[attr-defined]
    assert "Access-Control-Allow-Credentials" not in answer.headers
    return answer.headers.get("Access-Control-Allow-Origin") == origin


@each("path", API)
async def test_a_preflight_needs_no_key(whole: Running, mine: Filled, path: str) -> None:
    for origin in (NAMED, OTHER):
        answer = await whole.ask("OPTIONS", mine.path(path), "", headers=asking(origin, "POST"))
        assert (answer.status, answer.body) == (204, b"")
        assert allows(answer, origin)
        assert answer.headers["Access-Control-Allow-Headers"] == "X-API-KEY, Content-Type, If-None-Match"
        assert int(answer.headers["Access-Control-Max-Age"]) > 0
        methods = set(answer.headers["Access-Control-Allow-Methods"].split(", "))
        assert methods >= {method for method, routed in ROUTES if routed == path}
    assert whole.services.stats.wrong_keys == 0


@each("path", API)
async def test_a_preflight_of_another_origin_gets_no_permission(
    whole: Running, mine: Filled, path: str
) -> None:
    for origin in (
        STRANGER,
        "null",
        "*",
        "https://brew.lan.evil.example",
        "https://BREW.lan",
        "http://brew.lan",
        "",
    ):
        answer = await whole.ask("OPTIONS", mine.path(path), "", headers=asking(origin))
        assert answer.status == (401 if path in KEPT_PATHS else 204)
        assert of_cors(answer) == {}
        assert allows(answer, STRANGER) is False


@each("path", API)
async def test_options_that_are_no_preflight_are_as_without_the_option(
    whole: Running, mine: Filled, path: str
) -> None:
    answer = await whole.ask("OPTIONS", mine.path(path), headers={"Origin": NAMED})
    assert (answer.status, answer.body) == (204, b"")
    assert "OPTIONS" in answer.headers["Allow"]
    if path in KEPT_PATHS:
        assert (await whole.ask("OPTIONS", mine.path(path), "")).status == 401


@pytest.mark.parametrize(
    ("method", "target", "key", "more", "status"),
    [
        ("GET", "/v1/recipes", None, {}, 200),
        ("HEAD", "/v1/recipes", None, {}, 200),
        ("GET", "/v1/recipes/{recipe_id}.xml", None, {}, 200),
        ("GET", "/v1/recipes/{recipe_id}/photo?uuid={uuid}", None, {}, 200),
        ("POST", "/v1/fermentation/{brew_session_id}/import", None, {"json": [{"temp": 20}]}, 200),
        ("GET", "/v1/recipes", "", {}, 401),
        ("GET", "/v1/recipes", "hg_wrong", {}, 401),
        ("GET", "/v1/recipes?limit=x", None, {}, 400),
        ("GET", "/v1/recipes/999999", None, {}, 404),
        ("GET", "/v1/nothing", None, {}, 404),
        ("DELETE", "/v1/recipes", None, {}, 405),
        ("POST", "/v1/fermentation/{brew_session_id}/import", None, {"data": b"x", "headers": {}}, 415),
        ("POST", "/manage/brewsessions", None, {"data": " " * 2_200_000}, 413),
        ("GET", "/manage/status", None, {}, 200),
        ("GET", "/healthz", "", {}, 200),
        ("GET", "/openapi.json", "", {}, 200),
    ],
)
@pytest.mark.filterwarnings("ignore:Sending a large body")
async def test_every_answer_can_be_read_by_the_page(
    whole: Running,
    mine: Filled,
    method: str,
    target: str,
    key: str | None,
    more: dict[str, object],
    status: int,
) -> None:
    media = {"Content-Type": "application/json"} if status == 413 else {}
    sent = {name: value for name, value in more.items() if name != "headers"}
    for origin, readable in ((NAMED, True), (OTHER, True), (STRANGER, False)):
        headers = {"Origin": origin, **media}
        answer = await whole.ask(method, mine.path(target), key, headers=headers, **sent)
        assert answer.status == status, answer.body
        assert allows(answer, origin) is readable
        exposed = answer.headers.get("Access-Control-Expose-Headers", "")
        assert ("Retry-After" in exposed) is readable
    assert of_cors(await whole.ask(method, mine.path(target), key, headers=media, **sent)) == {}


async def test_a_photo_that_did_not_change_can_be_read_too(whole: Running, mine: Filled) -> None:
    target = mine.path("/v1/recipes/{recipe_id}/photo?uuid={uuid}")
    tag = (await whole.ask("GET", target)).headers["ETag"]
    answer = await whole.ask("GET", target, headers={"Origin": NAMED, "If-None-Match": tag})
    assert (answer.status, allows(answer, NAMED)) == (304, True)


async def test_a_stream_can_be_read_by_the_page(whole: Running, mine: Filled) -> None:
    readings = json.dumps([{"gravity": 1.05, "comment": "x" * 100}] * 2000)
    path = mine.path("/v1/fermentation/{brew_session_id}")
    media = {"Content-Type": "application/json"}
    assert (await whole.ask("POST", f"{path}/import", data=readings, headers=media)).status == 200
    answer = await whole.ask("GET", path, headers={"Origin": NAMED})
    assert (answer.status, answer.headers["Transfer-Encoding"]) == (200, "chunked")
    assert len(json.loads(answer.body)["readings"]) == 2001
    assert allows(answer, NAMED)


@each("path", DEVICES)
async def test_a_page_may_report_and_a_device_hears_nothing_of_origins(whole: Running, path: str) -> None:
    answer = await whole.ask("OPTIONS", path, "", headers=asking(NAMED, "POST"))
    assert (answer.status, allows(answer, NAMED)) == (204, True)
    for headers, is_allowed in (({"Origin": NAMED}, True), ({"Origin": "http://127.0.0.1"}, False)):
        answer = await whole.ask("POST", path, "", data=b"{}", headers=headers)
        assert (answer.status, allows(answer, NAMED)) == (200, is_allowed)
    answer = await whole.ask("POST", path, "", data=b"{}")
    assert (answer.status, of_cors(answer), "Vary" in answer.headers) == (200, {}, False)
    for origin, method in ((STRANGER, "POST"), (NAMED, "DELETE"), (NAMED, "nonsense")):
        answer = await whole.ask("OPTIONS", path, "", headers=asking(origin, method))
        assert "Access-Control-Allow-Methods" not in answer.headers
        assert allows(answer, NAMED) is False if "Vary" in answer.headers else of_cors(answer) == {}


@pytest.mark.parametrize("path", ["/metrics", "/docs"])
async def test_other_paths_say_nothing_of_origins(whole: Running, path: str) -> None:
    for method in ("GET", "OPTIONS", "POST"):
        sent = {"data": b"{}"} if method == "POST" else {}
        answer = await whole.ask(method, path, None, headers=asking(NAMED), **sent)
        assert of_cors(answer) == {}
        assert "Origin" not in answer.headers.get("Vary", "")


async def test_without_the_option_no_answer_says_anything_of_origins(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        for path in ("/v1/recipes", "/healthz", "/openapi.json", "/manage/status", "/v1/nothing"):
            for method in ("GET", "OPTIONS"):
                answer = await service.ask(method, path, headers=asking(NAMED))
                assert of_cors(answer) == {}
                assert "Origin" not in answer.headers.get("Vary", "")
        assert (await service.ask("OPTIONS", "/v1/recipes", "", headers=asking(NAMED))).status == 401


def test_every_method_of_an_endpoint_is_one_that_a_page_may_ask_for() -> None:
    assert {method for method, path in ROUTES if path in API} == set(cors.METHODS)


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("https://brew.lan", "https://brew.lan"),
        ("https://Brew.LAN:443", "https://brew.lan"),
        ("http://brew.lan:80", "http://brew.lan"),
        ("http://brew.lan:443", "http://brew.lan:443"),
        ("http://192.168.1.20:3000", "http://192.168.1.20:3000"),
        ("http://[fd00::1]:8080", "http://[fd00::1]:8080"),
        ("http://localhost:5173", "http://localhost:5173"),
        ("https://xn--bru-0ka.example", "https://xn--bru-0ka.example"),
    ],
)
def test_an_origin_is_kept_as_browsers_send_it(said: str, sent: str) -> None:
    assert Settings(allowed_origin=[said]).allowed_origin == [sent]
    assert Settings(allowed_origin=["http://a"], cors_origin=[said]).origins == ["http://a", sent]


WRONG = [
    *(
        "*",
        "null",
        "",
        "brew.lan",
        "brew.lan:80",
        "//brew.lan",
        "https://",
        "https://brew.lan/",
        "ftp://brew.lan",
    ),
    *(
        "https://brew.lan/app",
        "https://brew.lan?x",
        "https://brew.lan#x",
        "https://me@brew.lan",
        "https://brew lan",
    ),
    *(
        "https://brew.lan:0",
        "https://brew.lan:70000",
        "https://brew.lan:x",
        "https://bräu.example",
        "https://*.lan",
    ),
    *("https://brew.lan:", "https://[fd00::1", "https://brew.lan https://other.lan"),
]


@pytest.mark.parametrize("said", WRONG)
def test_what_is_no_origin_is_refused_in_clear_words(said: str) -> None:
    with pytest.raises(ConfigError, match=r"is no origin; it must look like https://brew\.lan or http"):
        Settings(allowed_origin=[NAMED, said])


async def test_the_program_says_what_is_wrong_with_an_origin(tmp_path: Path) -> None:
    words = await refusal(tmp_path / "data", "serve --allowed-origin https://brew.lan/app")
    assert words.startswith(
        "allowed_origin: 'https://brew.lan/app' is no origin; it must look like https://brew.lan"
    )
    assert not (tmp_path / "data").exists()
