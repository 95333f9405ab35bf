"""`/manage/folders`: the folders that recipes or brew sessions are filed in."""

from typing import Any, Literal

from pydantic import Field

from gateway.domain.folder import Folder, FolderKind
from gateway.domain.times import stamp
from gateway.errors import NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Endpoint, Page, Query
from gateway.http.parameters import Name


class FolderRecord(AnswerModel):
    """A folder; `filed` is the number of records in it, snapshots of recipes included."""

    id: str
    kind: FolderKind
    name: str
    filed: str
    created_at: str


class Folders(Page):
    """Folders by kind and name."""

    folders: list[FolderRecord]


class RemovedFolder(AnswerModel):
    """The folder that was removed."""

    message: Literal["success"] = "success"
    name: str


class FoldersQuery(Query):
    """Choice of folders."""

    kind: FolderKind | None = Field(default=None, description="Only those for this kind of record.")


class NewFolder(Body):
    """A new folder; no other folder of its kind may have the name."""

    kind: FolderKind
    name: Name


class FolderChange(Body):
    """A folder's new name."""

    name: Name


async def list_folders(call: Call[FoldersQuery, None]) -> Folders:
    """List the account's folders."""
    folders = await call.store.folders.all(call.caller.account_id)
    return _shown(*(folder for folder in folders if call.query.kind in {None, folder.kind}))


async def add_folder(call: Call[Query, NewFolder]) -> Folders:
    """Make a folder."""
    wanted = call.body
    return _shown(await call.services.library.add_folder(call.caller.account_id, wanted.kind, wanted.name))


async def rename_folder(call: Call[Query, FolderChange]) -> Folders:
    """Give a folder another name."""
    folder = await _own(call)
    await call.services.library.rename_folder(folder, call.body.name)
    return _shown(await _own(call))


async def delete_folder(call: Call[Query, None]) -> RemovedFolder:
    """Remove a folder; its records stay, in no folder."""
    folder = await _own(call)
    await call.services.library.delete_folder(folder)
    return RemovedFolder(name=folder.name)


async def _own(call: Call[Any, Any]) -> Folder:
    folder = await call.store.folders.get(call.path_id("folder_id"))
    if folder is None or not call.caller.may_see(folder.account_id):
        raise NotFound
    return folder


def _shown(*folders: Folder) -> Folders:
    records = [
        FolderRecord(
            id=str(folder.id),
            kind=folder.kind,
            name=folder.name,
            filed=str(folder.filed),
            created_at=stamp(folder.created_at),
        )
        for folder in folders
    ]
    return Folders(count=str(len(records)), folders=records)


ENDPOINTS = (
    Endpoint("GET", "/manage/folders", list_folders, "Folders", FoldersQuery, Folders),
    Endpoint(
        "POST",
        "/manage/folders",
        add_folder,
        "Make a folder",
        Query,
        Folders,
        body=NewFolder,
        refusals=(409,),
    ),
    Endpoint(
        "PATCH",
        "/manage/folders/{folder_id}",
        rename_folder,
        "Rename a folder",
        Query,
        Folders,
        body=FolderChange,
        refusals=(409,),
    ),
    Endpoint("DELETE", "/manage/folders/{folder_id}", delete_folder, "Remove a folder", Query, RemovedFolder),
)
"""Folders."""
