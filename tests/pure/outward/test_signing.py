"""Signatures, against the figures of the standard's own text."""

import pytest

from gateway.errors import ConfigError
from gateway.outward.signing import signed_headers


def test_the_example_of_the_standard() -> None:
    headers = signed_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_another_secret_is_taken_as_it_is() -> None:
    one = signed_headers("a", 1, b"x", "hello")["webhook-signature"]
    assert one == signed_headers("a", 1, b"x", "whsec_aGVsbG8=")["webhook-signature"]
    assert one != signed_headers("a", 2, b"x", "hello")["webhook-signature"]


def test_without_a_secret_there_is_no_signature() -> None:
    assert signed_headers("a", 1, b"", "") == {"webhook-id": "a", "webhook-timestamp": "1"}


def test_a_secret_that_is_no_base64() -> None:
    with pytest.raises(ConfigError, match="not base64"):
        signed_headers("a", 1, b"", "whsec_%%%")
