"""The command that fills an empty gateway with a made-up brewery."""

from dataclasses import asdict
from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.services.build import Services


async def _fill(services: Services, arguments: Arguments, progress: Progress) -> dict[str, Any]:
    from gateway.samples.brewery import fill  # here, because hardly any gateway ever needs it

    account_id = await services.access.account_id(arguments["account"])
    seed, photos = arguments["seed"], arguments["photos"]
    return asdict(await fill(services, account_id, progress, seed=seed, photos=photos))


COMMANDS: dict[str, Command] = {"samples.fill": _fill}
