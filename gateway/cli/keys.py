"""`keys`: the API keys of accounts."""

import json
import sys
import time
from typing import Annotated, Any

import typer

from gateway.cli.accounts import AccountName
from gateway.cli.client import ask, get
from gateway.cli.options import Config, DataDir, Wide, device_words, json_option, key_words
from gateway.cli.output import (
    DETAIL,
    YELLOW,
    Cell,
    Column,
    age,
    exact,
    parse_span,
    table,
    to_the_minute,
    unix,
    when,
)
from gateway.cli.ownership import check_right
from gateway.domain.key import ALL_SCOPES
from gateway.errors import InvalidInput, NotFound, in_words
from gateway.services.key_files import first_key_file

app = typer.Typer(help="API keys: add, list, rotate, revoke.", no_args_is_help=True)

ADMIN_MAY = "admin: it may look, report, change and delete everything of the account, and make keys"

KeyName = Annotated[str, typer.Argument(metavar="NAME", help="The key's name.", autocompletion=key_words)]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What the key is for; shown in the list.")],
    data_dir: DataDir,
    config: Config = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="read (look), ingest (report) or admin (change and delete everything, make keys). Give the "
            "option once for each. [default: read; with --device ingest]",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="Only to report, and only for the device of this name.", autocompletion=device_words
        ),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="Refuse the key after this span, such as 90d. [default: it has no end]")
    ] = None,
    account: AccountName = None,
) -> None:
    """Make a key for an account and print it, and nothing else, on stdout. The key is shown this once.

    Works at once in a running gateway.

    Example: hydrometer-gateway keys add phone --expires 90d > phone.key
    """
    unknown = set(scope or ()) - ALL_SCOPES
    if unknown:
        raise InvalidInput(
            f"unknown scope {', '.join(sorted(unknown))}; there are {', '.join(sorted(ALL_SCOPES))}"
        )
    if not name.strip():
        raise InvalidInput("the key's name is empty")
    body = {
        "name": name,
        "scopes": sorted(set(scope)) if scope else None,
        "device": device,
        "expires_at": None if expires is None else exact(time.time() + parse_span(expires)),
    }
    [made] = ask(data_dir, "POST", "/manage/keys", body=body, account=account)["keys"]
    if "admin" in made["scopes"]:
        typer.echo(f"key {made['name']}, {ADMIN_MAY}", err=True)
    typer.echo(made["key"])


@app.command("list")
def list_keys(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_KEYS_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List active keys by name.

    The keys themselves are not stored anywhere. `admin` may change and delete everything of its account,
    `read` looks, `ingest` reports. LAST USED is written once a minute.
    """
    found = get(data_dir, "/manage/keys", query={"everyone": True})["keys"]
    if as_json:
        for key in found:
            typer.echo(json.dumps(key, ensure_ascii=False))
        return
    rows = [
        (
            key["name"],
            f"{key['shown']}...",
            " ".join([*key["scopes"], *([f"for {key['device']}"] if key["device"] else [])]),
            _last_use(key),
            _end(key),
            key["account"],
            when(unix(key["created_at"])),
        )
        for key in found
    ]
    columns = (
        *(Column("NAME", cut=True), Column("KEY", DETAIL), Column("SCOPE", cut=True)),
        *(Column("LAST USED", 2), Column("EXPIRES", 3), Column("ACCOUNT", 4, cut=True)),
        Column("CREATED", DETAIL),
    )
    table(columns, rows, wide=wide)


def _last_use(key: dict[str, Any]) -> Cell:
    used = when(unix(key["last_used_at"]), "never")
    source = f" from {key['last_source']}" if key["last_source"] else ""
    return Cell(f"{used.full}{source}", used.short)


def _end(key: dict[str, Any]) -> Cell:
    end = unix(key["expires_at"])
    if end is None:
        return Cell("never", "never")
    has_ended = end <= time.time()
    words = ("ended" if has_ended else "", to_the_minute(end), "(replaced)" if key["replaced"] else "")
    full = " ".join(filter(None, words))
    return Cell(full, "ended" if has_ended else age(end), YELLOW if has_ended or key["replaced"] else None)


@app.command()
def rotate(
    name: KeyName,
    data_dir: DataDir,
    config: Config = None,
    overlap: Annotated[str, typer.Option(help="Span in which the old key is valid, too.")] = "24h",
    account: AccountName = None,
) -> None:
    """Make a new key in place of another and print it on stdout. Both are valid until the overlap ends.

    The new key has the old one's name, rights, device and life span.

    Example: hydrometer-gateway keys rotate phone --overlap 24h > phone.key
    """
    body = {"name": name, "overlap_s": parse_span(overlap)}
    missing = f"no active key named {name!r}; `keys list` shows them"
    path = "/manage/keys/rotate"
    [made] = ask(data_dir, "POST", path, body=body, account=account, missing=missing)["keys"]
    typer.echo(made["key"])


@app.command()
def first(data_dir: DataDir, config: Config = None) -> None:
    """Show the key of the very first start, once.

    Removes the file in which it waits. The first start writes its key into a file of the data directory
    unless it runs on a terminal, because a journal would keep it for ever.
    """
    check_right(data_dir)
    path = first_key_file(data_dir)
    try:
        key = path.read_text("utf-8").strip()
    except FileNotFoundError as error:
        raise NotFound(
            f"no first key waits in {path}: it was shown already, or the gateway has not started yet; "
            "`keys add NAME` makes another key"
        ) from error
    except OSError as error:
        raise InvalidInput(f"{path}: {in_words(error)}") from error
    typer.echo(key)
    # Only now: a pipe that is closed must not cost the key.
    sys.stdout.flush()
    path.unlink()


@app.command()
def revoke(
    name: KeyName,
    data_dir: DataDir,
    config: Config = None,
    account: AccountName = None,
) -> None:
    """Revoke a key of an account.

    A running gateway refuses it from the next request on.
    """
    query, missing = {"name": name}, f"no active key named {name!r}; `keys list` shows them"
    ask(data_dir, "DELETE", "/manage/keys", query=query, account=account, missing=missing)
