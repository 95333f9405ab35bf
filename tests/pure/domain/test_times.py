"""Unix seconds as text."""

import pytest

from gateway.domain.times import EVER_S, HALF_MS, LAST_S, iso, minute, stamp

AT = 1_772_616_600.9


def test_every_form_of_a_time() -> None:
    assert iso(AT) == "2026-03-04T09:30:00+00:00"
    assert stamp(AT) == "2026-03-04 09:30:00"
    assert minute(AT) == "2026-03-04 09:30 UTC"


def test_a_clock_that_says_anything_can_be_shown() -> None:
    assert minute(EVER_S) == minute(LAST_S) == "9999-12-31 23:59 UTC"


@pytest.mark.parametrize("milliseconds", [0, 1, 1_772_616_600_001, 1_772_616_600_999])
def test_half_a_millisecond_keeps_the_way_back_exact(milliseconds: int) -> None:
    assert int((milliseconds + HALF_MS) / 1000 * 1000) == milliseconds
