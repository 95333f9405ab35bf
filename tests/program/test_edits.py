"""Readings that the command line edits beside a running gateway, and takes back."""

from pathlib import Path

from tests.program.program import answer, ispindel, post, refusal
from tests.system.cli.conftest import gateway


async def test_the_command_line_edits_and_takes_back(tmp_path: Path) -> None:
    async with gateway(tmp_path) as (server, http):
        assert await post(http, server, ispindel(5)) == 200
        await answer(tmp_path, "sessions add --batchcode A")
        await answer(tmp_path, "devices assign 5 1 --since 2020-01-01")
        [reading] = (await answer(tmp_path, "readings --json")).objects
        oid = reading["_id"]["$oid"]
        file = tmp_path / "edit.csv"
        file.write_text(f"_id,gravity\n{oid},12.9\n")
        assert (await answer(tmp_path, "readings import 1", str(file))).out == "1\n"
        [edited] = (await answer(tmp_path, "readings --json")).objects
        assert (edited["gravity"], edited["name"], edited["comment"]) == ("12.9", "spindle5", "")
        assert edited["original"]["gravity"] == "12.5"
        assert "edited" in (await answer(tmp_path, "readings")).out
        assert "24 digits" in await refusal(tmp_path, "readings take-back 1 xyz")
        assert (await answer(tmp_path, f"readings take-back 1 {oid}")).out == "1\n"
        assert (await answer(tmp_path, "readings take-back 1")).out == "0\n"
        assert (await answer(tmp_path, "readings --json")).objects == [reading]
        await server.stop()
