"""`/manage/targets`: the services that readings are forwarded to; for the owner's account only."""

from typing import Any

from pydantic import Field, model_validator

from gateway.domain.target import PER_MINUTE, PER_MINUTE_MAX
from gateway.domain.texts import shown_url
from gateway.domain.times import iso
from gateway.errors import Forbidden, InvalidInput, NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Page, Query, Single
from gateway.http.parameters import Moment, RecordNumber, Text, Words
from gateway.http.records import own_session
from gateway.network import sends_key_in_the_clear
from gateway.services.targets import TargetSummary
from gateway.services.unforwarded import devices_to_nowhere

COUNTS = ("pending", "forwarded", "refused", "not_forwarded", "edited")
"""Members that count readings, of a target and of each brew session there."""

PLAINTEXT = "Send the key to a public address over plain http, where anyone on the way can read it."

URL_CHARACTERS, KEY_CHARACTERS = 2000, 10_000


class TargetSession(AnswerModel):
    """Counts of a brew session's readings at a target.

    `upstream_id` is the session's number there, null if forwarding has ended. `edited` counts the readings
    that were edited here and are at the target as they were before.
    """

    session_id: int
    upstream_id: int | None
    pending: int
    forwarded: int
    refused: int
    not_forwarded: int
    edited: int


class TargetRecord(AnswerModel):
    """A target, its state in words, and counts of readings in all and by brew session.

    `next_at` is the time of the next attempt, `oldest_at` the arrival of the first pending reading, and
    `edited_since` the time of the first edited reading.
    """

    name: str
    url: str
    key_file: str = Field(description="The file on the gateway's disk that holds the API key.")
    per_minute: int
    paused: bool
    state: str
    next_at: str | None
    oldest_at: str | None
    edited_since: str | None
    pending: int
    forwarded: int
    refused: int
    not_forwarded: int
    edited: int
    sessions: list[TargetSession]


class Targets(Page):
    """All targets; `warnings` names the devices whose readings no target takes."""

    targets: list[TargetRecord]
    warnings: list[str]


class OneTarget(Single):
    """A single target."""

    targets: list[TargetRecord] = Field(min_length=1, max_length=1)


class NewTarget(Body):
    """A new target, with its key or with the file of its key."""

    name: Words = Field(description="Letters, digits, `-`, `_` and `.`, 64 of them at most.")
    url: Words = Field(max_length=URL_CHARACTERS, description="The address of the service, without `/v1`.")
    per_minute: int = Field(
        default=PER_MINUTE, ge=1, le=PER_MINUTE_MAX, description="Requests in any minute at most."
    )
    key: Words | None = Field(
        default=None, max_length=KEY_CHARACTERS, description="The API key; the gateway keeps it in a file."
    )
    key_file: Text | None = Field(
        default=None,
        description="A file on the gateway's disk that holds the API key; through the Unix socket only.",
    )

    plaintext: bool = Field(default=False, description=PLAINTEXT)

    @model_validator(mode="after")
    def _one_key(self) -> "NewTarget":
        if (self.key is None) == (self.key_file is None):
            raise ValueError("key is missing: the API key for that service")
        return self


class TargetLogin(Body):
    """Address and key of a target. Both are tried first, and kept only if they are right."""

    url: Words = Field(max_length=URL_CHARACTERS, description="The address of the service, without `/v1`.")
    key: Words = Field(max_length=KEY_CHARACTERS, description="The API key; the gateway keeps it in a file.")
    plaintext: bool = Field(default=False, description=PLAINTEXT)


class TargetChange(Body):
    """A change to a target."""

    paused: bool = Field(description="Nothing is sent while it is paused; everything is kept for it.")


class Mapping(Body):
    """The number of a brew session at a target."""

    upstream_id: RecordNumber = Field(description="The session's number there; 0 stops forwarding.")


class Mapped(Done):
    """A brew session and its number at the target, null if the session is no longer forwarded there."""

    brew_session_id: int
    batchcode: str
    upstream_id: int | None


class Resending(Body):
    """Readings that a target may have lost."""

    since: Moment = Field(description="ISO 8601, UTC where no zone is given: readings from then on.")
    brew_session_id: RecordNumber | None = Field(default=None, description="Only this brew session.")


class ResentSession(AnswerModel):
    """A brew session; `readings` is the number of its readings that are looked for at the target."""

    id: int
    readings: int


class Resends(Done):
    """Brew sessions whose readings are looked for at the target; the missing ones are sent."""

    brewsessions: list[ResentSession]


class TestFinding(AnswerModel):
    """A result of a test; unless it is `ok`, `text` names the remedy."""

    __test__ = False

    ok: bool
    text: str


class Tested(Done):
    """Results of the test of a target. The test leaves nothing there."""

    findings: list[TestFinding]


class RemoteSessionRecord(AnswerModel):
    """A brew session of the service.

    `here` are the ids of our brew sessions that are forwarded to it. `like` is the id of one that is under
    way with the same batch code and is not forwarded to this target, if there is one.
    """

    number: str
    batchcode: str
    name: str
    phase: str
    day: str
    here: list[int]
    like: int | None


class RemoteSessions(Page):
    """The brew sessions of the service, the newest first."""

    brewsessions: list[RemoteSessionRecord]


async def list_targets(call: Call[Query, None]) -> Targets:
    """List all targets, and warn of devices whose readings no target takes."""
    found = await call.services.targets.summaries()
    nowhere = await devices_to_nowhere(call.store, [each.target for each in found])
    return Targets(
        count=str(len(found)),
        targets=[_record(each) for each in found],
        warnings=[f"{one.text[0].upper()}{one.text[1:]}; {one.remedy}." for one in nowhere],
    )


async def add_target(call: Call[Query, NewTarget]) -> OneTarget:
    """Add a target, with a key of its own or with a file on the gateway's disk."""
    new, targets = call.body, call.services.targets
    _check_way(new.url, plaintext=new.plaintext)
    if new.key_file is None:
        await targets.add_with_key(new.name, new.url, new.key or "", new.per_minute)
    elif not call.caller.everywhere:
        # Not over TCP, because the gateway would send any file of its disk to a stranger as a key.
        raise Forbidden("a file of the gateway's disk is named through its Unix socket only; send the key")
    else:
        await targets.add(new.name, new.url, new.key_file, new.per_minute)
    return await _shown(call, new.name)


async def log_in(call: Call[Query, TargetLogin]) -> OneTarget:
    """Try address and key; if both are right, keep them, and add the target if it is new."""
    name = _name(call)
    _check_way(call.body.url, plaintext=call.body.plaintext)
    await call.services.targets.login(name, call.body.url, call.body.key)
    return await _shown(call, name)


async def change_target(call: Call[Query, TargetChange]) -> OneTarget:
    """Pause a target, or resume it."""
    targets = call.services.targets
    await (targets.pause if call.body.paused else targets.resume)(_name(call))
    return await _shown(call, _name(call))


async def remove_target(call: Call[Query, None]) -> Done:
    """Forget a target."""
    await call.services.targets.remove(_name(call))
    return Done()


async def map_session(call: Call[Query, Mapping]) -> Mapped:
    """Forward a brew session to a target, or stop forwarding it."""
    session, number = await own_session(call), call.body.upstream_id
    await call.services.targets.map(session, _name(call), number)
    return Mapped(brew_session_id=session.id, batchcode=session.batchcode, upstream_id=number or None)


async def send_on(call: Call[Query, Mapping]) -> Mapped:
    """Do as `map_session`, where the path begins with the brew session."""
    return await map_session(call)


async def resend(call: Call[Query, Resending]) -> Resends:
    """Look for readings at a target, and send the missing ones."""
    since, session_id = int(call.body.since), call.body.brew_session_id
    if session_id is not None:
        session = await call.store.sessions.get(session_id)
        if session is None or not call.caller.may_see(session.account_id):
            raise NotFound
    found = await call.services.targets.resend(_name(call), since, session_id)
    return Resends(brewsessions=[ResentSession(id=id, readings=count) for id, count in found.items()])


async def try_target(call: Call[Query, None]) -> Tested:
    """Ask a target whether address, key and brew sessions are right."""
    findings = await call.services.targets.test(_name(call))
    return Tested(findings=[TestFinding(ok=finding.ok, text=finding.words) for finding in findings])


async def remote_sessions(call: Call[Query, None]) -> RemoteSessions:
    """List the brew sessions that a target has."""
    found = await call.services.targets.remote_sessions(_name(call))
    records = [{**each.row, "here": each.here, "like": each.like} for each in found]
    return RemoteSessions(
        count=str(len(records)), brewsessions=[RemoteSessionRecord.model_validate(r) for r in records]
    )


def _check_way(url: str, *, plaintext: bool) -> None:
    """Refuse a key in the clear on the Internet, unless the caller wants just that."""
    if sends_key_in_the_clear(url.strip()) and not plaintext:
        raise InvalidInput(
            f"anyone on the way to {shown_url(url.strip())} can read the key: use https://, or say plaintext"
        )


def _name(call: Call[Any, Any]) -> str:
    return call.request.match_info["name"]


async def _shown(call: Call[Any, Any], name: str) -> OneTarget:
    return OneTarget(targets=[_record(await call.services.targets.summary(name))])


def _record(summary: TargetSummary) -> TargetRecord:
    target, deliveries = summary.target, summary.deliveries
    waiting_since = min((d.oldest_at for d in deliveries if d.oldest_at is not None), default=None)
    edited_since = min((d.edited_since for d in deliveries if d.edited_since is not None), default=None)
    return TargetRecord.model_validate(
        {
            "name": target.name,
            "url": target.url,
            "key_file": target.key_file,
            "per_minute": target.per_minute,
            "paused": target.paused,
            "state": summary.state.words,
            "next_at": None if summary.state.next_at is None else iso(summary.state.next_at),
            "oldest_at": None if waiting_since is None else iso(waiting_since / 1000),
            "edited_since": None if edited_since is None else iso(edited_since),
            **{name: sum(getattr(d, name) for d in deliveries) for name in COUNTS},
            "sessions": [{name: getattr(d, name) for name in TargetSession.model_fields} for d in deliveries],
        }
    )


NAMED = "/manage/targets/{name}"

ENDPOINTS = (
    Endpoint("GET", "/manage/targets", list_targets, "All targets", Query, Targets, owner_only=True),
    Endpoint(
        "POST",
        "/manage/targets",
        add_target,
        "Add a target",
        Query,
        OneTarget,
        body=NewTarget,
        refusals=(409,),
        owner_only=True,
    ),
    Endpoint(
        "PUT",
        NAMED,
        log_in,
        "Try address and key of a target, and keep them",
        Query,
        OneTarget,
        body=TargetLogin,
        refusals=(409,),
        owner_only=True,
    ),
    Endpoint(
        "PATCH",
        NAMED,
        change_target,
        "Pause a target, or go on",
        Query,
        OneTarget,
        body=TargetChange,
        owner_only=True,
    ),
    Endpoint("DELETE", NAMED, remove_target, "Forget a target", Query, Done, owner_only=True),
    Endpoint(
        "PUT",
        f"{NAMED}/brewsessions/{{brew_session_id}}",
        map_session,
        "Forward a brew session to a target",
        Query,
        Mapped,
        body=Mapping,
        owner_only=True,
    ),
    Endpoint(
        "PUT",
        "/manage/brewsessions/{brew_session_id}/targets/{name}",
        send_on,
        "Send a brew session on to a target, or stop that",
        Query,
        Mapped,
        body=Mapping,
        owner_only=True,
    ),
    Endpoint(
        "GET",
        f"{NAMED}/brewsessions",
        remote_sessions,
        "The brew sessions that a target has",
        Query,
        RemoteSessions,
        owner_only=True,
    ),
    Endpoint(
        "POST",
        f"{NAMED}/resend",
        resend,
        "Look for readings at a target, and send the missing ones",
        Query,
        Resends,
        body=Resending,
        owner_only=True,
    ),
    Endpoint("POST", f"{NAMED}/test", try_target, "Try out a target", Query, Tested, owner_only=True),
)
"""Targets."""
