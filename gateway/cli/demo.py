"""`demo`: the whole product on one machine, with simulated hydrometers."""

import asyncio
import contextlib
import signal
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.options import Config
from gateway.errors import ConfigError, GatewayError


def demo(
    config: Config = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Keep the data here instead of in a temporary directory.", file_okay=False),
    ] = None,
    for_seconds: Annotated[
        float | None,
        typer.Option(
            "--for",
            envvar="GATEWAY_DEMO_FOR",
            help="Stop after so many seconds and check every reading. [default: Ctrl-C]",
            min=1,
        ),
    ] = None,
) -> None:
    """Watch it work: a gateway, a second one as its upstream, and simulated hydrometers at fast-forward.

    Nothing is kept unless --data-dir is given. With --for, the exit code is 0 only if every stored reading
    reached the upstream exactly once and comes back through the API of both.
    """
    raise typer.Exit(asyncio.run(_run(data_dir, for_seconds)))


async def _run(data_dir: Path | None, for_seconds: float | None) -> int:
    # Not at the top: rich and the HTTP client are paid for by the demo alone.
    from gateway.cli.demo_brewery import DemoBrewery
    from gateway.cli.demo_view import View

    with contextlib.ExitStack() as stack:
        directory = data_dir or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="hydrometer-demo-"))
        )
        if directory.is_dir() and any(directory.iterdir()):
            raise ConfigError(f"{directory} is not empty: the demo needs an empty directory")
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        try:
            async with DemoBrewery(directory) as brewery:
                with View() as view:
                    await brewery.first_brew_session()
                    view.introduce(brewery, for_seconds)
                    await brewery.watch(stopped, view.show, for_seconds)
                    await brewery.send_devices_to_sleep()
                    verdict = await brewery.judge()
                    view.summarise(brewery.rows.values(), verdict)
        except GatewayError:
            if stopped.is_set():
                return 0  # Ctrl-C met a child that was only just being born
            raise
    return 0 if verdict.good else 1
