"""A stand-in for the ingress of Home Assistant: a real nginx with a path in front, and a framing page."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.faults.gateways import free_port
from tests.program.test_proxies import started

BASE = "/api/hassio_ingress/8Rf_0-aQ~1"
"""The path below which the browser sees the gateway, as Home Assistant makes it."""

SUPERVISOR = "127.0.0.3"
"""The address from which the stand-in connects."""

INGRESS = ("--ingress-proxy", SUPERVISOR)

# As the Supervisor does it: the path goes on decoded and without the base, with the browser's own headers.
CONFIGURATION = """daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; {user}
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location = / {{
            default_type text/html;
            return 200 '<!doctype html><title>Home</title><iframe name="app" src="{base}/ui/"></iframe>';
        }}
        location {base}/ {{
            proxy_pass http://127.0.0.1:{gateway}/;
            proxy_bind {supervisor};
            proxy_http_version 1.1;
            proxy_read_timeout 1h;
            proxy_set_header Host $http_host;
            proxy_set_header X-Ingress-Path {path};
            proxy_set_header X-Forwarded-For "$remote_addr, 172.30.32.1";
            proxy_set_header X-Forwarded-Host $http_host;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Remote-User-Id 0123456789abcdef;
            proxy_set_header X-Remote-User-Name owner;
        }}
    }}
}}
"""


@asynccontextmanager
async def ingress(folder: Path, gateway: int, *, path: str = BASE) -> AsyncIterator[str]:
    """Run the stand-in before the gateway on this port; give its origin. Its header says `path`."""
    port = free_port()
    async with started(configure(folder, port, gateway, path), port):
        yield f"http://127.0.0.1:{port}"


def configure(folder: Path, port: int, gateway: int, path: str) -> Path:
    """Write the file of nginx."""
    folder.mkdir()
    text = CONFIGURATION.format(
        folder=folder,
        port=port,
        base=BASE,
        gateway=gateway,
        supervisor=SUPERVISOR,
        path=path,
        user="user root;" if os.geteuid() == 0 else "",
    )
    (folder / "nginx.conf").write_text(text)
    return folder / "nginx.conf"
