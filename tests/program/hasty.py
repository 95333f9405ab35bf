"""The program, but what was cut off is read back after one second instead of ten."""

from functools import partial
from unittest.mock import patch

from gateway import app
from gateway.cli.main import main
from gateway.forward.forwarder import ForwardSettings

if __name__ == "__main__":
    with patch.object(app, "ForwardSettings", partial(ForwardSettings, readback_delay_s=1.0)):
        main()
