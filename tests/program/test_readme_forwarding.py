"""The README's chapter on forwarding, word for word: in the end a reading has arrived upstream."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cloud import KEY, ScriptedCloud, running
from tests.program.program import LOCAL, Finished, Server, ended, launch, process, serving, until
from tests.program.terminal import at_terminal
from tests.program.test_readme import blocks

PROGRAM = "hydrometer-gateway"
SERVED = (*LOCAL, "--no-mqtt", "--forward-seconds", "0.1")
NUMBER, NEXT_NUMBER = 4101, 4102
DEVICE = "iSpindel042"


def commands() -> list[list[str]]:
    """The commands of the chapter `Use it`, in their order, without the program's name.

    `devices merge` needs two devices that are one; here there is one.
    """
    found = [shlex.split(line, comments=True) for line in blocks("Use it")]
    return [words[1:] for words in found if words[0] == PROGRAM and words[1:3] != ["devices", "merge"]]


def ending(found: Sequence[list[str]], *last: str) -> list[list[str]]:
    """Those commands up to the first one that begins so, it included."""
    place = next(place for place, words in enumerate(found) if tuple(words[: len(last)]) == last)
    return list(found[: place + 1])


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


async def test_the_chapter_with_login_forwards_the_reading(tmp_path: Path, cloud: ScriptedCloud) -> None:
    data = tmp_path / "data"
    told = [words for words in commands() if words[0] != "serve" and words[:2] != ["sessions", "update"]]
    async with running(cloud), serving(data, *SERVED) as server:
        await report(server, "10")
        for words in ending(told, "targets", "list"):
            if words[:2] == ["targets", "login"]:
                typed = (("brew.example", f"{cloud.url}/v1/"), ("not shown): ", KEY))
                status, shown = await at_terminal(data, *words, typed=typed)
                assert status == 0, shown
                assert KEY not in shown
            else:
                finished = await run(data, words)
                if words[:2] == ["targets", "sessions"]:
                    assert "`targets map club 1 4101` forwards HP001 there" in finished.err
                assert "goes nowhere" not in finished.err or words[:2] == ["targets", "login"]
        await until(lambda: len(cloud.kept(NUMBER)) == 1)
        await report(server, "20")
        await until(lambda: len(cloud.kept(NUMBER)) == 2)
        [following] = [words for words in told if words[:2] == ["sessions", "next"]]
        assert "reports into brew session 2 (HP002) from now on" in (await run(data, following)).err
        await report(server, "30")
        await until(lambda: len(cloud.kept(NEXT_NUMBER)) == 1)
        assert len(cloud.kept(NUMBER)) == 2


async def test_the_chapter_with_the_options_of_serve_forwards_the_reading(
    tmp_path: Path, cloud: ScriptedCloud
) -> None:
    data, key = tmp_path / "data", tmp_path / "brew.key"
    key.write_text(KEY)
    told = commands()
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
