"""One message to the user's broker, on a connection of its own that lasts as long as that takes.

Alarms are few: a connection that stays would cost more memory than it saves.
"""

import asyncio
import threading

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from gateway.domain.delivery import DeliveryResult
from gateway.errors import in_words
from gateway.outward.guard import OutwardFailed
from gateway.transports.mqtt_link import MqttUrl
from gateway.transports.paho_client import log_in

CONNECT_S = 10.0
"""Seconds for the connection, and for the broker's answer to it."""

ANSWER_S = 10.0
"""Seconds that the broker may take to acknowledge the message."""


async def publish(url: MqttUrl, client_id: str, topic: str, payload: bytes) -> None:
    """Publish at QoS 1, not retained, and return after the acknowledgement; `OutwardFailed` without one."""
    await asyncio.to_thread(_publish, url, client_id, topic, payload)


def _publish(url: MqttUrl, client_id: str, topic: str, payload: bytes) -> None:
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id=client_id, clean_session=True)
    answered = threading.Event()
    refusal: list[str] = []

    def on_connect(
        _client: paho.Client,
        _userdata: object,
        _flags: paho.ConnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        if reason.is_failure:
            refusal.append(str(reason))
        answered.set()

    client.on_connect = on_connect
    client.connect_timeout = CONNECT_S
    log_in(client, url)
    try:
        client.connect(url.host, url.port)
        client.loop_start()
        if not answered.wait(CONNECT_S):
            raise OutwardFailed("the broker gives no answer")
        if refusal:
            raise OutwardFailed(f"the broker refuses us: {refusal[0]}", DeliveryResult.PAUSED)
        sent = client.publish(topic, payload, qos=1)
        if sent.rc not in {MQTTErrorCode.MQTT_ERR_SUCCESS, MQTTErrorCode.MQTT_ERR_NO_CONN}:
            raise OutwardFailed("the broker is gone", DeliveryResult.AMBIGUOUS)
        sent.wait_for_publish(ANSWER_S)
        if not sent.is_published():
            raise OutwardFailed("the broker does not acknowledge", DeliveryResult.AMBIGUOUS)
    except (OSError, ValueError, RuntimeError) as error:
        raise OutwardFailed(in_words(error)) from error
    finally:
        client.disconnect()
        client.loop_stop()
        client.on_connect = None  # no cycle is left: its sockets close here and now
