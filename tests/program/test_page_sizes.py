"""Every page with a year of readings stays small over the wire."""

from pathlib import Path

from yarl import URL

from gateway.ui import static
from tests.system.ui.site import served
from tests.ui.brewery import brew
from tests.ui.pictures import pages

PAGE_BYTES = 25_000
"""Bytes of a page, gzipped, with both of its charts."""

ALL_BYTES = 40_000
"""Bytes of a page with the styles and all scripts, gzipped."""


async def test_every_page_is_small_with_a_year_of_readings(tmp_path: Path) -> None:
    brewery = await brew(tmp_path, photos=False)
    async with served(tmp_path) as browser:
        sizes = {}
        for name, path in pages(brewery).items():
            url = URL(f"/ui{path}", encoded=True)
            headers = {**browser.headers, "Accept-Encoding": "gzip"}
            async with browser.client.get(url, headers=headers, auto_decompress=False) as answer:
                assert answer.status in {200, 404}, path
                sizes[name] = len(await answer.read())
    assert {name: size for name, size in sizes.items() if size > PAGE_BYTES} == {}
    files = sum(
        len(packed) for name, (_, packed, _) in static.files().items() if name.endswith((".css", ".js"))
    )
    assert max(sizes.values()) + files <= ALL_BYTES
