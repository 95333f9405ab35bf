"""A photo of a recipe: its record. Its bytes are a file."""

from dataclasses import dataclass

EXTENSIONS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif"}
"""The accepted media types, and the extensions of their files."""


FILENAME_CHARACTERS = 255
CAPTION_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Photo:
    """The record of a photo.

    Sides are pixels as displayed, `size` is bytes, `sha256` hex digits, `created_at` Unix seconds.
    """

    uuid: str
    recipe_id: int
    filename: str
    mimetype: str
    width: int
    height: int
    size: int
    sha256: str
    caption: str
    created_at: int

    @property
    def file_name(self) -> str:
        """Return the name of the file with the bytes."""
        return f"{self.uuid}.{EXTENSIONS[self.mimetype]}"
