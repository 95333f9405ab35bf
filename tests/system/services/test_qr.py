"""QR codes: the path on a page and the blocks in a terminal are the code that the library makes."""

import re

import segno

from gateway.app import login_by_phone
from gateway.services.qr import QUIET, as_path, for_terminal

LINK = "http://192.168.1.20:8080/ui/login#hg_" + "x" * 43
BLOCKS = {"█": (0, 0), "▀": (0, 1), "▄": (1, 0), " ": (1, 1)}
"""Light modules are drawn, because the ground of a terminal is dark."""


def test_both_drawings_are_the_code() -> None:
    wanted = [list(row) for row in segno.make_qr(LINK, error="l").matrix_iter(border=QUIET)]
    code = as_path(LINK)
    assert code.size == len(wanted)
    drawn = [[0] * code.size for _ in wanted]
    for left, top, length in re.findall(r"M(\d+) (\d+)h(\d+)v1H\1z", code.path):
        for place in range(int(left), int(left) + int(length)):
            drawn[int(top)][place] = 1
    assert drawn == wanted
    assert re.fullmatch(r"(M\d+ \d+h\d+v1H\d+z)+", code.path)
    lines = for_terminal(LINK).splitlines()
    assert len({len(line) for line in lines}) == 1
    rows = [[BLOCKS[sign][half] for sign in line] for line in lines for half in (0, 1)]
    assert rows[: len(wanted)] == wanted


def test_a_terminal_gets_a_code_only_if_a_phone_can_follow_it() -> None:
    words, code = login_by_phone("http://192.168.1.20:8080", "hg_key")
    assert code == for_terminal("http://192.168.1.20:8080/ui/login#hg_key")
    assert "hg_key" not in words + code
    for address in ("http://127.0.0.1:8080", "https://[::1]:8443", "http://localhost:8080"):
        assert login_by_phone(address, "hg_key") == []
    assert login_by_phone("", "hg_key") == [], "without a page"
