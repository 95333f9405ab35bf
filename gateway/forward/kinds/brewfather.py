"""Brewfather: its custom stream, https://docs.brewfather.app/integrations/custom-stream.

The stream has no member for a time. A device is known by its name there. One reading of a name is taken in
15 minutes; of any other the answer is 200 with `"result": "ignored"`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gateway.domain.delivery import DeliveryResult, Outcome
from gateway.forward.kinds import SessionPaused
from gateway.forward.kinds.cloud import Cloud, Request, known
from gateway.outward.client import Answer

KPA_OF_PSI = 6.894757


class Brewfather(Cloud):
    """The stream of one account; the key is its id."""

    own_url = "https://log.brewfather.net/stream"

    def request(self, values: Mapping[str, Any]) -> Request:
        """Return the request; gravity is SG, temperature °C, pressure psi."""
        pressure = values["pressure_kpa"]
        body = {
            "name": values["name"],
            "temp": values["temp_c"],
            "temp_unit": "C" if values["temp_c"] is not None else None,
            "gravity": values["sg"],
            "gravity_unit": "G" if values["sg"] is not None else None,
            "battery": values["battery_v"],
            "pressure": None if pressure is None else round(pressure / KPA_OF_PSI, 2),
            "pressure_unit": None if pressure is None else "PSI",
            "beer": values["batchcode"],
            "comment": values["comment"],
            "device_integration": "default",
        }
        url = f"{self.base_url}?id={quote(self._read_key(), safe='')}"
        return Request(url, json.dumps(known(body), ensure_ascii=False).encode())

    def judge(self, answer: Answer, secrets: Sequence[str]) -> Outcome:
        """Take 200 for a yes only if the answer does not say that the reading was ignored."""
        outcome = super().judge(answer, secrets)
        if outcome.verdict is not DeliveryResult.ACCEPTED:
            return outcome
        try:
            said = json.loads(answer.body)
        except ValueError:
            return outcome
        if isinstance(said, dict) and said.get("result") == "ignored":
            return SessionPaused(
                DeliveryResult.PAUSED, "ignored: the last reading is younger than 15 minutes"
            )
        return outcome
