"""The program on a machine whose boots a scenario counts; with `credulous` one that believes any clock."""

import os
import runpy
from pathlib import Path
from unittest.mock import patch

from gateway import clock
from gateway.intake import clock_check
from tests.faults.launcher import VARIABLE

BOOT_VARIABLE = "FAULTS_BOOT_ID"
"""The file that holds this boot's name instead of the kernel's."""

CREDULOUS = "credulous"


def _prepare() -> None:
    nowhere = Path(os.devnull) / "timesync"  # the machine's own time service says nothing of a faked clock
    clock.Machine.__init__.__defaults__ = Path(os.environ[BOOT_VARIABLE]), nowhere
    if os.environ.pop(VARIABLE, "") == CREDULOUS:
        patch.object(clock_check, "check_clock", lambda *_, **__: None).start()


if __name__ == "__main__":
    _prepare()
    runpy.run_module("tests.faults.launcher", run_name="__main__", alter_sys=True)
