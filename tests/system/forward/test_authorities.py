"""Certificate authorities: read at the first https request, and believed as OpenSSL finds them."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import ClientConnectorCertificateError, web
from aiohttp.test_utils import TestServer

from gateway.forward.client import ServiceClient, open_session
from gateway.tls.authorities import FILE_VARIABLE, verifying_context
from gateway.tls.self_signed import CERTIFICATE_NAME, KEY_NAME, make

UNREAD = f"""
import os
from gateway.tls import authorities
given = os.environ.get({FILE_VARIABLE!r})
with authorities.left_unread():
    import aiohttp.connector as connector
assert os.environ.get({FILE_VARIABLE!r}) == given
for context in connector._SSL_CONTEXT_VERIFIED, connector._SSL_CONTEXT_UNVERIFIED:
    assert context.cert_store_stats()["x509"] == 0
assert authorities.verifying_context().cert_store_stats()["x509"] == 1
"""


async def test_a_server_is_verified_by_the_authorities_that_openssl_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, ["127.0.0.1"], days=825)
    certificate = tmp_path / CERTIFICATE_NAME
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, tmp_path / KEY_NAME)

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"message": "success"})

    app = web.Application()
    app.router.add_get("/v1/x", answer)
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=context)
    try:
        for believed in (False, True):
            if believed:
                monkeypatch.setenv(FILE_VARIABLE, str(certificate))
            verifying_context.cache_clear()
            async with open_session() as session:
                client = ServiceClient(session, str(server.make_url("")), "key", deadline_s=10)
                if believed:
                    assert (await client.request("/v1/x", 1000)).status == 200
                else:
                    with pytest.raises(ClientConnectorCertificateError):
                        await client.request("/v1/x", 1000)
    finally:
        verifying_context.cache_clear()
        await server.close()


def test_aiohttp_is_imported_without_reading_the_authorities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A surprise in aiohttp: it reads them twice while it is imported."""
    make(tmp_path, ["127.0.0.1"], days=825)
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / CERTIFICATE_NAME))
    subprocess.run([sys.executable, "-c", UNREAD], check=True, timeout=60)
