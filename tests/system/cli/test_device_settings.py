"""`devices show`, `set`, `calibrate`, `exclude`, `include`, `resend`, beside a gateway and without one."""

from datetime import datetime
from pathlib import Path

import aiohttp
import pytest

from tests.program.program import HTTP_ONLY, answer, ispindel, post, refusal, serving

from .filling import fill_with


@pytest.fixture
async def spindle(tmp_path: Path) -> Path:
    """A data directory with two readings of one iSpindel; nothing runs."""
    data = tmp_path / "data"
    sent = (("12.5", "45.25"), ("1.1", "26.5"))
    await fill_with(data, [ispindel(name="Red", gravity=gravity, angle=angle) for gravity, angle in sent])
    return data


async def shown(data: Path, device: str = "Red") -> str:
    return (await answer(data, "devices show", device)).out


async def test_show_says_who_it_is_and_why_it_is_understood_so(spindle: Path) -> None:
    lines = (await shown(spindle)).splitlines()
    text = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in lines}
    assert text["kind"] == "iSpindel"
    assert text["readings"] == "2"
    assert text["gravity unit"] == "P: no unit sent, but this device has always sent Plato"
    assert text["last gravity"] == "1.1 P"
    assert text["from"].startswith("all 2 readings came from ")
    [found] = (await answer(spindle, "devices show Red --json")).objects
    assert found["inferred"].keys() == {"gravity_unit", "temp_unit"}
    assert "usual" not in "".join(lines)


async def test_settings_are_made_shown_and_taken_back(spindle: Path) -> None:
    made = await answer(spindle, "devices set Red --gravity-unit G --interval 1800", "--label", "Fermenter 2")
    assert "2 of 2 earlier readings" in made.err
    said = await shown(spindle, "Fermenter 2")
    assert "gravity unit G" in said
    assert "interval 1800 s" in said
    assert "1.1 G" in said
    await answer(spindle, "devices set Red --gravity-unit auto --interval 0", "--label", "")
    again = await shown(spindle)
    assert "you set" not in again
    assert "label" not in again


async def test_a_curve_through_points_is_shown_with_its_residuals(spindle: Path) -> None:
    points = ["--point", "25=1.000", "--point", "45=1.040", "--point", "65=1.090"]
    trial = await answer(spindle, "devices calibrate Red --degree 1 --dry-run", *points)
    assert "RESIDUAL" in trial.out
    assert "nothing was changed" in trial.err
    assert "calibration" not in await shown(spindle)
    await answer(spindle, "devices calibrate Red", *points[:4])
    more = await answer(spindle, "devices calibrate Red", *points[4:])
    assert [line.split()[0] for line in more.lines[1:4]] == ["25", "45", "65"]
    said = await shown(spindle)
    assert "25=1.0000, 45=1.0400, 65=1.0900" in said
    readings = (await answer(spindle, "readings --json")).objects
    assert [r["gravity"] for r in readings] == ["12.5", "1.1"]
    assert all(r["calibrated_gravity"] for r in readings)
    await answer(spindle, "devices calibrate Red --clear")
    readings = (await answer(spindle, "readings --json")).objects
    assert [r.get("calibrated_gravity") for r in readings] == [None, None]


async def test_points_to_come_are_fitted_by_the_degree_that_was_said(spindle: Path) -> None:
    points = ["--point", "25=1.000", "--point", "45=1.040", "--point", "65=1.090"]
    await answer(spindle, "devices calibrate Red --degree 1", *points)
    more = await answer(spindle, "devices calibrate Red --point 55=1.070")
    assert "^" not in next(line for line in more.lines if line.startswith("curve"))
    more = await answer(spindle, "devices calibrate Red --clear --point 55=1.070", *points)
    assert "tilt^3" in next(line for line in more.lines if line.startswith("curve"))


async def test_a_polynomial_is_taken_by_what_it_gives_where_spindles_float(spindle: Path) -> None:
    steep = (
        "0.4432573175595937 + 0.04566777876689018 *tilt-0.00116339178967176 *tilt*tilt "
        "+ 0.00001068453438881412 *tilt*tilt*tilt"
    )
    made = await answer(spindle, "devices calibrate Red --dry-run --polynomial", steep)
    assert "taken as specific gravity" in made.err


async def test_polynomial_offsets_and_temperature_correction(spindle: Path) -> None:
    made = await answer(
        spindle,
        "devices calibrate Red --gravity-offset=-0.002 --temp-offset 0.5 --corrected-at 68F --polynomial",
        "0.00438*tilt^2 + 0.1364*tilt - 6.9688",
    )
    assert "taken as Plato" in made.err
    said = await shown(spindle)
    for part in ("Plato = ", "gravity -0.002 SG", "temp +0.5 degrees", "reads true at 20 degrees"):
        assert part in said
    await answer(spindle, "devices calibrate Red --corrected-at off --gravity-offset 0")
    said = await shown(spindle)
    assert "reads true" not in said
    assert "SG" not in said
    assert "Plato = " in said


async def test_excluding_and_including(spindle: Path) -> None:
    await answer(spindle, "devices exclude Red --from 2020-01-01")
    assert "now and later" in await shown(spindle)
    readings = (await answer(spindle, "readings --json")).objects
    assert all("excluded" in r["flags"] for r in readings)
    await answer(spindle, "devices include Red")
    assert "excluded" not in await shown(spindle)
    assert "nothing is excluded there" in await refusal(spindle, "devices include Red")


async def test_a_day_without_a_time_is_excluded_to_its_end(spindle: Path) -> None:
    arrived = (await answer(spindle, "readings --json")).objects[-1]["created_at"]
    day = datetime.fromisoformat(arrived).astimezone().date()
    await answer(spindle, f"devices exclude Red --from {day} --to {day}")
    readings = (await answer(spindle, "readings --json")).objects
    assert "excluded" in readings[-1]["flags"]
    assert "23:59:59" in await shown(spindle)
    await answer(spindle, f"devices include Red --to {day}")
    await answer(spindle, f"devices exclude Red --from {day} --to {day}T00:00:01")
    assert "00:00:01" in await shown(spindle)


async def test_resend_says_how_many(spindle: Path) -> None:
    await answer(spindle, "sessions add --batchcode A")
    await answer(spindle, "devices assign Red 1 --since 2020-01-01")
    assert "2 readings will be forwarded again" in (await answer(spindle, "devices resend Red")).err
    assert "0 readings" in (await answer(spindle, "devices resend Red --since 2999-01-01")).err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("devices set Red", "nothing to set"),
        ("devices set Red --gravity-unit X", "must be G, P or auto"),
        ("devices set Red --temp-unit K", "must be C, F or auto"),
        ("devices set Red --interval 5", "more than 10"),
        ("devices set Blue --label x", "no device 'Blue'"),
        ("devices show Blue", "no device 'Blue'"),
        ("devices calibrate Red", "nothing to calibrate"),
        ("devices calibrate Red --point 25", "write ANGLE=SG"),
        ("devices calibrate Red --point 25=1.050", "at least"),
        ("devices calibrate Red --polynomial __import__('os')", "tilt"),
        ("devices calibrate Red --point 25=1.0 --polynomial tilt", "one of them"),
        ("devices calibrate Red --corrected-at warm", "20C or 68F"),
        ("devices calibrate Red --gravity-offset 5", "offset"),
        ("devices exclude Red --from 2026-02-01 --to 2026-01-01", "ends before"),
    ],
)
async def test_what_cannot_be_is_refused(spindle: Path, words: str, why: str) -> None:
    assert why in await refusal(spindle, words)


async def test_beside_a_running_gateway_the_next_reading_is_calibrated_at_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, *HTTP_ONLY) as server, aiohttp.ClientSession() as http:
        assert await post(http, server, ispindel(name="Red", gravity="1.050", angle="50.0")) == 200
        await answer(data, "devices calibrate Red --gravity-offset 0.01")
        assert await post(http, server, ispindel(name="Red", gravity="1.040", angle="49.0")) == 200
        readings = (await answer(data, "readings --json")).objects
        assert [r["calibrated_gravity"] for r in readings] == ["1.0600", "1.0500"]
