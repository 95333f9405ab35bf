"""Scripts and styles: their sizes, and a syntax that old tablets on the wall understand."""

import re
from pathlib import Path

import gateway.ui
from gateway.ui import static

STATIC = Path(gateway.ui.__file__).parent / "static"

LARGEST = {"app.js": 3_500, "login.js": 800}
"""Bytes that a script of every page may have, plain."""

ALL_SCRIPTS, STYLES = 12_000, 14_000

TOO_NEW = r"\?\.[a-z(\[]|\?\?|\|\|=|&&=|\.replaceAll\(|\.at\(|\.flat|navigator\.clipboard"
"""What Safari 12 or Chrome 70 does not know, or what plain http does not have."""


def test_scripts_are_small_and_old_browsers_read_them() -> None:
    scripts = {path.name: path.read_text("utf-8") for path in STATIC.glob("*.js")}
    sizes = {name: len(text.encode()) for name, text in scripts.items()}
    assert {name: sizes[name] for name in LARGEST if sizes[name] > LARGEST[name]} == {}
    assert sum(sizes.values()) <= ALL_SCRIPTS
    for name, text in scripts.items():
        assert re.findall(TOO_NEW, text) == [], name


def test_styles_are_small_and_old_browsers_read_them() -> None:
    styles = static.files()["page.css"][0].decode()
    assert len(styles.encode()) <= STYLES
    for new in ("@layer", ":has(", "light-dark(", "&", "@container"):
        assert new not in styles
    assert re.findall(r"[^-]gap:", styles.replace("grid-gap:", "").replace("column-gap:", "")) == []
    assert re.findall(r"#[a-z-]+[ {.:]", re.sub(r"#[0-9a-f]{3,6}\b", "", styles)) == [], "no ids"
