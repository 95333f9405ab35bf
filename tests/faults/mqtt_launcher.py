"""The program, made wrong in how it takes MQTT; everything else as `launcher` has it."""

import os
import runpy
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from tests.faults.launcher import VARIABLE


def _impatient() -> None:
    """The MQTT listener sends PUBACK without waiting for the commit."""
    from gateway.transports.mqtt_listener import MqttListener

    receive = MqttListener.receive

    def hasty(listener: MqttListener, connection: Any, packet: Any, turn: Any) -> None:
        receive(listener, connection, packet, None)
        if turn is not None:
            turn.settled = True

    patch.object(MqttListener, "receive", hasty).start()


def _greedy() -> None:
    """Keeps an MQTT packet of any length."""
    from gateway.transports import paho_client

    patch.object(paho_client, "PACKET_BYTES", 1 << 30).start()


WEAK: dict[str, Callable[[], None]] = {"impatient": _impatient, "greedy": _greedy}


if __name__ == "__main__":
    WEAK[os.environ.pop(VARIABLE)]()
    runpy.run_module("tests.faults.launcher", run_name="__main__", alter_sys=True)
