"""`/manage/brewsessions/:id/figures`: the figures of a brew, each with its origin."""

from typing import Literal

from pydantic import Field

from gateway.domain.times import iso
from gateway.http.endpoint import AnswerModel, Call, Endpoint, Query
from gateway.http.records import own_session
from gateway.services.figures import Latest

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
    """The original gravity: set by hand, or the median of what counts in the first 12 hours."""

    sg: float
    origin: Literal["hand", "measured"] = Field(alias="from")


class FinalGravity(AnswerModel):
    """The final gravity that the recipe expects."""

    sg: float
    origin: Literal["recipe"] = Field(default="recipe", alias="from")


class BrewFigures(AnswerModel):
    """The figures of a brew, each null if there is nothing to make it from.

    Readings with a doubtful gravity are left out.
    """

    message: Literal["success"] = "success"
    gravity: LatestValue | None = Field(description="The last specific gravity.")
    temp: LatestValue | None = Field(description="The last temperature in °C.")
    og: OriginalGravity | None
    fg: FinalGravity | None
    attenuation: float | None = Field(description="Apparent attenuation in percent.")
    abv: float | None = Field(description="Alcohol by volume in percent.")
    change_per_day: float | None = Field(
        description="SG: the median of the last 6 hours less that of the same hours one day before."
    )
    day: int | None = Field(description="The day of the brew's life, from 1; of its last day if it is done.")
    began_at: str | None = Field(description="The first reading that counts.")
    last_at: str | None = Field(description="The last reading of any kind.")
    still_since: str | None = Field(description="Gravity has not moved since, for two days at least.")
    seems_done: bool = Field(description="Gravity does not move, and attenuation is 65 % or more.")


async def show_figures(call: Call[Query, None]) -> BrewFigures:
    """Show the figures of a brew."""
    figures = await call.services.figures.of(await own_session(call))
    original, final = figures.original, figures.final
    return BrewFigures.model_validate(
        {
            "gravity": _value(figures.gravity, SG_DECIMALS),
            "temp": _value(figures.temp, DECIMALS),
            "og": original and {"sg": round(original.sg, SG_DECIMALS), "from": original.origin},
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
)
"""Figures."""
