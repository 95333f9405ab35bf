"""`/manage/brewsessions`: making, changing and deleting brew sessions."""

from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.config import JsonDict

from gateway.api.brewsessions import OneBrewSession, shown
from gateway.domain.brewsession import DETAIL_MEMBERS, BrewSession
from gateway.http.endpoint import Body, Call, Done, Endpoint, Query
from gateway.http.parameters import Day, RecordNumber, Text, Words, no_nul
from gateway.http.records import own_session
from gateway.services.brewsessions import NOTES_CHARACTERS, TEXT_CHARACTERS, SessionChange
from gateway.services.build import Services
from gateway.services.unforwarded import twin_warning

ONE_OF_BOTH: JsonDict = {"anyOf": [{"required": ["batchcode"]}, {"required": ["recipe_id"]}]}


def _kept(name: str) -> str:
    if name not in DETAIL_MEMBERS:
        raise ValueError("is none of a brew session's details")
    return name


DetailName = Annotated[str, AfterValidator(_kept)]
Notes = Annotated[str, Field(max_length=NOTES_CHARACTERS), AfterValidator(no_nul)]
Detail = Annotated[Text, Field(max_length=TEXT_CHARACTERS)]


class SessionBody(Body):
    """What can be said of a brew session; what is left out stays as it is."""

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
    details: dict[DetailName, Detail | None] | None = Field(
        default=None,
        description=f"Kept and shown, nothing else; null unsets one. There are {', '.join(DETAIL_MEMBERS)}.",
        json_schema_extra={"propertyNames": {"enum": list(DETAIL_MEMBERS)}},
    )

    def change(self, recipe_id: int | None = None) -> SessionChange:
        """The same as the service takes it."""
        return SessionChange(
            recipe_id=recipe_id,
            batchcode=self.batchcode,
            phase=self.phase,
            userdate=None if self.userdate is None else self.userdate.isoformat(),
            notes=self.notes,
            folder_id=self.folder_id,
            upstream_id=self.upstream_id,
            details=self.details or {},
        )


class NewBrewSession(SessionBody):
    """A brew session to be made, from a recipe or with a batch code."""

    model_config = ConfigDict(json_schema_extra=ONE_OF_BOTH)

    recipe_id: RecordNumber | None = Field(
        default=None, description="The recipe that is brewed; the session takes a copy of it. 0 is none."
    )


class BrewSessionChange(SessionBody):
    """A change to a brew session; the recipe stays the one that it began with."""


class ChangedBrewSession(OneBrewSession):
    """One brew session, and what the user should know about it."""

    warnings: list[str] = Field(description="In sentences: others under way have its batch code, too.")


async def add_session(call: Call[Query, NewBrewSession]) -> ChangedBrewSession:
    """Make a brew session, with the copy of its recipe that later changes do not reach."""
    wanted = call.body
    made = await call.services.brewsessions.add_session(
        call.caller.account_id, wanted.change(wanted.recipe_id)
    )
    return await _changed(call.services, made)


async def update_session(call: Call[Query, BrewSessionChange]) -> ChangedBrewSession:
    """Write what is said over what was."""
    session = await own_session(call)
    return await _changed(
        call.services, await call.services.brewsessions.update_session(session, call.body.change())
    )


async def _changed(services: Services, session: BrewSession) -> ChangedBrewSession:
    warning = twin_warning(session, await services.brewsessions.twins(session))
    answer = await shown(services.store, session)
    return ChangedBrewSession(brewsessions=answer.brewsessions, warnings=[] if warning is None else [warning])


async def delete_session(call: Call[Query, None]) -> Done:
    """Delete a brew session; its devices are free again."""
    await call.services.brewsessions.delete_session(await own_session(call))
    return Done()


ENDPOINTS = (
    Endpoint(
        "POST",
        "/manage/brewsessions",
        add_session,
        "Make a brew session",
        Query,
        ChangedBrewSession,
        body=NewBrewSession,
        refusals=(404,),
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
        Done,
    ),
)
"""Brew sessions."""
