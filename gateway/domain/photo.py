"""A photo of a recipe: what is known of it; its bytes are a file."""

from dataclasses import dataclass

EXTENSIONS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif"}
"""Media types that are taken, and what their files end in."""


@dataclass(frozen=True, slots=True)
class Photo:
    """One photo.

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
        """What the file with the bytes is called."""
        return f"{self.uuid}.{EXTENSIONS[self.mimetype]}"
