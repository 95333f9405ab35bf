"""Sessions of absent MQTT clients: what is kept, how long, and how many."""

from gateway.transports.mqtt_memory import KEPT, KEPT_OF_SOURCE, MqttMemory, MqttSession, Turn


def session(number: int = 0, source: str = "192.168.1.7", keep_s: float = 60.0) -> MqttSession:
    return MqttSession((f"client{number}", source), keep_s)


def test_a_session_comes_back_once_with_its_open_ids() -> None:
    memory, kept = MqttMemory(), session()
    waiting = Turn(None, b"")
    kept.open = {7: Turn(None, b"", settled=True), 8: waiting, 9: Turn(None, b"", refused=True)}
    memory.keep(kept, 100.0)
    assert kept.open == {8: waiting}, "an absent client's settled ids are two bytes each"
    waiting.settle()
    back = memory.resume(kept.name, 159.0)
    assert back is kept
    assert {mid: turn.settled for mid, turn in kept.open.items()} == {7: True, 8: True}
    assert memory.resume(kept.name, 159.0) is None


def test_a_session_ends_with_its_time() -> None:
    memory = MqttMemory()
    memory.keep(session(), 100.0)
    assert memory.resume(session().name, 160.0) is None
    memory.keep(session(), 200.0)
    memory.keep(session(1, keep_s=90.0), 200.0)
    memory.forget_ended(260.0)
    assert len(memory) == 1


def test_sessions_are_bounded_in_all_and_of_each_source() -> None:
    memory = MqttMemory()
    for number in range(KEPT_OF_SOURCE + 1):
        memory.keep(session(number), float(number))
    assert len(memory) == KEPT_OF_SOURCE
    assert memory.resume(session(0).name, 40.0) is None
    assert memory.resume(session(1).name, 40.0) is not None
    for number in range(KEPT):
        memory.keep(session(number, f"10.0.0.{number}"), 50.0)
    assert len(memory) == KEPT
    assert memory.resume(session(2).name, 51.0) is None
