"""The program with a nightly backup that is made up for at once after the start."""

from gateway.backup import nightly
from gateway.cli.main import main

nightly.FIRST_LOOK_S = 0.0

if __name__ == "__main__":
    main()
