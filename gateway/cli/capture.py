"""`capture`: a device's real payloads as golden cases, without what tells whose it is."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from gateway.capture import CapturedCase, Capturing, NotCaptured, newest_payloads
from gateway.cli.options import Config, DataDir
from gateway.cli.output import harmless
from gateway.cli.progress import progress_bar
from gateway.control import opened_read_only
from gateway.domain.device import Device, find_device
from gateway.domain.progress import Progress
from gateway.errors import GatewayError, InvalidInput
from gateway.store.records import RawReading

CAPTURED_MAX = 1_000
"""Payloads of one run: nobody looks through more of them before sharing."""


def capture(
    data_dir: DataDir,
    device: Annotated[
        str, typer.Option(help="Id, device id, name, label or key, as `devices list` has them.")
    ],
    out: Annotated[
        Path, typer.Option(help="Directory for the files; made if it is not there.", file_okay=False)
    ],
    config: Config = None,
    last: Annotated[
        int, typer.Option(help="How many payloads, counted from the newest.", min=1, max=CAPTURED_MAX)
    ] = 10,
) -> None:
    """Write a device's last payloads as test cases that you can share: what arrived, and what was understood.

    Names, ids, keys, e-mail and network addresses and what you wrote yourself are replaced; figures, units,
    colours and the very writing of each payload stay. It is a machine that replaces them: look at the files
    before you share them. No file is overwritten.
    """
    found, payloads = asyncio.run(_payloads(data_dir, device, last))
    with progress_bar() as progress:
        cases, reasons = _cases(found, payloads, progress)
    for reason, count in reasons.items():
        typer.echo(f"{count} of {len(payloads)} payloads left out: {harmless(reason)}", err=True)
    if not cases:
        raise GatewayError(f"nothing of {found.key} could be captured")
    for path in _write(out, cases):
        typer.echo(path)
    typer.echo("Look at them before you share them: is anything left that nobody should know?", err=True)


async def _payloads(data_dir: Path, device: str, last: int) -> tuple[Device, list[RawReading]]:
    async with opened_read_only(data_dir) as store:
        found = find_device(await store.devices.all(), device)
        summary = next(s for s in await store.devices.summaries() if s.device.id == found.id)
        if summary.last_seen_at is None:
            raise InvalidInput(f"{found.key} has sent nothing that is kept")
        return found, await newest_payloads(store, found, summary.last_seen_at, last)


def _cases(
    device: Device, payloads: Sequence[RawReading], progress: Progress
) -> tuple[list[CapturedCase], Counter[str]]:
    capturing, cases = Capturing(), []
    reasons: Counter[str] = Counter()
    for done, sent in enumerate(payloads, 1):
        try:
            cases.append(capturing.case(device, sent))
        except NotCaptured as error:
            reasons[str(error)] += 1
        progress(done, len(payloads), "payloads captured")
    return cases, reasons


def _write(out: Path, cases: Sequence[CapturedCase]) -> list[Path]:
    """All of them, or none where one of the names is taken."""
    paths = [out / case.name for case in cases]
    taken = [path for path in paths if path.exists()]
    if taken:
        raise InvalidInput(f"{taken[0]} is there already; choose another --out, or remove it first")
    for path, case in zip(paths, cases, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(case.text())
    return paths
