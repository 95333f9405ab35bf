"""Checks that there is a recent backup, on another disk."""

from collections.abc import Sequence

from gateway.backup.nightly import made_in, made_name
from gateway.doctor.finding import Context, Finding, ok, problem, warning

OLD_S = 26 * 3_600
"""A backup of last night is younger, in seconds."""


async def nightly(context: Context) -> Sequence[Finding]:
    """Check the nightly backups."""
    directory, now = context.settings.nightly_backup, context.clock.now()
    if directory is None:
        remedy = "--nightly-backup DIRECTORY on another disk; memory cards fail without warning"
        return [warning("no nightly backup is made", remedy)]
    if not directory.is_dir():
        return [problem(f"there is no directory {directory}", "mount its disk, or make the directory")]
    found = []
    if context.data_dir.exists() and directory.stat().st_dev == context.data_dir.stat().st_dev:
        text = f"{directory} is on the disk of the data: both would fail together"
        found.append(warning(text, "name a directory on another disk"))
    newest = max((made for made in made_in(directory) if made <= now), default=None)
    if newest is None:
        found.append(
            warning(
                f"there is no backup in {directory} yet",
                "the gateway makes one half a minute after its start",
            )
        )
    elif now - newest > OLD_S:
        text = f"the newest, {made_name(newest)}, is {int((now - newest) / 3600)} hours old"
        found.append(problem(text, "the gateway's log and /manage/status say why there is no later one"))
    else:
        found.append(ok(f"the newest is {directory / made_name(newest)}"))
    return found
