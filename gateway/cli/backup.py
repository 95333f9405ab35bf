"""`backup` and `restore`: write all data to one file, and put the data back from it."""

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.client import ask
from gateway.cli.exit_codes import ExitCode
from gateway.cli.options import Config, DataDir
from gateway.cli.output import local_time
from gateway.cli.ownership import check_right, files_of_owner
from gateway.cli.progress import progress_bar
from gateway.domain.audit import Actor, acting
from gateway.errors import GatewayError
from gateway.store.records import Contents


def backup(
    file: Annotated[Path, typer.Argument(help="File to write, best on another disk: a tar archive.")],
    data_dir: DataDir,
    config: Config = None,
    no_photos: Annotated[bool, typer.Option("--no-photos", help="Leave the photos out.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write all data to one file.

    The file has readings, brew sessions, recipes, settings, keys (as SHA-256) and photos.

    Works while the gateway runs, which goes on taking readings, and while it does not. The file is read back
    and checked before it gets its name. The file has no keys of targets and no secrets of channels: keep
    those yourself.

    Example: hydrometer-gateway backup /media/usb/gateway-2026-03-04.tar
    """
    from gateway.backup.backup import (  # not above: other commands need no archives
        Work,
        make,
        of_this_version,
    )

    check_right(data_dir)
    with _interruptible("there is no backup"), progress_bar() as progress:
        made = make(data_dir, file, Work(progress), now=time.time(), photos=not no_photos, force=force)
    typer.echo(
        f"{made.path}: {shown(made.contents, photos=made.photos)}; {made.bytes:,} bytes, read back and sound"
    )
    for name in made.missing:
        typer.echo(f"hydrometer-gateway: the photo {name} is missing or damaged", err=True)
    if made.contents.channels:
        names = ", ".join(made.contents.channels)
        typer.echo(f"Not in it are the secrets of channels: {names}. They are files of your own.", err=True)
    if not of_this_version(data_dir):
        return  # a backup migrates nothing, not even for its row in the audit log
    try:
        ask(data_dir, "POST", "/manage/backup", body={"file": made.path.name, "size": made.bytes})
    except (GatewayError, OSError) as error:
        typer.echo(f"hydrometer-gateway: the audit log has no row of this backup: {error}", err=True)


def restore(
    file: Annotated[
        Path, typer.Argument(help="A backup, or a database file that the gateway has kept aside.")
    ],
    data_dir: DataDir,
    config: Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the backup and say what is in it; change nothing.")
    ] = False,
) -> None:
    """Replace the data by a backup.

    The gateway must be stopped.

    The backup is checked first. The present data is kept in the data directory under another name, and can
    be restored in the same way. The backup may count readings as not forwarded that are upstream already:
    the gateway looks them up there before it sends anything.

    Example: hydrometer-gateway restore /media/usb/gateway-2026-03-04.tar
    """
    from gateway.backup.archive import DATABASE
    from gateway.backup.backup import Work
    from gateway.backup.restore import restore as put_back

    check_right(data_dir)
    with (
        acting(Actor(f"cli:uid {os.getuid()}")),
        _interruptible("look at `doctor`, then restore again"),
        files_of_owner(data_dir),
        progress_bar() as progress,
    ):
        restored = put_back(data_dir, file, Work(progress), dry_run=dry_run)
    typer.echo(f"Backup of {restored.made_at}, sound: {shown(restored.now)}")
    typer.echo(f"{'There is' if dry_run else 'There was'}: {shown(restored.before)}")
    for name in restored.missing:
        typer.echo(f"hydrometer-gateway: the photo {name} is in neither, or damaged", err=True)
    if dry_run:
        return
    typer.echo(f"There is now what is in the backup, in {data_dir}")
    for name in restored.aside:
        typer.echo(f"Kept: {data_dir / name}")
    databases = [name for name in restored.aside if name.startswith(DATABASE) and not name.endswith("-wal")]
    for name in databases:
        typer.echo(f"To undo this: hydrometer-gateway restore {shlex.quote(str(data_dir / name))}")


def shown(contents: Contents | None, photos: int | None = None) -> str:
    """Describe a database's content in a line; `photos` is the number of photo files that really exist."""
    if contents is None:
        return "no database that can be read"
    counts = dict(contents.counts) | ({} if photos is None else {"photos": photos})
    text = ", ".join(f"{number:,} {what}" for what, number in counts.items())
    newest = f", the newest of {local_time(contents.newest_at)}" if contents.newest_at else ""
    return text.replace(" readings", f" readings{newest}", 1)


@contextmanager
def _interruptible(remedy: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"Stopped; {remedy}.", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
