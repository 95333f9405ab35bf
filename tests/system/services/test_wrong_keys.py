"""Keys that do not fit: one line for each source, then one an hour, and a bound for everybody."""

import pytest

from gateway.logs import HOUR_S, RareLines
from gateway.network import Peer
from gateway.services.wrong_keys import WRONG_KEY_BURST, WrongKeys
from gateway.stats import Stats
from tests.clock import FakeClock


def test_a_source_has_one_line_and_then_one_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    clock, stats = FakeClock(), Stats()
    wrong, peer = WrongKeys(clock, stats), Peer("127.0.0.1")
    for _ in range(300):
        wrong.take(peer, shown=True)
    wrong.take(Peer("192.168.1.7"), shown=True)
    wrong.take(Peer("192.168.1.8"), shown=False)
    clock.advance(HOUR_S)
    wrong.take(peer, shown=True)
    wrong.take(peer, shown=True)
    assert stats.wrong_keys == 304
    assert caplog.messages == [
        "keys: 127.0.0.1 sent a key that does not fit",
        "keys: 192.168.1.7 sent a key that does not fit",
        "keys: 127.0.0.1 sent 300 more keys that do not fit",
    ]


@pytest.mark.parametrize("peer", [Peer("127.0.0.1"), Peer("192.168.1.7"), Peer("8.8.8.8"), Peer("")])
def test_ten_wrong_keys_a_minute(peer: Peer) -> None:
    clock = FakeClock()
    wrong = WrongKeys(clock, Stats())
    waits = [wrong.take(peer, shown=True) for _ in range(12)]
    assert [wait > 0 for wait in waits] == [False] * int(WRONG_KEY_BURST) + [True] * 2
    clock.advance(60)
    assert [wrong.take(peer, shown=True) > 0 for _ in range(12)] == [False] * 10 + [True] * 2


def test_the_subjects_of_rare_lines_are_bounded() -> None:
    clock = FakeClock()
    lines = RareLines(clock.monotonic, subjects=3)
    assert [lines.due(str(number)) for number in range(1000)] == [1] * 1000
    assert len(lines._subjects) == 3
    assert lines.due("999") == 0
