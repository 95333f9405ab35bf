"""Brew sessions as people name them: by id or by batch code."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from gateway.cli.options import NUMBER_MAX
from gateway.control import opened_read_only
from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device, find_device
from gateway.domain.texts import did_you_mean
from gateway.errors import NotFound
from gateway.services.unforwarded import which


def session_number(data_dir: Path, said: str) -> int:
    """The id that was said, or that of the brew session with this batch code; `NotFound` where there is none.

    Of several with one batch code it is the one whose beer is not done.
    """
    if said.isascii() and said.isdigit():
        number = int(said)
        if number > NUMBER_MAX:
            raise NotFound(no_session(said))
        return number

    async def known() -> list[BrewSession]:
        async with opened_read_only(data_dir) as store:
            return await store.sessions.all()

    return _by_batchcode(asyncio.run(known()), said).id


def device_number(data_dir: Path, word: str) -> int:
    """Return the id of the device with this id, device id, name, label or key."""

    async def devices() -> list[Device]:
        async with opened_read_only(data_dir) as store:
            return await store.devices.all()

    return find_device(asyncio.run(devices()), word).id


def _by_batchcode(sessions: Sequence[BrewSession], said: str) -> BrewSession:
    found = [session for session in sessions if session.batchcode.casefold() == said.casefold()]
    under_way = [session for session in found if not session.is_over]
    for some in (found, under_way):
        if len(some) == 1:
            return some[0]
    if not found:
        meant = did_you_mean(said, [session.batchcode for session in sessions])
        raise NotFound(f"no brew session {said!r}{meant}; `sessions list` shows them")
    several = ", ".join(map(which, found))
    raise NotFound(f"{said!r} is ambiguous, it could be {several}: use one of these numbers")


def no_session(session_id: int | str) -> str:
    """The message for an id that no brew session has."""
    return f"no brew session {session_id}; `sessions list` shows them"
