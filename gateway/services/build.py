"""The services put together, for the two doors that lead to them: HTTP and the command line."""

from dataclasses import dataclass
from pathlib import Path

from gateway.clock import Clock
from gateway.events import StoredNotices
from gateway.intake.clock_check import Timekeeping
from gateway.intake.intake import Intake
from gateway.intake.reprocess import Understanding
from gateway.intake.retiming import Retiming
from gateway.services.access import Access
from gateway.services.brewsessions import Brewing
from gateway.services.importing import Importing
from gateway.services.library import Library
from gateway.services.merging import Merging
from gateway.services.photos import Photos
from gateway.services.targets import Targets
from gateway.stats import Stats
from gateway.store.files import PHOTO_DIRECTORY, PhotoFiles
from gateway.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Parts:
    """What endpoints and commands work on."""

    store: Store
    clock: Clock
    stats: Stats
    notices: StoredNotices
    access: Access
    intake: Intake
    understanding: Understanding
    merging: Merging
    importing: Importing
    library: Library
    photos: Photos
    brewing: Brewing
    targets: Targets
    timekeeping: Timekeeping
    retiming: Retiming


def put_together(store: Store, directory: Path, clock: Clock) -> Parts:
    """The services on a store and on the photo files in its data directory; nothing is opened yet."""
    stats, notices, library = Stats(), StoredNotices(), Library(store, clock)
    timekeeping = Timekeeping(store, notices, stats, clock)
    intake = Intake(store, notices, stats, clock, timekeeping)
    understanding = Understanding(store, intake, notices)
    return Parts(
        store=store,
        clock=clock,
        stats=stats,
        notices=notices,
        access=Access(store, clock),
        intake=intake,
        understanding=understanding,
        merging=Merging(store, intake, understanding),
        importing=Importing(store, notices, stats, clock, timekeeping.held_back),
        library=library,
        photos=Photos(store, PhotoFiles(directory / PHOTO_DIRECTORY), clock),
        brewing=Brewing(store, library, notices, clock),
        targets=Targets(store, directory, notices),
        timekeeping=timekeeping,
        retiming=Retiming(store, understanding.turn),
    )
