"""Completion in a shell: real bash, names from the running gateway and at rest, and never an error."""

import asyncio
import shutil
import socket
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from gateway.cli import COMPLETING, client, naming
from gateway.cli.client import ask, get
from gateway.cli.completing import FILES, SCRIPTS, candidates, quoted, split
from gateway.cli.main import app
from gateway.http.both_ends import SOCKET_NAME
from gateway.store import glance
from tests.cases import each
from tests.payloads import ispindel
from tests.program.program import answer, environment, post
from tests.system.cli.conftest import gateway, inside, stored

LABEL = "Red's $5 (Ä)"

BY_BASH = {
    "hydrometer-gateway dev": ["devices"],
    "hydrometer-gateway devices show ispindel:10": ["1001", "1002"],
    "hydrometer-gateway devices show Red": [r"Red\'s\ \$5\ \(Ä\)"],
    'hydrometer-gateway devices show "Red': ["\"Red's \\$5 (Ä)"],
    "hydrometer-gateway devices show nothing": [],
    "hydrometer-gateway readings --session=HP": ["HP001"],
}
"""What stands before the cursor, and what bash is given for the last part of the word."""

TRY = """
PATH=$1:$PATH
eval "$(hydrometer-gateway completion bash)"
while IFS= read -r COMP_LINE; do
    COMP_POINT=${#COMP_LINE}
    last=${COMP_LINE##*[ =:]}  # bash itself splits a line at all of COMP_WORDBREAKS
    COMP_WORDS=(${COMP_LINE//[=:]/ })
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _hydrometer_gateway hydrometer-gateway "$last" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf '%s\\n' "${COMPREPLY[@]}" --
done
"""


async def fill(data: Path) -> None:
    """Leave two devices, the first one with a label, and a brew session at rest."""
    await stored(data, ispindel(1001, name="one"), ispindel(1002, name="two"))
    await asyncio.to_thread(ask, data, "PATCH", "/manage/devices/1", body={"label": LABEL})
    await asyncio.to_thread(ask, data, "POST", "/manage/brewsessions", body={"batchcode": "HP001"})


def asked(data: Path, begun: str) -> tuple[list[str], list[str]]:
    """Words for devices and for brew sessions."""
    context: Any = Mock(params={"data_dir": data})
    devices, sessions = naming.device_words(context, begun), naming.session_words(context, begun)
    return [word for word, _ in devices], [word for word, _ in sessions]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
async def test_bash_completes_commands_options_and_names(tmp_path: Path) -> None:
    await fill(tmp_path)
    async with inside(tmp_path):
        process = await asyncio.create_subprocess_exec(
            *("bash", "--norc", "-c", TRY, "bash", str(Path(sys.executable).parent)),
            env=environment({"GATEWAY_DATA_DIR": str(tmp_path), "LC_ALL": "C.UTF-8"}),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        )
        out, err = await process.communicate("".join(f"{line}\n" for line in BY_BASH).encode())
    assert err == b""
    found = [part.splitlines() for part in out.decode().split("--\n")[:-1]]
    assert [list(filter(None, lines)) for lines in found] == list(BY_BASH.values())


BEGUN = {
    "": ["1", LABEL, "2", "two"],
    "R": [LABEL],
    "is": ["ispindel:1001", "ispindel:1002"],
    "one": ["one"],
    "1": ["1001", "1", "1002"],
    "x": [],
}
"""What is typed of a device's name, and the words that are offered."""


def at_rest(data: Path) -> list[tuple[list[str], list[str]]]:
    """Ask at rest, which changes nothing there."""
    files = sorted(data.iterdir())
    found = [asked(data, begun) for begun in BEGUN]
    assert sorted(data.iterdir()) == files
    return found


async def test_names_are_the_same_from_the_gateway_and_at_rest(tmp_path: Path) -> None:
    await fill(tmp_path)
    rest = at_rest(tmp_path)
    assert [devices for devices, _ in rest] == list(BEGUN.values())
    assert rest[0][1] == ["1", "HP001"]
    listed = await asyncio.to_thread(get, tmp_path, "/manage/devices")
    members = ("id", "key", "device_id", "name", "label")
    assert glance.devices(tmp_path) == [
        {name: one[name] or "" for name in members} for one in listed["devices"]
    ]
    listed = await asyncio.to_thread(get, tmp_path, "/manage/brewsessions", query={"everyone": True})
    assert glance.brew_sessions(tmp_path) == [
        {name: one[name] for name in ("id", "batchcode")} for one in listed["brewsessions"]
    ]
    async with inside(tmp_path):
        assert [await asyncio.to_thread(asked, tmp_path, begun) for begun in BEGUN] == rest


def test_words_that_stand_for_two_or_cannot_be_typed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"key": "k", "device_id": "", "label": "", "merged_in": []}
    names = ["same", "same", "bell\a", "line\nbreak", "fine"]
    answer = {"devices": [{**record, "id": n, "key": f"k{n}", "name": name} for n, name in enumerate(names)]}
    monkeypatch.setattr(naming, "ask_briefly", lambda *_: answer)
    words = naming.device_words(Mock(params={"data_dir": Path()}), "")
    assert [word for word, _ in words] == ["0", "1", "2", "3", "4", "fine"]
    assert dict(words)["2"] == ""
    monkeypatch.setattr(naming, "WORDS", 3)
    assert len(naming.device_words(Mock(params={"data_dir": Path()}), "")) == 3


async def test_a_gateway_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path)
    monkeypatch.setattr(client, "BRIEFLY_S", 0.1)
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(tmp_path / SOCKET_NAME))
        hanging.listen()
        assert asked(tmp_path, "") == (BEGUN[""], ["1", "HP001"])


async def test_no_error_stands_among_the_candidates(tmp_path: Path) -> None:
    """Nor does a damaged database, a file that is not understood, or a bug."""
    (tmp_path / "gateway.sqlite3").write_text("no database")
    (tmp_path / "gateway.toml").write_text("port = ")
    env = {"GATEWAY_DATA_DIR": str(tmp_path), "GATEWAY_CONFIG": str(tmp_path / "gateway.toml")}
    for shell, words in (("zsh", ["devices", "show", ""]), ("bash", ["too", "many", "words"])):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *words),
            env=environment({**env, COMPLETING: shell}),
            stdout=PIPE,
            stderr=PIPE,
        )
        assert await process.communicate() == (b"", b"")
        assert process.returncode == (0 if shell == "zsh" else FILES)


@each(
    "line, expected",
    [
        ("a b c", (["a", "b"], "c", "c")),
        ("a b ", (["a", "b"], "", "")),
        ("a 'b c' d\\ e", (["a", "b c"], "d e", "d\\ e")),
        ('a "b \\" \\\\ c', (["a"], 'b " \\ c', '"b \\" \\\\ c')),
        ("a 'it'\\''s", (["a"], "it's", "'it'\\''s")),
        ("a x\\", (["a"], "x", "x\\")),
        ("a ''", (["a"], "", "''")),
        ("", ([], "", "")),
    ],
)
def test_a_line_is_split_as_a_shell_does(line: str, expected: tuple[list[str], str, str]) -> None:
    assert split(line) == expected


@each("quote", ["", "'", '"'])
def test_what_is_quoted_is_read_as_it_was(quote: str) -> None:
    word = "".join(map(chr, range(32, 127))) + "äß "
    assert split(f"x {quoted(word, quote)}{quote}")[:2] == (["x"], word)


@each(
    "words, last, expected",
    [
        ([], "sess", ["sessions"]),
        ([], "--vers", ["--version"]),
        (["devices"], "unb", ["unbind"]),
        (["devices", "list"], "--w", ["--wide"]),
        (["readings", "export", "1", "--format"], "", ["json", "csv"]),
        (["readings", "export", "1"], "--format=c", ["--format=csv"]),
        (["nonsense"], "", []),
        (["devices", "nonsense"], "", []),
    ],
)
def test_options_and_their_values_are_completed(words: list[str], last: str, expected: list[str]) -> None:
    assert [word for word, _ in candidates(app, words, last) or ()] == expected


@each("words", [["recipes", "import"], ["backup"], ["readings", "import", "1", "--config"]])
def test_files_are_left_to_the_shell(words: list[str]) -> None:
    assert candidates(app, words, "") is None


@each("shell", [*SCRIPTS])
def test_each_shell_reads_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        app(["completion", shell], prog_name="hydrometer-gateway")
    assert not ended.value.code
    text = capsys.readouterr().out
    assert f"{COMPLETING}={shell}" in text
    assert "%" not in text.replace("%%", "").replace("%$", "")


LISTED = {
    ("targets", "pause"): ["club"],
    ("targets", "map"): ["club"],
    ("keys", "revoke"): ["phone"],
    ("channels", "test"): ["house"],
    ("alarms", "test", "--channel"): ["house"],
    ("recipes", "list", "--account"): ["anna", "owner"],
    ("inbox", "accept"): ["ispindel:1003"],
}
"""Words before the last one, and the names that the running gateway has for it."""


async def test_names_in_lists_of_the_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, key = tmp_path / "data", tmp_path / "club.key"
    key.write_text("secret=0123456789abcdef0123456789abcdef")
    monkeypatch.setenv("GATEWAY_DATA_DIR", str(data))
    async with gateway(data, new_devices="ask") as (server, http):
        await post(http, server, ispindel(1003, name="three"))
        await answer(data, ("targets", "add", "club", "https://brew.example", "--key-file", str(key)))
        await answer(data, "keys add phone")
        await answer(data, "accounts add anna")
        hook = ("--kind", "webhook", "--url", "http://nodered.lan:1880/alarm", "--secret-file", str(key))
        await answer(data, ("channels", "add", "house", *hook))
        for words, expected in LISTED.items():
            found = await asyncio.to_thread(candidates, app, [*words], expected[0][:1])
            assert [word for word, _ in found or ()] == expected[:1], words
            assert await asyncio.to_thread(candidates, app, [*words], "x") in ([], None)
        everyone = await asyncio.to_thread(candidates, app, ["recipes", "list", "--account"], "")
        assert {word for word, _ in everyone or ()} == {"anna", "owner"}
    assert candidates(app, ["targets", "pause"], "") == []  # no gateway, no word


@each(
    "last, expected",
    [
        ("brewery/bpl1=brewp", ["brewery/bpl1=brewpiless"]),
        ("brewery/bpl1", []),
        ("a=zz", []),
    ],
)
def test_families_are_completed_behind_a_topic(last: str, expected: list[str]) -> None:
    found = candidates(app, ["serve", "--mqtt-topic"], last) or ()
    assert [word for word, _ in found] == expected
