"""`install-service`, `uninstall-service`: the gateway as a service of systemd, from a venv or pipx."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway import __version__
from gateway.cli.client import ask_briefly
from gateway.cli.options import Config
from gateway.config import HTTP_PORT, config_home, data_home
from gateway.deploying import service
from gateway.deploying.service import COMMAND, OF_THE_PACKAGE, UNIT_NAME, Places
from gateway.errors import GatewayError, InvalidInput, in_words
from gateway.services.key_files import first_key_file
from gateway.sockets import listen

RUNNING = Path("/run/systemd/system")
"""There while systemd runs: sd_booted(3)."""

READY_S = 10.0
"""Seconds that the service may take until it answers."""

READY_STEP_S = 0.1

SYSTEMCTL_S = 60.0
"""Seconds that one call of systemctl or loginctl may take."""

FREE_BYTES = 256 * 1024 * 1024
"""Room that has to be free for the data: years of readings of a few devices."""

Root = Annotated[
    Path | None,
    typer.Option(
        help="Install into the system in this directory, such as the card of another Pi; start nothing.",
        file_okay=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print each file and each command; change nothing.")]
ForUser = Annotated[
    bool, typer.Option("--user", help="As a service of your own user instead of the machine; needs no sudo.")
]


@dataclass
class Work:
    """Changes of files and calls of systemctl, done one after the other, or only printed (`dry`).

    Paths are those of the running system; below `root`, if there is one, they are changed.
    """

    root: Path | None
    user: bool
    dry: bool
    changed: list[Path] = field(default_factory=list)

    def at(self, path: Path) -> Path:
        """Return where a path lies."""
        return path if self.root is None else self.root / path.relative_to("/")

    def text(self, path: Path) -> str | None:
        """Return the text of a file; None if there is none."""
        try:
            return self.at(path).read_text("utf-8")
        except FileNotFoundError:
            return None

    def write(self, path: Path, text: str) -> None:
        """Write a file of everybody's, if it is not so already."""
        if self.text(path) == text:
            return
        self.changed.append(path)
        if self.dry:
            typer.echo(f"--- {self.at(path)}\n{text}")
            return
        there = self.at(path)
        there.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        new = there.with_name(f".{there.name}.new")
        new.write_text(text, "utf-8")
        new.chmod(0o644)
        new.replace(there)

    def link(self, path: Path, target: Path) -> None:
        """Let a path lead to the program."""
        there = self.at(path)
        if there.is_symlink() and there.readlink() == target:
            return
        self.changed.append(path)
        if self.dry:
            typer.echo(f"--- {there} -> {target}")
            return
        there.parent.mkdir(parents=True, exist_ok=True)
        there.unlink(missing_ok=True)
        there.symlink_to(target)

    def directory(self, path: Path, mode: int) -> None:
        """Make a directory."""
        there = self.at(path)
        if there.is_dir():
            return
        self.changed.append(path)
        if self.dry:
            typer.echo(f"--- {there}/ (mode {mode:o})")
            return
        there.mkdir(parents=True)
        there.chmod(mode)  # not in mkdir: the umask takes bits away there

    def remove(self, path: Path) -> None:
        """Take away a file, a link or an empty directory."""
        there = self.at(path)
        if not os.path.lexists(there):
            return
        self.changed.append(path)
        if self.dry:
            typer.echo(f"remove {there}")
        elif there.is_dir() and not there.is_symlink():
            there.rmdir()
        else:
            there.unlink()

    def systemctl(self, *words: str) -> None:
        """Run systemctl: for the user with `user`, for the system below `root` with that."""
        where = ["--user"] if self.user else [f"--root={self.root}"] if self.root is not None else []
        self.run("systemctl", *where, *words)

    def run(self, *words: str) -> None:
        """Run a command, or print it; raise `GatewayError` with the command's last line if it fails."""
        if self.dry:
            typer.echo(f"run {shlex.join(words)}")
            return
        try:
            done = subprocess.run(  # noqa: S603 - words of ours, and a directory that the user named
                words, capture_output=True, text=True, timeout=SYSTEMCTL_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = in_words(error) if isinstance(error, OSError) else f"no answer within {SYSTEMCTL_S:g} s"
            raise GatewayError(f"`{shlex.join(words)}`: {reason}") from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise GatewayError(f"`{shlex.join(words)}`: {said[0]}")


def install_service(
    port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Port of the page, the API and HTTP devices.")
    ] = None,
    user: ForUser = False,
    root: Root = None,
    dry_run: DryRun = False,
    config: Config = None,
) -> None:
    """Let the gateway start with this machine.

    It becomes a service of systemd.

    Writes the unit, a file for options, a directory for backups, and the command where everybody finds it.
    Then starts the service and waits until it answers. Run it again after an upgrade: it changes what
    differs, and then restarts the service. It needs root, except with --user or --dry-run.

    Example: sudo /opt/hydrometer-gateway/bin/hydrometer-gateway install-service
    """
    program, work, places = _program(), Work(root and root.resolve(), user, dry_run), _places(user)
    mine = service.written_beside(work.text(places.unit) or "") or []
    link = places.commands / COMMAND
    links = program.parent != Path("/usr/bin") and (link in mine or not _is(work.at(link), program))
    _check(work, places, program, may_link=link in mine)
    before = None if work.root is not None or work.dry else _answer(places)
    if before is None and root is None and not dry_run:
        # A service that runs already holds its own port.
        chosen = port or service.port_of(work.text(places.environment) or "") or HTTP_PORT
        listen("HTTP", "", chosen, "stop the other program, or choose another port with --port").close()
    wrote = [places.environment, *([places.backups] if places.backups is not None else [])]
    if links:
        wrote.insert(0, link)
        work.link(link, program)
    if places.backups is not None:
        # Its user is another after each installation, so anybody may write there, as in /tmp.
        work.directory(places.backups, 0o1777)
    work.write(places.environment, service.environment_text(work.text(places.environment), port))
    work.write(places.unit, service.unit_text(program, wrote, user=user))
    if root is not None:
        work.systemctl("enable", UNIT_NAME)
        typer.echo(f"Installed in {root}: the gateway starts with that system.")
        return
    work.systemctl("daemon-reload")
    work.systemctl("enable", "--now", UNIT_NAME)
    changed = bool(work.changed) or (before is not None and before["version"] != __version__)
    if before is not None and changed:
        work.systemctl("restart", UNIT_NAME)
    if user:
        # Without it, a user's services stop when the user logs out.
        work.run("loginctl", "enable-linger")
    if dry_run:
        return
    _show(_when_ready(places, user=user), places, user=user, changed=changed or before is None)


def uninstall_service(
    user: ForUser = False, root: Root = None, dry_run: DryRun = False, config: Config = None
) -> None:
    """Take away what `install-service` wrote.

    The service is stopped first.

    Data, backups and options that you set stay; it says where they are.
    Example: sudo hydrometer-gateway uninstall-service
    """
    work, places = Work(root and root.resolve(), user, dry_run), _places(user)
    unit = work.text(places.unit)
    wrote = None if unit is None else service.written_beside(unit)
    if unit is None and _of_the_package(work):
        raise InvalidInput(
            "the Debian package runs the service; `sudo apt remove hydrometer-gateway` ends that"
        )
    if unit is None:
        raise InvalidInput(f"there is no {work.at(places.unit)}: nothing is installed as a service")
    if wrote is None:
        raise InvalidInput(f"{work.at(places.unit)} is not of `install-service`; remove it by hand")
    _need_root(work)
    if root is None:
        work.systemctl("disable", "--now", UNIT_NAME)
    else:
        work.systemctl("disable", UNIT_NAME)
    kept = [places.data]
    for path in wrote:
        there = work.at(path)
        text = work.text(path) if there.is_file() else None
        full = there.is_dir() and not there.is_symlink() and any(there.iterdir())
        if full or (path == places.environment and text is not None and service.sets_something(text)):
            kept.append(path)
        else:
            work.remove(path)
    options = work.at(places.environment.parent)
    if options.is_dir() and not any(options.iterdir()):
        work.remove(places.environment.parent)
    work.remove(places.unit)
    if root is None:
        work.systemctl("daemon-reload")
    if not dry_run:
        typer.echo("The service is gone; the program is still installed.")
        for path in kept:
            if work.at(path).exists():
                typer.echo(f"Kept: {work.at(path)}")


def _places(user: bool) -> Places:
    if user:
        return service.places_of_user(config_home(), data_home(), Path.home())
    return service.places_of_machine()


def _program() -> Path:
    """Return the command that runs now, as a path without links."""
    called = Path(shutil.which(sys.argv[0]) or sys.argv[0]).resolve()
    if called.name == COMMAND:
        return called
    beside = Path(sys.prefix, "bin", COMMAND)  # it was started as `python -m gateway`
    if beside.exists():
        return beside
    raise InvalidInput(f"{called} is not the installed command; start `{COMMAND} install-service`")


def _is(path: Path, program: Path) -> bool:
    return path.exists() and path.resolve() == program


def _of_the_package(work: Work) -> Path | None:
    return next((path for path in OF_THE_PACKAGE if not work.user and work.at(path).exists()), None)


def _need_root(work: Work) -> None:
    if not (work.user or work.dry) and os.geteuid() != 0:
        raise InvalidInput(
            f"this needs root: `sudo {shlex.join(sys.argv)}`; or make a service of your own with --user"
        )


def _check(work: Work, places: Places, program: Path, *, may_link: bool) -> None:
    """Look for everything that would fail later, before anything is changed."""
    if work.root is not None and not work.root.is_dir():
        raise InvalidInput(f"there is no directory {work.root}")
    there = _of_the_package(work)
    if there is not None:
        raise InvalidInput(f"the Debian package has done that: see `systemctl status {COMMAND}` ({there})")
    if work.root is None and not work.dry and not (RUNNING.exists() and shutil.which("systemctl")):
        raise InvalidInput(
            "systemd does not run this machine; let what starts your programs run `hydrometer-gateway serve`"
        )
    unit = work.text(places.unit)
    if unit is not None and service.written_beside(unit) is None:
        raise InvalidInput(f"{work.at(places.unit)} is not of `install-service`; move it away first")
    _need_root(work)
    if not work.user:
        for path in (program, Path(sys.executable).resolve()):
            if service.hidden(path):
                raise InvalidInput(
                    f"a service cannot see {path}: install the program by the Debian package, with "
                    "`sudo pipx install --global`, or in a venv below /opt; or use --user"
                )
    link = work.at(places.commands / COMMAND)
    if os.path.lexists(link) and not may_link and not _is(link, program):
        raise InvalidInput(f"{link} is another program; move it away first")
    parent = next(path for path in (work.at(places.data), *work.at(places.data).parents) if path.exists())
    free = shutil.disk_usage(parent).free
    if free < FREE_BYTES:
        raise GatewayError(
            f"{parent} has {free // 2**20} MiB free, and the data need {FREE_BYTES // 2**20}; make room first"
        )


def _answer(places: Places) -> dict[str, Any] | None:
    """Return what the running gateway of these data says of itself; None if none answers."""
    try:
        answer: dict[str, Any] = ask_briefly(places.data, "/healthz")
    except GatewayError:
        return None
    return answer


def _when_ready(places: Places, *, user: bool) -> dict[str, Any]:
    ends = time.monotonic() + READY_S
    while (answer := _answer(places)) is None:
        if time.monotonic() > ends:
            journal = f"journalctl {'--user ' if user else ''}-u {COMMAND} -n 20"
            raise GatewayError(
                f"the service is installed, but did not answer within {READY_S:g} s; `{journal}` says why"
            )
        time.sleep(READY_STEP_S)
    return answer


def _show(answer: dict[str, Any], places: Places, *, user: bool, changed: bool) -> None:
    typer.echo(
        "The gateway runs, and starts with this machine."
        if changed
        else "Nothing to change: the gateway runs."
    )
    page = answer["page"]
    if page:
        typer.echo(f"Page: {page}/ui/")
    if first_key_file(places.data).exists():
        sudo = "" if user else "sudo "
        typer.echo(f"Log in with the first key: {sudo}{COMMAND} keys first")
    typer.echo(f"Options: {places.environment}")
    if page and sys.stdout.isatty():
        from gateway.services.qr import for_terminal

        typer.echo(for_terminal(f"{page}/ui/"))
