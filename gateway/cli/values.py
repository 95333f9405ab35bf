"""Plain values of options and arguments, taken without the validation library, and the words for them.

typer builds a validator of pydantic for each option, and importing pydantic takes longer than typer itself.
But most values are plain: a text, a number in its bounds, a path. They are taken here. Anything else, and so
every error and its words, is left to typer.

In a help, typer names the types of Python, such as `<list[str]>`. Here are the words that everybody knows.
"""

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer.core

# Private names of typer: pyproject.toml has a release for which they are tested.
from typer._coercion import RuntimeParam, build_runtime_param
from typer._param_types import coerce_cli_path
from typer.core import TyperOption, _TyperParameter

from gateway.cli.options import NUMBER_MAX

PLAIN_INT = re.compile(r"-?[0-9]{1,18}")
"""Digits that every parser takes for the same number."""

PLAIN_FLOAT = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,6})?")
"""The same, of a number with a fraction."""

PLAIN_BOOL = {"true": True, "1": True, "false": False, "0": False}
"""Words for a flag in a variable of the environment."""

KINDS = {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "FILE"}
"""What stands for a value, by its type."""


class NotPlain(Exception):
    """The value is not plain, or not right."""


class PlainRuntimeParam(RuntimeParam):
    """Takes the plain values of one parameter itself, and gives the others to typer."""

    def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return self._plain(self.annotation, value)
        except Exception:  # typer finds the same error, and has the words for it
            return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)

    def _plain(self, annotation: Any, value: Any) -> Any:
        info = self.parameter_info
        if info.parser is not None:
            raise NotPlain
        if get_origin(annotation) is list and isinstance(value, list | tuple):
            [kind] = get_args(annotation)
            return [self._plain(kind, each) for each in value]
        if annotation is bool and isinstance(value, str | bool):
            return value if isinstance(value, bool) else PLAIN_BOOL[value]
        if annotation is int:
            return self._within(int(value) if _reads(PLAIN_INT, value) else value, int)
        if annotation is float:
            return self._within(float(value) if _reads(PLAIN_FLOAT, value) else value, float)
        if annotation is Path and isinstance(value, str | Path):
            return coerce_cli_path(Path(value), info, path_type=Path)
        choices = get_args(annotation) if get_origin(annotation) is Literal else ()
        if type(value) is str and (annotation is str or value in choices):
            return value
        raise NotPlain

    def _within(self, value: Any, kind: type[int] | type[float]) -> Any:
        info = self.parameter_info
        if type(value) is not kind or info.clamp:
            raise NotPlain
        if (info.min is not None and value < info.min) or (info.max is not None and value > info.max):
            raise NotPlain
        return value


def _reads(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _runtime_param(parameter: Any) -> RuntimeParam:
    descriptor = parameter.type_descriptor
    if descriptor.file_annotation is not None:
        return build_runtime_param(descriptor)
    return PlainRuntimeParam(descriptor.parameter_info, descriptor.annotation)


def take_plain_values() -> None:
    """Make every option and argument take its plain values without the validation library."""
    _TyperParameter.get_runtime_param = _runtime_param  # type: ignore[assignment]


def value_word(parameter: Any) -> str:
    """Return what stands for a value in a help: the choices, or a word in capitals."""
    if parameter.metavar:
        return str(parameter.metavar)
    kind = parameter.type_descriptor.annotation
    if get_origin(kind) is list:
        [kind] = get_args(kind)
    if not isinstance(parameter, TyperOption):
        return str(parameter.name).upper()
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    info = parameter.type_descriptor.parameter_info
    return "DIRECTORY" if kind is Path and not info.file_okay else KINDS.get(kind, "TEXT")


def _name(parameter: Any) -> str:
    """Return the name of an argument as its help writes it, or of an option as typer does."""
    return str(parameter.name) if isinstance(parameter, TyperOption) else value_word(parameter)


def _kind(parameter: Any, _: Any) -> str:
    """Return what stands behind an option; an argument has its name and no more."""
    return value_word(parameter) if isinstance(parameter, TyperOption) else ""


def _bounds(least: float | None, most: float | None) -> str | None:
    """Return the bounds of a number in words. The largest one that a database takes is no bound to name."""
    if most is None or most >= NUMBER_MAX:
        return None if least is None else f"{least} or more"
    return f"{most} or less" if least is None else f"{least} to {most}"


def say_plain_words() -> None:
    """Make every help name values and bounds in plain words."""
    _TyperParameter.display_name_raw = property(_name)  # type: ignore[assignment]
    _TyperParameter.display_type = _kind  # type: ignore[method-assign, assignment]
    typer.core.describe_number_range = _bounds  # type: ignore[attr-defined, assignment]
