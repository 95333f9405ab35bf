"""The bodies and answers of `/manage/devices`."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from gateway.http.endpoint import AnswerModel, Body, Query
from gateway.http.parameters import Moment, RecordNumber, Text
from gateway.intake.calibration import MAX_POINTS
from gateway.services.device_settings import AUTO

Finite = Annotated[float, Field(allow_inf_nan=False)]
Point = tuple[Finite, Finite]


def _choice(first: str, second: str) -> Any:
    """Make the type of a setting: one of two units, or `auto`."""

    def check(value: str) -> str:
        if value not in {first, second, AUTO}:
            raise ValueError(f"must be {first}, {second} or {AUTO}, not {value!r}")
        return value

    schema = WithJsonSchema({"type": "string", "enum": [first, second, AUTO]})
    return Annotated[str, AfterValidator(check), schema]


class DeviceRecord(AnswerModel):
    """A device with its last reading; `session` is the brew session that it reports into."""

    id: int
    key: str
    device_id: str
    name: str
    label: str | None
    family: str
    session: int | None
    gravity_unit: str | None
    interval_s: int | None
    readings: int
    first_seen_at: str
    last_seen_at: str | None
    last_gravity: str | None
    last_gravity_unit: str | None
    last_temp: str | None
    last_temp_unit: str | None
    last_facts: dict[str, float | str | None] = Field(
        description="Further values of the last reading: battery (V), battery_percent, rssi (dBm), angle ..."
    )
    merged_in: list[str] = Field(description="Keys of the devices that were merged into this one.")
    bound_source: str | None = Field(description="The only address that the device may report from.")
    bound_keys: list[str] = Field(description="Names of the keys that only this device may report with.")
    waiting: int = Field(description="Readings of the device that wait in the inbox.")


class Devices(AnswerModel):
    """Devices, by id."""

    message: Literal["success"] = "success"
    count: int
    devices: list[DeviceRecord]


class Inference(AnswerModel):
    """A unit or a state that was inferred from a device's reports, with the reason."""

    value: str
    reason: str


class CalibrationRecord(AnswerModel):
    """Corrections of a device's readings; the curve's coefficients begin with the constant."""

    curve: list[float]
    curve_unit: Literal["G", "P"]
    points: list[tuple[float, float]]
    gravity_offset: float
    temp_offset: float
    corrected_at_c: float | None
    degree: int | None


class SettingsRecord(AnswerModel):
    """Settings of the owner; a null or empty one leaves the decision to the device's reports."""

    label: str
    gravity_unit: str | None
    temp_unit: str | None
    interval_s: int | None
    calibration: CalibrationRecord
    excluded: list[tuple[int, int]] = Field(description="From and to in Unix seconds, both inclusive.")
    source: str = Field(description="The only address that the device may report from.")


class DeviceSourceRecord(AnswerModel):
    """An address that readings of a device came from; it is empty where a broker hides it."""

    address: str
    readings: int
    first_at: str
    last_at: str


class DeviceDetails(DeviceRecord):
    """Everything about a device."""

    kind: str = Field(description="The family's name.")
    inferred: dict[str, Inference]
    settings: SettingsRecord
    reprocessing: bool = Field(description="Earlier readings are being understood again.")
    sources: list[DeviceSourceRecord] = Field(
        description="Where its newest 5,000 readings came from, in the order of the first one."
    )


class OneDevice(AnswerModel):
    """A device with everything about it."""

    message: Literal["success"] = "success"
    device: DeviceDetails


class Reprocessed(AnswerModel):
    """The number of earlier readings that were reprocessed; `changed` counts the ones that differ now."""

    message: Literal["success"] = "success"
    readings: int
    changed: int


class Fit(AnswerModel):
    """A curve in SG through measured points; residuals are measured minus fitted."""

    message: Literal["success"] = "success"
    curve: list[float]
    points: list[tuple[float, float]]
    residuals: list[float]
    rms: float
    valid_deg: tuple[float, float] = Field(description="The angles that the points span.")
    warnings: list[str]


class EffectColumns(AnswerModel):
    """A device's readings in columns: times in Unix seconds, SG, °C; null where a reading does not count."""

    t: list[int]
    sg: list[float | None]
    temp: list[float | None]


class Calibrated(Reprocessed):
    """The effect of a calibration. The last three are there with `preview`, which counts what it shows.

    `before` and `after` are of the device's last 14 days in its brew session.
    """

    fit: Fit | None = None
    before: EffectColumns | None = None
    after: EffectColumns | None = None


class Excluded(Reprocessed):
    """The effect of leaving out a span. The last three are there with `preview`.

    `left_out` counts all readings in the span, `before` and `after` are as with a calibration.
    """

    left_out: int | None = None
    before: EffectColumns | None = None
    after: EffectColumns | None = None


class SessionName(AnswerModel):
    """A brew session, by id and batch code."""

    id: int
    batchcode: str


class Assigned(AnswerModel):
    """A device and its new brew session; `claimed` counts the earlier readings that moved there with it."""

    message: Literal["success"] = "success"
    device: str = Field(description="The device's shortest name, quoted for a shell.")
    brew_session: SessionName
    before: SessionName | None = Field(description="The brew session that the device was in.")
    claimed: int
    unassigned: int = Field(description="Readings of the device that are in no brew session.")
    nowhere: str | None = Field(description="A sentence, if no target takes the brew session.")


class Resent(AnswerModel):
    """The number of readings that are forwarded once more."""

    message: Literal["success"] = "success"
    readings: int


class MergePart(AnswerModel):
    """A device's readings in one brew session, or in none; times in Unix seconds."""

    model_config = ConfigDict(from_attributes=True)

    session_id: int | None
    readings: int
    first: int
    last: int


class MergeSide(AnswerModel):
    """One of the two devices of a merge."""

    id: int
    key: str
    title: str
    session: int | None
    parts: list[MergePart]


class Merge(AnswerModel):
    """The effect of a merge. Settings of the other device are `taken` over or `given_up`."""

    into: MergeSide
    other: MergeSide
    overlap: int = Field(description="Readings of the other within a minute of one of the first.")
    session: int | None
    taken: list[str]
    given_up: list[str]
    understood_again: bool
    doubt: str


class DevicesQuery(Query):
    """Choice of devices."""

    find: Text | None = Field(
        default=None,
        description="The device with this id, device id, name, label or key; 404 for none, 409 for several.",
    )


class DeviceChange(Body):
    """Settings to change; a setting that is left out stays as it is."""

    label: Text | None = Field(default=None, description='"" for the device\'s own name.')
    gravity_unit: _choice("G", "P") | None = None  # type: ignore[valid-type]
    temp_unit: _choice("C", "F") | None = None  # type: ignore[valid-type]
    interval_s: int | None = Field(default=None, description="Seconds between reports; 0 for none.")


class FitRequest(Body):
    """Points to fit a curve through, together with the points that the device has."""

    points: list[Point] = Field(default_factory=list, max_length=MAX_POINTS)
    degree: int | None = Field(default=None, description="1 to 4; else the one set before, or up to 3.")
    clear: bool = Field(default=False, description="Leave out the points that the device has.")


PREVIEW = "Change nothing; answer the effect on the last 14 days."


class CalibrationPatch(FitRequest):
    """A change to a calibration; give a curve, or points for one."""

    curve: list[Finite] | None = Field(default=None, description="Coefficients, the constant first.")
    curve_unit: Literal["G", "P"] = "G"
    gravity_offset: Finite | None = Field(default=None, description="Added to specific gravity.")
    temp_offset: Finite | None = Field(default=None, description="Added to degrees Celsius.")
    corrected_at_c: Finite | Literal["off"] | None = Field(
        default=None, description="The temperature at which the device reads true; `off` corrects nothing."
    )
    preview: bool = Field(default=False, description=PREVIEW)


class Exclusion(Body):
    """A span of time whose readings count in no statistics; without `to` it has no end."""

    from_: Moment = Field(alias="from")
    to: Moment | None = None
    preview: bool = Field(default=False, description=PREVIEW)


class SpanQuery(Query):
    """A span of time; without `from` or `to` it is open on that side."""

    from_: Moment | None = Field(default=None, alias="from", description="ISO 8601.")
    to: Moment | None = Field(default=None, description="ISO 8601.")


class Assignment(Body):
    """The brew session that a device is to report into."""

    brew_session_id: RecordNumber
    since: Moment | None = Field(
        default=None, description="Readings since then that are in no brew session come along."
    )


class ResendRequest(Body):
    """Readings to forward once more: the ones since a time, or all without `since`."""

    since: Moment | None = None


class MergeRequest(Body):
    """The device that becomes a part of the device in the path."""

    other: RecordNumber
    dry_run: bool = Field(default=False, description="Only say what the merge would do.")
