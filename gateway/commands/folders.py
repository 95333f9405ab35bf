"""Commands on folders, of any account."""

from gateway.commands.base import Arguments, Command, Progress
from gateway.domain.folder import Folder
from gateway.errors import NotFound
from gateway.services.build import Services


async def _add(services: Services, arguments: Arguments, _: Progress) -> int:
    account_id = await services.access.account_id(arguments.get("account"))
    return (await services.library.add_folder(account_id, arguments["kind"], arguments["name"])).id


async def _rename(services: Services, arguments: Arguments, _: Progress) -> None:
    await services.library.rename_folder(await folder_of(services, arguments["folder_id"]), arguments["name"])


async def _delete(services: Services, arguments: Arguments, _: Progress) -> str:
    """Its name."""
    folder = await folder_of(services, arguments["folder_id"])
    await services.library.delete_folder(folder)
    return folder.name


async def folder_of(services: Services, folder_id: int) -> Folder:
    """The folder with this id, of whatever account."""
    folder = await services.store.folders.get(folder_id)
    if folder is None:
        raise NotFound(f"no folder {folder_id}; `folders list` shows them")
    return folder


COMMANDS: dict[str, Command] = {
    "folders.add": _add,
    "folders.rename": _rename,
    "folders.delete": _delete,
}
