"""The common part of a search for recipes and for brew sessions, as SQL."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from typing import Any

from gateway.store.queries import Order, Search

SEPARATOR = "\x1f"
"""Stands between the texts that a keyword is searched in, and in none of them: no match spans two texts."""

LAST_DAY = date.max
"""The last possible day: no day follows it, so it needs no end."""

_BLANKED = str.maketrans({SEPARATOR: " ", "\0": " "})

Parameters = dict[str, Any]


def folded(text: str) -> str:
    """Return a text or a keyword in the form in which both are compared: without case."""
    return text.translate(_BLANKED).casefold()


def midnight(day: date) -> int:
    """Return the Unix seconds at which a UTC day begins."""
    return int(datetime.combine(day, time(), UTC).timestamp())


def conditions(search: Search) -> tuple[list[str], Parameters]:
    """Return the filters that both kinds of records have, as terms to be joined by AND, and their values."""
    terms = ["r.account_id = :account_id", "r.deleted = 0"]
    values: Parameters = {"account_id": search.account_id}
    for column, wanted in (
        ("id", search.id),
        ("group_id", search.group_id),
        ("folder_id", search.folder_id),
    ):
        if wanted is not None:
            terms.append(f"r.{column} = :{column}")
            values[column] = wanted
    if search.author_id is not None and search.author_id != str(search.account_id):
        terms.append("FALSE")  # records of an account are all by its own login
    for column, days in (("updated_at", search.updated), ("created_at", search.created)):
        if days.first is not None:
            terms.append(f"r.{column} >= :{column}_from")
            values[f"{column}_from"] = midnight(days.first)
        if days.last is not None and days.last < LAST_DAY:
            terms.append(f"r.{column} < :{column}_end")
            values[f"{column}_end"] = midnight(days.last) + 86_400
    return terms, values


def order_by(order: Order, columns: Mapping[str, str]) -> str:
    """Return the ORDER BY clause; `columns` has the SQL of each field that can be sorted by."""
    direction = "DESC" if order.descending else "ASC"
    return f"ORDER BY {columns[order.field]} {direction}, r.id {direction}"
