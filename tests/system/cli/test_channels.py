"""`channels`: added, listed, tested, paused and removed; and their secrets, which are nowhere to be found."""

import asyncio
import gzip
import logging
import re
import stat
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.mail_server import MailServer
from tests.program.program import answer, command, ispindel, post, refusal
from tests.receivers import Receiver, Reply, Request
from tests.system.cli.conftest import gateway

PLANTED = {
    "topic": "planted-topic-51c2",
    "token": "planted-token-88fe",
    "path": "planted-path-0d3a",
    "sign": "planted-sign-7e11",
    "password": "planted-password-5b1f",
    "apprise": "planted-apprise-c0de",
}
"""Secrets of all kinds of channels."""


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver().listening() as listening:
        yield listening


def members(lines: list[str]) -> dict[str, str]:
    return {
        name: value for name, value in (re.split("  +", line, maxsplit=1) for line in lines if "  " in line)
    }


def secret(folder: Path, name: str, *lines: str) -> str:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
    return str(path)


async def test_from_adding_to_removing(data: Path, tmp_path: Path) -> None:
    file = secret(tmp_path, "topic", "brewery-x7")
    made = await answer(data, "channels add phone --kind ntfy --quiet-hours 22:00-7:00 --topic-file", file)
    assert (made.out, made.err) == ("", "`channels test phone` sends a message now.\n")
    said = members((await answer(data, "channels list")).lines)
    assert said == {
        "channel": "phone", "kind": "ntfy", "to": "https://ntfy.sh",
        "quiet hours": "22:00-07:00", "secret": file, "waiting": "0", "state": "ok",
    }  # fmt: skip
    await answer(data, "channels pause phone")
    [found] = (await answer(data, "channels list --json")).objects
    assert (found["paused"], found["settings"]) == (True, {"quiet": "22:00-07:00"})
    assert "paused by you" in (await answer(data, "channels list")).out
    tested = await command(data, "channels test phone")
    assert (tested.status, tested.out) == (
        1,
        "not sent: phone is paused; `channels resume phone` lets it go on\n",
    )
    await answer(data, "channels resume phone")
    await answer(data, "channels remove phone")
    assert (await answer(data, "channels list")).out == ""
    assert "did you mean" not in await refusal(data, "channels test phone")


async def test_what_is_wrong_is_said(data: Path, tmp_path: Path) -> None:
    assert "--kind is one of ntfy" in await refusal(data, "channels add phone")
    assert "did you mean 'ntfy'" in await refusal(data, "channels add phone --kind ntfi")
    assert "the topic is missing, and there is no terminal" in await refusal(
        data, "channels add phone --kind ntfy"
    )
    missing = await refusal(data, "channels add phone --kind ntfy --topic-file", str(tmp_path / "none"))
    assert "there is no such file" in missing
    assert "link-local" in await refusal(
        data, "channels add hook --kind webhook --url http://169.254.169.254/x"
    )
    assert "has no setting" in await refusal(data, "channels add broker --kind mqtt --host x")
    assert "host is missing" in await refusal(data, "channels add mail --kind email")
    await answer(data, "channels add hook --kind webhook --url http://127.0.0.1:9/x")
    assert "there is a channel hook already" in await refusal(
        data, "channels add hook --kind webhook --url http://127.0.0.1:9/y"
    )
    assert "did you mean 'hook'" in await refusal(data, "channels test hok")


async def test_a_file_that_others_can_read_is_told_of(data: Path, tmp_path: Path) -> None:
    file = secret(tmp_path, "topic", "x")
    await asyncio.to_thread(Path(file).chmod, 0o644)
    made = await answer(data, "channels add phone --kind ntfy --topic-file", file)
    assert made.err.startswith(f"Other users can read {file}: chmod 600 {file}\n")


async def test_without_a_gateway_nothing_is_sent(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await answer(data, "channels add hook --kind webhook --url http://127.0.0.1:9/x")
    tested = await command(data, "channels test hook")
    assert (tested.status, tested.out) == (1, "not sent: no gateway is running\n")


async def test_a_test_goes_through_the_daemon(tmp_path: Path, receiver: Receiver) -> None:
    data, template = tmp_path / "data", tmp_path / "template"
    template.write_text('{"content": "{{text}}"}')
    receiver.script = [Reply(200, b"thanks"), Reply(404, b"gone")]
    async with gateway(data) as (server, _):
        url = f"{receiver.url}/in"
        await answer(data, "channels add hook --kind webhook --template-file", str(template), "--url", url)
        assert (await answer(data, "channels test hook")).out == "taken (HTTP 200: thanks)\n"
        tested = await command(data, "channels test hook")
        assert (tested.status, tested.out) == (1, "not taken: HTTP 404: gone\n")
        said = members((await answer(data, "channels list")).lines)
        assert said["state"].startswith("HTTP 404: gone, since 20")
        assert said["to"] == f"http://127.0.0.1:{receiver.port}"
        assert receiver.requests[0].json == {
            "content": "This is a test of the channel hook: alarms will come like this."
        }
        own = f"http://127.0.0.1:{server.port}/v1/x"
        await answer(data, "channels add self --kind webhook --url", own)
        tested = await command(data, "channels test self")
        assert tested.status == 1
        assert "is one of this gateway" in tested.out


async def test_secrets_are_nowhere_but_in_their_files(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """Of all kinds, while everything fails and servers repeat what they were sent."""
    caplog.set_level(logging.DEBUG)
    data, kept = tmp_path / "data", tmp_path / "kept"
    kept.mkdir()
    said: list[str] = []

    def repeat(request: Request) -> Reply:
        headers = " ".join(request.headers.values())
        return Reply(403, f"{request.path} {headers} {request.body.decode()}".encode())

    receiver.reply = repeat
    server = MailServer(answers={"CONNECT": f"554 {PLANTED['password']}"})
    async with server.listening(), gateway(data) as (running, http):
        where = f"http://127.0.0.1:{receiver.port}"
        topic = secret(kept, "topic", PLANTED["topic"], f"token={PLANTED['token']}")
        url = secret(kept, "hook", PLANTED["sign"], f"url={where}/{PLANTED['path']}?key={PLANTED['path']}")
        password = secret(kept, "password", PLANTED["password"])
        urls = secret(kept, "urls", f"json://{PLANTED['apprise']}@127.0.0.1:9/")
        await answer(data, "channels add phone --kind ntfy --server", where, "--topic-file", topic)
        await answer(data, "channels add hook --kind webhook --secret-file", url)
        await answer(data, "channels add own --kind webhook --url", f"{where}/{PLANTED['path']}")
        mail = f"--host 127.0.0.1 --port {server.port} --user me --from a@example.org --to b@example.org"
        await answer(data, f"channels add mail --kind email {mail} --secret-file", password)
        await answer(data, "channels add chat --kind apprise --secret-file", urls)
        for name in ("phone", "hook", "own", "mail", "chat"):
            tested = await command(data, f"channels test {name}")
            assert tested.status == 1, tested
            said += [tested.out, tested.err]
        assert len(receiver.requests) == 3
        for words in ("channels list", "channels list --json", "audit list --json", "doctor"):
            listed = await command(data, words)
            said += [listed.out, listed.err]
        assert await post(http, running, ispindel(1)) == 200
        assert running.first_key is not None
        headers = {"X-API-KEY": running.first_key}
        for path in (
            "/manage/channels",
            "/manage/status",
            "/manage/audit",
            "/metrics",
            "/healthz",
            "/manage/alarms",
        ):
            async with http.get(f"{running.url}{path}", headers=headers) as response:
                said.append(await response.text())
        backup = tmp_path / "gateway.tar"
        made = await answer(data, "backup", str(backup))
        names = "chat, hook, mail, own, phone"
        assert made.err == f"Not in it are the secrets of channels: {names}. They are files of your own.\n"
        captured = await command(data, "capture spindle1", str(tmp_path / "captured"))
        said += [made.out, captured.out, captured.err, *running.lines]
        assert stat.S_IMODE((await asyncio.to_thread((data / "secrets" / "own").stat)).st_mode) == 0o600
    said += [record.getMessage() for record in caplog.records]
    assert len(said) > 50
    found = await asyncio.to_thread(planted_in, data, backup, tmp_path / "captured", "\n".join(said).encode())
    assert found == [f"secrets/own: {PLANTED['path']}"]


async def test_an_address_beside_a_secret_file_is_shown_nowhere(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    receiver.reply = lambda request: Reply(404, f"nothing at {request.path}".encode())
    async with gateway(data) as (running, http):
        file = secret(tmp_path, "sign", PLANTED["sign"])
        url = f"http://127.0.0.1:{receiver.port}/{PLANTED['path']}"
        await answer(data, "channels add hook --kind webhook --secret-file", file, "--url", url)
        tested = await command(data, "channels test hook")
        listed = await answer(data, "channels list --json")
        async with http.get(
            f"{running.url}/manage/channels", headers={"X-API-KEY": str(running.first_key)}
        ) as response:
            said = [tested.out, tested.err, listed.out, await response.text(), *running.lines]
    assert receiver.requests[0].path == f"/{PLANTED['path']}"
    assert "nothing at /<secret>" in said[0]
    assert f"http://127.0.0.1:{receiver.port}" in listed.out
    said += [record.getMessage() for record in caplog.records]
    assert PLANTED["path"] not in "\n".join(said)


def planted_in(data: Path, backup: Path, captured: Path, said: bytes) -> list[str]:
    """Where secrets are: in files of the data directory, in the backup, a capture, or in what was said."""
    texts = {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}
    with tarfile.open(backup) as archive:
        names = archive.getnames()
        for name in names:
            file = archive.extractfile(name)
            assert file is not None
            texts[f"backup: {name}"] = file.read()
    assert "backup: gateway.sqlite3" in texts
    if captured.is_dir():
        texts |= {
            f"captured: {path.name}": path.read_bytes() for path in captured.rglob("*") if path.is_file()
        }
    texts["said"] = said
    return sorted(
        {
            f"{name}: {word}"
            for name, content in texts.items()
            for word in PLANTED.values()
            if word.encode() in content
            or (content[:2] == b"\x1f\x8b" and word.encode() in gzip.decompress(content))
        }
    )
