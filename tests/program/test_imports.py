"""What is imported late, because it takes memory: a fresh interpreter says what has been loaded."""

import subprocess
import sys

from tests.cases import each
from tests.pure.formats.test_image import cornered, file_of


@each(
    "code",
    [
        "from gateway.formats import image, image_header; image_header.inspect(bytes.fromhex(sys.argv[1]))",
        "import gateway.samples.drawing",
    ],
)
def test_looking_at_a_photo_and_importing_the_drawing_need_no_pillow(code: str) -> None:
    code = f"import sys; {code}; assert not any(name.startswith('PIL') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code, file_of(cornered(8, 8), "JPEG").hex()], check=True)


IDLE = """
import sys
from gateway.cli import serve
from gateway.tls.authorities import left_unread
with left_unread():
    from gateway import app
from gateway.transports import mqtt, mqtt_listener
late = ("pydantic", "gateway.api", "gateway.manage", "gateway.endpoints", "gateway.mirror", "gateway.samples",
        "gateway.backup", "gateway.doctor", "gateway.capture", "gateway.redact", "xml",
        "gateway.formats.beerxml", "multiprocessing", "paho", "amqtt", "PIL", "rich",
        "gateway.ui", "jinja2", "markupsafe", "segno", "prometheus_client")
found = [name for name in sys.modules if name.startswith(late)]
assert not found, found
"""
"""Imports what an idle gateway with its MQTT listener has in memory."""


def test_an_idle_gateway_has_neither_models_nor_endpoints() -> None:
    subprocess.run([sys.executable, "-c", IDLE], check=True, timeout=60)


PAGE = """
import sys
from gateway.ui import rendering, routes
late = ("pydantic", "gateway.api", "gateway.manage", "gateway.endpoints", "PIL", "segno", "xml")
found = [name for name in sys.modules if name.startswith(late)]
assert not found, found
"""
"""Imports what every page has in memory, of all views."""


def test_the_page_has_neither_models_nor_pictures() -> None:
    subprocess.run([sys.executable, "-c", PAGE], check=True, timeout=60)
