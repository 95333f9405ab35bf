"""A pure test uses no loop, no socket and no disk: it fails if it tries."""

import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

FIXTURES = {"tmp_path", "tmp_path_factory", "tmpdir"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CACHES = (f"{os.sep}__pycache__{os.sep}", f"{os.sep}.hypothesis{os.sep}", os.devnull)
"""Files and folders that Python and hypothesis write for themselves."""

FORBIDDEN = {"socket.__new__", "subprocess.Popen", "sqlite3.connect"}


class _Watch:
    """Notes the first forbidden thing that the running test does."""

    active = False
    seen: str | None = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _Watch.active:
        return
    if event == "os.mkdir" or (event == "open" and arguments[2] & WRITING):
        # Not a number: that file was opened before, by its name. So hypothesis writes its examples.
        path = arguments[0]
        if isinstance(path, int) or any(part in f"{path}{os.sep}" for part in CACHES):
            return
        _Watch.seen = _Watch.seen or f"{event} {path}"
    elif event in FORBIDDEN:
        _Watch.seen = _Watch.seen or event


sys.addaudithook(_audit)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail the test after its own failures, so that an error it hides is found as well."""
    wanted = FIXTURES & set(getattr(item, "fixturenames", ()))
    assert not wanted, f"a pure test asks for {', '.join(sorted(wanted))}: it belongs to tests/system"
    _Watch.seen, _Watch.active = None, True
    try:
        yield
    finally:
        _Watch.active = False
    assert _Watch.seen is None, f"a pure test did {_Watch.seen}: it belongs to tests/system or tests/program"
