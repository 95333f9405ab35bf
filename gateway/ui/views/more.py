"""The page behind "More" on a phone: all that the menu at the bottom has no room for."""

from gateway.ui.pages import Page, Row, Visit

OWNER_ENTRIES = ("sending", "quarantine", "keys")


async def show(visit: Visit) -> Page:
    """List the other pages."""
    entries = [
        "alarms",
        "compare",
        *(OWNER_ENTRIES if visit.viewer.is_owner and visit.viewer.may_change else ()),
    ]
    entries += ["settings", "help"]
    links = [
        (visit.url(entry), visit.t(f"menu.{entry}"), visit.t(f"more.{entry}"))
        for entry in entries
        if visit.has(entry)
    ]
    return Page("more.html", visit.t("menu.more"), {"links": links}, menu="more")


ROWS = (Row("GET", "/more", show, "more", "All that has no place in the menu of a phone"),)
