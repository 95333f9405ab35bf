"""For all tests: how much hypothesis tries, that Ctrl-C reaches programs, and that logs leave a worker."""

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

# No deadline: how fast the machine is decides nothing here.
settings.register_profile("fast", max_examples=20, deadline=None)
settings.register_profile("full", max_examples=100, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# Not lxml, which tools of the extra `dev` bring: with it pybeerxml refuses text that names its encoding.
os.environ["FORCE_STD_XML"] = "true"

NOTHING_SKIPPED = bool(os.environ.get("TESTS_SKIP_NOTHING"))
"""Set where all tools are installed, so that a missing one is noticed: in `.ci/run`."""

# A shell has what it runs behind `&` ignore SIGINT, and the programs that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Leave the collected tests out of each collection of garbage: a fifth of all time went there."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a skipped test where nothing may be skipped; keep lone surrogates of logs from pytest-xdist."""
    report = yield
    if NOTHING_SKIPPED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"  # its text names the tool that is missing
    report.sections = [(name, _writable(text)) for name, text in report.sections]
    return report


def _writable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
