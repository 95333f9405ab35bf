"""Checks of the MQTT broker: whether it can be reached, its version, and settings that lose messages.

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
"""Seconds for connecting to a broker."""

VERSION_S = 2.0
"""Seconds for the version of a broker; not all send it."""

VERSION_TOPIC = b"$SYS/broker/version"
VERSION_BYTES = 1024

REFUSALS = {
    1: ("does not speak MQTT 3.1.1", "use a broker that does"),
    2: ("refuses the client id", "check its rules for client ids"),
    3: ("is not available", "check its log"),
    4: ("does not know the user or the password", "give them by --mqtt-user and --mqtt-password-file"),
    5: ("refuses this user", "check --mqtt-user, --mqtt-password-file and its access rules"),
}
"""Return codes of CONNACK (section 3.2.2.3)."""

CONNACK, PUBLISH = 0x20, 0x30


async def reached(context: Context) -> Sequence[Finding]:
    """Check that the broker lets us in."""
    broker = context.broker
    if broker is None:
        own = (
            "no MQTT"
            if context.settings.no_mqtt
            else "the gateway's own listener; iSpindel and GravityMon do not repeat lost MQTT messages"
        )
        return [ok(own)]
    where = f"{broker.host}:{broker.port}"
    try:
        async with asyncio.timeout(ANSWER_S + VERSION_S):
            code, version = await _visit(broker)
    except (OSError, TimeoutError, ValueError) as error:
        remedy = "check the host, the port, and whether the broker listens to other machines"
        return [problem(f"{where} cannot be reached: {in_words(error)}", remedy)]
    if code:
        reason, remedy = REFUSALS.get(code, (f"refuses with code {code}", "check its log"))
        return [problem(f"{where} {reason}", remedy)]
    found = [ok(f"{where} lets us in{f': {version}' if version else ''}")]
    found += [warning(sentence, "docs/operating.md says how, at Configuration") for sentence in broker.advice]
    if broker.password and not broker.tls and not _is_here(broker.host):
        found.append(
            warning(f"{where}: the password crosses the network as plain text", "use mqtts:// where you can")
        )
    return found


async def settings(context: Context) -> Sequence[Finding]:
    """Check the settings of a Mosquitto on this machine; of another broker, name the settings."""
    if context.broker is None:
        return []
    if _is_here(context.broker.host):
        try:
            return mosquitto_conf.judged(mosquitto_conf.read(mosquitto_conf.FILE))
        except OSError as error:
            why = f"{mosquitto_conf.FILE}: {in_words(error)}"
    else:
        why = "it is on another machine"
    text = f"they cannot be read from here ({why}); a broker may lose acknowledged messages"
    names = "persistence, autosave_interval, autosave_on_changes, max_queued_messages, queue_qos0_messages"
    return [warning(text, f"compare {names} with deploy/mosquitto/mosquitto.conf")]


def _is_here(host: str) -> bool:
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return any(address == "::1" or address.startswith("127.") for address in addresses)


async def _visit(broker: Broker) -> tuple[int, str]:
    """Connect. Return CONNACK's return code, and the broker's version; empty if it sends none."""
    context = ssl.create_default_context() if broker.tls else None
    reader, writer = await asyncio.open_connection(broker.host, broker.port, ssl=context)
    try:
        writer.write(_connect(broker))
        try:
            kind, body = await _packet(reader)
        except EOFError as error:
            raise ValueError("it hangs up: it is no MQTT broker, or wants mqtts://") from error
        if kind != CONNACK or len(body) != 2:
            raise ValueError("it is no MQTT broker")
        code = body[1]
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


async def _version(reader: asyncio.StreamReader) -> str:
    while True:
        kind, body = await _packet(reader)
        if kind & 0xF0 == PUBLISH:
            start = 2 + struct.unpack_from(">H", body)[0]
            text = body[start:].decode("utf-8", "replace")
            return "".join(char for char in text if char.isprintable())[:100]


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
        raise ValueError("it is no MQTT broker")
    return kind, await reader.readexactly(length)
