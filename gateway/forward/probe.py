"""Checks of a target that leave no reading there: address, key, and the numbers of brew sessions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.domain.delivery import DeliveryResult
from gateway.errors import InvalidInput, unreachable
from gateway.forward.answers import TargetAnswer, document_of
from gateway.forward.kinds import MappedKind, ReadBackFailed
from gateway.forward.kinds.service import ImportTarget
from gateway.network import sends_key_in_the_clear

SESSIONS = 50
"""Brew sessions that one probe checks at most."""

BEHIND_A_PROXY = frozenset({407, 511})
"""Statuses of a proxy, and of a network that wants a login (RFC 9110, RFC 6585)."""

IN_FRONT_OF_IT = frozenset({502, 504})
"""Statuses of a proxy that stands in front of the service and gets no answer from it (RFC 9110)."""

SESSIONS_PATH = "/v1/brewsessions"
ONE = {"limit": "1"}

NOT_FOUND, TOO_MANY = 404, 429

PAGE, LIST_MAX = 100, 1000
"""Brew sessions of a list that are asked for in one request, and in all."""

TEXT_CHARACTERS = 200
"""Characters kept of each text that a service gives of a brew session."""

DAY_CHARACTERS = len("2026-03-01")

Row = dict[str, str]
"""A brew session of the service: number, batchcode, name, phase, day."""


ProbeKind = Literal[
    "right",
    "plaintext",
    "nothing_forwarded",
    "session_right",
    "session_empty",
    "session_missing",
    "no_answer",
    "key_file",
    "key_refused",
    "redirected",
    "too_many",
    "trouble",
    "no_service",
    "can_be_used",
    "cannot_be_used",
    "nothing_mapped",
]
"""Kinds of findings, for whoever has words of their own for them."""


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """The result of a check in words, with the remedy if the check failed; its kind, and values for it."""

    ok: bool
    words: str
    kind: ProbeKind
    values: Mapping[str, str] = field(default_factory=dict)


async def probe(target: ImportTarget, name: str, sessions: Mapping[int, int]) -> list[ProbeFinding]:
    """Check whether the target named `name` knows brew sessions, given as its numbers by our ids.

    Without brew sessions, check address and key alone.
    """
    found: list[ProbeFinding] = []
    if sends_key_in_the_clear(target.name):
        words = "plain http: anyone on the way can read the key; use https"
        found.append(ProbeFinding(False, words, "plaintext"))
    try:
        if not sessions:
            found.append(await reached(target))
            if found[-1].ok:
                remedy = (
                    f"`targets sessions {name}` shows its brew sessions, `targets map {name}` forwards one"
                )
                words = f"no brew session is forwarded there yet; {remedy}"
                found.append(ProbeFinding(False, words, "nothing_forwarded"))
        for session_id, upstream_id in sorted(sessions.items())[:SESSIONS]:
            found.append(await _session(target, name, session_id, upstream_id))
    except ReadBackFailed as error:
        found.append(_failed(target, error))
    return found


async def probe_mapped(target: MappedKind, name: str, *, goes: bool) -> list[ProbeFinding]:
    """Check a target of another kind; `goes` says whether anything goes there. Close it in the end."""
    try:
        checks = await target.test()
    finally:
        await target.close()
    found = []
    for check in checks:
        kind: ProbeKind = "can_be_used" if check.ok else "cannot_be_used"
        found.append(ProbeFinding(check.ok, check.words, kind, {"reason": check.words}))
    if not goes:
        remedy = f"`targets map {name} --device DEVICE`, `--brew SESSION` or `--all`"
        found.append(ProbeFinding(False, f"nothing goes there yet: {remedy}", "nothing_mapped"))
    return found


async def reached(target: ImportTarget) -> ProbeFinding:
    """Check address and key."""
    try:
        answer = await target.get(SESSIONS_PATH, ONE)
    except ReadBackFailed as error:
        return _failed(target, error)
    if _is_success(answer):
        return ProbeFinding(True, "address and key are right", "right")
    return _fault(target, answer)


async def brew_sessions(target: ImportTarget) -> list[Row]:
    """Return the target's brew sessions, the newest first, `LIST_MAX` at most.

    `InvalidInput` says why the target gives no list.
    """
    found: list[Row] = []
    while len(found) < LIST_MAX:
        query = {"sort": "created_at:-1", "limit": str(PAGE), "offset": str(len(found))}
        try:
            answer = await target.get(SESSIONS_PATH, query)
        except ReadBackFailed as error:
            raise InvalidInput(_failed(target, error).words) from error
        if not _is_success(answer):
            raise InvalidInput(_fault(target, answer).words)
        rows = document_of(answer.body).get("brewsessions")
        page = [_row(row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        if not page or page[0] in found:  # the end, or a service that ignores `offset`
            break
        found += page
    return found[:LIST_MAX]


def _row(record: dict[str, Any]) -> Row:
    names = {"number": "id", "batchcode": "batchcode", "name": "recipe_title", "phase": "phase"}
    row = {name: _text(record.get(member)) for name, member in names.items()}
    day = _text(record.get("userdate")) or _text(record.get("created_at"))[:DAY_CHARACTERS]
    return {**row, "day": day}


def _text(value: object) -> str:
    return "" if value is None else str(value)[:TEXT_CHARACTERS]


def _failed(target: ImportTarget, error: ReadBackFailed) -> ProbeFinding:
    reason = {"reason": str(error)}
    if error.outcome.verdict is DeliveryResult.PAUSED:
        return ProbeFinding(False, str(error), "key_file", reason)
    words = f"{target.shown}: {unreachable(str(error))}"
    return ProbeFinding(False, words, "no_answer", reason)


async def _session(target: ImportTarget, name: str, session_id: int, upstream_id: int) -> ProbeFinding:
    label = f"brew session {session_id} is {upstream_id} there"
    values = {"session_id": str(session_id), "number": str(upstream_id)}
    answer = await target.get(f"/v1/fermentation/{upstream_id}", ONE)
    if _is_success(answer):
        words = f"{label}: it can be read with this key"
        return ProbeFinding(True, words, "session_right", values)
    if answer.status != NOT_FOUND or document_of(answer.body).get("message") != "not-found":
        return _fault(target, answer)
    # "no records found" also stands for a brew session that has no readings yet
    if _is_success(await target.get(f"{SESSIONS_PATH}/{upstream_id}", {})):
        return ProbeFinding(True, f"{label}: it has no readings yet", "session_empty", values)
    remedy = f"`targets sessions {name}` shows the numbers, `targets map` corrects it"
    words = f"{label}, but there is no such brew session there; {remedy}"
    return ProbeFinding(False, words, "session_missing", values)


def _is_success(answer: TargetAnswer) -> bool:
    return answer.status == 200 and document_of(answer.body).get("message") == "success"


def _fault(target: ImportTarget, answer: TargetAnswer) -> ProbeFinding:
    """Name the fault behind an answer, and its remedy."""
    reason = target.client.reason(answer)
    status = answer.status
    kind: ProbeKind
    if status in {401, 403}:
        kind = "key_refused"
        words = f"{target.shown} answers, but the key is refused ({reason}); `targets login` takes another"
    elif 300 <= status < 400:
        kind = "redirected"
        words = f"{target.shown}: {reason}; name the address that it redirects to instead"
    elif status in BEHIND_A_PROXY:
        kind = "no_service"
        words = (
            f"{target.shown}: a proxy or the login page of a network answers instead ({reason}); look at the "
            "network of this machine"
        )
    elif status in IN_FRONT_OF_IT:
        kind = "trouble"
        words = (
            f"{target.shown}: the proxy in front of the service answers, but the service does not "
            f"({reason}); does it run there?"
        )
    elif status == TOO_MANY:
        kind = "too_many"
        words = f"{target.shown} wants fewer requests ({reason}); try again in some minutes"
    elif status >= 500:
        kind = "trouble"
        words = f"{target.shown} has trouble of its own ({reason}); try again later"
    else:
        kind = "no_service"
        words = (
            f"{target.shown} answers, but not as a Brewing Data Service does ({reason}); look at the address"
        )
    return ProbeFinding(False, words, kind, {"reason": reason})
