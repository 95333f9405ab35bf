"""The program, made wrong in how it takes MQTT; everything else as `launcher` has it."""

import os
import runpy
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from tests.faults.launcher import VARIABLE


def _impatient() -> None:
    """The listener sends PUBACK without waiting for the commit."""
    from gateway.transports.mqtt_listener import MqttListener

    receive = MqttListener.receive

    def hasty(listener: MqttListener, connection: Any, packet: Any, turn: Any) -> None:
        receive(listener, connection, packet, None)
        if turn is not None:
            turn.settled = True

    patch.object(MqttListener, "receive", hasty).start()


def _greedy() -> None:
    """Keeps a packet of a broker, of any length."""
    from gateway.transports import paho_client

    patch.object(paho_client, "PACKET_BYTES", 1 << 30).start()


def _crowded() -> None:
    """The listener lets a source have all connections."""
    from gateway.transports.mqtt_limits import MqttLimits

    crowded = MqttLimits(per_source=MqttLimits().connections)
    patch("gateway.transports.mqtt_listener.MqttLimits", lambda: crowded).start()


def _fragile() -> None:
    """The parser raises what nobody expects."""
    from gateway.transports.mqtt_packets import Packets

    def unwelcome(_: Packets, first: int) -> Exception:
        return RuntimeError(f"byte {first}")

    patch.object(Packets, "_unwelcome", unwelcome).start()


WEAK: dict[str, Callable[[], None]] = {
    "impatient": _impatient,
    "greedy": _greedy,
    "crowded": _crowded,
    "fragile": _fragile,
}


if __name__ == "__main__":
    WEAK[os.environ.pop(VARIABLE)]()
    runpy.run_module("tests.faults.launcher", run_name="__main__", alter_sys=True)
