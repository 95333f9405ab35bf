"""A kind of simulated device. `devices.py` puts the tables of kinds together."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from sample_devices.wire.report import Device, Place

Transport = Literal["http", "mqtt", "tcp"]


class Kind(NamedTuple):
    """A kind of device: its transport, how one is made for a place in a fleet, and a sentence.

    `needs` are the options without which a gateway does not hear it, as firmware has no topic of its own.
    `alone` is a kind of which there can be one: a fleet has none of it.
    """

    transport: Transport
    factory: Callable[[Place], Device]
    about: str
    needs: str = ""
    alone: bool = False
