"""For all tests: what a test has logged can be handed from one process to another."""

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A lone surrogate in a captured section, as some tests log it, cannot leave pytest-xdist's worker."""
    report = yield
    report.sections = [(name, _writable(text)) for name, text in report.sections]
    return report


def _writable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
