"""`demo`: the whole product on one machine, with simulated hydrometers."""

import asyncio
import contextlib
import logging
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.exit_codes import ExitCode
from gateway.cli.options import Config
from gateway.errors import ConfigError, GatewayError

if TYPE_CHECKING:
    from gateway.cli.demo_brewery import DemoBrewery
    from gateway.cli.demo_view import View

BROWSER_AFTER_S = 3.0
"""Seconds from the first reading until the page is opened: then it has something to show."""


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
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the page in a browser.")
    ] = False,
) -> None:
    """Watch it work, with simulated hydrometers.

    A gateway and a second one as its upstream run at fast-forward.

    A week of fermentation passes in 84 seconds. Twelve devices have a row and a curve of their own; one of
    every other kind reports as well. Now and then the network to the upstream goes away.

    Nothing is kept unless --data-dir is given. The exit code is 0 if every stored reading reached the
    upstream exactly once and comes back through the API of both, and 3 if not.
    """
    # At once: the gateways need a moment.
    typer.echo("Starting two gateways and simulated hydrometers of every kind ...")
    raise typer.Exit(asyncio.run(_run(data_dir, for_seconds, opens_page=not no_browser)))


class _Stop:
    """The end of the demo, by a signal or by a key.

    A signal while nothing is to be seen yet ends the demo without a verdict, and so does a second one.
    """

    def __init__(self) -> None:
        # asyncio warns of a child that ends while the loop closes, because two reap it. That is no news.
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        self.asked = asyncio.Event()
        self._task = asyncio.current_task()
        self.signal: signal.Signals | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._take, number)

    def _take(self, number: signal.Signals) -> None:
        self.signal = number
        if self._task is not None and self.asked.is_set():
            self._task.cancel()
        self.asked.set()


async def _run(data_dir: Path | None, for_seconds: float | None, *, opens_page: bool) -> int:
    stop = _Stop()
    # Not at the top: rich and the HTTP client are paid for by the demo alone.
    from gateway.cli.demo_brewery import DemoBrewery
    from gateway.cli.demo_browser import open_page
    from gateway.cli.demo_view import View

    with contextlib.ExitStack() as stack:
        directory = data_dir or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="hydrometer-demo-"))
        )
        if directory.is_dir() and any(directory.iterdir()):
            raise ConfigError(f"{directory} is not empty: the demo needs an empty directory")
        try:
            async with DemoBrewery(directory) as brewery:

                def on_key(key: str) -> None:
                    if key == "q":
                        stop.asked.set()
                    elif not open_page(brewery.login):
                        brewery.note(f"no browser can be opened here; the page is {brewery.page}")

                with View(on_key) as view:
                    verdict = await _show(brewery, view, stop, for_seconds, opens_page=opens_page)
        except asyncio.CancelledError:
            if stop.signal is None:
                raise
            return 128 + stop.signal
        except (GatewayError, ExceptionGroup) as error:
            ours = error.subgroup(GatewayError) if isinstance(error, ExceptionGroup) else None
            raise error if ours is None else ours.exceptions[0] from error
    return ExitCode.DONE if verdict else ExitCode.PROBLEM_FOUND


async def _show(
    brewery: "DemoBrewery", view: "View", stop: _Stop, for_seconds: float | None, *, opens_page: bool
) -> bool:
    """Run the demo in its view to the end; return whether all readings arrived once."""
    from gateway.cli.demo_browser import open_page

    view.draw(brewery.moment())
    await brewery.start_brewing(view.draw)
    if stop.signal is not None:
        raise asyncio.CancelledError
    view.introduce(brewery.page, brewery.login, brewery.curl, for_seconds)
    loop = asyncio.get_running_loop()
    if opens_page and view.has_screen:
        loop.call_later(BROWSER_AFTER_S, open_page, brewery.login)
    await brewery.watch(stop.asked, view.show, for_seconds)
    view.close_down()
    await brewery.send_devices_to_sleep()
    verdict = await brewery.judge()
    view.summarise(brewery.moment(), brewery.rows.values(), verdict)
    return verdict.good
