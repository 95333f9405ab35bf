"""Brewer's Friend: its device stream, https://docs.brewersfriend.com/api/stream.

The stream has no member for a time, and takes one reading for each key and brew session in 15 minutes. With
access to its API the kind `service` is better: an import takes times.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from gateway.forward.kinds.cloud import Cloud, Request, known

SOURCE = "hydrometer-gateway"


class BrewersFriend(Cloud):
    """The stream of one account; the key is its API key."""

    own_url = "https://log.brewersfriend.com/stream"
    interval_by_session = True

    def request(self, values: Mapping[str, Any]) -> Request:
        """Return the request; gravity is SG, temperature °C."""
        body = {
            "name": values["name"],
            "temp": values["temp_c"],
            "temp_unit": "C" if values["temp_c"] is not None else None,
            "gravity": values["sg"],
            "gravity_unit": "G" if values["sg"] is not None else None,
            "battery": values["battery_v"],
            "RSSI": values["rssi"],
            "angle": values["angle"],
            "beer": values["batchcode"],
            "comment": values["comment"],
            "report_source": SOURCE,
            "device_source": values["device"].partition(":")[0],
        }
        url = f"{self.base_url}/{quote(self._read_key(), safe='')}"
        return Request(url, json.dumps(known(body), ensure_ascii=False).encode())
