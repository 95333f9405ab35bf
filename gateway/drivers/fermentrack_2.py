"""Fermentrack 2 as TiltBridge 2 knows it: registration, messages and calibration, beside the readings.

thorrak/tiltbridge src/targets/fermentrack_2.cpp, fermentrack_2.h (2.0, ESP-IDF). The user types host, port
and a user name into the bridge. Every 5 minutes it does, each on a connection of its own, JSON both ways:

    PUT /api/tiltbridge/device/register/   `{"guid","username" or "apiKey","hardware","version"}`, until it
        has an id; wants `success` true and the texts `deviceID` and `apiKey`, each up to 39 characters, which
        it keeps; else `success` false and `msg_code` 1 no GUID, 2 no user name, 3 user unknown, ...
    PUT /api/tiltbridge/device/status/     the readings, see `tiltbridge`; wants `success` and `has_messages`
    GET, PATCH /api/tiltbridge/device/messages/   only after `has_messages` true
    GET, PATCH /api/tiltbridge/device/tilt/cal/coefficients/, GET, PUT .../points/, POST, DELETE .../point/
        its calibration, sent when the user changes it; `success` false leaves the bridge's own alone

It takes 200 to 204 as success and reads at most 1,023 bytes. A bridge that gets no such answer for its
registration sends no reading at all.

We give a bridge the id that follows from its GUID, so there is nothing to store, and any id is taken with the
readings: they are the Tilts', and say themselves whose they are. Calibration stays in the bridge.
"""

import uuid
from collections.abc import Mapping
from typing import Any

from gateway.domain.payload import Payload
from gateway.drivers import wire
from gateway.drivers.base import Exchange
from gateway.errors import DriverError

DEVICE_PATH = "/api/tiltbridge/device"

NO_GUID = 1
"""The bridge's number for a registration without one."""

TAKEN = {"success": True, "msg_code": 0, "has_messages": False}
"""Members of the answer to readings: they are taken, and nothing waits to be fetched."""

_BRIDGES = uuid.UUID("8d7c52f4-6c0d-4a39-9d6e-52ab0cf8a5e1")
"""The namespace in which the ids of bridges are derived."""


def registered(payload: Payload) -> Mapping[str, Any]:
    """Give a bridge its id; the same bridge gets the same id again."""
    try:
        guid = wire.text(wire.fields(payload), "guid")
    except DriverError:
        guid = None
    if guid is None:
        return {"success": False, "msg_code": NO_GUID, "message": "no guid in it"}
    device_id = str(uuid.uuid5(_BRIDGES, guid))
    return {
        "success": True, "msg_code": 0, "message": "Device registered", "created": True,
        "deviceID": device_id, "apiKey": device_id,
    }  # fmt: skip


def no_messages(payload: Payload) -> Mapping[str, Any]:
    """Answer that nothing waits for the bridge."""
    return {"success": True, "msg_code": 0, "messages": {}}


def not_kept(payload: Payload) -> Mapping[str, Any]:
    """Answer that calibration is not kept here: the bridge goes on with its own."""
    return {"success": False, "msg_code": 0, "message": "calibration stays in the bridge"}


EXCHANGES = (
    Exchange(f"{DEVICE_PATH}/register", registered),
    Exchange(f"{DEVICE_PATH}/messages", no_messages),
    Exchange(f"{DEVICE_PATH}/tilt/cal/coefficients", not_kept),
    Exchange(f"{DEVICE_PATH}/tilt/cal/points", not_kept),
    Exchange(f"{DEVICE_PATH}/tilt/cal/point", not_kept),
)
