"""`/manage/targets`: the services that readings are forwarded to; for the owner's account only."""

from typing import Any, Literal

from pydantic import Field, model_validator

from gateway.domain.target import PER_MINUTE, PER_MINUTE_MAX, SERVICE, Route, StateKind
from gateway.domain.texts import shown_url
from gateway.domain.times import iso
from gateway.errors import Forbidden, InvalidInput, NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Page, Query, Single
from gateway.http.parameters import Moment, RecordNumber, Text, Words
from gateway.http.records import own_session
from gateway.network import sends_key_in_the_clear
from gateway.services.mapped_targets import NewMapped
from gateway.services.targets import TargetSummary
from gateway.services.unforwarded import devices_to_nowhere

COUNTS = ("pending", "forwarded", "refused", "superseded", "not_forwarded", "edited")
"""Members that count readings, of a target and of each brew session there."""

PLAINTEXT = "Send the key to a public address over plain http, where anyone on the way can read it."

URL_CHARACTERS, KEY_CHARACTERS = 2000, 10_000

SETTINGS, SETTING_CHARACTERS, KIND_CHARACTERS = 20, 16_384, 64
"""Settings of a kind at most, and characters of one: a template is the longest."""


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
    superseded: int
    not_forwarded: int
    edited: int


class TargetRoute(AnswerModel):
    """What goes to a target: the readings of a device or a brew session by its id, or all (id 0)."""

    what: Literal["all", "device", "brew"]
    id: int
    name: str = Field(description="The name of the device, or the batch code of the brew session.")


class TargetRecord(AnswerModel):
    """A target, its state in words, and counts of readings in all and by brew session.

    `next_at` is the time of the next attempt, `oldest_at` the arrival of the first pending reading, and
    `edited_since` the time of the first edited reading. `latest` targets get the newest reading of a device
    only; others are `superseded`. `routes` is empty for a Brewing Data Service, which takes brew sessions.
    """

    name: str
    kind: str
    url: str = Field(description="The address, without what is a secret.")
    latest: bool
    routes: list[TargetRoute]
    key_file: str = Field(description="The file on the gateway's disk that holds the API key; may be empty.")
    per_minute: int
    paused: bool
    state: str
    state_kind: StateKind = Field(description="The same, as one of a few words.")
    next_at: str | None
    oldest_at: str | None
    edited_since: str | None
    pending: int
    forwarded: int
    refused: int
    superseded: int
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
    """A new target, with its key or with the file of its key.

    A target of another kind than `service` gets nothing before a route is added.
    """

    name: Words = Field(description="Letters, digits, `-`, `_` and `.`, 64 of them at most.")
    kind: Words = Field(default=SERVICE, max_length=KIND_CHARACTERS, description="The kind of service.")
    url: Text = Field(
        default="",
        max_length=URL_CHARACTERS,
        description="The address; of a Brewing Data Service without `/v1`.",
    )
    url_file: Text | None = Field(
        default=None,
        description="A file on the gateway's disk that holds the address; through the Unix socket only.",
    )
    private_url: bool = Field(
        default=False, description="The address is a secret: the gateway keeps it in a file."
    )
    settings: dict[str, str | int | float | bool] = Field(
        default_factory=dict,
        max_length=SETTINGS,
        description="Settings of the kind: `org`, `bucket`, `api`; `topic`, `user`; `preset`, `body`, "
        "`content_type`, `batch`, `latest`, `min_interval_s`.",
    )
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
        if self.kind == SERVICE and (self.key is None) == (self.key_file is None):
            raise ValueError("key is missing: the API key for that service")
        if self.kind == SERVICE and not self.url.strip():
            raise ValueError("url is missing: the address of the service")
        if self.key is not None and self.key_file is not None:
            raise ValueError("key and key_file: one of them")
        if self.url and self.url_file is not None:
            raise ValueError("url and url_file: one of them")
        if any(isinstance(text, str) and len(text) > SETTING_CHARACTERS for text in self.settings.values()):
            raise ValueError(f"a setting has {SETTING_CHARACTERS} characters at most")
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
    device_id: RecordNumber | None = Field(
        default=None, description="Only this device; of a target that is no Brewing Data Service."
    )


class ResentSession(AnswerModel):
    """A brew session; `readings` is the number of its readings that are looked for at the target."""

    id: int
    readings: int


class Resends(Done):
    """Brew sessions whose readings are looked for at the target; the missing ones are sent.

    A target of another kind gets all of them again; they are counted by `devices`, 0 for readings of none.
    """

    brewsessions: list[ResentSession]
    devices: list[ResentSession] = Field(default_factory=list)


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
        targets=[await _record(call, each) for each in found],
        warnings=[f"{one.text[0].upper()}{one.text[1:]}; {one.remedy}." for one in nowhere],
    )


async def add_target(call: Call[Query, NewTarget]) -> OneTarget:
    """Add a target, with a key of its own or with a file on the gateway's disk."""
    new, targets = call.body, call.services.targets
    if new.key or new.key_file:
        _check_way(new.url, plaintext=new.plaintext)
    if not call.caller.everywhere and (new.key_file is not None or new.url_file is not None):
        # Not over TCP, because the gateway would send any file of its disk to a stranger as a key.
        raise Forbidden("a file of the gateway's disk is named through its Unix socket only; send the key")
    if new.kind != SERVICE:
        mapped = NewMapped(
            new.name,
            new.kind,
            new.url.strip(),
            new.url_file or "",
            private_url=new.private_url,
            key=new.key or "",
            key_file=new.key_file or "",
            per_minute=new.per_minute,
            options=new.settings,
        )
        await call.services.mapped.add(mapped)
    elif new.key_file is None:
        await targets.add_with_key(new.name, new.url, new.key or "", new.per_minute)
    else:
        await targets.add(new.name, new.url, new.key_file, new.per_minute)
    return await _shown(call, new.name)


async def log_in(call: Call[Query, TargetLogin]) -> OneTarget:
    """Try address and key; if both are right, keep them, and add the target if it is new."""
    name = target_name(call)
    _check_way(call.body.url, plaintext=call.body.plaintext)
    await call.services.targets.login(name, call.body.url, call.body.key)
    return await _shown(call, name)


async def change_target(call: Call[Query, TargetChange]) -> OneTarget:
    """Pause a target, or resume it."""
    targets = call.services.targets
    await (targets.pause if call.body.paused else targets.resume)(target_name(call))
    return await _shown(call, target_name(call))


async def remove_target(call: Call[Query, None]) -> Done:
    """Forget a target."""
    await call.services.targets.remove(target_name(call))
    return Done()


async def map_session(call: Call[Query, Mapping]) -> Mapped:
    """Forward a brew session to a target, or stop forwarding it."""
    session, number = await own_session(call), call.body.upstream_id
    await call.services.targets.map(session, target_name(call), number)
    return Mapped(brew_session_id=session.id, batchcode=session.batchcode, upstream_id=number or None)


async def send_on(call: Call[Query, Mapping]) -> Mapped:
    """Do as `map_session`, where the path begins with the brew session."""
    return await map_session(call)


async def resend(call: Call[Query, Resending]) -> Resends:
    """Look for readings at a target, and send the missing ones."""
    since, session_id = int(call.body.since), call.body.brew_session_id
    if (await call.services.targets.named(target_name(call))).kind != SERVICE:
        if session_id is not None:
            raise InvalidInput("that target knows no brew sessions; name a device, or nothing")
        sent = await call.services.mapped.resend(target_name(call), since, call.body.device_id)
        devices = [ResentSession(id=device_id, readings=count) for device_id, count in sent.items()]
        return Resends(brewsessions=[], devices=devices)
    if session_id is not None:
        session = await call.store.sessions.get(session_id)
        if session is None or not call.caller.may_see(session.account_id):
            raise NotFound
    found = await call.services.targets.resend(target_name(call), since, session_id)
    return Resends(brewsessions=[ResentSession(id=id, readings=count) for id, count in found.items()])


async def try_target(call: Call[Query, None]) -> Tested:
    """Ask a target whether address, key and brew sessions are right."""
    findings = await call.services.targets.test(target_name(call))
    return Tested(findings=[TestFinding(ok=finding.ok, text=finding.words) for finding in findings])


async def remote_sessions(call: Call[Query, None]) -> RemoteSessions:
    """List the brew sessions that a target has."""
    found = await call.services.targets.remote_sessions(target_name(call))
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


def target_name(call: Call[Any, Any]) -> str:
    """Return the name of a target that the path has."""
    return call.request.match_info["name"]


async def _shown(call: Call[Any, Any], name: str) -> OneTarget:
    return OneTarget(targets=[await _record(call, await call.services.targets.summary(name))])


async def _record(call: Call[Any, Any], summary: TargetSummary) -> TargetRecord:
    target, deliveries = summary.target, summary.deliveries
    routes = [] if target.kind == SERVICE else await call.services.mapped.routes(target)
    waiting_since = min((d.oldest_at for d in deliveries if d.oldest_at is not None), default=None)
    edited_since = min((d.edited_since for d in deliveries if d.edited_since is not None), default=None)
    return TargetRecord.model_validate(
        {
            "name": target.name,
            "kind": target.kind,
            "url": target.url if target.kind == SERVICE else target.address,
            "latest": target.latest,
            "routes": [{"what": r.what, "id": r.id, "name": await _route_name(call, r)} for r in routes],
            "key_file": target.key_file,
            "per_minute": target.per_minute,
            "paused": target.paused,
            "state": summary.state.words,
            "state_kind": summary.state.kind,
            "next_at": None if summary.state.next_at is None else iso(summary.state.next_at),
            "oldest_at": None if waiting_since is None else iso(waiting_since / 1000),
            "edited_since": None if edited_since is None else iso(edited_since),
            **{name: sum(getattr(d, name) for d in deliveries) for name in COUNTS},
            "sessions": [
                {name: getattr(d, name) for name in TargetSession.model_fields}
                for d in deliveries
                if d.session_id
            ],
        }
    )


async def _route_name(call: Call[Any, Any], route: Route) -> str:
    if route.what == "device":
        device = await call.store.devices.get(route.id)
        return "" if device is None else device.title
    session = await call.store.sessions.get(route.id) if route.what == "brew" else None
    return "" if session is None else session.batchcode


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
