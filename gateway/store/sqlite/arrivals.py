"""A reading of a device as it arrives: with its device and the note of its arrival time, in one transaction.

All three are one row to the writer, not a work: a row is taken back if its commit failed and the disk has it
all the same. A work is not, and the device would send the reading a second time.
"""

import sqlite3
from typing import Any

from gateway.domain.device import Device
from gateway.errors import NotFound
from gateway.store.records import Arrival, BootTime
from gateway.store.sqlite import devices, retiming
from gateway.store.sqlite.engine.schema import transaction
from gateway.store.sqlite.engine.writer import Row, Writer
from gateway.store.sqlite.rows import TAKE_BACK, insert_rows, row_of


class FullRow(tuple[Any, ...]):
    """The row of a reading, and the device and the arrival time to store with it; `saved` is the result."""

    device: Device | None
    arrival_time: BootTime | None
    saved: Device | None = None


class ArrivalRows:
    """The `Rows` protocol for readings of devices: `GROUP_ROWS` of them go in by one statement."""

    def insert(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        full = [row for row in rows if isinstance(row, FullRow)]
        if not full:
            insert_rows(connection, rows)
        elif connection.in_transaction:  # the writer's, with a savepoint of its own for these rows
            self._insert_all(connection, full, rows)
        else:
            with transaction(connection):
                self._insert_all(connection, full, rows)

    def _insert_all(self, connection: sqlite3.Connection, full: list[FullRow], rows: list[Row]) -> None:
        # Devices come first: a reading takes the brew session from the row of its device.
        for row in full:
            if row.device is not None:
                row.saved = devices.save(connection, row.device)
            if row.arrival_time is not None:
                retiming.note(connection, row[0], row.arrival_time)
        insert_rows(connection, rows)

    def take_back(self, connection: sqlite3.Connection, rows: list[Row]) -> None:
        # A device stays: to save it again changes nothing.
        connection.executemany(TAKE_BACK, [(row[0],) for row in rows])
        connection.executemany(retiming.FORGET, [(row[0],) for row in rows])


async def take(
    writer: Writer, arrival: Arrival, device: Device | None, arrival_time: BootTime | None
) -> Device | None:
    """Store one reading with all that belongs to it; see `Store.take`."""
    row: Row = row_of(arrival)
    if device is not None or arrival_time is not None:
        row = FullRow(row)
        row.device, row.arrival_time = device, arrival_time
    try:
        await writer.store(row)
    except sqlite3.IntegrityError as error:
        raise NotFound("a reading of a device that is not registered") from error
    return row.saved if isinstance(row, FullRow) else None
