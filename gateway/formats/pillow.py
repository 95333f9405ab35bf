"""Pillow, which decodes and draws pictures: the one dependency without wheels for 32-bit computers."""

from importlib.util import find_spec

from gateway.errors import NotInstalled

REMEDY = "photos need `pip install 'hydrometer-gateway[photos]'`"


def is_installed() -> bool:
    """Return whether Pillow is installed. It is not imported, because it takes 7 MiB."""
    try:
        return find_spec("PIL") is not None
    except ImportError:
        return False


def load() -> None:
    """Import Pillow; `NotInstalled` if it is missing, or if a library of the system that it needs is."""
    try:
        import PIL.Image  # noqa: F401
    except ModuleNotFoundError as error:
        raise NotInstalled(REMEDY) from error
    except ImportError as error:
        raise NotInstalled(f"photos need Pillow, which does not start here: {error}") from error
