"""The addresses of this machine, and the networks that reach an address.

The addresses come from an `ioctl` and from `/proc`. Not from `getifaddrs`, because that opens a netlink
socket, which the systemd unit forbids.
"""

import array
import fcntl
import ipaddress
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from gateway.network import is_local

SIOCGIFCONF = 0x8912
"""The request for all IPv4 addresses with their interfaces (netdevice(7))."""

NAME_BYTES = 16
IFREQ_BYTES = NAME_BYTES + (24 if struct.calcsize("P") == 8 else 16)
"""Size of the kernel's `struct ifreq`: a name, and the largest member of its union."""

SHOWN_ADDRESSES = 3
"""Public addresses that a warning names at most."""

ADDRESSES = 256
"""The most IPv4 addresses of this machine that are read."""

IF_INET6 = Path("/proc/net/if_inet6")
"""One line for each IPv6 address: 32 hex digits, four numbers, and the name of the interface."""

EVERYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104
"""Hosts that mean every address of this machine."""

INTERFACE_MARK = "%"
"""The character in front of a host that is the name of an interface, such as `%eth0`."""

LOOPBACK_INTERFACE = "%lo"
"""The interface of the loopback addresses, as a host."""


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """An address of this machine and the name of its interface."""

    interface: str
    address: str

    @property
    def is_public(self) -> bool:
        """Return whether the Internet routes the address."""
        return ipaddress.ip_address(self.address).is_global


def own_addresses() -> list[OwnAddress]:
    """Return the addresses of this machine; of a kind that cannot be read, none."""
    return [*_ipv4(), *_ipv6()]


def _ipv4() -> list[OwnAddress]:
    room = array.array("B", bytes(IFREQ_BYTES * ADDRESSES))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            answer = fcntl.ioctl(asker, SIOCGIFCONF, struct.pack("iP", len(room), room.buffer_info()[0]))
    except OSError:
        return []
    filled = room.tobytes()[: struct.unpack("iP", answer)[0]]
    found = []
    for start in range(0, len(filled), IFREQ_BYTES):
        name = filled[start : start + NAME_BYTES].split(b"\0")[0].decode("utf-8", "replace")
        # A socket address follows the name: family and port take four bytes, then the address.
        packed = filled[start + NAME_BYTES + 4 : start + NAME_BYTES + 8]
        found.append(OwnAddress(name.split(":")[0], socket.inet_ntop(socket.AF_INET, packed)))
    return found


def _ipv6() -> list[OwnAddress]:
    try:
        lines = IF_INET6.read_text("ascii", "replace").splitlines()
    except OSError:
        return []
    columns = [line.split() for line in lines]
    return [
        OwnAddress(row[5], socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0])))
        for row in columns
        if len(row) == 6
    ]


def is_loopback(host: str) -> bool:
    """Return whether the host is an address that only this machine reaches."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def reach(host: str) -> str:
    """Return who can connect to this host, in words."""
    if host in EVERYWHERE:
        return "from every network of this machine"
    if host.startswith(INTERFACE_MARK):
        return f"from the network at {host.removeprefix(INTERFACE_MARK)}"
    if is_loopback(host):
        return "from this machine alone"
    return "from the local network" if is_local(host) else "from anywhere that has a way to it"


def public_addresses(hosts: list[str]) -> list[str]:
    """Return the public addresses of this machine at which one of these hosts listens."""
    found = []
    for own in own_addresses():
        spellings = {own.address, f"{INTERFACE_MARK}{own.interface}"}
        everywhere = {"", "::"} if ":" in own.address else {"", "0.0.0.0"}  # noqa: S104
        if own.is_public and any(host in everywhere or host in spellings for host in hosts):
            found.append(own.address)
    return list(dict.fromkeys(found))


def public_warning(hosts: list[str]) -> str:
    """Return a sentence about public addresses where these hosts listen, or no text if there are none."""
    public = public_addresses(hosts)
    if not public:
        return ""
    more = ", ..." if len(public) > SHOWN_ADDRESSES else ""
    return (
        f"the Internet may reach this gateway at {', '.join(public[:SHOWN_ADDRESSES])}{more}, "
        "unless a firewall or router stops it; from there every request needs a key"
    )
