"""Folders that recipes or brew sessions are filed in."""

from dataclasses import dataclass
from typing import Literal

FolderKind = Literal["recipe", "brewsession"]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of an account, for one kind of record; `filed` is the number of records in it."""

    id: int
    account_id: int
    kind: FolderKind
    name: str
    created_at: int
    filed: int = 0
