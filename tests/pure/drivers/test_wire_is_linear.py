"""Bytes on which a careless regular expression takes seconds, or years."""

import time

import pytest

from gateway.domain.payload import Payload
from gateway.drivers import decode
from gateway.errors import DriverError
from tests.pure.drivers.messages import ARRIVAL

LIMIT_S = 0.5
"""Ten times what is promised, for a busy machine; the faults that this is about took 12 s and more."""


@pytest.mark.parametrize(
    "body",
    [b'{"a":"' + b'\\"' * 32_000, b'{"a":1,' + b'"' * 65_000, b"a" + b",b=c" * 16_000, b"a?" * 32_000],
    ids=["a string of quotes that does not end", "nothing but quotes", "tags and no field", "question marks"],
)
def test_hostile_bytes_are_refused_at_once(body: bytes) -> None:
    begun = time.process_time()
    with pytest.raises(DriverError):
        decode(Payload(body, ARRIVAL, "http /ingest"))
    assert time.process_time() - begun < LIMIT_S


def test_a_string_with_escapes_survives_the_repair_of_its_neighbours() -> None:
    body = rb'{"name":"a\"b, nan]","angle":45.1,"temperature":nan,"gravity":12.1,}'
    [report] = decode(Payload(body, ARRIVAL, "http /ingest")).reports
    assert (report.name, report.gravity, report.temp) == ('a"b, nan]', "12.1", None)
