"""*Alarms to your phone* in the settings: channels of the account, added, tested, paused and removed."""

from pathlib import Path

import pytest

from gateway.domain.key import ALL_SCOPES
from gateway.services.access import READ_ONLY
from tests.system.ui.site import logged_in, served

ADD = "/settings/channels/add"

NTFY = {
    "channel_name": "phone",
    "topic": "planted-topic",
    "secret_token": "planted-token",
    "quiet": "22:00-07:00",
}
MAIL = {
    "channel_name": "mail", "host": "mail.example.org", "sender": "a@example.org",
    "to": "b@example.org, c@example.org", "user": "me", "password": "planted-word",
}  # fmt: skip


def kept_in(data: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (data / "secrets").iterdir()}


async def test_from_adding_to_removing(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        channels = browser.services.channels
        html = await browser.get("/settings")
        assert "Nothing is set up yet." in html.text
        assert "it is a password" in (await browser.get(f"{ADD}/ntfy")).text.lower()
        html = await browser.post(f"{ADD}/ntfy", NTFY)
        assert html.page.one(class_="notice").text == "phone is set up. Send a test message to be sure."
        assert "planted" not in html.raw
        await browser.post(
            f"{ADD}/webhook", {"channel_name": "hook", "address": "http://nodered.lan/planted"}
        )
        html = await browser.post(f"{ADD}/email", MAIL)
        assert "planted" not in html.raw
        found = {state.channel.name: state.channel for state in await channels.states()}
        assert found["phone"].settings == {"quiet": "22:00-07:00"}
        assert found["mail"].settings["to"] == ["b@example.org", "c@example.org"]
        assert kept_in(tmp_path) == {
            "phone": "topic=planted-topic\ntoken=planted-token\n",
            "hook": "url=http://nodered.lan/planted\n",
            "mail": "password=planted-word\n",
        }
        text = (await browser.get("/settings")).text
        for words in ("http://nodered.lan", "https://ntfy.sh", "quiet 22:00-07:00", "works"):
            assert words in text
        assert "planted" not in text
        html = await browser.post("/settings/channels/phone/test")
        assert "not sent: no gateway is running" in html.text
        html = await browser.post("/settings/channels/phone/pause")
        assert html.page.one(class_="notice").text == "phone is paused."
        assert (await channels.named("phone")).paused
        await browser.post("/settings/channels/phone/resume")
        assert not (await channels.named("phone")).paused
        assert "Remove phone?" in (await browser.get("/settings/channels/phone/remove")).text
        html = await browser.post("/settings/channels/phone/remove")
        assert html.page.one(class_="notice").text == "phone is removed."
        assert sorted(kept_in(tmp_path)) == ["hook", "mail"]
        await browser.get("/settings/channels/phone/remove", 404)


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("ntfy", {"channel_name": "phone"}, ""),
        ("ntfy", {**NTFY, "channel_name": "a b"}, "A name has letters"),
        ("ntfy", {**NTFY, "topic": "a topic"}, "the topic is of letters"),
        ("ntfy", {**NTFY, "quiet": "at night"}, "quiet hours must look like 22:00-07:00"),
        ("ntfy", {**NTFY, "server": "http://169.254.169.254"}, "link-local"),
        ("webhook", {"channel_name": "hook", "address": "file:///etc/passwd"}, "must begin with http"),
        ("email", {**MAIL, "to": "nobody"}, "must be an e-mail address"),
        ("email", {**MAIL, "tls": "none"}, "a login goes through TLS only"),
        ("email", {**MAIL, "port": "many"}, ""),
    ],
)
async def test_what_is_wrong_is_said_and_secrets_are_not_repeated(
    tmp_path: Path, kind: str, fields: dict[str, str], words: str
) -> None:
    async with served(tmp_path) as browser:
        html = await browser.post(f"{ADD}/{kind}", fields, 422)
        assert words in html.text
        assert "planted-token" not in html.raw
        assert "planted-word" not in html.raw
        assert await browser.services.channels.states() == []


async def test_a_name_that_is_taken(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        await browser.post(f"{ADD}/ntfy", NTFY)
        html = await browser.post(f"{ADD}/ntfy", NTFY, 422)
        assert "That name is taken." in html.text
        await browser.get(f"{ADD}/apprise", 404)


async def test_an_account_has_its_own_and_who_looks_changes_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as browser:
        await browser.post(f"{ADD}/ntfy", NTFY)
        anna = await browser.services.access.add_account("anna")
        owner, browser.cookie = browser.cookie, await logged_in(browser.services, ALL_SCOPES, anna.name)
        assert "Nothing is set up yet." in (await browser.get("/settings")).text
        await browser.post("/settings/channels/phone/remove", status=404)
        browser.cookie = await logged_in(browser.services, READ_ONLY)
        assert "Alarms to your phone" not in (await browser.get("/settings")).text
        await browser.post("/settings/channels/phone/pause", status=403)
        browser.cookie = owner
        assert not (await browser.services.channels.named("phone")).paused


@pytest.mark.parametrize(("language", "words"), [("en", "Alarms to your phone"), ("de", "Alarme aufs Handy")])
async def test_both_languages(tmp_path: Path, language: str, words: str) -> None:
    async with served(tmp_path) as browser:
        browser.language = language
        assert words in (await browser.get("/settings")).text
        for kind in ("ntfy", "webhook", "email"):
            assert "channels." not in (await browser.get(f"{ADD}/{kind}")).text
