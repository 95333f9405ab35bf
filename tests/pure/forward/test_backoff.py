from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.forward.backoff import BASE_S, CAP_S, RETRY_AFTER_CAP_S, Backoff, full_jitter, parse_retry_after

NOW = 1_770_000_000.0


def http_date(unix: float) -> str:
    return format_datetime(datetime.fromtimestamp(unix, UTC), usegmt=True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("000000000000007", 7.0),
        (str(10**12), RETRY_AFTER_CAP_S),
        ("9" * 6000, RETRY_AFTER_CAP_S),
        (http_date(NOW + 90), 90.0),
        (http_date(NOW + 10**6), RETRY_AFTER_CAP_S),
        (http_date(NOW - 90), None),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Mon, 99 Foo 2026 00:00:00 GMT", None),
    ],
)
def test_retry_after(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text, NOW) == seconds


def test_retry_after_in_the_zoneless_form_is_utc() -> None:
    moment = datetime.fromtimestamp(NOW + 60, UTC)
    assert parse_retry_after(moment.strftime("%a %b %d %H:%M:%S %Y"), NOW) == 60.0


@given(
    st.text()
    | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,3} [A-Z][a-z]{2} [0-9]{1,6} [0-9:]{1,9} [-+A-Z0-9]{0,6}")
)
def test_no_text_raises_or_leaves_the_bounds(text: str) -> None:
    seconds = parse_retry_after(text, NOW)
    assert seconds is None or 0 <= seconds <= RETRY_AFTER_CAP_S


@given(st.integers(1, 10**9), st.floats(0, 1, exclude_max=True))
def test_the_wait_is_a_share_of_a_doubling_capped_window(failures: int, share: float) -> None:
    window = min(CAP_S, BASE_S * 2 ** min(failures - 1, 30))
    assert full_jitter(failures, share) == pytest.approx(share * window)


def test_what_the_target_asks_for_counts_and_next_to_nothing_does_not() -> None:
    backoff = Backoff()
    backoff.failed(100.0, 0.5, retry_after_s=42.0)
    assert backoff.until == 142.0
    backoff.failed(100.0, 1.0, retry_after_s=0.0)
    assert backoff.until == 102.0
    backoff.wait_until(101.0)
    assert backoff.until == 102.0
    backoff.succeeded()
    backoff.failed(200.0, 1.0)
    assert backoff.until == 201.0
