"""Every command that needs whoever has the data open, by name; run directly, or by a running gateway."""

from gateway.commands import (
    accounts,
    devices,
    folders,
    health,
    keys,
    photos,
    recipes,
    sessions,
)
from gateway.commands.base import Command

COMMANDS: dict[str, Command] = {
    **accounts.COMMANDS,
    **keys.COMMANDS,
    **recipes.COMMANDS,
    **photos.COMMANDS,
    **folders.COMMANDS,
    **health.COMMANDS,
    **sessions.COMMANDS,
    **devices.COMMANDS,
}
