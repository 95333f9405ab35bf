"""What a command says once it has made something: a sentence for a person, the bare id for a script."""

import sys
from typing import Annotated

import typer

from gateway.cli.recipe_view import one_line

Quiet = Annotated[
    bool, typer.Option("--quiet", help="Print the bare id as in a script, and no sentence about success.")
]


def tell_made(number: int, sentence: str, *, quiet: bool = False) -> None:
    """Print what was made on stdout: on a terminal the sentence, into a pipe or with `quiet` the bare id."""
    typer.echo(one_line(sentence) if sys.stdout.isatty() and not quiet else number)


def tell_person(sentence: str, *, quiet: bool = False) -> None:
    """Print on a terminal what was done, on stderr. Into a pipe and with `quiet` success needs no word."""
    if sys.stderr.isatty():
        tell_done(sentence, quiet=quiet)


def tell_done(sentence: str, *, quiet: bool = False) -> None:
    """Print on stderr what was done, unless nobody wants to know; stdout stays for data."""
    if not quiet:
        typer.echo(one_line(sentence), err=True)
