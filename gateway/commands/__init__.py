"""Every command that changes something, by name; run directly or by the gateway that is running."""

from gateway.commands import (
    accounts,
    devices,
    folders,
    keys,
    mirror,
    photos,
    quarantine,
    readings,
    recipes,
    samples,
    sessions,
    targets,
)
from gateway.commands.base import Command

COMMANDS: dict[str, Command] = {
    **accounts.COMMANDS,
    **keys.COMMANDS,
    **mirror.COMMANDS,
    **recipes.COMMANDS,
    **photos.COMMANDS,
    **folders.COMMANDS,
    **sessions.COMMANDS,
    **devices.COMMANDS,
    **quarantine.COMMANDS,
    **readings.COMMANDS,
    **samples.COMMANDS,
    **targets.COMMANDS,
}
