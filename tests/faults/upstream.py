"""U1 to U10 and D10: what an upstream can do. In this process, on a real store and real connections, the clock by hand.

Each scenario's upstream is of both kinds, one after the other: it keeps `_id`s, or gives its own.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from email.utils import format_datetime
from datetime import UTC, datetime
from unittest.mock import patch

from gateway.domain.delivery import Outcome, Verdict
from gateway.forward import import_target
from gateway.forward.backoff import CAP_S, RETRY_AFTER_CAP_S, Backoff
from gateway.forward.forwarder import PAUSE_S, ForwardSettings
from gateway.forward.readback import Attempt
from tests.cloud import Behaviour, accept_first, accept_then_reset, reset_before, status, wrong_count
from tests.faults.cloud import Upstream
from tests.faults.frame import Run, Scenario
from tests.faults.upstream_wire import GARBAGE_SCENARIOS
from tests.forward.bench import UPSTREAM, Bench, bad, bench, number_of, reading
