"""Grainfather: the address of one of its fermentation devices, which ends in `/tilt` or `/custom`.

Neither has a member for a time. Each address takes one reading in 15 minutes, and answers 429 otherwise.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gateway.errors import ConfigError
from gateway.forward.kinds.cloud import Cloud, Request, known


class Grainfather(Cloud):
    """One device there. The address is the secret."""

    def request(self, values: Mapping[str, Any]) -> Request:
        """Return the request; gravity is SG, temperature °C. `ConfigError` for another address."""
        url, sg, celsius = self._read_url(), values["sg"], values["temp_c"]
        if not url:
            raise ConfigError("--url-file is missing: a file with the address that Grainfather shows")
        ending = urlsplit(url).path.rstrip("/").rpartition("/")[2]
        if ending == "tilt":
            body = {"SG": sg, "Temp": celsius, "Unit": "C" if celsius is not None else None}
        elif ending == "custom":
            body = {
                "specific_gravity": sg,
                "temperature": celsius,
                "unit": "celsius" if celsius is not None else None,
            }
        else:
            raise ConfigError("the address must end in /tilt or /custom, as Grainfather shows it")
        return Request(url, json.dumps(known(body)).encode())

    def secrets(self) -> list[str]:
        """Return the address, its path, and the level that names the device: pages of errors repeat them."""
        url = self._read_url()
        path = urlsplit(url).path
        return [url, path, path.rstrip("/").rpartition("/")[0].rpartition("/")[2]]
