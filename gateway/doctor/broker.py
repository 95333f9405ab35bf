"""The MQTT broker: reached, which one it is, and whether its settings lose messages.

Speaks just enough MQTT 3.1.1 (docs.oasis-open.org/mqtt/mqtt/v3.1.1, sections 3.1, 3.2, 3.3, 3.8) to connect
and to read one retained topic. The client library belongs to the gateway's own connection, and runs a thread.
"""

import asyncio
import secrets
import socket
import ssl
import struct
from collections.abc import Sequence

from gateway.doctor import mosquitto_conf
from gateway.doctor.finding import Broker, Context, Finding, ok, problem, warning
from gateway.errors import in_words

ANSWER_S = 5.0
VERSION_S = 2.0
"""How long a broker may take to say what it is; not all do."""

VERSION_TOPIC = b"$SYS/broker/version"
VERSION_BYTES = 1024

REFUSALS = {
    1: ("does not speak MQTT 3.1.1", "use a broker that does"),
    2: ("does not like the name of the client", "look at its rules for client ids"),
    3: ("is not available", "look at its log"),
    4: ("does not know the user or the password", "write them into --mqtt-url mqtt://user:password@host"),
    5: ("does not let this user in", "write user and password into --mqtt-url, or look at its access rules"),
}
"""Return codes of CONNACK (section 3.2.2.3)."""

CONNACK, PUBLISH = 0x20, 0x30


async def reached(case: Context) -> Sequence[Finding]:
    """Whether it lets us in."""
    broker = case.broker
    if broker is None:
        own = (
            "no MQTT"
            if case.settings.no_mqtt
            else "the gateway's own; iSpindel and GravityMon promise nothing by MQTT"
        )
        return [ok(own)]
    where = f"{broker.host}:{broker.port}"
    try:
        async with asyncio.timeout(ANSWER_S + VERSION_S):
            code, version = await _visit(broker)
    except (OSError, TimeoutError, ValueError) as error:
        remedy = "look at the host, the port, and whether the broker listens to more than its own machine"
        return [problem(f"{where} cannot be reached: {in_words(error)}", remedy)]
    if code:
        what, remedy = REFUSALS.get(code, (f"refuses with code {code}", "look at its log"))
        return [problem(f"{where} {what}", remedy)]
    found = [ok(f"{where} lets us in{f': {version}' if version else ''}")]
    if broker.password and not broker.tls and not _is_here(broker.host):
        found.append(
            warning(f"{where}: the password goes over the network as it is", "use mqtts:// where you can")
        )
    return found


async def settings(case: Context) -> Sequence[Finding]:
    """Of a Mosquitto on this machine its file; of any other what to look at."""
    if case.broker is None:
        return []
    if _is_here(case.broker.host):
        try:
            return mosquitto_conf.judged(mosquitto_conf.read(mosquitto_conf.FILE))
        except OSError as error:
            why = f"{mosquitto_conf.FILE}: {in_words(error)}"
    else:
        why = "it is on another machine"
    text = f"they cannot be seen from here ({why}); a broker may lose what it has acknowledged"
    names = "persistence, autosave_interval, autosave_on_changes, max_queued_messages, queue_qos0_messages"
    return [warning(text, f"compare {names} with deploy/mosquitto/mosquitto.conf")]


def _is_here(host: str) -> bool:
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return any(address == "::1" or address.startswith("127.") for address in addresses)


async def _visit(broker: Broker) -> tuple[int, str]:
    """CONNACK's return code, and the broker's version where it says one."""
    context = ssl.create_default_context() if broker.tls else None
    reader, writer = await asyncio.open_connection(broker.host, broker.port, ssl=context)
    try:
        writer.write(_connect(broker))
        code = await _connack(reader)
        if code:
            return code, ""
        writer.write(_framed(0x82, struct.pack(">H", 1) + _text(VERSION_TOPIC) + b"\0"))
        version = ""
        try:
            async with asyncio.timeout(VERSION_S):
                version = await _version(reader)
        except (TimeoutError, EOFError):
            pass
        writer.write(b"\xe0\0")  # DISCONNECT
        return 0, version
    finally:
        writer.close()


async def _connack(reader: asyncio.StreamReader) -> int:
    try:
        kind, body = await _packet(reader)
    except EOFError as error:
        raise ValueError("what answers hangs up: it is no MQTT broker, or wants mqtts://") from error
    if kind != CONNACK or len(body) != 2:
        raise ValueError("what answers is no MQTT broker")
    return body[1]


async def _version(reader: asyncio.StreamReader) -> str:
    while True:
        kind, body = await _packet(reader)
        if kind & 0xF0 == PUBLISH:
            start = 2 + struct.unpack_from(">H", body)[0]
            said = body[start:].decode("utf-8", "replace")
            return "".join(char for char in said if char.isprintable())[:100]


def _connect(broker: Broker) -> bytes:
    name = f"hydrometer-doctor-{secrets.token_hex(2)}".encode()
    user = broker.user.encode() if broker.user is not None else None
    password = broker.password.encode() if user is not None and broker.password is not None else None
    flags = 0x02 | (0x80 if user is not None else 0) | (0x40 if password is not None else 0)
    body = _text(b"MQTT") + bytes([4, flags]) + struct.pack(">H", 30) + _text(name)
    return _framed(0x10, body + b"".join(_text(part) for part in (user, password) if part is not None))


def _text(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data


def _framed(kind: int, body: bytes) -> bytes:
    length, rest = b"", len(body)
    while True:
        rest, digit = divmod(rest, 128)
        length += bytes([digit | (0x80 if rest else 0)])
        if not rest:
            return bytes([kind]) + length + body


async def _packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    kind = (await reader.readexactly(1))[0]
    length = 0
    for place in range(4):
        digit = (await reader.readexactly(1))[0]
        length |= (digit & 0x7F) << (7 * place)
        if not digit & 0x80:
            break
    if length > VERSION_BYTES:
        raise ValueError("what answers is no MQTT broker")
    return kind, await reader.readexactly(length)
