"""The addresses that requests outward may go to: no link-local ones, and none of our own listeners."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Collection

from gateway.domain.delivery import DeliveryResult, Outcome
from gateway.errors import GatewayError, in_words
from gateway.interfaces import own_addresses
from gateway.network import address_in, written_address

REFUSED_NETWORKS = tuple(ipaddress.ip_network(network) for network in ("169.254.0.0/16", "fe80::/10"))
"""Link-local addresses: machines in the cloud answer there with their keys."""

HOST_CHARACTERS = 253
"""Characters of a host name at most."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Looks a name up and returns its addresses, the best first; `OSError` without any."""


class OutwardFailed(GatewayError):
    """A request outward failed.

    `verdict` is KEPT if no byte of it left, AMBIGUOUS if one may have left, and PAUSED if it was certainly
    not taken and a person must act. The message is one line without secrets.
    """

    def __init__(self, reason: str, verdict: DeliveryResult = DeliveryResult.KEPT) -> None:
        super().__init__(reason)
        self.verdict = verdict

    @property
    def outcome(self) -> Outcome:
        """Return the end of the request."""
        return Outcome(self.verdict, str(self))


async def look_up(host: str, port: int) -> list[str]:
    """Return the addresses of a host, as the system finds them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def no_ports() -> Collection[int]:
    """Return no ports of our own."""
    return ()


class Guard:
    """Finds the addresses of a host, and refuses some. `own_ports` returns our own listening ports."""

    def __init__(
        self, own_ports: Callable[[], Collection[int]] = no_ports, resolve: Resolve = look_up
    ) -> None:
        self._own_ports = own_ports
        self._resolve = resolve

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host to connect to; `OutwardFailed` if there is none, or none is allowed.

        Connect to these addresses, not to the name: a name server may answer otherwise the next time.
        """
        try:
            found = [written_address(each) for each in await self._resolve(host, port)]
        except (OSError, UnicodeError) as error:
            raise OutwardFailed(in_words(error)) from error
        reasons = [self._refusal(address, port) for address in found]
        allowed = [address for address, reason in zip(found, reasons, strict=True) if not reason]
        if not allowed:
            why = next(filter(None, reasons), "the name has no address")
            raise OutwardFailed(f"{host}: {why}", DeliveryResult.PAUSED)
        return list(dict.fromkeys(allowed))

    def _refusal(self, address: str, port: int) -> str:
        if reason := refusal(address):
            return reason
        if port in self._own_ports():
            ip = ipaddress.ip_address(address)
            if ip.is_loopback or ip.is_unspecified or address in {own.address for own in own_addresses()}:
                return f"port {port} there is one of this gateway"
        return ""


def refusal(address: str) -> str:
    """Return why nothing is sent to an address; an empty text if something may be, or if it is a name."""
    written = address_in(address.partition("%")[0])
    if written is None:
        return ""
    ip = ipaddress.ip_address(written)
    if any(ip in network for network in REFUSED_NETWORKS):
        return f"{written} is a link-local address; nothing is sent to those"
    return ""
