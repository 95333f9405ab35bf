"""Home Assistant's own MQTT integration in a process, without frontend and web server.

`python observer.py FOLDER PORT USER PASSWORD` connects to the broker at this machine. It answers each line of
its input by one line: a JSON object of all states by entity id, and all devices by name.
"""

import asyncio
import json
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any


async def start(folder: Path, broker: dict[str, Any]) -> Any:
    from homeassistant import (  # type: ignore[import-not-found]
        auth,
        bootstrap,
        config_entries,
        core,
        loader,
    )

    hass = core.HomeAssistant(str(folder))
    hass.config.skip_pip = True
    hass.config_entries = config_entries.ConfigEntries(hass, {})
    loader.async_setup(hass)
    await bootstrap.async_load_base_functionality(hass)
    hass.auth = await auth.auth_manager_from_config(hass, [], [])
    # The integration wants the web server and its uploads, and asks nothing of them.
    (folder / "configuration.yaml").write_text("")
    hass.config.components.update({"http", "file_upload"})
    await hass.async_start()
    entry = config_entries.ConfigEntry(
        data=broker, discovery_keys=MappingProxyType({}), domain="mqtt", minor_version=1, options={},
        source="user", subentries_data=(), title="broker", unique_id=None, version=1,
    )  # fmt: skip
    await hass.config_entries.async_add(entry)
    return hass


def snapshot(hass: Any) -> dict[str, Any]:
    from homeassistant.helpers import (  # type: ignore[import-not-found]
        device_registry,
        entity_registry,
    )

    devices = device_registry.async_get(hass).devices.values()
    entities = entity_registry.async_get(hass).entities.values()
    return {
        "states": {
            state.entity_id: {
                "state": state.state,
                **json.loads(json.dumps(dict(state.attributes), default=str)),
            }
            for state in hass.states.async_all()
        },
        "devices": {
            str(device.name): {
                "via": next((other.name for other in devices if other.id == device.via_device_id), None),
                "url": device.configuration_url,
            }
            for device in devices
        },
        "ids": {
            entity.unique_id: {"id": entity.entity_id, "disabled": entity.disabled_by is not None}
            for entity in entities
        },
    }


async def main(folder: str, port: str, user: str, password: str) -> None:
    broker = {"broker": "127.0.0.1", "port": int(port), "username": user, "password": password}
    hass = await start(Path(folder), broker)
    loop = asyncio.get_running_loop()
    print("{}", flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(snapshot(hass)), flush=True)
    await hass.async_stop()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
