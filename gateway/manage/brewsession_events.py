"""`/manage/brewsessions/{id}/events`: what happened in a brew, and the readings that people take by hand."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from gateway.api.import_body import NUMERAL
from gateway.domain.brew_event import GATEWAY_KINDS, HAND_KINDS, BrewEvent
from gateway.domain.texts import LABEL_CHARACTERS
from gateway.domain.times import iso
from gateway.http.endpoint import AnswerModel, Body, Call, Endpoint, Query
from gateway.http.middleware import peer_of
from gateway.http.parameters import Moment, Text
from gateway.http.records import own_session
from gateway.services.timeline import EVENT_CHARACTERS, TYPED_KINDS, EventContent

TERMINAL = "command line"
"""The author of an event that came over the Unix socket, where nobody needs a key."""

Kind = Annotated[str, WithJsonSchema({"enum": [*HAND_KINDS, *GATEWAY_KINDS], "type": "string"})]
TypedKind = Annotated[str, WithJsonSchema({"enum": list(TYPED_KINDS), "type": "string"})]


def _numeral(given: Any) -> Any:
    """Read a number as its text; text stays as it was typed."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        return repr(given)
    return given


Numeral = Annotated[
    Text,
    BeforeValidator(_numeral),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"{NUMERAL}|^$"}]}),
]
"""A number, or one as text with the digits that were typed; empty for none."""

EventText = Annotated[Text, Field(max_length=EVENT_CHARACTERS)]
Short = Annotated[Text, Field(max_length=LABEL_CHARACTERS)]


class EventRecord(AnswerModel):
    """An event of a brew. Members that an event of its kind does not have are null."""

    id: int
    brew_session_id: int
    at: str
    kind: Kind
    text: str
    author: str = Field(description="The name of the key; empty for the gateway.")
    amount: str | None = Field(description="Of a dry hop or an addition.")
    gravity: str | None = Field(description="Of a hand reading, as it was typed.")
    gravity_unit: Literal["G", "P"] | None
    temp: str | None
    temp_unit: Literal["C", "F"] | None
    instrument: str | None
    reading_id: str | None = Field(description="The `_id` of its reading.")
    sent: bool = Field(description="A target has its reading, or may have it.")
    device_id: int | None = Field(description="The device that went into the brew or left it.")
    device: str | None
    readings: int | None = Field(description="The readings that came along with the device.")
    phase: str | None = Field(description="The phase that the end gave the brew.")
    photo: str | None = Field(description="The uuid of a photo.")
    created_at: str
    updated_at: str


class Events(AnswerModel):
    """The events of a brew, the newest first."""

    message: Literal["success"] = "success"
    count: int
    events: list[EventRecord]


class OneEvent(AnswerModel):
    """A single event."""

    message: Literal["success"] = "success"
    event: EventRecord


class EventMembers(Body):
    """Members of an event. A hand reading needs a gravity or a temperature."""

    at: Moment | None = Field(default=None, description="Now without it.")
    text: EventText | None = Field(default=None, description="The note, or what was added.")
    amount: Short | None = Field(default=None, description="Of a dry hop or an addition, such as `50 g`.")
    gravity: Numeral | None = Field(
        default=None, description="Of a hand reading. A refractometer's value must be corrected for alcohol."
    )
    gravity_unit: Literal["G", "P"] | None = Field(default=None, description="G without it.")
    temp: Numeral | None = None
    temp_unit: Literal["C", "F"] | None = Field(default=None, description="C without it.")
    instrument: Short | None = Field(default=None, description="`Hydrometer` without it.")


class NewEvent(EventMembers):
    """A new event. A hand reading is a reading of the brew, and is sent on like any imported one."""

    kind: TypedKind


class EventChange(EventMembers):
    """A change to an event. A member that is left out stays as it is."""

    send_again: bool | None = Field(
        default=None,
        description="Needed if its reading was sent already: true sends it once more, and a service that "
        "makes its own ids may then have both; false corrects it here only.",
    )


async def list_events(call: Call[Query, None]) -> Events:
    """List the events of a brew."""
    found = await call.services.timeline.events(await own_session(call))
    return Events(count=len(found), events=[_record(event) for event in found])


async def add_event(call: Call[Query, NewEvent]) -> OneEvent:
    """Add an event to a brew, with its reading if it is a hand reading."""
    session, address = await own_session(call), peer_of(call.request).address
    content = EventContent(**call.body.model_dump(exclude_none=True))
    added = await call.services.timeline.add(session, content, call.caller.key_name or TERMINAL, address)
    return OneEvent(event=_record(added))


async def change_event(call: Call[Query, EventChange]) -> OneEvent:
    """Change the given members of an event, and its reading under the same `_id`."""
    session = await own_session(call)
    given = call.body.model_dump(exclude_none=True, exclude={"send_again"})
    changed = await call.services.timeline.change(
        session, call.path_id("event_id"), given, send_again=call.body.send_again
    )
    return OneEvent(event=_record(changed))


async def delete_event(call: Call[Query, None]) -> OneEvent:
    """Delete an event and its reading here. Where the reading was sent, it stays."""
    session = await own_session(call)
    removed = await call.services.timeline.remove(session, call.path_id("event_id"))
    return OneEvent(event=_record(removed))


def _record(event: BrewEvent) -> EventRecord:
    facts = event.facts
    return EventRecord.model_validate(
        {
            **{name: getattr(event, name) for name in ("id", "kind", "text", "author")},
            **{name: facts.get(name) for name in EventRecord.model_fields if name in KIND_MEMBERS},
            "brew_session_id": event.session_id,
            "at": iso(event.at),
            "reading_id": event.oid,
            "sent": event.was_sent,
            "device": facts.get("name"),
            "photo": facts.get("uuid"),
            "created_at": iso(event.created_at),
            "updated_at": iso(event.updated_at),
        }
    )


KIND_MEMBERS = frozenset(
    {"amount", "gravity", "gravity_unit", "temp", "temp_unit", "instrument", "device_id", "readings", "phase"}
)
"""Members of the record that are facts under the same name."""

EVENTS = "/manage/brewsessions/{brew_session_id}/events"
EVENT = f"{EVENTS}/{{event_id}}"

ENDPOINTS = (
    Endpoint("GET", EVENTS, list_events, "What happened in a brew", Query, Events, scope="read"),
    Endpoint(
        "POST",
        EVENTS,
        add_event,
        "Add a note, a hand reading or another event to a brew",
        Query,
        OneEvent,
        body=NewEvent,
    ),
    Endpoint(
        "PATCH",
        EVENT,
        change_event,
        "Change an event of a brew",
        Query,
        OneEvent,
        body=EventChange,
        refusals=(409,),
    ),
    Endpoint("DELETE", EVENT, delete_event, "Delete an event of a brew", Query, OneEvent),
)
"""Events of brews."""
