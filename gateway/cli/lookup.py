"""Devices and brew sessions, found by the names that people use."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.cli.client import check_text, get
from gateway.cli.options import NUMBER_MAX
from gateway.domain.device import Alias, Device, DeviceSettings, find_device
from gateway.domain.texts import NAME_CHARACTERS, NOT_TEXT, did_you_mean
from gateway.errors import InvalidInput, NotFound


def no_session(session_id: int | str) -> str:
    """Return the message for an id that no brew session has."""
    return f"no brew session {session_id}; `sessions list` shows them"


def no_recipe(recipe_id: int) -> str:
    """Return the message for an id that no recipe has."""
    return f"no recipe {recipe_id}; `recipes list` shows them"


def check_name(name: str, owner: str) -> None:
    """Refuse a name that is empty, too long or no text; `owner` names the thing that is to have the name."""
    if not name.strip() or len(name) > NAME_CHARACTERS or NOT_TEXT.search(name):
        raise InvalidInput(f"{owner}'s name has 1 to {NAME_CHARACTERS} characters")


def devices(data_dir: Path, *, writing: bool = False) -> list[dict[str, Any]]:
    """Return every device, as `/manage/devices` shows it."""
    found: list[dict[str, Any]] = get(data_dir, "/manage/devices", writing=writing)["devices"]
    return found


def device_number(data_dir: Path, word: str, *, writing: bool = True) -> int:
    """Find the id of the device that has this word as id, device id, name, label or key."""
    return int(found_device(data_dir, word, writing=writing)["id"])


def found_device(data_dir: Path, word: str, *, writing: bool = True) -> dict[str, Any]:
    """Find the device that has this word as id, device id, name, label or key, as `/manage/devices` does."""
    check_text({"device": word})
    found = {record["id"]: record for record in devices(data_dir, writing=writing)}
    return found[find_device([as_device(record) for record in found.values()], word).id]


def as_device(record: dict[str, Any]) -> Device:
    """Make a device of the members by which a device can be found."""
    return Device(
        id=record["id"],
        key=record["key"],
        family=record["family"],
        stable_id=record["device_id"],
        name=record["name"],
        first_seen_at=0,
        settings=DeviceSettings(label=record["label"] or ""),
        aliases=tuple(Alias(key, "", "") for key in record["merged_in"]),
    )


def session_number(data_dir: Path, word: str) -> int:
    """Return the id if the word is a number, else the id of the brew session with this batch code.

    Of several sessions with this batch code, take the only one whose beer is not done. Raise `NotFound` if no
    session, or more than one, is left.
    """
    if word.isascii() and word.isdigit():
        number = int(word)
        if number > NUMBER_MAX:
            raise NotFound(no_session(word))
        return number
    found = get(data_dir, "/manage/brewsessions", query={"everyone": True})["brewsessions"]
    return int(_by_batchcode(found, word)["id"])


def _by_batchcode(sessions: Sequence[dict[str, Any]], word: str) -> dict[str, Any]:
    found = [session for session in sessions if session["batchcode"].casefold() == word.casefold()]
    under_way = [session for session in found if not session["over"]]
    for group in (found, under_way):
        if len(group) == 1:
            return group[0]
    if not found:
        meant = did_you_mean(word, [session["batchcode"] for session in sessions])
        raise NotFound(f"no brew session {word!r}{meant}; `sessions list` shows them")
    several = ", ".join(session_name(session) for session in found)
    raise NotFound(f"{word!r} is ambiguous, it could be {several}: use one of these numbers")


def session_name(session: dict[str, Any]) -> str:
    """Name a brew session by id and batch code: `1 (HP001)`."""
    return f"{session['id']} ({' '.join(session['batchcode'].split())})"
