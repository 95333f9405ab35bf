"""Merge two devices that are one hydrometer: plan the merge first, then do it.

The readings of the other device become the first one's. Each stays in its brew session and at its place in
the queue: nothing is forwarded a second time. The other's key becomes a key of the first, for later readings.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

from gateway.domain.device import EXCLUDED_SPANS, Device, DeviceSettings
from gateway.domain.report import mac_digits
from gateway.errors import InvalidInput
from gateway.intake.intake import Intake
from gateway.intake.reprocess import OnCount, Reprocessor, as_before
from gateway.services.lookalikes import tilt_color
from gateway.store.protocol import Store
from gateway.store.records import ImportPart

NO_HYDROMETER = {
    "brew_bubbles": "a bubble counter",
    "emanometer": "a pressure gauge",
    "irelay": "a temperature probe",
    "pressuremon": "a pressure gauge",
    "smartpid": "a temperature controller",
}
"""Families that never have a gravity, with a name for each."""

SETTINGS = {
    "label": "label",
    "gravity_unit": "gravity unit",
    "temp_unit": "temp unit",
    "interval_s": "interval",
    "calibration": "calibration",
    "excluded": "excluded spans",
    "source": "address",
}

OVERLAP_S = 60
"""Seconds between readings of both devices that may be one measurement, received in two ways."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two devices of a merge: its brew session, and its readings by brew session."""

    id: int
    key: str
    title: str
    session: int | None
    parts: tuple[ImportPart, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a merge. `session` is the brew session of both afterwards.

    `taken` are the other's settings that the first device lacks, `given_up` the other's settings that differ
    from the first's. `overlap` counts the other's readings within `OVERLAP_S` of one of the first. `doubt` is
    a reason against the merge, or empty.
    """

    into: Side
    other: Side
    overlap: int
    session: int | None
    taken: tuple[str, ...]
    given_up: tuple[str, ...]
    understood_again: bool
    doubt: str

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON."""
        return asdict(self)


class Merging:
    """A service that merges devices, one pair at a time."""

    def __init__(self, store: Store, intake: Intake, reprocessor: Reprocessor) -> None:
        self._store = store
        self._intake = intake
        self._reprocessor = reprocessor

    async def plan(self, into: Device, other: Device) -> Plan:
        """Plan a merge; `InvalidInput` if the two cannot be one."""
        if into.id == other.id:
            raise InvalidInput(f"device {into.id} is one device already: name two that are to be one")
        sides = [
            Side(
                device.id,
                device.key,
                device.title,
                device.session_id,
                tuple(await self._store.devices.parts(device.id)),
            )
            for device in (into, other)
        ]
        kinds = [
            "a hydrometer" if any(part.gravities for part in side.parts) else NO_HYDROMETER.get(device.family)
            for device, side in zip((into, other), sides, strict=True)
        ]
        if all(kinds) and kinds[0] != kinds[1]:
            raise InvalidInput(
                f"device {into.id} is {kinds[0]} and device {other.id} {kinds[1]}: they cannot be one"
            )
        settings = merged(into.settings, other.settings)
        if len(settings.excluded) > EXCLUDED_SPANS:
            raise InvalidInput(f"together they have more than {EXCLUDED_SPANS} excluded spans")
        own, others = into.settings.to_dict(), other.settings.to_dict()
        return Plan(
            into=sides[0],
            other=sides[1],
            overlap=await self._store.devices.overlap(into.id, other.id, OVERLAP_S),
            session=into.session_id or other.session_id,
            taken=tuple(SETTINGS[name] for name in others if name not in own or name == "excluded"),
            given_up=tuple(
                SETTINGS[name]
                for name in others
                if name in own and name != "excluded" and others[name] != own[name]
            ),
            understood_again=not all(as_before(settings, each.settings) for each in (into, other)),
            doubt=_doubt(into, other),
        )

    async def merge(self, into: Device, other: Device, on_count: OnCount) -> Plan:
        """Merge the devices in one transaction, then reprocess the readings; a restart goes on with it."""
        async with self._reprocessor.turn:
            found = {device.id: device for device in await self._store.devices.all()}
            if into.id not in found or other.id not in found:
                raise InvalidInput("one of them has become part of another device meanwhile")
            into, other = found[into.id], found[other.id]
            plan = await self.plan(into, other)
            settings = merged(into.settings, other.settings)
            device = await self._store.devices.merge(
                replace(into, settings=settings, reprocessing=plan.understood_again), other
            )
            if not self._intake.devices.loaded:
                await self._intake.devices.load()
            self._intake.devices.put(device)
            await self._intake.remember()
            if plan.understood_again:
                await self._reprocessor.reprocess(device, on_count)
            return plan


def merged(own: DeviceSettings, other: DeviceSettings) -> DeviceSettings:
    """Merge settings: the first device's, the other's that it lacks, and the excluded spans of both."""
    both = {**other.to_dict(), **own.to_dict()}
    both["excluded"] = sorted({*own.excluded, *other.excluded})
    return DeviceSettings.from_dict(both)


def _doubt(into: Device, other: Device) -> str:
    """Return a reason against the merge, or an empty text."""
    macs = {mac_digits(into.stable_id), mac_digits(other.stable_id)} - {""}
    if len(macs) > 1:
        return "each of them has told a MAC of its own, so they may well be two"
    colors = {tilt_color(into), tilt_color(other)} - {""}
    return "they are Tilts of different colours" if len(colors) > 1 else ""
