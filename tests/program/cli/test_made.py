"""What is made: a sentence on a terminal, the bare id in a pipe and with `--quiet`."""

from pathlib import Path

from tests.program.program import answer, ispindel, post
from tests.program.terminal import at_terminal
from tests.system.cli.conftest import gateway

SPINDLE = "iSpindel042"


async def test_a_person_gets_sentences_and_a_script_the_bare_id(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with gateway(data) as (server, http):
        assert await post(http, server, ispindel(42, name=SPINDLE)) == 200
        said = "Brew session 1 (HP001) is made; `devices assign DEVICE 1` lets one report into it.\n"
        assert await at_terminal(data, "sessions", "add", "--batchcode", "HP001", columns=100) == (0, said)
        quiet = await at_terminal(data, "sessions", "add", "--batchcode", "HP009", "--quiet", columns=100)
        assert quiet == (0, "2\n")
        assert (await answer(data, "sessions add --batchcode HP010")).out == "3\n"
        words = ("devices", "assign", SPINDLE, "HP001", "--since", "2020-01-01")
        assert await at_terminal(data, *words, columns=100) == (
            0,
            f"{SPINDLE} reports into brew session 1 (HP001) from now on; "
            "1 earlier reading was put into it.\n",
        )
        assert await at_terminal(data, *words, "--quiet", columns=100) == (0, "")
        further = ("devices", "next", SPINDLE, "--batchcode", "HP002")
        status, said = await at_terminal(data, *further, columns=100)
        assert (status, said.splitlines()) == (
            0,
            [
                "Brew session 4 (HP002) is made.",
                "Brew session 1 (HP001) is in the phase Conditioning now; its readings stay there.",
                f"{SPINDLE} reports into brew session 4 (HP002) from now on.",
            ],
        )
        assert await at_terminal(data, "devices", "release", SPINDLE, columns=100) == (
            0,
            f"{SPINDLE} reports into no brew session from now on; its readings stay in brew session 4.\n",
        )
        said = (await at_terminal(data, "sessions", "update", "4", "--notes", "x", columns=100))[1]
        assert said == "Brew session 4 (HP002) is changed.\n"
        assert await at_terminal(data, "alarms", "list", columns=100) == (0, "No alarm fires.\n")
        assert (await server.stop())[0] == 0
