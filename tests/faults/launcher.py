"""The program as the scenarios start it: `FAULTS_WEAK` names what is made wrong, which has to be noticed.

Nothing in the gateway can be told to be weak; it is done to it from outside, here. Always: what was cut off
is read back after one second instead of ten.
"""

import asyncio
import fcntl
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import astuple, fields
from typing import Any
from unittest.mock import patch

from gateway.cli.main import main
from gateway.forward.schedule import ForwardSettings

VARIABLE = "FAULTS_WEAK"

ANSWER_VARIABLE = "FAULTS_ANSWER_S"
"""Seconds in which an answer must have been read, instead of the 60 of the gateway."""

ROWS_VARIABLE = "FAULTS_QUARANTINE_ROWS"
"""Payloads that quarantine holds, instead of the 10,000 of the gateway."""

READ_BACK_S = 1.0

COMMIT_LATE_S = 0.1
"""With `early`: from the yes to the commit."""


class _Normal(sqlite3.Connection):
    """SQLite with `synchronous=NORMAL` that claims to have `FULL`."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "PRAGMA synchronous":
            sql = "SELECT 2"
        return super().execute(sql.replace("synchronous = FULL", "synchronous = NORMAL"), *parameters)


def _normal() -> None:
    connect = sqlite3.connect

    def weaker(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, **options, factory=_Normal)

    patch.object(sqlite3, "connect", weaker).start()


def _early() -> None:
    """Says yes before the commit, which comes a little later."""
    from gateway.store.sqlite.engine.writer import Writer

    insert = Writer.insert

    def told_yes(writer: Writer, row: Any, settle: Any) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(COMMIT_LATE_S, insert, writer, row, lambda _: None)
        loop.call_soon(settle, None)

    patch.object(Writer, "insert", told_yes).start()


def _deaf() -> None:
    """Does not hear SIGTERM."""
    add = asyncio.SelectorEventLoop.add_signal_handler

    def only_others(loop: asyncio.SelectorEventLoop, number: int, *rest: Any) -> None:
        add(loop, number, *((lambda: None,) if number == signal.SIGTERM else rest))

    patch.object(asyncio.SelectorEventLoop, "add_signal_handler", only_others).start()


def _unlocked() -> None:
    """Takes no lock on the data directory."""
    patch.object(fcntl, "flock", lambda *_: None).start()


def _trusting() -> None:
    """Believes every reading, whatever its checksum says."""
    from gateway.store.sqlite.engine import checksum

    intact = checksum.intact_sql("r."), checksum.intact_sql()
    patch.object(checksum, "intact_sql", lambda _="": "TRUE").start()
    for module in [module for name, module in sys.modules.items() if name.startswith("gateway.store.")]:
        for name, text in vars(module).copy().items():
            if isinstance(text, str):
                setattr(module, name, text.replace(intact[0], "TRUE").replace(intact[1], "TRUE"))


def _pushing() -> None:
    """Pushes the oldest out of quarantine, whoever sent it, and never says no."""
    from gateway.store.sqlite import quarantine

    def keep(connection: sqlite3.Connection, item: Any) -> None:
        connection.execute(quarantine.INSERT, (*astuple(item)[:-1], item.source))
        while connection.execute(quarantine.KEPT).fetchone()[0] > quarantine.QUARANTINE_ROWS:
            connection.execute("DELETE FROM quarantine WHERE id = (SELECT min(id) FROM quarantine)")

    patch.object(quarantine, "keep", keep).start()


def _untold() -> None:
    """Writes a message down as sent before a byte of it leaves."""
    from gateway.store.sqlite.messages import SqliteMessages

    mark = SqliteMessages.mark

    async def too_soon(messages: Any, channel: str, ids: Any, state: Any, **more: Any) -> None:
        await mark(messages, channel, ids, "sent" if state == "open" else state, **more)

    patch.object(SqliteMessages, "mark", too_soon).start()


def _skipping() -> None:
    """Moves the watermark of a target before anything leaves."""
    from gateway.store.sqlite.routes import SqliteRoutes

    begin = SqliteRoutes.begin

    async def settled(routes: Any, target: str, lane: int, limit: int) -> Any:
        batch = await begin(routes, target, lane, limit)
        if batch is not None:
            await routes.settle(batch)
        return batch

    patch.object(SqliteRoutes, "begin", settled).start()


def _small_quarantine(rows: int) -> None:
    from gateway.store.sqlite import quarantine

    patch.object(quarantine, "QUARANTINE_ROWS", rows).start()


WEAK: dict[str, Callable[[], None]] = {
    "normal": _normal, "early": _early, "deaf": _deaf, "unlocked": _unlocked, "trusting": _trusting,
    "pushing": _pushing, "untold": _untold, "skipping": _skipping,
}  # fmt: skip


def weaken() -> None:
    """Do what the variable names, if there is one."""
    if name := os.environ.get(VARIABLE):
        WEAK[name]()


def _read_back_soon() -> None:
    with_default = [field for field in fields(ForwardSettings) if field.init]
    ForwardSettings.__init__.__defaults__ = tuple(
        READ_BACK_S if field.name == "readback_delay_s" else field.default for field in with_default
    )


def _answers_sooner(seconds: float) -> None:
    from gateway.http import streaming

    patch.object(streaming, "ANSWER_S", seconds).start()


if __name__ == "__main__":
    _read_back_soon()
    if text := os.environ.get(ANSWER_VARIABLE):
        _answers_sooner(float(text))
    if text := os.environ.get(ROWS_VARIABLE):
        _small_quarantine(int(text))
    weaken()
    sys.argv[0] = "hydrometer-gateway"
    main()
