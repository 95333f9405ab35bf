"""Copies of a photo in any size, without anything private.

Only `resized` decodes a photo (up to 300 MB and some seconds for the largest), and only it imports Pillow.
"""

import io
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.errors import GatewayError, InvalidInput, TooLarge
from gateway.formats import pillow
from gateway.formats.image_header import JPEG, PIXELS, PNG, QUARTER_TURN, inspect

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

SIDE_PIXELS = 4096
"""The longest width or height of a request."""

FULL_SCALE = 100
"""The scale of a photo in full size, in percent. A scale of 0 means a request without a scale."""

ICC_BYTES = 1024 * 1024
"""The most bytes of a colour profile that is kept; profiles of RGB and grey have 0.5 to 600 kB."""

JPEG_QUALITY = 85

DRAFT_GAP = 2
"""The factor above the needed size at which a JPEG is decoded, at 1/8, 1/4 or 1/2 if that is enough."""

Box = tuple[float, float, float, float]

_ICC_SPACES = {"L": b"GRAY", "LA": b"GRAY", "I;16": b"GRAY", "RGB": b"RGB ", "RGBA": b"RGB "}
_SMOOTH_MODES = {"1": "L", "P": "RGB"}
_SEE_THROUGH_MODES = {"L": "LA", "RGB": "RGBA"}


@dataclass(frozen=True, slots=True)
class Sizing:
    """The requested size: a box in pixels, then percent of the box; see api-decisions section 7."""

    width: int | None = None
    height: int | None = None
    scale: float = 0
    bestfit: bool = False
    crop: bool = False

    @property
    def unchanged(self) -> bool:
        """Return whether the original bytes are the answer."""
        return self.width is None and self.height is None and self.scale == 0


def check_sizing(sizing: Sizing) -> None:
    """Raise `InvalidInput` for a parameter that is out of its range or lacks its companions."""
    for name, side in (("width", sizing.width), ("height", sizing.height)):
        if side is not None and not 1 <= side <= SIDE_PIXELS:
            raise InvalidInput(f"{name} must be 1 to {SIDE_PIXELS}")
    if not 0 <= sizing.scale <= FULL_SCALE:
        raise InvalidInput(f"scale must be 0 to {FULL_SCALE}")
    if (sizing.bestfit or sizing.crop) and (sizing.width is None or sizing.height is None):
        raise InvalidInput("bestfit and crop need both width and height")


def target_size(sizing: Sizing, width: int, height: int) -> tuple[int, int, Box | None]:
    """Return the result's sides in pixels, and the shown part of the `width` x `height` photo (None: all).

    The part is (left, top, right, bottom) in the photo's pixels, exactly centred, so with fractions.
    """
    check_sizing(sizing)
    across: float = width if sizing.width is None else sizing.width
    down: float = height if sizing.height is None else sizing.height
    box = None
    if sizing.width is None:
        across = width * down / height
    elif sizing.height is None:
        down = height * across / width
    elif sizing.crop:
        ratio = min(width / across, height / down)
        left, top = (width - across * ratio) / 2, (height - down * ratio) / 2
        box = (max(left, 0.0), max(top, 0.0), min(width - left, width), min(height - top, height))
    elif sizing.bestfit:
        ratio = min(across / width, down / height)
        across, down = width * ratio, height * ratio
    factor = sizing.scale / FULL_SCALE or 1
    w, h = (max(1, math.floor(side * factor + 0.5)) for side in (across, down))
    if max(w * h, w * height, h * width) > PIXELS:
        raise InvalidInput(f"{w} x {h} pixels are too many to make of {width} x {height}")
    return w, h, box


def resized(data: bytes, sizing: Sizing) -> tuple[bytes, str]:
    """Return bytes and mimetype of the photo at the size: JPEG of a JPEG, else PNG, of a GIF's first frame.

    The photo is turned upright and keeps nothing but pixels and colour profile: no place, no time, no
    thumbnail. Errors are those of `inspect` and `pillow.load`. If `sizing.unchanged`, the original comes back
    with all its metadata.
    """
    facts = inspect(data)
    width, height, box = target_size(sizing, facts.width, facts.height)
    if sizing.unchanged:
        return data, facts.mimetype
    stored, target = (facts.width, facts.height), (width, height)
    part = box or (0, 0, facts.width, facts.height)
    if facts.orientation >= QUARTER_TURN:  # the part is centred, so no mirroring moves it
        stored, target, part = stored[::-1], target[::-1], (part[1], part[0], part[3], part[2])
    pillow.load()
    from PIL import Image
    from PIL.Image import Resampling, Transpose

    with _refusals():
        image: PillowImage = Image.open(io.BytesIO(data), formats=[facts.mimetype.removeprefix("image/")])
        if image.size != stored:
            raise InvalidInput("the photo is broken: it has two different sizes")
        shrunk = _drafted(image, target, part)
        image.load()
        left, top, right, bottom = (side / shrunk for side in part)
        # Whole colours and an alpha channel in place of a palette and a transparent colour.
        mode = _SMOOTH_MODES.get(image.mode, image.mode)
        if "transparency" in image.info:
            mode = _SEE_THROUGH_MODES.get(mode, mode)
        if mode != image.mode:
            image = image.convert(mode)
        image = image.resize(target, Resampling.LANCZOS, (left, top, right, bottom))
        if facts.orientation != 1:
            flips = (Transpose.FLIP_LEFT_RIGHT, Transpose.ROTATE_180, Transpose.FLIP_TOP_BOTTOM)
            turns = (Transpose.TRANSPOSE, Transpose.ROTATE_270, Transpose.TRANSVERSE, Transpose.ROTATE_90)
            image = image.transpose((*flips, *turns)[facts.orientation - 2])
        return _encoded(image, facts.mimetype)


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn all of Pillow's errors into ours: OSError, SyntaxError, struct.error and a dozen more occur."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = PIXELS
    warnings.filterwarnings("ignore", module=r"PIL\.")  # what it finds odd in a photo is no news to anyone
    try:
        yield
    except GatewayError:
        raise
    except (MemoryError, Image.DecompressionBombError) as error:
        raise TooLarge("the photo takes too much memory; shrink it first") from error
    except Exception as error:
        raise InvalidInput("the photo is broken or cut off: it cannot be resized") from error


def _drafted(image: "PillowImage", target: tuple[int, int], part: Box) -> float:
    """Return the factor by which a JPEG will be decoded smaller: 1, 2, 4 or 8; 1 for other formats."""
    width, height = image.size
    across = width * target[0] / (part[2] - part[0])
    down = height * target[1] / (part[3] - part[1])
    drafted = image.draft(None, (math.ceil(across * DRAFT_GAP), math.ceil(down * DRAFT_GAP)))
    return 1 if drafted is None else width / drafted[1][2]


def _encoded(image: "PillowImage", mimetype: str) -> tuple[bytes, str]:
    if image.mode == "CMYK":
        image = image.convert("RGB")
    profile = image.info.get("icc_profile")
    image.info.clear()  # Pillow writes some of it unasked, a JPEG's comment for one
    if not isinstance(profile, bytes) or len(profile) > ICC_BYTES:
        profile = None
    elif profile[16:20] != _ICC_SPACES[image.mode]:
        profile = None  # that of CMYK, for one, means nothing to RGB
    out = io.BytesIO()
    if mimetype == JPEG:
        image.save(out, "JPEG", quality=JPEG_QUALITY, icc_profile=profile)
        return out.getvalue(), JPEG
    image.save(out, "PNG", icc_profile=profile)
    return out.getvalue(), PNG
