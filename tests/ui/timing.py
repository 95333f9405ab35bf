"""Measure a brew of a year in a browser: `python -m tests.ui.timing [--rounds 9] [--readings 35000]`.

Prints, as medians: milliseconds from the request to the last byte and to the first paint, and bytes over the
wire, of a cold page (nothing kept) and of one that was seen before.
"""

import argparse
import asyncio
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from playwright.async_api import Browser

from tests.program.program import HTTP_ONLY, Server, serving
from tests.ui.brewery import YEAR, brew
from tests.ui.browsing import chromium, tab

ROUNDS = 9

PAINTED = "() => performance.getEntriesByName('first-contentful-paint').length"

ENTRIES = """() => {
  const page = performance.getEntriesByType('navigation')[0];
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  const files = performance.getEntriesByType('resource');
  return [page.responseEnd - page.requestStart, paint ? paint.startTime - page.requestStart : -1,
          page.encodedBodySize, files.reduce((sum, file) => sum + file.transferSize, page.transferSize)];
}"""


async def measure(
    browser: Browser, server: Server, key: str, path: str, rounds: int
) -> list[tuple[str, list[float]]]:
    """The medians of cold visits, each in a tab of its own, and of warm ones in the same tab."""
    kinds = []
    cold = []
    for _ in range(rounds):
        async with tab(browser, server, key) as shown:
            await shown.go(path)
            await shown.page.wait_for_function(PAINTED)
            cold.append(await shown.page.evaluate(ENTRIES))
    kinds.append(("cold", cold))
    warm = []
    async with tab(browser, server, key) as shown:
        for _ in range(rounds + 1):
            await shown.go(path)
            await shown.page.wait_for_function(PAINTED)
            warm.append(await shown.page.evaluate(ENTRIES))
    kinds.append(("warm", warm[1:]))
    return [(kind, [median(column) for column in zip(*rows, strict=True)]) for kind, rows in kinds]


async def main() -> None:
    """Fill a gateway, measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="visits of each kind")
    parser.add_argument("--readings", type=int, default=YEAR, help="readings of the brew")
    options = parser.parse_args()
    with TemporaryDirectory() as directory:
        brewery = await brew(Path(directory), readings=options.readings, photos=False)
        async with serving(Path(directory), *HTTP_ONLY) as server, chromium() as browser:
            print(f"{'page':24}{'visit':6}{'answer ms':>10}{'paint ms':>10}{'page B':>10}{'all B':>10}")
            for name, path in (("one brew, a year", f"/brews/{brewery.year}"), ("brews", "/")):
                for kind, row in await measure(browser, server, brewery.key, path, options.rounds):
                    figures = "".join(f"{value:>10.0f}" for value in row)
                    print(f"{name:24}{kind:6}{figures}")


if __name__ == "__main__":
    asyncio.run(main())
