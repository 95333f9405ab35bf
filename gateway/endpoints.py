"""The table of all endpoints. To import this module is to import nearly all of `api` and `manage`."""

from gateway.api import brewsessions, fermentation, photos, recipes
from gateway.http.endpoint import AnyEndpoint
from gateway.manage import (
    accounts,
    adding,
    audit,
    backup,
    brewsession_events,
    brewsession_list,
    capture,
    delivery,
    device_trust,
    devices,
    event_stream,
    figures,
    folders,
    inbox,
    keys,
    links,
    mirror,
    quarantine,
    readings,
    samples,
    series,
    targets,
)
from gateway.manage import brewsessions as manage_brewsessions
from gateway.manage import photos as manage_photos
from gateway.manage import recipes as manage_recipes

ENDPOINTS: tuple[AnyEndpoint, ...] = (
    *fermentation.ENDPOINTS,
    *recipes.ENDPOINTS,
    *photos.ENDPOINTS,
    *brewsessions.ENDPOINTS,
    *manage_recipes.ENDPOINTS,
    *manage_photos.ENDPOINTS,
    *folders.ENDPOINTS,
    *manage_brewsessions.ENDPOINTS,
    *brewsession_list.ENDPOINTS,
    *brewsession_events.ENDPOINTS,
    *figures.ENDPOINTS,
    *readings.ENDPOINTS,
    *delivery.ENDPOINTS,
    *series.ENDPOINTS,
    *event_stream.ENDPOINTS,
    *devices.ENDPOINTS,
    *device_trust.ENDPOINTS,
    *adding.ENDPOINTS,
    *accounts.ENDPOINTS,
    *keys.ENDPOINTS,
    *links.ENDPOINTS,
    *audit.ENDPOINTS,
    *targets.ENDPOINTS,
    *quarantine.ENDPOINTS,
    *inbox.ENDPOINTS,
    *capture.ENDPOINTS,
    *mirror.ENDPOINTS,
    *samples.ENDPOINTS,
    *backup.ENDPOINTS,
)
"""All endpoints, except the ones that describe or watch the gateway itself: `site.build` adds these."""
