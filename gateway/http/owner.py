"""The caller on the Unix socket: the owner of the data, without a key."""

import socket
import struct
from urllib.parse import unquote

from aiohttp import web

from gateway.domain.account import OWNER_ID
from gateway.domain.audit import Actor, acting
from gateway.domain.key import ALL_SCOPES
from gateway.errors import NotFound
from gateway.http.both_ends import ACCOUNT_HEADER, NO_SUCH_PATH
from gateway.http.middleware import CALLER, SERVICES, Caller, Handler, error_response

PEER = struct.Struct("3i")
"""Process, user and group of the other end, as the kernel tells it (unix(7), SO_PEERCRED)."""


@web.middleware
async def owner_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let every request act as the owner. Only the socket's application has this middleware."""
    if request.match_info.http_exception is not None:
        return error_response(404, "not-found", NO_SUCH_PATH)
    name = request.headers.get(ACCOUNT_HEADER)
    account_id = OWNER_ID
    if name is not None:
        try:
            account_id = await request.app[SERVICES].access.account_id(unquote(name))
        except NotFound as error:
            # Not by the table of errors, because its detail says nothing of the account.
            return error_response(404, "not-found", str(error))
    request[CALLER] = Caller(account_id, ALL_SCOPES, everywhere=True, account_named=name is not None)
    with acting(Actor(f"cli:uid {_peer_uid(request)}")):
        return await handler(request)


def _peer_uid(request: web.Request) -> int:
    """Return the user id of the process at the other end of the socket; -1 if the process has left."""
    connection = request.get_extra_info("socket")
    if connection is None:
        return -1
    _, uid, _ = PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
    return int(uid)
