"""The viewer of a link: it has no login, so the link's maker chose its language and units."""

from dataclasses import replace

from gateway.domain.view_link import ViewLink
from gateway.ui.pages import Visit
from gateway.ui.viewer import Viewer, zone_named
from gateway.ui.words import GRAVITY_UNITS, LANGUAGES, TEMP_UNITS


def viewer_of_link(visit: Visit, link: ViewLink) -> Viewer:
    """Return the viewer of a link: of its account, without rights, with the link's units."""
    chosen, viewer = link.options, visit.viewer
    language, gravity, temp = (chosen.get(each, "") for each in ("language", "gravity_unit", "temp_unit"))
    return replace(
        viewer,
        account_id=link.account_id,
        language=language if language in LANGUAGES else viewer.language,
        gravity_unit=gravity if gravity in GRAVITY_UNITS else viewer.gravity_unit,
        temp_unit=temp if temp in TEMP_UNITS else viewer.temp_unit,
        zone=zone_named(chosen.get("zone", "")) or viewer.zone,
        key_name="",
        may_look=False,
        may_change=False,
        login=None,
    )
