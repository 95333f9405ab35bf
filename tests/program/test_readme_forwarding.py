"""What README.md and docs/forwarding.md say of sending on, to the word: a reading is upstream in the end."""

import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.cloud import KEY, ScriptedCloud, running
from tests.program.program import LOCAL, Finished, Server, ended, launch, process, serving, until
from tests.program.terminal import at_terminal
from tests.pure.documents.pages import PROGRAM, README, page

SERVED = (*LOCAL, "--no-mqtt", "--forward-seconds", "0.1")
NUMBER, NEXT_NUMBER = 4101, 4102
DEVICE = "iSpindel042"

IN_README = [
    line
    for heading in ("See it", "Send it on", "Next beer, problems, backup")
    for line in README.commands(heading)
]
IN_FORWARDING = [*page("forwarding.md").commands("To a Brewing Data Service")]


def words_of(lines: Iterable[str]) -> list[list[str]]:
    """The commands without the program's name. Those with sudo are for the service of a package."""
    found = [shlex.split(line) for line in lines]
    return [words[1:] for words in found if words[0] == PROGRAM]


async def report(server: Server, hours: str) -> None:
    """A simulated iSpindel sends a reading of its brew."""
    words = ("send", "ispindel-http", "--http", server.url, "--name", DEVICE, "--hours", hours)
    assert (await ended(await launch(*words, module="sample_devices"))).status == 0


async def run(data: Path, words: list[str]) -> Finished:
    finished = await process(data, tuple(words))
    assert finished.status == 0, (words, finished)
    return finished


@pytest.fixture
def cloud() -> ScriptedCloud:
    names = {"batchcode": "HP001", "recipe_title": "Harbour Porter", "phase": "Primary Fermentation"}
    return ScriptedCloud(listed=[{"id": f"{NUMBER}", "userdate": "2026-03-01", **names}])


@pytest.mark.parametrize("lines", [IN_README, IN_FORWARDING], ids=["README", "forwarding"])
async def test_the_commands_with_login_forward_the_reading(
    tmp_path: Path, cloud: ScriptedCloud, lines: list[str]
) -> None:
    data = tmp_path / "data"
    told = [words for words in words_of(lines) if words[0] != "serve" and words[:2] != ["sessions", "update"]]
    [following] = [words for words in told if words[1:2] == ["next"]]
    async with running(cloud), serving(data, *SERVED) as server:
        await report(server, "10")
        for words in told[: told.index(following)]:
            if words[:2] == ["targets", "login"]:
                words[words.index("--url") + 1] = f"{cloud.url}/v1/"
                status, shown = await at_terminal(data, *words, typed=[("not shown): ", KEY)])
                assert status == 0, shown
                assert KEY not in shown
            else:
                finished = await run(data, words)
                if words[:2] == ["targets", "sessions"]:
                    assert "`targets map club 1 4101` forwards HP001 there" in finished.err
                assert "goes nowhere" not in finished.err
        await until(lambda: len(cloud.kept(NUMBER)) == 1)
        await report(server, "20")
        await until(lambda: len(cloud.kept(NUMBER)) == 2)
        await run(data, following)
        await report(server, "30")
        await until(lambda: len(cloud.kept(NEXT_NUMBER)) == 1)
        assert len(cloud.kept(NUMBER)) == 2


async def test_the_commands_with_the_options_of_serve_forward_the_reading(
    tmp_path: Path, cloud: ScriptedCloud
) -> None:
    data, key = tmp_path / "data", tmp_path / "brew.key"
    key.write_text(KEY)
    told = words_of(IN_FORWARDING)
    [options] = [words[1:] for words in told if words[0] == "serve" and "--upstream-url" in words]
    async with running(cloud):
        place = {"https://brew.example": cloud.url, "~/brew.key": str(key)}
        options = [place.get(word, word) for word in options]
        async with serving(data, *SERVED, *options) as server:
            await report(server, "10")
            for words in told:
                if words[:2] in (["sessions", "add"], ["devices", "assign"], ["sessions", "update"]):
                    await run(data, words)
            await until(lambda: len(cloud.kept(NUMBER)) == 1)
            [listed] = (await run(data, ["sessions", "list", "--json"])).objects
            assert (listed["batchcode"], listed["upstream_id"]) == ("HP001", NUMBER)
