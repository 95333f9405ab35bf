"""Photos: what their header says, what is refused, and that a smaller copy shows the same and tells less."""

import io
import struct
import sys
import time
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image, ImageCms, ImageDraw, ImageOps
from PIL.PngImagePlugin import PngInfo

from gateway.errors import InvalidInput, NotInstalled, TooLarge
from gateway.formats import image as photos
from gateway.formats import pillow
from gateway.formats.image import Sizing, resized, target_size
from gateway.formats.image_header import PHOTO_BYTES, PIXELS, ImageFacts, inspect
from tests.cases import examples

HALF = Sizing(scale=50)
RED, GREEN, BLUE, WHITE = (220, 20, 20), (20, 200, 20), (20, 20, 220), (250, 250, 250)

sides = st.integers(1, 6000)
asked_sides = st.none() | st.integers(1, photos.SIDE_PIXELS)
sizings = st.builds(
    Sizing,
    asked_sides,
    asked_sides,
    st.floats(allow_nan=True) | st.integers(0, 100),
    st.booleans(),
    st.booleans(),
)
chunk_kinds = st.sampled_from(["iCCP", "tRNS", "PLTE", "zTXt", "iTXt", "eXIf", "acTL", "fcTL", "fdAT"])


def file_of(picture: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def opened(data: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(data))
    picture.load()
    return picture


def cornered(width: int = 120, height: int = 80, mode: str = "RGB") -> Image.Image:
    """Top left red, top right green, bottom left blue, bottom right white."""
    picture = Image.new("RGB", (width, height), WHITE)
    draw = ImageDraw.Draw(picture)
    across, down = width // 2, height // 2
    draw.rectangle((0, 0, across - 1, down - 1), RED)
    draw.rectangle((across, 0, width, down - 1), GREEN)
    draw.rectangle((0, down, across - 1, height), BLUE)
    return picture.convert(mode)


def corners(picture: Image.Image) -> list[str]:
    """The names of the colours nearest to the four corners, row by row."""
    names = {"red": RED, "green": GREEN, "blue": BLUE, "white": WHITE}
    rgb = picture.convert("RGB")
    right, bottom = rgb.width - 1, rgb.height - 1

    def name(x: int, y: int) -> str:
        found = rgb.getpixel((x, y))
        assert isinstance(found, tuple)
        return min(names, key=lambda n: sum(abs(a - b) for a, b in zip(names[n], found, strict=True)))

    return [name(0, 0), name(right, 0), name(0, bottom), name(right, bottom)]


UPRIGHT = ["red", "green", "blue", "white"]


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """A grey PNG of these chunks, whatever they are."""
    data = b"\x89PNG\r\n\x1a\n"
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    for kind, body in ((b"IHDR", header), *chunks, (b"IEND", b"")):
        data += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return data


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF"])
def test_the_header_says_what_it_is(kind: str) -> None:
    data = file_of(cornered(), kind)
    assert inspect(data) == ImageFacts(f"image/{kind.lower()}", 120, 80, 1)
    assert (
        inspect(file_of(cornered(), kind, **({"progressive": True} if kind == "JPEG" else {}))).width == 120
    )


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_orientation_ends_upright(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    exif[ExifTags.Base.Make] = "x"
    undo = {6: 8, 8: 6}.get(orientation, orientation)
    turned = Image.Exif()
    turned[ExifTags.Base.Orientation] = undo
    stored = opened(file_of(cornered(), "PNG", exif=turned))
    ImageOps.exif_transpose(stored, in_place=True)
    data = file_of(stored, kind, exif=exif)
    assert inspect(data) == ImageFacts(f"image/{kind.lower()}", 120, 80, orientation)
    for sizing, size in (
        (HALF, (60, 40)),
        (Sizing(width=30), (30, 20)),
        (Sizing(30, 60, crop=True), (30, 60)),
    ):
        picture = opened(resized(data, sizing)[0])
        assert picture.size == size
        assert corners(picture) == UPRIGHT
        assert not picture.getexif()


@pytest.mark.parametrize(
    ("exif", "orientation"),
    [
        (b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0", 6),
        (b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0", 6),
        (b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x09\0\0", 1),
        (b"MM\0*\xff\xff\xff\xff", 1),
        (b"MM\0*\0\0\0\x08\xff\xff\x01\x13", 1),
        (b"MM\0*", 1),
        (b"", 1),
        (b"nonsense", 1),
    ],
)
def test_broken_exif_means_as_stored(exif: bytes, orientation: int) -> None:
    data = file_of(cornered(), "JPEG", exif=b"Exif\0\0" + exif)
    assert inspect(data).orientation == orientation
    assert resized(data, HALF)[1] == "image/jpeg"


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_nothing_private_is_left(kind: str) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Make] = "SECRET camera"
    exif.get_ifd(ExifTags.IFD.GPSInfo)[ExifTags.GPS.GPSLatitude] = (52.0, 30.0, 0.0)
    exif.get_ifd(ExifTags.IFD.GPSInfo)[ExifTags.GPS.GPSMapDatum] = "SECRET place"
    text = PngInfo()
    text.add_text("Comment", "SECRET text")
    more: dict[str, Any] = {"pnginfo": text} if kind == "PNG" else {"comment": b"SECRET", "xmp": b"<SECRET/>"}
    data = file_of(cornered(), kind, exif=exif, dpi=(300, 300), **more)
    assert b"SECRET" in data
    small, _ = resized(data, HALF)
    assert b"SECRET" not in small
    assert b"Exif" not in small
    assert not opened(small).getexif()
    assert opened(small).info.keys() <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
    assert resized(data, Sizing()) == (data, f"image/{kind.lower()}")


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_the_colour_profile_stays(kind: str) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    small, _ = resized(file_of(cornered(), kind, icc_profile=profile), HALF)
    assert opened(small).info["icc_profile"] == profile


@pytest.mark.parametrize("profile", [b"x" * 200, b"\0" * 16 + b"CMYK" * 50, b"\0" * 16 + b"RGB " * 300_000])
def test_a_profile_of_something_else_goes(profile: bytes) -> None:
    small, _ = resized(file_of(cornered(), "JPEG", icc_profile=profile), HALF)
    assert "icc_profile" not in opened(small).info


def test_cmyk_becomes_rgb() -> None:
    data = file_of(cornered(mode="CMYK"), "JPEG", icc_profile=b"\0" * 16 + b"CMYK" * 50)
    assert opened(data).mode == "CMYK"
    small, mimetype = resized(data, HALF)
    assert (opened(small).mode, mimetype) == ("RGB", "image/jpeg")
    assert corners(opened(small)) == UPRIGHT
    assert "icc_profile" not in opened(small).info


def test_grey_stays_grey() -> None:
    for kind, mode in (("JPEG", "L"), ("PNG", "L"), ("PNG", "LA")):
        assert opened(resized(file_of(cornered(mode=mode), kind), HALF)[0]).mode == mode


def test_a_palette_becomes_colours_and_alpha() -> None:
    assert opened(resized(file_of(cornered(mode="P"), "PNG"), HALF)[0]).mode == "RGB"
    paletted = Image.new("P", (20, 20), 3)
    paletted.putpalette([7, 8, 9] * 3 + [200, 100, 50])
    for transparency, alpha in ((3, 0), (1, 255), (bytes([255, 0, 255, 128]), 128)):
        small = opened(resized(file_of(paletted, "PNG", transparency=transparency), HALF)[0])
        assert small.mode == "RGBA"
        assert small.getchannel("A").getpixel((5, 5)) == alpha
        near = pytest.approx((200, 100, 50) if alpha else (0, 0, 0), abs=1)
        assert small.convert("RGB").getpixel((5, 5)) == near
    assert opened(resized(file_of(cornered(mode="1"), "PNG"), HALF)[0]).mode == "L"


@pytest.mark.parametrize(
    ("mode", "colour", "after"), [("RGB", WHITE, "RGBA"), ("L", 250, "LA"), ("1", 1, "LA")]
)
def test_a_transparent_colour_becomes_alpha(mode: str, colour: Any, after: str) -> None:
    data = file_of(Image.new(mode, (8, 8), colour), "PNG", transparency=colour)
    small = opened(resized(data, HALF)[0])
    assert small.mode == after
    assert small.getchannel("A").getextrema() == (0, 0)


def test_colours_do_not_bleed_out_of_clear_pixels() -> None:
    picture = Image.new("RGBA", (40, 40), (255, 0, 0, 0))
    picture.paste((0, 0, 255, 255), (0, 0, 21, 40))
    small = opened(resized(file_of(picture, "PNG"), HALF)[0])
    assert {pixel[0] for _, pixel in small.getcolors() or [] if pixel[3]} == {0}  # type: ignore[index]


def test_sixteen_bit_grey_keeps_its_bits() -> None:
    small = opened(resized(file_of(Image.new("I;16", (40, 40), 40_001), "PNG"), HALF)[0])
    assert (small.mode, small.getpixel((5, 5))) == ("I;16", 40_001)


def test_sixteen_bit_colour_becomes_eight() -> None:
    rows = (b"\0" + struct.pack(">HHH", 0xFFFF, 0x8080, 0) * 4) * 4
    data = b"\x89PNG\r\n\x1a\n"
    header = struct.pack(">IIBBBBB", 4, 4, 16, 2, 0, 0, 0)
    for kind, body in ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        data += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    small = opened(resized(data, HALF)[0])
    assert (small.mode, small.getpixel((0, 0))) == ("RGB", (255, 128, 0))


def test_an_animation_becomes_its_first_frame() -> None:
    frames = [Image.new("RGB", (30, 20), colour) for colour in (BLUE, RED)]
    for kind in ("GIF", "PNG"):
        data = file_of(frames[0], kind, save_all=True, append_images=frames[1:], duration=100)
        small, mimetype = resized(data, HALF)
        assert mimetype == "image/png"
        assert (opened(small).size, corners(opened(small))[0]) == ((15, 10), "blue")
        assert not getattr(Image.open(io.BytesIO(small)), "is_animated", False)


def test_a_transparent_gif_stays_so() -> None:
    data = file_of(Image.new("P", (20, 20), 3), "GIF", transparency=3)
    small = opened(resized(data, HALF)[0])
    assert (small.mode, small.getchannel("A").getextrema()) == ("RGBA", (0, 0))


def test_other_formats_are_not_opened() -> None:
    for kind in ("BMP", "TIFF", "WEBP", "PPM", "ICO", "PDF"):
        with pytest.raises(InvalidInput, match="neither a JPEG nor a PNG nor a GIF"):
            resized(file_of(cornered(), kind), HALF)


def test_a_bomb_is_refused_unopened() -> None:
    bombs = {
        "PNG": png(12_000, 12_000, (b"IDAT", zlib.compress(bytes(12_001 * 1200), 9))),
        "GIF": b"GIF89a" + struct.pack("<HH", 12_000, 12_000) + b"\0\0\0,",
        "JPEG": file_of(cornered(), "JPEG").replace(
            struct.pack(">HH", 80, 120), struct.pack(">HH", 12_000, 12_000), 1
        ),
    }
    for bomb in bombs.values():
        tracemalloc.start()
        began = time.process_time()
        for look in (inspect, lambda data: resized(data, HALF)):
            with pytest.raises(
                TooLarge, match=r"12000 x 12000 pixels, 25 million are taken; shrink it first"
            ):
                look(bomb)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 200_000
        assert time.process_time() - began < 0.5


def test_a_bomb_in_the_frame_of_a_gif_is_refused() -> None:
    """The screen is small; its first frame is not, and asks for a background of that size."""
    frame = b"!\xf9\x04\x08\0\0\0\0," + struct.pack("<HHHH", 0, 0, 12_000, 12_000) + b"\0\x02\x02D\x01\0;"
    with pytest.raises(TooLarge):
        resized(b"GIF89a" + struct.pack("<HH", 10, 10) + b"\0\0\0" + frame, HALF)
    frame = b"," + struct.pack("<HHHH", 0, 0, 100, 100) + b"\0\x02\x02D\x01\0;"
    with pytest.raises(InvalidInput, match="two different sizes"):
        resized(b"GIF89a" + struct.pack("<HH", 10, 10) + b"\0\0\0" + frame, HALF)


def test_a_file_too_long_is_refused() -> None:
    with pytest.raises(TooLarge, match="larger than 12 MiB; shrink it first"):
        inspect(file_of(cornered(), "JPEG") + bytes(PHOTO_BYTES))


def test_too_much_memory_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Image.Image, "resize", exhausted)
    with pytest.raises(TooLarge):
        resized(file_of(cornered(), "JPEG"), HALF)


def test_headers_without_end_are_refused_soon() -> None:
    endless = {
        "fill": b"\xff\xd8" + b"\xff" * PHOTO_BYTES,
        "segments": b"\xff\xd8" + b"\xff\xe1\0\x09Exif\0\0x" * 1_000_000,
        "loop": b"\xff\xd8" + b"\xff\xe1\0\0" * 1_000_000,
        "chunks": png(5, 5, *[(b"tEXt", b"")] * 2000),
    }
    for name, data in endless.items():
        began = time.process_time()
        with pytest.raises(InvalidInput, match="header makes no sense"):
            inspect(data[:PHOTO_BYTES])
        assert time.process_time() - began < 0.5, name


def test_scans_are_counted_wherever_they_hide() -> None:
    whole = file_of(cornered(), "JPEG", progressive=True)
    first = whole.rindex(b"\xff\xda")
    scan = whole[first:-2]
    hiding = (b"", b"\xff", b"\xff\xfe\0\x04\xff\xd9", b"\xff\x01", b"\xff\xd0", b"\0\xff\0")
    for between in hiding:
        few = whole[:first] + (between + scan) * 5 + b"\xff\xd9" + scan * 5000
        assert inspect(few).width == 120
        many = whole[:first] + (between + scan) * 5000 + b"\xff\xd9"
        began = time.process_time()
        with pytest.raises(InvalidInput, match="too many steps"):
            resized(many, HALF)
        assert time.process_time() - began < 0.5
    with pytest.raises(InvalidInput, match="makes no sense"):
        inspect(b"\xff\xd8\xff\x01" + whole[2:])


def test_no_pixels() -> None:
    for data in (png(0, 5, (b"IDAT", b"")), b"GIF89a\0\0\x05\0"):
        with pytest.raises(InvalidInput, match="has no pixels"):
            inspect(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF"])
def test_a_photo_cut_off_anywhere_is_invalid(kind: str) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Make] = "x"
    data = file_of(Image.effect_noise((90, 70), 80).convert("RGB"), kind, exif=exif)
    for length in [*range(0, 1200, 7), *range(1200, len(data) - 16, len(data) // 60)]:
        with pytest.raises(InvalidInput, match="photo"):
            resized(data[:length], HALF)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF"])
def test_bits_that_flip_make_another_picture_or_a_refusal(kind: str) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    whole = file_of(cornered(60, 40, "P" if kind == "PNG" else "RGB"), kind, exif=exif)

    @given(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), min_size=1, max_size=6))
    @settings(max_examples=examples(1.5))
    def flipped(changes: list[tuple[int, int]]) -> None:
        data = bytearray(whole)
        for at, value in changes:
            data[at] = value
        survives(bytes(data))

    flipped()


@given(st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a"]), st.binary(max_size=300))
def test_any_bytes(magic: bytes, data: bytes) -> None:
    survives(magic + data)


@given(st.lists(st.tuples(chunk_kinds, st.binary())))
def test_any_chunks(chunks: list[tuple[str, bytes]]) -> None:
    rows = zlib.compress(bytes(6 * 5))
    survives(png(5, 5, *((kind.encode(), body) for kind, body in chunks), (b"IDAT", rows)))


@pytest.mark.parametrize("key", ["transparency", "icc_profile", "exif", "interlace", "bbox", "default_image"])
def test_text_that_pillow_takes_for_something_else(key: str) -> None:
    rows = zlib.compress(bytes(6 * 5))
    survives(png(5, 5, (b"tEXt", key.encode() + b"\0surprise"), (b"IDAT", rows)))


def survives(data: bytes) -> None:
    """Any end is fine but an exception that is not ours."""
    try:
        facts = inspect(data)
        small, mimetype = resized(data, Sizing(width=10))
    except (InvalidInput, TooLarge):
        return
    assert inspect(small).mimetype == mimetype
    assert inspect(small).width == 10
    assert facts.width >= 1


@pytest.mark.parametrize(
    ("sizing", "size", "box"),
    [
        (Sizing(), (1600, 1200), None),
        (Sizing(width=400), (400, 300), None),
        (Sizing(height=400), (533, 400), None),
        (Sizing(400, 400), (400, 400), None),
        (Sizing(400, 400, bestfit=True), (400, 300), None),
        (Sizing(3200, 4096, bestfit=True), (3200, 2400), None),
        (Sizing(400, 400, crop=True), (400, 400), (200, 0, 1400, 1200)),
        (Sizing(400, 400, crop=True, bestfit=True), (400, 400), (200, 0, 1400, 1200)),
        (Sizing(400, 100, crop=True), (400, 100), (0, 400, 1600, 800)),
        (Sizing(scale=25), (400, 300), None),
        (Sizing(scale=0.01), (1, 1), None),
        (Sizing(400, 400, 50, bestfit=True), (200, 150), None),
        (Sizing(400, 400, 50, crop=True), (200, 200), (200, 0, 1400, 1200)),
    ],
)
def test_sizes(sizing: Sizing, size: tuple[int, int], box: photos.Box | None) -> None:
    assert target_size(sizing, 1600, 1200) == (*size, box)
    assert sizing.unchanged == (sizing == Sizing())


@pytest.mark.parametrize(
    ("sizing", "named"),
    [
        (Sizing(width=0), "width must be 1 to 4096"),
        (Sizing(width=-5), "width"),
        (Sizing(height=4097), "height must be 1 to 4096"),
        (Sizing(scale=-1), "scale must be 0 to 100"),
        (Sizing(scale=100.5), "scale"),
        (Sizing(scale=float("nan")), "scale"),
        (Sizing(bestfit=True), "bestfit and crop need both width and height"),
        (Sizing(width=5, crop=True), "bestfit and crop"),
        (Sizing(height=5, bestfit=True), "bestfit and crop"),
    ],
)
def test_sizes_that_make_no_sense(sizing: Sizing, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        resized(file_of(cornered(), "JPEG"), sizing)


@pytest.mark.parametrize(
    ("sizing", "size"),
    [
        (Sizing(width=4096), (10, 1000)),
        (Sizing(4096, 4096), (2, 12_000_000)),
        (Sizing(4096, 4096), (12_000_000, 2)),
    ],
)
def test_results_are_bounded(sizing: Sizing, size: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match="too many"):
        target_size(sizing, *size)


@given(sizings, sides, sides)
def test_sizes_hold_what_they_promise(sizing: Sizing, width: int, height: int) -> None:
    try:
        w, h, box = target_size(sizing, width, height)
    except InvalidInput:
        return
    assert w >= 1
    assert h >= 1
    assert w * h <= PIXELS
    both = sizing.width is not None and sizing.height is not None
    if box is not None:
        left, top, right, bottom = box
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        assert left + right == pytest.approx(width)
        assert top + bottom == pytest.approx(height)
        assert left == pytest.approx(0, abs=1e-6) or top == pytest.approx(0, abs=1e-6)
    if sizing.scale in (0, 100):
        if both and (sizing.crop or not sizing.bestfit):
            assert (w, h) == (sizing.width, sizing.height)
        elif both and sizing.width and sizing.height:
            assert w <= sizing.width
            assert h <= sizing.height
            assert w == sizing.width or h == sizing.height
    if not both or (sizing.bestfit and not sizing.crop):
        assert abs(w * height - h * width) <= max(width, height) + 1 or 1 in {w, h}


def test_a_big_jpeg_is_not_decoded_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[tuple[int, int]] = []
    resize = Image.Image.resize

    def recorded(picture: Image.Image, *args: Any) -> Image.Image:
        decoded.append(picture.size)
        return resize(picture, *args)

    monkeypatch.setattr(Image.Image, "resize", recorded)
    data = file_of(cornered(4001, 3001), "JPEG")
    for sizing, size in (
        (Sizing(width=240), (501, 376)),
        (Sizing(300, 300, crop=True), (1001, 751)),
        (Sizing(scale=80), (4001, 3001)),
    ):
        decoded.clear()
        picture = opened(resized(data, sizing)[0])
        assert decoded == [size]
        assert corners(picture) == UPRIGHT


def test_without_pillow_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = file_of(cornered(), "JPEG")
    monkeypatch.setitem(sys.modules, "PIL", None)  # nobody can import it
    assert not pillow.is_installed()
    assert resized(data, Sizing()) == (data, "image/jpeg")
    with pytest.raises(NotInstalled, match=r"^photos need `pip install 'hydrometer-gateway\[photos\]'`$"):
        resized(data, HALF)


def test_a_pillow_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a library of the system is missing."""
    data, reason = file_of(cornered(), "JPEG"), "libopenjp2.so.7: cannot open shared object file"

    class Broken:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "PIL.Image":
                raise ImportError(reason)

    for name in [name for name in sys.modules if name.partition(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(NotInstalled, match=f"which does not start here: {reason}$"):
        resized(data, HALF)
