"""Copying another service. Its key comes as an argument: the socket is its owner's alone."""

from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.errors import NameTaken
from gateway.services.build import Services


async def _mirror(services: Services, arguments: Arguments, progress: Progress) -> dict[str, Any]:
    # Here, because it costs memory that a running gateway pays only once it is asked.
    from gateway.mirror.copying import mirror, under_way
    from gateway.mirror.run import MirrorSource

    account_id = await services.access.account_id(arguments["account"])
    if under_way(services.store).locked():
        raise NameTaken("the gateway is copying a service right now; /healthz shows how far it is")
    source = MirrorSource(arguments["url"], arguments["key"], arguments["photos"], arguments["rate"])
    return (await mirror(services, source, account_id, progress)).as_json()


COMMANDS: dict[str, Command] = {"mirror": _mirror}
