"""`/manage/brewsessions/:id/delivery`: counts by target, and single readings in pages."""

import json
from pathlib import Path
from typing import Any

from gateway.domain.target import Target
from tests.system.api.everything import Running, fill, running

CLUB = Target("club", "https://club.example", "/key")


async def get(service: Running, path: str) -> Any:
    answer = await service.ask("GET", path)
    return json.loads(answer.body) if answer.status == 200 else answer.status


async def test_counts_and_states(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        store = service.services.store
        session = await store.sessions.get(
            int((await fill(service.services, "owner", "mine")).ids["brew_session_id"])
        )
        assert session is not None
        path = f"/manage/brewsessions/{session.id}/delivery"
        assert await get(service, path) == {"message": "success", "targets": []}
        await store.targets.add(CLUB)
        await store.targets.map(session.id, CLUB.url, 500)
        await service.services.importing.run(session, b'[{"temp": 20}, {"temp": 21}]', "json", "", False)
        batch = await store.outbox.begin(CLUB.url, session.id, 2)
        assert batch is not None
        await store.outbox.settle(batch)
        [target] = (await get(service, path))["targets"]
        assert target == {
            "target": "club", "upstream_id": 500,
            "pending": 1, "forwarded": 2, "refused": 0, "superseded": 0, "not_forwarded": 0, "edited": 0,
        }  # fmt: skip
        assert len((await get(service, f"{path}/readings"))["readings"]) == 3
        [waiting] = (await get(service, f"{path}/readings?state=pending"))["readings"]
        assert (waiting["delivery"], waiting["reasons"]) == (
            {"target1": "not forwarded", "mapped1": "not forwarded", "club": "pending"},
            {},
        )
        assert len((await get(service, f"{path}/readings?skip=1&limit=1"))["readings"]) == 1
        assert await get(service, f"{path}/readings?state=lost") == 400
        assert await get(service, "/manage/brewsessions/999/delivery") == 404
