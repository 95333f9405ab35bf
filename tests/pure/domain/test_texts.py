"""Rules of text that people see."""

from gateway.domain.texts import LABEL_CHARACTERS, label_of
from tests.cases import each

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f466"


@each(
    "sent, label",
    [
        ("Fermenter 1", "Fermenter 1"),
        ("Gärbehälter", "Gärbehälter"),
        ("Ga\u0308rung", "G\u00e4rung"),
        ("red\x1b[2J\r\n\0", "red[2J"),
        ("\u202egpj.elif", "gpj.elif"),
        ("a\u200bb\u2060c\ufeffd\u00ade", "abcde"),
        ("line\u2028break\u2029", "linebreak"),
        ("half \ud800", "half "),
        (FAMILY, FAMILY),
        ("a\u200db\u200d", "ab"),
        (f"\u200d{FAMILY}\u200d", FAMILY),
        ("x" * 10_000, "x" * LABEL_CHARACTERS),
        ("ü" * 10_000, "ü" * LABEL_CHARACTERS),
    ],
)
def test_a_label_is_text_that_can_be_seen(sent: str, label: str) -> None:
    assert label_of(sent) == label
    assert label_of(label) == label, "a label stays as it is"
