"""The services put together, for the two doors that lead to them: HTTP and the command line."""

from dataclasses import dataclass
from pathlib import Path

from gateway.clock import Clock
from gateway.config import NAMES_AN_HOUR
from gateway.events import StoredNotices
from gateway.intake.acceptance import Acceptance
from gateway.intake.clock_check import ClockMonitor
from gateway.intake.intake import Intake
from gateway.intake.reprocess import Reprocessor
from gateway.intake.retiming import Retiming
from gateway.services.access import Access
from gateway.services.alarms import AlarmService
from gateway.services.brewsessions import BrewSessionService
from gateway.services.channels import ChannelService
from gateway.services.devices import DeviceService
from gateway.services.figures import FigureService
from gateway.services.forgetting import Forgetting
from gateway.services.importing import Importing
from gateway.services.insight import InsightService
from gateway.services.knocks import Knocks
from gateway.services.library import Library
from gateway.services.links import LinkService
from gateway.services.logins import Logins
from gateway.services.mapped_targets import MappedTargets
from gateway.services.merging import Merging
from gateway.services.page_settings import PageSettings
from gateway.services.photos import PhotoService
from gateway.services.quarantine import QuarantineService
from gateway.services.recipe_files import RecipeFiles
from gateway.services.sending import SendingService
from gateway.services.series import SeriesService
from gateway.services.targets import TargetService
from gateway.services.timeline import Timeline
from gateway.stats import Stats
from gateway.store.files import PHOTO_DIRECTORY, PhotoFiles
from gateway.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Services:
    """The services that endpoints and commands work with."""

    store: Store
    directory: Path
    clock: Clock
    stats: Stats
    notices: StoredNotices
    knocks: Knocks
    access: Access
    logins: Logins
    links: LinkService
    page: PageSettings
    intake: Intake
    reprocessor: Reprocessor
    acceptance: Acceptance
    forgetting: Forgetting
    merging: Merging
    importing: Importing
    library: Library
    recipe_files: RecipeFiles
    photos: PhotoService
    brewsessions: BrewSessionService
    devices: DeviceService
    quarantine: QuarantineService
    targets: TargetService
    mapped: MappedTargets
    sending: SendingService
    timeline: Timeline
    figures: FigureService
    series: SeriesService
    insight: InsightService
    alarms: AlarmService
    channels: ChannelService
    clock_monitor: ClockMonitor
    retiming: Retiming


def build_services(
    store: Store, directory: Path, clock: Clock, names_an_hour: int = NAMES_AN_HOUR
) -> Services:
    """Build the services on a store and on the photo files of its data directory; open nothing yet."""
    stats, notices, library = Stats(), StoredNotices(), Library(store, clock)
    clock_monitor = ClockMonitor(store, notices, stats, clock)
    access = Access(store, clock, stats)
    intake = Intake(store, notices, stats, clock, clock_monitor, access.bound, names_an_hour)
    reprocessor = Reprocessor(store, intake, notices)
    targets, insight = TargetService(store, directory, notices, clock), InsightService(store, notices, clock)
    figures, alarms = FigureService(store, insight, clock), AlarmService(store, notices, clock)
    return Services(
        store=store,
        directory=directory,
        clock=clock,
        stats=stats,
        notices=notices,
        knocks=Knocks(clock, notices),
        access=access,
        logins=Logins(store, access, clock),
        links=LinkService(store, figures, clock),
        page=PageSettings(store),
        intake=intake,
        reprocessor=reprocessor,
        acceptance=Acceptance(store, intake, notices),
        forgetting=Forgetting(store, intake, reprocessor, alarms, notices, clock),
        merging=Merging(store, intake, reprocessor),
        importing=Importing(store, notices, stats, clock, clock_monitor.held_back),
        library=library,
        recipe_files=RecipeFiles(library),
        photos=PhotoService(store, PhotoFiles(directory / PHOTO_DIRECTORY), clock),
        brewsessions=BrewSessionService(store, library, notices, clock),
        devices=DeviceService(store, access, reprocessor),
        quarantine=QuarantineService(store, intake, notices),
        targets=targets,
        mapped=MappedTargets(store, directory, notices, clock, targets),
        sending=SendingService(store, targets, figures),
        timeline=Timeline(store, notices, stats, clock, clock_monitor.held_back),
        figures=figures,
        series=SeriesService(store, figures, alarms),
        insight=insight,
        alarms=alarms,
        channels=ChannelService(store, directory, notices, clock),
        clock_monitor=clock_monitor,
        retiming=Retiming(store, reprocessor.turn),
    )
