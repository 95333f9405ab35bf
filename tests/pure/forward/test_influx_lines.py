"""Lines and addresses for InfluxDB."""

from typing import Any

import pytest

from gateway.forward.kinds.influx import checked, line_of, microseconds, write_url
from gateway.forward.kinds.values import NUMBERS

OID = "65a1b2c3d4e5f60718293a4b"


def values(**more: Any) -> dict[str, Any]:
    return {"at": 1_795_500_000, "id": OID, "device": "ispindel:1", "brew_id": None} | {
        name: None for name in NUMBERS
    } | more  # fmt: skip


def test_a_point_has_the_device_as_its_only_tag() -> None:
    line = line_of(values(sg=1.0123, temp_c=19.06, brew_id=7))
    assert line == f"hydrometer,device=ispindel:1 sg=1.0123,temp_c=19.06,session=7i 1795500000{0x93A4B:06}"


def test_without_a_number_there_is_no_point() -> None:
    assert line_of(values(brew_id=7)) == ""


@pytest.mark.parametrize(
    ("device", "tag"),
    [("a, b=c", r"a\,\ b\=c"), ("a\\", "a"), ("\\", "_"), ("a\nb", "a_b"), ("", "_")],
)
def test_a_device_of_any_name_is_one_tag(device: str, tag: str) -> None:
    assert line_of(values(sg=1.05, device=device)).startswith(f"hydrometer,device={tag} sg=1.05 ")


def test_two_readings_of_one_second_stay_two_points() -> None:
    # After a start ids begin anywhere: these two agree in their last digits, and in their thousandth.
    other = f"{OID[:-4]}{int(OID[-4:], 16) - 0x1000:04x}"
    assert other[-3:] == OID[-3:]
    assert microseconds(values(id=other)) != microseconds(values())
    assert microseconds(values(id=other)) // 1_000_000 == microseconds(values()) // 1_000_000 == 1_795_500_000


@pytest.mark.parametrize(
    ("api", "address"),
    [
        (1, "http://influx:8086/write?db=brewery&precision=u"),
        (2, "http://influx:8086/api/v2/write?org=home&bucket=brewery&precision=us"),
        (3, "http://influx:8086/api/v3/write_lp?db=brewery&precision=microsecond&accept_partial=false"),
    ],
)
def test_each_version_has_its_address(api: int, address: str) -> None:
    options = {"url": "http://influx:8086/", "org": "home", "bucket": "brewery", "api": api}
    assert write_url(checked(options)) == address
