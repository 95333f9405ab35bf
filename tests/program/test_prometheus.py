"""What Prometheus and Grafana are given in `deploy`, by Debian's promtool: it reads rules, tests and scrapes.

Grafana itself is nowhere to be run, so its dashboard is checked for its shape and its expressions only.
"""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from gateway.domain.alarm import Alarm, AlarmEvent, Channel
from gateway.domain.payload import Payload
from gateway.samples.brewery import fill
from gateway.store.protocols.alarms import AlarmChange
from tests.cases import each
from tests.program.program import PROJECT
from tests.system.api.everything import Running, running

PROMETHEUS = PROJECT / "deploy" / "prometheus"
ALERTS, ALERTS_TEST = PROMETHEUS / "alerts.yml", PROMETHEUS / "alerts_test.yml"
GRAFANA = PROJECT / "deploy" / "grafana"
DASHBOARD = GRAFANA / "brewery.json"

OF_PROMETHEUS = {"up"}
"""Metrics that Prometheus makes itself."""

PANELS = {
    "Gravity by device",
    "Temperature by device",
    "Attenuation",
    "Points of gravity in a day",
    "Phase",
    "Batteries",
    "Alarms",
    "Readings that wait for a target",
}

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed: apt-get install prometheus"
)


def promtool(*words: str, scrape: bytes | None = None, cwd: Path = PROMETHEUS) -> tuple[int, str]:
    """Exit code and all that it says."""
    done = subprocess.run(
        ["promtool", *words], input=scrape, cwd=cwd, capture_output=True, check=False, timeout=60
    )
    return done.returncode, (done.stdout + done.stderr).decode()


def alerts() -> list[str]:
    """The names of the rules."""
    return re.findall(r"- alert: (\w+)", ALERTS.read_text("utf-8"))


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    return found


def targets() -> Iterator[tuple[str, str]]:
    """The title of each panel, with each of its expressions; a variable stands for a brew."""
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$batchcode", "B1")


def queries() -> list[str]:
    """The metrics that variables ask for."""
    variables = dashboard()["templating"]["list"]
    return [
        found[1]
        for each in variables
        if (found := re.match(r"label_values\((\w+),", str(each.get("definition"))))
    ]


def metrics_in(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:hydrometer_\w+|up)\b", re.sub(r'"[^"]*"', '""', expression)))


async def _filled(directory: Path) -> bytes:
    """A scrape of a made-up brewery, with what else a gateway may have."""
    async with running(directory) as service:
        services = service.services
        made = await fill(services, 1, lambda *_: None, photos=False)
        for body in (
            b'{"device_name": "Pill", "device_type": "Hydrometer", "device_id": "3a", "temperature": 20.1,'
            b' "gravity": 1012, "battery": 40, "rssi": -70}',
            b'{"name": "Keg", "ID": 9, "type": "eManometer", "temperature": 4.0, "temp_units": "C",'
            b' "pressure": 1.1, "battery": 3.3, "interval": 900}',
        ):
            driver = "rapt" if b"Pill" in body else None
            await services.intake.take(
                Payload(body, services.clock.now() - 60, "http /ingest", driver=driver)
            )
        await services.targets.add_with_key("cloud", "https://a.example", "k" * 40)
        await services.store.messages.save_channel(Channel("phone", "ntfy", {"url": "https://a.example/b"}))
        alarm = Alarm(0, None, "stuck", "brew", str(made.running), "firing", since=1, fired_at=1)
        change = AlarmChange(alarm, AlarmEvent(0, None, 1, "fired", "it is stuck"), tells=True)
        await services.alarms.apply(lambda _: [change])
        return await scraped(service)


async def scraped(service: Running) -> bytes:
    answer = await service.ask("GET", "/metrics")
    assert answer.status == 200
    return answer.body


@pytest.fixture(scope="module")
def scrape(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return asyncio.run(_filled(tmp_path_factory.mktemp("filled")))


def test_promtool_finds_nothing_to_say_of_a_scrape(scrape: bytes) -> None:
    assert promtool("check", "metrics", scrape=scrape) == (0, "")


def test_every_metric_of_a_panel_or_a_rule_is_in_a_scrape(scrape: bytes) -> None:
    families = text_string_to_metric_families(scrape.decode())
    there = {sample.name for family in families for sample in family.samples}
    rules = re.sub(r"#.*|summary:.*|description:.*", "", ALERTS.read_text("utf-8"))
    expressions = [expr for _, expr in targets()]
    assert all(map(metrics_in, expressions))
    wanted = set().union(*map(metrics_in, [rules, *expressions, *queries()])) - OF_PROMETHEUS
    assert len(wanted) > len(alerts())
    assert wanted - there == set()


def test_the_documentation_names_every_metric_of_the_beer_and_every_alert(scrape: bytes) -> None:
    text = (PROJECT / "docs" / "monitoring.md").read_text("utf-8")
    named = {family.name for family in text_string_to_metric_families(scrape.decode())}
    beer = {name for name in named if not name.startswith("hydrometer_gateway")}
    assert len(beer) > 20
    assert {name for name in beer if not re.search(rf"`{name}[`{{]", text)} == set()
    assert [name for name in alerts() if f"`{name}`" not in text] == []


def test_promtool_takes_the_rules_and_the_example() -> None:
    for words in (("check", "rules", ALERTS.name), ("check", "config", "--syntax-only", "prometheus.yml")):
        code, said = promtool(*words)
        assert code == 0, said
    example = (PROMETHEUS / "prometheus.yml").read_text("utf-8")
    assert "job_name: hydrometer\n" in example
    assert f"- {ALERTS.name}\n" in example


def test_the_rules_pass_their_own_tests() -> None:
    code, said = promtool("test", "rules", ALERTS_TEST.name)
    assert code == 0, said
    fires = re.findall(r"alertname: (\w+)\s+exp_alerts:\s+- exp_labels", ALERTS_TEST.read_text("utf-8"))
    assert set(fires) == set(alerts())


@each(
    "right, wrong",
    [
        ("2.1 * hydrometer", "21 * hydrometer"),
        ("3.5", "2.5"),
        ("hydrometer_temperature_celsius > hyd", "hydrometer_temperature_celsius > on (device) hyd"),
        ("hydrometer_temperature_celsius < hyd", "hydrometer_temperature_celsius > hyd"),
        ("^(started|done|reached)$", "^(started)$"),
        (
            "hydrometer_gateway_target_oldest_seconds > 3600",
            "hydrometer_gateway_target_oldest_seconds > 7200",
        ),
        ('up{job="hydrometer"}', "up"),
    ],
)
def test_a_wrong_rule_does_not_pass_them(tmp_path: Path, right: str, wrong: str) -> None:
    text = ALERTS.read_text("utf-8")
    assert right in text
    (tmp_path / ALERTS.name).write_text(text.replace(right, wrong), "utf-8")
    shutil.copy(ALERTS_TEST, tmp_path)
    code, said = promtool("test", "rules", ALERTS_TEST.name, cwd=tmp_path)
    assert code != 0, said
    assert "FAILED" in said


def test_promtool_parses_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    expressions = [expr for _, expr in targets()]
    assert recorded(tmp_path, expressions)[0] == 0, recorded(tmp_path, expressions)[1]
    assert recorded(tmp_path, [*expressions, "hydrometer_gravity_sg and on ("])[0] != 0


def recorded(directory: Path, expressions: Sequence[str]) -> tuple[int, str]:
    """What promtool says of expressions, each as a recording rule."""
    rules = [{"record": f"test:{place}", "expr": expr} for place, expr in enumerate(expressions)]
    (directory / "rules.yml").write_text(json.dumps({"groups": [{"name": "test", "rules": rules}]}), "utf-8")
    return promtool("check", "rules", "rules.yml", cwd=directory)


def test_the_dashboard_has_the_shape_that_grafana_imports() -> None:
    page = dashboard()
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= page.keys()
    variables = {variable["name"]: variable["type"] for variable in page["templating"]["list"]}
    assert variables == {"datasource": "datasource", "batchcode": "query"}
    panels = page["panels"]
    assert {panel["title"] for panel in panels} >= PANELS
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert next(panel["type"] for panel in panels if panel["title"] == "Phase") == "state-timeline"
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        for target in panel["targets"]:
            assert (
                target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            )


def test_grafana_is_told_of_prometheus_and_of_the_dashboard() -> None:
    [source] = YAML(typ="safe").load((GRAFANA / "datasource.yaml").read_text("utf-8"))["datasources"]
    assert (source["type"], source["access"], source["url"]) == (
        "prometheus",
        "proxy",
        "http://localhost:9090",
    )
    asked = YAML(typ="safe").load((PROMETHEUS / "prometheus.yml").read_text("utf-8"))
    assert source["jsonData"]["timeInterval"] == asked["global"]["scrape_interval"]
    [provider] = YAML(typ="safe").load((GRAFANA / "dashboards.yaml").read_text("utf-8"))["providers"]
    assert provider["type"] == "file"
    commands = (GRAFANA / "README.md").read_text("utf-8")
    assert f"{DASHBOARD.name} {provider['options']['path']}/{DASHBOARD.name}\n" in commands
