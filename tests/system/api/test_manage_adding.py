"""`/manage/families` and `/manage/heard`: what to type into a device, and what is heard of it."""

import json
from pathlib import Path
from typing import Any

from gateway.domain.payload import Payload
from gateway.services.knocks import KnockKind
from tests.system.api.everything import Running, running
from tests.system.ui.test_adding import spindle


async def got(service: Running, path: str) -> Any:
    answer = await service.ask("GET", path)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


async def test_families_have_the_addresses_of_this_gateway(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        service.services.stats.listening |= {"http": "192.168.1.20:8081", "mqtt": "192.168.1.20:1883"}
        found = await got(service, "/manage/families?find=i-spindle")
        assert [family["id"] for family in found["families"]] == ["ispindel", "tcp_server"]
        ways = {way["id"]: way for way in found["families"][0]["ways"]}
        assert {field["name"]: field["text"] for field in ways["http"]["fields"]} == {
            "Service Type": "HTTP",
            "Server Address": "192.168.1.20",
            "Server Port": "8081",
            "Path / URI": "/ingest/ispindel",
        }
        assert ways["mqtt"]["needs"] == [{"need": "mqtt", "met": True, "reason": ""}]
        assert ways["tcp"]["needs"] == [{"need": "tcp", "met": False, "reason": ""}]
        assert ways["ubidots"]["needs"][1] == {"need": "dns", "met": None, "reason": ""}
        assert ways["craftbeerpi"]["needs"] == [{"need": "port 5000", "met": False, "reason": ""}]


async def test_what_came_is_named_with_values_and_reasons(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        services = service.services
        await services.intake.start()
        now = services.clock.now()
        await services.intake.take(Payload(spindle(), now, "http /ingest", source="192.168.1.37"))
        await services.intake.take(Payload(b'{"hello":1}', now, "http /ingest", source="192.168.1.38"))
        services.knocks.add(KnockKind.PATH, "192.168.1.39", "/isspindel?key=secret")
        heard = await got(service, "/manage/heard?since=2020-01-01")
        [device] = heard["devices"]
        assert (device["name"], device["is_new"], device["address"]) == ("iSpindel042", True, "192.168.1.37")
        assert (device["gravity"], device["gravity_unit"], device["temp"]) == ("12.3", "P", "19.8")
        assert "can only be Plato" in device["gravity_reason"]
        assert [(each["address"], each["begins"]) for each in heard["quarantine"]] == [
            ("192.168.1.38", '{"hello":1}')
        ]
        [knock] = heard["knocks"]
        assert (knock["kind"], knock["detail"], knock["times"]) == ("path", "/isspindel", 1)
        later = await got(service, "/manage/heard?since=2999-01-01")
        assert [later[kind] for kind in ("devices", "quarantine", "knocks", "waiting")] == [[]] * 4
        unknown = await service.ask("GET", "/manage/heard?since=2020-01-01&family=teapot")
        assert unknown.status == 404
