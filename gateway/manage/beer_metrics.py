"""The beer in `GET /metrics`: what devices say, the figures of open brews, alarms and their messages.

The owner's keys see all of it, other keys what belongs to their account. There are no times in the
exposition: what is old is left out instead, so that a graph ends where a device falls silent.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import RULES, MessageState, Scope
from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device, DeviceSummary
from gateway.domain.units import SECONDS_PER_DAY
from gateway.http.endpoint import Call, Query
from gateway.http.middleware import Caller
from gateway.insight.records import PHASES, Insight
from gateway.insight.silence import silent_after_s
from gateway.intake.clock_check import JUMP_S
from gateway.intake.normalise import CLOCK_SUSPECT
from gateway.notify.house import usual_gap
from gateway.services.build import Services

if TYPE_CHECKING:
    from prometheus_client import Metric

PREFIX = "hydrometer_"

MOST = 200
"""Devices, and open brews, in one scrape at most: those with the latest readings, those with a device."""

SHOWN_S = 30 * SECONDS_PER_DAY
"""Seconds after its last reading for which a device is shown."""

PASCALS = {"pa": 1.0, "hpa": 100.0, "mbar": 100.0, "kpa": 1_000.0, "bar": 100_000.0, "psi": 6_894.757}
"""Pascals of each unit of pressure, in lower case."""

RESTING = ("finished", "cold_crash")
"""Phases in which a beer may be as cold as its brewer likes."""


@dataclass(frozen=True, slots=True)
class OpenBrew:
    """An open brew with its figures, and the range of its recipe's yeast in °C."""

    session: BrewSession
    insight: Insight
    leads: int | None
    low_c: float | None
    high_c: float | None

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of its metrics."""
        return {"session": str(self.session.id), "batchcode": self.session.batchcode}


@dataclass(frozen=True, slots=True)
class ShownDevice:
    """A device that reported lately. `limits` are the least and the most °C, as the alarm has them.

    `is_silent` says that its values are too old.
    """

    summary: DeviceSummary
    brew: OpenBrew | None
    limits: tuple[float | None, float | None]
    is_silent: bool

    @property
    def device(self) -> Device:
        """Return the device."""
        return self.summary.device

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of its metrics."""
        return {"device": self.device.key, "name": self.device.title}

    @property
    def smoothed_sg(self) -> float | None:
        """Return the smoothed gravity, if its brew's is made of its readings."""
        leads = self.brew is not None and self.brew.leads == self.device.id
        return self.brew.insight.sg if self.brew is not None and leads else None


@dataclass(frozen=True, slots=True)
class Beer:
    """What a caller may see: `alarms` are those that fire, `messages` are counts by channel and state."""

    devices: Sequence[ShownDevice]
    brews: Sequence[OpenBrew]
    alarms: frozenset[tuple[Scope, str, str]]
    messages: Mapping[str, Mapping[MessageState, int]]


async def look_at_beer(call: Call[Query, None]) -> Beer:
    """Read what the caller may see."""
    services, caller = call.services, call.caller
    account_id = None if sees_all(caller) else caller.account_id
    if account_id is None:
        accounts = [account.id for account in await call.store.accounts.all()]
    else:
        accounts = [account_id]
    brews = await _open_brews(services, accounts)
    counts = await call.store.messages.by_state()
    return Beer(
        devices=await _devices(services, brews, of_all=account_id is None),
        brews=brews,
        alarms=frozenset(
            (each.scope, each.subject, each.rule) for each in services.alarms.firing(account_id)
        ),
        messages={
            state.channel.name: counts.get(state.channel.name, {})
            for state in await services.channels.states(account_id)
        },
    )


def sees_all(caller: Caller) -> bool:
    """Return whether the caller sees what belongs to the whole gateway."""
    return caller.everywhere or caller.account_id == OWNER_ID


async def _open_brews(services: Services, accounts: Sequence[int]) -> list[OpenBrew]:
    """Return the brews that run, at most `MOST`."""
    ids = [session_id for account_id in accounts for session_id in await services.figures.running(account_id)]
    sessions = [entry.session for entry in await services.store.sessions.entries(ids[:MOST])]
    figures, brews = await services.insight.of_all(sessions), []
    for session in sessions:
        expected = await services.store.figures.expected(session.id)
        leads = await services.insight.leading_device(session.id)
        brews.append(
            OpenBrew(session, figures[session.id], leads, expected.yeast_low_c, expected.yeast_high_c)
        )
    return brews


async def _devices(services: Services, brews: Sequence[OpenBrew], *, of_all: bool) -> list[ShownDevice]:
    """Return the devices with a reading of the last 30 days, at most `MOST`, the latest first.

    None while our own clock is in doubt: nobody knows what is old then. Nor those whose last reading has a
    time in doubt.
    """
    if not services.clock_monitor.is_settled:
        return []
    now, inside = services.clock.now(), {brew.session.id: brew for brew in brews}
    found = [
        summary
        for summary in await services.store.devices.summaries()
        if summary.last_seen_at is not None
        and now - SHOWN_S <= summary.last_seen_at <= now + JUMP_S
        and CLOCK_SUSPECT not in summary.flags
        and (of_all or summary.device.session_id in inside)
    ]
    found.sort(key=lambda summary: -(summary.last_seen_at or 0))
    del found[MOST:]
    unknown = [summary.device.id for summary in found if _interval_s(summary.device) is None]
    signs = await services.store.alarms.signs(unknown, int(now)) if unknown else {}
    shown = []
    for summary in found:
        device = summary.device
        brew = None if device.session_id is None else inside.get(device.session_id)
        gap_s = usual_gap(signs[device.id].times) if device.id in signs else None
        silent_s = silent_after_s(_interval_s(device), gap_s)
        is_silent = now - (summary.last_seen_at or 0) > silent_s
        shown.append(ShownDevice(summary, brew, _limits(services, device, brew), is_silent))
    return shown


def _interval_s(device: Device) -> int | None:
    return device.settings.interval_s or device.interval_s


def _limits(services: Services, device: Device, brew: OpenBrew | None) -> tuple[float | None, float | None]:
    """Return the limits of the rule `temperature`: what was set, else those of the brew's yeast."""
    number = None if brew is None else brew.session.id
    setting = services.alarms.setting_of("temperature", brew=number, device=device.id)
    if setting is None:
        return None, None
    low, high = setting.get("lo"), setting.get("hi")
    if brew is not None:
        low, high = setting.get("lo", brew.low_c), setting.get("hi", brew.high_c)
        if brew.insight.phase in RESTING or brew.insight.cold_since is not None:
            low = None
    return low, high


def families(beer: Beer) -> "Iterator[Metric]":
    """Yield every metric of the beer, once. A value that is not known is left out."""
    from prometheus_client.core import GaugeMetricFamily

    gauges: dict[str, GaugeMetricFamily] = {}

    def put(name: str, words: str, labels: Mapping[str, str], value: float | None) -> None:
        if value is not None and math.isfinite(value):
            if name not in gauges:
                gauges[name] = GaugeMetricFamily(PREFIX + name, words, labels=[*labels])
            gauges[name].add_metric([*labels.values()], float(value))

    def put_alarms(scope: Scope, subject: int, labels: Mapping[str, str]) -> None:
        for rule, about in RULES.items():
            if scope in about.scopes:
                fires = (scope, str(subject), rule) in beer.alarms
                put(
                    f"{scope}_alarm",
                    f"Whether an alarm about the {scope} fires",
                    {**labels, "rule": rule},
                    fires,
                )

    for device in beer.devices:
        for name, words, value in (*_latest(device), *_lasting(device)):
            put(name, words, device.labels, value)
        put_alarms("device", device.device.id, device.labels)
        if device.brew is not None:
            words = "A device that is in an open brew, to join both"
            put("brew_device_info", words, {**device.brew.labels, **device.labels}, 1)
    for brew in beer.brews:
        for name, words, value in _figures(brew.insight):
            put(name, words, brew.labels, value)
        for phase in PHASES if brew.insight.phase is not None else ():
            is_in = brew.insight.phase == phase
            put("brew_phase", "Whether the brew is in this phase", {**brew.labels, "phase": phase}, is_in)
        put_alarms("brew", brew.session.id, brew.labels)
    for channel, counts in beer.messages.items():
        for state in get_args(MessageState):
            labels = {"channel": channel, "state": state}
            put(
                "gateway_messages",
                "Messages about alarms, by what became of them",
                labels,
                counts.get(state, 0),
            )
    yield from gauges.values()


def _latest(device: ShownDevice) -> Iterator[tuple[str, str, float | None]]:
    """Yield what the last reading says; nothing of a device that is silent."""
    if device.is_silent:
        return
    summary, facts = device.summary, device.summary.facts
    pressure, unit = _number(facts.get("pressure")), str(facts.get("pressure_unit", "")).lower()
    pascals = PASCALS.get(unit)
    yield "gravity_sg", "Specific gravity of the last reading, calibrated", summary.sg
    yield "gravity_smoothed_sg", "Specific gravity, smoothed over hours", device.smoothed_sg
    yield "temperature_celsius", "Temperature of the last reading, calibrated", summary.celsius
    yield "battery_volts", "Voltage of the battery", _number(facts.get("battery"))
    yield "battery_percent", "Charge of the battery", _number(facts.get("battery_percent"))
    yield "rssi_dbm", "Strength of the radio signal", _number(facts.get("rssi"))
    yield "angle_degrees", "Tilt of the device", _number(facts.get("angle"))
    yield (
        "pressure_pascals",
        "Pressure",
        None if pressure is None or pascals is None else pressure * pascals,
    )


def _lasting(device: ShownDevice) -> Iterator[tuple[str, str, float | None]]:
    """Yield what is shown for 30 days."""
    low, high = device.limits
    yield "last_reading_timestamp_seconds", "When the last reading was made", device.summary.last_seen_at
    yield "report_interval_seconds", "Time between two reports, where it is known", _interval_s(device.device)
    yield "assigned", "Whether the device is in a brew", device.device.session_id is not None
    yield "temperature_low_celsius", "The least temperature that is meant, of the alarm or the yeast", low
    yield "temperature_high_celsius", "The highest temperature that is meant, of the alarm or the yeast", high


def _figures(figures: Insight) -> Iterator[tuple[str, str, float | None]]:
    og, finish = figures.og, figures.finish
    attenuation, abv = figures.attenuation, figures.abv
    yield "brew_gravity_sg", "Specific gravity of the brew, smoothed over hours", figures.sg
    yield "brew_original_gravity_sg", "Specific gravity before fermentation", None if og is None else og.sg
    yield "brew_attenuation_ratio", "Apparent attenuation", None if attenuation is None else attenuation / 100
    yield "brew_abv_ratio", "Alcohol by volume", None if abv is None else abv / 100
    yield "brew_gravity_per_day_sg", "Change of specific gravity in a day", figures.rate
    yield (
        "brew_finish_timestamp_seconds",
        "When it will probably be done",
        None if finish is None else finish.at,
    )
    yield "brew_day", "Days since pitching", figures.day


def _number(value: Any) -> float | None:
    """Return a fact as a number. Some facts are kept as the text that was sent."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
