"""Channels: what is taken and what is refused, where secrets are, and where they are not."""

import asyncio
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.alarm import ChannelKind
from gateway.errors import InvalidInput, NameTaken, NotFound
from gateway.services.build import Services
from gateway.services.channel_settings import checked_settings, hidden, parse_secret
from gateway.services.channels import CHANNELS
from tests.patience import PATIENCE_S

MAIL = {"host": "mail.example.org", "sender": "a@example.org", "to": ["b@example.org"]}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def text(path: Path) -> str:
    return path.read_text()


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("telegram", {}, "no kind 'telegram'"),
        ("ntfi", {}, "did you mean 'ntfy'"),
        ("ntfy", {"url": "https://x.test"}, "has no setting 'url'"),
        ("ntfy", {"server": "ftp://x.test"}, "server: the address must begin with http"),
        ("ntfy", {"server": "https://x.test?a=b"}, "server: must be the address of a server"),
        ("webhook", {"url": "http://user:word@x.test"}, "url: the address has a user or password"),
        ("webhook", {"url": "http://169.254.169.254/"}, "url: 169.254.169.254 is a link-local address"),
        ("webhook", {"template": "{{nothing}}"}, "template: a template has no {{nothing}}"),
        ("webhook", {"template": '{"a": {{text}}'}, "template: the template is not JSON"),
        ("webhook", {"template": "x", "content_type": "text/html"}, "template: a template is of the type"),
        ("email", {}, "host is missing"),
        (
            "email",
            {**MAIL, "sender": "a@example.org\r\nBcc: c@example.org"},
            "sender: must be an e-mail address",
        ),
        ("email", {**MAIL, "to": ["b@example.org\nX: y"]}, "to: must be an e-mail address"),
        ("email", {**MAIL, "to": []}, "to: must be 1 to 10"),
        ("email", {**MAIL, "to": ["b@example.org"] * 11}, "to: must be 1 to 10"),
        ("email", {**MAIL, "tls": "none", "user": "me"}, "tls: a login goes through TLS only"),
        ("email", {**MAIL, "user": "jürgen"}, "user: must be of letters without accents"),
        ("email", {**MAIL, "tls": "ssl"}, "tls: must be starttls or tls or none"),
        ("email", {**MAIL, "port": 0}, "port: must be a whole number from 1 to 65535"),
        ("email", {**MAIL, "port": True}, "port: must be a whole number"),
        ("email", {**MAIL, "host": "mail example"}, "host: must be the name"),
        ("mqtt", {"topic": "a/#"}, "topic: # and \\+"),
        ("ntfy", {"quiet": "22-7"}, "quiet: quiet hours must look like 22:00-07:00"),
        ("ntfy", {"quiet_critical": "yes"}, "quiet_critical: must be true or false"),
        ("ntfy", {"per_hour": 0}, "per_hour: must be a whole number from 1"),
    ],
)
def test_settings_that_are_refused(kind: ChannelKind, settings: Mapping[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        checked_settings(kind, settings)


@pytest.mark.parametrize(
    ("kind", "given", "parts"),
    [
        ("ntfy", "brewery-x7\n", {"topic": "brewery-x7"}),
        ("ntfy", "brewery-x7\ntoken=tk_1\n", {"topic": "brewery-x7", "token": "tk_1"}),
        ("ntfy", "token=tk_1\ntopic=brewery-x7", {"topic": "brewery-x7", "token": "tk_1"}),
        ("ntfy", "topic=brewery-x7\ntoken=", {"topic": "brewery-x7"}),
        ("webhook", "whsec_aGVsbG8=", {"secret": "whsec_aGVsbG8="}),
        ("webhook", "", {}),
        ("email", "pass=word with = and spaces", {"password": "pass=word with = and spaces"}),
        ("apprise", "tgram://a/b\nmailto://c\n", {"url": "tgram://a/b\nmailto://c"}),
    ],
)
def test_secrets(kind: ChannelKind, given: str, parts: dict[str, str]) -> None:
    assert parse_secret(kind, given) == parts


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        ("ntfy", "", "the topic is missing"),
        ("ntfy", "token=planted", "the topic is missing"),
        ("ntfy", "planted topic", "the topic is of letters"),
        ("ntfy", "planted\nplanted2", "is one line"),
        ("webhook", "whsec_planted%", "not base64"),
        ("webhook", "url=ftp://planted", "must begin with http"),
        ("email", "planted\x1b[0m", "nobody can type"),
        ("email", "pläntédplanted", "the password is of letters without accents"),
        ("mqtt", "planted", "has no secret"),
        ("apprise", "", "the url is missing"),
        ("email", "planted" * 1000, "characters at most"),
    ],
)
def test_secrets_that_are_refused_are_not_repeated(kind: ChannelKind, given: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        parse_secret(kind, given)
    assert "planted" not in str(refused.value)


def test_pieces_of_an_address_are_hidden() -> None:
    parts = {"url": "https://chat.example/hooks/T0K3N%2Fx/in?key=planted&a=b"}
    assert hidden("Cannot POST /hooks/T0K3N%2Fx/in?key=planted&a=b", parts) == "Cannot POST /<secret>"
    assert hidden("no T0K3N/x, planted nor in", parts) == "no <secret>, <secret> nor in"
    assert hidden("redirects to chat.example", parts) == "redirects to chat.example"
    assert hidden("123456:ABC is wrong", {"url": "tgram://123456:ABC/42"}) == "<secret>:ABC is wrong"


def test_a_secret_that_a_server_repeats_is_hidden() -> None:
    parts = {"topic": "brewery", "token": "brewery-token", "url": "https://a/b\nhttps://c/d"}
    said = "no brewery-token for brewery at https://c/d\x1b[31m"
    assert hidden(said, parts) == "no <secret> for <secret> at <secret> [31m"


async def test_a_secret_is_in_a_file_for_its_owner_alone(services: Services, tmp_path: Path) -> None:
    await services.channels.add("phone", "ntfy", {}, secret="brewery-x7")
    [state] = await services.channels.states()
    file = Path(state.channel.secret_file or "")
    assert file == tmp_path / "secrets" / "phone"
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert text(file) == "topic=brewery-x7\n"
    assert "brewery" not in str(state)
    await services.channels.remove("phone")
    assert not list(file.parent.iterdir())


async def test_a_given_file_stays_where_it_is(services: Services, tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_text("brewery-x7")
    await services.channels.add("phone", "ntfy", {}, secret_file=file)
    await services.channels.remove("phone")
    assert text(file) == "brewery-x7"
    with pytest.raises(InvalidInput, match="there is no such file"):
        await services.channels.add("phone", "ntfy", {}, secret_file=tmp_path / "nothing")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        await services.channels.add("phone", "ntfy", {}, secret_file=file)
    assert await services.channels.states() == []


async def test_the_address_of_a_webhook_is_kept_as_a_secret(services: Services, tmp_path: Path) -> None:
    address = "https://chat.example/hooks/planted?key=planted"
    await services.channels.add("chat", "webhook", {"url": address}, secret="whsec_aGVsbG8=")
    [state] = await services.channels.states()
    assert state.channel.settings == {"shown": "https://chat.example"}
    assert text(tmp_path / "secrets" / "chat") == f"secret=whsec_aGVsbG8=\nurl={address}\n"


async def test_what_belongs_together(services: Services) -> None:
    add = services.channels.add
    with pytest.raises(InvalidInput, match="url is missing"):
        await add("hook", "webhook", {})
    with pytest.raises(InvalidInput, match="belong together"):
        await add("mail", "email", {**MAIL, "user": "me"})
    with pytest.raises(InvalidInput, match="belong together"):
        await add("mail", "email", MAIL, secret="word")
    with pytest.raises(InvalidInput, match="the owner's"):
        await add("broker", "mqtt", {}, account_id=2)
    for name in ("", "a b", "../x", ".x", "x" * 65, "a/b"):
        with pytest.raises(InvalidInput, match="a channel's name"):
            await add(name, "mqtt", {})


async def test_a_name_that_is_taken_keeps_its_secret(services: Services, tmp_path: Path) -> None:
    await services.channels.add("phone", "ntfy", {}, secret="one")
    with pytest.raises(NameTaken, match="phone"):
        await services.channels.add("phone", "ntfy", {}, secret="two")
    assert text(tmp_path / "secrets" / "phone") == "topic=one\n"


async def test_channels_are_bounded(services: Services) -> None:
    for n in range(CHANNELS):
        await services.channels.add(f"c{n}", "mqtt", {})
    with pytest.raises(InvalidInput, match="more are not possible"):
        await services.channels.add("more", "mqtt", {})


async def test_channels_are_tested_all_at_once(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, twenty that do not answer would take five minutes."""
    barrier = asyncio.Barrier(3)

    async def test(name: str, account_id: int | None, rule: str) -> str:
        await barrier.wait()
        return f"{name} {account_id} {rule}"

    monkeypatch.setattr(services.channels, "test", test)
    async with asyncio.timeout(PATIENCE_S):
        tested = await services.channels.test_each(["a", "b", "c"], 2, "stuck")
    assert tested == [(name, f"{name} 2 stuck") for name in ("a", "b", "c")]


async def test_each_change_is_in_the_audit_log_without_the_secret(services: Services) -> None:
    channels = services.channels
    await channels.add("phone", "ntfy", {}, secret="brewery-x7")
    await channels.pause("phone", True)
    await channels.pause("phone", False)
    await channels.remove("phone")
    rows = [row for row in await services.store.audit.page(limit=100) if row.object == "channel:phone"]
    assert [row.verb for row in rows] == ["add", "pause", "resume", "remove"]
    assert "brewery" not in str(rows)


async def test_a_channel_of_another_account_is_not_there(services: Services) -> None:
    other = await services.access.add_account("club")
    await services.channels.add("club", "ntfy", {}, secret="x", account_id=other.id)
    for ask in (services.channels.named, services.channels.remove, services.channels.test):
        with pytest.raises(NotFound):
            await ask("club", 1)
    assert [state.channel.name for state in await services.channels.states()] == ["club"]
    assert (await services.channels.named("club", other.id)).account_id == other.id


async def test_a_row_of_a_damaged_file_harms_nobody(services: Services, tmp_path: Path) -> None:
    await services.channels.add("phone", "ntfy", {}, secret="x")
    store: Any = services.store
    await store._writer.run(lambda c: c.execute("UPDATE channels SET settings = '{'") and None)
    assert (await services.channels.states())[0].channel.settings == {}
    await store._writer.run(lambda c: c.execute("UPDATE channels SET kind = 'smoke'") and None)
    assert await services.channels.states() == []
