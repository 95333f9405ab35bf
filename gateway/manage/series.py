"""`/manage/brewsessions/{id}/series` and `/manage/devices/{id}/series`: readings over time, for charts."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from gateway.domain.account import OWNER_ID
from gateway.domain.device import Device
from gateway.errors import NotFound
from gateway.http.endpoint import AnswerModel, Call, Endpoint, Query
from gateway.http.parameters import Flag, Moment
from gateway.http.records import own_session
from gateway.manage.figures import said_origin
from gateway.services.series import FEWEST_POINTS, MOST_POINTS, POINTS, LeftOut, Line

SG_DECIMALS, TEMP_DECIMALS = 5, 2

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Number = float | None


def _last_second(value: Any) -> Any:
    """Complete a day: a span that ends with a day has all of it."""
    return f"{value}T23:59:59Z" if isinstance(value, str) and _DAY.fullmatch(value) else value


def _points(value: Any) -> Any:
    if isinstance(value, str):
        if not re.fullmatch("[0-9]{1,5}", value) or not FEWEST_POINTS <= int(value) <= MOST_POINTS:
            raise ValueError(f"must be a whole number from {FEWEST_POINTS} to {MOST_POINTS}")
        return int(value)
    return value


Points = Annotated[
    int,
    BeforeValidator(_points),
    WithJsonSchema({"type": "integer", "minimum": FEWEST_POINTS, "maximum": MOST_POINTS}),
]


class SeriesSpan(Query):
    """Choice of a span. A time without a zone is UTC, and so is a day."""

    from_: Moment | None = Field(
        default=None, alias="from", description="A time or a day; without it, the first reading."
    )
    to: Annotated[Moment, BeforeValidator(_last_second)] | None = Field(
        default=None, description="A time or a day, inclusive; without it, the last reading."
    )
    points: Points = Field(default=POINTS, description="About how many points a line may have.")
    left_out: Flag = Field(default=False, description="List the readings that are left out, too.")


class SeriesLine(AnswerModel):
    """The readings of a device in columns of equal length; null where a bucket has no such value."""

    device_id: int | None = Field(description="Null for readings of no device.")
    name: str
    t: list[int] = Field(description="Unix seconds: the middle of a bucket, or the time of its only reading.")
    n: list[int] = Field(description="Readings in the bucket.")
    sg_min: list[Number]
    sg_max: list[Number]
    sg: list[Number] = Field(description="The average of the gravities that count.")
    temp_min: list[Number]
    temp_max: list[Number]
    temp: list[Number] = Field(description="The average in °C.")
    left_out: list[int] = Field(description="Readings in the bucket whose gravity does not count.")


class HandPointRecord(AnswerModel):
    """A reading that a person took."""

    event_id: int
    at: int
    sg: Number
    temp: Number


class MarkRecord(AnswerModel):
    """Something that happened in the brew."""

    event_id: int
    at: int
    kind: str
    text: str


class LeftOutRecord(AnswerModel):
    """A reading that is left out of the lines, and why."""

    device_id: int | None
    at: int
    sg: Number
    temp: Number
    flags: list[str]


class AlarmMarkRecord(AnswerModel):
    """An alarm that fired in the brew."""

    at: int
    rule: str
    text: str


class GravityFrom(AnswerModel):
    """A specific gravity, and where it is from."""

    sg: float
    from_: str = Field(alias="from")


class SeriesHead(AnswerModel):
    """What every series begins with; times are Unix seconds."""

    message: Literal["success"] = "success"
    from_: int = Field(alias="from")
    to: int
    width_s: int = Field(description="The width of a bucket; 0 if each reading is a point of its own.")
    interval_s: int = Field(description="The usual seconds between two readings.")


class SessionSeries(SeriesHead):
    """The readings of a brew over time, a line for each device."""

    lines: list[SeriesLine]
    hand: list[HandPointRecord]
    events: list[MarkRecord]
    alarms: list[AlarmMarkRecord]
    og: GravityFrom | None
    fg: GravityFrom | None
    left_out: list[LeftOutRecord] = Field(description="Empty unless the query asks for them.")


class VitalSignColumns(AnswerModel):
    """What a device tells about itself, one reading of each bucket, in columns of equal length."""

    t: list[int]
    battery: list[Number] = Field(description="Volts.")
    battery_percent: list[Number]
    rssi: list[Number] = Field(description="dBm.")
    angle: list[Number] = Field(description="Degrees of tilt.")


class OneDeviceSeries(SeriesHead):
    """The readings of a device over time."""

    line: SeriesLine
    signs: VitalSignColumns
    left_out: list[LeftOutRecord] = Field(description="Empty unless the query asks for them.")


async def show_session_series(call: Call[SeriesSpan, None]) -> SessionSeries:
    """Show a brew session's readings in buckets."""
    session = await own_session(call)
    query = call.query
    found = await call.services.series.of_session(
        session, _whole(query.from_), _whole(query.to), query.points, with_left_out=query.left_out
    )
    og, fg = found.original, found.final
    return SessionSeries.model_validate(
        {
            "from": found.start,
            "to": found.end,
            "width_s": found.width_s,
            "interval_s": found.interval_s,
            "lines": [_line(line) for line in found.lines],
            "hand": [
                {"event_id": hand.event_id, "at": hand.at, "sg": _sg(hand.sg), "temp": _temp(hand.temp)}
                for hand in found.hand
            ],
            "events": [
                {"event_id": mark.event_id, "at": mark.at, "kind": mark.kind, "text": mark.text}
                for mark in found.events
            ],
            "alarms": [{"at": mark.at, "rule": mark.rule, "text": mark.text} for mark in found.alarms],
            "og": None if og is None else {"sg": _sg(og.sg), "from": said_origin(og.origin)},
            "fg": None if fg is None else {"sg": _sg(fg), "from": "recipe"},
            "left_out": _left_out(found.left_out),
        }
    )


async def show_device_series(call: Call[SeriesSpan, None]) -> OneDeviceSeries:
    """Show a device's readings in buckets, and what it tells about itself.

    To an account that is not the owner's, the device exists while it is in one of that account's brews, with
    the readings there.
    """
    device, query = await _device_in_sight(call), call.query
    is_owner = call.caller.everywhere or call.caller.account_id == OWNER_ID
    found = await call.services.series.of_device(
        device,
        _whole(query.from_),
        _whole(query.to),
        query.points,
        session_id=None if is_owner else device.session_id,
        with_left_out=query.left_out,
    )
    columns = list(zip(*found.signs, strict=True)) or [()] * len(VitalSignColumns.model_fields)
    return OneDeviceSeries.model_validate(
        {
            "from": found.start,
            "to": found.end,
            "width_s": found.width_s,
            "interval_s": found.interval_s,
            "line": _line(found.line),
            "signs": dict(zip(VitalSignColumns.model_fields, columns, strict=True)),
            "left_out": _left_out(found.left_out),
        }
    )


async def _device_in_sight(call: Call[Any, Any]) -> Device:
    wanted = call.path_id("device_id")
    device = next((device for device in await call.store.devices.all() if device.id == wanted), None)
    if device is None:
        raise NotFound
    if not call.caller.everywhere and call.caller.account_id != OWNER_ID:
        session = None if device.session_id is None else await call.store.sessions.get(device.session_id)
        if session is None or session.account_id != call.caller.account_id:
            raise NotFound
    return device


def _line(line: Line) -> dict[str, Any]:
    return {
        "device_id": line.device_id,
        "name": line.name,
        "t": line.t,
        "n": line.n,
        **{name: [_sg(value) for value in getattr(line, name)] for name in ("sg_min", "sg_max", "sg")},
        **{name: [_temp(v) for v in getattr(line, name)] for name in ("temp_min", "temp_max", "temp")},
        "left_out": line.left_out,
    }


def _left_out(readings: Sequence[LeftOut]) -> list[dict[str, Any]]:
    return [
        {
            "device_id": reading.device_id,
            "at": reading.at,
            "sg": _sg(reading.sg),
            "temp": _temp(reading.temp),
            "flags": list(reading.flags),
        }
        for reading in readings
    ]


def _sg(value: float | None) -> float | None:
    return None if value is None else round(value, SG_DECIMALS)


def _temp(value: float | None) -> float | None:
    return None if value is None else round(value, TEMP_DECIMALS)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/manage/brewsessions/{brew_session_id}/series",
        show_session_series,
        "Readings of a brew session over time, in buckets",
        SeriesSpan,
        SessionSeries,
        scope="read",
    ),
    Endpoint(
        "GET",
        "/manage/devices/{device_id}/series",
        show_device_series,
        "Readings of a device over time, with battery, signal and tilt",
        SeriesSpan,
        OneDeviceSeries,
        scope="read",
    ),
)
"""Series."""
