"""`capture`: a device's real payloads as test cases, with every name and key of the owner replaced."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import get
from gateway.cli.lookup import device_number
from gateway.cli.options import Config, DataDir, device_words
from gateway.cli.output import harmless
from gateway.cli.progress import progress_bar
from gateway.errors import GatewayError, InvalidInput

CAPTURED_MAX = 1_000
"""Payloads of one run at most: nobody looks through more of them before sharing."""


def capture(
    data_dir: DataDir,
    device: Annotated[
        str,
        typer.Option(
            help="Id, device id, name, label or key, as `devices list` has them.", autocompletion=device_words
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Directory for the files; made if it is not there.", file_okay=False)
    ],
    config: Config = None,
    last: Annotated[
        int, typer.Option(help="How many payloads, counted from the newest.", min=1, max=CAPTURED_MAX)
    ] = 10,
) -> None:
    """Write a device's last payloads as test cases to share.

    A case has the bytes, and the readings made of them.

    Names, ids, keys, e-mail and network addresses and your own texts are replaced. Figures, units, colours
    and the layout of each payload stay. A program does the replacing, and can miss something: look at the
    files before you share them. No file is overwritten.
    """
    number = device_number(data_dir, device, writing=False)
    with progress_bar() as progress:
        found = get(data_dir, f"/manage/devices/{number}/capture", query={"last": last}, progress=progress)
    for reason, count in found["left_out"].items():
        typer.echo(f"{count} of {found['payloads']} payloads left out: {harmless(reason)}", err=True)
    if not found["cases"]:
        raise GatewayError(f"nothing of {found['device']} could be captured")
    for path in _write(out, found["cases"]):
        typer.echo(path)
    typer.echo("Look at them before you share them: is anything left that nobody should know?", err=True)


def _write(out: Path, cases: Sequence[dict[str, Any]]) -> list[Path]:
    """Write a file for each case; write none if one of the file names is taken."""
    paths = [out / case["name"] for case in cases]
    taken = [path for path in paths if path.exists()]
    if taken:
        raise InvalidInput(f"{taken[0]} is there already; choose another --out, or remove it first")
    for path, case in zip(paths, cases, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(json.dumps(case["content"], indent=1, ensure_ascii=False) + "\n")
    return paths
