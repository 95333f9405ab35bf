"""`targets`: named, mapped, tested, paused and sent to again, beside a gateway or without one."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cloud import KEY, ScriptedCloud, running
from tests.program.program import HTTP_ONLY, answer, command, refusal, serving, until
from tests.system.cli.conftest import gateway, texts_in

READING = '{"name":"GREEN","ID":1,"gravity":1.05,"temperature":20,"temp_units":"C"}'


@pytest.fixture
async def cloud() -> AsyncIterator[ScriptedCloud]:
    async with running(ScriptedCloud()) as cloud:
        yield cloud


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "club.key"
    path.write_text(f"{KEY}\n")
    return path


async def add(data: Path, cloud: ScriptedCloud, key_file: Path) -> None:
    await answer(data, "targets add club", f"{cloud.url}/", "--key-file", str(key_file))
    await answer(data, "sessions add --batchcode A")
    await answer(data, "targets map club 1 70")


async def imported(data: Path, *gravities: float) -> None:
    file = data.parent / "readings.json"
    rows = (
        f'{{"gravity": {gravity}, "created_at": "2026-03-0{day}"}}'
        for day, gravity in enumerate(gravities, 1)
    )
    file.write_text(f"[{','.join(rows)}]")
    await answer(data, "readings import 1", str(file))


async def test_a_target_is_listed_with_what_waits_and_why(
    data: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    await add(data, cloud, key_file)
    await answer(data, "targets pause club")
    await imported(data, 1.05, 1.04)
    said = dict(re.split("  +", line, maxsplit=1) for line in (await answer(data, "targets list")).lines)
    assert (said["target"], said["address"]) == ("club", cloud.url)
    assert said["waiting"].startswith("2, the oldest since 20")
    assert (said["forwarded"], said["refused"], said["not forwarded"]) == ("0", "0", "0")
    assert said["state"] == "paused by you; `targets resume club` goes on"
    [found] = (await answer(data, "targets list --json")).objects
    assert (found["name"], found["pending"], found["paused"], found["next_at"]) == ("club", 2, True, None)
    assert found["sessions"] == [
        {
            "session_id": 1,
            "upstream_id": 70,
            "pending": 2,
            "forwarded": 0,
            "refused": 0,
            "superseded": 0,
            "not_forwarded": 0,
            "edited": 0,
        }
    ]
    assert found["oldest_at"].endswith("+00:00")
    assert KEY not in str(found)
    lines = (await answer(data, "readings --json")).objects
    assert [line["delivery"] for line in lines] == [{"club": "pending"}] * 2
    assert cloud.requests == []


async def test_the_key_is_nowhere_but_in_its_file(data: Path, cloud: ScriptedCloud, key_file: Path) -> None:
    await add(data, cloud, key_file)
    assert not any(KEY.encode() in text for text in texts_in(data))


async def test_a_target_without_a_gateway_says_so(
    tmp_path: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    await add(tmp_path, cloud, key_file)
    assert (await answer(tmp_path, "targets list")).lines[-1].endswith("no gateway is running")


async def test_a_test_says_what_is_well_and_what_is_not(
    data: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    await add(data, cloud, key_file)
    assert (await answer(data, "targets test club")).lines == [
        "ok: brew session 1 is 70 there: it can be read with this key"
    ]
    cloud.unknown.add(70)
    cloud.key = "another"
    failed = await command(data, "targets test club")
    assert (failed.status, "the key is refused" in failed.out) == (1, True)
    await asyncio.to_thread(key_file.unlink)
    failed = await command(data, "targets test club")
    assert (failed.status, "there is no key file of target club" in failed.out) == (1, True)
    assert cloud.imports == []


async def test_forwarding_resending_and_the_state_of_readings(
    tmp_path: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    data = tmp_path / "data"
    options = (*HTTP_ONLY, "--forward-seconds", "0")
    async with serving(data, *options, module="tests.program.hasty") as server:
        await add(data, cloud, key_file)
        cloud.refuse = lambda row: row["gravity"] == "1.04"
        await imported(data, 1.05, 1.04, 1.03)

        async def states() -> list[str]:
            lines = (await answer(data, "readings --json")).objects
            return [line["delivery"]["club"] for line in lines]

        async def settled() -> bool:
            return await states() == ["forwarded", "refused", "forwarded"]

        await until(settled)
        cloud.sessions[70].pop()
        said = (await answer(data, "targets resend club --since 2026-03-02 --session 1")).lines
        assert said == ["brew session 1: 1 readings are looked for while the gateway runs"]
        await until(lambda: [row["gravity"] for row in cloud.kept(70)] == ["1.05", "1.03"])
        await until(settled)
        assert (await answer(data, "targets list --json")).objects[0]["state"] == "ok"
        assert (await server.stop())[0] == 0


async def test_what_an_option_of_serve_names_is_a_target_too(
    tmp_path: Path, cloud: ScriptedCloud, key_file: Path
) -> None:
    data = tmp_path / "data"
    options = (*HTTP_ONLY, "--upstream-url", cloud.url, "--upstream-key-file", str(key_file))
    async with serving(data, *options) as server:
        assert server.found(r"^Forwarding to (\S+)$") == cloud.url
        assert (await answer(data, "targets list")).lines[0].split() == ["target", "upstream"]
        assert (await server.stop())[0] == 0
    await answer(data, "sessions add --batchcode A")
    await answer(data, "targets map upstream 1 70")
    assert (await answer(data, "sessions list --json")).objects[0]["upstream_id"] == 70
    assert (await answer(data, "targets test upstream")).lines[0].startswith("ok: brew session 1 is 70")


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("targets test nobody", "targets list"),
        ("targets pause nobody", "targets list"),
        ("targets add x http://a", "--key-file"),
        ("targets add x https://a --key-file /nowhere/key", "/nowhere/key"),
        ("targets add upstream https://a --key-file /nowhere/key", "another name"),
        ("targets map nobody 1 2", "sessions list"),
        ("targets resend nobody", "--since"),
        ("targets resend nobody --since 2026-01-01", "targets list"),
    ],
)
async def test_what_cannot_be_done_names_the_remedy(tmp_path: Path, words: str, remedy: str) -> None:
    assert remedy in await refusal(tmp_path, words)


IN_THE_CLEAR = [
    ("https://brew.example", "", ""),
    ("http://192.168.1.9:8080", "", "unencrypted, inside your own network."),
    ("http://pi.local", "", "unencrypted, inside your own network."),
    (
        "http://brew.example",
        "--plaintext",
        "Warning: anyone on the way to http://brew.example can read the key.",
    ),
]


async def test_a_key_in_the_clear_is_warned_of_and_on_the_internet_it_needs_a_word(
    data: Path, key_file: Path
) -> None:
    await asyncio.to_thread(key_file.chmod, 0o600)
    for number, (url, option, words) in enumerate(IN_THE_CLEAR):
        arguments = [f"t{number}", url, "--key-file", str(key_file), *filter(None, [option])]
        added = await answer(data, ("targets", "add", *arguments))
        assert len(added.err.splitlines()) == bool(words), url
        assert words in added.err
    for command_line in ("targets add x http://u:pw@far.example", "targets login x --url http://far.example"):
        refused = await refusal(data, command_line, "--key-file", str(key_file))
        assert refused.startswith(
            "anyone on the way to http://far.example can read the key: use https://, or "
        )
    await asyncio.to_thread(key_file.chmod, 0o644)
    added = await answer(data, ("targets", "add", "y", "https://y.example", "--key-file", str(key_file)))
    assert added.err == f"Other users can read {key_file}: chmod 600 {key_file}\n"


async def test_an_address_is_shown_without_its_user(
    tmp_path: Path, cloud: ScriptedCloud, key_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = cloud.url.replace("http://", "http://user:geheim@")
    async with gateway(tmp_path) as (server, http):
        await add(tmp_path, cloud, key_file)
        await answer(tmp_path, "targets remove club")
        await answer(tmp_path, "targets add other", url, "--key-file", str(key_file))
        headers = {"X-API-KEY": server.first_key or ""}
        for path in ("/healthz", "/manage/status", "/manage/audit", "/metrics"):
            async with http.get(f"{server.url}{path}", headers=headers) as shown:
                assert "geheim" not in await shown.text(), path
        async with http.get(f"{server.url}/healthz", headers=headers) as shown:
            assert f"upstream {cloud.url}" in (await shown.json())["parts"]
    assert "geheim" not in "".join([*server.lines, caplog.text])


async def test_a_target_of_another_kind_gets_what_is_mapped(data: Path, key_file: Path) -> None:
    added = await answer(
        data, "targets add grafana --kind influx --url http://127.0.0.1:9 --org home --bucket b --key-file",
        str(key_file),
    )  # fmt: skip
    assert "Nothing goes there yet" in added.err
    [found] = (await answer(data, "targets list --json")).objects
    assert (found["kind"], found["url"], found["routes"]) == ("influx", "http://127.0.0.1:9", [])
    failed = await command(data, "targets test grafana")
    assert (failed.status, failed.out.count("PROBLEM")) == (1, 2)
    await answer(data, "sessions add --batchcode HP1")
    await answer(data, "targets map grafana --brew HP1 --since 2026-01-01")
    said = dict(re.split("  +", line, maxsplit=1) for line in (await answer(data, "targets list")).lines)
    assert (said["kind"], said["address"]) == ("influx", "http://127.0.0.1:9")
    assert said["goes there"] == "brew session 1 (HP1)"
    await answer(data, "targets map grafana --all")
    await answer(data, "targets unmap grafana --brew HP1")
    said = dict(re.split("  +", line, maxsplit=1) for line in (await answer(data, "targets list")).lines)
    assert said["goes there"] == "everything"
    wrong = await command(data, "targets map grafana --all --brew HP1")
    assert (wrong.status != 0, "name one" in wrong.err) == (True, True)
    wrong = await command(data, "targets map grafana 1 70")
    assert (wrong.status != 0, "no brew sessions of its own" in wrong.err) == (True, True)
    await answer(data, "targets resend grafana --since 2026-01-01")
    await answer(data, "targets pause grafana")
    await answer(data, "targets resume grafana")
    await answer(data, "targets remove grafana")


async def test_an_address_that_is_a_secret_stays_in_its_file(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "hook.url"
    file.write_text("http://127.0.0.1:9/stream?id=S3CRET\n")
    await answer(data, "targets add hook --kind webhook --latest --min-interval 15m --url-file", str(file))
    said = dict(re.split("  +", line, maxsplit=1) for line in (await answer(data, "targets list")).lines)
    assert said["address"] == "http://127.0.0.1:9/stream?..."
    assert said["shows"].startswith("the latest reading of each device only")
    assert not any(b"S3CRET" in text for text in texts_in(data))


async def test_wrong_options_of_a_target_are_named(data: Path, key_file: Path) -> None:
    for options, says in (
        ("--kind influx --url http://127.0.0.1:9", "--bucket is missing"),
        ("--kind graphite --url http://127.0.0.1:9", "no kind graphite"),
        ("--kind mqtt --url http://127.0.0.1:9", "mqtt://"),
        ("--kind webhook --url http://127.0.0.1:9 --preset brewspi", "no preset"),
        ("--kind webhook --url http://127.0.0.1:9 --min-interval soon", "is no time"),
        ("https://x --topic a", "for other kinds"),
    ):
        failed = await command(data, f"targets add x {options} --key-file", str(key_file))
        assert failed.status != 0, options
        assert says in failed.err, failed.err
    assert (await answer(data, "targets list --json")).objects == []
