"""Looking at a target without leaving a reading there: address, key, and the numbers of brew sessions."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.domain.delivery import Verdict
from gateway.forward.answers import Answer, document_of
from gateway.forward.import_target import ImportTarget, ReadBackFailed, sends_key_in_the_clear

SESSIONS = 50
"""Brew sessions that are asked for at most."""

LISTED = "/v1/brewsessions"
ONE = {"limit": "1"}

NO_SUCH = 404


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, in words that name the remedy where it is not well."""

    ok: bool
    words: str


async def probe(target: ImportTarget, sessions: Mapping[int, int]) -> list[Finding]:
    """Ask the target about brew sessions (its number there by ours), or for one where there are none."""
    found: list[Finding] = []
    if sends_key_in_the_clear(target.name):
        found.append(Finding(False, "plain http: anyone on the way can read the key; use https"))
    try:
        if not sessions:
            found += await _without_sessions(target)
        for session_id, upstream_id in sorted(sessions.items())[:SESSIONS]:
            found.append(await _session(target, session_id, upstream_id))
    except ReadBackFailed as error:
        found.append(_failed(error))
    return found


def _failed(error: ReadBackFailed) -> Finding:
    paused = error.outcome.verdict is Verdict.PAUSED
    return Finding(
        False, f"{error}" if paused else f"no answer: {error}; look at the address and the network"
    )


async def _without_sessions(target: ImportTarget) -> list[Finding]:
    answer = await target.look(LISTED, ONE)
    if not _is_success(answer) and not _is_not_found(answer):
        return [_unwell(target, answer)]
    return [
        Finding(True, "address and key are taken"),
        Finding(False, "no brew session is forwarded there yet; `targets map` names one"),
    ]


async def _session(target: ImportTarget, session_id: int, upstream_id: int) -> Finding:
    which = f"brew session {session_id} is {upstream_id} there"
    answer = await target.look(f"/v1/fermentation/{upstream_id}", ONE)
    if _is_success(answer):
        return Finding(True, f"{which}: it can be read with this key")
    if not _is_not_found(answer):
        return _unwell(target, answer)
    # "no records found" is also the words for a brew session that has no readings yet
    if _is_success(await target.look(f"{LISTED}/{upstream_id}", {})):
        return Finding(True, f"{which}: it has no readings yet")
    return Finding(False, f"{which}, but no such brew session is found there; correct it by `targets map`")


def _is_success(answer: Answer) -> bool:
    return answer.status == 200 and document_of(answer.body).get("message") == "success"


def _is_not_found(answer: Answer) -> bool:
    return answer.status == NO_SUCH and document_of(answer.body).get("message") == "not-found"


def _unwell(target: ImportTarget, answer: Answer) -> Finding:
    reason = target.reason(answer)
    if answer.status in {401, 403}:
        return Finding(False, f"the key is refused ({reason}); look at the key file")
    if 300 <= answer.status < 400:
        return Finding(False, f"{reason}; name the address that it redirects to instead")
    remedy = "this is no Brewing Data Service, or the address is wrong"
    return Finding(False, f"{reason}: {remedy}" if answer.status < 500 else f"{reason}; try again later")
