"""Counters, as the health page shows them."""

import json
from dataclasses import asdict

from gateway.stats import Stats


def test_refusals_are_counted_by_name_and_can_be_shown() -> None:
    stats = Stats()
    for name in ("too_large", "crowd", "too_large"):
        stats.mqtt.refused[name] += 1
    shown = {name: value for name, value in asdict(stats).items() if name == "mqtt"}
    assert json.loads(json.dumps(shown))["mqtt"]["refused"] == {"too_large": 2, "crowd": 1}
