"""The settings of every family: whole, the same in the manual, and nothing in them that nobody reads."""

import pytest

from gateway.drivers import DRIVERS
from gateway.drivers.families import families, fill, find_families, read_families
from sample_devices.devices import KINDS
from tests.cases import each
from tests.pure.drivers.settings import placed, with_settings
from tests.pure.drivers.support import MANUAL

FAMILIES = families()
WAYS = [(family, way) for family in FAMILIES.values() for way in family.ways]

GOOD = """
[cellar_float]
about = { title = "Cellar Float", drivers = ["stream"], typical_s = 900, known_by = "its id" }
[[cellar_float.way]]
about = { id = "http", title = "HTTP", best = true, needs = [] }
fields = [["URL", "http://{host}:{http_port}/x"], ["Body", '{"sg": %g, "name": "{{ name }}"}']]
simulate = "ispindel-http"
"""


def test_the_manual_says_what_the_data_say() -> None:
    text = MANUAL.read_text("utf-8")
    assert with_settings(text) == text, "run python -m tests.pure.drivers.settings --write"
    assert sorted(placed(text)) == sorted(FAMILIES)


def test_every_driver_has_a_family() -> None:
    named = {driver for family in FAMILIES.values() for driver in family.drivers}
    assert named == {driver.name for driver in DRIVERS}


def test_every_way_has_a_simulated_device_of_its_transport() -> None:
    for family, way in WAYS:
        kind = KINDS[way.simulate]
        assert kind.transport == ("mqtt" if {"mqtt", "own broker"} & {*way.needs} else kind.transport), way
        assert ("tcp" in way.needs) == (kind.transport == "tcp"), (family.id, way.id)


def test_a_family_is_found_by_its_name_its_aliases_and_its_driver() -> None:
    def found(words: str) -> list[str]:
        return [family.id for family in find_families(words, FAMILIES.values())]

    assert found("i-Spindle")[0] == "ispindel"
    assert found("tilt")[0] == "tilt"
    assert "tiltbridge" in found("TILT bridge")
    assert found("Floaty") == ["gravitymon", "other"]
    assert found("kegland") == ["rapt"]
    assert found("") == [*FAMILIES]
    assert found("no such thing") == []


def test_only_our_own_words_in_braces_are_filled_in() -> None:
    text = 'http://{host}:{http_port}/x {"a": %b} {{ color }} {states}'
    assert fill(text, {"host": "10.0.0.2", "http_port": "8080"}) == (
        'http://10.0.0.2:8080/x {"a": %b} {{ color }} {states}'
    )


@each(
    "old, new, words",
    [
        ('title = "Cellar Float", ', "", "cellar_float has no title"),
        ("needs = []", 'needs = ["luck"]', "'luck' is no need"),
        ("needs = []", 'needs = ["dns"]', "a host goes with the need dns"),
        ("needs = []", 'needs = ["topic"]', "cellar_float.http needs options"),
        ("{http_port}", "{port}", "nobody fills in {port}"),
        ("best = true, ", "", "the first is best"),
        ('simulate = "ispindel-http"', "", "a simulated device"),
        ("simulate", "simulates", "nobody reads simulates"),
        ('id = "http"', 'id = "ht tp"', "is no id"),
    ],
)
def test_a_mistake_is_named(old: str, new: str, words: str) -> None:
    assert read_families(GOOD)["cellar_float"].ways[0].port is None
    with pytest.raises(ValueError, match=words):
        read_families(GOOD.replace(old, new))
