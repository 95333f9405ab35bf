"""The Home Assistant app: the Supervisor's rules, as far as we use them, and that it starts."""

import http.server
import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from PIL import Image as Picture
from PIL import ImageChops
from ruamel.yaml import YAML

from gateway import __version__
from gateway.config import HTTP_PORT, TCP_PORT
from gateway.settings import OPTIONS, Settings
from tests.packages.app_pictures import APP, SIZES, draw
from tests.packages.images import LOCAL_PORTS, Buildah, Image, fetched, lines_until, page_in, report
from tests.program.program import PROJECT
from tests.ui.browsing import CHROMIUM

TYPES: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "version": str,
    "slug": str,
    "description": str,
    "arch": list,
    "startup": str,
    "boot": str,
    "ports": dict,
    "ports_description": dict,
    "services": list,
    "ingress": bool,
    "ingress_port": int,
    "ingress_entry": str,
    "panel_icon": str,
    "panel_title": str,
    "watchdog": str,
    "timeout": int,
    "map": list,
    "backup": str,
    "backup_pre": str,
    "backup_post": str,
    "backup_exclude": list,
    "options": dict,
    "schema": dict,
}
"""Keys of config.yaml with their types. The Supervisor drops a key that it does not know, without a word."""

REQUIRED = {"name", "version", "slug", "description", "arch"}

ELEMENT = re.compile(
    r"(?:bool|port|email|url|list\((?P<list>[^()]+)\)|match\((?P<match>.+)\)|str(?:\(\d*,\d*\))?"
    r"|int(?:\((?P<least>-?\d*),(?P<most>-?\d*)\))?)\??"
)
"""The type of an option."""

TRANSLATED = {"name", "description"}

MQTT = {"host": "core-mosquitto", "port": 1883, "username": "addons", "password": "s3cret pass", "ssl": False}


def read(name: str) -> dict[str, Any]:
    return dict(YAML(typ="safe").load((APP / name).read_text()))


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return read("config.yaml")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that starts the gateway as an app, as a module."""
    for name in [name for name in os.environ if name.startswith("GATEWAY_")]:
        monkeypatch.delenv(name)
    spec = importlib.util.spec_from_file_location("start", APP / "start.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_supervisor_takes_the_keys(config: dict[str, Any]) -> None:
    assert REQUIRED <= config.keys() <= TYPES.keys()
    for key, value in config.items():
        assert isinstance(value, TYPES[key]), key
    assert re.fullmatch(r"[-_.A-Za-z0-9]+", config["slug"])
    assert config["slug"] == APP.name, "a local app has the slug of its folder"
    assert set(config["arch"]) == {"aarch64", "amd64"}
    assert config["startup"] in {"initialize", "system", "services", "application", "once"}
    assert config["boot"] in {"auto", "manual", "manual_only"}
    assert all(re.fullmatch(r"(mqtt|mysql):(provide|want|need)", each) for each in config["services"])
    assert re.fullmatch(r"https?://\[HOST\]:(\[PORT:\d+\]|\d+).*", config["watchdog"])
    assert re.fullmatch(r"mdi:[a-z0-9-]+", config["panel_icon"])
    assert 10 <= config["timeout"] <= 300
    for each in config["map"]:
        assert each.keys() <= {"type", "read_only", "path"}
        assert each["type"] in {"app_config", "homeassistant_config", "ssl", "backup", "share", "media"}
    assert config["backup"] == "hot", "with `cold` the commands around it do not run"


def test_it_is_of_this_version_and_its_ports_are_ours(config: dict[str, Any]) -> None:
    assert config["version"] == __version__
    assert config["ports"] == {f"{HTTP_PORT}/tcp": HTTP_PORT, f"{TCP_PORT}/tcp": TCP_PORT}
    assert config["ports_description"].keys() == config["ports"].keys()
    assert config["ingress"] is True
    assert config["ingress_port"] == HTTP_PORT
    assert config["ingress_entry"] == "ui/"
    assert f"[PORT:{HTTP_PORT}]/healthz" in config["watchdog"]


def test_every_option_is_one_of_ours(config: dict[str, Any]) -> None:
    assert config["schema"].keys() <= OPTIONS.keys()
    assert config["options"].keys() <= config["schema"].keys()
    for name, kind in config["schema"].items():
        element = kind[0] if isinstance(kind, list) else kind
        found = ELEMENT.fullmatch(element)
        assert found is not None, name
        # An option without a default value has to be one that may be missing.
        assert name in config["options"] or element.endswith("?"), name
        choices = (found["list"] or "").split("|") if found["list"] else []
        for choice in choices:
            chosen: dict[str, Any] = {name: choice}
            Settings(data_dir=Path(), **chosen)
        assert not choices or config["options"][name] in choices


def test_every_option_and_port_has_words(config: dict[str, Any]) -> None:
    words = read("translations/en.yaml")
    assert words.keys() == {"configuration", "network"}
    assert words["configuration"].keys() == config["schema"].keys()
    assert words["network"] == config["ports_description"]
    for name, about in words["configuration"].items():
        assert about.keys() == TRANSLATED, name
        assert about["description"].endswith("."), name
    assert YAML(typ="safe").load((APP.parent / "repository.yaml").read_text())["name"]


def test_options_become_variables(start: ModuleType, config: dict[str, Any]) -> None:
    options = {
        **config["options"],
        "brewery": "Our Brewery",
        "hostname": ["brew.example", "b"],
        "keep_days": 30,
        "quota": None,
        "require_key": True,
    }
    made = start.environment(options, None)
    ours = {name: value for name, value in made.items() if name.startswith("GATEWAY_")}
    assert ours == {
        "GATEWAY_INGRESS_PROXY": "172.30.32.2",
        "GATEWAY_NEW_DEVICES": "accept",
        "GATEWAY_HA_DISCOVERY": "false",  # there is no broker
        "GATEWAY_HA_BREWS": "false",
        "GATEWAY_NO_MQTT": "true",
        "GATEWAY_REQUIRE_KEY": "true",
        "GATEWAY_LOG_LEVEL": "info",
        "GATEWAY_BREWERY": "Our Brewery",
        "GATEWAY_HOSTNAME": "brew.example b",
        "GATEWAY_KEEP_DAYS": "30",
    }
    assert all(name.removeprefix("GATEWAY_").lower() in OPTIONS for name in ours)


class Supervisor(http.server.BaseHTTPRequestHandler):
    """The one answer of the Supervisor that we ask for."""

    answer: ClassVar[tuple[int, bytes]] = (200, b"")
    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers["Authorization"]))
        status, body = self.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@contextmanager
def supervisor(status: int, body: bytes) -> Iterator[str]:
    Supervisor.answer = (status, body)
    Supervisor.asked.clear()
    with http.server.HTTPServer(("127.0.0.1", 0), Supervisor) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_the_broker_of_home_assistant_is_used(
    start: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with supervisor(200, json.dumps({"result": "ok", "data": MQTT}).encode()) as address:
        found = start.broker(address, "token")
    assert Supervisor.asked == [("/services/mqtt", "Bearer token")]
    assert found == MQTT
    monkeypatch.setattr(start, "PRIVATE", tmp_path / "run")
    monkeypatch.setattr(start, "USER_ID", os.getuid())
    monkeypatch.setenv("SUPERVISOR_TOKEN", "token")
    made = start.environment({"ha_discovery": True, "no_mqtt": False}, found)
    assert made["GATEWAY_MQTT_URL"] == "mqtt://core-mosquitto:1883"
    assert made["GATEWAY_MQTT_USER"] == "addons"
    assert (made["GATEWAY_HA_DISCOVERY"], made["GATEWAY_NO_MQTT"]) == ("true", "false")
    assert "SUPERVISOR_TOKEN" not in made
    assert "s3cret" not in " ".join(made.values())
    file = Path(made["GATEWAY_MQTT_PASSWORD_FILE"])
    assert file.read_text() == "s3cret pass\n"
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    assert start.of_broker({"host": "b", "port": 8883, "ssl": True}, tmp_path) == {
        "GATEWAY_MQTT_URL": "mqtts://b:8883"
    }


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"result": "error", "message": "Service not enabled"}'),
        (200, b'{"result": "ok", "data": {}}'),
        (200, b"[]"),
        (502, b"<html>"),
    ],
)
def test_without_a_broker_it_starts_as_well(start: ModuleType, status: int, body: bytes) -> None:
    with supervisor(status, body) as address:
        assert start.broker(address, "token") is None
    assert start.broker(address, "token") is None, "nobody answers"


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
async def test_the_pictures_are_those_of_the_page(tmp_path: Path) -> None:
    await draw(tmp_path)
    for name, (width, height, _) in SIZES.items():
        with Picture.open(APP / name) as ours, Picture.open(tmp_path / name) as drawn:
            assert (ours.format, ours.size) == ("PNG", (width, height))
            assert (APP / name).stat().st_size < 20_000
            # Of the logo the icon alone, because letters look different with other fonts.
            icon = (0, 0, height, height)
            apart = ImageChops.difference(ours.convert("RGBA").crop(icon), drawn.convert("RGBA").crop(icon))
            assert max(max(band.tobytes()) for band in apart.split()) < 64, name


@pytest.fixture(scope="module")
def folder(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as the owner copies it, with the files of the image."""
    made = tmp_path_factory.mktemp("app")
    program = PROJECT / "deploy/home-assistant/build"
    subprocess.run([program, "--out", made, "--root", image.root], check=True)
    return made / APP.name


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Buildah:
    return Buildah(tmp_path_factory.mktemp("buildah"))


@pytest.fixture(scope="module")
def container(folder: Path, buildah: Buildah) -> Iterator[str]:
    """A container of the image that the Supervisor builds of the folder."""
    architecture = {"x86_64": "amd64", "aarch64": "aarch64"}[os.uname().machine]
    arguments = ("--build-arg", f"BUILD_ARCH={architecture}", "--build-arg", f"BUILD_VERSION={__version__}")
    buildah.run("build", "--quiet", *arguments, "--tag", "app", folder)
    name = buildah.run("from", "--quiet", "--pull-never", "localhost/app")
    yield name
    buildah.run("rm", name)


class App:
    """The app as the Supervisor runs it: with /data, /config and options.json."""

    def __init__(self, buildah: Buildah, container: str, folder: Path) -> None:
        self.data, self.config = folder / "data", folder / "config"
        for each in (self.data, self.config):
            each.mkdir()
        self._buildah, self._container = buildah, container
        self.options = {**read("config.yaml")["options"], "brewery": "Our Brewery"}
        inspected = json.loads(buildah.run("inspect", container))["OCIv1"]["config"]
        self.entry: list[str] = inspected["Entrypoint"]
        self.environment = dict(word.split("=", 1) for word in inspected["Env"])

    def words(self, *words: str) -> list[str]:
        """The words that run a command in the container."""
        variables = {**self.environment, **LOCAL_PORTS}
        return [
            *("run", "--user", "root"),
            *(word for name, value in variables.items() for word in ("--env", f"{name}={value}")),
            *("--volume", f"{self.data}:/data", "--volume", f"{self.config}:/config"),
            *(self._container, "--", *words),
        ]

    def run(self, command: str) -> str:
        """Start the app, report a reading, run a shell command beside it, and stop it."""
        (self.data / "options.json").write_text(json.dumps(self.options))
        (self.data / "options.json").chmod(0o600)
        script = (
            f"{' '.join(self.entry)} & app=$!\nread -r go\n{command}\nkill $app; wait $app; echo ended $?"
        )
        words = self.words("sh", "-c", script)
        with self._buildah.start(*words, stderr=subprocess.STDOUT) as process:
            try:
                first = lines_until(process, "Ready")
                assert report(page_in(first)) == 200
                assert "Our Brewery" in fetched(page_in(first), "/ui/login"), "an option"
                output, _ = process.communicate("go\n", timeout=120)
            finally:
                process.kill()
        assert output.endswith("ended 0\n"), output
        assert "hg_" not in "".join(first) + output.replace("key: hg_", ""), "the log has no key"
        return "\n".join(first) + output


def test_it_starts_with_its_options_as_a_user_without_rights(
    buildah: Buildah, container: str, tmp_path: Path
) -> None:
    app = App(buildah, container, tmp_path)
    output = app.run("grep Uid /proc/$app/status")
    assert "Uid:\t1000\t1000\t1000\t1000" in output
    assert (app.data / "gateway.sqlite3").stat().st_uid == 1000
    assert (app.data / "options.json").stat().st_uid == 0
    key = app.config / "key"
    assert re.fullmatch(r"hg_\S+\n", key.read_text())
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert not (app.data / "first-key").exists()

    first = key.read_text()
    key.unlink()
    app.run("true")
    assert not key.exists(), "a key is made once"
    (app.config / "new-key").touch()
    app.run("true")
    assert key.read_text() != first
    assert not (app.config / "new-key").exists()


def test_a_backup_of_home_assistant_comes_back(
    buildah: Buildah, container: str, tmp_path: Path, config: dict[str, Any]
) -> None:
    """As the Supervisor does it: a command, a copy of the files while the app runs, another command."""
    kept = tmp_path / "kept"
    app = App(buildah, container, tmp_path)
    app.run(config["backup_pre"])
    assert (app.config / "backup.tar").exists()
    leave_out = shutil.ignore_patterns(*config["backup_exclude"])
    for each in (app.data, app.config):
        shutil.copytree(each, kept / each.name, ignore=leave_out)
    # The copy of a database that is being written may be torn.
    (kept / "data/gateway.sqlite3").write_bytes(b"torn")
    app.run(config["backup_post"])
    assert not (app.config / "backup.tar").exists()

    for each in (app.data, app.config):
        shutil.rmtree(each)
        shutil.copytree(kept / each.name, each)
    output = app.run("hydrometer-gateway devices list --json")
    assert "spindle1" in output
    assert "There is now what is in the backup" in output
    assert not (app.config / "backup.tar").exists()
    assert (app.config / "key").read_text() == (kept / "config/key").read_text(), "no further key"


def test_a_copy_that_a_broken_backup_left_is_not_put_back(
    buildah: Buildah, container: str, tmp_path: Path, config: dict[str, Any]
) -> None:
    app = App(buildah, container, tmp_path)
    app.run(config["backup_pre"])
    assert (app.config / "backup.tar").exists()
    assert "There is now what is in the backup" not in app.run("true")
    assert not (app.config / "backup.tar").exists()


def test_a_backup_of_an_app_at_rest_comes_back(buildah: Buildah, container: str, tmp_path: Path) -> None:
    """The Supervisor runs no command then, and the files are whole."""
    app = App(buildah, container, tmp_path)
    app.run("true")
    (app.data / "in-place").unlink()
    (app.config / "key").unlink()
    assert "spindle1" in app.run("hydrometer-gateway devices list --json")
    assert not (app.config / "key").exists()
