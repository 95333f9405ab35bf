"""The commands of the pages work, one after the other, beside a gateway with a device in a brew session."""

import shlex
from pathlib import Path

import aiohttp
import pytest

from tests.payloads import ispindel
from tests.program.program import HTTP_ONLY, Server, answer, command, post, serving
from tests.pure.documents.pages import PROGRAM, commands

DEVICE = "iSpindel042"

PLACES = {
    "DEVICE": DEVICE,
    "7": "1",
    "/media/usb/gateway-2026-03-04.tar": "on-usb.tar",
    "~/brewery.tar": "home.tar",
}
"""What stands here for the names and numbers of the pages."""

NOT_HERE = (
    ("serve", "it does not end"),
    ("mirror", "it needs another service"),
    ("targets", "they need another service: test_readme_forwarding.py"),
    ("sessions update HP001 --upstream-id", "the same"),
    ("channels", "they ask for a secret, and send it messages"),
    ("alarms ack", "no alarm fires"),
    ("alarms snooze", "no alarm fires"),
    ("devices merge", "there is one hydrometer"),
    ("inbox", "nothing waits there"),
    ("devices bind", "the next readings would come from elsewhere"),
    ("devices forget", "the device is needed"),
    ("restore", "the gateway has to be stopped"),
    ("sample-data", "test_brewing_page.py runs it with what follows it"),
    ("recipes", "the same"),
    ("photos", "the same"),
    ("readings export", "the same"),
    ("readings import", "the same"),
    ("sessions", "they begin and end brews, in the order of their page: test_brewing_page.py"),
    ("devices next", "the same"),
    ("devices assign", "the same"),
    ("doctor --mqtt-url", "there is no broker"),
    ("tls self-signed --name", "the page on trust makes the same files"),
    ("keys first", "it shows the key once: test_keys.py"),
)
"""What cannot be run here, by how it begins, with the reason."""


def runnable() -> list[str]:
    """The commands that can, once each, in the order of the pages."""
    found = [line.removeprefix("sudo ") for line in commands()]
    own = [line.removeprefix(f"{PROGRAM} ") for line in found if line.startswith(f"{PROGRAM} ")]
    alone = [line for line in own if not {"|", ">", ">>", "&&"} & {*shlex.split(line)}]
    not_here = tuple(begin for begin, _ in NOT_HERE)
    return [*dict.fromkeys(line for line in alone if not line.startswith(not_here))]


def test_no_reason_is_without_a_command() -> None:
    own = [line.removeprefix("sudo ").removeprefix(f"{PROGRAM} ") for line in commands()]
    assert not [begin for begin, _ in NOT_HERE if not any(line.startswith(begin) for line in own)]


async def filled(server: Server) -> None:
    """A device with readings in a brew session, and a payload that nobody understands."""
    async with aiohttp.ClientSession() as http:
        for gravity in ("12.5", "12.4"):
            await post(http, server, ispindel(name=DEVICE, gravity=gravity))
        await post(http, server, "no reading")
    await answer(server.data, "sessions add --batchcode HP001")
    await answer(server.data, "devices assign iSpindel042 HP001 --since 2026-03-01")


async def test_every_command_of_the_pages_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = runnable()
    assert len(told) > 30
    monkeypatch.chdir(tmp_path)
    failed = []
    async with serving(tmp_path / "data", *HTTP_ONLY) as server:
        await filled(server)
        for line in told:
            words = tuple(PLACES.get(word, word) for word in shlex.split(line))
            finished = await command(server.data, words)
            if finished.status != 0:
                failed.append((line, finished.err))
    assert failed == []
