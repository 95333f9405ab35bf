"""Messages through real sockets to scripted receivers: each ending, and what becomes of the message."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import StoreUnavailable
from gateway.outward.signing import signed_headers
from tests.receivers import Receiver, Reply
from tests.system.notify.brewing import Brewing, sending

NIGHT = "22:00-07:00"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver().listening() as listening:
        yield listening


async def test_a_webhook_gets_the_event_signed(brewing: Brewing, receiver: Receiver) -> None:
    await brewing.add("hook", "webhook", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", url=f"{receiver.url}/in")
    async with sending(brewing):
        event_id = await brewing.happens(subject="3", text="C12 stopped at 1.022", evidence={"sg": 1.022})
        found = await brewing.becomes(event_id, "hook", "sent")
    assert found.sent_at is not None
    [request] = receiver.requests
    instance = await brewing.store.alarms.instance()
    document = request.json
    at = document.pop("at")
    assert at.startswith("2026-03-04T09:30")
    assert document == {
        "id": f"hg-{instance}-{event_id}",
        "kind": "fired",
        "rule": "stuck",
        "severity": "warning",
        "scope": "brew",
        "subject": "3",
        "brew": 3,
        "title": "Fermentation is stuck",
        "text": "C12 stopped at 1.022",
        "url": "http://192.168.1.20:8080/ui/brews/3",
        "figures": {"sg": 1.022},
    }
    expected = signed_headers(
        document["id"],
        int(request.headers["webhook-timestamp"]),
        request.body,
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    assert {name: request.headers[name] for name in expected} == expected
    assert request.headers["content-type"] == "application/json"


async def test_a_webhook_with_a_template(brewing: Brewing, receiver: Receiver) -> None:
    template = '{"content": "{{title}}: {{text}}", "n": {{brew}}}'
    await brewing.add("hook", "webhook", url=receiver.url, template=template)
    async with sending(brewing):
        await brewing.happens(subject="3", text='he said "1.022"\nand left')
        await brewing.until(lambda: bool(receiver.requests))
    assert receiver.requests[0].json == {
        "content": 'Fermentation is stuck: he said "1.022"\nand left',
        "n": 3,
    }


async def test_an_ntfy_server(brewing: Brewing, receiver: Receiver) -> None:
    await brewing.add("phone", "ntfy", "topic=brewery-x7\ntoken=tk_abc", server=receiver.url)
    async with sending(brewing):
        first = await brewing.happens("keeper", "disk", scope="gateway", text="The disk is full " * 100)
        await brewing.becomes(first, "phone", "sent")
        await brewing.happens("keeper", "disk", "cleared", scope="gateway", text="The disk has room")
        await brewing.until(lambda: len(receiver.requests) == 2)
    fired, cleared = (request.json for request in receiver.requests)
    instance = await brewing.store.alarms.instance()
    assert receiver.requests[0].path == "/"
    assert receiver.requests[0].headers["authorization"] == "Bearer tk_abc"
    assert (fired["topic"], fired["priority"], fired["sequence_id"]) == (
        "brewery-x7",
        5,
        f"hg-{instance}-{first}",
    )
    assert len(fired["message"]) == 1000
    assert fired["click"] == "http://192.168.1.20:8080"
    assert (cleared["title"], cleared["message"]) == ("Over: The gateway needs you", "The disk has room")


async def test_alarms_of_one_look_are_one_message(brewing: Brewing, receiver: Receiver) -> None:
    await brewing.add("hook", "webhook", url=receiver.url)
    ids = [await brewing.happens("silent", str(n), scope="device") for n in range(3)]
    async with sending(brewing):
        await brewing.becomes(ids[2], "hook", "merged")
        assert (await brewing.message(ids[0], "hook")).state == "sent"
    [request] = receiver.requests
    names = [request.json["id"], *(each["id"] for each in request.json["more"])]
    assert [name.rpartition("-")[2] for name in names] == [str(each) for each in ids]


@pytest.mark.parametrize(
    ("reply", "state", "trouble", "blocked"),
    [
        (Reply(401, b'{"error": "wrong token"}'), "waiting", 'HTTP 401: {"error": "wrong token"}', True),
        (Reply(410), "waiting", "HTTP 410: {}", True),
        (Reply(302, headers={"Location": "https://elsewhere.test/x"}), "waiting", "elsewhere.test", True),
        (Reply(429, headers={"Retry-After": "120"}), "waiting", "HTTP 429", False),
        (Reply(503), "waiting", "HTTP 503", False),
        (Reply(500), "open", "HTTP 500", False),
        (Reply(cut=True), "open", "the connection was cut", False),
        (Reply(400), "waiting", "HTTP 400", False),
    ],
)
async def test_endings(
    brewing: Brewing, receiver: Receiver, reply: Reply, state: str, trouble: str, blocked: bool
) -> None:
    receiver.script = [reply]
    await brewing.add("hook", "webhook", url=receiver.url)
    async with sending(brewing):
        event_id = await brewing.happens()
        found = await brewing.fails(event_id, "hook")
        [shown] = await brewing.services.channels.states()
        assert (found.state, found.attempts) == (state, 1)
        assert trouble in found.trouble
        assert trouble in shown.trouble
        assert (shown.blocked, shown.waiting) == (blocked, 1)
        assert shown.failing_since is not None
        begun = shown.failing_since
        assert (await brewing.becomes(event_id, "hook", "sent")).attempts == 2
        # The clock runs fast, and on until this test sees what has happened.
        waited = brewing.clock.now() - begun
        if blocked:
            assert 899 <= waited < 1_200
        elif reply.status == 429:
            assert 119 <= waited < 400
        else:
            assert waited < 110
        [shown] = await brewing.services.channels.states()
        assert (shown.trouble, shown.failing_since, shown.waiting) == ("", None, 0)
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


async def test_what_is_refused_again_and_again_is_given_up(brewing: Brewing, receiver: Receiver) -> None:
    receiver.script = [Reply(422)] * 3
    await brewing.add("hook", "webhook", url=receiver.url)
    async with sending(brewing):
        bad = await brewing.happens()
        brewing.clock.advance(5)
        good = await brewing.happens("done", "2")
        await brewing.becomes(bad, "hook", "expired")
        await brewing.becomes(good, "hook", "sent")
        [shown] = await brewing.services.channels.states()
    assert shown.expired_at is not None


async def test_one_refusal_after_other_failures_loses_nothing(brewing: Brewing, receiver: Receiver) -> None:
    receiver.script = [Reply(503), Reply(500), Reply(503), Reply(400), Reply(503), Reply(422)]
    await brewing.add("hook", "webhook", url=receiver.url)
    async with sending(brewing):
        found = await brewing.becomes(await brewing.happens(), "hook", "sent")
    assert found.attempts == 7


async def test_it_is_open_on_the_medium_before_a_byte_leaves(brewing: Brewing) -> None:
    states: list[str] = []
    loop = asyncio.get_running_loop()

    def reply(_: object) -> Reply:
        asyncio.run_coroutine_threadsafe(note(), loop)
        return Reply(hang=True)

    async def note() -> None:
        states.append((await brewing.message(event_id, "hook")).state)

    receiver = Receiver(reply)
    async with receiver.listening():
        await brewing.add("hook", "webhook", url=receiver.url)
        async with sending(brewing):
            event_id = await brewing.happens()
            await brewing.until(lambda: bool(states))
    assert states == ["open"]
    # A gateway that was stopped in the middle sends it again after its start, with the same id.
    again = Receiver()
    async with again.listening(port=receiver.port), sending(brewing):
        await brewing.becomes(event_id, "hook", "sent")
    assert again.requests[0].headers["webhook-id"] == receiver.requests[0].headers["webhook-id"]


async def test_a_dead_channel_delays_no_other(brewing: Brewing, receiver: Receiver) -> None:
    hanging = Receiver(lambda _: Reply(hang=True))
    async with hanging.listening():
        await brewing.add("dead", "webhook", url=hanging.url)
        await brewing.add("live", "webhook", url=receiver.url)
        async with sending(brewing):
            for n in range(3):
                await brewing.becomes(await brewing.happens(subject=str(n)), "live", "sent")
                brewing.clock.advance(60)
    assert len(receiver.requests) == 3


async def test_quiet_hours(brewing: Brewing, receiver: Receiver) -> None:
    await brewing.add("hook", "webhook", url=receiver.url, quiet=NIGHT)
    brewing.clock.advance(13 * 3600)  # 22:30
    async with sending(brewing):
        warning = await brewing.happens("stuck", "1")
        await brewing.becomes(warning, "hook", "held")
        await brewing.happens("temperature", "2", text="C13 is too warm")
        brewing.clock.advance(60)
        critical = await brewing.happens("keeper", "disk", scope="gateway")
        await brewing.becomes(critical, "hook", "sent")
        over = await brewing.happens("temperature", "2", "cleared", text="C13 is well")
        await brewing.becomes(over, "hook", "held")
        assert len(receiver.requests) == 1
        await brewing.becomes(warning, "hook", "sent", step=60)
    assert 7 <= (brewing.clock.now() % 86_400) / 3600 < 7.2
    night, morning = (request.json for request in receiver.requests)
    assert night["rule"] == "keeper"
    assert [each["rule"] for each in (morning, *morning["more"])] == ["stuck", "temperature", "temperature"]


async def test_with_a_clock_in_doubt_nothing_is_held_back(brewing: Brewing, receiver: Receiver) -> None:
    await brewing.add("hook", "webhook", url=receiver.url, quiet=NIGHT, quiet_critical=True)
    brewing.clock.advance(13 * 3600)
    async with sending(brewing, clock_known=lambda: False):
        await brewing.becomes(await brewing.happens("keeper", "clock", scope="gateway"), "hook", "sent")


async def test_ten_an_hour_and_one_of_all_the_rest(brewing: Brewing, receiver: Receiver) -> None:
    await brewing.add("hook", "webhook", url=receiver.url)
    for n in range(30):
        event_id = await brewing.happens(subject=str(n), at=int(brewing.clock.now()) - 100 + n)
    async with sending(brewing):
        await brewing.becomes(event_id, "hook", "merged")
        assert len(receiver.requests) == 10
        told = [
            each for request in receiver.requests for each in (request.json, *request.json.get("more", []))
        ]
        assert [each["subject"] for each in told] == [str(n) for n in range(30)]
        begun = brewing.clock.now()
        event_id = await brewing.happens(subject="31")
        await brewing.becomes(event_id, "hook", "held")
        await brewing.becomes(event_id, "hook", "sent", step=20)
        assert 3500 < brewing.clock.now() - begun < 3900


async def test_a_test_waits_for_its_outcome(brewing: Brewing, receiver: Receiver) -> None:
    receiver.script = [Reply(200, b"thanks"), Reply(403, b"no such topic: brewery-x7")]
    await brewing.add("phone", "ntfy", "brewery-x7", server=receiver.url)
    channels = brewing.services.channels
    assert await channels.test("phone") == "not sent: no gateway is running"
    async with sending(brewing):

        async def test() -> None:
            words.append(await channels.test("phone"))

        words: list[str] = []
        await brewing.passing(test())
        await brewing.passing(test())
        await channels.pause("phone", True)
        assert "is paused" in await channels.test("phone")
    assert words == ["taken (HTTP 200: thanks)", "not taken: HTTP 403: no such topic: <secret>"]
    assert receiver.requests[0].json["title"] == "Test message"


async def test_a_test_that_fails_leaves_nothing_behind(brewing: Brewing, receiver: Receiver) -> None:
    receiver.script = [Reply(500)]
    await brewing.add("hook", "webhook", url=receiver.url)
    async with sending(brewing):

        async def test() -> None:
            assert await brewing.services.channels.test("hook") == "not taken: HTTP 500: {}"

        await brewing.passing(test())
        await brewing.becomes(await brewing.happens(), "hook", "sent")
    assert [request.json["kind"] for request in receiver.requests] == ["test", "fired"]


async def test_a_paused_channel_sends_nothing_and_goes_on(brewing: Brewing, receiver: Receiver) -> None:
    receiver.script = [Reply(503)] * 1
    await brewing.add("hook", "webhook", url=receiver.url)
    async with sending(brewing):
        event_id = await brewing.happens()
        await brewing.until(lambda: "hook" in brewing.services.channels.troubles)
        await brewing.services.channels.pause("hook", True)
        for _ in range(200):
            brewing.clock.advance(5)
            await asyncio.sleep(0)
        assert len(receiver.requests) == 1
        await brewing.services.channels.pause("hook", False)
        await brewing.becomes(event_id, "hook", "sent")


async def test_a_channel_of_another_account_gets_its_own_only(brewing: Brewing, receiver: Receiver) -> None:
    account = await brewing.services.access.add_account("club")
    channels = brewing.services.channels
    await channels.add("club", "webhook", {"url": receiver.url}, account_id=account.id)
    receiver.script = [Reply(403, b"what a server in the house says")]
    async with sending(brewing):
        await brewing.happens(subject="1", account_id=1)
        own = await brewing.happens(subject="2", account_id=account.id)
        await brewing.until(lambda: "club" in channels.troubles)
        assert channels.troubles["club"].words == "HTTP 403"
        assert [each.channel.name for each in await channels.states(account.id)] == ["club"]
        assert await channels.states(account.id + 1) == []
        await brewing.becomes(own, "club", "sent")
    assert [request.json["subject"] for request in receiver.requests] == ["2", "2"]


async def test_a_store_that_fails_costs_no_message_and_sends_none_twice(
    brewing: Brewing, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await brewing.add("hook", "webhook", url=receiver.url)
    real, failures = brewing.store.messages.mark, [2]

    async def mark(*given: object, **named: object) -> None:
        if given[2] == "sent" and failures[0]:
            failures[0] -= 1
            raise StoreUnavailable
        await real(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(brewing.store.messages, "mark", mark)
    async with sending(brewing):
        await brewing.becomes(await brewing.happens(), "hook", "sent")
    assert (len(receiver.requests), failures) == (1, [0])


async def test_one_line_for_each_change_in_the_log(
    brewing: Brewing, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    receiver.script = [Reply(503)] * 4
    await brewing.add("hook", "webhook", url=receiver.url)
    async with sending(brewing):
        await brewing.becomes(await brewing.happens(), "hook", "sent")
    lines = [record.getMessage() for record in caplog.records if "hook" in record.getMessage()]
    assert lines == ["channel hook tries again: HTTP 503: {}", "channel hook takes messages again"]


async def test_a_secret_that_is_replaced_works_at_once(
    brewing: Brewing, receiver: Receiver, tmp_path: Path
) -> None:
    file = tmp_path / "topic"
    file.write_text("one\n")
    await brewing.services.channels.add("phone", "ntfy", {"server": receiver.url}, secret_file=file)
    async with sending(brewing):
        await brewing.becomes(await brewing.happens(subject="1"), "phone", "sent")
        file.write_text("two\n")
        brewing.clock.advance(5)
        await brewing.becomes(await brewing.happens(subject="2"), "phone", "sent")
        file.unlink()
        found = await brewing.fails(await brewing.happens(subject="3"), "phone")
        assert brewing.services.channels.troubles["phone"].blocked
        assert "there is no such file" in found.trouble
    assert [json.loads(request.body)["topic"] for request in receiver.requests] == ["one", "two"]


async def test_a_secret_is_hidden_before_an_answer_is_cut(brewing: Brewing, receiver: Receiver) -> None:
    """Else the end of what is shown could be the beginning of the secret."""
    receiver.script = [Reply(403, b"x" * 190 + b" planted-topic-planted-topic and more")]
    await brewing.add("phone", "ntfy", "planted-topic-planted-topic", server=receiver.url)
    async with sending(brewing):
        found = await brewing.fails(await brewing.happens(), "phone")
    assert "plan" not in found.trouble
    assert found.trouble.startswith("HTTP 403: xxx")
    assert len(found.trouble) <= 220


async def test_rows_of_a_damaged_file_stop_nobody_else(brewing: Brewing, receiver: Receiver) -> None:
    for name in ("odd", "hook"):
        await brewing.add(name, "webhook", url=receiver.url)
    first = await brewing.happens("stuck", "1")
    writer = brewing.store._writer  # type: ignore[attr-defined]
    await writer.run(lambda c: c.execute("UPDATE alarms SET rule = 'smoke'") and None)
    damaged = '{"quiet": "always"}'
    await writer.run(
        lambda c: c.execute("UPDATE channels SET settings = ? WHERE name = 'odd'", (damaged,)) and None
    )
    async with sending(brewing):
        await brewing.becomes(first, "hook", "sent")
        brewing.clock.advance(5)
        await brewing.becomes(await brewing.happens("done", "2"), "hook", "sent")
        states = {state.channel.name: state for state in await brewing.services.channels.states()}
    assert "its settings are damaged" in states["odd"].trouble
    assert states["odd"].blocked
    assert [request.json["title"] for request in receiver.requests] == ["smoke", "Fermentation is done"]
