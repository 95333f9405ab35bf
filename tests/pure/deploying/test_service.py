"""The texts of a service: what systemd and the user read."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from gateway.deploying import service
from gateway.settings import OPTIONS, Settings

PROGRAM = Path("/opt/hydrometer-gateway/bin/hydrometer-gateway")
OURS = (files("gateway.deploying") / "gateway.env").read_text("utf-8")


@pytest.mark.parametrize("user", [False, True])
def test_a_unit_starts_the_program_and_knows_what_was_written_beside_it(*, user: bool) -> None:
    wrote = [Path("/usr/local/bin/hydrometer-gateway"), Path("/etc/hydrometer-gateway/gateway.env")]
    text = service.unit_text(PROGRAM, wrote, user=user)
    assert f"ExecStart={PROGRAM} serve\n" in text
    assert "@PROGRAM@" not in text.partition("ExecStart")[2]
    assert service.written_beside(text) == wrote


def test_a_unit_of_another_hand_has_no_list() -> None:
    assert service.written_beside("[Service]\nExecStart=/opt/x serve\n") is None


@pytest.mark.parametrize(
    ("program", "written"),
    [
        ("/opt/my beer/bin/gateway", '"/opt/my beer/bin/gateway"'),
        ("/opt/100%/gateway", "/opt/100%%/gateway"),
        ("/opt/$x/gateway", "/opt/$$x/gateway"),
        ('/opt/a "b"/gateway', '"/opt/a \\"b\\"/gateway"'),
    ],
)
def test_a_path_is_written_as_systemd_reads_it(program: str, written: str) -> None:
    assert f"ExecStart={written} serve\n" in service.unit_text(Path(program), [], user=False)


@pytest.mark.parametrize("path", ["/home/a/venv/bin/x", "/root/.local/bin/x", "/run/user/1/x"])
def test_a_service_of_the_machine_cannot_see_homes(path: str) -> None:
    assert service.hidden(Path(path))
    assert not service.hidden(Path("/srv") / path.lstrip("/"))


def test_our_options_are_commented_and_every_line_is_an_option_with_a_value_that_it_takes() -> None:
    assert not service.sets_something(OURS)
    lines = re.findall(r"(?m)^#GATEWAY_([A-Z_]+)=(.+)$", OURS)
    assert len(lines) > 5
    for name, value in lines:
        about = OPTIONS[name.lower()]
        given = {bool: True, int: value.isdigit() and int(value), Path: Path(value)}.get(about.kind, value)
        options: dict[str, Any] = {name.lower(): [int(value)] if about.kind == list[int] else given}
        if name == "HA_DISCOVERY":
            options["mqtt_url"] = "mqtt://127.0.0.1"
        Settings(**options)


def test_a_port_takes_the_place_of_the_one_before() -> None:
    first = service.environment_text(None, 8081)
    assert service.sets_something(first)
    assert service.port_of(first) == 8081
    second = service.environment_text(first, 8082)
    assert service.port_of(second) == 8082
    assert second.count("GATEWAY_PORT") == 1
    assert service.environment_text(second, None) == second
    assert service.port_of(service.environment_text("GATEWAY_LAN_VIEW=true", 90)) == 90
    assert service.port_of(OURS) is None
