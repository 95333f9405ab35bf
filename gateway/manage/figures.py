"""`/manage/brewsessions/:id/figures` and `.../insight`: what is known of a brew's fermentation."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from gateway.domain.times import iso
from gateway.http.endpoint import AnswerModel, Call, Endpoint, Query
from gateway.http.records import own_session
from gateway.insight.records import OriginOfGravity, Phase, Unknown
from gateway.services.figures import BY_HAND, ESTIMATED, Latest

SG_DECIMALS, DECIMALS = 5, 2
"""Decimals of gravities and of all other figures."""


class LatestValue(AnswerModel):
    """A value with its time; `device_id` is null if no device reported it."""

    value: float
    at: str
    device_id: int | None
    origin: Literal["device", "import", "hand"] = Field(
        alias="from", description="A device, an import, or a person."
    )


class OriginalGravity(AnswerModel):
    """The original gravity: set by hand, or measured by hand or by the first readings."""

    sg: float
    origin: Literal["hand", "measured"] = Field(alias="from")


class FinalGravity(AnswerModel):
    """The final gravity that the recipe expects."""

    sg: float
    origin: Literal["recipe"] = Field(default="recipe", alias="from")


class BrewFigures(AnswerModel):
    """The figures of a brew, each null if there is nothing to make it from.

    Readings with a doubtful gravity are left out. `gravity` and `temp` are those of the last reading; the
    figures behind them are made of smoothed gravities, which `insight` shows.
    """

    message: Literal["success"] = "success"
    gravity: LatestValue | None = Field(description="The last specific gravity.")
    temp: LatestValue | None = Field(description="The last temperature in °C.")
    og: OriginalGravity | None
    fg: FinalGravity | None
    attenuation: float | None = Field(description="Apparent attenuation in percent.")
    abv: float | None = Field(description="Alcohol by volume in percent.")
    change_per_day: float | None = Field(description="SG: the slope of the last 24 hours.")
    day: int | None = Field(description="The day of the brew's life, from 1; of its last day if it is done.")
    began_at: str | None = Field(description="The first reading that counts.")
    last_at: str | None = Field(description="The last reading of any kind.")
    still_since: str | None = Field(description="Gravity has not moved since then at least.")
    seems_done: bool = Field(description="Fermentation is over.")


class BestOriginal(AnswerModel):
    """The best known original gravity; `is_estimate` if only the recipe says it."""

    sg: float
    origin: OriginOfGravity = Field(alias="from", description="A person, a measurement, readings, a recipe.")
    is_estimate: bool


class Forecast(AnswerModel):
    """When fermentation ends: most probably between `early` and `late`, with the gravity `fg`."""

    at: str
    early: str
    late: str
    fg: float


class EnteredPhase(AnswerModel):
    """A phase that was entered, and the current gravity then; `resumed` if the brew had been finished."""

    at: str
    phase: Phase
    sg: float | None
    resumed: bool


class GravityRise(AnswerModel):
    """A rise of gravity that stays and that nobody has explained: sugar, perhaps."""

    since: str
    sg: float


class BrewInsight(AnswerModel):
    """What is known of a fermentation, each null where it is not known. Gravities are SG and smoothed.

    They are of the leading device alone; of a brew that ended, at its last reading.
    """

    message: Literal["success"] = "success"
    now: str = Field(description="The time that the figures are of.")
    last_at: str | None = Field(description="The last reading that counts.")
    device_id: int | None = Field(description="The leading device; null for imported readings.")
    sg: float | None = Field(description="The current gravity; null if the last reading is a day old.")
    og: BestOriginal | None
    attenuation: float | None = Field(description="Apparent attenuation in percent.")
    abv: float | None = Field(description="Alcohol by volume in percent.")
    abv_alternate: float | None = Field(description="The formula for strong beer, from an OG of 1.070 on.")
    rate: float | None = Field(description="SG per day, negative while it falls.")
    day: float | None = Field(description="Days since pitching, from 0.")
    temp_c: float | None
    phase: Phase | None
    phase_since: str | None
    changes: list[EnteredPhase]
    finish: Forecast | None
    unknown: Unknown | None = Field(description="Why there is no `finish`.")
    unknown_text: str | None = Field(description="The same in words.")
    fell_24h: float | None
    fell_36h: float | None
    fell_48h: float | None
    ended_high: bool = Field(description="Fermentation ended above what is usual.")
    cold_since: str | None = Field(description="A cold crash began then.")
    crashed_at_sg: float | None = Field(description="The gravity then, if the beer was not finished.")
    rise: GravityRise | None


WHY_UNKNOWN: Mapping[Unknown, str] = {
    "few_points": "there are too few readings",
    "too_early": "it is too early: a day after pitching at the earliest",
    "little_attenuation": "too little is fermented: 35 % at least",
    "phase": "the beer does not ferment now",
    "gap": "readings are missing for a day",
    "flat": "gravity hardly falls",
    "rate_constant": "the readings follow no usual course",
    "far_away": "it is weeks away",
    "models_differ": "the forecasts differ too much",
}
"""Why the finish of a fermentation is not yet known, in words."""


async def show_figures(call: Call[Query, None]) -> BrewFigures:
    """Show the figures of a brew."""
    figures = await call.services.figures.of(await own_session(call))
    original, final = figures.original, figures.final
    if original is not None and original.origin == ESTIMATED:
        original = None
    return BrewFigures.model_validate(
        {
            "gravity": _value(figures.gravity, SG_DECIMALS),
            "temp": _value(figures.temp, DECIMALS),
            "og": original and {"sg": round(original.sg, SG_DECIMALS), "from": said_origin(original.origin)},
            "fg": final and {"sg": round(final, SG_DECIMALS)},
            "attenuation": _rounded(figures.attenuation, DECIMALS),
            "abv": _rounded(figures.abv, DECIMALS),
            "change_per_day": _rounded(figures.per_day, SG_DECIMALS),
            "day": figures.day,
            "began_at": _time(figures.began_at),
            "last_at": _time(figures.last_at),
            "still_since": _time(figures.still_since),
            "seems_done": figures.seems_done,
        }
    )


async def show_insight(call: Call[Query, None]) -> BrewInsight:
    """Show what is known of a brew's fermentation."""
    session = await own_session(call)
    service = call.services.insight
    found = await service.of(session)
    og, finish, rise = found.og, found.finish, found.rise
    gravities = ("sg", "rate", "fell_24h", "fell_36h", "fell_48h", "crashed_at_sg")
    values = ("attenuation", "abv", "abv_alternate", "day", "temp_c")
    times = ("now", "last_at", "phase_since", "cold_since")
    return BrewInsight.model_validate(
        {
            "device_id": await service.leading_device(session.id),
            **{name: _rounded(getattr(found, name), SG_DECIMALS) for name in gravities},
            **{name: _rounded(getattr(found, name), DECIMALS) for name in values},
            **{name: _time(getattr(found, name)) for name in times},
            "og": og and {"sg": round(og.sg, SG_DECIMALS), "from": og.origin, "is_estimate": og.is_estimate},
            "phase": found.phase,
            "changes": [
                {
                    "at": iso(change.at),
                    "phase": change.phase,
                    "sg": _rounded(change.sg, SG_DECIMALS),
                    "resumed": change.resumed,
                }
                for change in found.changes
            ],
            "finish": finish
            and {
                **{name: iso(getattr(finish, name)) for name in ("at", "early", "late")},
                "fg": round(finish.fg, SG_DECIMALS),
            },
            "unknown": found.unknown,
            "unknown_text": None if found.unknown is None else WHY_UNKNOWN[found.unknown],
            "ended_high": found.ended_high,
            "rise": rise and {"since": iso(rise.since), "sg": round(rise.sg, SG_DECIMALS)},
        }
    )


def said_origin(origin: str) -> str:
    """Return the origin of an original gravity in the two words that there were at first."""
    return origin if origin == BY_HAND else "measured"


def _value(latest: Latest | None, decimals: int) -> dict[str, object] | None:
    if latest is None:
        return None
    origin = "hand" if latest.by_hand else "import" if latest.device_id is None else "device"
    return {
        "value": round(latest.value, decimals),
        "at": iso(latest.at),
        "device_id": latest.device_id,
        "from": origin,
    }


def _rounded(value: float | None, decimals: int) -> float | None:
    # Plus 0.0, because -0.0 is no figure of a beer.
    return None if value is None else round(value, decimals) + 0.0


def _time(at: int | None) -> str | None:
    return None if at is None else iso(at)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/manage/brewsessions/{brew_session_id}/figures",
        show_figures,
        "The figures of a brew session, each with its origin",
        Query,
        BrewFigures,
        scope="read",
    ),
    Endpoint(
        "GET",
        "/manage/brewsessions/{brew_session_id}/insight",
        show_insight,
        "What is known of a brew session's fermentation: phase, rate, finish",
        Query,
        BrewInsight,
        scope="read",
    ),
)
"""Figures."""
