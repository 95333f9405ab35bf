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
