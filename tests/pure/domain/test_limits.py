"""Who is a neighbour, and token buckets that stay bounded."""

import pytest

from gateway import network as limits
from gateway.network import TokenBuckets, address_in, is_local, source_of, written_address


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "192.168.1.7",
        "10.0.0.1",
        "172.31.255.1",
        "169.254.3.4",
        "fe80::1%eth0",
        "fd12::1",
        "::ffff:192.168.1.7",
    ],
)
def test_neighbours(address: str) -> None:
    assert is_local(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "172.32.0.1", "2001:db8::1", "::ffff:8.8.8.8", "192.0.2.1", "", "somewhere", "100.64.0.1"],
)
def test_strangers(address: str) -> None:
    assert not is_local(address)


def test_a_bucket_takes_a_burst_then_the_rate() -> None:
    buckets = TokenBuckets(rate=2, burst=3)
    assert [buckets.take("a", 0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("b", 0) == 0
    assert buckets.take("a", 0.5) == 0


def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SOURCES", 2)
    buckets = TokenBuckets(rate=1, burst=1)
    assert [buckets.take(source, 0) for source in "abc"] == [0, 0, 0]
    assert buckets.take("a", 0) == 0  # forgotten, so it has its burst again


def test_one_ipv6_household_is_one_source() -> None:
    assert source_of("2001:db8:1:2:3::1") == source_of("2001:db8:1:2:4::1") == "2001:db8:1:2::/64"
    assert source_of("192.168.1.7") == "192.168.1.7"
    assert source_of("::1") == "::1", "this machine is no household"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("192.168.1.7", "192.168.1.7"),
        ("::ffff:192.168.1.7", "192.168.1.7"),
        ("::FFFF:127.0.0.1", "127.0.0.1"),
        ("0:0:0:0:0:ffff:7f00:1", "127.0.0.1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("192.168.1.7 ", None),
        ("somewhere", None),
        ("", None),
        ("::1%" + "x" * 100, None),
    ],
)
def test_every_spelling_of_an_address_is_one_address(text: str, written: str | None) -> None:
    assert address_in(text) == written
    assert written_address(text) == (written or text)
