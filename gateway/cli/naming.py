"""Names of devices and brew sessions for completion: the running gateway's, else those at rest."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from gateway.cli.client import ask_briefly
from gateway.cli.options import Words
from gateway.config import commands_data_dir
from gateway.errors import GatewayError
from gateway.store import glance

WORDS = 500
"""Candidates at most."""


QUERIES = {"keys": {"everyone": "true"}}
"""What a list is asked for beside its path."""

ROWS_OF = {"inbox": "waiting"}
"""The member of a list's answer that has its rows, where it is not called like the path."""


def device_words(context: typer.Context, begun: str) -> Words:
    """Return words that name exactly one device: ids and titles, and once a word has begun, every name."""
    directory = _directory(context)
    try:
        found = ask_briefly(directory, "/manage/devices")["devices"]
    except GatewayError:
        found = glance.devices(directory)
    named = []
    for record in found:
        title = record["label"] or record["name"] or record["key"]
        short = {str(record["id"]): title, title: record["key"]}
        others = (record["name"], record["device_id"], record["key"], *record.get("merged_in", ()))
        named.append({**dict.fromkeys(others, title), **short} if begun else short)
    return _of_one(named, begun)


def session_words(context: typer.Context, begun: str) -> Words:
    """Return the ids of brew sessions, and the batch codes that only one of them has; the newest first."""
    directory = _directory(context)
    try:
        found = ask_briefly(directory, "/manage/brewsessions", {"everyone": "true"})["brewsessions"]
    except GatewayError:
        found = glance.brew_sessions(directory)
    return _of_one(
        [
            {str(record["id"]): record["batchcode"], record["batchcode"]: f"brew session {record['id']}"}
            for record in reversed(found)
        ],
        begun,
    )


def listed_words(context: typer.Context, begun: str, path: str, member: str) -> Words:
    """Return a member of each row in a list of the running gateway; none where no gateway runs."""
    try:
        answer = ask_briefly(_directory(context), f"/manage/{path}", QUERIES.get(path))
    except GatewayError:
        return []
    return _of_one([{row[member]: ""} for row in answer[ROWS_OF.get(path, path)]], begun)


def family_words(begun: str) -> Words:
    """Return families behind the filter of `--mqtt-topic`, as `brewery/red=tilt`; none without a filter."""
    from gateway.drivers.families import families  # not above: only this one needs them

    topic, sign, part = begun.partition("=")
    if not sign:
        return []
    titles = {name: family.title for family in families().values() for name in family.drivers}
    return [(f"{topic}={name}", title) for name, title in sorted(titles.items()) if name.startswith(part)]


def _of_one(named: Iterable[dict[str, str]], begun: str) -> Words:
    """Return the words that begin so and stand for one record only, and can be typed."""
    named = list(named)
    many = Counter(word for words in named for word in words)
    fitting = [
        (word, help if help.isprintable() else "")
        for words in named
        for word, help in words.items()
        if word.startswith(begun) and many[word] == 1 and word and word.isprintable()
    ]
    return fitting[:WORDS]


def _directory(context: typer.Context) -> Path:
    given: Any = context.params.get("data_dir")
    return Path(given) if given else commands_data_dir()
