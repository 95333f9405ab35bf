"""Drawn photos: the right size, the same each time, in the beer's colour."""

import io
from typing import Literal

import pytest
from PIL import Image

from gateway.formats.image_header import ImageFacts, inspect
from gateway.samples import drawing
from gateway.samples.drawing import HEIGHT, WIDTH, draw_beer, srm_rgb

Kind = Literal["glass", "fermenter", "hops"]
KINDS: tuple[Kind, ...] = ("glass", "fermenter", "hops")


def beer_of(photo: bytes) -> tuple[float, ...]:
    """The mean colour of the middle of the picture, where the beer is."""
    middle = Image.open(io.BytesIO(photo)).crop((540, 520, 660, 660)).resize((1, 1), Image.Resampling.BOX)
    found = middle.getpixel((0, 0))
    assert isinstance(found, tuple)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_photo_of_each_kind(kind: Kind) -> None:
    photo = draw_beer(7, 6, kind)
    assert inspect(photo) == ImageFacts("image/jpeg", WIDTH, HEIGHT, 1)
    assert 40_000 < len(photo) < 250_000
    picture = Image.open(io.BytesIO(photo))
    assert len(picture.resize((60, 45)).getcolors(60 * 45) or []) > 500
    assert not picture.getexif()


@pytest.fixture
def roughly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw without smooth edges, in a ninth of the time: neither the dice nor the colours change by it."""
    monkeypatch.setattr(drawing, "OVERSIZE", 1)


@pytest.mark.usefixtures("roughly")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_draws_the_same_photo_and_another_seed_another(kind: Kind) -> None:
    photo = draw_beer(7, 6, kind)
    assert draw_beer(7, 6, kind) == photo
    assert draw_beer(8, 6, kind) != photo


@pytest.mark.usefixtures("roughly")
@pytest.mark.parametrize("kind", ["glass", "fermenter"])
def test_dark_beer_is_darker(kind: Kind) -> None:
    brightness = [sum(beer_of(draw_beer(3, srm, kind))) for srm in (3, 12, 35)]
    assert brightness[0] > brightness[1] + 60 > brightness[2] + 120


@pytest.mark.usefixtures("roughly")
def test_pale_beer_is_golden_and_hops_are_green() -> None:
    red, green, blue = beer_of(draw_beer(1, 4, "glass"))
    assert red > green > blue + 60
    red, green, blue = beer_of(draw_beer(1, 40, "hops"))
    assert green > red > blue


def test_colours_darken_with_srm() -> None:
    assert srm_rgb(10) == (185, 92, 0)
    assert srm_rgb(-5) == srm_rgb(0) == srm_rgb(1)
    assert srm_rgb(40) == srm_rgb(400)
    brightness = [sum(srm_rgb(tenth / 10)) for tenth in range(10, 401)]
    assert brightness == sorted(brightness, reverse=True)
