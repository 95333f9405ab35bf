"""The address of the page, for codes that another machine follows."""

from urllib.parse import urlsplit

from gateway.http.middleware import host_of, scheme_of
from gateway.interfaces import is_loopback
from gateway.services.adding import addresses
from gateway.ui.pages import Visit


def own_address(visit: Visit) -> str:
    """Return the address of the page for another machine: the one in the browser, or the one of `serve`.

    Empty if only this machine reaches the page. Inside Home Assistant the bar of the browser names Home
    Assistant: our own port is on the same machine then.
    """
    if visit.base:
        shown = addresses(visit.services.stats, host_of(visit.request))
        return f"http://{shown['host']}:{shown['http_port']}" if shown["host"] else ""
    in_browser = f"{scheme_of(visit.request)}://{host_of(visit.request)}"
    return next((each for each in (in_browser, visit.services.page.address) if _reaches_far(each)), "")


def _reaches_far(address: str) -> bool:
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return False
    return bool(host) and not is_loopback(host or "")
