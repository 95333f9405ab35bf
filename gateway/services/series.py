"""Readings over time in buckets, as charts need them."""

from dataclasses import dataclass

from gateway.services.figures import Original


@dataclass(frozen=True, slots=True)
class Line:
    """The readings of one device in columns of equal length; None where a bucket has no such value.

    `t` is the middle of a bucket, or the time of its only reading (Unix seconds); `n` counts its readings.
    Gravities are SG, temperatures °C; minimum, maximum and average are of the readings that count.
    `left_out` counts the others. `device_id` is None for readings of no device.
    """

    device_id: int | None
    name: str
    t: list[int]
    n: list[int]
    sg_min: list[float | None]
    sg_max: list[float | None]
    sg: list[float | None]
    temp_min: list[float | None]
    temp_max: list[float | None]
    temp: list[float | None]
    left_out: list[int]


@dataclass(frozen=True, slots=True)
class HandPoint:
    """A reading that a person took: SG and °C, None if it was not measured."""

    event_id: int
    at: int
    sg: float | None
    temp: float | None


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened in the brew, as the chart shows it."""

    event_id: int
    at: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """What a chart shows of a brew, from `start` to `end` (Unix seconds).

    `width_s` is the width of a bucket; 0 if each reading is a point of its own. `interval_s` is the usual
    time between two readings. `final` is the final gravity (SG) that the recipe expects.
    """

    start: int
    end: int
    width_s: int
    interval_s: int
    lines: list[Line]
    hand: list[HandPoint]
    events: list[Mark]
    original: Original | None
    final: float | None
