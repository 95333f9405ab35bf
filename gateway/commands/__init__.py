"""Every command that changes something, by name; run directly or by the gateway that is running."""

from gateway.commands import devices, keys, sessions
from gateway.commands.base import Command

COMMANDS: dict[str, Command] = {
    **keys.COMMANDS,
    **sessions.COMMANDS,
    **devices.COMMANDS,
}
