"""Starts the gateway as an app of Home Assistant: options become variables, and root becomes a plain user."""

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PROGRAM = "/usr/bin/hydrometer-gateway"
USER_ID = 1000

DATA = Path("/data")
"""Where the Supervisor keeps the options, and the gateway its data."""

CONFIG = Path("/config")
"""A folder that the owner sees by the apps for files, such as Samba share or File editor."""

NAME = "home-assistant"
"""The name of the first key."""

DATABASE, BACKUP, KEY, NEW_KEY = "gateway.sqlite3", "backup.tar", "key", "new-key"

MARK = "in-place"
"""A file beside the data that no backup of Home Assistant has. Without it, the data come from a backup."""

SUPERVISOR = "supervisor"
SUPERVISOR_ADDRESS = "172.30.32.2"
"""The Supervisor's address in its own network, in which no other program can take it."""

ASKING_S = 10
"""Seconds that the Supervisor has for an answer."""

PRIVATE = Path("/run/hydrometer-gateway")
PASSWORD_FILE = "mqtt-password"  # noqa: S105 (a name)


def variables(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the variable and the text of each option that is set."""
    for name, value in options.items():
        if value is None or value in ("", []):
            continue
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        yield f"GATEWAY_{name.upper()}", text.lower() if isinstance(value, bool) else text


def broker(supervisor: str, token: str) -> dict[str, Any] | None:
    """Ask the Supervisor for the MQTT broker; None if there is none."""
    connection = http.client.HTTPConnection(supervisor, timeout=ASKING_S)
    try:
        connection.request("GET", "/services/mqtt", headers={"Authorization": f"Bearer {token}"})
        answer = json.load(connection.getresponse())
    except (OSError, http.client.HTTPException, ValueError) as error:
        say(f"the Supervisor does not name a broker: {error}")
        return None
    finally:
        connection.close()
    data = answer.get("data") if isinstance(answer, dict) and answer.get("result") == "ok" else None
    return data if isinstance(data, dict) and data.get("host") else None


def of_broker(found: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Return the variables for a broker. Its password goes into a file that nobody else can read."""
    scheme = "mqtts" if found.get("ssl") else "mqtt"
    made = {"GATEWAY_MQTT_URL": f"{scheme}://{found['host']}:{found.get('port', 1883)}"}
    if found.get("username"):
        made["GATEWAY_MQTT_USER"] = str(found["username"])
    if found.get("password"):
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chown(folder, USER_ID, USER_ID)
        made["GATEWAY_MQTT_PASSWORD_FILE"] = str(folder / PASSWORD_FILE)
        write(folder / PASSWORD_FILE, str(found["password"]), USER_ID)
    return made


def environment(options: Mapping[str, Any], found: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the environment of the gateway by the options, with the broker that was found."""
    made = {**os.environ, "HOME": str(DATA), "GATEWAY_INGRESS_PROXY": SUPERVISOR_ADDRESS}
    made |= variables(options)
    made.pop("SUPERVISOR_TOKEN", None)
    if found is not None:
        return made | of_broker(found, PRIVATE)
    # The port for MQTT leads out of no container. Without a broker nobody is told of a hydrometer.
    if options.get("ha_discovery") and not options.get("no_mqtt"):
        say("there is no MQTT broker, so Home Assistant is told of no hydrometer: install the Mosquitto app")
    return made | {"GATEWAY_NO_MQTT": "true", "GATEWAY_HA_DISCOVERY": "false", "GATEWAY_HA_BREWS": "false"}


def give(folder: Path) -> None:
    """Give the files of the gateway to its user: a backup brings them back as root's."""
    os.chown(folder, USER_ID, USER_ID)
    for path in folder.rglob("*"):
        if path.name != "options.json" and path.lstat().st_uid != USER_ID:
            os.chown(path, USER_ID, USER_ID, follow_symlinks=False)


def write(path: Path, text: str, user: int) -> None:
    """Write a file that its owner alone can read."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        os.fchown(descriptor, user, user)
        file.write(f"{text}\n")


def restore(variables: Mapping[str, str]) -> None:
    """Put the data back after Home Assistant has restored its backup, if a whole copy is in that.

    There is none if the app did not run then: the database was at rest, and is whole as it is.
    """
    copy = CONFIG / BACKUP
    if not (DATA / MARK).exists():
        if copy.exists():
            # As root, to whom the copy belongs.
            subprocess.run([PROGRAM, "restore", copy], env=dict(variables), check=True)  # noqa: S603 (ours)
        (DATA / MARK).touch()
    copy.unlink(missing_ok=True)


def make_key(variables: Mapping[str, str], name: str) -> None:
    """Make a key, and show it to the owner in a file: the log of the app is kept, and many can read it."""
    done = subprocess.run(  # noqa: S603 (our own program)
        [PROGRAM, "keys", "add", name, "--scope", "admin"],
        env=dict(variables),
        user=USER_ID,
        group=USER_ID,
        extra_groups=[],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    write(CONFIG / KEY, done.stdout.strip(), 0)
    (CONFIG / NEW_KEY).unlink(missing_ok=True)
    say(f"the key for the page is in the file {KEY!r} of the folder addon_configs/..._hydrometer_gateway")


def say(sentence: str) -> None:
    """Write a line into the log of the app."""
    print(f"hydrometer-gateway: {sentence}", flush=True)


def main() -> None:
    """Start the gateway in place of this program."""
    options = json.loads((DATA / "options.json").read_text())
    token = os.environ.get("SUPERVISOR_TOKEN", "")
    found = broker(SUPERVISOR, token) if token and not options.get("no_mqtt") else None
    variables = environment(options, found)
    restore(variables)
    give(DATA)
    is_new = not (DATA / DATABASE).exists()
    if CONFIG.is_dir() and (is_new or (CONFIG / NEW_KEY).exists()):
        make_key(variables, NAME if is_new else f"{NAME} {time.strftime('%Y-%m-%d %H:%M:%S')}")
    os.setgroups([])
    os.setgid(USER_ID)
    os.setuid(USER_ID)
    sys.stdout.flush()
    os.execve(PROGRAM, [PROGRAM, "serve"], variables)  # noqa: S606 (it takes the place of this program)


if __name__ == "__main__":
    main()
