"""Nautilis iRelay: the relay's own temperature probe.

HTTP (as received by wormoworm/irelay-mqtt src/api.py): POST `{"temperature","unit":"celsius","token"}` to
`/api/irelay` or `/api/nautilis`, no name. The spindles that it relays come to the same host as iSpindel JSON,
so these paths are the iSpindel's, and the content tells the probe. `{"message": "ok"}` is the known answer.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, identity, wire
from gateway.drivers.base import Driver
from gateway.errors import DriverError

REPLY = {"message": "ok"}


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload: a temperature, never a gravity; nameless devices by address."""
    source = wire.fields(payload)
    name = wire.text(source, "name") or payload.label
    report = Report(stable_id=name or payload.source, name=name, reply=REPLY)
    identity.settle(report, payload, source, shared=not name)
    fill.token(report, payload, source)
    fill.temperature(report, source, {"temperature": None}, default=None)
    if fill.measures(report):
        return [report]
    if "temperature" in source:
        return []
    raise DriverError("no temperature of an iRelay's probe")


DRIVER = Driver("irelay", "Nautilis iRelay's own probe", parse)
