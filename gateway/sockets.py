"""Listening sockets: on all interfaces, on an address, or on a network interface by its name."""

import errno
import socket
from dataclasses import dataclass

from gateway.errors import ConfigError, PortTaken, in_words
from gateway.interfaces import EVERYWHERE, INTERFACE_MARK, LOOPBACK_INTERFACE, is_loopback, own_addresses
from gateway.processes import port_holder

PRIVILEGED_PORTS = range(1, 1024)

PRIVILEGE_REMEDY = "; allow it with `sysctl net.ipv4.ip_unprivileged_port_start={port}`"

BACKLOG = 512
"""Connections that the system queues until they are accepted."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A listening socket, the part of the gateway that it belongs to, and the host as the user wrote it."""

    part: str
    host: str
    socket: socket.socket

    @property
    def port(self) -> int:
        """The port, also where the system has chosen it."""
        return int(self.socket.getsockname()[1])

    @property
    def address(self) -> str:
        """The address and port to type into a device."""
        return f"{shown_host(self.host)}:{self.port}"


def listen(what: str, host: str, port: int, remedy: str, device: str = "") -> socket.socket:
    """Open a listening socket; no host means every interface, IPv4 and IPv6. `PortTaken` names the remedy.

    `%eth0` listens on that interface, whichever addresses it has or gets. `device` limits an address to an
    interface.
    """
    if host.startswith(INTERFACE_MARK):
        host, device = "", host.removeprefix(INTERFACE_MARK)
    try:
        return _listening(host, port, device)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(what, host or device, port, remedy, port_holder(port)) from error
        where = f"interface {device}" if device else host or "all interfaces"
        allow = error.errno == errno.EACCES and port in PRIVILEGED_PORTS
        raise ConfigError(
            f"cannot listen on {where} port {port}: {in_words(error)}"
            + (PRIVILEGE_REMEDY.format(port=port) if allow else "")
        ) from error


def _listening(host: str, port: int, device: str) -> socket.socket:
    if not device and not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not device and "%" not in host:
        return socket.create_server((host, port), family=family)
    # Not `create_server`, because it loses the zone of a link-local address and can bind to no interface.
    dual = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else family
    [*_, address] = socket.getaddrinfo(host or ("::" if dual else "0.0.0.0"), port, family)[0]  # noqa: S104
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not dual)
        if device:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        made.bind(address)
        made.listen(BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def device_for(host: str, hosts: list[str]) -> str:
    """Return the interface that an address has to be bound to as well, because of the hosts beside it.

    The system takes a port on an interface and the same port on an address for one and the same, unless the
    address is bound to an interface, too.
    """
    beside_interfaces = any(each.startswith(INTERFACE_MARK) for each in hosts)
    return LOOPBACK_INTERFACE.removeprefix(INTERFACE_MARK) if beside_interfaces and is_loopback(host) else ""


def shown_host(host: str) -> str:
    """Return the address to type into a device, so that the device reaches this machine."""
    if host.startswith(INTERFACE_MARK):
        name = host.removeprefix(INTERFACE_MARK)
        own = [each.address for each in own_addresses() if each.interface == name]
        return bracketed(own[0]) if own else host
    if host not in EVERYWHERE:
        return bracketed(host)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # chooses a route, sends nothing
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def bracketed(address: str) -> str:
    """Return an address as it stands in front of a port."""
    return f"[{address}]" if ":" in address else address
