"""The pictures of the README: current, small, and without a word to another host."""

import re

import pytest
from PIL import Image

from tests.pictures import DOCS, SCALE, VIEWPORT_PX, terminal_svg

BYTES_MAX = 150_000


def test_the_picture_of_the_demo_is_that_of_today() -> None:
    assert (DOCS / "demo.svg").read_text("utf-8") == terminal_svg(), "run python -m tests.pictures"


def test_the_picture_of_the_demo_asks_no_other_host_for_anything() -> None:
    addresses = set(re.findall(r"https?://[^/\"<&]+", (DOCS / "demo.svg").read_text("utf-8")))
    assert addresses == {"http://www.w3.org", "http://127.0.0.1:40123"}, "a name space, and the demo's page"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pictures_of_the_page_are_small(scheme: str) -> None:
    file = DOCS / f"page-{scheme}.png"
    with Image.open(file) as picture:
        assert picture.width == VIEWPORT_PX * SCALE
        corner = picture.convert("L").getpixel((2, picture.height - 2))
    assert isinstance(corner, int)
    assert (corner > 128) == (scheme == "light")
    assert file.stat().st_size < BYTES_MAX
