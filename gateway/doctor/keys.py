"""Checks of the API keys of this gateway: unused, ending, not fetched yet."""

from collections.abc import Sequence

from gateway.doctor.database import opened, usable
from gateway.doctor.finding import Context, Finding, ok, warning
from gateway.services.key_files import first_key_file

DAY_S = 86_400

UNUSED_DAYS = 180
"""Days without a use after which a key is worth a question."""

ENDS_SOON_DAYS = 14
"""Days before the end of a key in which there is time to rotate it."""


async def keys(context: Context) -> Sequence[Finding]:
    """Warn of keys that nobody uses, of keys that end soon, and of a first key that lies in its file."""
    found = []
    waiting = first_key_file(context.data_dir)
    if waiting.exists():
        text = f"the first API key is still in {waiting}"
        found.append(warning(text, "`keys first` shows it and removes the file"))
    if not usable(context):
        return found
    async with opened(context) as store:
        keys = [key for key in await store.keys.active() if not key.replaced]
    now = context.clock.now()
    for key in keys:
        unused_days = int(now - (key.last_used_at or key.created_at)) // DAY_S
        if key.has_ended(now):
            found.append(warning(f"key {key.name} has ended", f"`keys rotate {key.name}`, or revoke it"))
        elif key.expires_at is not None and key.expires_at - now <= ENDS_SOON_DAYS * DAY_S:
            days = int(key.expires_at - now) // DAY_S
            found.append(warning(f"key {key.name} ends in {days} days", f"`keys rotate {key.name}`"))
        if unused_days >= UNUSED_DAYS:
            text = f"key {key.name} was not used for {unused_days} days"
            found.append(warning(text, f"`keys revoke {key.name}`, unless it is needed"))
    return found or [ok(f"{len(keys)} in use")]
