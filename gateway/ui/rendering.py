"""Templates: the environment, whole pages, and parts of pages."""

from functools import cache
from pathlib import Path
from typing import Any

from aiohttp import hdrs
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gateway.config import DEFAULT_BREWERY
from gateway.ui import static
from gateway.ui.pages import ROOT, TOKEN_FIELD, Page, Part, Visit
from gateway.ui.words import LANGUAGES, NO_BREAK

TEMPLATES = Path(__file__).parent / "templates"

MENU = (
    ("brews", "brews", "all"),
    ("devices", "devices", "all"),
    ("recipes", "recipes", "all"),
    ("alarms", "alarms", "wide"),
    ("compare", "compare", "wide"),
    ("sending", "sending", "owner"),
    ("help", "help", "wide"),
    ("more", "more", "narrow"),
)
"""The menu: the entry, its page, and who sees it: all, the owner, or a wide or narrow screen alone."""

AGES = ("now", "minutes", "hours", "days")


@cache
def environment() -> Environment:
    """Return the environment of all templates; each is compiled at its first use."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {"nbsp": NO_BREAK, "languages": LANGUAGES}
    return made


def render_part(visit: Visit, part: Part) -> Markup:
    """Return the HTML of a part."""
    return Markup(environment().get_template(part.template).render(**_common(visit), **part.values))


def render_page(visit: Visit, page: Page, *, notice: str = "", banner: str = "", brewery: str = "") -> str:
    """Return the HTML of a page, in the frame that all pages share."""
    brewery = brewery or DEFAULT_BREWERY
    head = [text for text in (page.news, page.title) if text]
    return (
        environment()
        .get_template(page.template)
        .render(
            **_common(visit),
            **{
                "page": page,
                "title": page.title,
                "tab": " · ".join(head) or brewery,
                "notice": notice,
                "banner": banner,
                "brewery": brewery,
                "menu": _menu(visit, page.menu),
                "made_at": int(visit.now),
                "seen": visit.seen,
                "ages": {name: _template_of_age(visit, name) for name in AGES},
                "here": visit.here() if visit.request.method == hdrs.METH_GET else "",
            },
            **page.values,
        )
    )


def _common(visit: Visit) -> dict[str, Any]:
    return {
        "t": visit.t,
        "url": visit.url,
        "base": visit.base,
        "static": lambda name: f"{visit.base}{ROOT}/static/{static.version()}/{name}",
        "has": visit.has,
        "viewer": visit.viewer,
        "token": Markup('<input type="hidden" name="{}" value="{}">').format(TOKEN_FIELD, visit.token),
    }


def _menu(visit: Visit, current: str) -> list[tuple[str, str, str, bool]]:
    """Return address, words, kind and whether it is the current one, of each entry."""
    if visit.viewer.login is None and not visit.viewer.may_look:
        return []
    return [
        (visit.url(page), visit.t(f"menu.{entry}"), kind, entry == current)
        for entry, page, kind in MENU
        if visit.has(page)
        if kind != "owner" or (visit.viewer.is_owner and visit.viewer.may_change)
    ]


def _template_of_age(visit: Visit, name: str) -> str:
    """Return the text of an age with `#` for its number, which the script fills in."""
    return visit.t(f"age.{name}", n=2).replace("2", "#") if name != "now" else visit.t("age.now")
