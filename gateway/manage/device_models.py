"""The bodies and answers of `/manage/devices`."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from gateway.http.endpoint import AnswerModel, Body, Query
from gateway.http.parameters import Moment, RecordNumber, Text
from gateway.intake.calibration import MAX_POINTS

AUTO = "auto"
"""Takes a setting back: the device's reports decide again."""

OFF = "off"

Finite = Annotated[float, Field(allow_inf_nan=False)]
Point = tuple[Finite, Finite]


def _choice(first: str, second: str) -> Any:
    """One of two units, or `auto`."""

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
    merged_in: list[str] = Field(description="Keys of the devices that were merged into this one.")


class Devices(AnswerModel):
    """Devices, by id."""

    message: Literal["success"] = "success"
    count: int
    devices: list[DeviceRecord]


class Inference(AnswerModel):
    """A unit or a state that was inferred of what a device sends, and why."""

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
    """What the owner has set; null, or nothing, where the device's reports decide."""

    label: str
    gravity_unit: str | None
    temp_unit: str | None
    interval_s: int | None
    calibration: CalibrationRecord
    excluded: list[tuple[int, int]] = Field(description="From and to in Unix seconds, both inclusive.")


class DeviceDetails(DeviceRecord):
    """Everything about a device."""

    kind: str = Field(description="The family's name.")
    inferred: dict[str, Inference]
    settings: SettingsRecord
    reprocessing: bool = Field(description="Earlier readings are being understood again.")


class OneDevice(AnswerModel):
    """One device."""

    message: Literal["success"] = "success"
    device: DeviceDetails


class Reprocessed(AnswerModel):
    """How many earlier readings were understood again, and how many say something else since."""

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


class SessionName(AnswerModel):
    """A brew session, by id and batch code."""

    id: int
    batchcode: str


class Assigned(AnswerModel):
    """A device that was put into a brew session, and how many of its earlier readings came along."""

    message: Literal["success"] = "success"
    device: str = Field(description="The device's shortest name, quoted for a shell.")
    brew_session: SessionName
    before: SessionName | None = Field(description="The brew session that the device was in.")
    claimed: int
    unassigned: int = Field(description="Readings of the device that are in no brew session.")
    nowhere: str | None = Field(description="A sentence, if no target takes the brew session.")


class Resent(AnswerModel):
    """How many readings are forwarded once more."""

    message: Literal["success"] = "success"
    readings: int


class MergePart(AnswerModel):
    """What a device has sent into one brew session, or none; times in Unix seconds."""

    model_config = ConfigDict(from_attributes=True)

    session_id: int | None
    readings: int
    first: int
    last: int


class MergeSide(AnswerModel):
    """One of two devices that are to be one."""

    id: int
    key: str
    title: str
    session: int | None
    parts: list[MergePart]


class Merge(AnswerModel):
    """What a merge does: `taken` and `given_up` are settings of the other device."""

    into: MergeSide
    other: MergeSide
    overlap: int = Field(description="Readings of the other within a minute of one of the first.")
    session: int | None
    taken: list[str]
    given_up: list[str]
    understood_again: bool
    doubt: str


class DevicesQuery(Query):
    """Which devices."""

    find: Text | None = Field(
        default=None,
        description="The device with this id, device id, name, label or key; 404 for none, 409 for several.",
    )


class DeviceChange(Body):
    """What to set; what is left out stays as it is."""

    label: Text | None = Field(default=None, description='"" for the device\'s own name.')
    gravity_unit: _choice("G", "P") | None = None  # type: ignore[valid-type]
    temp_unit: _choice("C", "F") | None = None  # type: ignore[valid-type]
    interval_s: int | None = Field(default=None, description="Seconds between reports; 0 for none.")


class FitRequest(Body):
    """Points to fit a curve through, beside the points that the device has."""

    points: list[Point] = Field(default_factory=list, max_length=MAX_POINTS)
    degree: int | None = Field(default=None, description="1 to 4; else the one set before, or up to 3.")
    clear: bool = Field(default=False, description="Leave out the points that the device has.")


class CalibrationChange(FitRequest):
    """A change to a calibration; give a curve, or points for one."""

    curve: list[Finite] | None = Field(default=None, description="Coefficients, the constant first.")
    curve_unit: Literal["G", "P"] = "G"
    gravity_offset: Finite | None = Field(default=None, description="Added to specific gravity.")
    temp_offset: Finite | None = Field(default=None, description="Added to degrees Celsius.")
    corrected_at_c: Finite | Literal["off"] | None = Field(
        default=None, description="The temperature at which the device reads true; `off` corrects nothing."
    )


class Span(Body):
    """A span of readings that count in no statistics; without `to` it goes on."""

    from_: Moment = Field(alias="from")
    to: Moment | None = None


class SpanQuery(Query):
    """A span of time; without an end it is open there."""

    from_: Moment | None = Field(default=None, alias="from", description="ISO 8601.")
    to: Moment | None = Field(default=None, description="ISO 8601.")


class Assignment(Body):
    """The brew session that a device is to report into."""

    brew_session_id: RecordNumber
    since: Moment | None = Field(
        default=None, description="Readings since then that are in no brew session come along."
    )


class ResendRequest(Body):
    """Which readings to forward once more; all without `since`."""

    since: Moment | None = None


class MergeRequest(Body):
    """The device that becomes a part of the one in the path."""

    other: RecordNumber
    dry_run: bool = Field(default=False, description="Only say what the merge would do.")
