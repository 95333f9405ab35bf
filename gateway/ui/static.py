"""Static files: styles, scripts, the icon. They are read and compressed once, and browsers keep them."""

import gzip
import hashlib
import mimetypes
import re
from functools import cache
from pathlib import Path

from aiohttp import hdrs, web

from gateway.http.gzipped import GZIP, takes_gzip

DIRECTORY = Path(__file__).parent / "static"

FOREVER = "public, max-age=31536000, immutable"

GZIP_LEVEL = 9

TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}


_COMMENTS = re.compile(rb"/\*.*?\*/", re.DOTALL)
_AROUND = re.compile(rb"\s*([{};,>])\s*")


def _read(path: Path) -> bytes:
    """Return the bytes of a file; of styles without comments and blanks, which only people need."""
    plain = path.read_bytes()
    return _AROUND.sub(rb"\1", _COMMENTS.sub(b"", plain)) if path.suffix == ".css" else plain


@cache
def files() -> dict[str, tuple[bytes, bytes, str]]:
    """Return the files by name: plain, compressed, and media type."""
    return {
        path.name: (
            (plain := _read(path)),
            gzip.compress(plain, GZIP_LEVEL, mtime=0),
            TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream",
        )
        for path in sorted(DIRECTORY.iterdir())
        if path.is_file()
    }


@cache
def version() -> str:
    """Return the hash over all files. It names their folder, so that a script can import its neighbour."""
    whole = hashlib.sha256()
    for name, (plain, _, _) in files().items():
        whole.update(name.encode() + b"\0" + plain)
    return whole.hexdigest()[:16]


async def serve(request: web.Request) -> web.Response:
    """Answer a request for a file of the present version, or of an earlier one that a page still names."""
    found = files().get(request.match_info["name"])
    if found is None:
        return web.Response(status=404, text="no such file")
    plain, compressed, media = found
    current = request.match_info["version"] == version()
    headers = {
        # An old page gets the new file, and must not keep it under the old name.
        hdrs.CACHE_CONTROL: FOREVER if current else "no-cache",
        hdrs.VARY: hdrs.ACCEPT_ENCODING,
        hdrs.CONTENT_TYPE: f"{media}; charset=utf-8" if media.startswith("text/") else media,
    }
    if takes_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, "")):
        headers[hdrs.CONTENT_ENCODING] = GZIP
        return web.Response(body=compressed, headers=headers)
    return web.Response(body=plain, headers=headers)
