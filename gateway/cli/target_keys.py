"""The keys of targets on the command line: the way that they go, and who can read their files."""

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from gateway.config import others_can_read, said_of_url
from gateway.domain.texts import shown_url
from gateway.errors import InvalidInput
from gateway.network import sends_key_in_the_clear

NewName = Annotated[str, typer.Argument(metavar="NAME", help="What you call it: letters, digits, - _ .")]
Plaintext = Annotated[
    bool,
    typer.Option("--plaintext", help="Send the key to a public address over http, where others can read it."),
]


def warn_of_readers(path: Path) -> None:
    """Warn if other users of this machine can read the file."""
    with contextlib.suppress(OSError):  # the gateway says what is wrong with the file
        if others_can_read(path):
            typer.echo(f"Other users can read {path}: chmod 600 {path}", err=True)


def way_agreed(url: str, plaintext: bool) -> bool:
    """Return the consent to a key in the clear on the Internet: ask for it, or want `--plaintext`."""
    url = url.strip()
    if not sends_key_in_the_clear(url):
        return plaintext
    warning = f"anyone on the way to {shown_url(url)} can read the key"
    if plaintext:
        typer.echo(f"Warning: {warning}.", err=True)
    elif not sys.stdin.isatty():
        raise InvalidInput(f"{warning}: use https://, or --plaintext to send it so")
    else:
        typer.confirm(f"Warning: {warning}. Send it all the same?", abort=True, err=True)
    return True


def tell_address(told: str, taken: str) -> None:
    """Tell what was cut off the address, and that the key goes unencrypted inside the local network."""
    sentence = said_of_url(told, taken)
    if sentence:
        typer.echo(sentence, err=True)
    if taken.startswith("http://") and not sends_key_in_the_clear(taken):
        typer.echo(f"The key goes to {shown_url(taken)} unencrypted, inside your own network.", err=True)
