"""`/manage/families`, `/manage/heard`: what to type into a device, and what the gateway hears of it."""

from typing import Literal

from pydantic import Field

from gateway.domain.times import iso
from gateway.drivers.families import Family, Way, families, fill, find_families
from gateway.errors import NotFound
from gateway.http.endpoint import AnswerModel, Call, Done, Endpoint, Query
from gateway.http.middleware import host_of
from gateway.http.parameters import Moment, Text
from gateway.intake.deduplicate import raw_of
from gateway.intake.replay import payload_of
from gateway.services.adding import MS, HeardDevice, addresses, heard, needs_of
from gateway.stats import Stats

START_BYTES = 48
"""Bytes of a payload that are shown."""


class WayNeed(AnswerModel):
    """A need of a way. `met` is null where the gateway cannot know; `reason` says why it is not met."""

    need: str
    met: bool | None
    reason: str


class FieldSetting(AnswerModel):
    """A field of the device's own page, and what to type there."""

    name: str
    text: str


class FamilyWay(AnswerModel):
    """A way of a family to report, with the gateway's addresses filled in; `{key}` stands for a key.

    `host` is the built-in host that a name server has to answer for, `options` are options of `serve`.
    """

    id: str
    title: str
    best: bool
    needs: list[WayNeed]
    host: str
    options: list[str]
    fields: list[FieldSetting]
    notes: list[str]


class DeviceFamily(AnswerModel):
    """A family of devices, with its ways to report, the best first."""

    id: str
    title: str
    aliases: list[str]
    drivers: list[str]
    typical_s: int = Field(description="Seconds between two reports of such a device.")
    known_by: str
    prepare: list[str]
    hurry: str
    ways: list[FamilyWay]


class Families(Done):
    """Families of devices that the gateway understands."""

    count: int
    families: list[DeviceFamily]


class HeardValues(AnswerModel):
    """A device that reported; the values of its last reading as sent, and the reason for each unit."""

    id: int
    name: str
    family: str
    is_new: bool
    at: str
    address: str
    gravity: str | None
    gravity_unit: str | None
    gravity_reason: str
    temp: str | None
    temp_unit: str | None
    temp_reason: str


class WaitingReadings(AnswerModel):
    """A device whose readings wait for the owner's word."""

    number: int
    name: str
    family: str
    address: str
    reason: str
    at: str


class HeardPayload(AnswerModel):
    """A payload in quarantine, and why."""

    number: int
    at: str
    channel: str
    address: str
    reason: str
    begins: str


class HeardKnock(AnswerModel):
    """An attempt that left nothing: what was wrong, from where, how often within a minute."""

    kind: str
    address: str
    detail: str
    first_at: str
    at: str
    times: int


class HeardSince(Done):
    """All that came since a time, the newest first."""

    message: Literal["success"] = "success"
    devices: list[HeardValues]
    waiting: list[WaitingReadings]
    quarantine: list[HeardPayload]
    knocks: list[HeardKnock]


class FamiliesQuery(Query):
    """Choice of families."""

    find: Text | None = Field(default=None, description="Only families with this in a name or an alias.")


class HeardQuery(Query):
    """The time since when, and the family whose known devices are named."""

    since: Moment = Field(description="ISO 8601.")
    family: Text | None = Field(default=None, description="Only known devices of this family; new ones all.")


async def list_families(call: Call[FamiliesQuery, None]) -> Families:
    """List the families of devices, and what to type into each."""
    host = host_of(call.request)
    found = find_families(call.query.find or "", families().values())
    records = [_family(call.services.stats, family, host) for family in found]
    return Families(count=len(records), families=records)


def _family(stats: Stats, family: Family, host: str) -> DeviceFamily:
    return DeviceFamily(
        id=family.id,
        title=family.title,
        aliases=[*family.aliases],
        drivers=[*family.drivers],
        typical_s=family.typical_s,
        known_by=family.known_by,
        prepare=[*family.prepare],
        hurry=family.hurry,
        ways=[_way(stats, way, host) for way in family.ways],
    )


def _way(stats: Stats, way: Way, host: str) -> FamilyWay:
    values = addresses(stats, host, way)
    return FamilyWay(
        id=way.id,
        title=way.title,
        best=way.best,
        needs=[
            WayNeed(need=need, met=is_met, reason=reason) for need, is_met, reason in needs_of(stats, way)
        ],
        host=way.host,
        options=[*way.options],
        fields=[FieldSetting(name=field.name, text=fill(field.text, values)) for field in way.fields],
        notes=[fill(note, values) for note in way.notes],
    )


async def what_is_heard(call: Call[HeardQuery, None]) -> HeardSince:
    """Name what came since a time: devices, payloads that nobody understood, attempts that left nothing."""
    family_id = call.query.family
    if family_id is not None and family_id not in families():
        raise NotFound(f"there is no family {family_id}")
    drivers = None if family_id is None else families()[family_id].drivers
    came = await heard(call.services, call.query.since, drivers)
    return HeardSince(
        devices=[_device(each) for each in came.devices],
        waiting=[
            WaitingReadings(
                number=name.id,
                name=name.name or name.stable_id,
                family=name.family,
                address=name.source,
                reason=name.reason,
                at=iso(name.last_at // MS),
            )
            for name in came.waiting
        ],
        quarantine=[
            HeardPayload(
                number=item.id,
                at=iso(item.received_at // MS),
                channel=item.channel,
                address=item.source,
                reason=item.reason,
                begins=raw_of(payload_of(item))[:START_BYTES].decode("utf-8", "backslashreplace"),
            )
            for item in came.quarantine
        ],
        knocks=[
            HeardKnock(
                kind=knock.kind,
                address=knock.address,
                detail=knock.detail,
                first_at=iso(knock.first_at),
                at=iso(knock.last_at),
                times=knock.times,
            )
            for knock in came.knocks
        ],
    )


def _device(each: HeardDevice) -> HeardValues:
    device, reading = each.device, each.reading
    return HeardValues(
        id=device.id,
        name=each.name,
        family=device.family,
        is_new=each.is_new,
        at=iso(each.at),
        address=each.address,
        gravity=(reading and reading.gravity) or None,
        gravity_unit=(reading and reading.gravity_unit) or None,
        gravity_reason=device.inferred.get("gravity_unit", ("", ""))[1],
        temp=(reading and reading.temp) or None,
        temp_unit=(reading and reading.temp_unit) or None,
        temp_reason=device.inferred.get("temp_unit", ("", ""))[1],
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/manage/families",
        list_families,
        "Families of devices, and what to type into each; any key that may read",
        FamiliesQuery,
        Families,
    ),
    Endpoint(
        "GET",
        "/manage/heard",
        what_is_heard,
        "What came since a time, also what left nothing else behind",
        HeardQuery,
        HeardSince,
        refusals=(404,),
        owner_only=True,
    ),
)
"""Adding a device."""
