"""Opens the demo's page in the browser of the person at this machine."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

OPENERS = {"linux": "xdg-open", "darwin": "open"}
"""The program that opens an address, by platform."""


def may_open(environment: Mapping[str, str], user_id: int, platform: str) -> bool:
    """Return whether a person would see a browser: not as root, over SSH, or without a display."""
    if user_id == 0 or "SSH_CONNECTION" in environment or "SSH_TTY" in environment:
        return False
    has_display = bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))
    return platform == "darwin" or (platform == "linux" and has_display)


def open_page(address: str) -> bool:
    """Open an address in a browser; return whether that was tried."""
    opener = shutil.which(OPENERS.get(sys.platform, ""))
    if opener is None or not may_open(os.environ, os.geteuid(), sys.platform):
        return False
    subprocess.Popen(  # noqa: S603  (the opener is the desktop's, the address our own)
        [opener, address],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the browser outlives the demo
    )
    return True
