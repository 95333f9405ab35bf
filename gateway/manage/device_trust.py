"""`/manage/devices/{device_id}`: bind a device to an address, and forget a device."""

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from gateway.errors import InvalidInput
from gateway.http.endpoint import Body, Call, Done, Endpoint, Query
from gateway.http.parameters import Flag, Moment, Words
from gateway.network import address_in

ADDRESS_CHARACTERS = 64


class SourceBinding(Body):
    """The only address that a device may report from; of an IPv6 address its network (/64) counts."""

    source: Words = Field(max_length=ADDRESS_CHARACTERS, description="An IPv4 or IPv6 address.")


class ForgetQuery(Query):
    """What goes with the device."""

    with_readings: Flag = Field(default=False, description="Delete its readings for good, too.")
    unless_since: Moment | None = Field(
        default=None, description="Only if the device has not reported since: else 409."
    )


class ForgottenDevice(Done):
    """Counts of its readings: `kept` ones, `unassigned` ones among them, and `deleted` ones."""

    kept: int
    unassigned: int = Field(description="Kept readings in no brew session.")
    deleted: int


async def bind(call: Call[Query, SourceBinding]) -> Done:
    """Let a device report from one address only; what comes from elsewhere waits in the inbox."""
    return await _set_source(call, _address(call.body.source))


async def unbind(call: Call[Query, None]) -> Done:
    """Let a device report from every address again."""
    return await _set_source(call, "")


async def forget(call: Call[ForgetQuery, None]) -> ForgottenDevice:
    """Forget a device with its settings; its readings stay in their brew sessions, or are deleted."""
    device, query = await call.services.devices.find(call.path_id("device_id")), call.query
    since = None if query.unless_since is None else int(query.unless_since)
    done = await call.services.forgetting.forget(
        device, with_readings=query.with_readings, unless_since=since, progress=call.progress
    )
    return ForgottenDevice(kept=done.kept, unassigned=done.unassigned, deleted=done.deleted)


async def _set_source(call: Call[Any, Any], source: str) -> Done:
    device_id = call.path_id("device_id")
    await call.services.devices.configure(device_id, lambda settings: replace(settings, source=source))
    return Done()


def _address(text: str) -> str:
    address = address_in(text)
    if address is None:
        raise InvalidInput(f"{text!r} is no address, such as 192.168.1.37")
    return address


def _row(
    method: str, path: str, handler: Any, summary: str, answer: type[BaseModel], **more: Any
) -> Endpoint[Any, Any]:
    query = more.pop("query", Query)
    where = f"/manage/devices/{{device_id}}{path}"
    return Endpoint(method, where, handler, summary, query, answer, owner_only=True, **more)


ENDPOINTS = (
    _row("PUT", "/source", bind, "Let a device report from one address only", Done, body=SourceBinding),
    _row("DELETE", "/source", unbind, "Let a device report from every address", Done),
    _row(
        "DELETE",
        "",
        forget,
        "Forget a device",
        ForgottenDevice,
        query=ForgetQuery,
        refusals=(409,),
        long=True,
    ),
)
"""Binding and forgetting devices."""
