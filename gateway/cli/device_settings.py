"""`devices set`, `calibrate`, `exclude`, `include`, `resend`: change settings; forward readings again."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import ask
from gateway.cli.lookup import device_number
from gateway.cli.options import Config, DataDir, Device
from gateway.cli.output import Column, exact, parse_end, parse_time, table
from gateway.cli.progress import progress_bar
from gateway.domain import units
from gateway.domain.polynomial import evaluate, parse_polynomial, polynomial_text
from gateway.domain.units import PLAUSIBLE_SG
from gateway.errors import InvalidInput

FLOATING_DEG = range(25, 71, 5)
"""Angles in degrees at which a spindle floats: a polynomial's values there tell its unit."""

Since = Annotated[str | None, typer.Option(help="Only readings since then: 2026-03-01 or 2026-03-01T18:30.")]
Offset = Annotated[
    float | None, typer.Option(help="Added to specific gravity, for instance -0.002; 0 for none.")
]


def set_device(
    device: Device,
    data_dir: DataDir,
    config: Config = None,
    label: Annotated[
        str | None, typer.Option(help='What to call it here, "" for its own name. Readings keep theirs.')
    ] = None,
    gravity_unit: Annotated[
        str | None,
        typer.Option(help="G for specific gravity, P for Plato, whatever it says; auto to infer it."),
    ] = None,
    temp_unit: Annotated[str | None, typer.Option(help="C or F, whatever it says; auto to infer it.")] = None,
    interval: Annotated[
        int | None,
        typer.Option(
            help="Seconds between reports that it is told, if it asks (iSpindel by TCP); 0 for none."
        ),
    ] = None,
) -> None:
    """Set a device's label, units and interval.

    They hold for its past readings and its future ones. The bytes that the device sent are kept, so every
    setting can be taken back.
    """
    said = {
        "label": label,
        "gravity_unit": gravity_unit and gravity_unit.strip(),
        "temp_unit": temp_unit and temp_unit.strip(),
        "interval_s": interval,
    }
    if all(value is None for value in said.values()):
        raise InvalidInput("nothing to set; `devices set --help` shows what can be")
    _run(data_dir, device, "PATCH", body=said)


def calibrate(
    device: Device,
    data_dir: DataDir,
    config: Config = None,
    point: Annotated[
        list[str] | None,
        typer.Option(
            help="A measured point ANGLE=SG (or ANGLE=PLATOp, as 52.3=12.5p), beside those there are."
        ),
    ] = None,
    degree: Annotated[
        int | None,
        typer.Option(
            help="Degree of the curve through the points, also through those to come, until --clear or "
            "--polynomial. [default: the one given before, else up to 3]",
            min=1,
            max=4,
        ),
    ] = None,
    polynomial: Annotated[
        str | None, typer.Option(help="Gravity by angle, as 0.00438*tilt^2+0.1364*tilt-6.96; up to degree 4.")
    ] = None,
    polynomial_unit: Annotated[
        str | None, typer.Option(help="What the polynomial gives, G or P. [default: by what it gives]")
    ] = None,
    gravity_offset: Offset = None,
    temp_offset: Annotated[
        float | None, typer.Option(help="Added to the temperature in degrees Celsius; 0 for none.")
    ] = None,
    corrected_at: Annotated[
        str | None,
        typer.Option(
            help="Temperature at which it reads true, 20C or 68F: gravity is corrected; off for not."
        ),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Forget the calibration there is first.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the curve and its residuals, change nothing.")
    ] = False,
) -> None:
    """Calibrate a device: curve, offsets, temperature correction.

    The curve gives the gravity by the angle. The calibration holds for earlier readings, too. The API
    and further forwarded readings give the calibrated value in the unit that was sent. The values that the
    device sent are kept; --clear takes all of it back.
    """
    said: dict[str, Any] = {}
    if polynomial is not None and (point or degree):
        raise InvalidInput("give --point or --polynomial: a curve is made of one of them")
    if polynomial is not None:
        said |= _of_polynomial(polynomial, polynomial_unit)
    elif point or degree:
        said |= _of_points(data_dir, device, point or [], degree, clear)
    if gravity_offset is not None:
        said["gravity_offset"] = gravity_offset
    if temp_offset is not None:
        said["temp_offset"] = temp_offset
    if corrected_at is not None:
        said["corrected_at_c"] = _celsius(corrected_at)
    if not said and not clear:
        raise InvalidInput("nothing to calibrate; `devices calibrate --help` shows what can be")
    if dry_run:
        typer.echo("nothing was changed", err=True)
        return
    _run(data_dir, device, "PATCH", "/calibration", body={**said, "clear": clear})


def exclude(
    device: Device,
    data_dir: DataDir,
    first: Annotated[
        str,
        typer.Option(
            "--from", help="The first moment: 2026-03-01T18:30.", envvar="GATEWAY_DEVICES_EXCLUDE_FROM"
        ),
    ],
    config: Config = None,
    last: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="The same; a day without a time is meant to its end. [default: from then on]",
            envvar="GATEWAY_DEVICES_EXCLUDE_TO",
        ),
    ] = None,
) -> None:
    """Leave a span of a device's readings out of statistics.

    Use it if the device lay in the sink, for instance. The readings stay, with a flag.
    """
    span = {"from": exact(parse_time(first)), "to": _end(last)}
    _run(data_dir, device, "POST", "/exclusions", body=span)


def include(
    device: Device,
    data_dir: DataDir,
    config: Config = None,
    first: Annotated[
        str | None,
        typer.Option(
            "--from", help="The first moment. [default: the beginning]", envvar="GATEWAY_DEVICES_INCLUDE_FROM"
        ),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="A day without a time is meant to its end. [default: now]",
            envvar="GATEWAY_DEVICES_INCLUDE_TO",
        ),
    ] = None,
) -> None:
    """Count excluded readings in statistics again.

    Lifts every excluded span that touches the given one.
    """
    span = {"from": None if first is None else exact(parse_time(first)), "to": _end(last)}
    _run(data_dir, device, "DELETE", "/exclusions", query=span)


def resend(device: Device, data_dir: DataDir, config: Config = None, since: Since = None) -> None:
    """Forward a device's readings once more, as they are now.

    Use it after a calibration, for instance. An upstream that keeps the readings' _id replaces its copies;
    another may then have the readings twice.
    """
    body = {"since": None if since is None else exact(parse_time(since))}
    done = ask(data_dir, "POST", f"/manage/devices/{device_number(data_dir, device)}/resend", body=body)
    typer.echo(f"{done['readings']} readings will be forwarded again", err=True)


def _run(data_dir: Path, device: str, method: str, path: str = "", **options: Any) -> None:
    number = device_number(data_dir, device)
    with progress_bar() as progress:
        done = ask(data_dir, method, f"/manage/devices/{number}{path}", progress=progress, **options)
    if done["readings"]:
        typer.echo(f"{done['changed']} of {done['readings']} earlier readings changed.", err=True)
    if done["changed"]:
        typer.echo("Those that were sent on stay there as they were, until `devices resend`.", err=True)


def _of_polynomial(text: str, unit: str | None) -> dict[str, Any]:
    curve = parse_polynomial(text)
    if unit not in {None, "G", "P"}:
        raise InvalidInput(f"--polynomial-unit is G or P, not {unit!r}")
    if unit is None:
        low, high = PLAUSIBLE_SG
        # Half of the angles is enough: a curve is steep where its spindle never floats.
        like_sg = [low < evaluate(curve, angle) < high for angle in FLOATING_DEG]
        unit = "G" if 2 * sum(like_sg) >= len(like_sg) else "P"
        typer.echo(f"taken as {'specific gravity' if unit == 'G' else 'Plato'}", err=True)
    rows = [(a, f"{evaluate(curve, a):.4f} {unit}") for a in FLOATING_DEG]
    table((Column("ANGLE"), Column("GRAVITY")), rows, wide=None)
    return {"curve": list(curve), "curve_unit": unit}


def _of_points(
    data_dir: Path, device: str, added: list[str], degree: int | None, clear: bool
) -> dict[str, Any]:
    """Show the curve through the device's points and the new ones; return the request that makes it."""
    body = {"points": [list(_point(text)) for text in added], "degree": degree}
    path = f"/manage/devices/{device_number(data_dir, device, writing=False)}/calibration/fit"
    fit = ask(data_dir, "POST", path, body={**body, "clear": clear})
    rows = [
        (f"{angle:g}", f"{sg:.4f}", f"{evaluate(fit['curve'], angle):.4f}", f"{residual:+.4f}")
        for (angle, sg), residual in zip(fit["points"], fit["residuals"], strict=True)
    ]
    table([*map(Column, ("ANGLE", "MEASURED SG", "CURVE", "RESIDUAL"))], rows, wide=None)
    typer.echo(f"curve: {polynomial_text(fit['curve'])}")
    low, high = fit["valid_deg"]
    typer.echo(f"residuals: {fit['rms']:.5f} SG rms; valid from {low:g} to {high:g} degrees")
    for warning in fit["warnings"]:
        typer.echo(f"warning: {warning}", err=True)
    return body


def _point(text: str) -> tuple[float, float]:
    angle, _, gravity = text.partition("=")
    plato = gravity.strip().lower().endswith("p")
    try:
        value = float(gravity.strip().rstrip("pP"))
        return float(angle), units.plato_to_sg(value) if plato else value
    except (ValueError, ZeroDivisionError) as error:
        raise InvalidInput(f"{text!r} is no point; write ANGLE=SG, for instance 52.3=1.048") from error


def _celsius(text: str) -> float | str:
    """Return the degrees Celsius of `20C` or `68F`, or `off`."""
    plain = text.strip().upper().replace("°", "")
    if plain == "OFF":
        return "off"
    try:
        value = float(plain.rstrip("CF"))
    except ValueError as error:
        raise InvalidInput(f"{text!r} is no temperature; write 20C or 68F, or off") from error
    return units.fahrenheit_to_celsius(value) if plain.endswith("F") else value


def _end(text: str | None) -> str | None:
    return None if text is None else exact(parse_end(text))
