"""For all tests: Ctrl-C reaches what they start, and their logs can be handed from one process to another."""

import signal
from collections.abc import Generator

import pytest

# A shell has what it runs behind `&` ignore SIGINT, and the programs that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A lone surrogate in a captured section, as some tests log it, cannot leave pytest-xdist's worker."""
    report = yield
    report.sections = [(name, _writable(text)) for name, text in report.sections]
    return report


def _writable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
