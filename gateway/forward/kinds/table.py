"""The table of kinds: who makes a target of which kind. A kind's module is loaded with its first target."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from gateway.clock import Clock
from gateway.config import TARGETS_KEY, read_key
from gateway.domain.target import SERVICE, Target
from gateway.errors import ConfigError
from gateway.forward.kinds import Kind, MappedKind
from gateway.forward.kinds.service import ImportTarget

if TYPE_CHECKING:
    from gateway.outward.client import OutwardClient

    _Made = Callable[[Target, Callable[[], str], Callable[[], str], OutwardClient, Clock], MappedKind]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What nothing may be sent to: our own listening ports, and topics that fit the filters that we hear."""

    own_ports: Callable[[], Collection[int]] = tuple
    hears: Collection[str] = ()


NOWHERE = Surroundings()
"""Nothing listens, and nothing is heard: a command, or a test."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a kind may use: the HTTP session for Brewing Data Services, the clock, and what lies around us."""

    session: aiohttp.ClientSession
    clock: Clock
    around: Surroundings = NOWHERE


def _influx(target: Target, clock: Clock, around: Surroundings) -> MappedKind:
    from gateway.forward.kinds.influx import Influx
    from gateway.outward.client import OutwardClient

    return Influx(target, lambda: _key(target), OutwardClient(around.own_ports), clock)


def _mqtt(target: Target, clock: Clock, around: Surroundings) -> MappedKind:
    from gateway.forward.kinds.mqtt import Mqtt
    from gateway.outward.guard import Guard

    return Mqtt(target, lambda: _key(target), Guard(around.own_ports), around.hears)


def _webhook(target: Target, clock: Clock, around: Surroundings) -> MappedKind:
    from gateway.forward.kinds.webhook import Webhook

    return _with_address(Webhook, target, clock, around)


def _brewfather(target: Target, clock: Clock, around: Surroundings) -> MappedKind:
    from gateway.forward.kinds.brewfather import Brewfather

    return _with_address(Brewfather, target, clock, around)


def _brewersfriend(target: Target, clock: Clock, around: Surroundings) -> MappedKind:
    from gateway.forward.kinds.brewersfriend import BrewersFriend

    return _with_address(BrewersFriend, target, clock, around)


def _grainfather(target: Target, clock: Clock, around: Surroundings) -> MappedKind:
    from gateway.forward.kinds.grainfather import Grainfather

    return _with_address(Grainfather, target, clock, around)


def _with_address(kind: "_Made", target: Target, clock: Clock, around: Surroundings) -> MappedKind:
    from gateway.outward.client import OutwardClient

    client = OutwardClient(around.own_ports)
    return kind(target, lambda: _key(target), lambda: url_of(target), client, clock)


MAKERS: Mapping[str, Callable[[Target, Clock, Surroundings], MappedKind]] = {
    "influx": _influx,
    "mqtt": _mqtt,
    "webhook": _webhook,
    "brewfather": _brewfather,
    "brewersfriend": _brewersfriend,
    "grainfather": _grainfather,
}
"""By the kind's name, as in the table of targets; `service` is made by `made` itself."""

KINDS = (SERVICE, *MAKERS)


def made(target: Target, means: Means) -> Kind:
    """Return what sends to the target; `ConfigError` if its settings are wrong."""
    if target.kind != SERVICE:
        return mapped(target, means.clock, means.around)
    return ImportTarget(
        means.session, target.url, lambda: key_of(target), means.clock, per_minute=target.per_minute
    )


def mapped(target: Target, clock: Clock, around: Surroundings) -> MappedKind:
    """Return what sends to a target that is no Brewing Data Service; `ConfigError` if it cannot be made."""
    if target.kind not in MAKERS:
        raise ConfigError(f"there is no kind {target.kind} of a target; there are {', '.join(KINDS)}")
    return MAKERS[target.kind](target, clock, around)


def key_of(target: Target) -> str:
    """Read the target's key from its file; `ConfigError` names the mistake in the file."""
    return read_key(Path(target.key_file), f"{TARGETS_KEY}{target.name}")


def url_of(target: Target) -> str:
    """Return the address, which may stand in a file as a key does; `ConfigError` as for a key."""
    options = target.options
    if options.get("url_file"):
        return read_key(Path(options["url_file"]), f"file with the address of target {target.name}")
    return str(options.get("url", ""))


def _key(target: Target) -> str:
    """Read the key of a kind that may go without one."""
    return key_of(target) if target.key_file else ""
