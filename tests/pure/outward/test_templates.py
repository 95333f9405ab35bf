import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigError
from gateway.outward.templates import FORM, JSON, TEXT, check_template, fill

NAMES = ("text", "sg", "brew")


def test_places_inside_and_outside_of_quotes() -> None:
    template = '{"a": "beer {{text}} \\"{{sg}}\\"", "sg": {{ sg }}, "b": {{brew}}, "t": {{text}}}'
    assert check_template(template, NAMES, JSON) == template
    body = fill(template, {"text": 'a "b"\n', "sg": 1.012}, JSON)
    assert json.loads(body) == {"a": 'beer a "b"\n "1.012"', "sg": 1.012, "b": None, "t": 'a "b"\n'}


@given(st.text(), st.one_of(st.none(), st.floats(), st.integers(), st.text()))
def test_no_value_leaves_its_place_in_json(text: str, other: object) -> None:
    body = fill(
        '{"a": "{{text}}", "b": {{sg}}}',
        {"text": text.encode("utf-8", "replace").decode(), "sg": other},
        JSON,
    )
    document = json.loads(body)
    assert list(document) == ["a", "b"]
    assert document["a"] == text.encode("utf-8", "replace").decode()


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_no_value_leaves_its_place_in_a_form_or_a_line(text: str) -> None:
    body = fill("a={{text}}&b=1", {"text": text}, FORM)
    assert body.count(b"&") == 1
    assert body.count(b"=") == 2
    assert len(fill("said: {{text}}", {"text": text}, TEXT).decode().splitlines()) == 1


@pytest.mark.parametrize(
    ("template", "content_type", "words"),
    [
        ('{"a": {{txet}}}', JSON, "did you mean 'text'"),
        ('{"a": {{text}}', JSON, "not JSON"),
        ('{"a": "{{text}"}', JSON, "without a name"),
        ("{{ 1 + 1 }}", TEXT, "without a name"),
        ("a={{text}}&b=ä", FORM, "accents"),
        ("x", "text/html", "is of the type"),
        ("x" * 20_000, TEXT, "characters"),
    ],
)
def test_a_template_that_is_none(template: str, content_type: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_template(template, NAMES, content_type)


def test_a_value_is_no_template() -> None:
    assert fill("{{text}}", {"text": "{{sg}}", "sg": 1}, TEXT) == b"{{sg}}"
