"""What a new user meets: readings that go nowhere, taken ports, the next beer, words for mistakes."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cloud import KEY, ScriptedCloud, html_200, redirect, running, status
from tests.program.program import (
    answer,
    command,
    ispindel,
    post,
    refusal,
)
from tests.system.cli.conftest import gateway

SPINDLE = "iSpindel042"
PATIENT = ("--no-mqtt", "--port", "0", "--tcp-port", "0")


@pytest.fixture
async def cloud() -> AsyncIterator[ScriptedCloud]:
    async with running(ScriptedCloud()) as cloud:
        yield cloud


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "club.key"
    path.write_text(KEY)
    return path


async def logged_in(data: Path, cloud: ScriptedCloud, key_file: Path) -> str:
    words = ("targets", "login", "club", "--url", cloud.url, "--key-file", str(key_file))
    return (await answer(data, words)).err


async def findings(data: Path) -> list[str]:
    """What doctor says of forwarding, each with its remedy."""
    found = (await command(data, "doctor --json", *PATIENT)).objects
    return [f"{f['level']}: {f['text']} -> {f['remedy']}" for f in found if f["about"] == "forwarding"]


# Before the first reading


async def test_an_empty_list_of_devices_says_what_to_do(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with gateway(data) as (server, http):
        empty = await answer(data, "devices list")
        assert "No device has reported yet" in empty.err
        assert len(empty.lines) == 1, "a pipe gets the head of the table alone"
        assert await post(http, server, ispindel(42, name=SPINDLE)) == 200
        assert (await answer(data, "devices list")).err == ""


# What goes nowhere


async def test_a_device_that_reports_into_nowhere_is_named(
    tmp_path: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    data = tmp_path / "data"
    async with gateway(data) as (server, http):
        for angle in ("1", "2"):
            assert await post(http, server, ispindel(42, name=SPINDLE, angle=angle)) == 200
        await answer(data, "sessions add --batchcode HP001")
        await answer(data, f"devices assign {SPINDLE} HP001 --since 2020-01-01")
        assert await findings(data) == ["ok: nothing is forwarded -> "]  # without a target nothing is missing
        assert (await answer(data, "targets list")).err == ""
        await logged_in(data, cloud, key_file)
        nowhere = f"device {SPINDLE} reports into brew session 1 (HP001), which goes nowhere"
        remedy = "`targets map club 1 NUMBER` forwards it; `targets sessions club` shows the numbers there"
        assert (await answer(data, "targets list")).err == f"D{nowhere[1:]}; {remedy}.\n"
        found = await findings(data)
        assert f"warning: {nowhere} -> {remedy}" in found
        assert (
            f"warning: 2 readings in brew session 1 (HP001) wait for nobody: no target takes them -> {remedy}"
            in found
        )
        assert any("no brew session is forwarded to club" in line for line in found)
        mapped = (await answer(data, "targets map club HP001 4101")).err
        assert mapped == "Brew session 1 (HP001) goes to club from now on, where it is number 4101.\n"
        assert (await answer(data, "targets list")).err == ""
        assert not any("nowhere" in line or "nobody" in line for line in await findings(data))
        assert "session 4101 of club" in (await answer(data, "sessions show HP001")).out
        assert "4101" in (await answer(data, "sessions list")).lines[1].split()
        assert await post(http, server, ispindel(7, name="other")) == 200
        [waiting] = [line for line in await findings(data) if line.startswith("warning")]
        assert waiting.startswith(
            "warning: 1 reading of device other is in no brew session and waits for nobody -> "
        )
        assert "`devices assign other SESSION --since DAY`" in waiting
        assert (await server.stop())[0] == 0


async def test_a_beer_that_is_done_may_stay_here(
    tmp_path: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    data = tmp_path / "data"
    async with gateway(data) as (server, http):
        assert await post(http, server, ispindel(42, name=SPINDLE)) == 200
        await answer(data, "sessions add --batchcode HP001")
        await answer(data, f"devices assign {SPINDLE} 1 --since 2020-01-01")
        await answer(data, f"devices release {SPINDLE}")
        await logged_in(data, cloud, key_file)
        assert any("wait" in line and "nobody" in line for line in await findings(data))
        await answer(data, "sessions update 1", "--phase", "All Gone")
        assert not any("nobody" in line for line in await findings(data))


async def test_a_second_session_of_the_same_batch_code_is_refused(data: Path) -> None:
    await answer(data, "sessions add --batchcode HP001")
    refused = (
        "hp001 is brew session 1 already; `sessions update 1` changes that one, --again makes a second one"
    )
    assert await refusal(data, "sessions add --batchcode hp001 --upstream-id 4101") == refused
    assert len((await answer(data, "sessions list --json")).objects) == 1
    second = await answer(data, "sessions add --batchcode hp001 --upstream-id 4101 --again")
    assert second.out == "2\n"
    assert second.err == (
        "Warning: brew session 1 has the batch code hp001, too; if it is the same beer, keep one: "
        "`sessions update 1` changes that one, `sessions delete 2` removes this one.\n"
    )
    assert (await answer(data, "sessions add --batchcode HP002")).err == ""
    assert "HP001 is brew session 1 already" in await refusal(data, "sessions next 3 --batchcode HP001")
    assert (
        "Warning: brew sessions 1 and 2 have"
        in (await answer(data, "sessions update 3 --batchcode HP001")).err
    )
    assert (await answer(data, "sessions update 3 --notes x")).err == ""  # said once
    for session in ("1", "2", "3"):
        await answer(data, f"sessions update {session} --phase", "All Gone")
    assert (await answer(data, "sessions add --batchcode HP001")).err == ""


async def test_a_session_without_a_target_says_so_at_once(
    data: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    await logged_in(data, cloud, key_file)
    added = await answer(data, "sessions add --batchcode HP001 --upstream-id 4101")
    assert added.err.startswith("So far brew session 1 (HP001) goes nowhere; `targets map club 1 NUMBER` ")


# The next beer


async def test_the_next_beer_takes_the_devices_over(
    tmp_path: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    data = tmp_path / "data"
    async with gateway(data) as (server, http):
        await logged_in(data, cloud, key_file)
        assert await post(http, server, ispindel(42, name=SPINDLE, angle="1")) == 200
        await answer(data, "sessions add --batchcode HP001")
        await answer(data, "targets map club 1 4101")
        assigned = (await answer(data, f"devices assign {SPINDLE} 1 --since 2020-01-01")).err
        assert assigned == (
            f"{SPINDLE} reports into brew session 1 (HP001) from now on; 1 earlier reading was put into it.\n"
        )
        done = await answer(data, "sessions next HP001 --batchcode HP002 --upstream-id 4102")
        assert (done.out, done.err.splitlines()) == (
            "2\n",
            [
                "Brew session 1 (HP001) is in the phase Conditioning now; its readings stay there.",
                f"{SPINDLE} reports into brew session 2 (HP002) from now on.",
            ],
        )
        assert await post(http, server, ispindel(42, name=SPINDLE, angle="2")) == 200
        readings = (await answer(data, "readings --json")).objects
        assert [reading["brewevent_id"] for reading in readings] == [1, 2]
        first, second = (await answer(data, "sessions list --json")).objects
        assert (first["phase"], second["phase"]) == ("Conditioning", "Primary Fermentation")
        [target] = (await answer(data, "targets list --json")).objects
        assert [(s["session_id"], s["upstream_id"]) for s in target["sessions"]] == [(1, 4101), (2, 4102)]
        assert (await server.stop())[0] == 0


async def test_the_next_beer_goes_by_its_device_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with gateway(data) as (server, http):
        assert await post(http, server, ispindel(42, name=SPINDLE)) == 200
        assert await post(http, server, ispindel(43, name="other")) == 200
        assert await refusal(data, f"devices next {SPINDLE} --batchcode HP002") == (
            f"{SPINDLE} is in no brew session that could end; `sessions add --batchcode "
            f"HP002` makes one, `devices assign {SPINDLE} HP002` puts it there"
        )
        await answer(data, "sessions add --batchcode HP001")
        for device in (SPINDLE, "other"):
            await answer(data, f"devices assign {device} HP001")
        done = await answer(data, f"devices next {SPINDLE} --batchcode HP002")
        assert (done.out, done.err.splitlines()) == (
            "2\n",
            [
                "Brew session 1 (HP001) is in the phase Conditioning now; its readings stay there.",
                f"{SPINDLE}, other report into brew session 2 (HP002) from now on.",
            ],
        )
        quiet = await answer(data, "devices next other --batchcode HP003 --quiet")
        assert (quiet.out, quiet.err) == ("3\n", "")
        assert [device["session"] for device in (await answer(data, "devices list --json")).objects] == [3, 3]
        assert (await server.stop())[0] == 0


async def test_a_next_beer_that_cannot_be_changes_nothing(data: Path) -> None:
    await answer(data, "sessions add --batchcode HP001")
    for words, said in (
        ("sessions next HP001", "a batch code"),
        ("sessions next HP001 --recipe 7", "no recipe 7"),
        ("sessions next 9 --batchcode B", "no brew session 9"),
        ("sessions next HP01 --batchcode B", "no brew session 'HP01' (did you mean 'HP001'?)"),
    ):
        assert said in await refusal(data, words)
    [session] = (await answer(data, "sessions list --json")).objects
    assert session["phase"] == "Primary Fermentation"


async def test_a_batch_code_names_a_session_and_of_two_the_one_under_way(data: Path) -> None:
    await answer(data, "sessions add --batchcode HP001")
    assert "batch code" in (await answer(data, "sessions show hp001")).out
    await answer(data, "sessions add --batchcode HP001 --again")
    assert "it could be 1 (HP001), 2 (HP001): use one of these numbers" in await refusal(
        data, "sessions show HP001"
    )
    await answer(data, "sessions update 1 --phase", "All Gone")
    assert re.search(r"^id +2$", (await answer(data, "sessions show HP001")).out, re.MULTILINE)


# Login


async def test_login_keeps_the_key_in_a_file_of_its_own(
    data: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    said = await logged_in(data, cloud, key_file)
    kept = data / "target-keys" / "club.key"
    assert (kept.read_text(), kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (
        *(f"{KEY}\n", 0o600, 0o700),
    )
    assert str(kept) in said
    assert KEY not in said
    [target] = (await answer(data, "targets list --json")).objects
    assert (target["name"], target["url"], target["key_file"]) == ("club", cloud.url, str(kept))
    cloud.key = "another-key"
    await asyncio.to_thread(key_file.write_text, "another-key")
    await logged_in(data, cloud, key_file)
    assert kept.read_text() == "another-key\n"
    assert len((await answer(data, "targets list --json")).objects) == 1
    await answer(data, "targets remove club")
    assert not kept.exists()


async def blamed(data: Path, key_file: Path, url: str) -> str:
    said = await refusal(data, ("targets", "login", "club", "--url", url, "--key-file", str(key_file)))
    assert not re.search(
        r"Errno|aiohttp|ssl:|Connect call|Cannot connect to host|_", said.replace(url, "")
    ), said
    assert said.endswith("; nothing was changed")
    assert (await answer(data, "targets list")).out == ""
    assert not (data / "target-keys").exists()
    return said


async def test_login_blames_what_is_to_blame(tmp_path: Path, cloud: ScriptedCloud, key_file: Path) -> None:
    async def login(url: str = cloud.url) -> str:
        return await blamed(tmp_path, key_file, url)

    cloud.key = "another"
    assert "the key is refused (HTTP 401: invalid api key)" in await login()
    cloud.key = KEY
    assert "not as a Brewing Data Service does (HTTP 404" in await login(f"{cloud.url}/shop")
    cloud.reads.append(html_200())
    assert "not as a Brewing Data Service does" in await login()
    cloud.reads.append(redirect("https://new.example/v1"))
    assert "redirects to new.example" in await login()
    cloud.reads.append(status(503))
    assert "has trouble of its own" in await login()
    assert "does not speak TLS" in await login(cloud.url.replace("http:", "https:"))
    assert ": no such name; is the network up, is the address right?" in await login(
        "https://nowhere.invalid"
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    assert "nobody listens there" in await login(f"http://127.0.0.1:{closed}")
    assert "must look like https://host" in await refusal(
        tmp_path, ("targets", "login", "club", "--url", "brew.example", "--key-file", str(key_file))
    )
    assert "--url is missing" in await refusal(tmp_path, "targets login club")
    name = ("targets", "login", "upstream", "--url", cloud.url, "--key-file", str(key_file))
    assert "take another name" in await refusal(tmp_path, name)


async def test_the_sessions_of_a_service_are_listed_to_choose_from(
    data: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    cloud.listed = [
        {
            "id": str(4000 + number),
            "batchcode": f"HP{number:03d}",
            "recipe_title": f"Beer {number}",
            "phase": "P",
        }
        | {"userdate": "", "created_at": "2026-03-01 12:00:00"}
        for number in range(150)
    ]
    await logged_in(data, cloud, key_file)
    await answer(data, "sessions add --batchcode HP101")
    await answer(data, "sessions add --batchcode X")
    await answer(data, "targets map club X 4001")
    listed = await answer(data, "targets sessions club")
    assert len(listed.lines) == 151
    assert listed.lines[0].split() == ["NUMBER", "BATCHCODE", "NAME", "PHASE", "BREWED", "HERE"]
    assert listed.lines[1].split() == ["4000", "HP000", "Beer", "0", "P", "2026-03-01"]
    assert listed.lines[2].split()[-1] == "2"
    assert listed.err == "`targets map club 1 4101` forwards HP101 there.\n"
    shown = (await answer(data, "targets sessions club --json")).objects[101]
    assert (shown["number"], shown["like"], shown["here"]) == ("4101", 1, [])


# Words


async def test_what_was_meant_is_said(tmp_path: Path, cloud: ScriptedCloud, key_file: Path) -> None:
    data = tmp_path / "data"
    async with gateway(data) as (server, http):
        assert await post(http, server, ispindel(42, name=SPINDLE)) == 200
        await answer(data, "sessions add --batchcode HP001")
        await answer(data, "accounts add anna")
        await logged_in(data, cloud, key_file)
        for words, meant in (
            ("devices show ispindel24", SPINDLE),
            ("readings --device iSpindel", SPINDLE),
            ("devices assign iSpindel42 1", SPINDLE),
            ("devices assign iSpindel042 HP01", "HP001"),
            ("sessions show HP011", "HP001"),
            ("targets test clubb", "club"),
            ("sessions list --account ana", "anna"),
        ):
            assert f"(did you mean {meant!r}?)" in await refusal(data, words), words
        assert "did you mean" not in await refusal(data, "devices show xyz")
    for words, meant in (
        ("sesions list", "sessions"),
        ("targets lst", "list"),
        ("devices list --jsn", "--json"),
    ):
        finished = await command(data, words)
        assert finished.status == 2
        assert re.search(rf"[Dd]id you mean .*{meant}", finished.err)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("serve --port many", "a whole number is needed"),
        ("serve --port 99999", "65535 is the most that it can be"),
        ("serve --quota much", "a size is needed, such as 500MB or 2GiB"),
        ("serve --log-level loud", "it has to be 'debug', 'info', 'warning' or 'error'"),
        ("serve --forward-seconds soon", "a number is needed"),
        ("readings --last 0", "1 is the least that it can be"),
        (
            "targets add x https://a --key-file /nowhere",
            "there is no key file of target x /nowhere; `targets login NAME` asks",
        ),
        ("targets add x https://a --key-file /", "/: it is a directory, not a file"),
        ("readings import 1 /nowhere.csv", "cannot read it: there is no such file or directory"),
        ("restore /nowhere.tar", "cannot read /nowhere.tar: there is no such file or directory"),
        ("recipes import /nowhere.xml", "cannot read it: there is no such file or directory"),
        ("capture --device 1 --out /tmp --data-dir /proc/1/nothing", "there is no database in"),
    ],
)
async def test_mistakes_are_said_without_the_words_of_libraries(
    tmp_path: Path, words: str, said: str
) -> None:
    finished = await command(tmp_path, words)
    assert finished.status in {1, 2}
    assert said in finished.err
    assert not re.search(r"Errno|pydantic|Input should|sqlite3|aiohttp|strerror", finished.err)
