import pytest

from gateway.services.build import Services
from tests.clock import FakeClock
from tests.system.notify.brewing import Brewing


@pytest.fixture
def brewing(services: Services, clock: FakeClock) -> Brewing:
    return Brewing(services, clock)
