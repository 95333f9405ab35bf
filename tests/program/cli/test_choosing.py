"""`targets sessions` at a terminal: the brew session with the same batch code is forwarded by one key."""

import json
from pathlib import Path

import pytest

from tests.cloud import KEY, ScriptedCloud, running
from tests.program.program import LOCAL, process, serving
from tests.program.terminal import at_terminal

ASKED = "Forward brew session 1 (HP001) to which number there? 0: to none [4101]: "
NUMBERS = [("4101", "HP001"), ("4102", "HP002")]


@pytest.mark.parametrize(("typed", "number"), [("", 4101), ("4102", 4102), ("0", None)])
async def test_a_brew_session_is_forwarded_to_the_number_that_is_chosen(
    tmp_path: Path, typed: str, number: int | None
) -> None:
    data, key_file = tmp_path / "data", tmp_path / "club.key"
    key_file.write_text(KEY)
    names = {"recipe_title": "Porter", "phase": "Primary Fermentation", "userdate": "2026-03-01"}
    cloud = ScriptedCloud(listed=[{"id": id, "batchcode": code, **names} for id, code in NUMBERS])
    async with running(cloud), serving(data, *LOCAL, "--no-mqtt"):
        login = ("targets", "login", "club", "--url", cloud.url, "--key-file", str(key_file))
        for words in (login, ("sessions", "add", "--batchcode", "HP001")):
            done = await process(data, words)
            assert done.status == 0, done
        status, shown = await at_terminal(data, "targets", "sessions", "club", typed=[(ASKED, typed)])
        assert status == 0
        told = f"Brew session 1 (HP001) goes to club from now on, where it is number {number}."
        assert (told in shown) == (number is not None), shown
        listed = await process(data, ("targets", "sessions", "club", "--json"))
        here = {row["number"]: row["here"] for row in map(json.loads, listed.out.splitlines())}
        assert here == {id: [1] if id == f"{number}" else [] for id, _ in NUMBERS}
        # Once it is forwarded, nothing is asked: the command ends by itself.
        if number == 4101:
            status, shown = await at_terminal(data, "targets", "sessions", "club")
            assert (status, "Forward brew session" in shown) == (0, False)
