"""schemathesis against the running program: whatever is sent, the answer is one that the description knows."""

import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    ignored_auth,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.everything import BEERXML, description, png

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "8"))
"""Examples for each operation, beside those that schemathesis derives from the schema's bounds."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    allow_header_conformance,
    ignored_auth,
]

API = schemathesis.openapi.from_dict(description())
API.config.generation.update(max_examples=EXAMPLES, deterministic=True, database="none")


@dataclass
class Brewery:
    """The running program, and the records that are in it, by the parameter that takes their id."""

    url: str
    key: str
    http: requests.Session
    ids: dict[str, list[str]]

    def make(self, path: str, **body: Any) -> Any:
        """A request that must work; the members of its answer."""
        answer = self.http.post(
            f"{self.url}{path}", headers={"X-API-KEY": self.key, **body.pop("headers", {})}, **body
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def fill(self) -> None:
        xml = {"Content-Type": "application/xml"}
        for kind in ("recipe", "brewsession"):
            self.ids["folder_id"].append(
                self.make("/manage/folders", json={"kind": kind, "name": "a"})["folders"][0]["id"]
            )
        for _ in range(3):
            recipe = self.make("/manage/recipes", data=BEERXML, headers=xml)["recipes"][0]["id"]
            self.ids["recipe_id"].append(recipe)
            photo = self.make(
                f"/manage/recipes/{recipe}/photos", data=png(), headers={"Content-Type": "image/png"}
            )
            self.ids["uuid"].append(photo["photos"][0]["uuid"])
            session = self.make("/manage/brewsessions", json={"recipe_id": recipe})["brewsessions"][0]["id"]
            self.ids["brew_session_id"].append(session)
            self.make(f"/v1/fermentation/{session}/import", json=[{"gravity": 1.05, "temp": 20, "ph": 4.4}])

    def aim(self, case: schemathesis.Case) -> None:
        """Let most of the valid ids that were drawn be ids of records that are there."""
        for name, value in (case.path_parameters or {}).items():
            known = self.ids.get(name, [])
            place = zlib.crc32(str(value).encode()) % (len(known) + 1)
            if place < len(known) and re.fullmatch("[0-9]+|[0-9a-f-]{36}", str(value)):
                case.path_parameters[name] = known[place]


@pytest.fixture(scope="module")
def brewery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brewery]:
    folder = tmp_path_factory.mktemp("brewery")
    words = [
        "serve",
        "--config",
        os.devnull,
        "--data-dir",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-mqtt",
    ]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "gateway", *words], stdout=subprocess.PIPE, stderr=log, text=True
        ) as program,
        requests.Session() as http,
    ):
        assert program.stdout is not None
        said = ""
        for line in program.stdout:
            said += line
            if line.startswith("Ready"):
                break
        key = re.search(r"hg_\S+", said)
        url = re.search(r"http://[\d.:]+", said)
        assert key is not None and url is not None, said
        there = Brewery(
            url[0], key[0], http, {"recipe_id": [], "brew_session_id": [], "folder_id": [], "uuid": []}
        )
        assert http.get(f"{there.url}/openapi.json").json() == description()
        there.fill()
        yield there
        program.terminate()
        assert program.wait(10) == 0
    assert "Traceback" not in (folder / "log").read_text()


@API.parametrize()
def test_every_answer_is_one_that_is_described(case: schemathesis.Case, brewery: Brewery) -> None:
    brewery.aim(case)
    case.call_and_validate(
        base_url=brewery.url, session=brewery.http, headers={"X-API-KEY": brewery.key}, checks=CHECKS
    )
