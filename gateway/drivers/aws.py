"""AWS IoT's device shadow, as the iSpindel updates it by MQTT.

`{"state":{"reported":{"name","tilt","temperature","battery","gravity","interval","RSSI"}},"key":<name>}` on a
topic of the user's (universam1/iSpindel pio/src/iSpindel.cpp and pio/lib/Sender/Sender.cpp, 7.3.3), in AWS'
own naming `$aws/things/<thing>/shadow/update`. The payload names no unit of the temperature,
which is the unit that the device is set to, Kelvin included.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import spindle, wire
from gateway.drivers.base import Driver
from gateway.errors import DriverError


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none if only the desired state is written."""
    source = wire.fields(payload)
    state = source.get("state")
    if not isinstance(state, dict):
        raise DriverError("no state of a device shadow")
    reported = state.get("reported")
    if reported is None and "desired" in state:
        return []
    if not isinstance(reported, dict):
        raise DriverError("nothing reported in the device shadow")
    name = wire.text(reported, "name") or wire.text(source, "key") or payload.label
    return [spindle.parse(payload, {**reported, "name": name}, temp_unit=None)]


DRIVER = Driver("aws", "AWS IoT shadow", parse, topics=("$aws/things/{label}/shadow/update",))
