"""Every option of every command: flag > environment > file > default, by walking the commands."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer
from typer.core import TyperGroup, TyperOption

from gateway.cli.main import app
from gateway.cli.options import Command, file_key
from gateway.config import default_data_dir
from gateway.errors import ConfigError
from gateway.settings import OPTIONS, Settings
from tests.cases import each

NAME = "hydrometer-gateway"
TRUE, FALSE = True, False
SAMPLES: dict[str, tuple[Any, Any, Any]] = {
    "again": (TRUE, FALSE, TRUE),
    "data_dir": (Path("/by/flag"), Path("/by/env"), Path("/by/file")),
    "host": ("127.0.0.1", "127.0.0.2", "127.0.0.3"),
    "http_host": (["127.0.0.1"], ["127.0.0.2", "::1"], ["%lo"]),
    "mqtt_host": (["127.0.0.1"], ["127.0.0.2", "::1"], ["%lo"]),
    "tcp_host": (["127.0.0.1"], ["127.0.0.2", "::1"], ["%lo"]),
    "port": (1, 2, 3),
    "root": (Path("flag"), Path("env"), Path("file")),
    "tls_cert": (Path("flag"), Path("env"), Path("file")),
    "tls_key": (Path("flag"), Path("env"), Path("file")),
    "tls_port": (1, 2, 3),
    "mqtt_tls_port": (1, 2, 3),
    "tls_only": (TRUE, FALSE, TRUE),
    "name": (["flag"], ["env", "two"], ["file"]),
    "days": (1, 2, 3),
    "mqtt_port": (1, 2, 3),
    "mqtt_url": ("mqtt://flag", "mqtt://env", "mqtt://file"),
    "mqtt_user": ("flag", "env", "file"),
    "mqtt_password_file": (Path("flag"), Path("env"), Path("file")),
    "plaintext": (TRUE, FALSE, TRUE),
    "mqtt_topic": (["a/b=ispindel"], ["beer/SG/=vat 1:gravity"], ["c=tilt", "d/+=ispindel"]),
    "no_mqtt": (TRUE, FALSE, TRUE),
    "ha_discovery": (TRUE, FALSE, TRUE),
    "ha_prefix": ("flag", "env", "file"),
    "ha_brews": (TRUE, FALSE, TRUE),
    "tcp_port": (1, 2, 3),
    "no_tcp": (TRUE, FALSE, TRUE),
    "also_listen": ([80], [5000, 80], [5000]),
    "no_page": (TRUE, FALSE, TRUE),
    "lan_view": (TRUE, FALSE, TRUE),
    "brewery": ("Flag Brewery", "Env Brewery", "File Brewery"),
    "http_socket": (Path("flag"), Path("env"), Path("file")),
    "require_key": (TRUE, FALSE, TRUE),
    "trusted_proxy": (["10.0.0.1/32"], ["10.0.0.0/28", "fd00::/64"], ["10.0.0.2/32"]),
    "ingress_proxy": ("172.30.32.2", "172.30.32.3", "fd00::2"),
    "hostname": (["flag.lan"], ["env.lan", "b"], ["file.lan"]),
    "allowed_origin": (["https://flag"], ["https://env", "http://env:81"], ["https://file"]),
    "cors_origin": (["https://flag"], ["https://env", "http://env:81"], ["https://file"]),
    "upstream_url": ("http://flag", "http://env", "http://file"),
    "upstream_key_file": (Path("flag"), Path("env"), Path("file")),
    "forward_readings": (1, 2, 3),
    "forward_seconds": (1.5, 2.5, 3.5),
    "mirror_from": ("http://flag", "http://env", "http://file"),
    "mirror_key_file": (Path("flag"), Path("env"), Path("file")),
    "mirror_hours": (1.5, 2.5, 3.5),
    "mirror_photos": (TRUE, FALSE, TRUE),
    "from": ("http://flag", "http://env", "http://file"),
    "key_file": (Path("flag"), Path("env"), Path("file")),
    "photos": (TRUE, FALSE, TRUE),
    "rate": (1.5, 2.5, 3.5),
    "per_minute": (1, 2, 3),
    "unused": ("1d", "2d", "3d"),
    "with_readings": (TRUE, FALSE, TRUE),
    "new_devices": ("ask", "accept", "ask"),
    "source": ("flag", "env", "file"),
    "quota": ("1GiB", "2GiB", "3GiB"),
    "names_an_hour": (1, 2, 3),
    "keep_days": (1, 2, 3),
    "nightly_backup": (Path("flag"), Path("env"), Path("file")),
    "nightly_keep": (1, 2, 3),
    "force": (TRUE, FALSE, TRUE),
    "log_level": ("debug", "warning", "error"),
    "device": ("flag", "env", "file"),
    "brew": ("1", "2", "3"),
    "all": (TRUE, FALSE, TRUE),
    "off": (TRUE, FALSE, TRUE),
    "default": (TRUE, FALSE, TRUE),
    "target": ("flag", "env", "file"),
    "channel": ("flag", "env", "file"),
    "as_of_now": (TRUE, FALSE, TRUE),
    "session": ("1", "2", "3"),
    "last": (1, 2, 3),
    "json": (TRUE, FALSE, TRUE),
    "wide": (TRUE, FALSE, TRUE),
    "decimal_comma": (TRUE, FALSE, TRUE),
    "url": ("http://a", "http://b", "http://c"),
    "for": (1.5, 2.5, 3.5),
    "scope": (["read"], ["ingest", "admin"], ["admin"]),
    "batchcode": ("flag", "env", "file"),
    "phase": ("flag", "env", "file"),
    "upstream_id": (1, 2, 3),
    "since": ("2026-01-01", "2026-01-02", "2026-01-03"),
    "account": ("flag", "env", "file"),
    "caption": ("flag", "env", "file"),
    "folder": (1, 2, 3),
    "format": ("json", "csv", "json"),
    "keyword": ("flag", "env", "file"),
    "kind": ("recipe", "brewsession", "recipe"),
    "no_photos": (TRUE, FALSE, TRUE),
    "no_browser": (TRUE, FALSE, TRUE),
    "notes": ("flag", "env", "file"),
    "expires": ("flag", "env", "file"),
    "overlap": ("flag", "env", "file"),
    "object": ("flag", "env", "file"),
    "out": (Path("flag"), Path("env"), Path("file")),
    "all_changes": (TRUE, FALSE, TRUE),
    "quick": (TRUE, FALSE, TRUE),
    "quiet": (TRUE, FALSE, TRUE),
    "deleted": (TRUE, FALSE, TRUE),
    "yes": (TRUE, FALSE, TRUE),
    "raw": (TRUE, FALSE, TRUE),
    "recipe": (1, 2, 3),
    "reset": (TRUE, FALSE, TRUE),
    "seed": (1, 2, 3),
    "set": (["totalwater=1"], ["totalwater=2", "chillmethod=3"], ["totalwater=4"]),
    "snapshots": (TRUE, FALSE, TRUE),
    "label": ("flag", "env", "file"),
    "gravity_unit": ("G", "P", "auto"),
    "temp_unit": ("C", "F", "auto"),
    "interval": (900, 1800, 3600),
    "point": (["25=1.000"], ["25=1.000", "50=1.050"], ["60=1.070"]),
    "degree": (1, 2, 3),
    "polynomial": ("flag", "env", "file"),
    "polynomial_unit": ("G", "P", "G"),
    "gravity_offset": (0.1, 0.2, 0.3),
    "temp_offset": (0.1, 0.2, 0.3),
    "corrected_at": ("20C", "68F", "off"),
    "clear": (TRUE, FALSE, TRUE),
    "dry_run": (TRUE, FALSE, TRUE),
    "to": ("2026-01-01", "2026-01-02", "2026-01-03"),
    "at": ("2026-01-01", "2026-01-02", "2026-01-03"),
    "amount": ("flag", "env", "file"),
    "gravity": ("1.01", "1.02", "1.03"),
    "temp": ("19", "20", "21"),
    "instrument": ("flag", "env", "file"),
    "note": ("flag", "env", "file"),
    "og": ("1.05", "1.06", "1.07"),
    "og_unit": ("G", "P", "G"),
    "send_notes": (TRUE, FALSE, TRUE),
    "lead": ("flag", "env", "file"),
    "secret_file": (Path("flag"), Path("env"), Path("file")),
    "server": ("http://flag", "http://env", "http://file"),
    "template_file": (Path("flag"), Path("env"), Path("file")),
    "content_type": ("flag", "env", "file"),
    "tls": ("tls", "none", "starttls"),
    "user": ("flag", "env", "file"),
    "topic": ("flag", "env", "file"),
    "quiet_hours": ("21:00-07:00", "22:00-07:00", "23:00-07:00"),
    "quiet_critical": (TRUE, FALSE, TRUE),
    "per_hour": (1, 2, 3),
    "per_day": (1, 2, 3),
    "url_file": (Path("flag"), Path("env"), Path("file")),
    "org": ("flag", "env", "file"),
    "bucket": ("flag", "env", "file"),
    "api": (1, 3, 1),
    "preset": ("flag", "env", "file"),
    "template": (Path("flag"), Path("env"), Path("file")),
    "batch": (TRUE, FALSE, TRUE),
    "latest": (TRUE, FALSE, TRUE),
    "min_interval": ("10s", "20s", "30s"),
    "take_back": (TRUE, FALSE, TRUE),
    "userdate": ("2026-01-01", "2026-01-02", "2026-01-03"),
}
"""Of every option by its key in the file: values for flag, environment and file."""

LISTS = {("channels", "add", "to"), ("targets", "add", "device")}
"""Options that may be given often, by command and key; of other commands their keys take one value."""

ARGUMENTS = {
    "name": "anything",
    "device": "red",
    "into": "red",
    "other": "blue",
    "session": "1",
    "recipe": "1",
    "recipes": "1",
    "folder": "1",
    "uuid": "anything",
    "files": "anything",
    "ids": "69a7fb98c0ffee0000000001",
    "file": "anything.json",
    "number": "1",
    "numbers": "1",
    "text": "anything",
    "url": "http://anything",
    "upstream_id": "1",
    "rule": "stuck",
    "values": "hi=22",
    "until": "8h",
}
OWN_DATA_DIR = {"demo"}
NO_DATA_DIR = {"install-service", "uninstall-service"}


def leaves(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """What can be run: commands, and groups that do something themselves."""
    for name, command in group.commands.items():
        if not isinstance(command, TyperGroup) or command.invoke_without_command:
            yield (*path, name)
        if isinstance(command, TyperGroup):
            yield from leaves(command, (*path, name))


@cache
def root() -> TyperGroup:
    """The commands; building them takes longer than all else here."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def leaf(group: TyperGroup, path: tuple[str, ...]) -> Command:
    command: Any = group
    for name in path:
        command = command.commands[name]
    assert isinstance(command, Command)
    return command


@cache
def options(path: tuple[str, ...]) -> dict[str, TyperOption]:
    found = {file_key(p): p for p in leaf(root(), path).params if isinstance(p, TyperOption)}
    return {key: option for key, option in found.items() if key not in {"config", "help"}}


WITHOUT_SETTINGS = {("completion",)}
"""Commands that print a fixed text."""

COMMANDS = sorted(set(leaves(root())) - WITHOUT_SETTINGS)
EVERY_OPTION = [(path, key) for path in COMMANDS for key in options(path)]


def variable(path: tuple[str, ...], key: str) -> str:
    """The name that the contract gives the option."""
    shared = key == "data_dir" and path[0] not in OWN_DATA_DIR
    words = () if shared or path == ("serve",) else path
    return "_".join(["GATEWAY", *words, key]).upper().replace("-", "_")


def given(path: tuple[str, ...], *flags: str) -> dict[str, Any]:
    """What the command is called with."""
    command = leaf(root(), path)
    seen: dict[str, Any] = {}
    arguments = [ARGUMENTS[str(p.name)] for p in command.params if not isinstance(p, TyperOption)]
    with mock.patch.object(command, "callback", lambda **values: seen.update(values)):
        root().main([*path, *flags, *arguments], prog_name=NAME, standalone_mode=False)
    return seen


def flags_for(key: str, value: Any) -> list[str]:
    flag = "--" + key.replace("_", "-")
    return [flag] if value is True else [flag, *map(str, value if isinstance(value, list) else [value])]


def samples(path: tuple[str, ...], key: str) -> tuple[Any, Any, Any]:
    """Values by flag, environment and file; `--user` is a name here and a switch there."""
    return (TRUE, FALSE, TRUE) if options(path)[key].is_flag else SAMPLES[key]


def needed(path: tuple[str, ...], but: str = "") -> list[str]:
    """Flags that the command cannot do without, but for one."""
    missing = [key for key, option in options(path).items() if option.required and key != but]
    return [word for key in missing for word in flags_for(key, SAMPLES[key][0])]


def in_environment(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def file_text(path: tuple[str, ...], key: str, value: Any) -> str:
    table = "" if path == ("serve",) else f"[{'.'.join(path)}]\n"
    return f"{table}{key} = {json.dumps(str(value) if isinstance(value, Path) else value)}\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE_DIRECTORY", "XDG_DATA_HOME", "GATEWAY_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("gateway.config.SERVICE_DATA_DIR", tmp_path / "service")
    return tmp_path


def test_the_samples_are_exactly_the_options_there_are() -> None:
    assert {key for _, key in EVERY_OPTION} == set(SAMPLES)
    assert set(options(("serve",))) == set(OPTIONS)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_takes_data_dir_and_config(path: tuple[str, ...]) -> None:
    names = {file_key(p) for p in leaf(root(), path).params if isinstance(p, TyperOption)}
    assert {"config"} | ({"data_dir"} if path[0] not in NO_DATA_DIR else set()) <= names


@pytest.mark.parametrize(
    ("path", "key"), EVERY_OPTION, ids=lambda part: "-".join([part] if isinstance(part, str) else part)
)
def test_flag_beats_environment_beats_file_beats_default(
    path: tuple[str, ...], key: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = options(path)[key]
    name = str(option.name)
    flag, environment, file = ([each] if (*path, key) in LISTS else each for each in samples(path, key))
    config = home / "gateway.toml"
    config.write_text("")
    basics = ["--config", str(config), *needed(path, but=key)]
    default = None
    if not option.required:
        default = given(path, *basics)[name]
        assert default != file
    config.write_text(file_text(path, key, file))
    assert given(path, *basics)[name] == file
    monkeypatch.setenv(variable(path, key), in_environment(environment))
    assert given(path, *basics)[name] == environment
    assert given(path, *basics, *flags_for(key, flag))[name] == flag
    config.write_text("")
    monkeypatch.delenv(variable(path, key))
    if not option.required:
        assert given(path, *basics)[name] == default


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_names_the_variable_of_every_option(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    root().main([*path, "--help"], prog_name=NAME, standalone_mode=False)
    shown = "".join(capsys.readouterr().out.split())
    for key in options(path):
        assert f"envvar:{variable(path, key)}" in shown


def test_what_serve_is_told_reaches_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Settings] = []
    monkeypatch.setattr("gateway.app.serve", lambda settings, say: told.append(settings))
    monkeypatch.setattr("gateway.cli.serve.set_up_logging", lambda level: None)
    flags = [word for key in options(("serve",)) for word in flags_for(key, SAMPLES[key][0])]
    root().main(["serve", *flags], prog_name=NAME, standalone_mode=False)
    assert told[0] == Settings(**{key: SAMPLES[key][0] for key in OPTIONS})


def test_defaults_of_serve(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Settings] = []
    monkeypatch.setattr("gateway.app.serve", lambda settings, say: told.append(settings))
    monkeypatch.setattr("gateway.cli.serve.set_up_logging", lambda level: None)
    root().main(["serve"], prog_name=NAME, standalone_mode=False)
    assert told == [Settings()]
    settings = told[0]
    assert (settings.host, settings.port, settings.mqtt_port, settings.no_mqtt) == ("", 8080, 1883, False)
    assert settings.data_dir == home / ".local" / "share" / NAME
    assert settings.upstream_url is None


def test_data_dir_by_systemd_then_xdg_then_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert default_data_dir() == home / ".local" / "share" / NAME
    monkeypatch.setenv("XDG_DATA_HOME", "/xdg")
    assert default_data_dir() == Path("/xdg") / NAME
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/one:/var/lib/two")
    assert default_data_dir() == Path("/var/lib/one")


def test_commands_find_the_services_data_where_there_is_no_own(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(*path: str) -> object:
        return given(path)["data_dir"]

    own, service = home / ".local" / "share" / NAME, home / "service"
    assert found("devices", "list") == own  # neither is there
    (home / "private").mkdir()
    service.symlink_to(home / "private")  # as systemd has it with DynamicUser=
    assert found("devices", "list") == found("doctor") == found("backup") == service
    assert found("serve") == own  # never the data of another gateway
    own.mkdir(parents=True)
    assert found("devices", "list") == service  # an empty directory is no data
    (own / "control.sock").touch()
    assert found("devices", "list") == own
    config = home / "gateway.toml"
    config.write_text('data_dir = "/by/file"\n')
    assert given(("devices", "list"), "--config", str(config))["data_dir"] == Path("/by/file")
    monkeypatch.setenv("GATEWAY_DATA_DIR", "/by/env")
    assert found("devices", "list") == Path("/by/env")
    monkeypatch.delenv("GATEWAY_DATA_DIR")
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/state")
    assert found("devices", "list") == Path("/var/lib/state")


@pytest.mark.parametrize("path", [path for path in COMMANDS if path[0] not in NO_DATA_DIR], ids=" ".join)
def test_the_files_data_dir_is_that_of_all_commands_but_the_demo(path: tuple[str, ...], home: Path) -> None:
    config = home / "gateway.toml"
    config.write_text('data_dir = "/by/file"\n')
    expected = None if path[0] in OWN_DATA_DIR else Path("/by/file")
    assert given(path, "--config", str(config), *needed(path))["data_dir"] == expected


def test_a_commands_own_data_dir_in_the_file_wins(home: Path) -> None:
    config = home / "gateway.toml"
    config.write_text('data_dir = "/all"\n[keys.list]\ndata_dir = "/keys"\n')
    assert given(("keys", "list"), "--config", str(config))["data_dir"] == Path("/keys")
    assert given(("keys", "revoke"), "--config", str(config))["data_dir"] == Path("/all")


def test_the_default_file_is_in_the_xdg_config_directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "config" / NAME / "gateway.toml"
    file.parent.mkdir(parents=True)
    file.write_text("port = 1234\n")
    assert given(("serve",))["port"] == 1234
    other = home / "other.toml"
    other.write_text("port = 4321\n")
    monkeypatch.setenv("GATEWAY_CONFIG", str(other))
    assert given(("serve",))["port"] == 4321


WRONG_FILES = [
    (
        "prot = 1",
        "unknown key 'prot' in the configuration file (did you mean 'port'?); known here: allowed_origin,",
        "",
    ),
    ("config = 'x'", "unknown key 'config'", ""),
    ("help = true", "unknown key 'help'", ""),
    ("[serve]\nport = 1", "unknown key 'serve'", ""),
    ("[redings]\nlast = 1", "unknown key 'redings'", ""),
    (
        "readings = 3",
        "unknown key 'readings' in the configuration file; known here: accounts, alarms, audit,",
        "",
    ),
    (
        "[readings]\nfirst = 3",
        "unknown key 'readings.first' in the configuration file; known here: data_dir",
        "readings",
    ),
    ("[readings.add]\nlast = 3", "unknown key 'readings.add'", "readings"),
    ("[sessions.add]\nbatch = 'x'", "unknown key 'sessions.add.batch'", "sessions update"),
    ("[sessions]\nbatchcode = 'x'", "unknown key 'sessions.batchcode'", "sessions"),
    ("port = ", "is not valid TOML", ""),
]
"""Files, what is said of them, and the command whose keys are wrong; none: every command says so."""


@each("text, message, concerned", WRONG_FILES)
def test_a_file_that_is_not_understood_is_refused(
    tmp_path: Path, text: str, message: str, concerned: str
) -> None:
    """By the command that it concerns, by `doctor`, and by every command if it concerns none."""
    config = tmp_path / "gateway.toml"
    config.write_text(text)
    group = [path for path in COMMANDS if concerned and path[0] == concerned.split()[0]]
    for path in [("doctor",), *(group or [("serve",), ("keys", "list")])]:
        with pytest.raises(ConfigError) as refused:
            given(path, "--config", str(config), *needed(path))
        assert message in str(refused.value)
        assert "\n" not in str(refused.value)
    if concerned:
        assert given(("keys", "list"), "--config", str(config))["config"] == config


def test_the_doctor_examines_the_keys_of_every_command(home: Path) -> None:
    config = home / "gateway.toml"
    for path in COMMANDS:
        if path not in {("serve",), ("doctor",)}:
            config.write_text(file_text(path, "nothing", 1))
            with pytest.raises(ConfigError, match=f"unknown key '{'.'.join(path)}.nothing'"):
                given(("doctor",), "--config", str(config))


def test_a_file_that_is_named_must_be_there(home: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"cannot read the configuration file .*: there is no such file or directory"
    ):
        given(("serve",), "--config", str(home / "nowhere.toml"))


def test_the_version_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_VERSION", "1.2.3")
    assert given(("keys", "list"))["config"] is None


def test_several_topics_in_the_environment_have_semicolons_between_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_MQTT_TOPIC", "beer/SG/=vat 1:gravity; brewery/+=tilt;")
    assert given(("serve",))["mqtt_topic"] == ["beer/SG/=vat 1:gravity", "brewery/+=tilt"]
