"""MQTT through a publisher, and Apprise: installed or not, in doubt, and without its doors to files."""

import asyncio
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from gateway.domain.delivery import DeliveryResult
from gateway.notify.channels.apprise import Apprise
from gateway.notify.words import Note
from gateway.outward.guard import Guard, OutwardFailed
from tests.system.notify.brewing import Brewing, sending

NOTE = Note("hg-1-1", 1, "Stuck", "C12", "critical", "", ())

FAKE = """
import json, time
from pathlib import Path
told = Path(__file__).with_name("told")
class PersistentStoreMode:
    MEMORY = "memory"
class AppriseAsset:
    def __init__(self, **options):
        self.options = options
class Apprise:
    def __init__(self, asset):
        self.urls = []
        self.asset = asset
    def add(self, url):
        self.urls.append(url)
        return not url.startswith("nothing")
    def notify(self, **given):
        if "bug" in self.urls[0]:
            raise KeyError("planted-secret")
        with told.open("a") as file:
            print(json.dumps([self.urls, given, self.asset.options]), file=file)
        return "refuses" not in self.urls[0]
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that looks like Apprise; the file in which it notes what it was told."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "apprise.py").write_text(FAKE)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "apprise", raising=False)
    return folder / "told"


@pytest.mark.skipif(importlib.util.find_spec("apprise") is not None, reason="apprise is installed")
async def test_apprise_that_is_not_installed_says_how_to_get_it() -> None:
    outcome = await Apprise(Guard()).send(NOTE, {"url": "json://localhost"}, 0)
    assert outcome.verdict is DeliveryResult.PAUSED
    assert "pip install 'hydrometer-gateway[notify]'" in outcome.reason


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def test_apprise_is_told_everything_but_no_file(told: Path) -> None:
    outcome = await Apprise(Guard()).send(NOTE, {"url": "tgram://secret\nmailto://x"}, 0)
    assert outcome.verdict is DeliveryResult.ACCEPTED
    [urls, given, options] = json.loads(lines_of(told)[0])
    assert urls == ["tgram://secret"]
    assert len(lines_of(told)) == 2
    assert given == {"title": "Stuck", "body": "C12", "notify_type": "failure"}
    assert options["storage_mode"] == "memory"
    for bad in ("file:///etc/passwd", "FILE://x", "syslog://", "nothing://x"):
        outcome = await Apprise(Guard()).send(NOTE, {"url": f"tgram://secret\n{bad}"}, 0)
        assert outcome.verdict is DeliveryResult.PAUSED, bad
        assert "address 2" in outcome.reason
        assert bad not in outcome.reason
    outcome = await Apprise(Guard()).send(NOTE, {"url": "bug://x"}, 0)
    assert (outcome.verdict, "planted" in outcome.reason) == (DeliveryResult.AMBIGUOUS, False)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("json://169.254.169.254/latest", "link-local"),
        ("gotify://me@[fe80::1]:81/token", "link-local"),
        ("xmls://meta.test/x", "link-local"),
        ("form://127.0.0.1:8080/v1", "one of this gateway"),
        ("jsons://127.0.0.1/", "one of this gateway"),
    ],
)
async def test_apprise_does_not_go_where_no_request_goes(told: Path, url: str, words: str) -> None:
    async def resolve(host: str, _port: int) -> list[str]:
        return ["169.254.169.254" if host == "meta.test" else host]

    guard = Guard(lambda: [443, 8080], resolve)
    outcome = await Apprise(guard).send(NOTE, {"url": f"tgram://secret\n{url}"}, 0)
    assert outcome.verdict is DeliveryResult.PAUSED
    assert words in outcome.reason
    assert lines_of(told) == []


async def test_apprise_asks_no_name_server_for_a_token(told: Path) -> None:
    async def resolve(host: str, _port: int) -> list[str]:
        raise AssertionError(host)

    outcome = await Apprise(Guard(resolve=resolve)).send(NOTE, {"url": "tgram://123456:ABC/42"}, 0)
    assert outcome.verdict is DeliveryResult.ACCEPTED


async def test_an_ending_in_doubt_is_sent_once_more_after_a_minute(brewing: Brewing, told: Path) -> None:
    await brewing.add("chat", "apprise", "takes://x\nrefuses://x")
    async with sending(brewing):
        begun = brewing.clock.now()
        event_id = await brewing.happens()
        found = await brewing.becomes(event_id, "chat", "sent")
        assert 59 <= brewing.clock.now() - begun < 75
    assert (found.trouble, found.attempts) == ("perhaps twice", 2)
    assert len(lines_of(told)) == 4


async def test_what_no_service_takes_is_kept(brewing: Brewing, told: Path) -> None:
    await brewing.add("chat", "apprise", "refuses://x")
    async with sending(brewing):
        event_id = await brewing.happens()
        await brewing.until(lambda: len(lines_of(told)) >= 4)
        assert (await brewing.message(event_id, "chat")).state in {"waiting", "open"}


@pytest.mark.parametrize("trouble", ["", "perhaps twice"])
async def test_a_stop_in_the_middle_of_apprise(brewing: Brewing, told: Path, trouble: str) -> None:
    await brewing.add("chat", "apprise", "takes://x")
    event_id = await brewing.happens()
    await brewing.store.messages.mark("chat", [event_id], "open", attempts=1, trouble=trouble)
    async with sending(brewing):
        found = await brewing.becomes(event_id, "chat", "sent")
    assert found.trouble == "perhaps twice"
    assert len(lines_of(told)) == (0 if trouble else 1)


async def test_mqtt(brewing: Brewing) -> None:
    published: list[tuple[str, bytes]] = []

    async def publish(topic: str, payload: bytes) -> None:
        published.append((topic, payload))
        if len(published) == 1:
            raise OutwardFailed("the broker does not acknowledge", DeliveryResult.AMBIGUOUS)

    await brewing.add("broker", "mqtt")
    async with sending(brewing, publish=publish):
        event_id = await brewing.happens(subject="4", text="C12 is done", rule="done")
        await brewing.becomes(event_id, "broker", "sent")
    instance = await brewing.store.alarms.instance()
    first, second = published
    assert first == second
    assert first[0] == f"hydrometer_gateway/{instance}/event"
    document = json.loads(first[1])
    assert (document["event_type"], document["id"]) == ("fired", f"hg-{instance}-{event_id}")
    assert (document["rule"], document["text"]) == ("done", "C12 is done")


async def test_two_channels_publish_one_after_the_other(brewing: Brewing) -> None:
    """Their connections have one name, and the broker would end the first one for the second."""
    begun: list[str] = []
    inside: list[int] = []
    go_on = asyncio.Event()

    async def publish(topic: str, _payload: bytes) -> None:
        begun.append(topic)
        inside.append(len(begun))
        await go_on.wait()
        begun.remove(topic)

    for name in ("a", "b"):
        await brewing.add(name, "mqtt", topic=name)
    async with sending(brewing, publish=publish):
        event_id = await brewing.happens()
        for name in ("a", "b"):  # both are at work
            await brewing.becomes(event_id, name, "open")
        for _ in range(100):
            await asyncio.sleep(0)
        go_on.set()
        for name in ("a", "b"):
            await brewing.becomes(event_id, name, "sent")
    assert inside == [1, 1]


async def test_mqtt_without_a_broker(brewing: Brewing) -> None:
    await brewing.add("broker", "mqtt")
    async with sending(brewing):
        found = await brewing.fails(await brewing.happens(), "broker")
    assert "--mqtt-url" in found.trouble
