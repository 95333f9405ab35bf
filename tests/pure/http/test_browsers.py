"""Web pages are told from firmware by their headers, and names of this machine from a stranger's."""

import json

from multidict import CIMultiDict

from gateway.http.browsers import NOT_FOR_BROWSERS, NOT_FOR_PAGES, OwnHosts, ReportRules, page_of, shown_host
from sample_devices.devices import KINDS
from sample_devices.wire.report import HttpReport
from tests.cases import each
from tests.pure.drivers.test_cases import FILES
from tests.pure.sample_devices import golden

CHROMIUM = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0"
EVIL = "http://evil.example"
TOOL = "https://tool.example"
HOSTS = OwnHosts(["Brew.example.org.", "*.cert.example"], machine="pi.home.net")
RULES = ReportRules([TOOL], HOSTS)

PAGE, BROWSER, TAKEN = NOT_FOR_PAGES, NOT_FOR_BROWSERS, None

FIRMWARE = (
    *(
        "ESP8266HTTPClient",
        "ESP32HTTPClient",
        "ESP8266",
        "arduino-pico",
        "iSpindel",
        "iSpindel042",
        "gravitymon",
    ),
    *("tiltbridge/1.2.4 (branch master; build a1b2c3d)", "tilt-pitch", "tslib-arduino/2.0.1 (ESP8266)"),
    *("python-requests/2.31.0", "Python/3.13 aiohttp/3.11.0", "Go-http-client/1.1", "MicroPython", "", None),
)
"""The User-Agents of devices, bridges and programs; None for no such header."""

REQUESTS: tuple[tuple[str, dict[str, str], str | None], ...] = (
    # What Chromium 156 sends from a page of another site to a plain-http name of the network.
    ("POST", {"Origin": EVIL, "Referer": f"{EVIL}/"}, PAGE),
    ("POST", {"Origin": EVIL}, PAGE),
    ("POST", {"Origin": "null"}, PAGE),
    ("PUT", {"Origin": EVIL, "Referer": f"{EVIL}/", "Sec-Fetch-Mode": "cors"}, PAGE),
    ("GET", {"Referer": f"{EVIL}/"}, PAGE),
    ("GET", {}, BROWSER),
    # To https and localhost.
    ("POST", {"Sec-Fetch-Site": "cross-site"}, PAGE),
    ("POST", {"Sec-Fetch-Site": "same-site"}, PAGE),
    ("POST", {"Sec-Fetch-Site": "Cross-Site "}, PAGE),
    ("POST", {"Sec-Fetch-Site": "same-origin"}, TAKEN),
    ("POST", {"Sec-Fetch-Site": "none"}, TAKEN),
    ("POST", {"Sec-Fetch-Site": "cross-site", "Origin": TOOL}, TAKEN),
    # The allowed page, and neighbours of its name.
    ("POST", {"Origin": TOOL}, TAKEN),
    ("GET", {"Origin": TOOL}, TAKEN),
    ("POST", {"Origin": "http://tool.example"}, PAGE),
    ("POST", {"Origin": f"{TOOL}:8443"}, PAGE),
    ("POST", {"Origin": f"{TOOL}.evil.example"}, PAGE),
    ("POST", {"Referer": f"{TOOL}/page?x"}, TAKEN),
    ("POST", {"Referer": f"{TOOL}.evil.example/"}, PAGE),
    # Pages of this network.
    ("POST", {"Origin": "http://localhost:1880"}, TAKEN),
    ("POST", {"Origin": "https://localhost"}, TAKEN),
    ("POST", {"Origin": "http://192.168.1.20:3000"}, TAKEN),
    ("POST", {"Origin": "http://[fd00::1]:3000"}, TAKEN),
    ("POST", {"Origin": "http://pi.local"}, TAKEN),
    ("POST", {"Origin": "http://brew.example.org"}, TAKEN),
    ("POST", {"Origin": "http://a.cert.example"}, TAKEN),
    # A stranger's address is no neighbour.
    ("POST", {"Origin": "http://203.0.113.7"}, PAGE),
    ("POST", {"Origin": "http://[2001:db8::7]:80"}, PAGE),
    # Apps: no web page can take these schemes.
    ("POST", {"Origin": "file://"}, TAKEN),
    ("POST", {"Origin": "app://obsidian.md"}, TAKEN),
    ("POST", {"Origin": "capacitor://localhost"}, TAKEN),
    ("POST", {"Origin": "ionic://localhost"}, TAKEN),
    # Oddities.
    ("POST", {"Origin": "http://evil.example http://localhost"}, PAGE),
    ("POST", {"Origin": "http://localhost@evil.example"}, PAGE),
    ("POST", {"Origin": "http://localhost.evil.example"}, PAGE),
    ("POST", {"Origin": "HTTP://EVIL.example"}, PAGE),
    ("POST", {"Origin": "http://"}, PAGE),
    ("POST", {"Origin": "http:evil"}, PAGE),
    ("POST", {"Origin": "http://[::1"}, PAGE),
    ("POST", {"Origin": ""}, TAKEN),
    ("POST", {"Referer": "about:blank"}, TAKEN),
    ("POST", {"Referer": f"{EVIL}"}, PAGE),
    ("POST", {"Origin": "http://localhost", "Referer": f"{EVIL}/"}, TAKEN),
    # A bookmark, or an address that somebody has typed, that would report.
    ("GET", {"Sec-Fetch-Site": "none"}, BROWSER),
    ("POST", {}, TAKEN),
)


@each("method, headers, reason", REQUESTS)
def test_a_page_is_known_by_its_headers(method: str, headers: dict[str, str], reason: str | None) -> None:
    assert RULES.refusal(method, CIMultiDict(headers, **{"User-Agent": CHROMIUM})) == reason


def test_no_firmware_is_refused() -> None:
    """The headers of every case, with every User-Agent of a device: no rule speaks."""
    seen = refused = 0
    for method, headers in _requests_of_devices():
        for agent in FIRMWARE:
            sent = CIMultiDict(headers)
            if agent is not None:
                sent["User-Agent"] = agent
            seen += 1
            refused += RULES.refusal(method, sent) is not None
    assert (refused, seen > 300 * len(FIRMWARE)) == (0, True)


def _requests_of_devices() -> list[tuple[str, dict[str, str]]]:
    cases = [json.loads(path.read_text("utf-8")) for path in FILES]
    found = [(case["method"], case.get("headers") or {}) for case in cases if case["transport"] == "http"]
    for kind in KINDS:
        report = golden.make(kind)
        if isinstance(report, HttpReport):
            head = report.request.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
            fields = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
            found.append((head[0].partition(" ")[0], fields))
    return found


def test_no_firmware_calls_itself_a_browser() -> None:
    agents = {headers.get("User-Agent", "") for _, headers in _requests_of_devices()}
    assert len(agents) > 5
    assert not any(agent.startswith("Mozilla/") for agent in agents)


OURS = (
    *(
        "",
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1",
        "192.168.1.5:8080",
        "8.8.8.8",
        "[::1]:8080",
        "[fe80::1%25e0]",
    ),
    *(
        "pi",
        "PI:80",
        "pi.home.net",
        "pi.local",
        "pi.local.",
        "pi.lan",
        "pi.home",
        "pi.home.arpa",
        "pi.fritz.box",
    ),
    *("pi.internal", "brew.example.org", "www.cert.example"),
    *("homeassistant", "brew.local", "a.b.lan:8080", "brew.home.arpa", "brew.internal.", "brew.fritz.box"),
)
FOREIGN = (
    *(
        "evil.example",
        "pi.evil.example",
        "evil.locals",
        "evillan.example",
        "-evil",
        "pi.local.evil.example",
        "127.0.0.1.evil.example",
        "home.net",
    ),
    *(
        "example.org",
        "x.brew.example.org",
        "cert.example",
        "a.b.cert.example",
        "pi local",
        "[::1",
        "a:b",
        ".local",
    ),
    *("::1", "127.0.0.1, evil.example", "evil.example:80:80", "pi\x00"),
)


@each("host, is_ours", [*((host, True) for host in OURS), *((host, False) for host in FOREIGN)])
def test_names_of_this_machine(host: str, is_ours: bool) -> None:
    assert HOSTS.include(host) is is_ours


def test_names_of_a_new_certificate_count_from_then_on() -> None:
    hosts = OwnHosts(machine="pi")
    assert not hosts.include("new.example")
    hosts.add(["New.example", ""])
    assert hosts.include("new.example:443")
    assert OwnHosts(machine="").include("localhost")
    assert not OwnHosts(machine="").include_page("lan")


def test_a_sentence_repeats_little_of_a_header() -> None:
    assert shown_host("evil.example:8080") == "evil.example"
    assert len(shown_host("x" * 8000)) == 80
    assert page_of({"Origin": "https://evil.example"}) == "https://evil.example"
    assert page_of({"Referer": "http://evil.example:81/secret?key=hg_x"}) == "http://evil.example:81"
    assert page_of({"Origin": "null"}) == page_of({}) == "a site that no header names"
