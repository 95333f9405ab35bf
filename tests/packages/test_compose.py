"""The compose file: its form by the schema of Compose, and its values against the image and the program."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gateway.settings import OPTIONS
from tests.packages.images import Image
from tests.packages.test_image import NAME
from tests.program.program import PROJECT

COMPOSE = PROJECT / "deploy/compose.yaml"

OFF = re.compile(r"^( *)#(?=\w|  )", re.MULTILINE)
"""The mark of a line that is switched off. Prose has one blank behind the mark, and a list two."""


def switched_on() -> str:
    """The file with mapped ports, and every other line that is switched off."""
    return OFF.sub(r"\1", COMPOSE.read_text()).replace("    network_mode: host\n", "")


def read(text: str) -> dict[str, Any]:
    return dict(YAML(typ="safe").load(text))


def check(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("check-jsonschema", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("check-jsonschema is not installed")
    file = folder / "compose.yaml"
    file.write_text(text)
    words = [program, "--builtin-schema", "vendor.compose-spec", str(file)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_its_form_is_right(tmp_path: Path) -> None:
    for text in (COMPOSE.read_text(), switched_on()):
        done = check(tmp_path, text)
        assert done.returncode == 0, done.stdout
    assert check(tmp_path, COMPOSE.read_text().replace("restart:", "restarts:")).returncode != 0


def test_it_fits_the_image(image: Image) -> None:
    compose, config = read(COMPOSE.read_text()), image.config
    [(_, service)] = compose["services"].items()
    assert service["image"] == NAME
    assert service["user"] == config["User"]
    assert service["healthcheck"]["test"][1:] == ["hydrometer-gateway", "doctor", "--quick"]
    [volume] = service["volumes"]
    name, target = volume.split(":")
    assert name in compose["volumes"]
    assert {target: {}} == config["Volumes"]
    [(_, mapped)] = read(switched_on())["services"].items()
    assert "network_mode" not in mapped
    assert "--require-key" in mapped["command"]
    ports = {port.split(":")[1] for port in mapped["ports"]}
    assert {f"{port}/tcp" for port in ports} < set(config["ExposedPorts"])
    assert "9501" not in ports, "TCP can send no key"


def test_its_options_exist() -> None:
    [(_, service)] = read(switched_on())["services"].items()
    names = {name.removeprefix("GATEWAY_").lower() for name in service["environment"]}
    assert len(names) > 3
    assert names <= OPTIONS.keys()


def test_it_gives_no_rights_and_bounds_everything() -> None:
    [(_, service)] = read(COMPOSE.read_text())["services"].items()
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service["network_mode"] == "host"
    assert service["restart"] == "unless-stopped"
    unit = (PROJECT / "gateway/deploying/hydrometer-gateway.service").read_text()
    assert f"MemoryMax={service['mem_limit']}" in unit
    assert {"max-size", "max-file"} <= service["logging"]["options"].keys()
    assert not {"privileged", "cap_add", "devices"} & service.keys()
