"""A label of 62 x 29 mm for a hydrometer: its name, and a QR code that leads to its page."""

from gateway.http.middleware import host_of, scheme_of
from gateway.interfaces import is_loopback
from gateway.services.adding import host_in
from gateway.services.qr import as_path
from gateway.ui.addresses import own_address
from gateway.ui.device_words import family_title
from gateway.ui.pages import Page, Row, Visit


async def show(visit: Visit) -> Page:
    """Show the label of a device."""
    device = await visit.services.devices.find(visit.path_id("id"))
    origin = f"{scheme_of(visit.request)}://{host_of(visit.request)}"
    if visit.base or (_is_local(origin) and visit.services.page.address):
        origin = own_address(visit) or visit.services.page.address
    page = visit.own_path("device", id=device.id)
    values = {
        "device": device.title,
        "family": family_title(device.family),
        "address": f"{origin}{page}",
        "code": as_path(f"{origin}{page}"),
        "is_local": _is_local(origin),
        "back": visit.url("device", id=device.id),
    }
    return Page("label.html", visit.t("label.title", name=device.title), values, menu="devices")


def _is_local(origin: str) -> bool:
    return is_loopback(host_in(origin.partition("://")[2]).strip("[]"))


ROWS = (Row("GET", "/label/{id}", show, "label", "A label with a QR code for a device", owner_only=True),)
