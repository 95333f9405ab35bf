"""Commands on devices."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.domain.brewsession import BrewSession
from gateway.domain.calibration import Calibration
from gateway.domain.device import EXCLUDED_SPANS, LABEL_CHARACTERS, Device, DeviceSettings, find_device
from gateway.domain.texts import NOT_TEXT
from gateway.errors import InvalidInput
from gateway.services.build import Services
from gateway.services.unforwarded import called, session_to_nowhere, which

AUTO = "auto"
"""What takes back a setting: the device's reports decide again."""

INTERVAL_S = (10, 86_400)
"""Between these a spindle takes what it is told over TCP, both exclusive (devices section 5.4)."""

Change = Callable[[DeviceSettings], DeviceSettings]


async def _assign(services: Services, arguments: Arguments, _: Progress) -> list[str]:
    """What was done, and what is still to do, in sentences."""
    done = await services.brewsessions.assign(**arguments)
    device = called(done.device, await services.store.devices.all())
    from_where = ""
    if done.before is not None and done.before.id != done.session.id:
        from_where = f", no longer into {which(done.before)}"
    sentence = f"{device} reports into brew session {which(done.session)} from now on{from_where}"
    if arguments["since"] is not None:
        count = done.claimed or "no"
        were = "reading was" if done.claimed == 1 else "readings were"
        return [f"{sentence}; {count} earlier {were} put into it.", *await _nowhere(services, done.session)]
    left = (await services.store.totals.unassigned()).get(done.device.id, 0)
    said = [f"{sentence}."]
    if left:
        are = "reading of it is" if left == 1 else "readings of it are"
        remedy = f"`devices assign {device} {done.session.id} --since DAY` puts those since a day into it"
        said.append(f"{left:,} earlier {are} in no brew session; {remedy}.")
    return said + await _nowhere(services, done.session)


async def _nowhere(services: Services, session: BrewSession) -> list[str]:
    found = await session_to_nowhere(services.store, session)
    return [] if found is None else [f"But {found.text}; {found.remedy}."]


async def _release(services: Services, arguments: Arguments, _: Progress) -> None:
    await services.brewsessions.release(**arguments)


async def _set(services: Services, arguments: Arguments, progress: Progress) -> dict[str, int]:
    """Label, units and interval; what is not among the arguments stays as it is."""
    return await _change(services, arguments, progress, lambda settings: _with_said(settings, arguments))


async def _calibrate(services: Services, arguments: Arguments, progress: Progress) -> dict[str, int]:
    """The members of a calibration that are given, over what is there, or over none with `clear`."""

    def change(settings: DeviceSettings) -> DeviceSettings:
        before = {} if arguments["clear"] else settings.calibration.to_dict()
        after = Calibration.from_dict({**before, **arguments["calibration"]})
        return replace(settings, calibration=after.checked())

    return await _change(services, arguments, progress, change)


async def _exclude(services: Services, arguments: Arguments, progress: Progress) -> dict[str, int]:
    span = int(arguments["first"]), int(arguments["last"])
    if span[0] > span[1]:
        raise InvalidInput("the span ends before it begins")

    def change(settings: DeviceSettings) -> DeviceSettings:
        spans = tuple(sorted({*settings.excluded, span}))
        if len(spans) > EXCLUDED_SPANS:
            raise InvalidInput(f"more than {EXCLUDED_SPANS} spans; `devices include` takes them back")
        return replace(settings, excluded=spans)

    return await _change(services, arguments, progress, change)


async def _include(services: Services, arguments: Arguments, progress: Progress) -> dict[str, int]:
    """Take back the spans that touch the given one."""
    first, last = int(arguments["first"]), int(arguments["last"])

    def change(settings: DeviceSettings) -> DeviceSettings:
        kept = tuple(span for span in settings.excluded if span[1] < first or span[0] > last)
        if kept == settings.excluded:
            raise InvalidInput("nothing is excluded there; `devices show` lists what is")
        return replace(settings, excluded=kept)

    return await _change(services, arguments, progress, change)


async def _resend(services: Services, arguments: Arguments, _: Progress) -> int:
    return await services.reprocessor.send_again(await _device(services, arguments), int(arguments["since"]))


async def _merge(services: Services, arguments: Arguments, progress: Progress) -> dict[str, Any]:
    """Make `other` one with `into`; with `dry_run` only say what that would do."""
    devices = await services.store.devices.all()
    into, other = find_device(devices, arguments["into"]), find_device(devices, arguments["other"])
    if arguments["dry_run"]:
        return (await services.merging.plan(into, other)).to_dict()
    plan = await services.merging.merge(
        into, other, lambda read: progress(read, 0, "readings understood again")
    )
    return plan.to_dict()


async def _change(
    services: Services, arguments: Arguments, progress: Progress, change: Change
) -> dict[str, int]:
    device = await _device(services, arguments)
    total = next(s.readings for s in await services.store.devices.summaries() if s.device.id == device.id)
    done = await services.reprocessor.configure(
        device, change(device.settings), lambda read: progress(read, total, "readings understood again")
    )
    return asdict(done)


async def _device(services: Services, arguments: Arguments) -> Device:
    return find_device(await services.store.devices.all(), arguments["device"])


def _with_said(settings: DeviceSettings, said: dict[str, Any]) -> DeviceSettings:
    changes: dict[str, Any] = {}
    for name, allowed in (("gravity_unit", "GP"), ("temp_unit", "CF")):
        if (value := said.get(name)) is not None:
            if value != AUTO and value not in tuple(allowed):
                raise InvalidInput(f"{name} must be {allowed[0]}, {allowed[1]} or {AUTO}, not {value!r}")
            changes[name] = None if value == AUTO else value
    if (label := said.get("label")) is not None:
        if len(label) > LABEL_CHARACTERS or NOT_TEXT.search(label):
            raise InvalidInput(f"a label is text of at most {LABEL_CHARACTERS} characters")
        changes["label"] = label.strip()
    if (interval_s := said.get("interval_s")) is not None:
        low, high = INTERVAL_S
        if interval_s and not low < interval_s < high:
            raise InvalidInput(f"an interval is more than {low} and less than {high} seconds, or 0 for none")
        changes["interval_s"] = interval_s or None
    return replace(settings, **changes)


COMMANDS: dict[str, Command] = {
    "devices.assign": _assign,
    "devices.release": _release,
    "devices.set": _set,
    "devices.calibrate": _calibrate,
    "devices.exclude": _exclude,
    "devices.include": _include,
    "devices.resend": _resend,
    "devices.merge": _merge,
}
