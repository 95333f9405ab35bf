"""Commands on folders, of any account."""

from gateway.commands.base import Arguments, Command, Progress
from gateway.domain.folder import Folder
from gateway.errors import NotFound
from gateway.services.build import Parts


async def _add(parts: Parts, arguments: Arguments, _: Progress) -> int:
    account_id = await parts.access.account_id(arguments.get("account"))
    return (await parts.library.add_folder(account_id, arguments["kind"], arguments["name"])).id


async def _rename(parts: Parts, arguments: Arguments, _: Progress) -> None:
    await parts.library.rename_folder(await folder_of(parts, arguments["folder_id"]), arguments["name"])


async def _delete(parts: Parts, arguments: Arguments, _: Progress) -> str:
    """Its name."""
    folder = await folder_of(parts, arguments["folder_id"])
    await parts.library.delete_folder(folder)
    return folder.name


async def folder_of(parts: Parts, folder_id: int) -> Folder:
    """The folder with this id, of whatever account."""
    folder = await parts.store.folders.get(folder_id)
    if folder is None:
        raise NotFound(f"no folder {folder_id}; `folders list` shows them")
    return folder


COMMANDS: dict[str, Command] = {
    "folders.add": _add,
    "folders.rename": _rename,
    "folders.delete": _delete,
}
