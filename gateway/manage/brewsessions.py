"""`/manage/brewsessions`: making, changing and deleting brew sessions."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.config import JsonDict

from gateway.api.brewsessions import OneBrewSession, shown
from gateway.domain.brewsession import (
    DETAIL_MEMBERS,
    PHASE_AFTER_FERMENTING,
    BrewSession,
    DeletedSession,
)
from gateway.domain.target import Target
from gateway.errors import InvalidInput, NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Endpoint, Query, check_owner
from gateway.http.parameters import Day, Moment, RecordNumber, Text, Words, no_nul
from gateway.http.records import own_session
from gateway.manage.brewsession_events import Numeral
from gateway.services.brewsessions import NOTES_CHARACTERS, TEXT_CHARACTERS, SessionChange
from gateway.services.build import Services
from gateway.services.unforwarded import called, session_to_nowhere, twin_warning, which

ONE_OF_BOTH: JsonDict = {"anyOf": [{"required": ["batchcode"]}, {"required": ["recipe_id"]}]}


def _kept(name: str) -> str:
    if name not in DETAIL_MEMBERS:
        raise ValueError("is none of a brew session's details")
    return name


DetailName = Annotated[str, AfterValidator(_kept)]
Notes = Annotated[str, Field(max_length=NOTES_CHARACTERS), AfterValidator(no_nul)]
Detail = Annotated[Text, Field(max_length=TEXT_CHARACTERS)]


class SessionBody(Body):
    """Members of a brew session. A member that is left out stays as it is."""

    batchcode: Words | None = Field(default=None, max_length=TEXT_CHARACTERS)
    phase: Text | None = Field(default=None, max_length=TEXT_CHARACTERS, description="Any words.")
    userdate: Day | None = Field(
        default=None, description="The brewing day; without it the local day of the machine, today."
    )
    notes: Notes | None = None
    folder_id: RecordNumber | None = Field(default=None, description="Session folder; 0 is none.")
    upstream_id: RecordNumber | None = Field(
        default=None, description="The session's number at the service that is forwarded to; 0 stops that."
    )
    og: Numeral | None = Field(
        default=None, description="The original gravity, measured by hand; empty takes it back."
    )
    og_unit: Literal["G", "P"] | None = Field(default=None, description="G without it.")
    send_notes: bool | None = Field(
        default=None, description="Notes are sent on, each as a reading with nothing but a comment."
    )
    lead_device: RecordNumber | None = Field(
        default=None,
        description="The device whose gravity the figures follow; 0 leaves the choice to the gateway.",
    )
    details: dict[DetailName, Detail | None] | None = Field(
        default=None,
        description=f"Kept and shown, nothing else; null unsets one. There are {', '.join(DETAIL_MEMBERS)}.",
        json_schema_extra={"propertyNames": {"enum": list(DETAIL_MEMBERS)}},
    )

    def change(self, recipe_id: int | None = None) -> SessionChange:
        """Return the body as a change for the service."""
        return SessionChange(
            recipe_id=recipe_id,
            batchcode=self.batchcode,
            phase=self.phase,
            userdate=None if self.userdate is None else self.userdate.isoformat(),
            notes=self.notes,
            folder_id=self.folder_id,
            upstream_id=self.upstream_id,
            details=self.details or {},
            og=self.og,
            og_unit=self.og_unit,
            send_notes=self.send_notes,
            lead_device=self.lead_device,
        )


Again = Annotated[
    bool, Field(description="True lets a second brew session under way have the same batch code.")
]


class NewBrewSession(SessionBody):
    """A new brew session, from a recipe or with a batch code."""

    model_config = ConfigDict(json_schema_extra=ONE_OF_BOTH)

    recipe_id: RecordNumber | None = Field(
        default=None, description="The recipe that is brewed; the session takes a copy of it. 0 is none."
    )
    device_id: RecordNumber | None = Field(
        default=None, description="The device that is in it. A device in another brew session leaves that."
    )
    since: Moment | None = Field(
        default=None,
        description="Readings of the device since then come along, from no brew session and from the one "
        "that the device leaves.",
    )
    again: Again = False


class BrewSessionChange(SessionBody):
    """A change to a brew session; its recipe cannot change."""

    ended: bool | None = Field(
        default=None,
        description="True marks the brew done: its devices are free, and the phase is `Conditioning` if the "
        "body names none. False takes that back: devices that are still free return.",
    )


class NextBrew(Body):
    """The next beer. Its brew session takes over the devices of the brew session in the path."""

    model_config = ConfigDict(json_schema_extra=ONE_OF_BOTH)

    recipe_id: RecordNumber | None = Field(default=None, description="The recipe that is brewed.")
    batchcode: Words | None = Field(default=None, max_length=TEXT_CHARACTERS)
    upstream_id: RecordNumber | None = Field(
        default=None, description="Its number at the one target that takes the brew session in the path."
    )
    phase: Text = Field(
        default=PHASE_AFTER_FERMENTING,
        max_length=TEXT_CHARACTERS,
        description="The phase of the beer that is done fermenting.",
    )
    since: Moment | None = Field(
        default=None,
        description="The moment at which the next beer began: the devices' readings since then are its own.",
    )
    again: Again = False


class ChangedBrewSession(OneBrewSession):
    """A brew session after the change, and warnings for the user."""

    warnings: list[str] = Field(description="In sentences: others under way have its batch code, too.")
    nowhere: str | None = Field(description="A sentence, if there are targets and none takes it.")


class NextBrewSession(ChangedBrewSession):
    """The brew session of the next beer, and the devices that report into it now."""

    devices: list[str] = Field(description="Their shortest names, quoted for a shell.")


class DeletedBrewSession(AnswerModel):
    """A brew session that was deleted, and the names of the devices that are free again."""

    message: Literal["success"] = "success"
    batchcode: str
    devices: list[str]


class UndeletedBrewSession(AnswerModel):
    """A brew session that is back, and the number of its readings."""

    message: Literal["success"] = "success"
    batchcode: str
    readings: int


class PurgedBrewSession(AnswerModel):
    """The number of readings that were deleted for good."""

    message: Literal["success"] = "success"
    readings: int


async def add_session(call: Call[Query, NewBrewSession]) -> ChangedBrewSession:
    """Make a brew session, with the copy of its recipe that later changes do not reach."""
    recipe_id, account_id = call.body.recipe_id, call.caller.account_id
    if recipe_id and (recipe := await call.store.recipes.get(recipe_id)) is not None:
        account_id = call.caller.account_beside(recipe.account_id)
    if call.body.device_id:
        check_owner(call.caller)
    made = await call.services.brewsessions.add_session(
        account_id,
        call.body.change(recipe_id),
        device_id=call.body.device_id or None,
        since=call.body.since,
        again=call.body.again,
    )
    return ChangedBrewSession.model_validate(await _changed(call.services, made))


async def update_session(call: Call[Query, BrewSessionChange]) -> ChangedBrewSession:
    """Change the given members of a brew session."""
    session = await own_session(call)
    change = replace(call.body.change(), ended=call.body.ended)
    changed = await call.services.brewsessions.update_session(session, change)
    return ChangedBrewSession.model_validate(await _changed(call.services, changed))


async def next_session(call: Call[Query, NextBrew]) -> NextBrewSession:
    """Make the brew session of the next beer, and move the devices of the old session into it."""
    old, services, given = await own_session(call), call.services, call.body
    number = given.upstream_id
    target = await _target_of(services, old) if number else None
    change = SessionChange(
        recipe_id=given.recipe_id, batchcode=given.batchcode, upstream_id=None if target else number
    )
    done = await services.brewsessions.next_session(old, given.phase, change, given.since, again=given.again)
    if target is not None and number:
        await services.targets.map(done.session, target.name, number)
    devices = await services.store.devices.all()
    names = [called(device, devices) for device in done.devices]
    return NextBrewSession.model_validate({**await _changed(services, done.session), "devices": names})


async def _target_of(services: Services, session: BrewSession) -> Target | None:
    """Return the target of a brew session, None if it has none; `InvalidInput` if it has several."""
    targets = await services.store.targets.all()
    takers = [target for target in targets if session.id in await services.store.targets.sessions(target)]
    if len(takers) > 1:
        names = ", ".join(target.name for target in takers)
        raise InvalidInput(
            f"brew session {which(session)} goes to several targets ({names}): leave out --upstream-id, "
            "and say the numbers of the new one by `targets map`"
        )
    return takers[0] if takers else None


async def _changed(services: Services, session: BrewSession) -> dict[str, Any]:
    """Return the members of a `ChangedBrewSession`."""
    warning = twin_warning(session, await services.brewsessions.twins(session))
    nowhere = await session_to_nowhere(services.store, session)
    return {
        "brewsessions": (await shown(services.store, session)).brewsessions,
        "warnings": [] if warning is None else [warning],
        "nowhere": None if nowhere is None else f"{nowhere.text}; {nowhere.remedy}",
    }


async def delete_session(call: Call[Query, None]) -> DeletedBrewSession:
    """Delete a brew session; its devices are free again."""
    session = await own_session(call)
    names = [device.name for device in await call.store.devices.all() if device.session_id == session.id]
    await call.services.brewsessions.delete_session(session)
    return DeletedBrewSession(batchcode=session.batchcode, devices=names)


async def undelete_session(call: Call[Query, None]) -> UndeletedBrewSession:
    """Bring a deleted brew session back with its readings; devices have to be assigned again."""
    found = await _deleted(call)
    session = await call.services.brewsessions.undelete_session(found.session.id)
    return UndeletedBrewSession(batchcode=session.batchcode, readings=found.readings)


async def purge_session(call: Call[Query, None]) -> PurgedBrewSession:
    """Delete a deleted brew session and its readings for good."""
    found, progress = await _deleted(call), call.progress
    gone = await call.services.brewsessions.purge_session(
        found.session.id, lambda done: progress(done, found.readings, "readings deleted for good")
    )
    return PurgedBrewSession(readings=gone)


async def _deleted(call: Call[Query, None]) -> DeletedSession:
    """Return the deleted brew session that the path names; `NotFound` if there is none."""
    number = call.path_id("brew_session_id")
    for found in await call.store.sessions.deleted():
        if found.session.id == number and call.caller.may_see(found.session.account_id):
            return found
    raise NotFound


ENDPOINTS = (
    Endpoint(
        "POST",
        "/manage/brewsessions",
        add_session,
        "Make a brew session",
        Query,
        ChangedBrewSession,
        body=NewBrewSession,
        refusals=(403, 404, 409),
    ),
    Endpoint(
        "PATCH",
        "/manage/brewsessions/{brew_session_id}",
        update_session,
        "Change a brew session",
        Query,
        ChangedBrewSession,
        body=BrewSessionChange,
    ),
    Endpoint(
        "DELETE",
        "/manage/brewsessions/{brew_session_id}",
        delete_session,
        "Delete a brew session",
        Query,
        DeletedBrewSession,
    ),
    Endpoint(
        "POST",
        "/manage/brewsessions/{brew_session_id}/next",
        next_session,
        "Make the brew session of the next beer",
        Query,
        NextBrewSession,
        body=NextBrew,
        refusals=(403, 404, 409),
    ),
    Endpoint(
        "POST",
        "/manage/brewsessions/{brew_session_id}/undelete",
        undelete_session,
        "Bring a deleted brew session back",
        Query,
        UndeletedBrewSession,
    ),
    Endpoint(
        "POST",
        "/manage/brewsessions/{brew_session_id}/purge",
        purge_session,
        "Delete a deleted brew session for good",
        Query,
        PurgedBrewSession,
        long=True,
    ),
)
"""Changes to brew sessions."""
