"""schemathesis against the running program: whatever is sent, the answer is one that is described.

`SCHEMATHESIS_EXAMPLES=1000 python -m pytest tests/program/test_schemathesis.py` looks longer.
"""

import itertools
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.config import HealthCheck
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    ignored_auth,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.patience import PATIENCE_S
from tests.program.program import ispindel
from tests.system.api.everything import BEERXML, description, picture
from tests.system.api.harmless import HARMLESS_KEY, harmless

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "5"))
"""Random requests for each operation, beside those that follow from the bounds in the description."""

AIMED = 0.75
"""Of the ids that could be those of a record, how many are made so."""

STOP_S = 20.0

NEIGHBOURS = (f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in itertools.count(1))
"""An address for each case: the checks try wrong keys, and one source may try ten a minute."""

UNREADABLE = "ERROR Error handling request"
"""What the HTTP parser logs of a request that is none, before the gateway sees it."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    allow_header_conformance,
    ignored_auth,
]

Case = schemathesis.Case[Any]


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A file that is cut, or has bytes in it that do not belong there."""
    place = draw(st.integers(0, len(whole)))
    return whole[:place] + draw(st.binary(max_size=20)) + whole[place + draw(st.integers(0, len(whole))) :]


for media, content in {
    "application/xml": BEERXML,
    "text/xml": BEERXML,
    "text/csv": b"name,gravity,temp\nGREEN,1.05,20\nGREEN,1.04,\n",
    **{f"image/{kind}": picture(kind) for kind in ("png", "jpeg", "gif")},
}.items():
    schemathesis.openapi.media_type(media, st.just(content) | damaged(content) | st.binary(max_size=100))

# But for the stream of events, whose answer has no end: tests/system/http/test_event_streams.py reads that.
API = schemathesis.openapi.from_dict(description()).exclude(path="/manage/events")
API.config.generation.update(max_examples=EXAMPLES, deterministic=True, database="none")
API.config.suppress_health_check = [HealthCheck.all]  # how fast the machine is decides nothing here


@dataclass
class Brewery:
    """The running program, and ids of records in it by the name of what takes them."""

    url: str
    key: str
    http: requests.Session
    ids: dict[str, list[str]] = field(default_factory=dict)
    session_folders: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    made: int = 0

    def post(self, path: str, body: Any, media: str = "") -> Any:
        """A request that must work; the members of its answer."""
        headers = {"X-API-KEY": self.key, **({"Content-Type": media} if media else {})}
        sent = {"data": body} if media else {"json": body}
        answer = self.http.post(f"{self.url}{path}", headers=headers, **sent)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def recipe(self) -> str:
        return str(self.post("/manage/recipes", BEERXML, "application/xml")["recipes"][0]["id"])

    def photo(self, recipe: str) -> str:
        path = f"/manage/recipes/{recipe}/photos"
        return str(self.post(path, picture("png"), "image/png")["photos"][0]["uuid"])

    def folder(self, kind: str) -> str:
        self.made += 1
        body = {"kind": kind, "name": f"folder {self.made}"}
        return str(self.post("/manage/folders", body)["folders"][0]["id"])

    def session(self, recipe: str) -> str:
        return str(self.post("/manage/brewsessions", {"recipe_id": recipe})["brewsessions"][0]["id"])

    def event(self, session: str) -> str:
        path = f"/manage/brewsessions/{session}/events"
        return str(self.post(path, {"kind": "hand_reading", "gravity": "1.024"})["event"]["id"])

    def target(self) -> str:
        self.made += 1
        name = f"target{self.made}"
        body = {"name": name, "url": f"{harmless()}/{name}", "key": HARMLESS_KEY}
        return str(self.post("/manage/targets", body)["targets"][0]["name"])

    def alarm(self) -> str:
        """An alarm about the battery of the first device, which is in no brew."""
        for angle in ("41.1", "41.2", "41.3", "41.4"):
            body = ispindel(1, gravity="1.05", angle=angle).replace('"battery":3.95', '"battery":3.21')
            self.http.post(f"{self.url}/ingest", data=body)
        deadline = time.monotonic() + PATIENCE_S
        headers = {"X-API-KEY": self.key}
        while not (found := self.http.get(f"{self.url}/manage/alarms", headers=headers).json()["alarms"]):
            assert time.monotonic() < deadline, "no alarm fires"
            time.sleep(0.1)
        return str(found[0]["id"])

    def spare_key(self) -> str:
        self.made += 1
        return str(self.post("/manage/keys", {"name": f"key {self.made}"})["keys"][0]["name"])

    def fill(self) -> None:
        """A small brewery."""
        recipe, other = self.recipe(), self.recipe()
        session = self.session(recipe)
        self.post(
            f"/v1/fermentation/{session}/import", [{"gravity": 1.05, "temp": 20, "ph": 4.4}, {"temp": 2}]
        )
        for number in (1, 2):
            self.http.post(f"{self.url}/ingest", data=ispindel(number, gravity="1.05"))
        self.http.post(f"{self.url}/ingest", data=b"?")
        self.targets = [self.target(), self.target()]
        self.ids = {
            "device_id": ["1", "2"],
            "number": ["1"],
            "recipe_id": [recipe, other],
            "uuid": [self.photo(recipe)],
            "folder_id": [self.folder("recipe")],
            "brew_session_id": [session, self.session(other)],
            "event_id": [self.event(session)],
            "alarm_id": [self.alarm()],
            "account": ["owner"],
        }
        self.session_folders = [self.folder("brewsession")]

    def doomed(self, path: str) -> dict[str, list[str]]:
        """Ids of records that may be deleted, made for this one request."""
        recipe = self.ids["recipe_id"][0]
        make: dict[str, Callable[[], dict[str, list[str]]]] = {
            "/manage/recipes/{recipe_id}": lambda: {"recipe_id": [self.recipe()]},
            "/manage/recipes/{recipe_id}/photos/{uuid}": lambda: {
                "recipe_id": [recipe],
                "uuid": [self.photo(recipe)],
            },
            "/manage/folders/{folder_id}": lambda: {"folder_id": [self.folder("recipe")]},
            "/manage/brewsessions/{brew_session_id}": lambda: {"brew_session_id": [self.session(recipe)]},
            "/manage/brewsessions/{brew_session_id}/events/{event_id}": lambda: {
                "brew_session_id": self.ids["brew_session_id"][:1],
                "event_id": [self.event(self.ids["brew_session_id"][0])],
            },
            "/manage/targets/{name}": lambda: {"name": [self.target()]},
            "/manage/keys": lambda: {"name": [self.spare_key()], "account": ["owner"]},
        }
        return make.get(path, lambda: dict(self.ids))()

    def aim(self, case: Case) -> None:
        """Let most valid ids that were drawn be those of records that are there."""
        deleting = case.operation.method == "delete"
        known = self.doomed(case.operation.path) if deleting else dict(self.ids)
        if "brewsessions" in case.operation.path:
            known["folder_id"] = self.session_folders
        if "/targets/" in case.operation.path and not deleting:
            known["name"] = self.targets
        # From what was drawn, so that the same case is the same request when it is tried again.
        drawn = repr((case.method, case.path_parameters, case.query, case.body))
        dice = random.Random(drawn)  # noqa: S311 - no secret
        body = case.body if isinstance(case.body, dict) else {}
        if "url" in body:  # nothing but this machine is asked, and mostly with the right key
            body["url"] = f"{harmless()}/{dice.randrange(1000)}"
            body["key"] = dice.choice([HARMLESS_KEY, HARMLESS_KEY, body.get("key", "")])
        if "rate" in body:
            body["rate"] = 100.0  # a request in a hundred seconds is right, too, but slow
        values: dict[str, Any]
        for values in (case.path_parameters, case.query, body):
            for name in known.keys() & values.keys():
                text = str(values[name])
                if text in self.ids.get(name, ()) or (could_be(name, text) and dice.random() < AIMED):
                    values[name] = dice.choice(known[name])


def could_be(name: str, text: str) -> bool:
    """Whether the text is one that a record could be found by."""
    return name in {"name", "account"} or re.fullmatch("[0-9]{1,15}|[0-9a-f-]{36}", text) is not None


@pytest.fixture(scope="module")
def brewery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brewery]:
    folder = tmp_path_factory.mktemp("brewery")
    command = [sys.executable, "-m", "gateway", "serve", "--no-mqtt", "--host", "127.0.0.1", "--port", "0"]
    command += ["--trusted-proxy", "127.0.0.1"]
    command += ["--config", os.devnull, "--data-dir", str(folder / "data")]
    with (
        (folder / "log").open("wb") as log,
        requests.Session() as http,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as program,
    ):
        try:
            there = Brewery(said_by(program), (folder / "data" / "first-key").read_text().strip(), http)
            there.fill()
            yield there
        finally:
            program.terminate()
            assert program.wait(STOP_S) == 0
    errors = [line for line in (folder / "log").read_text().splitlines() if line.startswith("ERROR")]
    assert [line for line in errors if not line.startswith(UNREADABLE)] == []


def said_by(program: subprocess.Popen[str]) -> str:
    """The address of a program that has just been started."""
    said = ""
    assert program.stdout is not None
    for line in program.stdout:
        said += line
        if line.startswith("Ready"):
            break
    url = re.search(r"http://[\d.:]+", said)
    assert url is not None, said
    return url[0]


def test_the_program_describes_itself_as_these_tests_see_it(brewery: Brewery) -> None:
    assert brewery.http.get(f"{brewery.url}/openapi.json").json() == description()


@API.parametrize()
def test_every_answer_is_one_that_is_described(case: Case, brewery: Brewery) -> None:
    brewery.aim(case)
    headers = {"X-API-KEY": brewery.key, "X-Forwarded-For": next(NEIGHBOURS)}
    case.call_and_validate(base_url=brewery.url, session=brewery.http, headers=headers, checks=CHECKS)
