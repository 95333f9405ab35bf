"""Looking at a target without leaving a reading there: address, key, and the numbers of brew sessions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.domain.delivery import DeliveryResult
from gateway.errors import InvalidInput
from gateway.forward.answers import TargetAnswer, document_of
from gateway.forward.import_target import ImportTarget, ReadBackFailed
from gateway.network import sends_key_in_the_clear

SESSIONS = 50
"""Brew sessions that are asked for at most."""

LISTED = "/v1/brewsessions"
ONE = {"limit": "1"}

NO_SUCH, TOO_MANY = 404, 429

PAGE, LISTED_MAX = 100, 1000
"""Brew sessions that are asked for at once, and in all."""

TEXT_CHARACTERS = 200
"""Of what a service says of a brew session."""

DAY_CHARACTERS = len("2026-03-01")

Row = dict[str, str]
"""A brew session there: number, batchcode, name, phase, day."""


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """One thing that was looked at, in words that name the remedy where it is not well."""

    ok: bool
    words: str


async def probe(target: ImportTarget, name: str, sessions: Mapping[int, int]) -> list[ProbeFinding]:
    """Ask the target of that name about brew sessions: its number there by ours; none asks for the list."""
    found: list[ProbeFinding] = []
    if sends_key_in_the_clear(target.name):
        found.append(ProbeFinding(False, "plain http: anyone on the way can read the key; use https"))
    try:
        if not sessions:
            found += await _without_sessions(target, name)
        for session_id, upstream_id in sorted(sessions.items())[:SESSIONS]:
            found.append(await _session(target, name, session_id, upstream_id))
    except ReadBackFailed as error:
        found.append(_failed(target, error))
    return found


async def reached(target: ImportTarget) -> ProbeFinding:
    """Whether address and key are right."""
    try:
        answer = await target.look(LISTED, ONE)
    except ReadBackFailed as error:
        return _failed(target, error)
    if _is_success(answer):
        return ProbeFinding(True, "address and key are right")
    return _unwell(target, answer)


async def brew_sessions(target: ImportTarget) -> list[Row]:
    """The brew sessions there, the newest first, so many at most; `InvalidInput` says why there are none."""
    found: list[Row] = []
    while len(found) < LISTED_MAX:
        query = {"sort": "created_at:-1", "limit": str(PAGE), "offset": str(len(found))}
        try:
            answer = await target.look(LISTED, query)
        except ReadBackFailed as error:
            raise InvalidInput(_failed(target, error).words) from error
        if not _is_success(answer):
            raise InvalidInput(_unwell(target, answer).words)
        rows = document_of(answer.body).get("brewsessions")
        page = [_row(row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        if not page or page[0] in found:  # nothing more, or a service that does not know `offset`
            break
        found += page
    return found[:LISTED_MAX]


def _row(record: dict[str, Any]) -> Row:
    names = {"number": "id", "batchcode": "batchcode", "name": "recipe_title", "phase": "phase"}
    row = {name: _text(record.get(member)) for name, member in names.items()}
    day = _text(record.get("userdate")) or _text(record.get("created_at"))[:DAY_CHARACTERS]
    return {**row, "day": day}


def _text(value: object) -> str:
    return "" if value is None else str(value)[:TEXT_CHARACTERS]


def _failed(target: ImportTarget, error: ReadBackFailed) -> ProbeFinding:
    if error.outcome.verdict is DeliveryResult.PAUSED:
        return ProbeFinding(False, str(error))
    return ProbeFinding(False, f"{target.name} gives no answer: {error}; look at the address and the network")


async def _without_sessions(target: ImportTarget, name: str) -> list[ProbeFinding]:
    found = await reached(target)
    if not found.ok:
        return [found]
    remedy = f"`targets sessions {name}` shows what there is, `targets map {name}` forwards one"
    return [found, ProbeFinding(False, f"no brew session is forwarded there yet; {remedy}")]


async def _session(target: ImportTarget, name: str, session_id: int, upstream_id: int) -> ProbeFinding:
    which = f"brew session {session_id} is {upstream_id} there"
    answer = await target.look(f"/v1/fermentation/{upstream_id}", ONE)
    if _is_success(answer):
        return ProbeFinding(True, f"{which}: it can be read with this key")
    if not _is_not_found(answer):
        return _unwell(target, answer)
    # "no records found" is also the words for a brew session that has no readings yet
    if _is_success(await target.look(f"{LISTED}/{upstream_id}", {})):
        return ProbeFinding(True, f"{which}: it has no readings yet")
    remedy = f"`targets sessions {name}` shows the numbers, `targets map` corrects it"
    return ProbeFinding(False, f"{which}, but there is no such brew session there; {remedy}")


def _is_success(answer: TargetAnswer) -> bool:
    return answer.status == 200 and document_of(answer.body).get("message") == "success"


def _is_not_found(answer: TargetAnswer) -> bool:
    return answer.status == NO_SUCH and document_of(answer.body).get("message") == "not-found"


def _unwell(target: ImportTarget, answer: TargetAnswer) -> ProbeFinding:
    """What is to blame for an answer, and what to do."""
    reason = target.client.reason(answer)
    status = answer.status
    if status in {401, 403}:
        words = f"{target.name} answers, but the key is refused ({reason}); `targets login` takes another"
    elif 300 <= status < 400:
        words = f"{target.name}: {reason}; name the address that it redirects to instead"
    elif status == TOO_MANY:
        words = f"{target.name} wants fewer requests ({reason}); try again in some minutes"
    elif status >= 500:
        words = f"{target.name} has trouble of its own ({reason}); try again later"
    else:
        words = (
            f"{target.name} answers, but not as a Brewing Data Service does ({reason}); look at the address"
        )
    return ProbeFinding(False, words)
