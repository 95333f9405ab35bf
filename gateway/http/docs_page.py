"""The API's description as one HTML page. It has no script and fetches nothing, so it works offline."""

import json
from html import escape
from typing import Any

Json = dict[str, Any]

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;
background:#fdfcf9}
h2{border-bottom:2px solid #c98a1b;margin-top:3rem} section{margin:1.5rem 0 2rem}
h3{font:600 1rem ui-monospace,monospace;background:#f3ecdd;padding:.4rem .6rem;border-radius:.3rem}
h3 b{color:#8a5200} table{border-collapse:collapse;width:100%} td,th{text-align:left;vertical-align:top;
padding:.2rem .6rem .2rem 0;border-bottom:1px solid #e8e0cf} code{font-family:ui-monospace,monospace}
small{color:#666}
@media(prefers-color-scheme:dark){body{background:#1b1a17;color:#e8e4da} h3{background:#2c281f}
h3 b{color:#e5ab45} td,th{border-color:#3a352b} small{color:#aaa} a{color:#e5ab45}}
"""


def page(document: Json) -> str:
    """Return the page of an OpenAPI document."""
    info = document["info"]
    groups: dict[str, list[str]] = {tag["name"]: [] for tag in document["tags"]}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            groups[operation["tags"][0]].append(_operation(method, path, operation))
    links = " · ".join(
        f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name, ops in groups.items() if ops
    )
    sections = "".join(
        f'<h2 id="{_anchor(name)}">{escape(name)}</h2>{"".join(ops)}' for name, ops in groups.items() if ops
    )
    models = "".join(_model(name, schema) for name, schema in document["components"]["schemas"].items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(info["title"])} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>"
        f'<p>{links} · <a href="#objects">Objects</a> · <a href="openapi.json">openapi.json</a></p>'
        f'{sections}<h2 id="objects">Objects</h2>{models}</html>'
    )


def _anchor(name: str) -> str:
    return escape(name.lower().replace(" ", "-"))


def _operation(method: str, path: str, operation: Json) -> str:
    rows = [
        (parameter["name"], _kind(parameter["schema"]), parameter.get("description", ""))
        for parameter in operation.get("parameters", [])
    ]
    body = operation.get("requestBody")
    if body:
        kinds = ", ".join(
            _kind(content.get("schema", {})) or media for media, content in body["content"].items()
        )
        rows.append(("body", kinds, body.get("description", "")))
    answers = ", ".join(
        f"{status} {answer['description']}" + (f" ({_contents(answer)})" if status == "200" else "")
        for status, answer in operation["responses"].items()
    )
    about = f"{operation['summary']}. {operation.get('description', '')}"
    return (
        f"<section><h3><b>{method.upper()}</b> {escape(path)}</h3><p>{escape(about)}</p>{_table(rows)}"
        f"<p><small>{escape(answers)}</small></p></section>"
    )


def _contents(body: Json) -> str:
    """Return the kinds or the media types of a body."""
    contents = body.get("content", {}).items()
    return ", ".join(_kind(content.get("schema", {})) or media for media, content in contents)


def _model(name: str, schema: Json) -> str:
    rows = [
        (member, _kind(about), about.get("description", ""))
        for member, about in schema.get("properties", {}).items()
    ]
    description = escape(schema.get("description", ""))
    if not rows:
        description += f" ({escape(_kind(schema))})"
    return f'<section><h3 id="{escape(name)}">{escape(name)}</h3><p>{description}</p>{_table(rows)}</section>'


def _table(rows: list[tuple[str, str, str]]) -> str:
    if not rows:
        return ""
    cells = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(kind)}<td>{escape(about)}"
        for name, kind, about in rows
    )
    return f"<table>{cells}</table>"


def _kind(schema: Json) -> str:
    """Return a schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in schema:
        return " or ".join(_kind(option) for option in schema["anyOf"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"array of {_kind(schema.get('items', {}))}"
    kind = schema.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else str(schema.get("format") or kind)
