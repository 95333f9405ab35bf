"""Topics: what the drivers listen to, what the user can choose, and what is refused with what remedy."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.app import Gateway
from gateway.drivers import DRIVERS
from gateway.drivers.addresses import as_filter, captured, covers
from gateway.drivers.base import Driver, ValueTopics
from gateway.errors import ConfigError
from gateway.settings import Settings
from gateway.transports import topics as module
from gateway.transports.topics import Place, TopicMap, chosen_route


def family(name: str, *topics: str, values: tuple[ValueTopics, ...] = ()) -> Driver:
    return Driver(name, name, lambda _: [], topics=topics, values=values)


def where(place: Place | None) -> tuple[str | None, str, str | None] | None:
    return None if place is None else (place.driver, place.label, place.key)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("ispindel/red/tilt", ("ispindel", "red", "tilt")),
        ("ispindel//tilt", ("ispindel", "", "tilt")),
        (" ispindel/red/tilt", ("ispindel", "red", "tilt")),
        ("\n ispindel/red/tilt ", ("ispindel", "red", "tilt")),
        (" gravmon/red/rssi", ("gravitymon", "red", "rssi")),
        ("hydrometer/red", (None, "red", None)),
        ("hydrometer/red/x", None),
        ("ispindel/red", None),
        ("ispindel/red/tilt/x", None),
        ("Ispindel/red/tilt", None),
        ("homeassistant/sensor/iSpindel_51116d/gravity/config", None),
        ("", None),
    ],
)
def test_topics_that_need_no_choice(topic: str, expected: tuple[str | None, str, str | None] | None) -> None:
    topics = TopicMap()
    assert where(topics.place_of(topic)) == expected
    assert where(topics.place_of(topic)) == expected, "remembered"


@pytest.mark.parametrize(
    ("text", "topic", "expected"),
    [
        ("brewery/bpl1=brewpiless", "brewery/bpl1", ("brewpiless", "bpl1", None)),
        ("brewery/bpl1/+=brewpiless", "brewery/bpl1/beerTemp", ("brewpiless", "bpl1", "beerTemp")),
        ("brewery/+/+=brewpiless", "brewery/bpl2/tilt", ("brewpiless", "bpl2", "tilt")),
        ("brewery/{label}=brewpiless", "brewery/bpl2", ("brewpiless", "bpl2", None)),
        ("a/+/{label}/+=brewpiless", "a/b/c/d", ("brewpiless", "c", "d")),
        ("{key}/of/{label}=ispindel", "tilt/of/red", ("ispindel", "red", "tilt")),
        ("+=brewpiless", "beerTemp", ("brewpiless", "", "beerTemp")),
        ("my/spindle=ispindel", "my/spindle", ("ispindel", "spindle", None)),
        ("home/ispindel/+/+=ispindel", "home/ispindel/red/tilt", ("ispindel", "red", "tilt")),
        ("cellar/sensor/+/state=esphome", "cellar/sensor/sg/state", ("esphome", "cellar", "sg")),
        ("a/b/sensor/+/state=esphome", "a/b/sensor/sg/state", ("esphome", "a/b", "sg")),
        ("+/sensor/+/state=esphome", "cellar/sensor/sg/state", ("esphome", "cellar", "sg")),
        ("a/sensor/sg/state=esphome", "a/sensor/sg/state", ("esphome", "a", "sg")),
        ("ha/{key}/value=esphome", "ha/sg/value", ("esphome", "ha", "sg")),
        ("homeassistant/sensor/+/x=esphome", "homeassistant/sensor/a/x", ("esphome", "homeassistant", "a")),
        ("garage/+=tilt", "garage/tilt_Red", ("tilt", "tilt_Red", None)),
        ("garage/#=tilt", "garage/a/b", ("tilt", "garage", None)),
        ("a=b=tilt", "a=b", ("tilt", "a=b", None)),
        ("beer/SG/=fermenter 1:gravity", "beer/SG/", ("esphome", "fermenter 1", ":gravity")),
        ("beer/T=vat: 2:temp_f", "beer/T", ("esphome", "vat: 2", ":temp_f")),
        ("ispindel/red/tilt=tilt", "ispindel/red/tilt", ("tilt", "tilt", None)),
    ],
)  # fmt: skip
def test_what_the_user_chooses(text: str, topic: str, expected: tuple[str, str, str | None]) -> None:
    topics = TopicMap([text])
    assert where(topics.place_of(topic)) == expected
    wanted = as_filter(text.rpartition("=")[0])
    assert any(covers(one, wanted) for one in topics.filters)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must be FILTER=DRIVER or TOPIC=DEVICE:FIELD"),
        ("brewery/bpl1", "must be FILTER=DRIVER"),
        ("=tilt", "must be FILTER=DRIVER"),
        ("a= ", "must be FILTER=DRIVER"),
        ("a=brewpi", r"no driver 'brewpi'; there are .*brewpiless"),
        ("a=vat:density", r"no field 'density'; there are gravity, plato, temp,"),
        ("a=:gravity", "no device before the colon"),
        ("a/+=vat:gravity", "a topic without wildcards"),
        ("a/#=vat:gravity", "a topic without wildcards"),
        ("{label}=vat:gravity", "a topic without wildcards"),
        ("a/#/b=tilt", "# can only be the last level"),
        ("a/b#=tilt", "# can only be the last level"),
        ("a/b+=tilt", r"\+ can only be all of a level"),
        ("tilt_{label}=tilt", r"braces can only be \{label\} or \{key\}"),
        ("a/{name}=tilt", r"braces can only be \{label\} or \{key\}"),
        ("{label}/{label}=tilt", "can stand there once"),
        ("cellar/#=esphome", r"write \+ or \{key\} there, as in cellar/sensor/\+/state=esphome"),
        ("cellar/sensor/#=esphome", "which level names the value"),
        ("a\x00b=tilt", "no control characters"),
        ("a" * 70_000 + "=tilt", "at most 65,535 bytes"),
    ],
)
def test_what_is_refused_is_quoted_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        TopicMap([text])
    assert str(refused.value).startswith(f"--mqtt-topic {text!r}: ")


def test_a_gateway_that_is_told_wrongly_does_not_start(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", mqtt_topic=["brewery/bpl1=brewpi"], no_mqtt=True)
    with pytest.raises(ConfigError, match="'brewery/bpl1=brewpi'"):
        Gateway(settings, print)
    assert not settings.data_dir.exists()


@given(st.text(alphabet="ab/+#{}=:keyltispndgrv \x00"))
def test_any_text_is_a_route_or_a_config_error(text: str) -> None:
    try:
        route = chosen_route(text)
    except ConfigError:
        return
    assert route.driver is not None


def test_no_filter_covers_another_so_that_no_message_comes_twice() -> None:
    drivers = (
        family("bb", "brewcast/history", "brewcast/history/#"),
        family("tb", "t/{label}", "t/a", "t/+"),
    )
    topics = TopicMap(["t/a/b=ispindel", "brewcast/history/+=ispindel"], drivers)
    assert topics.filters == ("t/a/b", "hydrometer/+", "brewcast/history/#", "t/+")
    assert where(topics.place_of("t/a")) == ("tb", "a", None)
    assert where(topics.place_of("brewcast/history")) == ("bb", "", None)


def test_nothing_of_ours_listens_to_home_assistants_tree_and_no_wildcard_means_it() -> None:
    topics = TopicMap(["#=ispindel"], drivers=())
    assert topics.filters == ("#",)
    for topic in ("homeassistant/sensor/x/config", "$SYS/broker/uptime", "$aws/things/x/shadow/update"):
        assert topics.place_of(topic) is None
    assert where(topics.place_of("homeassistant")) == ("ispindel", "", None)
    for one in TopicMap().filters:
        assert captured(one, "homeassistant/sensor/x/config") is None


LEVEL = st.sampled_from(["a", "b", "", "$x", "+"])
FILTER = st.tuples(st.lists(LEVEL, min_size=1, max_size=3), st.booleans()).map(
    lambda parts: "/".join([*parts[0], *["#"] * parts[1]])
)
TOPIC = st.lists(st.sampled_from(["a", "b", "", "$x"]), min_size=1, max_size=4).map("/".join)


@given(FILTER, FILTER, TOPIC)
def test_what_a_covered_filter_would_bring_the_other_brings(wide: str, narrow: str, topic: str) -> None:
    def fits(one: str) -> bool:
        return captured(one, topic) is not None and not (topic[0:1] == "$" and one[0] in "+#")

    if wide and narrow and covers(wide, narrow) and fits(narrow):
        assert fits(wide)


def test_the_memory_for_topics_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLACES", 3)
    topics = TopicMap()
    for name in ["a", "b", "c", "d", "e", "x" * 300]:
        assert where(topics.place_of(f"hydrometer/{name}")) == (None, name, None)
        assert len(topics._places) <= 3
    assert not any("xxx" in topic for topic in topics._places)


def test_every_drivers_patterns_are_valid_filters() -> None:
    for driver in DRIVERS:
        for pattern in (*driver.topics, *(values.pattern for values in driver.values)):
            levels = as_filter(pattern).split("/")
            assert all(level in {"+", "#"} or not set("+#{}") & set(level) for level in levels), pattern
            assert "#" not in levels[:-1], pattern
        for values in driver.values:
            assert "{key}" in values.pattern.split("/"), values.pattern
