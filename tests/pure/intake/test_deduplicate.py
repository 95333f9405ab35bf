"""Deliveries of the last moments: what is remembered, and for how long."""

from weakref import ref

from gateway.intake.deduplicate import REMEMBERED, WINDOW_S, Commit, Deduplicator, key_of


def _keys(count: int, start: int = 0) -> list[bytes]:
    return [key_of("a device", 0, str(number).encode()) for number in range(start, start + count)]


def _remembering(*keys: bytes) -> Deduplicator:
    recent = Deduplicator()
    for key in keys:
        recent.remember(key, 0.0, None)
    return recent


def _known(recent: Deduplicator, keys: list[bytes], now: float = 1.0) -> int:
    return sum(recent.check(key, now, WINDOW_S)[0] for key in keys)


class _Commit(Commit):
    """One that a weak reference can point at."""


def test_as_many_as_promised_are_remembered_and_no_more_than_twice_as_many() -> None:
    keys = _keys(REMEMBERED * 5 + 7)
    recent = _remembering(*keys)
    assert _known(recent, keys[-REMEMBERED:]) == REMEMBERED
    assert _known(recent, keys) < 2 * REMEMBERED


def test_the_latest_time_counts_whichever_half_holds_the_earlier_one() -> None:
    key, *others = _keys(REMEMBERED + 1)
    recent = _remembering(key, *others)
    recent.remember(key, WINDOW_S, None)
    assert _known(recent, [key], now=1.5 * WINDOW_S) == 1


def test_what_could_not_be_stored_is_forgotten_whichever_half_holds_it() -> None:
    key, *others = _keys(REMEMBERED + 1)
    recent = _remembering(key, *others)
    recent.remember(key, 0.5, None)
    recent.forget(key)
    assert _known(recent, [key, *others]) == len(others)


def test_a_commit_is_let_go_once_it_is_settled_whichever_half_holds_it() -> None:
    key, *others = _keys(REMEMBERED)
    recent, commit = Deduplicator(), _Commit()
    recent.remember(key, 0.0, commit)
    for other in others:
        recent.remember(other, 0.0, None)
    recent.remember(key, 0.5, None)
    kept = ref(commit)
    del commit
    assert kept() is None
    assert _known(recent, [key]) == 1
