"""Copying another service. Its key comes as an argument: the socket is its owner's alone."""

from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.errors import NameTaken
from gateway.services.build import Parts


async def _mirror(parts: Parts, arguments: Arguments, progress: Progress) -> dict[str, Any]:
    # Here, because it costs memory that a running gateway pays only once it is asked.
    from gateway.mirror.copying import mirror, under_way
    from gateway.mirror.run import Source

    account_id = await parts.access.account_id(arguments["account"])
    if under_way(parts.store).locked():
        raise NameTaken("the gateway is copying a service right now; /healthz shows how far it is")
    source = Source(arguments["url"], arguments["key"], arguments["photos"], arguments["rate"])
    return (await mirror(parts, source, account_id, progress)).as_json()


COMMANDS: dict[str, Command] = {"mirror": _mirror}
