"""`GET /manage/devices/:id/capture`: a device's payloads as test cases to share; for the owner only."""

import asyncio
from collections import Counter
from typing import Any

from pydantic import Field

from gateway.errors import InvalidInput, NotFound
from gateway.http.endpoint import AnswerModel, Call, Done, Endpoint, Query

PAYLOADS, PAYLOADS_MAX = 10, 1_000
"""Payloads in one answer, by default and at most: nobody reads more before sharing them."""


class CaptureQuery(Query):
    """Choice of payloads."""

    last: int = Field(
        default=PAYLOADS, ge=1, le=PAYLOADS_MAX, description="How many, counted from the newest."
    )


class CapturedPayload(AnswerModel):
    """A test case without names and keys; `name` is its file's name, with the folder of its family."""

    name: str
    content: dict[str, Any]


class Captured(Done):
    """Test cases of a device; `left_out` counts the payloads that gave none, by reason."""

    device: str
    cases: list[CapturedPayload]
    payloads: int
    left_out: dict[str, int]


async def capture(call: Call[CaptureQuery, None]) -> Captured:
    """Turn the device's newest payloads into test cases, oldest first."""
    # Here, because only this endpoint needs the names that `redact` knows.
    from gateway.capture import Capturing, NotCaptured, newest_payloads

    device_id, store = call.path_id("device_id"), call.store
    summaries = await store.devices.summaries()
    summary = next((each for each in summaries if each.device.id == device_id), None)
    if summary is None:
        raise NotFound
    device, last = summary.device, call.query.last
    if summary.last_seen_at is None:
        raise InvalidInput(f"{device.key} has sent nothing that is kept")
    payloads = await newest_payloads(store, device, summary.last_seen_at, last)
    capturing, cases = Capturing(), []
    reasons: Counter[str] = Counter()
    for done, sent in enumerate(payloads, 1):
        try:
            case = await asyncio.to_thread(capturing.case, device, sent)
            cases.append(CapturedPayload(name=case.name, content=case.content))
        except NotCaptured as error:
            reasons[str(error)] += 1
        call.progress(done, len(payloads), "payloads captured")
    return Captured(device=device.key, cases=cases, payloads=len(payloads), left_out=dict(reasons))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/manage/devices/{device_id}/capture",
        capture,
        "A device's payloads as test cases to share",
        CaptureQuery,
        Captured,
        long=True,
        owner_only=True,
    ),
)
"""Capture."""
