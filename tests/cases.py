"""Walk many cases in one test, and choose how many examples a property gets."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import settings


def examples(factor: float) -> int:
    """The number of examples for a property that needs `factor` times as many as the profile gives."""
    return max(1, round(settings().max_examples * factor))


def each(names: str, cases: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a test on every case, as `parametrize` does, but as one test that names each case which failed.

    Fixtures are shared by all cases, so a case must leave them as they were.
    """
    arguments, table = [name.strip() for name in names.split(",")], list(cases)
    assert table, "a walk over no cases would always pass"

    def named(case: Any) -> dict[str, Any]:
        return dict(zip(arguments, case if len(arguments) > 1 else (case,), strict=True))

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def walk(**fixtures: Any) -> None:
                failures: list[Exception] = []
                for case in table:
                    try:
                        await test(**fixtures, **named(case))
                    except Exception as error:
                        failures.append(_note(error, case))
                _report(failures, len(table))
        else:

            @functools.wraps(test)
            def walk(**fixtures: Any) -> None:
                failures: list[Exception] = []
                for case in table:
                    try:
                        test(**fixtures, **named(case))
                    except Exception as error:
                        failures.append(_note(error, case))
                _report(failures, len(table))

        signature = inspect.signature(test)
        left = [each for name, each in signature.parameters.items() if name not in arguments]
        walk.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return walk

    return decorate


def _note(error: Exception, case: Any) -> Exception:
    error.add_note(f"case: {case!r}")
    return error


def _report(failures: list[Exception], number: int) -> None:
    if failures:
        names = "; ".join(error.__notes__[-1].removeprefix("case: ")[:100] for error in failures)
        raise ExceptionGroup(f"{len(failures)} of {number} cases failed: {names}", failures)
