"""Small photos for the sample data, drawn by the program, so that they belong to nobody else.

Everything is drawn at `OVERSIZE` times its size and made smaller at the end, which smooths every edge.
"""

import io
import math
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

WIDTH, HEIGHT = 1200, 900
"""Pixels of the finished photo. All places and lengths of this module are in these pixels, from the top
left."""

OVERSIZE = 2

JPEG_QUALITY = 85

Colour = tuple[int, int, int]
Fill = Colour | tuple[Colour, Colour]
Point = tuple[float, float]
Profile = Sequence[Point]
"""(half width, y) of a round body from top to bottom."""

_SRM_COLOURS: tuple[tuple[float, Colour], ...] = (
    # Daylight (D65) after 5 cm of beer, by the absorption that A. J. deLange averaged over many beers, as
    # sRGB; worked out for these SRM, and between them straight lines will do. From 24 on by eye: the formula
    # leaves a stout wine red.
    (1, (249, 232, 182)),
    (2, (244, 210, 128)),
    (4, (231, 171, 48)),
    (6, (216, 139, 0)),
    (8, (200, 113, 0)),
    (10, (185, 92, 0)),
    (13, (164, 67, 0)),
    (17, (140, 42, 0)),
    (20, (124, 28, 0)),
    (24, (98, 15, 2)),
    (30, (62, 13, 5)),
    (40, (30, 9, 5)),
)
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)
_CREAM, _YEAST = (250, 240, 218), (205, 176, 128)
_BRACT = tuple(
    (side * math.sin(math.pi * (0.15 + 0.85 * t**0.8)) ** 0.7, t)
    for side, steps in ((-1, range(9)), (1, range(7, -1, -1)))
    for t in (step / 8 for step in steps)
)
"""Outline of a hop cone's scale, from its base to its point and back: -1 to 1 across, 0 to 1 down."""

_LEAF, _TIP, _DEEP = (104, 142, 44), (186, 206, 96), (22, 40, 16)


def draw_beer(seed: int, colour_srm: float, kind: Literal["glass", "fermenter", "hops"]) -> bytes:
    """Draw a JPEG of `WIDTH` x `HEIGHT`. Hops are always green.

    The same arguments and Pillow give the same bytes.
    """
    scene = _Scene(random.Random(seed))  # noqa: S311 - where bubbles rise is no secret
    {"glass": _glass, "fermenter": _fermenter, "hops": _hops}[kind](scene, srm_rgb(colour_srm))
    return scene.jpeg()


def srm_rgb(srm: float) -> Colour:
    """Return red, green and blue (0 to 255) of a beer in a glass. Clamp the colour to 1 to 40 SRM."""
    for (low, light), (high, dark) in pairwise(_SRM_COLOURS):
        if srm <= high:
            return _mixed(light, dark, max(srm - low, 0) / (high - low))
    return _SRM_COLOURS[-1][1]


def _mixed(one: Colour, other: Colour, part: float) -> Colour:
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _oval(x: float, y: float, across: float, down: float, points: int = 48) -> list[Point]:
    turns = [math.tau * i / points for i in range(points)]
    return [(x + across * math.cos(turn), y + down * math.sin(turn)) for turn in turns]


class _Scene:
    """A canvas and the dice that go with it."""

    def __init__(self, dice: random.Random) -> None:
        from PIL import Image

        self.dice = dice
        self.canvas: Image.Image = Image.new("RGB", (WIDTH * OVERSIZE, HEIGHT * OVERSIZE))

    def shape(self, points: Sequence[Point], fill: Fill, alpha: float = 1, blur: float = 0) -> None:
        """Draw a polygon in one colour, or in two from top to bottom, with an edge `blur` wide."""
        from PIL import Image, ImageDraw, ImageFilter

        margin = math.ceil(3 * blur) + 1
        left, top = (math.floor(min(axis)) - margin for axis in zip(*points, strict=True))
        right, bottom = (math.ceil(max(axis)) + margin for axis in zip(*points, strict=True))
        size = ((right - left) * OVERSIZE, (bottom - top) * OVERSIZE)
        mask = Image.new("L", size)
        at = [((x - left) * OVERSIZE, (y - top) * OVERSIZE) for x, y in points]
        ImageDraw.Draw(mask).polygon(at, round(255 * alpha))
        if blur:
            mask = mask.filter(ImageFilter.GaussianBlur(blur * OVERSIZE))
        paint = Image.new("RGB", size, fill[0] if isinstance(fill[0], tuple) else fill)
        if isinstance(fill[1], tuple):
            paint.paste(fill[1], None, Image.linear_gradient("L").resize(size))
        self.canvas.paste(paint, (left * OVERSIZE, top * OVERSIZE), mask)

    def rectangle(
        self, left: float, top: float, right: float, bottom: float, fill: Fill, **look: float
    ) -> None:
        self.shape([(left, top), (right, top), (right, bottom), (left, bottom)], fill, **look)

    def body(self, x: float, profile: Profile, shade: Callable[[float], Fill], alpha: float = 1) -> None:
        """Draw a round body about a vertical axis; `shade` gives the colour from left (-1) to right (1)."""
        from PIL import Image

        behind, slices = self.canvas.copy(), 96
        for i in range(slices):
            one, other = (2 * i / slices - 1, min(2 * (i + 1.3) / slices - 1, 1))
            outline = [(x + one * half, y) for half, y in profile]
            outline += [(x + other * half, y) for half, y in reversed(profile)]
            self.shape(outline, shade((one + other) / 2))
        self.canvas = Image.blend(behind, self.canvas, alpha)

    def soften(self, blur: float) -> None:
        from PIL import ImageFilter

        self.canvas = self.canvas.filter(ImageFilter.GaussianBlur(blur * OVERSIZE))

    def lights(self, count: int, colours: Sequence[Colour], bottom: float) -> None:
        """Draw lamps and windows far out of focus."""
        for _ in range(count):
            x, y, size = self.dice.uniform(0, WIDTH), self.dice.uniform(0, bottom), self.dice.uniform(20, 75)
            spot = _oval(x, y, size, size)
            self.shape(spot, self.dice.choice(colours), alpha=self.dice.uniform(0.08, 0.4), blur=size / 9)

    def table(self, top: float, wood: Colour) -> None:
        self.rectangle(0, top, WIDTH, HEIGHT, (_mixed(wood, _BLACK, 0.45), wood), blur=2)
        for _ in range(170):
            x, y = self.dice.uniform(-100, WIDTH), top + (HEIGHT - top) * self.dice.random() ** 0.7
            grain = _oval(x, y, self.dice.uniform(80, 420), self.dice.uniform(0.5, 2.2))
            self.shape(grain, _mixed(wood, _BLACK, self.dice.uniform(0.3, 0.8)), alpha=0.35, blur=0.7)

    def bubbles(self, count: int, x: float, profile: Profile, colour: Colour) -> None:
        """Draw small bubbles all over the body, most of them high up."""
        (wide, top), (narrow, bottom) = profile[0], profile[-1]
        for _ in range(count):
            height = self.dice.random() ** 1.5
            half = (wide + (narrow - wide) * height) * 0.93
            place = (x + half * math.sin(self.dice.uniform(-1.57, 1.57)), top + (bottom - top) * height)
            size = self.dice.uniform(0.8, 3.2)
            self.shape(_oval(*place, size, size, 12), colour, alpha=self.dice.uniform(0.25, 0.8))

    def foam(self, x: float, half: float, top: float, bottom: float, colours: tuple[Colour, Colour]) -> None:
        """Draw froth between two heights, lighter above, uneven along both edges."""
        light, dark = colours
        straight = [(half, top), (half, bottom)]
        self.body(
            x, straight, lambda u: (_mixed(light, dark, u * u / 2), _mixed(light, dark, 0.3 + u * u / 2))
        )
        for _ in range(420):
            u, height = self.dice.uniform(-1, 1), self.dice.random()
            size = self.dice.uniform(3, 13) * (1.3 - abs(u) / 2)
            y = top + (bottom - top) * height
            tint = _mixed(light, dark, min(1, height * 0.5 + u * u / 3 + self.dice.uniform(-0.1, 0.3)) * 0.9)
            froth = _oval(x + u * (half - size), y, size, size * 0.8, 24)
            self.shape(froth, (tint, _mixed(tint, dark, 0.25)), alpha=0.8, blur=0.6)

    def jpeg(self) -> bytes:
        """Return the finished photo, with a little noise as from a sensor."""
        from PIL import Image

        small = self.canvas.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
        noise = Image.frombytes("L", small.size, self.dice.randbytes(WIDTH * HEIGHT)).convert("RGB")
        out = io.BytesIO()
        Image.blend(small, noise, 0.03).save(out, "JPEG", quality=JPEG_QUALITY)
        return out.getvalue()


def _lit(colour: Colour) -> Callable[[float], Fill]:
    """Return the shading of clear liquid: dark rims, a glow right of the middle, paler towards the bottom."""

    def shade(u: float) -> Fill:
        base = _mixed(colour, _BLACK, 0.15 + 0.5 * abs(u) ** 3)
        glow = 0.3 * math.exp(-(((u - 0.3) / 0.35) ** 2))
        return _mixed(base, _WHITE, glow / 3), _mixed(base, _mixed(colour, (255, 214, 140), 0.5), 0.1 + glow)

    return shade


def _glass(scene: _Scene, beer: Colour) -> None:
    dice = scene.dice
    scene.rectangle(0, 0, WIDTH, HEIGHT, ((38, 27, 24), (92, 60, 38)))
    scene.lights(26, [(255, 196, 110), (255, 160, 80), (255, 226, 170), (190, 90, 60)], 640)
    scene.table(690, (126, 80, 46))
    x = WIDTH / 2 + dice.uniform(-120, 120)
    fill, foam = dice.uniform(225, 262), dice.uniform(55, 100)
    scene.shape(_oval(x + 90, 806, 250, 34), _BLACK, alpha=0.6, blur=22)
    scene.shape(_oval(x + 150, 806, 130, 18), _mixed(beer, (255, 220, 150), 0.35), alpha=0.55, blur=16)
    outer = [(176, 130), (181, 260), (170, 420), (146, 620), (132, 760), (134, 796), (122, 808)]
    scene.body(x, outer, lambda u: _mixed((120, 105, 95), _WHITE, 0.5 * u**6), alpha=0.35)
    inner = [(172, fill), (166, 420), (141, 620), (127, 750), (112, 762)]
    scene.body(x, inner, _lit(beer))
    scene.bubbles(240, x, [(172, fill + foam), (127, 750)], _mixed(beer, _WHITE, 0.6))
    scene.foam(x, 173, fill - foam * 0.45, fill + foam * 0.55, (_CREAM, _mixed(_CREAM, beer, 0.45)))
    scene.shape(_oval(x, 778, 116, 16), ((235, 220, 200), beer), alpha=0.45, blur=4)
    for lean, wide, alpha in ((-0.83, 9, 0.5), (-0.68, 4, 0.3), (0.87, 5, 0.35)):
        streak = [(x + lean * half + side * wide, y) for side in (-1, 1) for half, y in outer[1:5][::-side]]
        scene.shape(streak, _WHITE, alpha=alpha, blur=2.5)
    for tall, alpha in ((9, 0.35), (7.5, 0.4)):
        scene.shape(_oval(x, 130, 176, tall), (215, 205, 195), alpha=alpha, blur=0.8)


def _fermenter(scene: _Scene, beer: Colour) -> None:
    dice = scene.dice
    scene.rectangle(0, 0, WIDTH, HEIGHT, (70, 64, 60))
    for row in range(12):
        for column in range(-1, 9):
            left, top = column * 160 + row % 2 * 80, row * 62
            brick = _mixed((150, 92, 70), (104, 66, 56), dice.random())
            scene.rectangle(left + 5, top + 5, left + 155, top + 57, (brick, _mixed(brick, _BLACK, 0.15)))
    scene.rectangle(0, 0, WIDTH, HEIGHT, ((255, 220, 170), _BLACK), alpha=0.28)
    scene.soften(7)
    scene.table(730, (150, 112, 74))
    x, level = WIDTH / 2 + dice.uniform(-150, 150), dice.uniform(450, 490)
    murky = _mixed(beer, _YEAST, 0.3)
    scene.shape(_oval(x + 60, 836, 330, 30), _BLACK, alpha=0.6, blur=20)
    shoulder = [(46, 186), (46, 250), (70, 278), (150, 318), (212, 362), (238, 420)]
    flanks = [(241, 470), (241, 770), (236, 800), (222, 824), (204, 838)]
    scene.body(x, [*shoulder, *flanks], lambda u: _mixed((150, 160, 158), _WHITE, 0.6 * u**8), alpha=0.32)
    scene.body(x, [(232, level), (233, 770), (228, 797), (215, 818), (198, 830)], _lit(murky))
    scene.shape(_oval(x, 822, 190, 16), _YEAST, alpha=0.8, blur=5)
    scene.bubbles(120, x, [(230, level), (230, 780)], _mixed(beer, _WHITE, 0.55))
    foam = dice.uniform(30, 56)
    scene.foam(x, 228, level - foam, level + 12, (_mixed(_CREAM, _YEAST, 0.4), _mixed(_YEAST, beer, 0.35)))
    for _ in range(40):
        spot = _oval(x + dice.uniform(-200, 200), level - dice.uniform(0, foam), dice.uniform(3, 16), 4)
        scene.shape(spot, (120, 84, 44), alpha=0.45, blur=2)
    # The airlock on top: a stopper, a glass with water, and a red cap.
    scene.shape([(x - 40, 160), (x + 40, 160), (x + 33, 206), (x - 33, 206)], ((196, 128, 78), (130, 78, 44)))
    clear = (225, 232, 235)
    scene.rectangle(x - 6, 60, x + 6, 165, clear, alpha=0.7)
    scene.body(
        x, [(30, 40), (34, 60), (34, 118), (22, 134)], lambda u: _mixed(clear, _BLACK, 0.4 * u * u), 0.6
    )
    scene.body(
        x, [(33, 88), (33, 118), (22, 132)], lambda u: _mixed((120, 170, 200), _BLACK, 0.4 * u * u), 0.7
    )
    scene.body(x, [(36, 30), (36, 42)], lambda u: _mixed((200, 60, 50), _BLACK, 0.5 * u * u))
    for side, alpha in ((-0.8, 0.5), (-0.66, 0.2), (0.86, 0.3)):
        scene.rectangle(x + side * 238 - 7, 500, x + side * 238 + 7, 760, _WHITE, alpha=alpha, blur=4)


def _hops(scene: _Scene, _beer: Colour) -> None:
    dice = scene.dice
    scene.rectangle(0, 0, WIDTH, HEIGHT, ((92, 122, 62), _DEEP))
    scene.lights(40, [(170, 200, 90), (90, 130, 60), (226, 232, 170), (40, 70, 30)], HEIGHT)
    for _ in range(9):
        _cone(scene, dice.uniform(0, WIDTH), dice.uniform(-60, 620), dice.uniform(0.5, 0.8))
    scene.soften(10)
    places = [(200, 90), (950, 60), (620, 40), (390, 330), (830, 360), (120, 480), (1080, 470), (610, 480)]
    for x, y in places:
        _cone(scene, x + dice.uniform(-50, 50), y + dice.uniform(-40, 40), dice.uniform(0.85, 1.15))


def _cone(scene: _Scene, x: float, y: float, size: float) -> None:
    """Draw a hop cone that hangs from (x, y), 300 x 190 at size 1."""
    dice = scene.dice
    lean, hue = dice.uniform(-0.4, 0.4), dice.uniform(0, 0.5)

    def placed(points: Sequence[Point]) -> list[Point]:
        sine, cosine = math.sin(lean), math.cos(lean)
        return [(x + size * (a * cosine - b * sine), y + size * (a * sine + b * cosine)) for a, b in points]

    scene.shape(placed(_oval(18, 165, 95, 150)), _DEEP, alpha=0.5, blur=14)
    rows, stem = 10, [(-3.0, -70.0), (3.0, -70.0), (5.0, 22.0), (-5.0, 22.0)]
    for row in reversed(range(rows)):
        down = row / (rows - 1)
        half = 94 * math.sin(math.pi * (0.2 + 0.77 * down)) ** 0.9
        for u in sorted((i / 2.5 - 1 + row % 2 / 5 for i in range(6)), key=lambda u: -abs(u)):
            middle, long, wide = u * half * 0.74, 88 - 28 * down, 36 - 14 * down
            tint = _mixed(_LEAF, _TIP, min(1, hue + dice.uniform(0, 0.35)))
            base = _mixed(tint, _DEEP, 0.5 + 0.2 * abs(u))
            bract = [(middle + a * wide + b * u * 14, b * long + 10 + down * 222) for a, b in _BRACT]
            scene.shape(placed([(a * 1.03, b + 4) for a, b in bract]), _DEEP, alpha=0.35, blur=2)
            scene.shape(placed(bract), (base, _mixed(tint, _DEEP, 0.25 * abs(u))))
    scene.shape(placed(stem), ((110, 140, 60), _LEAF))
